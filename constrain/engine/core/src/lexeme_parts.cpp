// What a lexer state alone says about every token: which stay inside the lexeme, and where the others leave it.
//
// Four ways, cheapest first:
//   - a run of one unit, X{m,n}R ("inside a JSON string"): the tokens made of X are known from one walk of the trie for
//     all m, n and R; only what follows them is walked;
//   - a state one part of which is X*R: all tokens of X stay inside; only the ways out of X* are walked;
//   - a state that differs from a run, or from a plain expression, along a few literals only ("any key but these"): both
//     are walked side by side, and no further once they agree;
//   - any other: the trie is walked.
#include <algorithm>
#include <functional>
#include <utility>

#include "automaton.h"

namespace constrain {

namespace {

constexpr size_t kept_rows = 32;        // dense transition rows kept between walks, 1 KiB each
constexpr size_t max_additions = 2048;  // more single tokens than this are worth a bitmask
constexpr size_t max_removals = 512;
constexpr size_t max_inside_states = 1000;  // looked at before a state is taken for one that leaves its units anywhere

// Tokens that leave a lexeme in one way: more than these are worth a part of their own.
constexpr size_t few_suffixes = 16;
constexpr uint32_t no_part = ~uint32_t{0};

using Kind = ExpressionStore::Kind;

Hash hash_of(std::span<const uint32_t> numbers) {
  Hash hash = seeded(numbers.size());
  for (; numbers.size() > 1; numbers = numbers.subspan(2)) hash = mix(hash, (uint64_t{numbers[0]} << 32) | numbers[1]);
  return numbers.empty() ? hash : mix(hash, numbers[0]);
}

// A stable counting sort by the byte of a node.
template <typename T, typename F>
std::vector<T> by_byte(const Trie& trie, const std::vector<T>& items, F&& node_of) {
  std::array<size_t, 256> place{};
  for (const T& item : items) ++place[trie.byte(node_of(item))];
  size_t next = 0;
  for (size_t& each : place) next += std::exchange(each, next);
  std::vector<T> sorted(items.size());
  for (const T& item : items) sorted[place[trie.byte(node_of(item))]++] = item;
  return sorted;
}

}  // namespace

// A walk's result on the way: tokens as a list while they are few, then as bits.
struct Automaton::PartWalk {
  LexemePart& part;
  uint32_t words;
  std::shared_ptr<Bitmask> bits{};
  std::vector<std::pair<MatchId, std::vector<uint32_t>>> exits{};

  void add(std::span<const uint32_t> tokens) {
    if (!bits) {
      part.add.insert(part.add.end(), tokens.begin(), tokens.end());
      if (part.add.size() > max_additions) to_bits();
    } else {
      for (uint32_t token : tokens) set_bit(*bits, token);
    }
  }
  void to_bits() {
    bits = part.base ? std::make_shared<Bitmask>(*part.base) : std::make_shared<Bitmask>(words);
    for (uint32_t token : part.remove) clear_bit(*bits, token);
    for (uint32_t token : part.add) set_bit(*bits, token);
    part.add.clear();
    part.remove.clear();
  }
  std::vector<uint32_t>& exits_of(MatchId matched) {
    for (auto& [known, nodes] : exits) {
      if (known == matched) return nodes;
    }
    return exits.emplace_back(matched, std::vector<uint32_t>{}).second;
  }
};

uint32_t Automaton::row_of(LexId lexer) {
  if (lexer == LexId::dead) return no_row;
  if (const uint32_t* found = row_ids_.find(index(lexer))) return *found;
  auto row = static_cast<uint32_t>(rows_.size());
  row_ids_.insert(index(lexer), row);
  Row& made = *rows_.emplace_back(std::make_unique<Row>());
  made.lexer = lexer;
  made.matched = lexer_.matched(lexer);
  made.next.fill(no_row);
  for (const Lexer::Entry& entry : lexer_.entries(lexer)) {
    const int16_t lead = lexer_.expressions()[entry.expression].lead;
    if (lead >= 0) {
      made.next[static_cast<size_t>(lead)] = unknown_row;
    } else {
      lexer_.expressions().first(entry.expression).each([&made](uint8_t byte) { made.next[byte] = unknown_row; });
    }
  }
  return row;
}

uint32_t Automaton::row_step(uint32_t row, uint8_t byte) {
  uint32_t next = rows_[row]->next[byte];
  if (next != unknown_row) return next;
  next = row_of(lexer_.step(rows_[row]->lexer, byte));
  rows_[row]->next[byte] = next;
  return next;
}

// Whether all bytes of the groups lead from the row to itself.
bool Automaton::stays_in(uint32_t row, ByteGroups groups) {
  Row& at = *rows_[row];
  if (groups & at.leaving) return false;
  for (ByteGroups unknown = groups & ~at.staying; unknown; unknown &= unknown - 1) {
    const ByteGroups group = unknown & -unknown;
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (ByteGroups{1} << byte_groups[byte] != group || row_step(row, static_cast<uint8_t>(byte)) == row) continue;
      at.leaving |= group;
      return false;
    }
    at.staying |= group;
  }
  return true;
}

