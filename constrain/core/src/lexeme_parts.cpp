// What a lexer state alone says about every token: which stay inside the lexeme, and where the others leave it.
//
// Three ways, cheapest first:
//   - a run of one unit, X{m,n}R ("inside a JSON string"): the tokens made of X are known from one walk of the trie for
//     all m, n and R; only what follows them is walked;
//   - a state that differs from a run, or from a plain expression, along a few literals only ("any key but these"): both
//     are walked side by side, and no further once they agree;
//   - any other: the trie is walked.
#include <algorithm>

#include "automaton.h"

namespace constrain {

namespace {

constexpr uint32_t unknown_step = 0xFFFFFFFFu;
constexpr size_t max_rows = 1024;       // dense transition rows at a time, 1 KiB each
constexpr size_t kept_rows = 32;        // ... and between walks
constexpr size_t max_additions = 2048;  // more single tokens than this are worth a bitmask
constexpr size_t max_removals = 512;

using Kind = ExpressionStore::Kind;

}  // namespace

struct Automaton::PartWalk {
  LexemePart& part;
  std::vector<std::pair<MatchId, std::vector<uint32_t>>> exits{};

  std::vector<uint32_t>& exits_of(MatchId matched) {
    for (auto& [known, nodes] : exits) {
      if (known == matched) return nodes;
    }
    return exits.emplace_back(matched, std::vector<uint32_t>{}).second;
  }
};

// A lexer step through a dense row: a trie walk asks the same few states for many bytes.
LexId Automaton::walk_step(LexId lexer, uint8_t byte) {
  const uint32_t* row = row_ids_.find(index(lexer));
  if (!row) {
    if (rows_.size() >= max_rows) {
      rows_.clear();
      row_ids_ = {};
    }
    row_ids_.insert(index(lexer), static_cast<uint32_t>(rows_.size()));
    rows_.emplace_back().fill(unknown_step);
    row = row_ids_.find(index(lexer));
  }
  uint32_t& next = rows_[*row][byte];
  if (next == unknown_step) {
    check_work();
    next = index(lexer_.step(lexer, byte));
  }
  return LexId{next};
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
  std::span<const Lexer::Entry> entries = lexer_.entries(lexer);
  Run run;
  if (entries.size() == 1 && find_run(entries[0].expression, run)) {
    const ExpressionStore::Node& node = lexer_.expressions()[entries[0].expression];
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
  std::vector<Lexer::Entry> entries(lexer_.entries(lexer).begin(), lexer_.entries(lexer).end());
  MatchId matched = lexer_.matched(lexer);
  for (uint32_t i = 0; i < entries.size(); ++i) {
    if (lexer_.expressions().nullable(entries[i].expression)) part->matched_at_root.push_back(i);
    shareable &= index(entries[i].terminal) < grammar_.terminals.size();
  }
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
  } else if (!part_by_difference(*part, lexer)) {
    PartWalk walk{*part};
    const Trie& trie = vocabulary_.trie();
    trie.each_child(Trie::root, [&](uint32_t child) {
      LexId next = walk_step(lexer, trie.byte(child));
      if (next != LexId::dead) walk_lexeme(walk, child, next);
    });
    finish_part(*part, walk, lexer);
  }
  if (rows_.size() > kept_rows) {
    rows_ = {};
    row_ids_ = {};
  }
  return part;
}

// From `node`, whose byte has just led to `lexer`.
void Automaton::walk_lexeme(PartWalk& walk, uint32_t node, LexId lexer) {
  const Trie& trie = vocabulary_.trie();
  add_tokens(walk.part.add, node);
  if (!trie.has_children(node)) return;
  MatchId matched = lexer_.matched(lexer);
  trie.each_child(node, [&](uint32_t child) {
    LexId next = walk_step(lexer, trie.byte(child));
    if (next != LexId::dead) {
      walk_lexeme(walk, child, next);
    } else if (matched != MatchId::none) {
      walk.exits_of(matched).push_back(child);
    }
  });
}

// Brings exits into their order, terminals into positions, and many single tokens into a bitmask.
void Automaton::finish_part(LexemePart& part, PartWalk& walk, LexId lexer) {
  const Trie& trie = vocabulary_.trie();
  std::span<const Lexer::Entry> entries = lexer_.entries(lexer);
  for (auto& [matched, nodes] : walk.exits) {
    Exits group;
    for (TermId t : lexer_.terminals_of(matched)) {
      auto is_t = [t](const Lexer::Entry& entry) { return entry.terminal == t; };
      group.matched.push_back(static_cast<uint32_t>(std::find_if(entries.begin(), entries.end(), is_t) - entries.begin()));
    }
    group.nodes = std::move(nodes);
    std::sort(group.nodes.begin(), group.nodes.end(), [&trie](uint32_t a, uint32_t b) {
      return trie.byte(a) == trie.byte(b) ? a < b : trie.byte(a) < trie.byte(b);
    });
    part.exits.push_back(std::move(group));
  }
  if (part.add.size() > max_additions) {
    auto base = part.base ? std::make_shared<Bitmask>(*part.base) : std::make_shared<Bitmask>(vocabulary_.words());
    for (uint32_t token : part.remove) (*base)[token >> 5] &= ~(1u << (token & 31));
    for (uint32_t token : part.add) (*base)[token >> 5] |= 1u << (token & 31);
    part.base = std::move(base);
    part.add.clear();
    part.remove.clear();
  }
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
  LexId whole = lexer_.state({{TermId{0}, unit}});
  struct Frame {
    uint32_t end;
    LexId state;
    uint32_t units;
    bool boundary;
  };
  std::vector<Frame> path{{trie.end(Trie::root), whole, 0, true}};
  bool prefix_free = true;
  for (uint32_t node = 1; node < trie.size() && prefix_free;) {
    while (path.back().end <= node) path.pop_back();
    const Frame parent = path.back();
    LexId next = walk_step(parent.state, trie.byte(node));
    if (next == LexId::dead) {
      if (parent.boundary) run->boundaries.push_back({node, parent.units});
      node = trie.end(node);
      continue;
    }
    bool boundary = lexer_.matched(next) != MatchId::none;
    prefix_free &= !boundary || lexer_.entries(next)[0].expression == ExprId::epsilon;
    uint32_t units = parent.units + (parent.boundary ? 1 : 0);
    for (uint32_t token : trie.tokens(node)) {
      run->by_units.emplace_back(units, token);
      (*all)[token >> 5] |= 1u << (token & 31);
    }
    if (trie.has_children(node)) path.push_back({trie.end(node), boundary ? whole : next, units, boundary});
    ++node;
  }
  if (prefix_free) {
    std::sort(run->by_units.begin(), run->by_units.end(), std::greater<>());
    run->most_units = run->by_units.empty() ? 0 : run->by_units.front().first;
    std::stable_sort(run->boundaries.begin(), run->boundaries.end(), [&trie](const auto& a, const auto& b) {
      return trie.byte(a.node) < trie.byte(b.node);
    });
    run->by_units.shrink_to_fit();
    run->boundaries.shrink_to_fit();
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
    for (auto each = fits; each != by_units.end(); ++each) (*base)[each->second >> 5] |= 1u << (each->second & 31);
    part.base = std::move(base);
  }
  PartWalk walk{part};
  const Lexer::Entry entry = lexer_.entries(lexer)[0];
  const auto& boundaries = run.units->boundaries;
  MatchId ended = lexer_.match({entry.terminal});
  bool rest_nullable = lexer_.expressions().nullable(run.rest);
  for (size_t i = 0; i < boundaries.size();) {
    uint8_t byte = trie.byte(boundaries[i].node);
    ExprId next = lexer_.expressions().derivative(run.rest, byte);
    LexId entered = next == ExprId::nothing ? LexId::dead : lexer_.state({{entry.terminal, next}});
    for (; i < boundaries.size() && trie.byte(boundaries[i].node) == byte; ++i) {
      uint32_t units = boundaries[i].units;
      if (units < run.minimum || units > run.maximum) continue;
      if (entered != LexId::dead) {
        walk_lexeme(walk, boundaries[i].node, entered);
      } else if (rest_nullable && units > 0) {  // at the root itself: matched_at_root
        walk.exits_of(ended).push_back(boundaries[i].node);
      }
    }
  }
  finish_part(part, walk, lexer);
}

// Differences -------------------------------------------------------------------------------------------------------

// Walks the state beside a simpler expression whose part is known or cheap, as long as the two differ. Applies where an
// entry is "something wide, without a few texts", or is itself a run beside narrower entries.
bool Automaton::part_by_difference(LexemePart& part, LexId lexer) {
  ExpressionStore& expressions = lexer_.expressions();
  std::vector<Lexer::Entry> entries(lexer_.entries(lexer).begin(), lexer_.entries(lexer).end());
  ExprId wide = ExprId::nothing;
  uint32_t position = 0;
  for (uint32_t i = 0; i < entries.size() && wide == ExprId::nothing; ++i) {
    ExprId e = entries[i].expression;
    position = i;
    Run run;
    if (expressions[e].kind == Kind::intersection) {
      ExprId positive = ExprId::nothing;
      bool simple = true;
      for (ExprId each : expressions.parts(e)) {
        const ExpressionStore::Node& node = expressions[each];
        if (node.kind == Kind::complement) {
          simple &= expressions[ExprId{node.arg[0]}].finite;
        } else {
          simple &= positive == ExprId::nothing;
          positive = each;
        }
      }
      if (simple) wide = positive;
    } else if (entries.size() > 1 && find_run(e, run)) {
      wide = e;
    }
  }
  if (wide == ExprId::nothing) return false;
  const TermId terminal = entries[position].terminal;
  LexId plain = lexer_.state({{terminal, wide}});
  if (plain == lexer) return false;
  std::shared_ptr<const LexemePart> base = this->part(plain);
  part.base = base->base;
  part.remove = base->remove;
  part.add = base->add;

  const Trie& trie = vocabulary_.trie();
  PartWalk walk{part};
  std::vector<uint32_t> added, removed, not_exits;
  struct Frame {
    uint32_t node;
    LexId own, other;
  };
  std::vector<Frame> stack;
  auto children = [&](uint32_t node, LexId own, LexId other) {
    bool ends = node != Trie::root && own != LexId::dead && lexer_.matched(own) != MatchId::none;
    bool other_ends = node != Trie::root && other != LexId::dead && lexer_.matched(other) != MatchId::none;
    trie.each_child(node, [&](uint32_t child) {
      LexId next = own == LexId::dead ? own : walk_step(own, trie.byte(child));
      LexId next_other = other == LexId::dead ? other : walk_step(other, trie.byte(child));
      if (other_ends && next_other == LexId::dead) not_exits.push_back(child);
      if (ends && next == LexId::dead) walk.exits_of(lexer_.matched(own)).push_back(child);
      if (next != next_other) stack.push_back({child, next, next_other});
    });
  };
  children(Trie::root, lexer, plain);
  while (!stack.empty()) {
    Frame at = stack.back();
    stack.pop_back();
    if (at.own != LexId::dead && at.other == LexId::dead) add_tokens(added, at.node);
    if (at.own == LexId::dead && at.other != LexId::dead) add_tokens(removed, at.node);
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
