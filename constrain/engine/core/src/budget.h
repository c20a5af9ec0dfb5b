// The token budget: which tokens leave enough of it to finish.
//
// What it takes to finish is limited from above twice. `Bounds` adds up what is known of a set: cheap enough to be asked
// for every mask, and while even that fits, masks are what they are without a budget. Where it does not, `tokens_needed`
// counts the tokens of a real way to finish for everything that a token may lead to. Invariant: a token that is allowed
// leaves a way to finish that fits; the next token of the matcher's plan is always among them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "bounds.h"
#include "budget_questions.h"
#include "completions.h"
#include "hashing.h"
#include "lexeme_ends.h"
#include "masks.h"
#include "stepping.h"
#include "vocabulary.h"

namespace constrain {

class Budget {
 public:
  static constexpr uint64_t never_fits = ~uint64_t{0};
  struct Remaining {
    uint64_t left;        // tokens, the next one included
    size_t read;          // bytes of the longest text or value that has been remembered, at most
    uint64_t needed;      // tokens of the plan
    uint32_t plan_token;  // always allowed; Vocabulary::no_token if the plan is to end here
    bool soft;            // close what is open: begin nothing new
  };
  struct Narrowed {
    bool by_budget;
    LimitSet limits;  // that were met in telling what fits
  };

  Budget(Stepping& stepping, const Vocabulary& vocabulary, ContextIndependentTokens& independent, LexemeEnds& ends, Masks& masks,
         Completions& completions, RulePaths& paths)
      : stepping_(stepping), vocabulary_(vocabulary), independent_(independent), ends_(ends), masks_(masks), completions_(completions),
        bounds_(stepping, vocabulary, paths, completions), grammar_(stepping.grammar()), lexer_(stepping.lexer()), parser_(stepping.parser()) {}

  void prepare() { bounds_.prepare(); }
  // Whether the text can surely be completed in at most `tokens`: from `place`, or also after any token of `mask` but those
  // that depend on the text.
  bool surely_fits(const Place& place, size_t read, uint64_t tokens);
  bool any_surely_fits(const Mask& mask, const Place& place, size_t read, uint64_t tokens);

  // Writes a mask all of whose tokens fit, but those that depend on the text, which are judged. Returns the limits met.
  LimitSet fill(const Mask& mask, const Place& place, std::span<uint32_t> words, const Remaining& remaining);
  // Writes the tokens of a mask that fit.
  Narrowed fill_fitting(const Mask& mask, const Place& place, const Remaining& remaining, std::span<uint32_t> words);

  std::string counted_completion(const Place& place);  // by which masks judge whether a token fits

  size_t memory_bytes() const { return bounds_.memory_bytes() + tokens_needed_.bytes() + unknown_needs_.bytes(); }

 private:
  bool fits_from_set(const Place& place, size_t read, uint64_t tokens, BudgetQuestions& questions);
  bool fits(const Place& place, const Remaining& remaining, BudgetQuestions& questions);  // after a token
  bool allows(const Place& place, uint32_t token, const Remaining& remaining, BudgetQuestions& questions);
  uint64_t tokens_needed(const Place& place, BudgetQuestions& questions);  // of the way to finish that is known, or never_fits
  uint64_t find_tokens_needed(const Place& place, bool by_rules, BudgetQuestions& questions, const Hash& key);
  bool counts_by_rules(const Place& place, BudgetQuestions& questions) { return grammar_.self_delimiting && !text_matters(place, questions); }
  bool text_matters(const Place& place, BudgetQuestions& questions);
  Hash completion_key(const Place& place, bool by_rules);
  void add_fitting(const Mask& mask, const Place& place, const Remaining& remaining, const Bitmask& all, std::span<uint32_t> words,
                   BudgetQuestions& questions);
  void add_fitting_ends(const Place& place, const Remaining& remaining, Bitmask& known, std::span<uint32_t> words, BudgetQuestions& questions);

  Stepping& stepping_;
  const Vocabulary& vocabulary_;
  ContextIndependentTokens& independent_;
  LexemeEnds& ends_;
  Masks& masks_;
  Completions& completions_;
  Bounds bounds_;
  const Grammar& grammar_;
  Lexer& lexer_;
  Parser& parser_;
  FlatMap<Hash, uint64_t> tokens_needed_;
  FlatMap<Hash, Limit> unknown_needs_;  // why those of tokens_needed_ that never fit are not known
};

}  // namespace constrain