std::shared_ptr<const LexemePart> Automaton::part(LexId lexer) {
  if (const uint32_t* found = part_ids_.find(index(lexer))) return parts_[*found];
  Hash key = part_key(lexer);
  std::shared_ptr<const LexemePart> part = vocabulary_.find_part(key);
  if (!part) {
    bool shareable = true;
    part = make_part(lexer, shareable);
    if (shareable) {
      vocabulary_.keep_part(key, part);
    } else {
      mask_bytes_ += part->memory_bytes();
    }
  }
  part_ids_.insert(index(lexer), static_cast<uint32_t>(parts_.size()));
  parts_.push_back(part);
  return part;
}

// States with equal keys have equal parts. Counts beyond what any token can reach are all one.
Hash Automaton::part_key(LexId lexer) {
  const std::vector<Lexer::Entry> entries = lexer_.copy_of_entries(lexer);
  Run run;
  if (entries.size() == 1 && find_run(entries[0].expression, run)) {
    const ExpressionStore::Node node = lexer_.expressions()[entries[0].expression];
    ExprId repetition = node.kind == Kind::repetition ? entries[0].expression : ExprId{node.arg[0]};
    Hash key = mix(seeded(0x72756E), lexer_.expressions().hash(ExprId{lexer_.expressions()[repetition].arg[0]}));
    uint32_t minimum = std::min(run.minimum, run.units->most_units + 1);
    uint32_t maximum = run.maximum >= run.units->most_units ? unbounded : run.maximum;
    return mix(mix(key, lexer_.expressions().hash(run.rest)), (uint64_t{minimum} << 32) | maximum);
  }
  Hash key = seeded(0x73746174);
  for (const Lexer::Entry& entry : entries) key = mix(key, lexer_.expressions().hash(entry.expression));
  return key;
}

std::shared_ptr<const LexemePart> Automaton::make_part(LexId lexer, bool& shareable) {
  auto part = std::make_shared<LexemePart>();
  const std::vector<Lexer::Entry> entries = lexer_.copy_of_entries(lexer);
  MatchId matched = lexer_.matched(lexer);
  for (uint32_t i = 0; i < entries.size(); ++i) {
    if (lexer_.expressions().nullable(entries[i].expression)) part->matched_at_root.push_back(i);
  }
  shareable = is_shareable(lexer);
  if (matched != MatchId::none) {
    ByteSet possible;
    for (const Lexer::Entry& entry : entries) possible = possible | lexer_.expressions().first(entry.expression);
    possible.each([&](uint8_t byte) {
      if (lexer_.step(lexer, byte) != LexId::dead) part->taken_at_root.add(byte);
    });
  }
  Run run;
  if (entries.size() == 1 && find_run(entries[0].expression, run)) {
    part_of_run(*part, lexer, run);
  } else if (!part_by_difference(*part, lexer) && !part_by_paths(*part, lexer)) {
    PartWalk walk{*part, vocabulary_.words()};
    const Trie& trie = vocabulary_.trie();
    uint32_t row = row_of(lexer);
    trie.each_child(Trie::root, [&](uint32_t child) {
      uint32_t next = row_step(row, trie.byte(child));
      if (next != no_row) walk_lexeme(walk, child, next);
    });
    finish_part(*part, walk, lexer);
  }
  forget_rows();
  return part;
}

