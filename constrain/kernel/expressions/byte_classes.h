// The bytes that an expression may begin with or contain, and the bytes that it distinguishes.
//
// Remembers both sets for one table of nodes, which every call gets. Invariant: a set has all bytes that such matches
// begin with or contain, and perhaps a few more.
#pragma once

#include <array>

#include "expressions/nodes.h"

namespace constrain {

class ByteClasses {
 public:
  ByteSet first(ExpressionNodes& nodes, ExprId e);     // bytes that a match may begin with
  ByteSet alphabet(ExpressionNodes& nodes, ExprId e);  // bytes that a match may contain
  // For each byte, a number of its class: derivatives of these expressions do not distinguish bytes of equal numbers.
  std::array<uint64_t, 256> classes(ExpressionNodes& nodes, std::span<const ExprId> expressions);
  // One byte of each class.
  std::vector<uint8_t> representatives(ExpressionNodes& nodes, std::span<const ExprId> expressions);

  size_t memory_bytes() const { return alphabets_.bytes() + firsts_.bytes() + collected_.size() * sizeof(uint32_t); }

  template <typename Archive>
  void visit(Archive& archive) {
    archive(alphabets_, firsts_);
  }

 private:
  ByteSet find_first(ExpressionNodes& nodes, ExprId e);
  ByteSet first_of(ExpressionNodes& nodes, ExprId e);
  ByteSet find_alphabet(ExpressionNodes& nodes, ExprId e);
  void collect(ExpressionNodes& nodes, ExprId start, std::vector<ByteSet>& out);

  FlatMap<uint32_t, ByteSet> alphabets_;
  FlatMap<uint32_t, ByteSet> firsts_;  // of alternations, intersections, tall expressions, and chains with nullable heads
  std::vector<uint32_t> collected_;    // by node: the last call of representatives that visited it
  std::vector<ExprId> uncollected_;    // nodes that this call has still to visit
  uint32_t collection_ = 0;            // the number of the last call
};

}  // namespace constrain
