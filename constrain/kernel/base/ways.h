// The ways to a mask, each of which can be left out to measure what it gains: `-DCONSTRAIN_ABLATION=ON` compiles a kernel
// that reads from the environment, once, which one CONSTRAIN_WITHOUT names. Otherwise all are used, and this costs nothing.
//
// Invariant: a mask that meets no limit does not depend on which ways are used.
#pragma once

#include <cstdlib>
#include <string_view>

namespace constrain {

#ifdef CONSTRAIN_ABLATION
inline bool uses(std::string_view way) {
  static const char* const without = std::getenv("CONSTRAIN_WITHOUT");
  return !without || std::string_view(without) != way;
}
#else
constexpr bool uses(std::string_view) { return true; }
#endif

}  // namespace constrain