void Automaton::forget_rows() {
  if (rows_.size() <= kept_rows) return;
  rows_.clear();
  row_ids_ = {};
}

// Whether a part of the state means the same to other grammars: terminals made from memory are this one's own.
bool Automaton::is_shareable(LexId lexer) const {
  return std::ranges::all_of(lexer_.entries(lexer), [&](const Lexer::Entry& entry) { return index(entry.terminal) < grammar_.terminals.size(); });
}

// What `lexer` says about the tokens that leave a lexeme at `exits`, whose bytes are the first that it takes. Null where
// these are few. The exits must be those of a part that is kept.
const LexemePart* Automaton::part_after(const Exits& exits, LexId lexer) {
  const Hash key = mix(mix(seeded(0x6166746572), reinterpret_cast<uintptr_t>(&exits)), index(lexer));
  if (const uint32_t* found = parts_after_.find(key)) return *found == no_part ? nullptr : parts_[*found].get();
  const bool shareable = is_shareable(lexer);
  Hash shared = mix(seeded(0x6166746572), exits.key);
  for (const Lexer::Entry& entry : lexer_.entries(lexer)) shared = mix(shared, lexer_.expressions().hash(entry.expression));
  std::shared_ptr<const LexemePart> part = shareable ? vocabulary_.find_part(shared) : nullptr;
  if (!part && count_tokens_after(exits, lexer) > few_suffixes) {
    part = make_part_after(exits, lexer);
    if (shareable) {
      vocabulary_.keep_part(shared, part);
    } else {
      mask_bytes_ += part->memory_bytes();
    }
  }
  parts_after_.insert(key, part ? static_cast<uint32_t>(parts_.size()) : no_part);
  if (part) parts_.push_back(part);
  return part.get();
}

size_t Automaton::count_tokens_after(const Exits& exits, LexId lexer) {
  const Trie& trie = vocabulary_.trie();
  size_t tokens = 0;
  for (size_t i = 0; i < exits.nodes.size();) {
    const uint8_t byte = trie.byte(exits.nodes[i]);
    const bool taken = lexer_.step(lexer, byte) != LexId::dead;
    for (; i < exits.nodes.size() && trie.byte(exits.nodes[i]) == byte; ++i) tokens += taken ? trie.tokens_below(exits.nodes[i]).size() : 0;
  }
  return tokens;
}

std::shared_ptr<const LexemePart> Automaton::make_part_after(const Exits& exits, LexId lexer) {
  auto part = std::make_shared<LexemePart>();
  PartWalk walk{*part, vocabulary_.words()};
  const uint32_t row = row_of(lexer);
  for (uint32_t node : exits.nodes) {
    const uint32_t next = row_step(row, vocabulary_.trie().byte(node));
    if (next != no_row) walk_lexeme(walk, node, next);
  }
  finish_part(*part, walk, lexer);
  forget_rows();
  return part;
}

// From `node`, whose byte has just led to `row`. The loop of the kernel that sees the most trie nodes.
void Automaton::walk_lexeme(PartWalk& walk, uint32_t node, uint32_t row) {
  const Trie& trie = vocabulary_.trie();
  walk.add(trie.tokens(node));
  if (!trie.has_children(node)) return;
  if (stays_in(row, trie.groups_below(node))) {
    walk.add(trie.tokens_below(node).subspan(trie.tokens(node).size()));
    return;
  }
  const uint8_t* const bytes = trie.bytes();
  const uint32_t* const ends = trie.ends();
  const uint32_t* const first_tokens = trie.first_tokens();
  const uint32_t* const tokens = trie.all_tokens();
  struct Frame {
    uint32_t end, row;
    const Row* at;
  };
  std::array<Frame, 64> shallow;  // deeper paths go to the heap
  std::vector<Frame> deep;
  size_t depth = 0;
  Frame top{ends[node], row, rows_[row].get()};
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
    if (next == unknown_row) next = row_step(top.row, bytes[node]);
    if (next == no_row) {
      if (top.at->matched != MatchId::none) walk.exits_of(top.at->matched).push_back(node);
      node = ends[node];
      continue;
    }
    const uint32_t from = first_tokens[node], to = first_tokens[node + 1];
    if (from != to) walk.add({tokens + from, to - from});
    if (ends[node] != node + 1) {
      if (stays_in(next, trie.groups_below(node))) {
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
      top = {ends[node], next, rows_[next].get()};
    }
    ++node;
  }
}

