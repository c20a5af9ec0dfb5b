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

// All methods: with the grammar's mutex held.
//
// A *reading* is one way to read the tokens so far. There are several only if the grammar asks for tokens by id, or limits
// the tokens of rules: a token may then be read by its text or as the mark of its class, and between two tokens such a rule
// may begin or end. Readings with the same future are one. A mask has the tokens that any reading allows, and each reading
// can be completed by itself. Invariant: begins_ has one entry more than tokens_; the readings after i tokens stand from
// begins_[i] on in readings_. Progress_ has an entry for each reading, and present_ one for each of the present ones.
// Private methods are about the reading current_.
//
// With a budget, a reading has a plan (a way to finish within the tokens left), or all ways on from it are known to fit.
// The next token of the plan is always allowed; after another allowed token, that token's own way to finish is the
// plan. In a rule with a limit, the tokens left are at most those of the rule and those that follow it on the plan, which
// are the same on each plan. If the tokens of one lexeme are limited, the matcher counts them, and LexemeLimits decides at
// the limit.
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
  bool is_full() const;  // the next token begins a new generation
  bool accept(uint32_t token);
  void rollback(size_t count);  // count <= accepted()
  void reset();
  // Goes on in another grammar, as if that had read all tokens, with another budget and other limits of lexemes. Returns
  // false, and changes nothing, if the grammar does not take them, or cannot end the text within the budget. Only for
  // grammars without several readings. The tokens of a rollback must have been accepted in this grammar.
  bool change_to(std::shared_ptr<CompiledGrammar> grammar, std::optional<uint64_t> max_tokens,
                 const std::vector<std::optional<uint64_t>>& lexeme_limits);
  size_t accepted() const { return tokens_.size(); }
  size_t readings() const { return readings_.size() - begins_.back(); }

  // Masks of tokens; they may be asked for until the text has ended.
  bool knows_mask();
  bool known_plain() const;
  bool is_quick();  // the mask need only be copied, and accepting a token takes no search
  void fill(std::span<uint32_t> words);
  void fill_unlimited(std::span<uint32_t> words);  // without regard to the budget and limits of lexemes
  void prepare();  // computes all that `fill` needs
  bool accepting();
  bool finished();
  bool ended() const { return ended_; }  // end-of-generation was accepted
  std::string shortest_completion();
  uint64_t tokens_to_finish();                // fewest, for the text of `completion`
  std::vector<uint32_t> completion();         // tokens of a short way to finish; within the budget, if there is one
  bool narrowed();           // the budget narrowed a mask on the way here
  bool narrowed_in_rule();   // the limit of a rule did
  uint64_t shortened();      // lexemes that a limit narrowed
  uint64_t limited_masks();  // on the way here, this one included
  LimitSet limits_met();     // by these masks
  bool cut();  // no token is left, and the text could go on
  Lexeme lexeme();    // only with a budget or limits
  bool near_limit();  // the budget, or the limit of the lexeme, may narrow one of the next 32 masks
  std::string forced_bytes();
  std::pair<std::string, std::vector<uint32_t>> forced_after(std::string_view before);
  Explanation explain(uint32_t token);
  // Terminals that may continue or begin here, in the grammar's order.
  std::vector<uint32_t> expected();
  std::optional<double> temperature();

 private:
  using Plan = Vocabulary::Spelling;
  struct Reading {
    Place place;
    uint32_t before = 0;  // the reading that it was before `id`
    uint32_t id = 0;      // the id that it read: a token, a mark, or a border
  };
  struct LimitedRule {
    size_t number;
    size_t begin;                             // tokens before it
    std::string rest;                         // the text that follows its end on each plan
    uint64_t after;                           // the tokens of that text
    uint64_t margin;
    bool operator==(const LimitedRule& other) const { return number == other.number && begin == other.begin; }  // the same future
  };
  struct Progress {
    std::shared_ptr<const Plan> plan;  // null if everything fits
    size_t at = 0;                     // bytes of the plan's text that have been read
    size_t read = 0;                   // at most the bytes of the longest remembered text or value
    size_t lexeme = 0;                 // at most the bytes of the current lexeme, if it is remembered
    std::shared_ptr<const LimitedRule> rule;  // in which the place is
    bool narrowed = false;
    bool narrowed_in_rule = false;
    bool shortened = false;         // a limit has narrowed the current lexeme
    uint32_t lexeme_tokens = 0;     // of the current lexeme, the first one included
    uint32_t shortened_lexemes = 0;  // on the way here
    bool limited = false;            // limits of the kernel narrowed the present mask
    bool left_out = false;           // readings on the way here were too many, so masks lack tokens
    uint32_t limited_masks = 0;      // on the way here
    LimitSet limits;
  };

  // Calls `f` with each present reading as the current one, and then with the first one.
  template <typename F>
  void each_reading(F&& f) {
    for (current_ = begins_.back(); current_ < readings_.size(); ++current_) f();
    current_ = begins_.back();
  }
  template <typename F>
  bool any_reading(F&& f) {
    bool found = false;
    each_reading([&] { found = found || f(); });
    return found;
  }
  template <typename F>
  void fill_all(std::span<uint32_t> words, F&& fill);
  const Place& place() const { return readings_[current_].place; }
  Progress& progress() { return progress_[tracks_ ? current_ : 0]; }
  const Progress& progress() const { return progress_[tracks_ ? current_ : 0]; }
  PresentMask& present() { return present_[current_ - begins_.back()]; }
  bool is_asked() const;

  const Place& here();  // in the current generation
  void replay(std::shared_ptr<Automaton> next);
  void begin();
  void begin_budget();
  void read(uint32_t id);
  void read_in_order(uint32_t token, uint32_t mark);
  bool add(const Place& place, uint32_t before, uint32_t id, Progress&& progress);
  void drop(size_t first);
  void note_left_out();
  void follow_borders();
  void add_with_borders(const Place& place, uint32_t before, uint32_t id, Progress progress);
  std::optional<Place> beyond(uint32_t border);
  void begin_rule(size_t number);
  void end_rule();
  Place resolved(const Place& place);
  std::vector<uint32_t> terminals_at(Place place);
  void track();
  void keep_last();
  void settle(uint32_t id);
  bool begins_plan(uint32_t id) const;
  bool step_over(Place& place, uint32_t id);
  bool step_in_plan(Place& place, std::string_view bytes);
  // `mask`: the mask of this place, just asked for. `ample`: whether the budget does not narrow it.
  const Mask* known_mask();  // null if it must be computed
  const Mask& mask();
  bool ample(const Mask& mask);
  bool plain(const Mask& mask);  // the mask need only be copied
  void fill(const Mask& mask, std::span<uint32_t> words);
  void fill_unlimited(const Mask& mask, std::span<uint32_t> words);
  bool accepts_end();
  bool reads_no_more();
  bool can_go_on();
  uint64_t needed_here();
  bool limit_reached();
  bool knows_refused();
  const TokenSet* refused(const Mask& mask);  // tokens of the mask that limits of lexemes leave out; null for none
  void note_limits(LimitSet limits);
  void allow_plan(std::span<uint32_t> words);
  bool has_budget() const { return max_tokens_ || progress().rule; }
  uint64_t left_of_text() const { return max_tokens_ ? *max_tokens_ - (tokens_.size() - ended_) : Budget::never_fits; }
  uint64_t left_of_rule() const { return grammar_->rule_limits()[progress().rule->number] - (tokens_.size() - progress().rule->begin); }
  bool rule_decides() const { return progress().rule && left_of_rule() + progress().rule->after < left_of_text(); }
  uint64_t left() const { return rule_decides() ? left_of_rule() + progress().rule->after : left_of_text(); }
  bool is_used_up() const { return left_of_text() == 0 || (progress().rule && left_of_rule() == 0); }
  uint64_t margin() const { return rule_decides() ? progress().rule->margin : margin_; }
  std::optional<uint64_t> after_rule() const { return progress().rule ? std::optional(progress().rule->after) : std::nullopt; }
  std::shared_ptr<const Plan> plan_from(const Place& place, const Plan* like, uint64_t limit, const std::string* rest = nullptr);
  std::shared_ptr<const Plan> plan_here(uint64_t limit);
  const Progress& planned();
  void plan_after(Progress& progress, const Place& place, size_t read, const Plan* like, uint64_t left_after, const std::string* rest);
  void go_on(Progress& progress, const Place& from, const Place& place, std::string_view token);
  LimitSet fill_within_budget(const Mask& mask, std::span<uint32_t> words);
  std::shared_ptr<const Bitmask> limited(const Mask& mask);  // the tokens allowed at the limit of a lexeme, budget ignored
  void count_lexeme_tokens(Progress& progress, const Place& from, const Place& place, std::string_view token);
  Explanation explain_here(uint32_t id);

  std::shared_ptr<CompiledGrammar> grammar_;
  std::shared_ptr<Automaton> automaton_;
  std::vector<uint32_t> tokens_;
  std::vector<Reading> readings_;
  std::vector<uint32_t> begins_;
  uint32_t current_ = 0;
  std::optional<uint64_t> max_tokens_;
  uint64_t margin_ = 0;  // tokens before the last moment at which open values begin to be closed
  std::vector<uint64_t> limits_;  // by kind of terminal
  uint64_t least_limit_ = LexemeLimits::none;
  std::vector<Progress> progress_;  // one entry, unless progress is tracked
  bool tracks_ = false;
  std::vector<PresentMask> present_;
  std::vector<Place> futures_;  // while readings are added: theirs
  LimitSet left_out_;           // and the limits that keep some of them out
  struct {
    size_t accepted = 0;
    std::vector<PresentMask> masks;
  } last_;  // before the last token, for a rollback of one token; no masks: unknown
  bool ended_ = false;
};

}  // namespace constrain
