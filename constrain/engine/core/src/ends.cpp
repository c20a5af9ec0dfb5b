// Tokens that stay in a lexeme, by the lexer state they leave it in: what a budget asks about one by one.
//
// In a run of one unit, X{m,n}R, which tokens begin how many units is known from one walk for all m, n and R, as it is
// for masks (lexeme_parts.cpp).
#include <algorithm>

#include "automaton.h"

namespace constrain {

// A walk's result on the way.
struct Automaton::EndsWalk {
  std::vector<std::pair<LexId, TokenSet>> ends{};
  FlatMap<uint32_t, uint32_t> numbers{};  // by row
};

const std::vector<Automaton::End>& Automaton::ends_of(LexId lexer) {
  if (const uint32_t* found = end_ids_.find(index(lexer))) return ends_[*found];
  ends_.push_back(find_ends(lexer));
  end_ids_.insert(index(lexer), static_cast<uint32_t>(ends_.size() - 1));
  end_bytes_ += ends_.back().size() * sizeof(End);
  return ends_.back();
}

std::vector<Automaton::End> Automaton::find_ends(LexId lexer) {
  const Trie& trie = vocabulary_.trie();
  std::vector<End> ends;
  EndsWalk walk;
  const std::vector<Lexer::Entry> entries = lexer_.copy_of_entries(lexer);
  Run run;
  if (entries.size() == 1 && find_run(entries[0].expression, run)) {
    const std::shared_ptr<const UnitEnds> inside = unit_ends(run.unit, *run.units);
    for (const UnitEnds::Group& group : inside->groups) {
      if (group.units > run.maximum) continue;
      LexId after = lexer;
      for (char c : vocabulary_.token(group.token)) after = lexer_.step(after, static_cast<uint8_t>(c));
      ends.push_back({after, group.tokens});
    }
    const std::vector<UnitRun::Boundary>& boundaries = run.units->boundaries;
    for (size_t i = 0; i < boundaries.size();) {
      const uint8_t byte = trie.byte(boundaries[i].node);
      const ExprId next = lexer_.expressions().derivative(run.rest, byte);
      const uint32_t row = next == ExprId::nothing ? no_row : row_of(lexer_.state({{entries[0].terminal, next}}));
      for (; i < boundaries.size() && trie.byte(boundaries[i].node) == byte; ++i) {
        const bool may_end = boundaries[i].units >= run.minimum && boundaries[i].units <= run.maximum;
        if (row != no_row && may_end) walk_ends(walk, boundaries[i].node, row);
      }
    }
  } else {
    const uint32_t row = row_of(lexer);
    trie.each_child(Trie::root, [&](uint32_t child) {
      const uint32_t next = row_step(row, trie.byte(child));
      if (next != no_row) walk_ends(walk, child, next);
    });
  }
  for (auto& [after, tokens] : walk.ends) {
    end_bytes_ += tokens.memory_bytes();
    ends.push_back({after, std::make_shared<const TokenSet>(std::move(tokens))});
  }
  return ends;
}

// From `node`, whose byte has just led to `row`.
void Automaton::walk_ends(EndsWalk& walk, uint32_t node, uint32_t row) {
  const Trie& trie = vocabulary_.trie();
  auto add = [&](uint32_t at, uint32_t reached) {
    const std::span<const uint32_t> tokens = trie.tokens(at);
    if (tokens.empty()) return;
    const uint32_t* found = walk.numbers.find(reached);
    const auto number = found ? *found : static_cast<uint32_t>(walk.ends.size());
    if (!found) {
      walk.numbers.insert(reached, number);
      walk.ends.emplace_back(rows_[reached]->lexer, TokenSet{});
    }
    walk.ends[number].second.add(tokens, vocabulary_.words());
  };
  struct Frame {
    uint32_t end, row;
  };
  std::vector<Frame> path{{trie.end(node), row}};
  const uint32_t end = trie.end(node);
  add(node, row);
  for (++node; node < end;) {
    while (path.back().end <= node) path.pop_back();
    const uint32_t next = row_step(path.back().row, trie.byte(node));
    if (next == no_row) {
      node = trie.end(node);
      continue;
    }
    add(node, next);
    if (trie.has_children(node)) path.push_back({trie.end(node), next});
    ++node;
  }
}

std::shared_ptr<const UnitEnds> Automaton::unit_ends(ExprId unit, const UnitRun& run) {
  const Hash key = mix(seeded(0x656E6473), lexer_.expressions().hash(unit));
  if (std::shared_ptr<const UnitEnds> known = vocabulary_.find_ends(key)) return known;
  const uint32_t whole = row_of(lexer_.state({{TermId{0}, unit}}));
  FlatMap<uint64_t, uint32_t> numbers;  // by units, and row within the last one
  std::vector<std::pair<UnitEnds::Group, TokenSet>> found;
  for (const auto& [units, token] : run.by_units) {
    uint32_t row = whole;
    for (char c : vocabulary_.token(token)) {
      row = row_step(row, static_cast<uint8_t>(c));
      if (rows_[row]->matched != MatchId::none) row = whole;
    }
    const uint64_t end = (uint64_t{units} << 32) | row;
    const uint32_t* number = numbers.find(end);
    if (!number) {
      numbers.insert(end, static_cast<uint32_t>(found.size()));
      found.push_back({{units, token, nullptr}, TokenSet{}});
      number = numbers.find(end);
    }
    found[*number].second.add({&token, 1}, vocabulary_.words());
  }
  auto ends = std::make_shared<UnitEnds>();
  for (auto& [group, tokens] : found) {
    ends->groups.push_back({group.units, group.token, std::make_shared<const TokenSet>(std::move(tokens))});
  }
  vocabulary_.keep_ends(key, ends);
  return ends;
}

}  // namespace constrain