// Brings exits into their order, terminals into positions, and many single tokens into a bitmask.
void Automaton::finish_part(LexemePart& part, PartWalk& walk, LexId lexer) {
  std::span<const Lexer::Entry> entries = lexer_.entries(lexer);
  for (auto& [matched, nodes] : walk.exits) {
    Exits group;
    for (TermId t : lexer_.terminals_of(matched)) {
      auto is_t = [t](const Lexer::Entry& entry) { return entry.terminal == t; };
      group.matched.push_back(static_cast<uint32_t>(std::find_if(entries.begin(), entries.end(), is_t) - entries.begin()));
    }
    if (!std::is_sorted(nodes.begin(), nodes.end())) std::sort(nodes.begin(), nodes.end());
    group.nodes = by_byte(vocabulary_.trie(), nodes, std::identity());
    group.key = hash_of(group.nodes);
    part.exits.push_back(std::move(group));
  }
  if (part.add.size() > max_additions) walk.to_bits();
  if (walk.bits) part.base = std::move(walk.bits);
}

// Runs of a unit --------------------------------------------------------------------------------------------------

// Is `e` X{m,n}R, with X prefix-free, no byte that begins both X and R, and n out of reach if R is nullable?
bool Automaton::find_run(ExprId e, Run& run) {
  ExpressionStore& expressions = lexer_.expressions();
  ExpressionStore::Node node = expressions[e];
  run.rest = ExprId::epsilon;
  if (node.kind == Kind::concatenation) {
    run.rest = ExprId{node.arg[1]};
    node = expressions[ExprId{node.arg[0]}];
  }
  if (node.kind != Kind::repetition || node.arg[2] < 2) return false;
  ExprId unit{node.arg[0]};
  if (expressions.nullable(unit) || expressions.first(unit).intersects(expressions.first(run.rest))) return false;
  run.minimum = node.arg[1];
  run.maximum = node.arg[2];
  run.unit = unit;
  run.units = unit_run(unit);
  if (!run.units->all) return false;
  // a full run may end the lexeme even where another unit begins: not among the boundaries
  return !expressions.nullable(run.rest) || run.maximum > run.units->most_units;
}

std::shared_ptr<const UnitRun> Automaton::unit_run(ExprId unit) {
  ExpressionStore& expressions = lexer_.expressions();
  Hash key = mix(seeded(0x756E6974), expressions.hash(unit));
  if (std::shared_ptr<const UnitRun> known = vocabulary_.find_run(key)) return known;
  const Trie& trie = vocabulary_.trie();
  auto run = std::make_shared<UnitRun>();
  auto all = std::make_shared<Bitmask>(vocabulary_.words());
  const uint32_t whole = row_of(lexer_.state({{TermId{0}, unit}}));
  struct Frame {
    uint32_t end;
    uint32_t row;
    uint32_t units;
    bool boundary;
  };
  std::vector<Frame> path{{trie.end(Trie::root), whole, 0, true}};
  bool prefix_free = true;
  for (uint32_t node = 1; node < trie.size() && prefix_free;) {
    while (path.back().end <= node) path.pop_back();
    const Frame parent = path.back();
    uint32_t next = row_step(parent.row, trie.byte(node));
    if (next == no_row) {
      if (parent.boundary) run->boundaries.push_back({node, parent.units});
      node = trie.end(node);
      continue;
    }
    bool boundary = rows_[next]->matched != MatchId::none;
    prefix_free &= !boundary || lexer_.entries(rows_[next]->lexer)[0].expression == ExprId::epsilon;
    uint32_t units = parent.units + (parent.boundary ? 1 : 0);
    for (uint32_t token : trie.tokens(node)) {
      run->by_units.emplace_back(units, token);
      set_bit(*all, token);
    }
    if (trie.has_children(node)) path.push_back({trie.end(node), boundary ? whole : next, units, boundary});
    ++node;
  }
  if (prefix_free) {
    std::vector<uint32_t> place;  // counting sort: where the tokens of so many units go
    for (const auto& [units, token] : run->by_units) {
      if (place.size() <= units) place.resize(units + 1);
      ++place[units];
    }
    run->most_units = place.empty() ? 0 : static_cast<uint32_t>(place.size() - 1);
    uint32_t next = 0;
    for (size_t units = place.size(); units-- > 0;) next += std::exchange(place[units], next);
    std::vector<std::pair<uint32_t, uint32_t>> sorted(run->by_units.size());
    for (const auto& each : run->by_units) sorted[place[each.first]++] = each;
    run->by_units = std::move(sorted);
    run->boundaries = by_byte(trie, run->boundaries, [](const UnitRun::Boundary& boundary) { return boundary.node; });
    run->all = std::move(all);
  } else {
    run->by_units = {};
    run->boundaries = {};
  }
  for (const UnitRun::Boundary& boundary : run->boundaries) run->most_units = std::max(run->most_units, boundary.units);
  vocabulary_.keep_run(key, run);
  return run;
}

