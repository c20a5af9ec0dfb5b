// A compiled grammar (immutable to its users, shared between threads) and its matchers (small, one per sequence).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "automaton.h"
#include "grammar.h"
#include "vocabulary.h"

namespace constrain {

class CompiledGrammar {
 public:
  // `limit`: bytes that one generation of tables may take.
  CompiledGrammar(Grammar grammar, std::shared_ptr<const Vocabulary> vocabulary, size_t limit);
  // From what `stored` returned, in some process (storage.cpp). Look-ups go on reading it.
  struct Stored {
    std::span<const std::byte> data;
    std::shared_ptr<const void> owner;
  };
  CompiledGrammar(Stored stored, std::shared_ptr<const Vocabulary> vocabulary, size_t limit);

  std::mutex& mutex() { return mutex_; }
  const Vocabulary& vocabulary() const { return *vocabulary_; }
  const Grammar& grammar() const { return grammar_; }
  const Hash& seed() const { return seed_; }  // with which all its tables are hashed

  // All below: with the mutex held.
  const std::shared_ptr<Automaton>& automaton() { return automaton_; }
  void renew_if_full();  // starts a new generation once the tables have outgrown the limit
  void keep_what_is_in_use();  // after a replay: the tables may grow to twice what they take now
  bool accepts(std::string_view text);
  uint32_t generation() const { return generation_; }
  std::string stored();  // the grammar, and this generation with the masks met so far

 private:
  void check_bytes();
  void renew();
  void restore_expressions();

  Stored stored_;
  Hash seed_ = process_seed();
  Grammar grammar_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  size_t limit_;
  bool expressions_there_ = true;  // if not, those of grammar_ are to be read from what is stored
  std::span<const std::byte> stored_expressions_;
  size_t threshold_ = 0;
  std::mutex mutex_;
  std::shared_ptr<Automaton> automaton_;
  uint32_t generation_ = 0;
};

// Where a token fails: after `offset` of its bytes, when one of `terminals` had to go on or begin.
struct Explanation {
  bool allowed = false;
  bool at_end = false;  // the token ends the text, which is not complete
  uint32_t offset = 0;
  std::vector<uint32_t> terminals;
};

// All methods: with the grammar's mutex held. Invariant: places_ and progress_ have one entry more than tokens_.
//
// With a budget, a place has a plan (a way to finish within the tokens left), or all ways on from it are known to fit. A
// token that the plan begins with is always allowed; after another one that is, its own way to finish is the plan.
class Matcher {
 public:
  // Throws BudgetError if `max_tokens` are too few for any text.
  explicit Matcher(std::shared_ptr<CompiledGrammar> grammar, std::optional<uint64_t> max_tokens = std::nullopt);

  CompiledGrammar& grammar() { return *grammar_; }
  bool accept(uint32_t token);
  void rollback(size_t count);  // count <= accepted()
  void reset();
  size_t accepted() const { return tokens_.size(); }

  const Mask* known_mask();  // null if it must be computed
  const Mask& mask();
  // `mask`: that of this place, just asked for. `ample`: whether the budget has no say in it.
  bool ample(const Mask& mask);
  void fill(const Mask& mask, std::span<uint32_t> words);
  bool accepting();
  bool finished();
  bool ended() const { return ended_; }  // end-of-generation was taken
  std::string shortest_completion();
  uint64_t tokens_to_finish();                // fewest, on the way that `completion` goes
  std::vector<uint32_t> completion();         // tokens of a short way to finish; within the budget, if there is one
  bool narrowed() const { return progress_.back().narrowed; }  // by the budget, somewhere on the way here
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
  };

  Place& here();  // in the current generation
  uint64_t left() const { return *max_tokens_ - (tokens_.size() - ended_); }
  std::shared_ptr<const Plan> plan_from(const Place& place, const Plan* like, uint64_t limit);
  const Progress& planned();
  bool goes_on(Progress& progress, const Place& from, const Place& place, std::string_view token);

  std::shared_ptr<CompiledGrammar> grammar_;
  std::shared_ptr<Automaton> automaton_;
  std::vector<uint32_t> tokens_;
  std::vector<Place> places_;
  std::optional<uint64_t> max_tokens_;
  uint64_t margin_ = 0;  // tokens before the last moment in which what is open is closed
  std::vector<Progress> progress_;
  bool ample_ = false;  // all tokens of the mask here are known to fit
  bool ended_ = false;
};

}  // namespace constrain
