// The lazily built automaton of one grammar over one vocabulary: one generation of tables, filled while they are used.
//
// All ids belong to their generation. When its tables outgrow the limit, a new generation starts from the grammar, and
// live matchers replay their tokens in it (matcher.h). Invariant: each member refers only to members above it, and
// remembers only what its own header says. Not synchronized: CompiledGrammar locks.
#pragma once

#include "base/limits.h"
#include "budget/budget.h"
#include "budget/lexeme_limits.h"
#include "completions/completions.h"
#include "completions/rule_paths.h"
#include "completions/token_limits.h"
#include "grammar/grammar.h"
#include "lexing/context_independent_tokens.h"
#include "lexing/lexeme_ends.h"
#include "lexing/repetitions.h"
#include "lexing/transition_rows.h"
#include "masks/masks.h"
#include "parsing/stepping.h"
#include "vocabulary/vocabulary.h"

namespace constrain {

class Automaton {
 public:
  Automaton(const Grammar& grammar, const Vocabulary& vocabulary, const Limits& limits = {}) : vocabulary_(vocabulary), stepping_(grammar, limits) {}

  // An empty automaton to restore: `visit` must read all that another automaton's `visit` has written.
  struct ToBeRestored {};
  Automaton(const Grammar& grammar, const Vocabulary& vocabulary, ToBeRestored)
      : vocabulary_(vocabulary), stepping_(grammar, Stepping::ToBeRestored{}) {}
  template <typename Archive>
  void visit(Archive& archive) {  // without completions and bounds (found again) and the vocabulary's store
    archive(stepping_, independent_, masks_);
  }

  const Vocabulary& vocabulary() const { return vocabulary_; }
  Stepping& stepping() { return stepping_; }
  Completions& completions() { return completions_; }
  Masks& masks() { return masks_; }
  Budget& budget() { return budget_; }
  LexemeLimits& lexeme_limits() { return lexeme_limits_; }
  TokenLimits& token_limits() { return token_limits_; }

  size_t memory_bytes() const {
    return stepping_.memory_bytes() + rows_.memory_bytes() + independent_.memory_bytes() + ends_.memory_bytes() + paths_.memory_bytes() +
           completions_.memory_bytes() + masks_.memory_bytes() + budget_.memory_bytes() + lexeme_limits_.memory_bytes() +
           token_limits_.memory_bytes();
  }

 private:
  const Vocabulary& vocabulary_;
  Stepping stepping_;
  TransitionRows rows_{stepping_.lexer()};
  Repetitions repetitions_{stepping_.lexer(), vocabulary_, rows_};
  ContextIndependentTokens independent_{stepping_.grammar(), stepping_.lexer(), vocabulary_, rows_, repetitions_};
  LexemeEnds ends_{stepping_.lexer(), vocabulary_, rows_, repetitions_};
  TokenLimits token_limits_{stepping_, vocabulary_, ends_};
  RulePaths paths_{stepping_};
  Completions completions_{stepping_, paths_, token_limits_};
  Masks masks_{stepping_, vocabulary_, independent_, completions_};
  Budget budget_{stepping_, vocabulary_, independent_, ends_, token_limits_, masks_, completions_, paths_};
  LexemeLimits lexeme_limits_{stepping_, ends_};
};

}  // namespace constrain
