// Questions that take the derivatives of an expression, one after the other.
#pragma once

#include <optional>

#include "expressions/expressions.h"

namespace constrain {

// All matches, shortest first, if there are at most `limit`.
std::optional<std::vector<std::string>> list_matches(ExpressionStore& store, ExprId e, size_t limit);

// Whether there are infinitely many matches; no answer if that takes more than `max_states` derivatives.
std::optional<bool> has_endless_matches(ExpressionStore& store, ExprId e, size_t max_states);

// The length of the longest rest (LengthBounds::rest), and the number of derivatives; Lengths::no_limit if there are
// more than `max_states`.
struct Explored {
  uint64_t rest, states;
};
Explored explore(ExpressionStore& store, ExprId e, size_t max_states);

// The deterministic automaton of an expression, the start first, for grammars that read a terminal byte by byte; no
// answer if it has more than `max_states` states.
struct AutomatonEdge {
  uint32_t target;
  std::vector<std::pair<unsigned, unsigned>> ranges;  // of bytes, inclusive and ascending
};
struct AutomatonState {
  bool accepting;
  std::vector<AutomatonEdge> edges;  // by target, in the order of their first bytes
};
std::optional<std::vector<AutomatonState>> automaton_of(ExpressionStore& store, ExprId e, size_t max_states);

// The texts that the expression matches.
SortedTexts matching_texts(ExpressionStore& store, ExprId e, const SortedTexts& texts);

}  // namespace constrain
