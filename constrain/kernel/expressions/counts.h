// Expressions without long counts, for proofs that need few derivatives; and without far counts, which are out of a
// token's reach: many states then have the same tokens.
//
// Invariant: an expression without its long counts matches all texts of the original, and perhaps more. An expression
// and the one without its far counts agree on which texts of at most `short_text` bytes match or begin a match, and on
// longer texts that keep the conditions.
#pragma once

#include <deque>

#include "expressions/expressions.h"

namespace constrain {

// Remembers expressions of one store, which every call gets. Counts in complements stay.
class LongCounts {
 public:
  ExprId without(ExpressionStore& store, ExprId e);

 private:
  ExprId find(ExpressionStore& store, ExprId e);

  FlatMap<uint32_t, uint32_t> without_;
};

// An expression without the counts that no short text uses up, and the conditions on longer texts.
struct Uncounted {
  struct Count {
    ExprId unit;
    uint32_t most;  // a text keeps the condition if it begins at most so many units in a row
  };
  ExprId expression;
  uint64_t most_bytes = ~uint64_t{0};  // a text keeps the condition if it is not longer
  std::vector<Count> counts = {};
};

class FarCounts {
 public:
  static constexpr uint32_t short_text = 16;  // bytes

  explicit FarCounts(ExpressionStore& store) : store_(store), lengths_(store.nodes()) {}
  const Uncounted& without(ExprId e);

 private:
  Uncounted find(ExprId e);
  Uncounted of_chain(ExprId e);
  Uncounted of_repetition(ExprId e);
  Uncounted of_window(ExprId e);
  bool keeps_units(ExprId part, ExprId unit);

  ExpressionStore& store_;
  Lengths lengths_;
  FlatMap<uint32_t, uint32_t> ids_;
  std::deque<Uncounted> uncounted_;
  FlatMap<uint64_t, uint8_t> keeps_units_;  // by expression and unit
};

// What bounds the number of units in a text: the bytes with which one may begin and end, its bytes, and its least length.
struct UnitBounds {
  ByteSet first, last, alphabet;
  uint32_t least;
  uint32_t most_begun(std::string_view text) const;  // an upper bound, wherever in the text the first unit begins
};
UnitBounds unit_bounds(ExpressionStore& store, ExprId unit);

}  // namespace constrain
