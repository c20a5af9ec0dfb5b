// Matchers: one sequence each, small and cheap to copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "matching/automaton.h"
#include "matching/compiled_grammar.h"
#include "matching/present_mask.h"
#include "vocabulary/vocabulary.h"

namespace constrain {

// Where a token fails: after `offset` of its bytes, at which one of `terminals` had to continue or begin.
struct Explanation {
  bool allowed = false;
  bool at_end = false;  // the token ends the text, which is not complete
  bool at_limit = false;  // the current lexeme has reached its limit, which leaves this token out
  LimitSet limits;        // limits that the mask met; the token is not in the mask
  uint32_t offset = 0;
  std::vector<uint32_t> terminals;
};

// The current lexeme. Where several terminals may still match, it is that of the highest kind.
struct Lexeme {
  bool read = false;           // whether a lexeme is being read that can go on
  uint8_t kind = 0;            // of the terminal
  std::string rest;            // shortest end of the lexeme
  size_t tokens = 0;           // tokens read, the one in which the lexeme begins included
  size_t begin = 0;            // offset of the lexeme in this token
  uint64_t left = LexemeLimits::none;  // tokens left before the limit of the lexeme
};

// All methods: with the grammar's mutex held. Invariant: places_ and progress_ have one entry more than tokens_.
//
// With a budget, a place has a plan (a way to finish within the tokens left), or all ways on from it are known to fit.
// The next token of the plan is always allowed; after another allowed token, that token's own way to finish is the
// plan. If the tokens of one lexeme are limited, the matcher counts them, and LexemeLimits decides at the limit.
//
// A mask and `accept` always agree (see present_mask.h). Between a mask and the next token a matcher stays in its
// generation, because a limited mask may differ in the next one.
class Matcher {
 public:
  // `lexeme_limits`: by kind of terminal. Throws BudgetError if `max_tokens` are too few for any text.
  explicit Matcher(std::shared_ptr<CompiledGrammar> grammar, std::optional<uint64_t> max_tokens = std::nullopt,
                   const std::vector<std::optional<uint64_t>>& lexeme_limits = {});

  CompiledGrammar& grammar() { return *grammar_; }
  bool is_current() const { return automaton_ == grammar_->automaton(); }  // in the grammar's present generation
  void catch_up() { here(); }
  Place place();  // equal for matchers with the same future; behind the lexeme, if no byte continues it
  const void* generation() const { return automaton_.get(); }  // whose places can be compared
  bool is_full() const;  // the next token begins a new generation
  bool accept(uint32_t token);
  void rollback(size_t count);  // count <= accepted()
  // Counts tokens that are written elsewhere for the budget. False, and nothing changes, if no known way to finish fits
  // then. Not to be rolled back.
  bool spend(uint64_t count);
  void reset();
  size_t accepted() const { return tokens_.size(); }

  const Mask* known_mask();  // null if it must be computed
  const Mask& mask();
  // `mask`: the mask of this place, just asked for. `ample`: whether the budget does not narrow it.
  bool ample(const Mask& mask);
  bool plain(const Mask& mask);  // the mask need only be copied
  void fill(const Mask& mask, std::span<uint32_t> words);
  void fill_unlimited(const Mask& mask, std::span<uint32_t> words);  // without regard to the budget and limits of lexemes
  void prepare();  // computes all that `fill` needs
  bool accepting();
  bool finished();
  bool ended() const { return ended_; }  // end-of-generation was accepted
  std::string shortest_completion();
  uint64_t tokens_to_finish();                // fewest, for the text of `completion`
  std::vector<uint32_t> completion();         // tokens of a short way to finish; within the budget, if there is one
  bool narrowed() const { return progress_.back().narrowed; }  // the budget narrowed a mask on the way here
  uint64_t shortened() const { return progress_.back().shortened_lexemes; }  // lexemes that a limit narrowed
  uint64_t limited_masks() const { return progress_.back().limited_masks; }  // on the way here, this one included
  LimitSet limits_met() const { return progress_.back().limits; }            // by these masks
  bool cut();  // no token is left, and the text could go on
  bool limit_reached();
  Lexeme lexeme();    // only with a budget or limits
  bool near_limit();  // the budget, or the limit of the lexeme, may narrow one of the next 32 masks
  bool knows_refused() { return !grammar_->grammar().limits_tokens || ended_ || automaton_->token_limits().knows_refused(here()); }
  bool knows_words() { return present_.words() || !limit_reached(); }  // or no such mask is needed
  bool known_plain() const { return present_.is_plain(); }
  std::string forced_bytes();
  std::pair<std::string, std::vector<uint32_t>> forced_after(std::string_view before);
  Explanation explain(uint32_t token);
  // Terminals that may continue or begin here, in the grammar's order.
  std::vector<uint32_t> expected();
  std::optional<double> temperature();

 private:
  using Plan = Vocabulary::Spelling;
  struct Progress {
    std::shared_ptr<const Plan> plan;  // null if everything fits
    size_t at = 0;                     // bytes of the plan's text that have been read
    size_t read = 0;                   // at most the bytes of the longest remembered text or value
    size_t lexeme = 0;                 // at most the bytes of the current lexeme, if it is remembered
    bool narrowed = false;
    bool shortened = false;         // a limit has narrowed the current lexeme
    uint32_t lexeme_tokens = 0;     // of the current lexeme, the first one included
    uint32_t shortened_lexemes = 0;  // on the way here
    bool limited = false;            // limits of the kernel narrowed the present mask
    uint32_t limited_masks = 0;      // on the way here
    LimitSet limits;
  };

  Place& here();  // in the current generation
  std::vector<uint32_t> terminals_at(Place place);
  void track();
  void keep_last();
  void settle(uint32_t token);
  bool begins_plan(uint32_t token) const;
  bool step_over(Place& place, uint32_t token);
  bool step_in_plan(Place& place, std::string_view bytes);
  const TokenSet* refused(const Mask& mask);  // tokens of the mask that limits of lexemes leave out; null for none
  bool goes_on();
  void note_limits(LimitSet limits);
  void allow_plan(std::span<uint32_t> words);
  uint64_t left() const { return max_tokens_ ? *max_tokens_ - (tokens_.size() - ended_) : Budget::never_fits; }
  std::shared_ptr<const Plan> plan_from(const Place& place, const Plan* like, uint64_t limit);
  const Progress& planned();
  void go_on(Progress& progress, const Place& from, const Place& place, std::string_view token);
  LimitSet fill_within_budget(const Mask& mask, std::span<uint32_t> words);
  std::shared_ptr<const Bitmask> limited(const Mask& mask);  // the tokens allowed at the limit of a lexeme, budget ignored
  void count_lexeme_tokens(Progress& progress, const Place& from, const Place& place, std::string_view token);

  std::shared_ptr<CompiledGrammar> grammar_;
  std::shared_ptr<Automaton> automaton_;
  std::vector<uint32_t> tokens_;
  std::vector<Place> places_;
  std::optional<uint64_t> max_tokens_;
  uint64_t margin_ = 0;  // tokens before the last moment at which open values begin to be closed
  std::vector<uint64_t> limits_;  // by kind of terminal
  uint64_t least_limit_ = LexemeLimits::none;
  std::vector<Progress> progress_;  // one entry, unless progress is tracked
  bool tracks_ = false;
  PresentMask present_;
  struct {
    size_t accepted = 0;
    PresentMask mask;
  } last_;  // before the last token, for a rollback of one token
  bool ended_ = false;
};

}  // namespace constrain
