// Finds the tokens of a lexer state in one of five ways, cheapest first:
//   - a repetition of one unit, X{m,n}R ("inside a JSON string"): one walk of the trie gives the tokens made of X for all
//     m, n and R; only the bytes after them are walked;
//   - a state with counts that hardly any token uses up: the tokens of the state without these counts, which many states
//     share; only the tokens that may use them up are walked;
//   - a state that differs from a repetition, or from a plain expression, along a few literals only ("any key but these"):
//     both are walked in parallel until they agree;
//   - a state with an entry X*R: all tokens of X stay inside; only the ways out of X* are walked;
//   - any other state: the whole trie is walked, but for tokens made of bytes that lead from the next state to itself:
//     the vocabulary keeps these by their bytes, and the nodes where others leave them. Within a set of literals, the
//     trie is walked side by side with the sorted texts.
#include "lexing/context_independent_tokens.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/ways.h"

namespace constrain {

namespace {

constexpr size_t max_additions = Repetitions::few_tokens;  // more single tokens than this become a bitmask
constexpr size_t max_removals = 512;
constexpr size_t max_inside_states = 1000;  // checked; beyond, a state may leave its units anywhere
constexpr size_t max_beyond = 2048;         // long tokens that may use up a count; more take as long as a walk
constexpr size_t least_loop = Repetitions::few_tokens;  // fewer tokens are walked as soon as taken over
constexpr size_t few_suffixes = 16;         // that leave a lexeme in one way; more get a table of their own
constexpr uint32_t nothing_kept = ~uint32_t{0};

using Kind = ExpressionStore::Kind;

Hash hash_of(std::span<const uint32_t> numbers) {
  Hash hash = seeded(numbers.size());
  for (; numbers.size() > 1; numbers = numbers.subspan(2)) hash = mix(hash, paired(numbers[0], numbers[1]));
  return numbers.empty() ? hash : mix(hash, numbers[0]);
}

struct ByByte {  // the order of exits
  const Trie& trie;
  bool operator()(uint32_t a, uint32_t b) const { return trie.byte(a) == trie.byte(b) ? a < b : trie.byte(a) < trie.byte(b); }
};

void add_tokens(std::vector<uint32_t>& to, const Trie& trie, uint32_t node) {
  std::span<const uint32_t> tokens = trie.tokens(node);
  to.insert(to.end(), tokens.begin(), tokens.end());
}

}  // namespace

// The result of a walk in progress: tokens as a list while they are few, bits after that.
struct ContextIndependentTokens::Walk {
  IndependentTokens& tokens;
  uint32_t words;
  std::shared_ptr<Bitmask> bits{};
  std::vector<std::pair<MatchId, std::vector<uint32_t>>> exits{};

