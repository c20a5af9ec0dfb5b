// A compiled grammar (immutable to its users, shared between threads) and its matchers (small, one per sequence).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
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

// All methods: with the grammar's mutex held. Invariant: places_ has one entry more than tokens_.
class Matcher {
 public:
  explicit Matcher(std::shared_ptr<CompiledGrammar> grammar);

  CompiledGrammar& grammar() { return *grammar_; }
  bool accept(uint32_t token);
  void rollback(size_t count);  // count <= accepted()
  void reset();
  size_t accepted() const { return tokens_.size(); }

  const Mask* known_mask();  // null if it must be computed
  const Mask& mask();
  void fill(const Mask& mask, std::span<uint32_t> words);  // `mask`: that of this place, just asked for
  bool accepting();
  bool finished();
  bool ended() const { return ended_; }  // end-of-generation was taken
  std::string shortest_completion();
  uint32_t shortest_completion_tokens();
  std::string forced_bytes();
  Explanation explain(uint32_t token);

 private:
  Place& here();  // in the current generation

  std::shared_ptr<CompiledGrammar> grammar_;
  std::shared_ptr<Automaton> automaton_;
  std::vector<uint32_t> tokens_;
  std::vector<Place> places_;
  bool ended_ = false;
};

}  // namespace constrain
