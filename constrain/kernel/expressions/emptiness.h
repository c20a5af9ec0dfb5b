// Decides whether intersections, complements and windows match anything: constructors ask when they make them.
//
// Remembers decisions for one store, which every call gets, because deciding makes further expressions in it.
// Invariant: a decision is exact; where one takes too long, LimitError is thrown and nothing is remembered as decided.
#pragma once

#include <optional>

#include "expressions/lengths.h"

namespace constrain {

class ExpressionStore;

class Emptiness {
 public:
  bool decide_intersection(ExpressionStore& store, ExprId e);
  bool decide_window(ExpressionStore& store, ExprId part, ExprId unit, ExprId unit_state, uint32_t minimum, uint32_t maximum);
  bool is_universal(ExpressionStore& store, ExprId e);

  // The first byte of the match that proved an intersection live, if it took a search.
  std::optional<uint8_t> onward(ExprId e) const {
    const int16_t known = verdict(e);
    return known >= 0 ? std::optional(static_cast<uint8_t>(known)) : std::nullopt;
  }
  // How a match of a window goes on.
  std::optional<std::string> repeats_to_end(ExpressionStore& store, ExprId part, ExprId unit, uint32_t minimum, uint32_t maximum);
  std::vector<ExprId> after_unit(ExpressionStore& store, ExprId part, ExprId unit, ExprId unit_state);
  std::vector<ExprId> after_units(ExpressionStore& store, const std::vector<ExprId>& parts, ExprId unit);
  bool ends_units(ExpressionStore& store, ExprId part, ExprId unit);

  size_t memory_bytes() const { return verdicts_.size() * sizeof(int16_t) + unit_ids_.bytes(); }

  template <typename Archive>
  void visit(Archive& archive) {
    archive(verdicts_, undecided_, universal_, unit_ids_, unit_targets_);
  }

 private:
  static constexpr int16_t unknown = -3, empty = -2, live = -1;  // or the byte of `onward`
  int16_t verdict(ExprId e) const { return index(e) < verdicts_.size() ? verdicts_[index(e)] : unknown; }
  void set_verdict(ExprId e, int16_t verdict);
  std::optional<bool> decide_multiple(ExpressionStore& store, ExprId e);
  std::optional<bool> multiple_completes(ExpressionStore& store, ExprId digits, const ExpressionNodes::Multiple& machine, uint64_t residue, bool begun);

  std::vector<int16_t> verdicts_;          // of intersections
  FlatMap<uint32_t, uint32_t> undecided_;  // intersections whose emptiness takes more states to decide
  FlatMap<uint32_t, uint8_t> universal_;
  FlatMap<Hash, uint32_t> unit_ids_;
  std::vector<std::vector<ExprId>> unit_targets_;
  Distances distances_;
};

}  // namespace constrain
