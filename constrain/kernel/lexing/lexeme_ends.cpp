// Finds the states that tokens inside a lexeme lead to.
//
// In a repetition of one unit, one walk gives the number of units that each token begins for all counts, as for masks
// (repetitions.h).
#include "lexing/lexeme_ends.h"

namespace constrain {

// The result of a walk in progress.
struct LexemeEnds::Walk {
  std::vector<std::pair<LexId, TokenSet>> ends{};
  FlatMap<uint32_t, uint32_t> numbers{};  // by row
};

const std::vector<LexemeEnd>& LexemeEnds::of(LexId lexer) {
  if (const uint32_t* found = ids_.find(index(lexer))) return ends_[*found];
  ends_.push_back(find(lexer));
  ids_.insert(index(lexer), static_cast<uint32_t>(ends_.size() - 1));
  bytes_ += ends_.back().size() * sizeof(LexemeEnd);
  return ends_.back();
}

std::vector<LexemeEnd> LexemeEnds::find(LexId lexer) {
  const Trie& trie = vocabulary_.trie();
  std::vector<LexemeEnd> ends;
  Walk walk;
  const std::vector<Lexer::Entry> entries = lexer_.copy_of_entries(lexer);
  const bool may_repeat = entries.size() == 1 && !lexer_.is_lazy(lexer);
  const std::optional<Repetition> repetition = may_repeat ? repetitions_.find(entries[0].expression) : std::nullopt;
  if (repetition) {
    add_repetition(ends, walk, lexer, *repetition);
  } else {
    const uint32_t row = rows_.of(lexer);
    trie.each_child(Trie::root, [&](uint32_t child) {
      const uint32_t next = rows_.step(row, trie.byte(child));
      if (next != TransitionRows::none) follow(walk, child, next);
    });
  }
  for (auto& [after, tokens] : walk.ends) {
    bytes_ += tokens.memory_bytes();
    ends.push_back({after, std::make_shared<const TokenSet>(std::move(tokens))});
  }
  return ends;
}

// Tokens within the units are known; tokens that continue after them are walked.
void LexemeEnds::add_repetition(std::vector<LexemeEnd>& ends, Walk& walk, LexId lexer, const Repetition& repetition) {
  const Trie& trie = vocabulary_.trie();
  const TermId terminal = lexer_.entries(lexer)[0].terminal;
  const std::shared_ptr<const UnitEnds> inside = repetitions_.ends_of(repetition.unit, *repetition.tokens);
  for (const UnitEnds::Group& group : inside->groups) {
    if (group.units > repetition.maximum) continue;
    LexId after = lexer;
    for (char c : vocabulary_.token(group.token)) after = lexer_.step(after, static_cast<uint8_t>(c));
    ends.push_back({after, group.tokens});
  }
  const std::vector<UnitTokens::Boundary>& boundaries = repetition.tokens->boundaries;
  for (size_t i = 0; i < boundaries.size();) {
    const uint8_t byte = trie.byte(boundaries[i].node);
    const ExprId next = lexer_.expressions().derivative(repetition.rest, byte);
    const uint32_t row = next == ExprId::nothing ? TransitionRows::none : rows_.of(lexer_.state({{terminal, next}}));
    for (; i < boundaries.size() && trie.byte(boundaries[i].node) == byte; ++i) {
      const bool may_end = boundaries[i].units >= repetition.minimum && boundaries[i].units <= repetition.maximum;
      if (row != TransitionRows::none && may_end) follow(walk, boundaries[i].node, row);
    }
  }
}

// Walks on from `node`, whose byte has just led to `row`.
void LexemeEnds::follow(Walk& walk, uint32_t node, uint32_t row) {
  const Trie& trie = vocabulary_.trie();
  auto add = [&](uint32_t at, uint32_t reached) {
    const std::span<const uint32_t> tokens = trie.tokens(at);
    if (tokens.empty()) return;
    const uint32_t* found = walk.numbers.find(reached);
    const auto number = found ? *found : static_cast<uint32_t>(walk.ends.size());
    if (!found) {
      walk.numbers.insert(reached, number);
      walk.ends.emplace_back(rows_[reached].lexer, TokenSet{});
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
    const uint32_t next = rows_.step(path.back().row, trie.byte(node));
    if (next == TransitionRows::none) {
      node = trie.end(node);
      continue;
    }
    add(node, next);
    if (trie.has_children(node)) path.push_back({trie.end(node), next});
    ++node;
  }
}

}  // namespace constrain
