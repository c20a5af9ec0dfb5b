// A compiled grammar: immutable to its users, shared between threads; and the change of generations.
//
// Invariant: its mutex guards the automaton and all that is behind it. A generation ends when its tables outgrow the limit;
// matchers that still stand in it keep it until they move.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "automaton.h"
#include "grammar.h"
#include "vocabulary.h"

namespace constrain {

class CompiledGrammar {
 public:
  // `limit`: bytes that one generation of tables may take.
  CompiledGrammar(Grammar grammar, std::shared_ptr<const Vocabulary> vocabulary, size_t limit, const Limits& limits = {});
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

  // What it takes, as of the last mask that was computed for a matcher: tables, the grammar, and what is stored. For any thread.
  size_t memory_bytes() const { return memory_bytes_.load(std::memory_order_relaxed); }

  // All below: with the mutex held.
  const std::shared_ptr<Automaton>& automaton() { return automaton_; }
  size_t table_bytes() const;  // and updates memory_bytes
  bool is_full() const;
  void renew_if_full();  // starts a new generation once the tables have outgrown the limit
  void keep_what_is_in_use();  // after a replay: the tables may grow to twice what they take now
  bool accepts(std::string_view text);
  uint32_t generation() const { return generation_; }
  uint64_t limited_masks() const { return limited_masks_; }  // that matchers were given, in all generations
  void count_limited_mask() { ++limited_masks_; }
  std::string stored();  // the grammar, and this generation with the masks met so far

 private:
  void check_bytes();
  bool takes_long_to_finish();
  bool counts_nest() const;
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
  mutable std::atomic<size_t> memory_bytes_ = 0;
  std::mutex mutex_;
  std::shared_ptr<Automaton> automaton_;
  uint32_t generation_ = 0;
  const Limits limits_;
  uint64_t limited_masks_ = 0;
};

}  // namespace constrain