void Automaton::part_of_run(LexemePart& part, LexId lexer, const Run& run) {
  const Trie& trie = vocabulary_.trie();
  const auto& by_units = run.units->by_units;
  auto fits = std::partition_point(by_units.begin(), by_units.end(), [&](const auto& each) { return each.first > run.maximum; });
  auto too_long = static_cast<size_t>(fits - by_units.begin());
  if (too_long <= max_removals) {
    part.base = run.units->all;
    for (auto each = by_units.begin(); each != fits; ++each) part.remove.push_back(each->second);
  } else if (by_units.size() - too_long <= max_additions) {
    for (auto each = fits; each != by_units.end(); ++each) part.add.push_back(each->second);
  } else {
    auto base = std::make_shared<Bitmask>(vocabulary_.words());
    for (auto each = fits; each != by_units.end(); ++each) set_bit(*base, each->second);
    part.base = std::move(base);
  }
  PartWalk walk{part, vocabulary_.words()};
  const Lexer::Entry entry = lexer_.entries(lexer)[0];
  const auto& boundaries = run.units->boundaries;
  MatchId ended = lexer_.match({entry.terminal});
  bool rest_nullable = lexer_.expressions().nullable(run.rest);
  for (size_t i = 0; i < boundaries.size();) {
    uint8_t byte = trie.byte(boundaries[i].node);
    ExprId next = lexer_.expressions().derivative(run.rest, byte);
    uint32_t entered = next == ExprId::nothing ? no_row : row_of(lexer_.state({{entry.terminal, next}}));
    for (; i < boundaries.size() && trie.byte(boundaries[i].node) == byte; ++i) {
      uint32_t units = boundaries[i].units;
      if (units < run.minimum || units > run.maximum) continue;
      if (entered != no_row) {
        walk_lexeme(walk, boundaries[i].node, entered);
      } else if (rest_nullable && units > 0) {  // at the root itself: matched_at_root
        walk.exits_of(ended).push_back(boundaries[i].node);
      }
    }
  }
  finish_part(part, walk, lexer);
}

// Paths ------------------------------------------------------------------------------------------------------------

// The units X of an expression that begins with X* without limit, or is such a one without something. Null if it is not of
// that kind, or if few tokens are made of X.
std::shared_ptr<const UnitRun> Automaton::endless_units(ExprId e, ExprId& unit) {
  ExpressionStore& expressions = lexer_.expressions();
  auto unit_of = [&](ExprId each) {
    ExpressionStore::Node node = expressions[each];
    if (node.kind == Kind::concatenation) node = expressions[ExprId{node.arg[0]}];
    bool endless = node.kind == Kind::repetition && node.arg[2] == unbounded && !expressions.nullable(ExprId{node.arg[0]});
    return endless ? ExprId{node.arg[0]} : ExprId::nothing;
  };
  unit = unit_of(e);
  if (expressions[e].kind == Kind::intersection || expressions[e].kind == Kind::alternation) {
    for (ExprId part : expressions.parts(e)) unit = unit == ExprId::nothing ? unit_of(part) : unit;
  }
  if (unit == ExprId::nothing) return nullptr;
  std::shared_ptr<const UnitRun> units = unit_run(unit);
  return units->by_units.size() > max_additions ? units : nullptr;
}

