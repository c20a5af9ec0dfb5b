// A compiled grammar: immutable to its users and shared between threads. It replaces its automaton when that grows too
// large.
//
// Invariant: the mutex guards the automaton and all tables behind it. A generation ends when its tables outgrow the
// limit; a matcher that still stands in it keeps it until the matcher moves.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"
#include "matching/automaton.h"
#include "vocabulary/token_classes.h"
#include "vocabulary/vocabulary.h"

namespace constrain {

// What a grammar says of whole tokens: the classes that it reads as marks, and the most tokens between border i, for each
// i, and the last border, which ends all these rules.
struct TokenRules {
  std::vector<TokenClasses::Ranges> classes;
  std::vector<uint64_t> limits;
};

class CompiledGrammar {
 public:
  // `limit`: bytes that the tables of one generation may take.
  CompiledGrammar(Grammar grammar, std::shared_ptr<const Vocabulary> vocabulary, size_t limit, const Limits& limits = {}, TokenRules rules = {});
  // Reads what `stored` of some process has written (storage.cpp). Later look-ups still read from these bytes.
  struct Stored {
    std::span<const std::byte> data;
    std::shared_ptr<const void> owner;
  };
  CompiledGrammar(Stored stored, std::shared_ptr<const Vocabulary> vocabulary, size_t limit, std::vector<TokenClasses::Ranges> classes = {});

  std::mutex& mutex() { return mutex_; }
  const Vocabulary& vocabulary() const { return *vocabulary_; }
  const TokenClasses& classes() const { return classes_; }
  const std::vector<uint64_t>& rule_limits() const { return rule_limits_; }  // by the border at which the rule begins
  bool has_readings() const { return classes_.any() || !rule_limits_.empty(); }  // tokens may be read in several ways
  // Borders have ids behind those of the vocabulary.
  uint32_t border(size_t number) const { return vocabulary_->size() + static_cast<uint32_t>(number); }
  bool is_border(uint32_t id) const { return id >= vocabulary_->size(); }
  std::string_view bytes_of(uint32_t id) const { return is_border(id) ? std::string_view(borders_[id - vocabulary_->size()]) : vocabulary_->token(id); }
  const Grammar& grammar() const { return grammar_; }
  const Hash& seed() const { return seed_; }  // the seed with which all tables are hashed

  // Bytes of tables, grammar and stored data after the last mask computed for a matcher. Any thread may ask.
  size_t memory_bytes() const { return memory_bytes_.load(std::memory_order_relaxed); }

  // The methods below are called with the mutex held.
  const std::shared_ptr<Automaton>& automaton() { return automaton_; }
  size_t table_bytes() const;  // also updates memory_bytes
  bool is_full() const;
  void renew_if_full();  // starts a new generation if the tables have outgrown the limit
  void keep_what_is_in_use();  // after a replay: lets the tables grow to twice their present size
  bool accepts(std::string_view text);
  // Another way to read a part of a text: as the bytes of `instead`.
  struct Detour {
    size_t begin, end;
    std::string instead;
  };
  bool accepts(std::string_view text, std::span<const Detour> detours);  // sorted by `begin`; any of them may be taken
  struct ReadLexeme {
    size_t end;                       // offset behind its last byte
    std::vector<uint32_t> terminals;  // that it matches, of the grammar
  };
  std::optional<std::vector<ReadLexeme>> lexemes(std::string_view text);  // none if the text does not match
  // The lexemes of all ways to read a text: edges between nodes, which are places between lexemes. Node 0 is the
  // beginning of the text, and the last node its end; nodes ascend by their offsets. Some nodes may lead nowhere.
  struct LexemeGraph {
    struct Lexeme {
      uint32_t begin, end;              // nodes
      std::vector<uint32_t> terminals;  // that it matches, of the grammar
    };
    std::vector<size_t> offsets;  // by node
    std::vector<Lexeme> lexemes;
  };
  std::optional<LexemeGraph> lexeme_graph(std::string_view text, std::span<const Detour> detours);
  uint32_t generation() const { return generation_; }
  uint64_t limited_masks() const { return limited_masks_; }  // given to matchers, in all generations
  void count_limited_mask() { ++limited_masks_; }
  std::string stored();  // the grammar, and this generation with its masks

 private:
  static std::shared_ptr<const Vocabulary> with_marks(std::shared_ptr<const Vocabulary> vocabulary, const std::vector<TokenClasses::Ranges>& classes);
  std::vector<uint32_t> terminals_read(const Place& place);  // by the lexeme that ends at a place
  void check_bytes();
  void check_token_limits();
  bool takes_long_to_finish();
  bool counts_nest() const;
  void renew();
  void restore_expressions();

  Stored stored_;
  Hash seed_ = process_seed();
  Grammar grammar_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  TokenClasses classes_;
  std::vector<uint64_t> rule_limits_;
  std::vector<std::string> borders_;  // one more than rules with a limit
  size_t limit_;
  bool expressions_there_ = true;  // if false, the expressions of grammar_ are still to be read from the stored bytes
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