  void add(std::span<const uint32_t> more) {
    if (!bits) {
      tokens.add.insert(tokens.add.end(), more.begin(), more.end());
      if (tokens.add.size() > max_additions) to_bits();
    } else {
      for (uint32_t token : more) set_bit(*bits, token);
    }
  }
  void to_bits() {
    bits = tokens.base ? std::make_shared<Bitmask>(*tokens.base) : std::make_shared<Bitmask>(words);
    for (uint32_t token : tokens.remove) clear_bit(*bits, token);
    for (uint32_t token : tokens.add) set_bit(*bits, token);
    tokens.add.clear();
    tokens.remove.clear();
  }
  std::vector<uint32_t>& exits_of(MatchId matched) {
    for (auto& [known, nodes] : exits) {
      if (known == matched) return nodes;
    }
    return exits.emplace_back(matched, std::vector<uint32_t>{}).second;
  }
};

// Keeping ----------------------------------------------------------------------------------------------------------

std::shared_ptr<const IndependentTokens> ContextIndependentTokens::of(LexId lexer) {
  if (const uint32_t* found = ids_.find(index(lexer))) return tokens_[*found];
  const Hash key = this->key(lexer);
  std::shared_ptr<const IndependentTokens> tokens = vocabulary_.find_independent(key);
  if (!tokens) {
    LexId like = lexer;  // another state whose tokens these are
    tokens = make(lexer, like);
    if (like == lexer) {
      keep(key, is_shareable(lexer), tokens);
    } else if (is_shareable(lexer)) {
      vocabulary_.keep_same_independent(key, this->key(like));
    }
  }
  ids_.insert(index(lexer), static_cast<uint32_t>(tokens_.size()));
  tokens_.push_back(tokens);
  return tokens;
}

const IndependentTokens* ContextIndependentTokens::after(const Exits& exits, LexId lexer) {
  const Hash key = mix(mix(seeded(0x6166746572), reinterpret_cast<uintptr_t>(&exits)), index(lexer));
  if (const uint32_t* found = ids_after_.find(key)) return *found == nothing_kept ? nullptr : tokens_[*found].get();
  const bool shareable = is_shareable(lexer);
  Hash shared = mix(seeded(0x6166746572), exits.key);
  for (const Lexer::Entry& entry : lexer_.entries(lexer)) shared = mix(shared, this->key(entry));
  std::shared_ptr<const IndependentTokens> tokens = shareable ? vocabulary_.find_independent(shared) : nullptr;
  if (!tokens && uses("tokens after exits") && has_many_after(exits, lexer)) {
    tokens = make_after(exits, lexer);
    keep(shared, shareable, tokens);
  }
  ids_after_.insert(key, tokens ? static_cast<uint32_t>(tokens_.size()) : nothing_kept);
  if (tokens) tokens_.push_back(tokens);
  return tokens.get();
}

void ContextIndependentTokens::keep(const Hash& key, bool shareable, const std::shared_ptr<const IndependentTokens>& tokens) {
  if (shareable) {
    vocabulary_.keep_independent(key, tokens);
  } else {
    bytes_ += tokens->memory_bytes();
  }
}

// States with equal keys have equal tokens. Counts beyond the reach of any token are treated as equal.
Hash ContextIndependentTokens::key(LexId lexer) {
  const std::vector<Lexer::Entry> entries = lexer_.copy_of_entries(lexer);
  if (const std::optional<Repetition> found = repetition(entries)) {
    const Hash key = mix(seeded(0x72756E), lexer_.expressions().hash(found->unit));
    const uint32_t minimum = std::min(found->minimum, found->tokens->most_units + 1);
    const uint32_t maximum = found->maximum >= found->tokens->most_units ? unbounded : found->maximum;
    return mix(mix(key, lexer_.expressions().hash(found->rest)), paired(minimum, maximum));
  }
  Hash key = seeded(0x73746174);
  for (const Lexer::Entry& entry : entries) key = mix(key, this->key(entry));
  return key;
}

Hash ContextIndependentTokens::key(const Lexer::Entry& entry) const {
  const Hash& hash = lexer_.expressions().hash(entry.expression);
  return lexer_.is_lazy(entry.terminal) ? mix(hash, 1) : hash;
}

// The repetition that a state is, if it is one.
std::optional<Repetition> ContextIndependentTokens::repetition(const std::vector<Lexer::Entry>& entries) {
  if (entries.size() != 1 || lexer_.is_lazy(entries[0].terminal) || !uses("repetition")) return std::nullopt;
  return repetitions_.find(entries[0].expression);
}

// Whether a state's tokens mean the same in other grammars: terminals made from memory belong to this grammar only. Parts
// of given texts hardly ever come in another grammar, and there are many of them.
bool ContextIndependentTokens::is_shareable(LexId lexer) const {
  return std::ranges::all_of(lexer_.entries(lexer), [&](const Lexer::Entry& entry) { 
    return index(entry.terminal) < grammar_.terminals.size() && !lexer_.expressions()[entry.expression].has_substring;
  });
}

// Making -----------------------------------------------------------------------------------------------------------

std::shared_ptr<const IndependentTokens> ContextIndependentTokens::make(LexId lexer, LexId& like) {
  if (std::shared_ptr<const IndependentTokens> found = without_far_counts(lexer, like)) return found;
  auto tokens = std::make_shared<IndependentTokens>();
  const std::vector<Lexer::Entry> entries = lexer_.copy_of_entries(lexer);
  for (uint32_t i = 0; i < entries.size(); ++i) {
    if (lexer_.expressions().nullable(entries[i].expression)) tokens->matched_at_root.push_back(i);
  }
  if (lexer_.matched(lexer) != MatchId::none) {
    ByteSet possible;
    for (const Lexer::Entry& entry : entries) possible = possible | lexer_.expressions().first(entry.expression);
    possible.each([&](uint8_t byte) {
      if (lexer_.step(lexer, byte) != LexId::dead) tokens->taken_at_root.add(byte);
    });
  }
  if (const std::optional<Repetition> found = repetition(entries)) {
    by_repetition(*tokens, lexer, *found);
  } else if (!by_difference(*tokens, lexer) && !by_paths(*tokens, lexer)) {
    by_walk(*tokens, lexer);
  }
  rows_.forget();
  return tokens;
}

void ContextIndependentTokens::by_walk(IndependentTokens& tokens, LexId lexer) {
  Walk walk{tokens, vocabulary_.words()};
  const Trie& trie = vocabulary_.trie();
  const uint32_t row = rows_.of(lexer);
  if (rows_[row].of_texts) {
    follow_texts(walk, Trie::root, row);
    return finish(tokens, walk, lexer);
  }
  struct After {
    uint32_t row;
    size_t tokens = 0;
    std::vector<uint32_t> children{};
  };
  std::vector<After> all;  // the children of the root, by the row they lead to
  trie.each_child(Trie::root, [&](uint32_t child) {
    const uint32_t next = rows_.step(row, trie.byte(child));
    if (next == TransitionRows::none) return;
    auto found = std::ranges::find(all, next, &After::row);
    if (found == all.end()) found = all.insert(found, After{next});
    found->tokens += trie.tokens_below(child).size();
    found->children.push_back(child);
  });
  if (const auto most = std::ranges::max_element(all, {}, &After::tokens); most != all.end() && most->tokens >= least_loop && !rows_[most->row].of_texts) {
    walk_loop(walk, most->children, most->row);
    all.erase(most);
  }
  for (const After& each : all) {
    for (uint32_t child : each.children) follow(walk, child, each.row);
  }
  finish(tokens, walk, lexer);
}

// Walks on from children of the root, whose bytes have led to `row`, before any other token is added. If most bytes lead
// back to the row, the vocabulary keeps the tokens made of these, and the nodes where others leave them.
void ContextIndependentTokens::walk_loop(Walk& walk, std::span<const uint32_t> children, uint32_t row) {
  const Trie& trie = vocabulary_.trie();
  ByteSet loop;
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (rows_.step(row, static_cast<uint8_t>(byte)) == row) loop.add(static_cast<uint8_t>(byte));
  }
  std::vector<uint32_t> within, beside;  // the children from which tokens may go on in the loop, and the others
  size_t tokens = 0;
  for (uint32_t child : children) {
    (loop.contains(trie.byte(child)) ? within : beside).push_back(child);
    tokens += loop.contains(trie.byte(child)) ? trie.tokens_below(child).size() : 0;
  }
  if (tokens < least_loop) {
    for (uint32_t child : children) follow(walk, child, row);
    return;
  }
  const std::shared_ptr<const ByteTokens> made = vocabulary_.tokens_of(loop);
  walk.tokens.base = made->all;
  trie.each_child(Trie::root, [&](uint32_t child) {
    if (!loop.contains(trie.byte(child)) || std::ranges::binary_search(within, child)) return;
    if (!walk.bits) walk.bits = std::make_shared<Bitmask>(*made->all);
    for (uint32_t token : trie.tokens_below(child)) clear_bit(*walk.bits, token);
  });
  for (uint32_t child : beside) follow(walk, child, row);
  for (uint32_t child : within) {
    each_bit(made->leaving, child + 1, trie.end(child), [&](uint32_t node) {
      const uint32_t next = rows_.step(row, trie.byte(node));
      if (next != TransitionRows::none) {
        follow(walk, node, next);
      } else if (rows_.matches(row)) {
        walk.exits_of(rows_[row].matched).push_back(node);
      }
    });
  }
}

