// Context-independent tokens: what a lexer state alone says about every token.
//
// A lexer state tells which tokens stay inside the lexeme, and where the others leave it (exits). The parser's sets do
// not matter, so the result is kept by lexer state; if all its terminals are the grammar's own, in the vocabulary's
// store for all grammars. Invariant: each shortcut gives the tokens that a walk of the whole trie gives.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/hashing.h"
#include "expressions/counts.h"
#include "grammar/grammar.h"
#include "lexing/lexer.h"
#include "lexing/repetitions.h"
#include "lexing/transition_rows.h"
#include "vocabulary/vocabulary.h"

namespace constrain {

class ContextIndependentTokens {
 public:
  ContextIndependentTokens(const Grammar& grammar, Lexer& lexer, const Vocabulary& vocabulary, TransitionRows& rows, Repetitions& repetitions)
      : grammar_(grammar), lexer_(lexer), vocabulary_(vocabulary), rows_(rows), repetitions_(repetitions) {}

  std::shared_ptr<const IndependentTokens> of(LexId lexer);
  // The tokens of `lexer` that leave a lexeme at `exits`, at whose bytes `lexer` begins. Null if they are few. The
  // exits must be those of kept tokens.
  const IndependentTokens* after(const Exits& exits, LexId lexer);

  size_t memory_bytes() const { return tokens_.size() * 64 + ids_after_.bytes() + inside_.bytes() + bytes_; }

  template <typename Archive>
  void visit(Archive& archive) {  // without the tokens, which the vocabulary keeps
    archive(bytes_, inside_);
  }

 private:
  struct Walk;
  struct Wide {  // an entry of a state that has most of its texts
    ExprId expression = ExprId::nothing;
    uint32_t position = 0;
  };
  struct Difference {  // of a state from a plain one
    std::vector<uint32_t> added, removed;  // tokens
    std::vector<uint32_t> not_exits;       // nodes that are exits of the plain state only
  };

  Hash key(LexId lexer);
  Hash key(const Lexer::Entry& entry) const;
  std::optional<Repetition> repetition(const std::vector<Lexer::Entry>& entries);
  bool is_shareable(LexId lexer) const;
  void keep(const Hash& key, bool shareable, const std::shared_ptr<const IndependentTokens>& tokens);
  std::shared_ptr<const IndependentTokens> make(LexId lexer, LexId& like);
  std::shared_ptr<const IndependentTokens> make_after(const Exits& exits, LexId lexer);
  bool has_many_after(const Exits& exits, LexId lexer);

  void by_repetition(IndependentTokens& tokens, LexId lexer, const Repetition& repetition);
  std::shared_ptr<const IndependentTokens> without_far_counts(LexId lexer, LexId& like);
  std::optional<std::vector<uint32_t>> nodes_beyond(const Uncounted& conditions);
  std::shared_ptr<const std::vector<uint32_t>> most_begun(ExprId unit);
  bool by_difference(IndependentTokens& tokens, LexId lexer);
  bool by_paths(IndependentTokens& tokens, LexId lexer);
  void by_walk(IndependentTokens& tokens, LexId lexer);
  void walk_loop(Walk& walk, std::span<const uint32_t> children, uint32_t row);

  void take_fitting(IndependentTokens& tokens, const Repetition& repetition) const;
  Wide find_wide(const std::vector<Lexer::Entry>& entries);
  void apply(IndependentTokens& tokens, Difference& found, const IndependentTokens& plain);
  void keep_exits(Walk& walk, MatchId matched, const Exits& group, const Difference& found);
  void compare_at(Difference& found, uint32_t node, uint32_t own, uint32_t other);
  std::pair<uint32_t, uint32_t> compare_child(Walk& walk, Difference& found, uint32_t node, uint32_t child, uint32_t own, uint32_t other);
  Difference walk_in_parallel(Walk& walk, LexId lexer, LexId plain);
  Difference walk_paths_in_parallel(Walk& walk, LexId lexer, LexId plain, std::span<const uint32_t> targets);
  bool differing_bytes(uint32_t own, uint32_t plain, ByteSet& bytes);
  bool stays_inside(LexId lexer, ExprId unit);
  void follow(Walk& walk, uint32_t node, uint32_t row);
  void follow_texts(Walk& walk, uint32_t node, uint32_t row);
  void finish(IndependentTokens& tokens, Walk& walk, LexId lexer);

  const Grammar& grammar_;
  Lexer& lexer_;
  FarCounts far_counts_{lexer_.expressions()};
  const Vocabulary& vocabulary_;
  TransitionRows& rows_;
  Repetitions& repetitions_;
  FlatMap<uint32_t, uint32_t> ids_;  // by lexer state
  std::vector<std::shared_ptr<const IndependentTokens>> tokens_;
  FlatMap<Hash, uint32_t> ids_after_;  // the exits of one of tokens_, by the lexer state that follows
  FlatMap<uint64_t, uint8_t> inside_;  // results of stays_inside, by lexer state and unit
  size_t bytes_ = 0;                   // bytes of tokens outside the vocabulary's store
};

}  // namespace constrain
