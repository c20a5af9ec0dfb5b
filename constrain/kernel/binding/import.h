// Reads Python's data (constrain/language/grammar.py, constrain/language/tree.py) into the kernel's own.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>

#include "grammar/grammar.h"

namespace constrain {

// Lets other threads take the GIL if they wait for it.
inline void offer_gil() { nanobind::gil_scoped_release release; }

// A scope that touches nothing of Python: it releases the GIL at once, or once the work on expressions turns out to
// be long. With a busy thread around, taking the GIL again costs milliseconds, too much for short work.
class LongWork {
 public:
  static constexpr size_t short_work = 500;  // steps, about 0.5 ms

  explicit LongWork(Work& work, bool at_once = false) : work_(work) {
    if (at_once) {
      release_.emplace();
    } else {
      work_.notify_after(short_work, [](void* self) { static_cast<LongWork*>(self)->release_.emplace(); }, this);
    }
  }
  LongWork(const LongWork&) = delete;
  LongWork& operator=(const LongWork&) = delete;
  ~LongWork() { work_.notify_after(0, nullptr, nullptr); }

 private:
  Work& work_;
  std::optional<nanobind::gil_scoped_release> release_;
};

// Sorted texts as an object of Python, which all expressions with these texts share.
struct Texts {
  explicit Texts(SortedTexts texts) : sorted(SortedTexts::shared(std::make_shared<const SortedTexts>(std::move(texts)))) {}

  std::shared_ptr<const SortedTexts> sorted;
};

// The values, strings, as the contents of JSON strings. Throws LimitError.
Texts read_texts(nanobind::handle values);

// Numbers of repetitions, states, slots and so on; greater ones are cut: no text is that long.
uint32_t count_of(nanobind::handle number);

nanobind::tuple tuple_of(nanobind::handle object);

// A Python string as UTF-8. Lone surrogates, which schemas may have in the names of their parts, become escapes.
std::string text_of(nanobind::handle text);

// Throws GrammarError or LimitError; checks what the Python types do not. Releases the GIL during long computations.
// `grammar`: a `Grammar` or a `Draft`. `prove`: whether the longest match has to be proved to lead to no dead end.
Grammar import_grammar(nanobind::handle grammar, bool prove = true);

// Work on the store is limited to MAX_COMPILE_WORK, and to `allowance` steps.
ExprId import_expression(ExpressionStore& store, nanobind::handle expression, size_t allowance);

}  // namespace constrain