// Whether more than `few_suffixes` tokens follow the exits.
bool ContextIndependentTokens::has_many_after(const Exits& exits, LexId lexer) {
  const Trie& trie = vocabulary_.trie();
  size_t tokens = 0;
  for (size_t i = 0; i < exits.nodes.size() && tokens <= few_suffixes;) {
    const uint8_t byte = trie.byte(exits.nodes[i]);
    const bool taken = lexer_.possible(lexer).contains(byte) && lexer_.step(lexer, byte) != LexId::dead;
    for (; i < exits.nodes.size() && trie.byte(exits.nodes[i]) == byte; ++i) tokens += taken ? trie.tokens_below(exits.nodes[i]).size() : 0;
  }
  return tokens > few_suffixes;
}

std::shared_ptr<const IndependentTokens> ContextIndependentTokens::make_after(const Exits& exits, LexId lexer) {
  auto tokens = std::make_shared<IndependentTokens>();
  Walk walk{*tokens, vocabulary_.words()};
  const uint32_t row = rows_.of(lexer);
  for (uint32_t node : exits.nodes) {
    const uint32_t next = rows_.step(row, vocabulary_.trie().byte(node));
    if (next != TransitionRows::none) follow(walk, node, next);
  }
  finish(*tokens, walk, lexer);
  rows_.forget();
  return tokens;
}

// Walks on from `node`, whose byte has just led to `row`: the loop of the kernel that sees most trie nodes.
void ContextIndependentTokens::follow(Walk& walk, uint32_t node, uint32_t row) {
  const Trie& trie = vocabulary_.trie();
  walk.add(trie.tokens(node));
  if (!trie.has_children(node)) return;
  if (rows_[row].of_texts) return follow_texts(walk, node, row);
  if (rows_.stays_in(row, trie.groups_below(node))) {
    walk.add(trie.tokens_below(node).subspan(trie.tokens(node).size()));
    return;
  }
  const uint8_t* const bytes = trie.bytes();
  const uint32_t* const ends = trie.ends();
  const uint32_t* const first_tokens = trie.first_tokens();
  const uint32_t* const tokens = trie.all_tokens();
  struct Frame {
    uint32_t end, row;
    const TransitionRows::Row* at;
  };
  std::array<Frame, 64> shallow;  // deeper paths use the heap
  std::vector<Frame> deep;
  size_t depth = 0;
  Frame top{ends[node], row, &rows_[row]};
  const uint32_t end = ends[node];
  for (++node; node < end;) {
    while (top.end <= node) {
      --depth;
      if (depth >= shallow.size()) {
        top = deep.back();
        deep.pop_back();
      } else {
        top = shallow[depth];
      }
    }
    uint32_t next = top.at->next[bytes[node]];
    if (TransitionRows::is_unknown(next)) next = rows_.step(top.row, bytes[node]);
    if (next == TransitionRows::none) {
      if (top.at->matched != MatchId::none) walk.exits_of(top.at->matched).push_back(node);
      node = ends[node];
      continue;
    }
    const uint32_t from = first_tokens[node], to = first_tokens[node + 1];
    if (from != to) walk.add({tokens + from, to - from});
    if (ends[node] != node + 1) {
      if (rows_[next].of_texts) {
        follow_texts(walk, node, next);
        node = ends[node];
        continue;
      }
      if (rows_.stays_in(next, trie.groups_below(node))) {
        const uint32_t below = first_tokens[ends[node]];
        if (to != below) walk.add({tokens + to, below - to});
        node = ends[node];
        continue;
      }
      if (depth >= shallow.size()) {
        deep.push_back(top);
      } else {
        shallow[depth] = top;
      }
      ++depth;
      top = {ends[node], next, &rows_[next]};
    }
    ++node;
  }
}

