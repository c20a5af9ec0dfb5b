// The kernel's own errors; the binding turns each into the Python class of the same name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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
  std::optional<uint32_t> terminal;  // of the grammar: the one that takes so much, if it is one
  std::string pointer;               // where that comes from; empty if nobody knows
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

// What `f` returns. A limit that it meets is met by this terminal of the grammar, unless it says otherwise.
template <typename F>
decltype(auto) of_terminal(uint32_t terminal, F&& f) {
  try {
    return f();
  } catch (LimitError& error) {
    if (!error.terminal) error.terminal = terminal;
    throw;
  }
}

// "what (MAX_NAME = 100)"; `value`: another one than the limit's own; `times`: of it, as "10 * ".
inline std::string limit_message(std::string_view what, const NamedLimit& limit, size_t value, const char* times = "") {
  return std::string(what) + " (" + times + std::string(limit.name) + " = " + std::to_string(value) + ")";
}
inline std::string limit_message(std::string_view what, const NamedLimit& limit) { return limit_message(what, limit, limit.value); }

}  // namespace constrain