// Is the state alive after whatever is read of X*, never a whole lexeme there, and can it leave X* between units only?
bool Automaton::stays_inside(LexId lexer, ExprId unit) {
  uint64_t key = (uint64_t{index(lexer)} << 32) | index(unit);
  if (const uint8_t* known = inside_.find(key)) return *known != 0;
  ExpressionStore& expressions = lexer_.expressions();
  std::vector<std::pair<LexId, ExprId>> work{{lexer, unit}};  // a state, and what is left of the unit under way
  FlatMap<uint64_t, uint8_t> seen;
  bool inside = true;
  for (size_t i = 0; i < work.size() && inside; ++i) {
    auto [state, rest] = work[i];
    // the state itself may be a whole lexeme, as long as reading on never leads back to one
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
      uint64_t pair = (uint64_t{index(next)} << 32) | index(next_rest);
      if (seen.find(pair)) continue;
      seen.insert(pair, 1);
      work.emplace_back(next, next_rest);
    }
  }
  inside_.insert(key, inside);
  if (inside) {  // what is reached between units from here is no different
    for (const auto& [state, rest] : work) {
      if (rest == unit && lexer_.matched(state) == MatchId::none) inside_.insert((uint64_t{index(state)} << 32) | index(unit), 1);
    }
  }
  return inside;
}

// A pattern that may be found anywhere goes on with any character: some part of the state is X*R. Then all tokens of X*
// stay inside, and only the ways to where a token leaves X* need be walked.
bool Automaton::part_by_paths(LexemePart& part, LexId lexer) {
  ExpressionStore& expressions = lexer_.expressions();
  std::shared_ptr<const UnitRun> units;
  ExprId unit{};
  ByteSet alphabet;
  for (size_t e = 0; e < lexer_.entries(lexer).size(); ++e) {
    const ExprId whole = lexer_.entries(lexer)[e].expression;
    alphabet = alphabet | expressions.alphabet(whole);
    if (!units) units = endless_units(whole, unit);
  }
  if (!units || !stays_inside(lexer, unit)) return false;
  part.base = units->all;
  PartWalk walk{part, vocabulary_.words()};
  const Trie& trie = vocabulary_.trie();
  // targets in trie order; between two of them, climb to their common ancestor
  std::vector<uint32_t> targets;
  for (const UnitRun::Boundary& boundary : units->boundaries) {
    if (alphabet.contains(trie.byte(boundary.node))) targets.push_back(boundary.node);
  }
  std::sort(targets.begin(), targets.end());
  struct Frame {
    uint32_t node, row;
  };
  std::vector<Frame> path{{Trie::root, row_of(lexer)}};
  for (uint32_t target : targets) {
    while (path.back().node != Trie::root && trie.end(path.back().node) <= target) path.pop_back();
    while (true) {
      uint32_t child = path.back().node + 1;
      while (trie.end(child) <= target) child = trie.end(child);
      uint32_t next = row_step(path.back().row, trie.byte(child));
      if (child != target) {  // inside X*, so alive
        path.push_back({child, next});
        continue;
      }
      if (next != no_row) {
        walk_lexeme(walk, child, next);
      } else if (path.back().node != Trie::root && rows_[path.back().row]->matched != MatchId::none) {
        walk.exits_of(rows_[path.back().row]->matched).push_back(child);
      }
      break;
    }
  }
  finish_part(part, walk, lexer);
  return true;
}

// Differences -------------------------------------------------------------------------------------------------------