// Walks on from `node`, whose byte has just led to `row`, within the texts of a state: the trie and the texts are both
// sorted, so they are followed side by side, and no state is made for a beginning of a text.
void ContextIndependentTokens::follow_texts(Walk& walk, uint32_t node, uint32_t row) {
  ExpressionStore& expressions = lexer_.expressions();
  const Lexer::Entry entry = lexer_.entries(rows_[row].lexer)[0];
  const bool alone = expressions[entry.expression].kind != Kind::concatenation;
  const ExprId head = alone ? entry.expression : expressions[entry.expression].head();
  const ExprId after = alone ? ExprId::epsilon : expressions[entry.expression].rest();
  const ExpressionStore::Node set = expressions[head];
  const bool is_literal = set.kind == Kind::literal;
  const std::string literal(is_literal ? expressions.nodes().literal(set) : std::string_view());  // copied, as the pool may grow
  const SortedTexts* const texts = is_literal ? nullptr : &expressions.nodes().texts(set);
  const uint32_t read = is_literal ? 0 : set.depth();
  const auto size_of = [&](uint32_t i) { return is_literal ? literal.size() : (*texts)[i].size(); };
  const auto find = [&](uint32_t low, uint32_t high, size_t depth, unsigned byte) {
    if (!is_literal) return texts->find(low, high, depth, byte);
    return low < high && static_cast<uint8_t>(literal[depth]) < byte ? high : low;
  };
  uint32_t rest = TransitionRows::none;  // behind a text; sought when one ends
  const auto has_ended = [&](uint32_t low, size_t depth) {
    if (size_of(low) != depth) return false;
    if (rest == TransitionRows::none) rest = rows_.of(lexer_.state({{entry.terminal, after}}));
    return true;
  };
  struct Frame {
    uint32_t end, low, high;  // of the node's children; the texts that may go on with their bytes
    bool ended;               // a text ends at the node
  };
  const Trie& trie = vocabulary_.trie();
  const uint32_t start = node, end = trie.end(node);
  std::vector<Frame> path;
  const auto enter = [&](uint32_t low, uint32_t high) {
    const bool ended = has_ended(low, read + path.size());
    path.push_back({trie.end(node), low + ended, high, ended});
  };
  enter(is_literal ? 0 : set.low(), is_literal ? 1 : set.high());
  for (++node; node < end;) {
    while (path.back().end <= node) path.pop_back();
    Frame& top = path.back();
    const size_t depth = read + path.size() - 1;
    const uint8_t byte = trie.byte(node);
    const uint32_t low = find(top.low, top.high, depth, byte), high = find(low, top.high, depth, byte + 1u);
    const uint32_t behind = top.ended ? rows_.step(rest, byte) : TransitionRows::none;
    top.low = high;
    if (low < high && behind == TransitionRows::none) {
      walk.add(trie.tokens(node));
      if (trie.has_children(node)) enter(low, high);
      ++node;
      continue;
    }
    if (low < high) {  // the byte goes on with texts, and behind one
      const ExprId within = expressions.nodes().literal_set_at(set.literal_set(), low, high, static_cast<uint32_t>(depth) + 1);
      const ExprId both = expressions.alternation({expressions.concatenation(within, after), expressions.derivative(after, byte)});
      follow(walk, node, rows_.of(lexer_.state({{entry.terminal, both}})));
    } else if (behind != TransitionRows::none) {
      follow(walk, node, behind);
    } else if (top.ended && rows_.matches(rest) && path.size() > (start == Trie::root ? 1u : 0u)) {
      walk.exits_of(rows_[rest].matched).push_back(node);
    }
    node = top.ended || high < top.high ? trie.end(node) : top.end;
  }
}

// Sorts exits, replaces terminals by positions, and turns many single tokens into a bitmask.
void ContextIndependentTokens::finish(IndependentTokens& tokens, Walk& walk, LexId lexer) {
  std::span<const Lexer::Entry> entries = lexer_.entries(lexer);
  for (auto& [matched, nodes] : walk.exits) {
    Exits group;
    for (TermId t : lexer_.terminals_of(matched)) {
      auto is_t = [t](const Lexer::Entry& entry) { return entry.terminal == t; };
      group.matched.push_back(static_cast<uint32_t>(std::find_if(entries.begin(), entries.end(), is_t) - entries.begin()));
    }
    if (std::is_sorted(nodes.begin(), nodes.end())) {
      group.nodes = sorted_by_byte(vocabulary_.trie(), nodes, std::identity());
    } else {  // those of a plain state, which are sorted already, follow some others
      const ByByte before{vocabulary_.trie()};
      const auto sorted = std::is_sorted_until(nodes.rbegin(), nodes.rend(), [&](uint32_t a, uint32_t b) { return before(b, a); }).base();
      std::sort(nodes.begin(), sorted, before);
      std::inplace_merge(nodes.begin(), sorted, nodes.end(), before);
      group.nodes = std::move(nodes);
    }
    group.key = hash_of(group.nodes);
    tokens.exits.push_back(std::move(group));
  }
  if (tokens.add.size() > max_additions) walk.to_bits();
  if (walk.bits) tokens.base = std::move(walk.bits);
}

// Repetitions ------------------------------------------------------------------------------------------------------

