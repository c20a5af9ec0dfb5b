// Computes a mask.
#include "masks/mask_computation.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "base/ways.h"
#include "values/strings.h"

namespace constrain {

namespace {

constexpr size_t max_single_tokens = 4096;  // more single tokens than this become a bitmask of their own
constexpr size_t few_additions = 256;   // the same for the masks of walks through rows, which share no bitmask

}  // namespace

void MaskComputation::compute(MaskDraft& mask, const Place& here) {
  const LexId lexer = here.lexer;
  if (lexer == LexId::dead) return;  // only the end of the text is possible here
  if (grammar_.reads_bytes && uses("rows") && is_short(lexer)) {
    if (const uint32_t row = rows_.of(here); row != PlaceRows::without_row) return by_rows(mask, here, row);
  }
  const std::shared_ptr<const IndependentTokens> alone = independent_.of(lexer);
  mask.base = alone->base;
  mask.add = alone->add;
  mask.remove = alone->remove;
  const bool needs_text = parser_.closure(here.set).has_earlier;
  const TextId text = !lexer_.remembers(lexer) ? TextId::empty : needs_text ? here.text : TextId::unknown;
  for (const Exits& group : alone->exits) {
    if (needs_text && lexer_.remembers(lexer)) {
      add_text_dependent_exits(mask, group, here);
      continue;
    }
    const Place next = after(here, group.matched, text);
    if (next.set != SetId::none) add_exits(mask, group, next);
  }
  if (!alone->matched_at_root.empty()) {
    const Place next = after(here, alone->matched_at_root, text);
    if (next.set != SetId::none) {
      mask.eos = parser_.closure(next.set).accepting;
      add_following(mask, *alone, next);
    }
  }
  settle(mask);
}

// Whether no text of the lexeme is long, so that its tokens are soon beyond it.
bool MaskComputation::is_short(LexId lexer) const {
  std::span<const Lexer::Entry> entries = lexer_.entries(lexer);
  return std::ranges::all_of(entries, [&](const Lexer::Entry& entry) { return lexer_.expressions()[entry.expression].finite; });
}

void MaskComputation::by_rows(MaskDraft& mask, const Place& here, uint32_t row) {
  if (const Place next = stepping_.finished(here); next.set != SetId::none) {
    mask.eos = parser_.closure(next.set).accepting;
  }
  const std::optional<PlaceRows::Reach> reach = rows_.reach(row);
  if (reach && take_known(mask, *reach)) return;
  rows_.new_walk();
  walk_rows(mask, Trie::root, row);
  if (!reach) return;
  mask.own = nullptr;  // others may share it from here on
  auto tokens = std::make_shared<PlaceTokens>(PlaceTokens{mask.base, mask.add, {}});
  for (uint32_t number = 0; number < reach->rows.size(); ++number) {
    if (rows_.has_end(reach->rows[number])) tokens->ends.push_back(number);
  }
  vocabulary_.keep_places(reach->key, std::move(tokens));
}

// Takes the tokens that the vocabulary keeps for these places; false if it has none.
bool MaskComputation::take_known(MaskDraft& mask, const PlaceRows::Reach& reach) {
  const std::shared_ptr<const PlaceTokens> known = vocabulary_.find_places(reach.key);
  if (!known) return false;
  mask.base = known->base;
  mask.add = known->add;
  for (uint32_t number : known->ends) ends_.push_back(rows_[reach.rows[number]].set);
  return true;
}

// The tokens below `node`, whose byte has led to `row`.
void MaskComputation::walk_rows(MaskDraft& mask, uint32_t node, uint32_t row) {
  const Trie& trie = vocabulary_.trie();
  struct Frame {
    uint32_t end, row;  // of a node above
  };
  std::vector<Frame> above;
  const uint32_t end = trie.end(node);
  Frame top{end, row};
  for (++node; node < end;) {
    while (top.end <= node) {
      top = above.back();
      above.pop_back();
    }
    const uint32_t next = rows_.step(top.row, trie.byte(node));
    if (next == PlaceRows::none || next == PlaceRows::without_row) {
      if (next == PlaceRows::without_row) step_without_row(mask, node, rows_.place(top.row));
      node = trie.end(node);
      continue;
    }
    if (trie.has_children(node) && rows_.stays_in(next, trie.groups_below(node))) {
      end_in_row(mask, trie.tokens_below(node), next);
      node = trie.end(node);
      continue;
    }
    end_in_row(mask, trie.tokens(node), next);
    if (trie.has_children(node)) {
      above.push_back(top);
      top = {trie.end(node), next};
    }
    ++node;
  }
}

void MaskComputation::end_in_row(MaskDraft& mask, std::span<const uint32_t> tokens, uint32_t row) {
  if (tokens.empty()) return;
  add(mask, tokens);
  if (rows_.first_end(row)) ends_.push_back(rows_[row].set);
}

// Steps over the byte of `node` to a place that has no row.
void MaskComputation::step_without_row(MaskDraft& mask, uint32_t node, const Place& from) {
  Place next = from;
  if (!stepping_.step(next, vocabulary_.trie().byte(node))) return;
  if (next.set != from.set && parser_.closure(next.set).uncertain) {
    leave_to_text(mask, node);
  } else {
    walk_suffixes(mask, node, next);
  }
}

void MaskComputation::add(MaskDraft& mask, std::span<const uint32_t> tokens) const {
  if (!mask.own && mask.add.size() + tokens.size() <= few_additions) {
    mask.add.insert(mask.add.end(), tokens.begin(), tokens.end());
    return;
  }
  Bitmask& base = mask.own_base(vocabulary_.words());
  for (uint32_t token : tokens) set_bit(base, token);
}

// After a lexeme with this text that matches the terminals at these positions of the lexer state.
Place MaskComputation::after(const Place& here, const std::vector<uint32_t>& positions, TextId text) {
  const MatchId matched = match_of(positions, here.lexer);
  const TrackId track = parser_.has_earlier(here.set) ? parser_.read(here.track, matched, text) : TrackId::unknown;
  const SetId set = parser_.advance(here.set, matched, text, track);
  return set == SetId::none ? Place{} : stepping_.entered(set, track);
}

MatchId MaskComputation::match_of(const std::vector<uint32_t>& positions, LexId lexer) {
  std::vector<TermId> terminals;
  for (uint32_t position : positions) terminals.push_back(lexer_.entries(lexer)[position].terminal);
  return lexer_.match(std::move(terminals));
}

// The tokens that leave a lexeme whose text matters: each with the lexeme's text at its exit.
void MaskComputation::add_text_dependent_exits(MaskDraft& mask, const Exits& exits, const Place& here) {
  for (uint32_t node : exits.nodes) {
    const std::string_view token = vocabulary_.token(vocabulary_.trie().tokens_below(node)[0]);
    TextId read = here.text;
    LexId at = here.lexer;
    for (char c : token) {
      at = lexer_.step(at, static_cast<uint8_t>(c));
      if (at == LexId::dead) break;
      read = stepping_.memory().extend(read, static_cast<uint8_t>(c));
    }
    const Place next = after(here, exits.matched, read);
    if (next.set != SetId::none) walk_exits(mask, {&node, 1}, next);
  }
}

// The tokens that leave a lexeme at `exits`, where `next` begins. Many such tokens are not walked for each set: the
// lexer state alone decides most of them, once for all sets.
void MaskComputation::add_exits(MaskDraft& mask, const Exits& exits, const Place& next) {
  std::vector<std::pair<const Exits*, Place>> waiting{{&exits, next}};
  while (!waiting.empty()) {
    const auto [leaving, place] = waiting.back();
    waiting.pop_back();
    const bool needs_text = grammar_.reads_groups || lexer_.remembers(place.lexer);
    const IndependentTokens* alone = needs_text ? nullptr : independent_.after(*leaving, place.lexer);
    if (!alone) {
      walk_exits(mask, leaving->nodes, place);
      continue;
    }
    if (alone->base) mask.more.push_back(alone->base);
    mask.add.insert(mask.add.end(), alone->add.begin(), alone->add.end());
    if (alone->base || !alone->add.empty()) ends_.push_back(place.set);
    for (const Exits& further : alone->exits) {
      const SetId set = parser_.advance(place.set, match_of(further.matched, place.lexer), TextId::empty, place.track);
      if (set != SetId::none) waiting.emplace_back(&further, stepping_.entered(set, place.track));
    }
  }
}

// The same by walking the trie below the exits, which are sorted by byte.
void MaskComputation::walk_exits(MaskDraft& mask, std::span<const uint32_t> nodes, const Place& next) {
  const Trie& trie = vocabulary_.trie();
  const bool uncertain = parser_.closure(next.set).uncertain;
  for (size_t i = 0; i < nodes.size();) {
    const uint8_t byte = trie.byte(nodes[i]);
    const LexId entered = lexer_.possible(next.lexer).contains(byte) ? lexer_.step(next.lexer, byte) : LexId::dead;
    const TextId text = lexer_.remembers(entered) ? stepping_.memory().extend(TextId::empty, byte) : TextId::empty;
    const bool has_row = grammar_.reads_bytes && uses("rows") && entered != LexId::dead;
    const uint32_t row = has_row ? rows_.of({entered, next.set, text, false, next.track}) : PlaceRows::without_row;
    for (; i < nodes.size() && trie.byte(nodes[i]) == byte; ++i) {
      if (entered == LexId::dead) continue;
      if (uncertain) {
        leave_to_text(mask, nodes[i]);
      } else if (row != PlaceRows::without_row) {
        end_in_row(mask, trie.tokens(nodes[i]), row);
        if (trie.has_children(nodes[i])) walk_rows(mask, nodes[i], row);
      } else {
        walk_suffixes(mask, nodes[i], {entered, next.set, text, false, next.track});
      }
    }
  }
}

// Tokens from `node` on, after `place` has taken the node's byte.
void MaskComputation::walk_suffixes(MaskDraft& mask, uint32_t node, Place place) {
  const Trie& trie = vocabulary_.trie();
  suffixes_.assign(1, {node, place});
  SetId last = SetId::none;
  while (!suffixes_.empty()) {
    std::tie(node, place) = suffixes_.back();
    suffixes_.pop_back();
    bool unknown = false;  // the lexeme may end here, unless its text is among the unknown ones
    if (lexer_.context_dependent(place.lexer)) {
      if (!surely_goes_on(place)) {
        leave_to_text(mask, node);
        continue;
      }
      for (TermId t : lexer_.terminals_of(lexer_.matched(place.lexer))) unknown |= lexer_.is_context_dependent(t);
    }
    const std::span<const uint32_t> tokens = trie.tokens(node);
    mask.add.insert(mask.add.end(), tokens.begin(), tokens.end());
    if (place.set != last && !tokens.empty()) ends_.push_back(last = place.set);
    if (!trie.has_children(node)) continue;
    ByteSet possible = ByteSet::all();
    if (!unknown) {
      possible = lexer_.possible(place.lexer);
      const Place after = stepping_.finished(place);
      if (after.set != SetId::none) possible = possible | lexer_.possible(after.lexer);
    }
    trie.each_child(node, [&](uint32_t child) {
      if (!possible.contains(trie.byte(child))) return;
      Place next = place;
      if (unknown && lexer_.step(place.lexer, trie.byte(child)) == LexId::dead) {
        leave_to_text(mask, child);
      } else if (stepping_.step(next, trie.byte(child))) {
        if (next.set != place.set && parser_.closure(next.set).uncertain) {
          leave_to_text(mask, child);
        } else {
          suffixes_.emplace_back(child, next);
        }
      }
    });
  }
}

void MaskComputation::leave_to_text(MaskDraft& mask, uint32_t node) const {
  std::span<const uint32_t> tokens = vocabulary_.trie().tokens_below(node);
  mask.dependent.insert(mask.dependent.end(), tokens.begin(), tokens.end());
}

// Whether a context-dependent lexeme can be completed whatever the unknown text is: if the rest is certainly infinite,
// one text less makes no difference. This does not hold for numbers: one number has infinitely many texts.
bool MaskComputation::surely_goes_on(const Place& place) const {
  bool number = false;
  if (grammar_.has_values) number = begins_number(stepping_.memory().text(place.text));
  std::span<const Lexer::Entry> entries = lexer_.entries(place.lexer);
  return std::any_of(entries.begin(), entries.end(), [&](const Lexer::Entry& entry) {
    return !lexer_.is_context_dependent(entry.terminal) || (!number && lexer_.expressions().infinite(entry.expression));
  });
}

// The state is a whole lexeme: adds every token that may begin the next lexeme, unless this lexeme takes its first
// byte.
void MaskComputation::add_following(MaskDraft& mask, const IndependentTokens& alone, const Place& next) {
  const LexId start = next.lexer;
  if (start == LexId::dead) return;
  MaskDraft before = std::move(mask);
  mask = {};
  compute(mask, next);
  ends_.push_back(next.set);
  if (lexer_.context_dependent(start) || parser_.closure(next.set).uncertain) {  // judged one by one, with the real text
    std::vector<uint32_t> all = std::move(mask.dependent);
    for (uint32_t token = 0; token < vocabulary_.size(); ++token) {
      if (mask.base && has_bit(*mask.base, token)) all.push_back(token);
    }
    all.insert(all.end(), mask.add.begin(), mask.add.end());
    mask = {};
    mask.dependent = std::move(all);
  }
  bool overlap = false;
  alone.taken_at_root.each([&](uint8_t byte) { overlap |= lexer_.step(start, byte) != LexId::dead; });
  if (overlap) {
    const Bitmask& taken = tokens_beginning_(alone.taken_at_root);
    auto is_taken = [&](uint32_t token) { return has_bit(taken, token); };
    std::erase_if(mask.add, is_taken);
    std::erase_if(mask.dependent, is_taken);
    if (mask.base) {
      Bitmask& base = mask.own_base(vocabulary_.words());
      for (size_t i = 0; i < base.size(); ++i) base[i] &= ~taken[i];
    }
  }
  mask.eos = before.eos;
  mask.add.insert(mask.add.end(), before.add.begin(), before.add.end());
  mask.dependent.insert(mask.dependent.end(), before.dependent.begin(), before.dependent.end());
  mask.more.insert(mask.more.end(), before.more.begin(), before.more.end());
  if (!mask.base) {
    mask.base = std::move(before.base);
    mask.remove = std::move(before.remove);
  } else if (before.base) {
    if (!before.remove.empty()) before.own_base(vocabulary_.words());
    mask.more.push_back(std::move(before.base));
  }
}

// Turns many single tokens, and the tokens of several bitmasks, into one bitmask.
void MaskComputation::settle(MaskDraft& mask) const {
  if (mask.add.size() <= max_single_tokens && mask.more.empty()) return;
  Bitmask& base = mask.own_base(vocabulary_.words());
  for (const std::shared_ptr<const Bitmask>& other : mask.more) {
    for (size_t i = 0; i < base.size(); ++i) base[i] |= (*other)[i];
  }
  for (uint32_t token : mask.add) set_bit(base, token);
  mask.add.clear();
  mask.more.clear();
}

}  // namespace constrain
