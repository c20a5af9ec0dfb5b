// From Python's data (constrain/language/grammar.py, constrain/language/tree.py) to the kernel's own.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "grammar.h"

namespace constrain {

// Lets other threads have the GIL, if they wait for it.
inline void offer_gil() { nanobind::gil_scoped_release release; }

// While it lives, nothing of Python is touched: the GIL is released once the work on a store turns out to be long, or at
// once. Beside a busy thread it costs milliseconds to get it back, which short work should not have to wait for.
class LongWork {
 public:
  static constexpr size_t short_work = 500;  // derivatives, about 0.5 ms

  explicit LongWork(ExpressionStore& store, bool at_once = false) : store_(store) {
    if (at_once) {
      release_.emplace();
    } else {
      store_.notify_after(short_work, [](void* self) { static_cast<LongWork*>(self)->release_.emplace(); }, this);
    }
  }
  LongWork(const LongWork&) = delete;
  LongWork& operator=(const LongWork&) = delete;
  ~LongWork() { store_.notify_after(0, nullptr, nullptr); }

 private:
  ExpressionStore& store_;
  std::optional<nanobind::gil_scoped_release> release_;
};

// Throws GrammarError or LimitError; checks what the Python types do not. The GIL is let go while much is computed.
Grammar import_grammar(nanobind::handle grammar);

// Work on the store is limited to MAX_COMPILE_WORK, and to `allowance` derivatives.
ExprId import_expression(ExpressionStore& store, nanobind::handle expression, size_t allowance);

}  // namespace constrain