void ContextIndependentTokens::by_repetition(IndependentTokens& tokens, LexId lexer, const Repetition& repetition) {
  take_fitting(tokens, repetition);
  const Trie& trie = vocabulary_.trie();
  Walk walk{tokens, vocabulary_.words()};
  const Lexer::Entry entry = lexer_.entries(lexer)[0];
  const auto& boundaries = repetition.tokens->boundaries;
  const MatchId ended = lexer_.match({entry.terminal});
  const bool rest_nullable = lexer_.expressions().nullable(repetition.rest);
  for (size_t i = 0; i < boundaries.size();) {
    const uint8_t byte = trie.byte(boundaries[i].node);
    const ExprId next = lexer_.expressions().derivative(repetition.rest, byte);
    const uint32_t entered = next == ExprId::nothing ? TransitionRows::none : rows_.of(lexer_.state({{entry.terminal, next}}));
    for (; i < boundaries.size() && trie.byte(boundaries[i].node) == byte; ++i) {
      const uint32_t units = boundaries[i].units;
      if (units < repetition.minimum || units > repetition.maximum) continue;
      if (entered != TransitionRows::none) {
        follow(walk, boundaries[i].node, entered);
      } else if (rest_nullable && units > 0) {  // at the root itself, see matched_at_root
        walk.exits_of(ended).push_back(boundaries[i].node);
      }
    }
  }
  finish(tokens, walk, lexer);
}

// The tokens made of at most as many units as may follow.
void ContextIndependentTokens::take_fitting(IndependentTokens& tokens, const Repetition& repetition) const {
  const auto& by_units = repetition.tokens->by_units;
  auto fits = std::partition_point(by_units.begin(), by_units.end(), [&](const auto& each) { return each.first > repetition.maximum; });
  const auto too_long = static_cast<size_t>(fits - by_units.begin());
  if (too_long <= max_removals) {
    tokens.base = repetition.tokens->all;
    for (auto each = by_units.begin(); each != fits; ++each) tokens.remove.push_back(each->second);
  } else if (by_units.size() - too_long <= max_additions) {
    for (auto each = fits; each != by_units.end(); ++each) tokens.add.push_back(each->second);
  } else {
    const bool few_fit = too_long > by_units.size() / 2;
    auto base = few_fit ? std::make_shared<Bitmask>(vocabulary_.words()) : std::make_shared<Bitmask>(*repetition.tokens->all);
    for (auto each = fits; few_fit && each != by_units.end(); ++each) set_bit(*base, each->second);
    for (auto each = by_units.begin(); !few_fit && each != fits; ++each) clear_bit(*base, each->second);
    tokens.base = std::move(base);
  }
}

// Paths ------------------------------------------------------------------------------------------------------------

// Whether the state stays alive after any text of X*, is never a whole lexeme there, and leaves X* between units only.
bool ContextIndependentTokens::stays_inside(LexId lexer, ExprId unit) {
  uint64_t key = paired(lexer, unit);
  if (const uint8_t* known = inside_.find(key)) return *known != 0;
  ExpressionStore& expressions = lexer_.expressions();
  std::vector<std::pair<LexId, ExprId>> work{{lexer, unit}};  // a state, and the rest of the current unit
  FlatMap<uint64_t, uint8_t> seen;
  bool inside = true;
  for (size_t i = 0; i < work.size() && inside; ++i) {
    auto [state, rest] = work[i];
    // the state itself may be a whole lexeme if no text leads back to it
    inside = (i == 0 || lexer_.matched(state) == MatchId::none) && work.size() <= max_inside_states;
    std::vector<ExprId> together{rest};
    for (const Lexer::Entry& entry : lexer_.entries(state)) together.push_back(entry.expression);
    for (uint8_t byte : expressions.representatives(together)) {
      if (!inside) break;
      ExprId next_rest = expressions.derivative(rest, byte);
      LexId next = lexer_.step(state, byte);
      if (next_rest == ExprId::nothing) {
        inside = rest == unit || next == LexId::dead;
        continue;
      }
      inside = next != LexId::dead;
      if (expressions.nullable(next_rest)) next_rest = unit;
      uint64_t pair = paired(next, next_rest);
      if (seen.find(pair)) continue;
      seen.insert(pair, 1);
      work.emplace_back(next, next_rest);
    }
  }
  inside_.insert(key, inside);
  if (inside) {  // states between units behave like this one from here on
    for (const auto& [state, rest] : work) {
      if (rest == unit && lexer_.matched(state) == MatchId::none) inside_.insert(paired(state, unit), 1);
    }
  }
  return inside;
}

