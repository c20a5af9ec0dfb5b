// How long matches must be, and how far away their ends are, from the structure of an expression.
//
// A match that goes in a circle also matches without the circle. So among matches of at least n bytes the shortest is
// hardly longer than n: by less than the longest circle (`circle`), unless no match that short goes in a circle at all
// (`settled`). An automaton with p positions settles within p bytes, and its circles are no longer than that.
#pragma once

#include <deque>

#include "expressions/nodes.h"

namespace constrain {

// Upper bounds on the length of matches, in bytes.
struct LengthBounds {
  uint64_t least;      // of a shortest match
  uint64_t rest;       // of a shortest match of the rest, after any beginning of a match
  uint64_t longest;    // of any match
  uint64_t positions;  // states of a nondeterministic automaton
  uint64_t settled;    // a match of the rest that is longer than this has a piece that can be left out,
  uint64_t circle;     // of at most this many bytes
};

// Invariant: a bound holds for all matches, and is `no_limit` where none is known.
class Lengths {
 public:
  static constexpr uint64_t no_limit = uint64_t{1} << 40;

  explicit Lengths(const ExpressionNodes& nodes) : nodes_(nodes) {}
  LengthBounds of(ExprId e);

 private:
  LengthBounds find(ExprId e);
  LengthBounds of_set(const ExpressionNodes::Node& node);
  LengthBounds of_chain(ExprId e);
  LengthBounds of_alternation(const ExpressionNodes::Node& node);
  LengthBounds of_repetition(const ExpressionNodes::Node& node);
  LengthBounds of_window(const ExpressionNodes::Node& node);
  LengthBounds of_intersection(const ExpressionNodes::Node& node);
  LengthBounds of_substring(const ExpressionNodes::Node& node) const;
  void keep(ExprId e, const LengthBounds& bounds);
  uint64_t digits_of(const ExpressionNodes::Node& multiple) const;

  const ExpressionNodes& nodes_;
  FlatMap<uint32_t, uint32_t> ids_;
  std::deque<LengthBounds> bounds_;
};

// About how many bytes a match needs; found without a search, for searches that go where an end seems nearest.
class Distances {
 public:
  uint32_t of(const ExpressionNodes& nodes, ExprId e);

 private:
  uint32_t find(const ExpressionNodes& nodes, ExprId e);

  FlatMap<uint32_t, uint32_t> distances_;
};

}  // namespace constrain
