// The kernel's own errors; the binding turns each into the Python class of the same name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "base/limits.h"

namespace constrain {

struct GrammarError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A terminal's limit on its tokens is too small for this vocabulary.
struct TokenLimitError : GrammarError {
  TokenLimitError(const std::string& message, uint32_t which) : GrammarError(message), terminal(which) {}
  uint32_t terminal;
};

struct LimitError : std::runtime_error {
  explicit LimitError(const std::string& message, Limit which = Limit::compile_work) : std::runtime_error(message), limit(which) {}
  Limit limit;
  std::optional<uint32_t> terminal;  // the grammar's terminal that caused the error, if a single one did
  std::string pointer;               // the place of that terminal in the source; empty if unknown
};

// Deciding whether an expression matches anything takes too long.
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

// Returns the result of `f`. A LimitError without a terminal gets this terminal of the grammar.
template <typename F>
decltype(auto) of_terminal(uint32_t terminal, F&& f) {
  try {
    return f();
  } catch (LimitError& error) {
    if (!error.terminal) error.terminal = terminal;
    throw;
  }
}

// A message "what (MAX_NAME = 100)"; `value` replaces the limit's own value, `times` stands before it ("10 * ").
inline std::string limit_message(std::string_view what, const NamedLimit& limit, size_t value, const char* times = "") {
  return std::string(what) + " (" + times + std::string(limit.name) + " = " + std::to_string(value) + ")";
}
inline std::string limit_message(std::string_view what, const NamedLimit& limit) { return limit_message(what, limit, limit.value); }

}  // namespace constrain