// A pattern that may match anywhere continues with any character: some entry of the state is X*R. Then all tokens of X*
// stay inside, and only the paths to nodes where a token leaves X* are walked.
bool ContextIndependentTokens::by_paths(IndependentTokens& tokens, LexId lexer) {
  ExpressionStore& expressions = lexer_.expressions();
  if (std::ranges::all_of(lexer_.entries(lexer), [&](const Lexer::Entry& entry) { return expressions[entry.expression].finite; })) return false;
  std::shared_ptr<const UnitTokens> units;
  ExprId unit{};
  ByteSet alphabet;
  for (size_t e = 0; e < lexer_.entries(lexer).size(); ++e) {
    const ExprId whole = lexer_.entries(lexer)[e].expression;
    alphabet = alphabet | expressions.alphabet(whole);
    if (!units) units = repetitions_.endless(whole, unit);
  }
  if (!units || !uses("paths") || !stays_inside(lexer, unit)) return false;
  tokens.base = units->all;
  Walk walk{tokens, vocabulary_.words()};
  const Trie& trie = vocabulary_.trie();
  // targets in trie order; between two of them, climb to their common ancestor
  std::vector<uint32_t> targets;
  for (const UnitTokens::Boundary& boundary : units->boundaries) {
    if (alphabet.contains(trie.byte(boundary.node))) targets.push_back(boundary.node);
  }
  std::sort(targets.begin(), targets.end());
  struct Frame {
    uint32_t node, row;
  };
  std::vector<Frame> path{{Trie::root, rows_.of(lexer)}};
  for (uint32_t target : targets) {
    while (path.back().node != Trie::root && trie.end(path.back().node) <= target) path.pop_back();
    while (true) {
      uint32_t child = path.back().node + 1;
      while (trie.end(child) <= target) child = trie.end(child);
      const uint32_t next = rows_.step(path.back().row, trie.byte(child));
      if (child != target) {  // inside X*, so alive
        path.push_back({child, next});
        continue;
      }
      if (next != TransitionRows::none) {
        follow(walk, child, next);
      } else if (path.back().node != Trie::root && rows_.matches(path.back().row)) {
        walk.exits_of(rows_[path.back().row].matched).push_back(child);
      }
      break;
    }
  }
  finish(tokens, walk, lexer);
  return true;
}

// Far counts --------------------------------------------------------------------------------------------------------

// The tokens of a state with counts that are out of reach of most tokens: those of the state without these counts, which
// differ in long tokens only. Null for other states. If there is no difference, `like` becomes the plain state.
std::shared_ptr<const IndependentTokens> ContextIndependentTokens::without_far_counts(LexId lexer, LexId& like) {
  auto has_count = [this](const Lexer::Entry& entry) { return lexer_.expressions()[entry.expression].has_count; };
  if (std::ranges::none_of(lexer_.entries(lexer), has_count) || !uses("far counts")) return nullptr;
  const std::vector<Lexer::Entry> entries = lexer_.copy_of_entries(lexer);
  if (repetition(entries)) return nullptr;
  std::vector<Lexer::Entry> plain_entries = entries;
  Uncounted conditions{ExprId::nothing};
  for (Lexer::Entry& entry : plain_entries) {
    if (lexer_.is_lazy(entry.terminal)) return nullptr;
    if (!has_count(entry)) continue;
    const Uncounted& found = far_counts_.without(entry.expression);
    entry.expression = found.expression;
    conditions.most_bytes = std::min(conditions.most_bytes, found.most_bytes);
    conditions.counts.insert(conditions.counts.end(), found.counts.begin(), found.counts.end());
  }
  const LexId plain = lexer_.state(std::move(plain_entries));
  if (plain == lexer) return nullptr;
  const std::optional<std::vector<uint32_t>> targets = nodes_beyond(conditions);
  if (!targets) return nullptr;

  const std::shared_ptr<const IndependentTokens> base = of(plain);
  std::vector<uint32_t> positions;  // in the state, by position in the plain one
  bool same_positions = true;
  for (const Lexer::Entry& entry : lexer_.entries(plain)) {
    const auto own = std::ranges::find(entries, entry.terminal, &Lexer::Entry::terminal);
    same_positions &= static_cast<size_t>(own - entries.begin()) == positions.size();
    positions.push_back(static_cast<uint32_t>(own - entries.begin()));
  }
  auto tokens = std::make_shared<IndependentTokens>();
  Walk walk{*tokens, vocabulary_.words()};
  Difference found = walk_paths_in_parallel(walk, lexer, plain, *targets);
  if (same_positions && found.removed.empty() && found.added.empty() && found.not_exits.empty() && walk.exits.empty()) {
    rows_.forget();
    like = plain;
    return base;
  }
  apply(*tokens, found, *base);
  tokens->taken_at_root = base->taken_at_root;
  for (uint32_t position : base->matched_at_root) tokens->matched_at_root.push_back(positions[position]);
  std::ranges::sort(tokens->matched_at_root);
  for (const Exits& group : base->exits) {
    std::vector<TermId> matched;
    for (uint32_t position : group.matched) matched.push_back(entries[positions[position]].terminal);
    keep_exits(walk, lexer_.match(std::move(matched)), group, found);
  }
  finish(*tokens, walk, lexer);
  rows_.forget();
  return tokens;
}

// The nodes of all tokens for which the conditions do not hold, ascending; no answer if there are many.
std::optional<std::vector<uint32_t>> ContextIndependentTokens::nodes_beyond(const Uncounted& conditions) {
  const Trie& trie = vocabulary_.trie();
  const std::span<const uint32_t> nodes = trie.long_nodes();
  std::vector<std::shared_ptr<const std::vector<uint32_t>>> begun;
  for (const Uncounted::Count& each : conditions.counts) begun.push_back(most_begun(each.unit));
  std::vector<uint32_t> beyond;
  for (size_t i = 0; i < nodes.size(); ++i) {
    bool is_beyond = trie.long_sizes()[i] > conditions.most_bytes;
    for (size_t k = 0; k < begun.size() && !is_beyond; ++k) is_beyond = (*begun[k])[i] > conditions.counts[k].most;
    if (is_beyond) beyond.push_back(nodes[i]);
  }
  if (beyond.size() > max_beyond) return std::nullopt;
  return beyond;
}

