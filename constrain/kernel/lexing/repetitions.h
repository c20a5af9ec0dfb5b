// Repetitions X{m,n}R of a prefix-free unit X ("inside a JSON string"): the tokens made of units, and where they end.
//
// One walk of the trie for each unit X, whose result the vocabulary keeps for all grammars. A text divides into units
// in one way only, so the number of units that each token begins decides for every m, n and R. Invariant: the result
// for a unit depends only on its expression and the vocabulary.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "lexing/lexer.h"
#include "lexing/transition_rows.h"
#include "vocabulary/vocabulary.h"

namespace constrain {

struct Repetition {
  ExprId unit, rest;
  uint32_t minimum, maximum;
  std::shared_ptr<const UnitTokens> tokens;
};

class Repetitions {
 public:
  Repetitions(Lexer& lexer, const Vocabulary& vocabulary, TransitionRows& rows) : lexer_(lexer), vocabulary_(vocabulary), rows_(rows) {}

  // `e` as X{m,n}R: X prefix-free, no byte begins both X and R, and if R is nullable, n is more than a token can reach.
  std::optional<Repetition> find(ExprId e);
  std::shared_ptr<const UnitTokens> tokens_of(ExprId unit);
  // The units X of an expression that begins with X* without limit, or is such an expression without some texts. Null
  // for other expressions, and if few tokens are made of X.
  std::shared_ptr<const UnitTokens> endless(ExprId e, ExprId& unit);
  std::shared_ptr<const UnitEnds> ends_of(ExprId unit, const UnitTokens& tokens);

  static constexpr size_t few_tokens = 2048;  // up to this many tokens do not justify a shortcut

 private:
  void walk(UnitTokens& found, Bitmask& all, ExprId unit, bool& prefix_free);

  Lexer& lexer_;
  const Vocabulary& vocabulary_;
  TransitionRows& rows_;
};

// A stable counting sort by the byte of a node.
template <typename T, typename F>
std::vector<T> sorted_by_byte(const Trie& trie, const std::vector<T>& items, F&& node_of) {
  std::array<size_t, 256> place{};
  for (const T& item : items) ++place[trie.byte(node_of(item))];
  size_t next = 0;
  for (size_t& each : place) next += std::exchange(each, next);
  std::vector<T> sorted(items.size());
  for (const T& item : items) sorted[place[trie.byte(node_of(item))]++] = item;
  return sorted;
}

}  // namespace constrain
