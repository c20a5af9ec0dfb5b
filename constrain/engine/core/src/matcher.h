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

#include "automaton.h"
#include "compiled_grammar.h"
#include "vocabulary.h"

namespace constrain {

// Where a token fails: after `offset` of its bytes, when one of `terminals` had to go on or begin.
struct Explanation {
  bool allowed = false;
  bool at_end = false;  // the token ends the text, which is not complete
  bool at_limit = false;  // the lexeme under way has had its tokens, and this one is left out
  LimitSet limits;        // that the mask met; this token is not in it
  uint32_t offset = 0;
  std::vector<uint32_t> terminals;
};

// All methods: with the grammar's mutex held. Invariant: places_ and progress_ have one entry more than tokens_.
//
// With a budget, a place has a plan (a way to finish within the tokens left), or all ways on from it are known to fit. A
// token that the plan begins with is always allowed; after another one that is, its own way to finish is the plan.
// Where the tokens of one lexeme are limited, it counts them; what is left at the limit, LexemeLimits says.
//
// A mask and what `accept` takes are the same. Where a mask is exact, stepping a token tells whether it is in the mask.
// Where it is not (a limit was met, or the budget has a say), it is kept, and `accept` looks tokens up. From a mask to the
// token after it a matcher stays in its generation: what is known of the next one, and so a limited mask, may differ.
class Matcher {
 public:
  // `lexeme_limits`: by kind of terminal. Throws BudgetError if `max_tokens` are too few for any text.
  explicit Matcher(std::shared_ptr<CompiledGrammar> grammar, std::optional<uint64_t> max_tokens = std::nullopt,
                   const std::vector<std::optional<uint64_t>>& lexeme_limits = {});

  CompiledGrammar& grammar() { return *grammar_; }
  bool is_current() const { return automaton_ == grammar_->automaton(); }  // of the grammar's generation
  void catch_up() { here(); }
  bool is_full() const;  // the next token begins a new generation
  bool accept(uint32_t token);
  void rollback(size_t count);  // count <= accepted()
  void reset();
  size_t accepted() const { return tokens_.size(); }

  const Mask* known_mask();  // null if it must be computed
  const Mask& mask();
  // `mask`: that of this place, just asked for. `ample`: whether the budget has no say in it.
  bool ample(const Mask& mask);
  bool plain(const Mask& mask);  // it need only be copied
  void fill(const Mask& mask, std::span<uint32_t> words);
  void prepare();  // computes what `fill` needs
  bool accepting();
  bool finished();
  bool ended() const { return ended_; }  // end-of-generation was taken
  std::string shortest_completion();
  uint64_t tokens_to_finish();                // fewest, on the way that `completion` goes
  std::vector<uint32_t> completion();         // tokens of a short way to finish; within the budget, if there is one
  bool narrowed() const { return progress_.back().narrowed; }  // by the budget, somewhere on the way here
  uint64_t shortened() const { return progress_.back().shortened_lexemes; }  // lexemes that a limit narrowed
  uint64_t limited_masks() const { return progress_.back().limited_masks; }  // on the way here, this one included
  LimitSet limits_met() const { return progress_.back().limits; }            // in these
  bool limit_reached();
  bool knows_words() { return words_ || limited_ || !limit_reached(); }  // or needs not
  bool known_plain() const { return plain_; }
  std::string forced_bytes();
  std::pair<std::string, std::vector<uint32_t>> forced_after(std::string_view before);
  Explanation explain(uint32_t token);

 private:
  using Plan = Vocabulary::Spelling;
  struct Progress {
    std::shared_ptr<const Plan> plan;  // or null, if everything fits
    size_t at = 0;                     // of its text has been read
    size_t read = 0;                   // bytes of the longest text or value that was remembered, at most
    size_t lexeme = 0;                 // bytes of the lexeme under way, if it is remembered, at most
    bool narrowed = false;
    bool shortened = false;         // the lexeme under way, by its limit
    uint32_t lexeme_tokens = 0;     // of the lexeme under way, the one included that it began in; where there are limits
    uint32_t word_tokens = 0;       // of these: beyond the limit, and with no shorter rest than there was before
    uint64_t least_rest = LexemeLimits::endless;  // bytes, beyond the limit
    uint32_t shortened_lexemes = 0;  // on the way here
    bool limited = false;            // the mask here, by limits of the kernel
    uint32_t limited_masks = 0;      // on the way here
    LimitSet limits;
  };

  Place& here();  // in the current generation
  bool tracks() const { return tracks_; }
  void track();
  bool settled() const { return exact_ || words_; }
  void unsettle();
  void keep_last();
  void settle(uint32_t token);
  bool begins_plan(uint32_t token) const;
  bool step_over(Place& place, uint32_t token);
  void note_limits(LimitSet limits);
  void allow_plan(std::span<uint32_t> words);
  uint64_t left() const { return max_tokens_ ? *max_tokens_ - (tokens_.size() - ended_) : Budget::never_fits; }
  std::shared_ptr<const Plan> plan_from(const Place& place, const Plan* like, uint64_t limit);
  const Progress& planned();
  void go_on(Progress& progress, const Place& from, const Place& place, std::string_view token);
  LimitSet fill_within_budget(const Mask& mask, std::span<uint32_t> words);
  const Bitmask& limited(const Mask& mask);  // what is allowed where a limit is reached, the budget aside
  void count_lexeme_tokens(Progress& progress, const Place& from, const Place& place, std::string_view token, bool at_limit);

  std::shared_ptr<CompiledGrammar> grammar_;
  std::shared_ptr<Automaton> automaton_;
  std::vector<uint32_t> tokens_;
  std::vector<Place> places_;
  std::optional<uint64_t> max_tokens_;
  uint64_t margin_ = 0;  // tokens before the last moment in which what is open is closed
  std::vector<uint64_t> limits_;  // by kind of terminal
  uint64_t least_limit_ = LexemeLimits::none;
  std::shared_ptr<const Bitmask> limited_;  // here, once it was asked for
  std::vector<Progress> progress_;  // one entry, unless something is tracked
  bool tracks_ = false;
  bool ample_ = false;  // all tokens of the mask here are known to fit
  bool exact_ = false;  // the mask here was asked for: stepping tells what is in it
  bool plain_ = false;  // and it need only be copied
  std::shared_ptr<const Bitmask> words_;  // the mask here, if it was asked for and is not exact
  struct {
    size_t accepted = 0;
    std::shared_ptr<const Bitmask> words;
    bool exact = false;
  } last_;  // the mask before the last token, for when that is taken back
  bool ended_ = false;
};

}  // namespace constrain
