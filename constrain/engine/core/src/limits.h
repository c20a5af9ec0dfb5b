// The limits that one may meet while a text is generated: their names, their values, and sets of those that were met.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace constrain {

enum class Limit : uint8_t {
  compile_work,  // and all others that are met before a text is begun
  mask_work,
  call_work,
  intersection_states,
  length_sets,
  nested_decisions,
  expression_depth,
  shortest_match,
  nested_groups,
  path_states,
  searched_places,
  budget_questions,
};

inline constexpr std::array<std::string_view, 12> limit_names{
    "MAX_COMPILE_WORK",     "MAX_MASK_WORK",        "MAX_CALL_WORK",      "MAX_INTERSECTION_STATES",
    "MAX_LENGTH_SETS",      "MAX_NESTED_DECISIONS", "MAX_EXPRESSION_DEPTH", "MAX_SHORTEST_MATCH",
    "MAX_NESTED_GROUPS",    "MAX_PATH_STATES",      "MAX_SEARCHED_PLACES",  "MAX_BUDGET_QUESTIONS",
};

class LimitSet {
 public:
  LimitSet() = default;
  explicit LimitSet(Limit limit) { add(limit); }
  void add(Limit limit) { bits_ |= static_cast<uint16_t>(1u << static_cast<unsigned>(limit)); }
  void add(LimitSet other) { bits_ |= other.bits_; }
  bool empty() const { return bits_ == 0; }
  bool operator==(const LimitSet&) const = default;

  template <typename F>
  void each(F&& visit) const {  // ascending
    for (unsigned bits = bits_; bits != 0; bits &= bits - 1) visit(static_cast<Limit>(std::countr_zero(bits)));
  }
  template <typename Archive>
  void visit(Archive& archive) {
    archive(bits_);
  }

 private:
  uint16_t bits_ = 0;
};

// Values of those that a grammar's tables keep to. Other values than these are for tests.
struct Limits {
  size_t mask_work = 300'000;    // derivatives that one mask may make; beyond, the mask is that of single bytes
  size_t call_work = 2'000'000;  // derivatives that any other call may make, and the verifying of those single bytes
  uint32_t intersection_states = 20'000;
  uint32_t length_sets = 20'000;
  uint32_t nested_decisions = 100;  // questions whether something matches, each within another
  size_t budget_questions = 4'000;  // about sets and ways to finish, for one mask near the end of a budget
  size_t budget_searches = 256;     // the same, where each may take a search
};

}  // namespace constrain