// Bounds on the units that each long token begins.
std::shared_ptr<const std::vector<uint32_t>> ContextIndependentTokens::most_begun(ExprId unit) {
  const Hash key = mix(seeded(0x626567756E), lexer_.expressions().hash(unit));
  if (std::shared_ptr<const std::vector<uint32_t>> known = vocabulary_.find_begun(key)) return known;
  auto most = std::make_shared<std::vector<uint32_t>>();
  const Trie& trie = vocabulary_.trie();
  const UnitBounds bounds = unit_bounds(lexer_.expressions(), unit);
  for (uint32_t node : trie.long_nodes()) most->push_back(bounds.most_begun(vocabulary_.token(trie.tokens(node)[0])));
  vocabulary_.keep_begun(key, most);
  return most;
}

// Walks the paths to the targets for two states that differ on them only.
ContextIndependentTokens::Difference ContextIndependentTokens::walk_paths_in_parallel(Walk& walk, LexId lexer, LexId plain,
                                                                                      std::span<const uint32_t> targets) {
  const Trie& trie = vocabulary_.trie();
  Difference found;
  struct Frame {
    uint32_t node, own, other;
    size_t from, to;  // the targets at the node and below it
  };
  std::vector<Frame> stack;
  if (!targets.empty()) stack.push_back({Trie::root, rows_.of(lexer), rows_.of(plain), 0, targets.size()});
  while (!stack.empty()) {
    Frame at = stack.back();
    stack.pop_back();
    compare_at(found, at.node, at.own, at.other);
    if (targets[at.from] == at.node) ++at.from;
    for (uint32_t child = at.node + 1; at.from < at.to; child = trie.end(child)) {
      while (trie.end(child) <= targets[at.from]) child = trie.end(child);
      const auto end = std::lower_bound(targets.begin() + static_cast<std::ptrdiff_t>(at.from), targets.begin() + static_cast<std::ptrdiff_t>(at.to), trie.end(child));
      const auto to = static_cast<size_t>(end - targets.begin());
      const auto [own, other] = compare_child(walk, found, at.node, child, at.own, at.other);
      if (own != other) stack.push_back({child, own, other, at.from, to});
      at.from = to;
    }
  }
  return found;
}

// Differences -------------------------------------------------------------------------------------------------------

// The bytes after which a state may differ from a plain one, if they are easy to find: each entry begins with a single
// byte, or is the plain expression, perhaps without finitely many texts.
bool ContextIndependentTokens::differing_bytes(uint32_t own, uint32_t plain, ByteSet& bytes) {
  if (own == TransitionRows::none || plain == TransitionRows::none) return false;
  ExpressionStore& expressions = lexer_.expressions();
  const auto [terminal, wide] = lexer_.entries(rows_[plain].lexer)[0];
  bool has_wide = false;
  for (const Lexer::Entry& entry : lexer_.entries(rows_[own].lexer)) {
    const ExpressionStore::Node& node = expressions[entry.expression];
    if (entry.expression == wide && entry.terminal == terminal) {
      has_wide = true;
    } else if (node.kind == Kind::intersection && entry.terminal == terminal) {
      bool without_few = true;
      bool around_wide = false;
      ByteSet first;
      for (ExprId part : expressions.parts(entry.expression)) {
        const ExpressionStore::Node& each = expressions[part];
        around_wide |= part == wide;
        without_few &= part == wide || (each.kind == Kind::complement && expressions[each.excluded()].finite);
        if (each.kind == Kind::complement) first = first | expressions.first(each.excluded());
      }
      if (!without_few || !around_wide) return false;
      has_wide = true;
      bytes = bytes | first;
    } else if (node.lead >= 0) {
      bytes.add(static_cast<uint8_t>(node.lead));
    } else {
      return false;
    }
  }
  return has_wide;
}

// Walks the state in parallel with a simpler expression whose tokens are known or cheap, while the two differ. Applies
// if an entry is wide except for a few texts, or is itself a repetition with narrower entries around it.
bool ContextIndependentTokens::by_difference(IndependentTokens& tokens, LexId lexer) {
  const std::vector<Lexer::Entry> entries = lexer_.copy_of_entries(lexer);
  const Wide wide = find_wide(entries);
  if (wide.expression == ExprId::nothing || !uses("difference")) return false;
  for (uint32_t i = 0; i < entries.size(); ++i) {  // two equally wide entries would differ everywhere
    if (ExprId unit; i != wide.position && repetitions_.endless(entries[i].expression, unit)) return false;
  }
  const TermId terminal = entries[wide.position].terminal;
  const LexId plain = lexer_.state({{terminal, wide.expression}});
  if (plain == lexer) return false;
  const std::shared_ptr<const IndependentTokens> base = of(plain);
  Walk walk{tokens, vocabulary_.words()};
  Difference found = walk_in_parallel(walk, lexer, plain);
  apply(tokens, found, *base);
  for (const Exits& group : base->exits) keep_exits(walk, lexer_.match({terminal}), group, found);  // one entry, so one group
  finish(tokens, walk, lexer);
  return true;
}

