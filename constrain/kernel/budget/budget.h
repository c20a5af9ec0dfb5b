// The token budget (`max_tokens`): the tokens that leave enough of it to finish.
//
// Two upper bounds tell how many tokens a way to finish takes. `Bounds` adds up what is known of a set: cheap enough
// for every mask, and while it fits, the mask needs no budget. Where it does not fit, `tokens_needed` counts the tokens
// of a real way to finish for each place that a token leads to. Invariant: an allowed token leaves a way to finish that
// fits; the next token of the matcher's plan is always allowed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/hashing.h"
#include "budget/bounds.h"
#include "budget/budget_questions.h"
#include "completions/completions.h"
#include "completions/token_limits.h"
#include "lexing/lexeme_ends.h"
#include "masks/masks.h"
#include "parsing/stepping.h"
#include "vocabulary/vocabulary.h"

namespace constrain {

class Budget {
 public:
  static constexpr uint64_t never_fits = ~uint64_t{0};
  struct Remaining {
    uint64_t left;        // tokens left, the next one included
    size_t read;          // at most the bytes of the longest remembered text or value
    uint64_t needed;      // tokens of the plan
    uint32_t plan_token;  // always allowed; Vocabulary::no_token if the plan ends here
    bool soft;            // begin no new values
    // In a rule with a limit: the tokens that follow the rule on the plan. `left` may then be those of the rule and these.
    std::optional<uint64_t> after = {};
  };
  struct Narrowed {
    bool by_budget;
    LimitSet limits;  // limits met while deciding what fits
  };

  Budget(Stepping& stepping, const Vocabulary& vocabulary, ContextIndependentTokens& independent, LexemeEnds& ends,
         TokenLimits& limits, Masks& masks, Completions& completions, RulePaths& paths)
      : stepping_(stepping), vocabulary_(vocabulary), independent_(independent), ends_(ends), limits_(limits), masks_(masks), completions_(completions),
        bounds_(stepping, vocabulary, paths, completions), grammar_(stepping.grammar()), lexer_(stepping.lexer()), parser_(stepping.parser()) {}

  void prepare() { bounds_.prepare(); }
  // Whether a bound shows that at most `tokens` complete the text: from `place`, or also after each token of `mask`
  // except context-dependent ones. `after`: see Remaining.
  uint64_t sure(uint64_t tokens, std::optional<uint64_t> after) const;  // of these tokens, those of which a bound may be sure
  bool surely_fits(const Place& place, size_t read, uint64_t tokens);
  bool any_surely_fits(const Mask& mask, const Place& place, size_t read, uint64_t tokens);

  // Writes a mask whose tokens all fit, and judges its context-dependent tokens. Returns the limits met.
  LimitSet fill(const Mask& mask, const Place& place, std::span<uint32_t> words, const Remaining& remaining);
  // Writes the tokens of a mask that fit. Returns the limits met.
  Narrowed fill_fitting(const Mask& mask, const Place& place, const Remaining& remaining, std::span<uint32_t> words);

  std::string counted_completion(const Place& place);  // the way to finish with which masks judge a token

  size_t memory_bytes() const { return bounds_.memory_bytes() + tokens_needed_.bytes() + unknown_needs_.bytes(); }

 private:
  bool fits_from_set(const Place& place, size_t read, uint64_t tokens, BudgetQuestions& questions);
  // Whether a token that led to `place` fits.
  bool fits(const Place& place, const Remaining& remaining, BudgetQuestions& questions);
  bool allows(const Place& place, uint32_t token, const Remaining& remaining, BudgetQuestions& questions);
  // Tokens of the known way to finish, or never_fits.
  uint64_t tokens_needed(const Place& place, BudgetQuestions& questions, bool in_rule);
  uint64_t find_tokens_needed(const Place& place, bool by_rules, BudgetQuestions& questions, const Hash& key, bool in_rule);
  bool counts_by_rules(const Place& place, BudgetQuestions& questions) { return grammar_.self_delimiting && !text_matters(place, questions); }
  bool text_matters(const Place& place, BudgetQuestions& questions);
  Hash completion_key(const Place& place, bool by_rules);
  void add_fitting(const Mask& mask, const Place& place, const Remaining& remaining, const Bitmask& all, std::span<uint32_t> words,
                   BudgetQuestions& questions);
  void add_fitting_ends(const Place& place, Remaining remaining, Bitmask& known, std::span<uint32_t> words, BudgetQuestions& questions);

  Stepping& stepping_;
  const Vocabulary& vocabulary_;
  ContextIndependentTokens& independent_;
  LexemeEnds& ends_;
  TokenLimits& limits_;
  Masks& masks_;
  Completions& completions_;
  Bounds bounds_;
  const Grammar& grammar_;
  Lexer& lexer_;
  Parser& parser_;
  FlatMap<Hash, uint64_t> tokens_needed_;
  FlatMap<Hash, Limit> unknown_needs_;  // the limit that kept an entry of tokens_needed_ from being known
};

}  // namespace constrain