// The bytes after which a state may differ from a plain one, if that is easily told: where each entry begins with one
// byte only, or is the plain expression, perhaps without finitely many texts.
bool Automaton::differing_bytes(uint32_t own, uint32_t plain, ByteSet& bytes) {
  if (own == no_row || plain == no_row) return false;
  ExpressionStore& expressions = lexer_.expressions();
  const auto [terminal, wide] = lexer_.entries(rows_[plain]->lexer)[0];
  bool has_wide = false;
  for (const Lexer::Entry& entry : lexer_.entries(rows_[own]->lexer)) {
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
        without_few &= part == wide || (each.kind == Kind::complement && expressions[ExprId{each.arg[0]}].finite);
        if (each.kind == Kind::complement) first = first | expressions.first(ExprId{each.arg[0]});
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

// Walks the state beside a simpler expression whose part is known or cheap, as long as the two differ. Applies where an
// entry is "something wide, without a few texts", or is itself a run beside narrower entries.
bool Automaton::part_by_difference(LexemePart& part, LexId lexer) {
  ExpressionStore& expressions = lexer_.expressions();
  const std::vector<Lexer::Entry> entries = lexer_.copy_of_entries(lexer);
  ExprId wide = ExprId::nothing;
  uint32_t position = 0;
  for (uint32_t i = 0; i < entries.size() && wide == ExprId::nothing; ++i) {
    ExprId e = entries[i].expression;
    position = i;
    Run run;
    if (expressions[e].kind == Kind::intersection) {
      ExprId positive = ExprId::nothing;
      bool simple = true;
      for (ExprId each : expressions.parts(e)) {  // nothing is made here, so the span stays valid
        const ExpressionStore::Node& node = expressions[each];
        if (node.kind == Kind::complement) {
          simple &= expressions[ExprId{node.arg[0]}].finite;
        } else {
          simple &= positive == ExprId::nothing;
          positive = each;
        }
      }
      if (simple) wide = positive;
    } else if (entries.size() > 1 && find_run(e, run) && run.units->by_units.size() > max_additions) {  // else the others may be wider
      wide = e;
    }
  }
  if (wide == ExprId::nothing) return false;
  for (uint32_t i = 0; i < entries.size(); ++i) {  // beside something as wide, the two would differ everywhere
    if (ExprId unit; i != position && endless_units(entries[i].expression, unit)) return false;
  }
  const TermId terminal = entries[position].terminal;
  LexId plain = lexer_.state({{terminal, wide}});
  if (plain == lexer) return false;
  std::shared_ptr<const LexemePart> base = this->part(plain);
  part.base = base->base;
  part.remove = base->remove;
  part.add = base->add;

  const Trie& trie = vocabulary_.trie();
  PartWalk walk{part, vocabulary_.words()};
  std::vector<uint32_t> added, removed, not_exits;
  struct Frame {
    uint32_t node, own, other;
  };
  std::vector<Frame> stack;
  auto children = [&](uint32_t node, uint32_t own, uint32_t other) {
    bool ends = node != Trie::root && own != no_row && rows_[own]->matched != MatchId::none;
    bool other_ends = node != Trie::root && other != no_row && rows_[other]->matched != MatchId::none;
    ByteSet differing;
    bool all = ends || other_ends || !differing_bytes(own, other, differing);
    trie.each_child(node, [&](uint32_t child) {
      if (!all && !differing.contains(trie.byte(child))) return;
      uint32_t next = own == no_row ? own : row_step(own, trie.byte(child));
      uint32_t next_other = other == no_row ? other : row_step(other, trie.byte(child));
      if (other_ends && next_other == no_row) not_exits.push_back(child);
      if (ends && next == no_row) walk.exits_of(rows_[own]->matched).push_back(child);
      if (next != next_other) stack.push_back({child, next, next_other});
    });
  };
  children(Trie::root, row_of(lexer), row_of(plain));
  while (!stack.empty()) {
    Frame at = stack.back();
    stack.pop_back();
    if (at.own != no_row && at.other == no_row) add_tokens(added, at.node);
    if (at.own == no_row && at.other != no_row) add_tokens(removed, at.node);
    children(at.node, at.own, at.other);
  }

  std::sort(removed.begin(), removed.end());
  std::erase_if(part.add, [&](uint32_t token) { return std::binary_search(removed.begin(), removed.end(), token); });
  part.remove.insert(part.remove.end(), removed.begin(), removed.end());
  std::sort(added.begin(), added.end());
  std::erase_if(part.remove, [&](uint32_t token) { return std::binary_search(added.begin(), added.end(), token); });
  part.add.insert(part.add.end(), added.begin(), added.end());

  std::sort(not_exits.begin(), not_exits.end());
  for (const Exits& group : base->exits) {  // the plain state has one entry, so one group
    std::vector<uint32_t>& nodes = walk.exits_of(lexer_.match({terminal}));
    for (uint32_t node : group.nodes) {
      if (!std::binary_search(not_exits.begin(), not_exits.end(), node)) nodes.push_back(node);
    }
  }
  finish_part(part, walk, lexer);
  return true;
}

}  // namespace constrain