// Makes the tokens those of the plain state, apart from the difference.
void ContextIndependentTokens::apply(IndependentTokens& tokens, Difference& found, const IndependentTokens& plain) {
  tokens.base = plain.base;
  tokens.remove = plain.remove;
  tokens.add = plain.add;
  std::sort(found.removed.begin(), found.removed.end());
  std::erase_if(tokens.add, [&](uint32_t token) { return std::binary_search(found.removed.begin(), found.removed.end(), token); });
  tokens.remove.insert(tokens.remove.end(), found.removed.begin(), found.removed.end());
  std::sort(found.added.begin(), found.added.end());
  std::erase_if(tokens.remove, [&](uint32_t token) { return std::binary_search(found.added.begin(), found.added.end(), token); });
  tokens.add.insert(tokens.add.end(), found.added.begin(), found.added.end());
}

// Adds the exits of the plain state that the state has, too.
void ContextIndependentTokens::keep_exits(Walk& walk, MatchId matched, const Exits& group, const Difference& found) {
  std::vector<uint32_t>& nodes = walk.exits_of(matched);
  nodes.reserve(nodes.size() + group.nodes.size());
  std::vector<uint32_t> others = found.not_exits;
  const ByByte before{vocabulary_.trie()};
  std::ranges::sort(others, before);
  auto from = group.nodes.begin();
  for (uint32_t node : others) {
    const auto at = std::lower_bound(from, group.nodes.end(), node, before);
    if (at == group.nodes.end() || *at != node) continue;
    nodes.insert(nodes.end(), from, at);
    from = at + 1;
  }
  nodes.insert(nodes.end(), from, group.nodes.end());
}

// The first entry that is an expression without finitely many texts, or a repetition with many tokens; none that is lazy.
ContextIndependentTokens::Wide ContextIndependentTokens::find_wide(const std::vector<Lexer::Entry>& entries) {
  ExpressionStore& expressions = lexer_.expressions();
  for (uint32_t i = 0; i < entries.size(); ++i) {
    if (lexer_.is_lazy(entries[i].terminal)) continue;
    const ExprId e = entries[i].expression;
    if (expressions[e].kind == Kind::intersection) {
      ExprId positive = ExprId::nothing;
      bool simple = true;
      for (ExprId each : expressions.parts(e)) {  // makes no expressions, so the span stays valid
        const ExpressionStore::Node& node = expressions[each];
        if (node.kind == Kind::complement) {
          simple &= expressions[node.excluded()].finite;
        } else {
          simple &= positive == ExprId::nothing;
          positive = each;
        }
      }
      if (simple && positive != ExprId::nothing) return {positive, i};
    } else if (entries.size() > 1) {
      const std::optional<Repetition> repetition = repetitions_.find(e);
      if (repetition && repetition->tokens->by_units.size() > max_additions) return {e, i};  // else others may be wider
    }
  }
  return {};
}

// Notes the tokens of a node at which one of two states is dead.
void ContextIndependentTokens::compare_at(Difference& found, uint32_t node, uint32_t own, uint32_t other) {
  if (own != TransitionRows::none && other == TransitionRows::none) add_tokens(found.added, vocabulary_.trie(), node);
  if (own == TransitionRows::none && other != TransitionRows::none) add_tokens(found.removed, vocabulary_.trie(), node);
}

// Steps two rows to a child of a node, and notes whether it is an exit of one. Those of the state's own row belong to the
// walk. The root has no exits.
std::pair<uint32_t, uint32_t> ContextIndependentTokens::compare_child(Walk& walk, Difference& found, uint32_t node, uint32_t child, uint32_t own,
                                                                      uint32_t other) {
  const uint8_t byte = vocabulary_.trie().byte(child);
  const uint32_t next = own == TransitionRows::none ? own : rows_.step(own, byte);
  const uint32_t next_other = other == TransitionRows::none ? other : rows_.step(other, byte);
  if (node == Trie::root) return {next, next_other};
  if (other != TransitionRows::none && next_other == TransitionRows::none && rows_.matches(other)) found.not_exits.push_back(child);
  if (own != TransitionRows::none && next == TransitionRows::none && rows_.matches(own)) walk.exits_of(rows_[own].matched).push_back(child);
  return {next, next_other};
}

// Walks two states in parallel while they differ.
ContextIndependentTokens::Difference ContextIndependentTokens::walk_in_parallel(Walk& walk, LexId lexer, LexId plain) {
  const Trie& trie = vocabulary_.trie();
  Difference found;
  struct Frame {
    uint32_t node, own, other;
  };
  std::vector<Frame> stack;
  auto children = [&](uint32_t node, uint32_t own, uint32_t other) {
    const bool ends = node != Trie::root && own != TransitionRows::none && rows_.matches(own);
    const bool other_ends = node != Trie::root && other != TransitionRows::none && rows_.matches(other);
    ByteSet differing;
    const bool all = ends || other_ends || !differing_bytes(own, other, differing);
    trie.each_child(node, [&](uint32_t child) {
      if (!all && !differing.contains(trie.byte(child))) return;
      const auto [next, next_other] = compare_child(walk, found, node, child, own, other);
      if (next != next_other) stack.push_back({child, next, next_other});
    });
  };
  const uint32_t row = rows_.of(lexer);
  children(Trie::root, row, rows_.of(plain));
  while (!stack.empty()) {
    const Frame at = stack.back();
    stack.pop_back();
    compare_at(found, at.node, at.own, at.other);
    children(at.node, at.own, at.other);
  }
  return found;
}

}  // namespace constrain
