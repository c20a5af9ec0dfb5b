// Tokens that stay in a lexeme, grouped by the lexer state they lead to: the states that budgets and lexeme limits
// judge one by one.
//
// Invariant: the groups of a state are disjoint; together they are all tokens that stay in the lexeme.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "lexing/lexer.h"
#include "lexing/repetitions.h"
#include "lexing/transition_rows.h"
#include "vocabulary/vocabulary.h"

namespace constrain {

struct LexemeEnd {
  LexId lexer;  // the state after each of the tokens
  std::shared_ptr<const TokenSet> tokens;
};

class LexemeEnds {
 public:
  LexemeEnds(Lexer& lexer, const Vocabulary& vocabulary, TransitionRows& rows, Repetitions& repetitions)
      : lexer_(lexer), vocabulary_(vocabulary), rows_(rows), repetitions_(repetitions) {}

  const std::vector<LexemeEnd>& of(LexId lexer);
  size_t memory_bytes() const { return ids_.bytes() + bytes_; }

 private:
  struct Walk;
  std::vector<LexemeEnd> find(LexId lexer);
  void add_repetition(std::vector<LexemeEnd>& ends, Walk& walk, LexId lexer, const Repetition& repetition);
  void follow(Walk& walk, uint32_t node, uint32_t row);

  Lexer& lexer_;
  const Vocabulary& vocabulary_;
  TransitionRows& rows_;
  Repetitions& repetitions_;
  FlatMap<uint32_t, uint32_t> ids_;  // by lexer state
  std::deque<std::vector<LexemeEnd>> ends_;
  size_t bytes_ = 0;
};

}  // namespace constrain
