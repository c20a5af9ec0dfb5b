// The kernel's own errors; the binding turns each into the Python class of the same name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "limits.h"

namespace constrain {

struct GrammarError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct LimitError : std::runtime_error {
  explicit LimitError(const std::string& message, Limit which = Limit::compile_work) : std::runtime_error(message), limit(which) {}
  Limit limit;
};

// Whether an expression matches anything takes too long to tell.
struct UndecidedError : LimitError {
  using LimitError::LimitError;
};

struct ModelError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct BudgetError : std::runtime_error {
  BudgetError(const std::string& message, uint64_t tokens) : std::runtime_error(message), needed(tokens) {}
  uint64_t needed;  // tokens that are enough
};

inline std::string limit_message(const char* what, const char* name, size_t limit) {
  return std::string(what) + " (" + name + " = " + std::to_string(limit) + ")";
}

}  // namespace constrain
