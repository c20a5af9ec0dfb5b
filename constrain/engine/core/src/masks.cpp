// Masks: for a lexer state and a set, the union of the tokens that stay inside the lexeme (lexeme_parts.cpp; they
// depend on the lexer state alone) and of those that end it and go on.
#include <algorithm>
#include <tuple>
#include <utility>

#include "automaton.h"
#include "errors.h"

namespace constrain {

namespace {

Hash text_mask_key(const Place& place) {
  return mix(mix(seeded(0x6D61736B), (uint64_t{index(place.lexer)} << 32) | index(place.set)), (uint64_t{index(place.text)} << 32) | index(place.track));
}

Hash limited_mask_key(const Place& place) { return mix(text_mask_key(place), place.fresh ? 1u : 0u); }

uint64_t mask_key(const Place& place) { return (uint64_t{index(place.lexer)} << 32) | index(place.set); }

// More single tokens than this are worth a bitmask of their own.
constexpr size_t max_additions = 4096;

}  // namespace

Bitmask& MaskDraft::own_base(size_t words) {
  if (!own) {
    own = base ? std::make_shared<Bitmask>(*base) : std::make_shared<Bitmask>(words);
    base = own;
  }
  for (uint32_t token : remove) clear_bit(*own, token);
  remove.clear();
  return *own;
}

size_t MaskTokens::memory_bytes() const {
  return sizeof(*this) + add.own_bytes() + remove.own_bytes() + by_text.own_bytes() + (base && base.use_count() == 1 ? 4 * base->size() : 0);
}

void Automaton::add_tokens(std::vector<uint32_t>& to, uint32_t node) const {
  std::span<const uint32_t> tokens = vocabulary_.trie().tokens(node);
  to.insert(to.end(), tokens.begin(), tokens.end());
}

const Mask* Automaton::known_mask(const Place& place) const {
  const uint32_t* found = parser_.has_rivals(place.set) ? text_mask_ids_.find(text_mask_key(place)) : mask_ids_.find(mask_key(place));
  return found ? &masks_[*found] : nullptr;
}

const Mask& Automaton::mask(const Place& place) {
  const bool by_text = parser_.closure(place.set).has_rivals;
  if (const uint32_t* found = by_text ? text_mask_ids_.find(text_mask_key(place)) : mask_ids_.find(mask_key(place))) return masks_[*found];
  Mask mask;
  allow_mask();
  if (!find_alike(mask, place)) make(mask, place);
  allow_call();
  mask_bytes_ += mask.memory_bytes();
  if (by_text) {
    text_mask_ids_.insert(text_mask_key(place), static_cast<uint32_t>(masks_.size()));
  } else {
    mask_ids_.insert(mask_key(place), static_cast<uint32_t>(masks_.size()));
  }
  masks_.push_back(std::move(mask));
  return masks_.back();
}

void Automaton::make(Mask& mask, const Place& place) {
  MaskDraft draft;
  ahead_ = {};
  ahead_.noting = !grammar_.reads_groups;
  ahead_.sets.push_back(place.set);
  try {
    compute(draft, place);
  } catch (const LimitError& error) {
    draft = {};
    ahead_ = {};
    draft.limits.add(error.limit);
    vocabulary_.trie().each_child(Trie::root, [&](uint32_t child) { add_tokens(draft.by_text, child); });
  }
  const LookAhead ahead = std::exchange(ahead_, {});
  mask.tokens = kept(std::move(draft));
  mask.sets = distinct(ahead.ends);
  if (mask.tokens->limits.empty()) keep_outline(mask, place, ahead);
}

// Equal ones are kept once.
std::shared_ptr<const MaskTokens> Automaton::kept(MaskDraft draft) {
  auto bytes_of = [](const auto& values) { return std::as_bytes(std::span(values)); };
  Hash key = mix(seeded(0x746F6B656E73), draft.eos ? 1u : 0u);
  draft.limits.each([&](Limit limit) { key = mix(key, static_cast<uint64_t>(limit)); });
  for (const std::vector<uint32_t>* each : {&draft.add, &draft.remove, &draft.by_text}) key = mix(key, checksum(bytes_of(*each)));
  if (draft.own) {
    key = mix(key, checksum(bytes_of(*draft.own)));
    draft.own = nullptr;
  } else {
    key = mix(key, reinterpret_cast<uintptr_t>(draft.base.get()));
  }
  auto equal = [&draft](const MaskTokens& other) {
    return std::ranges::equal(draft.add, other.add) && std::ranges::equal(draft.remove, other.remove) && std::ranges::equal(draft.by_text, other.by_text) &&
           draft.eos == other.eos && draft.limits == other.limits && !draft.base == !other.base &&
           (!draft.base || draft.base == other.base || *draft.base == *other.base);
  };
  if (const uint32_t* found = token_ids_.find(key); found && equal(*tokens_[*found])) return tokens_[*found];
  auto tokens = std::make_shared<const MaskTokens>(MaskTokens{std::move(draft.base), Array(std::move(draft.add)), Array(std::move(draft.remove)),
                                                              Array(std::move(draft.by_text)), draft.eos, draft.limits});
  mask_bytes_ += tokens->memory_bytes();
  token_ids_.insert(key, static_cast<uint32_t>(tokens_.size()));
  tokens_.push_back(tokens);
  return tokens;
}

// The mask is that of all texts of the lexeme under way, unless there are rivals.
void Automaton::compute(MaskDraft& mask, const Place& here) {
  const LexId lexer = here.lexer;
  if (lexer == LexId::dead) return;  // nothing can be read here: the text ends
  std::shared_ptr<const LexemePart> part = this->part(lexer);
  mask.base = part->base;
  mask.add = part->add;
  mask.remove = part->remove;
  const bool by_text = parser_.closure(here.set).has_rivals;
  auto after = [&](const std::vector<uint32_t>& positions, TextId text) {
    const MatchId matched = match_of(positions, lexer);
    TrackId track = by_text ? parser_.read(here.track, matched, text) : TrackId::unknown;
    SetId set = advance(here.set, matched, text, track);
    return set == SetId::none ? Place{} : entered(set, track);
  };
  const Trie& trie = vocabulary_.trie();
  const TextId text = !lexer_.remembers(lexer) ? TextId::empty : by_text ? here.text : TextId::unknown;
  for (const Exits& group : part->exits) {
    if (by_text && lexer_.remembers(lexer)) {
      for (uint32_t node : group.nodes) {
        std::string_view token = vocabulary_.token(trie.tokens_below(node)[0]);
        TextId read = text;
        LexId at = lexer;
        for (char c : token) {
          at = lexer_.step(at, static_cast<uint8_t>(c));
          if (at == LexId::dead) break;
          read = memory_.extend(read, static_cast<uint8_t>(c));
        }
        const Place next = after(group.matched, read);
        if (next.set != SetId::none) walk_exits(mask, {&node, 1}, next);
      }
      continue;
    }
    const Place next = after(group.matched, text);
    if (next.set != SetId::none) add_exits(mask, group, next);
  }
  if (!part->matched_at_root.empty()) {
    const Place next = after(part->matched_at_root, text);
    if (next.set != SetId::none) {
      mask.eos = parser_.closure(next.set).accepting;
      add_following(mask, *part, next);
    }
  }
  settle(mask);
}

MatchId Automaton::match_of(const std::vector<uint32_t>& positions, LexId lexer) {
  std::vector<TermId> terminals;
  for (uint32_t position : positions) terminals.push_back(lexer_.entries(lexer)[position].terminal);
  return lexer_.match(std::move(terminals));
}

// The tokens that leave a lexeme at `exits`, where `next` begins. Those that go on in many ways are not walked for each set:
// what the lexer alone says about them is found once.
void Automaton::add_exits(MaskDraft& mask, const Exits& exits, const Place& next) {
  std::vector<std::pair<const Exits*, Place>> waiting{{&exits, next}};
  while (!waiting.empty()) {
    const auto [leaving, place] = waiting.back();
    waiting.pop_back();
    const bool by_text = grammar_.reads_groups || lexer_.remembers(place.lexer);
    const LexemePart* part = by_text ? nullptr : part_after(*leaving, place.lexer);
    if (!part) {
      walk_exits(mask, leaving->nodes, place);
      continue;
    }
    if (part->base) mask.more.push_back(part->base);
    mask.add.insert(mask.add.end(), part->add.begin(), part->add.end());
    if (part->base || !part->add.empty()) ahead_.ends.push_back(place.set);
    for (const Exits& further : part->exits) {
      const SetId set = advance(place.set, match_of(further.matched, place.lexer), TextId::empty, place.track);
      if (set != SetId::none) waiting.emplace_back(&further, entered(set, place.track));
    }
  }
}

// The same, by walking what follows the nodes, which are sorted by byte.
void Automaton::walk_exits(MaskDraft& mask, std::span<const uint32_t> nodes, const Place& next) {
  const Trie& trie = vocabulary_.trie();
  const bool uncertain = parser_.closure(next.set).uncertain;
  for (size_t i = 0; i < nodes.size();) {
    const uint8_t byte = trie.byte(nodes[i]);
    const LexId entered = lexer_.step(next.lexer, byte);
    const TextId text = lexer_.remembers(entered) ? memory_.extend(TextId::empty, byte) : TextId::empty;
    for (; i < nodes.size() && trie.byte(nodes[i]) == byte; ++i) {
      if (entered == LexId::dead) continue;
      if (uncertain) {
        leave_to_text(mask, nodes[i]);
      } else {
        walk_suffixes(mask, nodes[i], {entered, next.set, text, false, next.track});
      }
    }
  }
}

// Tokens from `node` on, where `place` has just taken the node's byte.
void Automaton::walk_suffixes(MaskDraft& mask, uint32_t node, Place place) {
  const Trie& trie = vocabulary_.trie();
  std::vector<std::pair<uint32_t, Place>>& stack = suffixes_;
  stack.assign(1, {node, place});
  SetId last = SetId::none;
  while (!stack.empty()) {
    std::tie(node, place) = stack.back();
    stack.pop_back();
    bool unknown = false;  // the lexeme may end here, if its text is not among those that are not known
    if (lexer_.tentative(place.lexer)) {
      if (!surely_goes_on(place)) {
        leave_to_text(mask, node);
        continue;
      }
      for (TermId t : lexer_.terminals_of(lexer_.matched(place.lexer))) unknown |= lexer_.is_tentative(t);
    }
    add_tokens(mask.add, node);
    if (place.set != last && !trie.tokens(node).empty()) ahead_.ends.push_back(last = place.set);
    trie.each_child(node, [&](uint32_t child) {
      Place next = place;
      if (unknown && lexer_.step(place.lexer, trie.byte(child)) == LexId::dead) {
        leave_to_text(mask, child);
      } else if (step(next, trie.byte(child))) {
        if (next.set != place.set && parser_.closure(next.set).uncertain) {
          leave_to_text(mask, child);
        } else {
          stack.emplace_back(child, next);
        }
      }
    });
  }
}

void Automaton::leave_to_text(MaskDraft& mask, uint32_t node) const {
  std::span<const uint32_t> tokens = vocabulary_.trie().tokens_below(node);
  mask.by_text.insert(mask.by_text.end(), tokens.begin(), tokens.end());
}

// Whether a tentative lexeme can be completed whatever the unknown text is: if what is left is certainly infinite, one
// text less makes no difference. One number less may: it has endlessly many texts.
bool Automaton::surely_goes_on(const Place& place) const {
  bool number = false;
  if (grammar_.has_values) {
    const char first = memory_.text(place.text)[0];
    number = first == '-' || (first >= '0' && first <= '9');
  }
  std::span<const Lexer::Entry> entries = lexer_.entries(place.lexer);
  return std::any_of(entries.begin(), entries.end(), [&](const Lexer::Entry& entry) {
    return !lexer_.is_tentative(entry.terminal) || (!number && lexer_.expressions().infinite(entry.expression));
  });
}

// The state is a whole lexeme already: every token that may begin the next one, unless this lexeme would take its byte.
void Automaton::add_following(MaskDraft& mask, const LexemePart& part, const Place& next) {
  const LexId start = next.lexer;
  if (start == LexId::dead) return;
  MaskDraft before = std::move(mask);
  mask = {};
  compute(mask, next);
  ahead_.ends.push_back(next.set);
  if (lexer_.tentative(start) || parser_.closure(next.set).uncertain) {  // judged one by one, against the real text
    std::vector<uint32_t> all = std::move(mask.by_text);
    for (uint32_t token = 0; token < vocabulary_.size(); ++token) {
      if (mask.base && has_bit(*mask.base, token)) all.push_back(token);
    }
    all.insert(all.end(), mask.add.begin(), mask.add.end());
    mask = {};
    mask.by_text = std::move(all);
  }
  bool overlap = false;
  part.taken_at_root.each([&](uint8_t byte) { overlap |= lexer_.step(start, byte) != LexId::dead; });
  if (overlap) {
    const Bitmask& taken = tokens_beginning(part.taken_at_root);
    auto is_taken = [&](uint32_t token) { return has_bit(taken, token); };
    std::erase_if(mask.add, is_taken);
    std::erase_if(mask.by_text, is_taken);
    if (mask.base) {
      Bitmask& base = mask.own_base(vocabulary_.words());
      for (size_t i = 0; i < base.size(); ++i) base[i] &= ~taken[i];
    }
  }
  mask.eos = before.eos;
  mask.add.insert(mask.add.end(), before.add.begin(), before.add.end());
  mask.by_text.insert(mask.by_text.end(), before.by_text.begin(), before.by_text.end());
  mask.more.insert(mask.more.end(), before.more.begin(), before.more.end());
  if (!mask.base) {
    mask.base = std::move(before.base);
    mask.remove = std::move(before.remove);
  } else if (before.base) {
    if (!before.remove.empty()) before.own_base(vocabulary_.words());
    mask.more.push_back(std::move(before.base));
  }
}

// All tokens that begin with one of the bytes.
const Bitmask& Automaton::tokens_beginning(const ByteSet& bytes) {
  for (const auto& [known, tokens] : tokens_beginning_) {
    if (known == bytes) return tokens;
  }
  Bitmask tokens(vocabulary_.words());
  vocabulary_.trie().each_child(Trie::root, [&](uint32_t child) {
    if (!bytes.contains(vocabulary_.trie().byte(child))) return;
    for (uint32_t token : vocabulary_.trie().tokens_below(child)) set_bit(tokens, token);
  });
  mask_bytes_ += 4 * tokens.size();
  return tokens_beginning_.emplace_back(bytes, std::move(tokens)).second;
}

// Keeps many single tokens, and tokens of more than one part, as a bitmask of their own.
void Automaton::settle(MaskDraft& mask) const {
  if (mask.add.size() <= max_additions && mask.more.empty()) return;
  Bitmask& base = mask.own_base(vocabulary_.words());
  for (const std::shared_ptr<const Bitmask>& other : mask.more) {
    for (size_t i = 0; i < base.size(); ++i) base[i] |= (*other)[i];
  }
  for (uint32_t token : mask.add) set_bit(base, token);
  mask.add.clear();
  mask.more.clear();
}

LimitSet Automaton::fill(const Mask& known, const Place& place, std::span<uint32_t> words, const Wall* wall) {
  const MaskTokens& mask = *known.tokens;
  const LimitedMask* limited = mask.limits.empty() && mask.by_text.empty() ? nullptr : limited_mask(place);
  limits_met_ = limited ? limited->limits : mask.limits;
  if (limited) {
    std::copy(limited->words.begin(), limited->words.end(), words.begin());
    if (wall) keep_fitting(mask.by_text, place, *wall, words);
    return limits_met_;
  }
  if (mask.base) {
    std::copy(mask.base->begin(), mask.base->end(), words.begin());
    for (uint32_t token : mask.remove) clear_bit(words, token);
  } else {
    std::fill(words.begin(), words.end(), 0u);
  }
  for (uint32_t token : mask.add) set_bit(words, token);
  const bool is_limited = !mask.limits.empty();
  if (place.fresh ? parser_.closure(place.set).accepting : is_limited ? surely_accepting(place) : mask.eos) {
    for (uint32_t token : vocabulary_.eos()) set_bit(words, token);
  } else if (is_limited) {
    fill_way_to_finish(place, words);
  }
  if (!mask.by_text.empty()) allow_call();
  for (uint32_t token : mask.by_text) {
    if (allows(place, token, wall)) set_bit(words, token);
  }
  if (limits_met_.empty()) return {};
  if (wall) {  // what is kept is the same for all budgets
    const LimitSet met = limits_met_;
    fill(known, place, words);
    keep_fitting(mask.by_text, place, *wall, words);
    limits_met_.add(met);
  } else {
    keep_limited_mask(place, limits_met_, words);
  }
  return limits_met_;
}

void Automaton::keep_fitting(std::span<const uint32_t> tokens, const Place& place, const Wall& wall, std::span<uint32_t> words) {
  allow_call();
  for (uint32_t token : tokens) {
    if (has_bit(words, token) && !allows(place, token, &wall)) clear_bit(words, token);
  }
}

// It comes first, so that the other tokens leave it enough to be verified.
void Automaton::fill_way_to_finish(const Place& place, std::span<uint32_t> words) {
  std::string text;
  allow_way();
  try {
    text = shortest_completion(place);
  } catch (const LimitError&) {  // no way is known; the tokens that follow are verified one by one all the same
  }
  allow_way();
  if (!text.empty()) {
    vocabulary_.trie().each_child(Trie::root, [&](uint32_t child) {
      if (vocabulary_.trie().byte(child) != static_cast<uint8_t>(text[0])) return;
      for (uint32_t token : vocabulary_.trie().tokens(child)) {
        if (allows(place, token, nullptr)) set_bit(words, token);
      }
    });
  }
}

// What was verified at a place is verified once: else it would be more the second time, when more is known.
const Automaton::LimitedMask* Automaton::limited_mask(const Place& place) const {
  if (limited_masks_.empty()) return nullptr;
  const uint32_t* found = limited_mask_ids_.find(limited_mask_key(place));
  return found ? &limited_masks_[*found] : nullptr;
}

void Automaton::keep_limited_mask(const Place& place, LimitSet limits, std::span<const uint32_t> words) {
  limited_mask_ids_.insert(limited_mask_key(place), static_cast<uint32_t>(limited_masks_.size()));
  limited_masks_.push_back({Bitmask(words.begin(), words.end()), limits});
  mask_bytes_ += sizeof(LimitedMask) + 4 * words.size();
}

bool Automaton::has_token(const Place& place, uint32_t token) {
  Bitmask words(vocabulary_.words());
  fill(mask(place), place, words);
  return has_bit(words, token);
}

}  // namespace constrain
