// The Python module constrain.kernel._kernel, whose stub is made from the docstrings and signatures here
// (`python -m tools.stub`). Of Python's API, it calls only what is stable from 3.12 on.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>

#include "base/archive.h"
#include "base/errors.h"
#include "binding/candidates.h"
#include "binding/draft.h"
#include "binding/emission.h"
#include "binding/import.h"
#include "binding/logits.h"
#include "expressions/derivatives.h"
#include "matching/matcher.h"
#include "matching/precompute.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace constrain {
namespace {

// Holds a grammar's mutex, and hashes with its seed. Releases the GIL while it waits, so that the thread with the mutex
// can take the GIL.
class Locked {
 public:
  explicit Locked(CompiledGrammar& grammar) : Locked(grammar, std::try_to_lock) {
    if (!lock_) {
      nb::gil_scoped_release release;
      lock_.lock();
    }
  }

  // For a matcher, which replays its text if a new generation has begun.
  explicit Locked(Matcher& matcher) : Locked(matcher.grammar()) {
    if (matcher.is_current()) return;
    nb::gil_scoped_release release;
    matcher.catch_up();
  }

  // true if the mutex was free
  Locked(CompiledGrammar& grammar, std::try_to_lock_t) : lock_(grammar.mutex(), std::try_to_lock), seed_(grammar.seed()) {}
  explicit operator bool() const { return lock_.owns_lock(); }

 private:
  std::unique_lock<std::mutex> lock_;
  SeedScope seed_;
};

// The content of an object with the buffer protocol, as bytes.
class Bytes {
 public:
  explicit Bytes(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) < 0) throw nb::python_error();
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  ~Bytes() { PyBuffer_Release(&view_); }

  std::span<const std::byte> view() const { return {static_cast<const std::byte*>(view_.buf), static_cast<size_t>(view_.len)}; }

 private:
  Py_buffer view_{};
};

constexpr size_t many_bytes = size_t{256} << 10;  // to read these takes about 0.1 ms; above, the GIL is released

using GivenDetours = std::vector<std::tuple<size_t, size_t, nb::bytes>>;

std::vector<CompiledGrammar::Detour> detours_of(const nb::bytes& text, const GivenDetours& given) {
  std::vector<CompiledGrammar::Detour> detours;
  detours.reserve(given.size());
  for (const auto& [begin, end, instead] : given) {
    if (end <= begin || end > text.size()) throw nb::value_error("a detour is a part of the text, and not empty");
    detours.push_back({begin, end, std::string(instead.c_str(), instead.size())});
  }
  return detours;
}

nb::bytes python_bytes(std::string_view text) {
  if (text.size() < many_bytes) return nb::bytes(text.data(), text.size());
  nb::bytes result = nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(text.size())));
  if (!result.ptr()) throw nb::python_error();
  char* data = PyBytes_AsString(result.ptr());
  nb::gil_scoped_release release;  // no other thread has it yet
  std::memcpy(data, text.data(), text.size());
  return result;  // moved, so its reference count stays the same
}

// Raises TypeError with the wanted type, unless a Python exception is already set.
[[noreturn]] void refuse_type(const char* what, const char* wanted, nb::handle object) {
  PyErr_Clear();
  const auto type = nb::cast<std::string>(object.type().attr("__name__"));
  throw nb::type_error((std::string(what) + " must be " + wanted + ", not " + type).c_str());
}

// A writable, contiguous, one-dimensional buffer of a given item size; errors name the difference.
class Buffer {
 public:
  Buffer(nb::handle object, const char* what, const char* formats, size_t item_size, size_t items, bool writable) {
    int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) < 0) {
      const char* wanted = writable ? "a contiguous, writable array (numpy, or anything with the buffer protocol)"
                                    : "a contiguous array (numpy, or anything with the buffer protocol)";
      refuse_type(what, wanted, object);
    }
    const char* format = view_.format ? view_.format : "B";
    bool native = std::strchr("><!", format[0]) == nullptr || (format[0] == '<') == (std::endian::native == std::endian::little);
    bool right_type = native && static_cast<size_t>(view_.itemsize) == item_size && std::strchr(formats, format[std::strlen(format) - 1]);
    size_t found = static_cast<size_t>(view_.len) / static_cast<size_t>(view_.itemsize ? view_.itemsize : 1);
    if (right_type && found == items && view_.ndim == 1) return;
    std::string message = std::string(what) + " must have shape (" + std::to_string(items) + ",) and items of type " +
                          (formats[0] == 'f' ? "float32" : "uint32") + "; this one has " + std::to_string(view_.ndim) +
                          " dimension(s), " + std::to_string(found) + " items of format '" + format + "'";
    PyBuffer_Release(&view_);
    throw nb::value_error(message.c_str());
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { PyBuffer_Release(&view_); }

  template <typename T>
  std::span<T> as() const {
    return {static_cast<T*>(view_.buf), static_cast<size_t>(view_.len) / sizeof(T)};
  }

 private:
  Py_buffer view_{};
};

// Converts a Python integer, or any object with __index__ such as a numpy integer. Integers out of range become the
// nearest Py_ssize_t. Raises TypeError for other objects.
Py_ssize_t integer_of(nb::handle object, const char* what) {
  if (!PyIndex_Check(object.ptr())) refuse_type(what, "an integer", object);
  Py_ssize_t value = PyLong_CheckExact(object.ptr()) ? PyLong_AsSsize_t(object.ptr()) : PyNumber_AsSsize_t(object.ptr(), PyExc_OverflowError);
  if (value != -1 || !PyErr_Occurred()) return value;
  if (!PyErr_ExceptionMatches(PyExc_OverflowError)) throw nb::python_error();
  PyErr_Clear();
  return PyNumber_AsSsize_t(object.ptr(), nullptr);
}

uint32_t token_of(const Vocabulary& vocabulary, nb::handle object) {
  const Py_ssize_t token = integer_of(object, "a token id");
  if (token >= 0 && static_cast<uint64_t>(token) < vocabulary.n_tokens()) return static_cast<uint32_t>(token);
  throw nb::index_error(("token id " + nb::cast<std::string>(nb::str(object)) + " is not in the vocabulary of " +
                         std::to_string(vocabulary.n_tokens()) + " tokens").c_str());
}

// Releases the GIL during its lifetime, if the work may take long.
class Released {
 public:
  explicit Released(bool takes_long) {
    if (takes_long) release_.emplace();
  }

 private:
  std::optional<nb::gil_scoped_release> release_;
};

template <typename F>
auto without_gil(F&& f) {
  nb::gil_scoped_release release;
  return f();
}

// Releases the GIL for questions that mostly take no time. Keeps the automaton, as a question may begin a generation.
class LongQuestion {
 public:
  explicit LongQuestion(Matcher& matcher) : kept_(matcher.grammar().automaton()), work_(kept_->stepping().expressions().work()) {}

 private:
  std::shared_ptr<Automaton> kept_;
  LongWork work_;
};

bool knows_mask(Matcher& matcher) {
  const LongQuestion work(matcher);
  return matcher.knows_mask();
}

// Whether the mask only has to be looked up; then accepting a token needs no search either.
bool is_quick(Matcher& matcher) {
  if (matcher.ended() || matcher.known_plain()) return true;
  const LongQuestion work(matcher);
  return matcher.is_quick();
}

// Computes the current mask, with budget and limits, without the GIL.
void prepare(Matcher& matcher) {
  if (knows_mask(matcher)) return;
  nb::gil_scoped_release release;
  matcher.prepare();
}

// Writes the current mask; computes it without the GIL if it is not known.
void fill(Matcher& matcher, std::span<uint32_t> words, bool unlimited = false) {
  if (matcher.ended()) return std::fill(words.begin(), words.end(), 0u);
  if (is_quick(matcher)) return matcher.fill(words);
  nb::gil_scoped_release release;
  unlimited ? matcher.fill_unlimited(words) : matcher.fill(words);
}

std::span<const std::string_view> token_views(const nb::tuple& tokens, std::vector<std::string_view>& views) {
  views.reserve(tokens.size());
  for (nb::handle token : tokens) {
    char* data = nullptr;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(token.ptr(), &data, &size) < 0) throw nb::python_error();
    views.emplace_back(data, static_cast<size_t>(size));  // the tuple keeps the bytes alive
  }
  return views;
}

void check_ids(const std::vector<int64_t>& ids, size_t count, const char* what) {
  for (int64_t id : ids) {
    if (id < 0 || id >= static_cast<int64_t>(count)) {
      throw nb::value_error((std::string(what) + " id " + std::to_string(id) + " is not among the " + std::to_string(count) + " tokens").c_str());
    }
  }
}

void bind_vocabulary(nb::module_& m) {
  nb::class_<Vocabulary>(m, "Vocabulary",
      "The tokens of a tokenizer as a byte trie, with the masks that all grammars share.")
      .def("__init__",
           [](Vocabulary* self, const nb::list& given, const std::vector<int64_t>& special, const std::vector<int64_t>& eos,
              const std::vector<std::pair<int64_t, nb::bytes>>& names) {
             const nb::tuple tokens(given);  // a tuple, which no other thread can change
             std::vector<std::string_view> views;
             token_views(tokens, views);
             check_ids(special, views.size(), "special");
             check_ids(eos, views.size(), "end-of-generation");
             for (const std::vector<int64_t>* ids : {&special, &eos}) {
               for (int64_t id : *ids) views[static_cast<size_t>(id)] = {};
             }
             std::vector<std::string> marked;
             marked.reserve(names.size());  // so that views of the names stay valid
             for (const auto& [id, name] : names) {
               if (std::find(special.begin(), special.end(), id) == special.end()) throw nb::value_error("only special tokens have names");
               marked.push_back(mark_begin + std::string(name.c_str(), name.size()) + mark_end);
               views[static_cast<size_t>(id)] = marked.back();
             }
             std::vector<uint32_t> special_ids(special.begin(), special.end()), eos_ids(eos.begin(), eos.end());
             nb::gil_scoped_release release;
             new (self) Vocabulary(std::move(views), std::move(special_ids), std::move(eos_ids));
           },
           "tokens"_a, "special"_a, "eos"_a, "names"_a = nb::list(),
           nb::sig("def __init__(self, tokens: list[bytes], special: Sequence[int], eos: Sequence[int], names: Sequence[tuple[int, "
                   "bytes]] = ()) -> None"),
           "``tokens[i]``: bytes of token i, empty for ids without text; ``special`` and ``eos`` have none.\n\n"
           "``names``: (id, name) of special tokens that grammars may use. Raises ValueError for an id outside of\n"
           "``tokens``, and for the name of an id that is not in ``special``.")
      .def_prop_ro("n_vocab", &Vocabulary::size)
      .def("token_bytes",
           [](const Vocabulary& self, nb::handle token) {
             return python_bytes(self.text(token_of(self, token)));
           },
           nb::arg("token_id").none(),
           nb::sig("def token_bytes(self, token_id: int) -> bytes"))
      .def("beginnings_of",
           [](const Vocabulary& self, const nb::bytes& text, size_t from) {
             return self.beginnings_of(std::string_view(text.c_str(), text.size()).substr(std::min(from, text.size())));
           },
           "text"_a, "start"_a = 0,
           "All tokens with which the text from ``start`` on begins, by their bytes, shortest first.")
      .def_prop_ro("memory_bytes", [](const Vocabulary& self) { return self.memory_bytes() + self.store_bytes(); })
      .def("description", [](const Vocabulary& self) { return python_bytes(without_gil([&] { return self.description(); })); },
           "Bytes that identify this vocabulary: equal for equal vocabularies only.")
      .def("store", [](const Vocabulary& self) { return python_bytes(without_gil([&] { return self.stored(); })); },
           "The shared context-independent tokens, as bytes for ``restore``.")
      .def("restore",
           [](const Vocabulary& self, nb::handle stored) {
             const Bytes bytes(stored);
             Released released(bytes.view().size() >= many_bytes);
             self.restore(bytes.view());
           },
           "stored"_a,
           nb::sig("def restore(self, stored: Buffer) -> None"),
           "Takes over stored context-independent tokens of an equal vocabulary, while there is room.\n\n"
           "``stored`` must begin at a multiple of 8 and have passed ``checksum``. Raises StorageError otherwise.");
}

// Work that several questions may take together, and the expressions that they share. Not to be used by two threads at
// once.
struct Allowance {
  size_t left;
  std::unique_ptr<ExpressionStore> store = std::make_unique<ExpressionStore>();

  explicit Allowance(size_t work) : left(work) {}
};

constexpr size_t max_shared_bytes = size_t{32} << 20;  // of expressions that questions share

// Steps that this thread has taken for questions and proofs so far, for callers that limit their sum.
thread_local uint64_t steps_taken = 0;

struct CountsSteps {
  const ExpressionStore& store;
  ~CountsSteps() { steps_taken += store.steps(); }
};

// One question about one expression. Questions with one allowance share what was found out about their parts.
class Question {
 public:
  Question(nb::handle expression, Allowance* allowance)
      : own_(allowance ? nullptr : std::make_unique<ExpressionStore>()),
        allowance_(allowance),
        store(allowance ? *allowance->store : *own_),
        before_(store.steps()),
        expression(import(expression)) {}
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;
  ~Question() { settle(); }

 private:
  ExprId import(nb::handle object) {
    try {
      return import_expression(store, object, allowance_ ? allowance_->left : ~size_t{0});
    } catch (...) {
      settle();
      throw;
    }
  }
  void settle() {
    const size_t taken = store.steps() - before_;
    steps_taken += taken;
    if (!allowance_) return;
    allowance_->left -= std::min(allowance_->left, taken);
    if (std::uncaught_exceptions() || store.memory_bytes() > max_shared_bytes) allowance_->store = std::make_unique<ExpressionStore>();
  }

  const std::unique_ptr<ExpressionStore> own_;
  Allowance* const allowance_;

 public:
  ExpressionStore& store;

 private:
  const size_t before_;

 public:
  const ExprId expression;
};

nb::bytes lines_of(const Texts& texts) {
  std::string lines;
  {
    nb::gil_scoped_release release;
    for (uint32_t i = 0; i < texts.sorted->size(); ++i) (lines += (*texts.sorted)[i]) += '\n';
  }
  return python_bytes(lines);
}

void bind_texts(nb::module_& m) {
  nb::class_<Texts>(m, "Texts",
      "The values of a table, strings, as the contents of JSON strings: sorted, without equals, immutable.\n\n"
      "All grammars with the values share this object's memory, which is little more than that of the texts. Raises\n"
      "UnicodeEncodeError for a lone surrogate, and LimitError.")
      .def("__init__", [](Texts* self, nb::handle values) { new (self) Texts(read_texts(values)); }, "values"_a,
           nb::sig("def __init__(self, values: Iterable[str]) -> None"))
      .def("__len__", [](const Texts& self) { return self.sorted->size(); })
      .def("__getitem__",
           [](const Texts& self, size_t number) {
             if (number >= self.sorted->size()) throw nb::index_error();
             const std::string_view text = (*self.sorted)[static_cast<uint32_t>(number)];
             return nb::bytes(text.data(), text.size());
           },
           "number"_a)
      .def("__iter__", [](nb::handle self) { return nb::steal(PySeqIter_New(self.ptr())); },
           nb::sig("def __iter__(self) -> Iterator[bytes]"))
      .def("find",
           [](const Texts& self, nb::bytes text) -> std::optional<uint32_t> {
             const std::string_view wanted(text.c_str(), text.size());
             const uint32_t at = self.sorted->place(wanted);
             if (at == self.sorted->size() || (*self.sorted)[at] != wanted) return std::nullopt;
             return at;
           },
           "text"_a, "The number of a text; None if it is not among them.")
      .def("in_both",
           [](const Texts& self, const Texts& other) {
             nb::gil_scoped_release release;
             return Texts(self.sorted->in_both(*other.sorted));
           },
           "other"_a, "The texts that both have.")
      .def("lines", &lines_of, "All texts, each with a line break behind it, which none of them contains.")
      .def("__getstate__", &lines_of)
      .def("__setstate__",
           [](Texts& self, nb::bytes lines) {
             std::string bytes;
             std::vector<uint32_t> ends;
             for (char c : std::string_view(lines.c_str(), lines.size())) {
               if (c == '\n') ends.push_back(static_cast<uint32_t>(bytes.size()));
               else bytes.push_back(c);
             }
             new (&self) Texts(SortedTexts(std::move(bytes), std::move(ends)));
           })
      .def("matching",
           [](const Texts& self, nb::handle expression, Allowance* allowance) {
             Question question(expression, allowance);
             LongWork work(question.store.work(), true);
             return Texts(matching_texts(question.store, question.expression, *self.sorted));
           },
           "expression"_a, "allowance"_a = nb::none(), nb::sig("def matching(self, expression: object, allowance: Allowance | None = None) -> Texts"),
           "The texts that an expression matches. Raises LimitError if that takes too long.")
      .def_prop_ro("memory_bytes", [](const Texts& self) { return self.sorted->memory_bytes(); });
}

void bind_stop_time(nb::module_& m) {
  nb::class_<StopTime>(m, "StopTime",
      "A time after which the threads within it (``with``, not nested) compute no mask: they raise TimeoutError.\n\n"
      "The matcher stays as it is then, and nothing keeps a part of the mask. Any thread may set the time.")
      .def(nb::init<>())
      .def("set", &StopTime::set, "seconds_from_now"_a)
      .def("__enter__", [](const StopTime& self) { stop_time = &self; })
      .def("__exit__", [](const StopTime&, const nb::args&) { stop_time = nullptr; },
           nb::sig("def __exit__(self, *exception: object) -> None"));
}

void bind_questions(nb::module_& m) {
  m.def("steps_taken", [] { return steps_taken; },
        "Steps that this thread has taken so far, in questions about expressions and in proofs about grammars.");
  nb::class_<Allowance>(m, "Allowance",
      "Work that several questions may take together: steps, and nodes of the expressions they make.\n\n"
      "A question that needs more than is left raises LimitError; after that, no work is left.")
      .def(nb::init<size_t>(), "work"_a)
      .def_ro("left", &Allowance::left);
  m.def("is_empty",
        [](nb::handle expression, Allowance* allowance) {
          return Question(expression, allowance).expression == ExprId::nothing;
        },
        "expression"_a, "allowance"_a = nb::none(),
        "Whether the expression matches no text. Raises LimitError if deciding takes too many states.");
  m.def("matches",
        [](nb::handle expression, nb::bytes text, Allowance* allowance) {
          Question question(expression, allowance);
          ExpressionStore& store = question.store;
          LongWork work(store.work(), text.size() >= many_bytes);
          return store.nullable(store.derivative(question.expression, {text.c_str(), text.size()}));
        },
        "expression"_a, "text"_a, "allowance"_a = nb::none(),
        "Whether the expression matches the whole text.");
  m.def("has_endless_matches",
        [](nb::handle expression, size_t max_states, Allowance* allowance) {
          Question question(expression, allowance);
          LongWork work(question.store.work());
          return has_endless_matches(question.store, question.expression, max_states);
        },
        "expression"_a, "max_states"_a, "allowance"_a = nb::none(),
        "Whether the expression matches infinitely many texts; None if ``max_states`` derivatives cannot decide.");
  m.def("list_matches",
        [](nb::handle expression, size_t limit, Allowance* allowance) -> nb::object {
          Question question(expression, allowance);
          const std::optional<std::vector<std::string>> found = [&] {
            LongWork work(question.store.work());
            return list_matches(question.store, question.expression, limit);
          }();
          if (!found) return nb::none();
          nb::list result;
          for (const std::string& text : *found) result.append(nb::bytes(text.data(), text.size()));
          return result;
        },
        "expression"_a, "limit"_a, "allowance"_a = nb::none(),
        nb::sig("def list_matches(expression: object, limit: int, allowance: Allowance | None = None) -> list[bytes] | None"),
        "All texts that the expression matches, shortest first; None if there are more than ``limit``.");
  m.def("automaton",
        [](nb::handle expression, size_t max_states, Allowance* allowance) -> nb::object {
          Question question(expression, allowance);
          const auto found = [&] {
            LongWork work(question.store.work());
            return automaton_of(question.store, question.expression, max_states);
          }();
          if (!found) return nb::none();
          nb::list result;
          for (const AutomatonState& state : *found) {
            nb::list edges;
            for (const AutomatonEdge& edge : state.edges) edges.append(nb::make_tuple(edge.target, edge.ranges));
            result.append(nb::make_tuple(state.accepting, edges));
          }
          return result;
        },
        "expression"_a, "max_states"_a, "allowance"_a = nb::none(),
        nb::sig("def automaton(expression: object, max_states: int, allowance: Allowance | None = None) -> list[tuple[bool, "
                "list[tuple[int, list[tuple[int, int]]]]]] | None"),
        "The deterministic automaton of an expression: for each state, whether it accepts, and its edges.\n\n"
        "The start is state 0. An edge is the target and the bytes that lead there, as inclusive ranges. None if there are\n"
        "more than ``max_states`` states.");
}

using GivenClasses = std::vector<TokenClasses::Ranges>;

constexpr size_t default_memory_limit = size_t{64} << 20;

// Limits by name with other values, for tests.
Limits limits_of(const nb::dict& given) {
  Limits limits;
  for (const auto& [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    const auto number = nb::cast<uint32_t>(value);
    if (name == MAX_MASK_WORK.name) {
      limits.mask_work = number;
    } else if (name == MAX_CALL_WORK.name) {
      limits.call_work = number;
    } else if (name == MAX_INTERSECTION_STATES.name) {
      limits.intersection_states = number;
    } else if (name == MAX_NESTED_DECISIONS.name) {
      limits.nested_decisions = number;
    } else if (name == MAX_BUDGET_QUESTIONS.name) {
      limits.budget_questions = limits.budget_searches = number;
    } else {
      throw nb::value_error(("there is no limit " + name).c_str());
    }
  }
  return limits;
}

// The error with the name and the source of its terminal.
LimitError placed(const LimitError& error, nb::handle grammar) {
  if (!error.terminal) return error;
  nb::object terminal = grammar.attr("terminals")[*error.terminal];
  LimitError result("terminal " + text_of(terminal.attr("name")) + ": " + error.what(), error.limit);
  result.pointer = text_of(terminal.attr("pointer"));
  return result;
}

// Raises GrammarError with the line and column of the limit, if the grammar's terminal knows them.
[[noreturn]] void raise_at_place(const TokenLimitError& error, nb::handle grammar) {
  const nb::object place = grammar.attr("terminals")[error.terminal].attr("place");
  const nb::object type = nb::module_::import_("constrain.errors").attr("GrammarError");
  const nb::object raised = place.is_none() ? type(error.what()) : type(error.what(), "line"_a = place[0], "column"_a = place[1]);
  PyErr_SetObject(type.ptr(), raised.ptr());
  throw nb::python_error();
}

void bind_grammar(nb::module_& m) {
  m.def("lexing_conflict",
        [](nb::handle grammar, bool lossless) -> nb::object {
          std::optional<LexingConflict> found;
          try {
            Grammar imported = import_grammar(grammar, false);
            const CountsSteps counts{imported.expressions};
            nb::gil_scoped_release release;
            if (!imported.self_delimiting) found = find_lexing_conflict(imported, lossless);
          } catch (const LimitError& error) {
            throw placed(error, grammar);
          }
          if (!found) return nb::none();
          return nb::make_tuple(found->terminal, found->follower, found->parallel);
        },
        "grammar"_a, "lossless"_a = false,
        nb::sig("def lexing_conflict(grammar: object, lossless: bool = False) -> tuple[int, int, list[int]] | None"),
        "The first conflict that keeps the longest match from being proved safe; None if it is safe.\n\n"
        "With ``lossless``, it must also read every text that the rules have.\n\n"
        "A conflict is a terminal, one that may follow it and whose beginning may be taken, and the terminals that may take\n"
        "it: those read in parallel with the first, and itself. Raises LimitError if deciding takes too long.");
  m.def("conflicting_terminals",
        [](nb::handle grammar, bool lossless) {
          try {
            Grammar imported = import_grammar(grammar, false);
            const CountsSteps counts{imported.expressions};
            nb::gil_scoped_release release;
            return imported.self_delimiting ? std::vector<uint32_t>{} : find_conflicting_terminals(imported, lossless);
          } catch (const LimitError& error) {
            throw placed(error, grammar);
          }
        },
        "grammar"_a, "lossless"_a,
        "Terminals whose removal leaves no conflict, in ascending order; terminals that replace them may conflict again.\n\n"
        "For each conflict: the terminals that may take the beginning, unless its first terminal is already listed.\n"
        "Raises LimitError if deciding takes too long.");
  m.def("lexing_claims",
        [](nb::handle grammar) {
          LexingClaims claims{true, true};
          try {
            Grammar imported = import_grammar(grammar, false);
            const CountsSteps counts{imported.expressions};
            nb::gil_scoped_release release;
            if (!imported.self_delimiting) claims = find_lexing_claims(imported);
            return std::pair(claims.no_dead_end, claims.self_delimiting);
          } catch (const LimitError& error) {
            throw placed(error, grammar);
          }
        },
        "grammar"_a,
        "Whether reading the longest match leads to no dead end, and whether lexemes end by themselves.\n\n"
        "They do if no terminal can continue with a byte that may follow it. A claim that takes too long to prove counts as\n"
        "false. Raises LimitError if an expression is too large.");
  nb::class_<CompiledGrammar>(m, "CompiledGrammar",
      "The automaton of a grammar over a vocabulary, built while it is used; safe to share between threads.")
      .def("__init__",
           [](CompiledGrammar* self, nb::handle grammar, std::shared_ptr<Vocabulary> vocabulary, size_t limit, const nb::dict& limits,
              bool proved, const GivenClasses& classes, const std::vector<uint64_t>& rule_limits) {
             const Limits chosen = limits_of(limits);
             try {
               Grammar imported = import_grammar(grammar, !proved);
               nb::gil_scoped_release release;
               new (self) CompiledGrammar(std::move(imported), std::move(vocabulary), limit, chosen, {classes, rule_limits});
             } catch (const LimitError& error) {
               throw placed(error, grammar);
             } catch (const TokenLimitError& error) {
               raise_at_place(error, grammar);
             }
           },
           "grammar"_a, "vocabulary"_a, "memory_limit"_a = default_memory_limit, "limits"_a = nb::dict(), "proved"_a = false,
           "classes"_a = GivenClasses(), "rule_limits"_a = std::vector<uint64_t>(),
           nb::sig("def __init__(self, grammar: object, vocabulary: Vocabulary, memory_limit: int = ..., limits: dict[str, int] = "
                   "..., proved: bool = ..., classes: Sequence[Sequence[tuple[int, int]]] = ..., rule_limits: Sequence[int] = ...) -> None"),
           "Compiles a grammar for a vocabulary.\n\n"
           "``memory_limit``: bytes of tables at which they are built again from the parts in use. ``limits``: values by\n"
           "name that replace the kernel's own limits, for tests; ValueError for an unknown name. ``proved``: whether\n"
           "``lexing_conflict`` has found no conflict in this grammar. ``classes``: ranges of ids, first and last of each,\n"
           "of the tokens that the grammar reads as the marks of these classes. ``rule_limits``: the most tokens between the\n"
           "border i and the last border, for each i (``language.special``).\n\n"
           "Raises GrammarError (malformed, generates no text, lexemes that cannot be separated) or LimitError.")
      .def_static(
          "restore",
          [](nb::handle stored, std::shared_ptr<Vocabulary> vocabulary, size_t limit, const GivenClasses& classes) {
            auto owner = std::make_shared<const Bytes>(stored);  // freed with the grammar, by Python, so with the GIL
            Released released(owner->view().size() >= many_bytes);
            return std::make_shared<CompiledGrammar>(CompiledGrammar::Stored{owner->view(), owner}, std::move(vocabulary), limit, classes);
          },
          "stored"_a, "vocabulary"_a, "memory_limit"_a = default_memory_limit, "classes"_a = GivenClasses(),
                  nb::sig("def restore(stored: Buffer, vocabulary: Vocabulary, memory_limit: int = ..., classes: "
                          "Sequence[Sequence[tuple[int, int]]] = ...) -> CompiledGrammar"),
                  "Reads a grammar that ``store`` of the same build has written, in any process, for an equal vocabulary.\n\n"
                  "``stored`` must begin at a multiple of 8 and have passed ``checksum``. Raises StorageError otherwise.")
      .def("precompute",
           [](CompiledGrammar& self, size_t max_masks, size_t max_bytes) {
             std::optional<Exploration> exploration;
             {
               Locked lock(self);
               nb::gil_scoped_release release;
               exploration.emplace(self);
             }
             bool more = true;
             while (more && exploration->places() < max_masks && exploration->memory_bytes() < max_bytes) {
               {
                 Locked lock(self);  // for one mask at a time, so that other threads can go on
                 nb::gil_scoped_release release;
                 more = exploration->advance();
               }
               if (PyErr_CheckSignals() != 0) throw nb::python_error();
             }
             return exploration->places();
           },
           "max_masks"_a, "max_bytes"_a,
           "Computes masks along texts as they are usually written; returns the number of places visited.\n\n"
           "Stops after ``max_masks`` places, when the tables take ``max_bytes``, or when no place is left.")
      .def("store",
           [](CompiledGrammar& self) {
             std::string stored;
             {
               Locked lock(self);
               nb::gil_scoped_release release;
               stored = self.stored();
             }
             return python_bytes(stored);
           },
           "The grammar with its tables and all known masks, as bytes for ``restore``.")
      .def("lexemes",
           [](CompiledGrammar& self, nb::bytes text) -> nb::object {
             std::optional<std::vector<CompiledGrammar::ReadLexeme>> found;
             {
               Locked lock(self);
               nb::gil_scoped_release release;
               found = self.lexemes({text.c_str(), text.size()});
             }
             if (!found) return nb::none();
             nb::list result;
             for (const CompiledGrammar::ReadLexeme& each : *found) result.append(nb::make_tuple(each.end, each.terminals));
             return result;
           },
           "text"_a,
           nb::sig("def lexemes(self, text: bytes) -> list[tuple[int, list[int]]] | None"),
           "The lexemes of a text: the end of each, and the terminals that match it; None if the text does not match.")
      .def("accepts",
           [](CompiledGrammar& self, nb::bytes text) {
             Locked lock(self);
             nb::gil_scoped_release release;
             return self.accepts({text.c_str(), text.size()});
           },
           "text"_a)
      .def("accepts",
           [](CompiledGrammar& self, nb::bytes text, const GivenDetours& given) {
             const std::vector<CompiledGrammar::Detour> detours = detours_of(text, given);
             Locked lock(self);
             nb::gil_scoped_release release;
             return self.accepts({text.c_str(), text.size()}, detours);
           },
           "text"_a, "detours"_a,
           "Whether the whole text matches, where each detour (begin, end, bytes) may be taken or not.\n\n"
           "The part of the text from begin to end is then read as these bytes. Detours ascend by their begin.")
      .def("lexeme_graph",
           [](CompiledGrammar& self, nb::bytes text, const GivenDetours& given) -> nb::object {
             const std::vector<CompiledGrammar::Detour> detours = detours_of(text, given);
             std::optional<CompiledGrammar::LexemeGraph> found;
             {
               Locked lock(self);
               nb::gil_scoped_release release;
               found = self.lexeme_graph({text.c_str(), text.size()}, detours);
             }
             if (!found) return nb::none();
             nb::list lexemes;
             for (const CompiledGrammar::LexemeGraph::Lexeme& each : found->lexemes) lexemes.append(nb::make_tuple(each.begin, each.end, each.terminals));
             return nb::make_tuple(found->offsets, lexemes);
           },
           "text"_a, "detours"_a,
           nb::sig("def lexeme_graph(self, text: bytes, detours: Sequence[tuple[int, int, bytes]]) -> tuple[list[int], "
                   "list[tuple[int, int, list[int]]]] | None"),
           "The lexemes of all ways to read a text with detours, as ``accepts`` does; None if the text does not match.\n\n"
           "Returns the offset of each place between lexemes, ascending: the first is the beginning of the text, the last\n"
           "its end. Then lexemes, in any order: the places where one begins and ends, and the terminals that match it. Some\n"
           "of them may be on no way to the end.")
      .def_prop_ro("n_words", [](CompiledGrammar& self) { return self.vocabulary().token_words(); },
                   "Number of 32-bit words of a bitmask.")
      .def_prop_ro("memory_bytes", &CompiledGrammar::memory_bytes,
                   "Bytes of grammar and tables after the last computed mask. Takes no lock.")
      .def("stats", [](CompiledGrammar& self) {
        Locked lock(self);
        nb::dict result;
        result["memory_bytes"] = self.table_bytes();
        result["generation"] = self.generation();
        result["limited_masks"] = self.limited_masks();
        result["masks"] = self.automaton()->masks().size();
        result["shared_masks"] = self.automaton()->masks().shared();
        result["rules"] = self.grammar().rules.size();
        result["states"] = self.grammar().states.size();
        result["terminals"] = self.grammar().terminals.size();
        return result;
      },
           nb::sig("def stats(self) -> dict[str, int]"));
}

nb::tuple names_of(LimitSet limits) {
  nb::list names;
  limits.each([&](Limit limit) {
    const std::string_view name = limit_names[static_cast<size_t>(limit)];
    names.append(nb::str(name.data(), name.size()));
  });
  return nb::tuple(names);
}

void bind_reading(nb::class_<Matcher>& matcher) {
  matcher
      .def("accept",
           [](Matcher& self, nb::handle token) {
             uint32_t id = token_of(self.grammar().vocabulary(), token);
             Locked lock(self);
             Released released(!is_quick(self) || self.is_full());
             return self.accept(id);
           },
           nb::arg("token_id").none(),
           nb::sig("def accept(self, token_id: int) -> bool"),
           "Takes an allowed token and moves on. For any other token, returns False and changes nothing.\n\n"
           "Computes the mask first if it is not known. Raises IndexError for an id that is not in the vocabulary.")
      .def("accept_many",
           [](Matcher& self, nb::handle tokens) {
             std::vector<uint32_t> ids;
             nb::object listed = nb::steal(PySequence_Fast(tokens.ptr(), ""));
             if (!listed.ptr()) {
               if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
               refuse_type("token_ids", "a list of token ids", tokens);
             }
             for (nb::handle token : listed) ids.push_back(token_of(self.grammar().vocabulary(), token));
             Locked lock(self);
             size_t n = 0;
             while (n < ids.size() && is_quick(self) && !self.is_full()) {
               if (!self.accept(ids[n])) return n;
               ++n;
             }
             Released released(n < ids.size());
             while (n < ids.size() && self.accept(ids[n])) ++n;
             return n;
           },
           nb::arg("token_ids").none(),
           nb::sig("def accept_many(self, token_ids: Sequence[int]) -> int"),
           "Takes tokens up to the first that is not allowed; returns the number of tokens taken.\n\n"
           "Raises IndexError, and takes none, if an id is not in the vocabulary.")
      .def("rollback",
           [](Matcher& self, nb::handle tokens) {
             const Py_ssize_t count = integer_of(tokens, "count");
             Locked lock(self.grammar());
             if (count < 0 || static_cast<size_t>(count) > self.accepted()) {
               throw nb::value_error(("cannot roll back " + nb::cast<std::string>(nb::str(tokens)) + " tokens of " + std::to_string(self.accepted()) + " accepted").c_str());
             }
             self.rollback(static_cast<size_t>(count));
           },
           nb::arg("count").none(),
           nb::sig("def rollback(self, count: int) -> None"),
           "Takes back the last ``count`` accepted tokens. Raises ValueError if fewer were accepted.")
      .def("reset",
           [](Matcher& self) {
             Locked lock(self.grammar());
             self.reset();
           },
           nb::sig("def reset(self) -> None"),
           "Takes back all accepted tokens; the limits met so far are forgotten, too.")
      .def_prop_ro("n_accepted", [](Matcher& self) { return self.accepted(); },
                   "Number of accepted tokens, end of generation included.")
      .def_prop_ro("is_accepting",
                   [](Matcher& self) {
                     Locked lock(self);
                     const LongQuestion work(self);
                     return self.accepting();
                   },
                   "Whether the text may end here.")
      .def_prop_ro("is_finished",
                   [](Matcher& self) {
                     Locked lock(self);
                     const LongQuestion work(self);
                     return self.finished();
                   },
                   "Whether end of generation was accepted, or nothing else is possible.");
}

void bind_masks(nb::class_<Matcher>& matcher) {
  matcher
      .def("fill_bitmask",
           [](Matcher& self, nb::handle bitmask, bool unlimited) {
             Buffer buffer(bitmask, "bitmask", "IiLl", 4, self.grammar().vocabulary().token_words(), true);
             std::span<uint32_t> words = buffer.as<uint32_t>();
             Locked lock(self);
             fill(self, words, unlimited);
           },
           nb::arg("bitmask").none(), nb::arg("unlimited") = false,
           nb::sig("def fill_bitmask(self, bitmask: Buffer, unlimited: bool = False) -> None"),
           "Writes the mask of the next token: every word of ``bitmask``, uint32 of shape (ceil(n_vocab / 32),).\n\n"
           "Bit ``token % 32`` of word ``token // 32`` is set if and only if the text so far and this token can be\n"
           "completed. The bits of end-of-generation ids are set where the text may end. ``unlimited``: as if there were\n"
           "neither budget nor limits on lexemes. Raises TypeError or ValueError for another buffer.")
      .def("fill_candidates",
           [](Matcher& self, nb::handle logits, nb::handle candidates, bool unlimited) {
             const Vocabulary& vocabulary = self.grammar().vocabulary();
             Buffer scores(logits, "logits", "f", 4, vocabulary.n_tokens(), false);
             Py_buffer out;
             if (PyObject_GetBuffer(candidates.ptr(), &out, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) < 0) {
               refuse_type("candidates", "a contiguous, writable array of llama_token_data (numpy, or anything with the buffer protocol)", candidates);
             }
             struct Release {
               Py_buffer* view;
               ~Release() { PyBuffer_Release(view); }
             } release_out{&out};
             if (static_cast<size_t>(out.len) < vocabulary.n_tokens() * sizeof(Candidate)) {
               throw nb::value_error(("candidates must hold " + std::to_string(vocabulary.n_tokens()) + " llama_token_data (12 bytes each)").c_str());
             }
             std::span<const float> values = scores.as<const float>();
             auto* target = static_cast<Candidate*>(out.buf);
             Locked lock(self);
             std::vector<uint32_t> words(vocabulary.token_words());
             fill(self, words, unlimited);
             return gather(words, values, target);
           },
           nb::arg("logits").none(), nb::arg("candidates").none(), nb::arg("unlimited") = false,
           nb::sig("def fill_candidates(self, logits: Buffer, candidates: Buffer, unlimited: bool = False) -> int"),
           "Writes the allowed tokens with their logits, ascending by id, for llama.cpp's samplers; returns their number.\n\n"
           "``logits``: float32 of shape (n_vocab,). ``candidates``: room for n_vocab ``llama_token_data`` of 12 bytes\n"
           "(int32 id, float32 logit, float32 p = 0). ``unlimited``: also writes the tokens that only the budget or a limit\n"
           "on lexemes leaves out; ``accept`` refuses these. Raises TypeError or ValueError for other buffers.")
      .def_prop_ro("lexeme",
                   [](Matcher& self) {
                     Locked lock(self);
                     Lexeme found = self.lexeme();
                     std::optional<uint64_t> left;
                     if (found.left != LexemeLimits::none) left = found.left;
                     return std::tuple(found.kind, nb::bytes(found.rest.data(), found.rest.size()), found.tokens, found.begin, left);
                   },
                   "The current lexeme: kind, shortest end, number of tokens, its offset in the first, tokens left. Private.")
      .def_prop_ro("is_cut",
                   [](Matcher& self) {
                     Locked lock(self);
                     return self.cut();
                   },
                   "Whether no token of the budget is left, and the text could go on.")
      .def_prop_ro("near_limit",
                   [](Matcher& self) {
                     Locked lock(self);
                     Released released(!knows_mask(self));
                     return self.near_limit();
                   },
                   "Whether the budget, or a limit of the lexeme, may narrow one of the next masks. Private.")
      .def_prop_ro("knows_mask",
                   [](Matcher& self) {
                     Locked lock(self);
                     return knows_mask(self);
                   },
                   "Whether the current mask is known, so that the next ``fill_...`` only looks it up. Private.")
      .def_prop_ro("is_quick",
                   [](Matcher& self) {
                     Locked lock(self);
                     return is_quick(self);
                   },
                   "Whether the next ``fill_...`` and ``accept`` only look up tables. Private.")
      .def_prop_ro("n_readings", [](Matcher& self) { return self.readings(); },
                   "Number of ways to read the tokens so far. Private.")
      .def_prop_ro("is_in_use", [](Matcher& self) { return !Locked(self.grammar(), std::try_to_lock); },
                   "Whether a call would have to wait for another thread that uses the same grammar. Private.")
      .def("compute_mask",
           [](Matcher& self) {
             Locked lock(self);
             prepare(self);
           },
           nb::sig("def compute_mask(self) -> None"),
           "Computes the current mask, if it is not known, without the GIL. Private.")
      .def("diagnose",
           [](Matcher& self, nb::handle token) {
             uint32_t id = token_of(self.grammar().vocabulary(), token);
             Locked lock(self);
             Explanation why = [&] {
               nb::gil_scoped_release release;
               return self.explain(id);
             }();
             return std::tuple(why.allowed, why.at_end, why.at_limit, names_of(why.limits), why.offset, why.terminals);
           },
           nb::arg("token_id").none(),
           nb::sig("def diagnose(self, token_id: int) -> tuple[bool, bool, bool, tuple[str, ...], int, list[int]]"),
           "Private: use ``explain``. Finds whether a token is allowed, and if not, why.\n\n"
           "Returns (allowed, failed at the end of the text, left out by the limit of a lexeme, limits of the kernel that\n"
           "the mask met if the token is not in it, byte offset of the failure, terminals that were expected). ``allowed``\n"
           "ignores limits and the budget.")
      .def("expected",
           [](Matcher& self) {
             Locked lock(self);
             nb::gil_scoped_release release;
             return self.expected();
           },
           nb::sig("def expected(self) -> list[int]"),
           "Private: use ``expected_terminals``. Returns the terminals that may continue or begin here.");
}

void bind_limits_met(nb::class_<Matcher>& matcher) {
  matcher
      .def_prop_ro("temperature",
                   [](Matcher& self) -> std::optional<double> {
                     Locked lock(self);
                     return self.temperature();
                   },
                   "Temperature that the grammar asks for the next token; ``None`` if it asks for none.\n\n"
                   "It is the highest one of the lexemes that the current lexeme may still become; once that cannot continue, of\n"
                   "those that may follow. Lexemes without a temperature do not count.")
      .def_prop_ro("limits_tokens", [](Matcher& self) { return self.grammar().grammar().limits_tokens || !self.grammar().rule_limits().empty(); },
                   "Whether the grammar limits the tokens of some lexeme or rule (``max_tokens``). Private.")
      .def_prop_ro("is_narrowed",
                   [](Matcher& self) {
                     Locked lock(self.grammar());
                     return self.narrowed() || self.narrowed_in_rule() || self.shortened() > 0 || self.limited_masks() > 0;
                   },
                   "Whether the budget or a limit has removed tokens from some mask on the way here.")
      .def_prop_ro("is_narrowed_by_budget",
                   [](Matcher& self) {
                     Locked lock(self.grammar());
                     return self.narrowed();
                   },
                   "Whether the budget (``max_tokens``) has removed tokens from some mask on the way here.")
      .def_prop_ro("n_shortened",
                   [](Matcher& self) {
                     Locked lock(self.grammar());
                     return self.shortened();
                   },
                   "Number of lexemes that a limit on their tokens has ended, or is ending.")
      .def_prop_ro("limited_masks",
                   [](Matcher& self) {
                     Locked lock(self.grammar());
                     return self.limited_masks();
                   },
                   "Number of masks on the way here without some allowed tokens, because a limit of the kernel was met.\n\n"
                   "Such a mask has the single-byte tokens that were verified, and the next token of a way to finish. The mask\n"
                   "here counts once ``fill_bitmask`` or ``accept`` has asked for it.")
      .def_prop_ro("limits_met",
                   [](Matcher& self) {
                     Locked lock(self.grammar());
                     return names_of(self.limits_met());
                   },nb::for_getter(nb::sig("def limits_met(self, /) -> tuple[str, ...]")),
                   "Names of the limits that ``limited_masks`` counts; docs/reference/limits.md describes them.");
}

void bind_completions(nb::class_<Matcher>& matcher) {
  matcher
      .def_prop_ro("min_tokens_left",
                   [](Matcher& self) {
                     Locked lock(self);
                     nb::gil_scoped_release release;
                     return self.tokens_to_finish();
                   },
                   "Number of tokens that ``completion_tokens`` returns.")
      .def("completion_tokens",
           [](Matcher& self) {
             Locked lock(self);
             nb::gil_scoped_release release;
             return self.completion();
           },
           nb::sig("def completion_tokens(self) -> list[int]"),
           "Returns the token ids of a short text that finishes from here; with a budget, one that fits into it.")
      .def("shortest_completion",
           [](Matcher& self) {
             std::string text;
             {
               Locked lock(self);
               nb::gil_scoped_release release;
               if (!self.ended()) text = self.shortest_completion();
             }
             return nb::bytes(text.data(), text.size());
           },
           nb::sig("def shortest_completion(self) -> bytes"),
           "Returns the bytes of a shortest text that finishes from here.")
      .def("forced_bytes",
           [](Matcher& self) {
             std::string text;
             {
               Locked lock(self);
               Released released(!knows_mask(self));
               text = self.forced_bytes();
             }
             return nb::bytes(text.data(), text.size());
           },
           nb::sig("def forced_bytes(self) -> bytes"),
           "Returns the next bytes that every allowed text has; empty where there is a choice, or the text may end.")
      .def("forced_after",
           [](Matcher& self, nb::handle before) {
             if (!PyBytes_Check(before.ptr())) refuse_type("before", "bytes", before);
             const auto bytes = nb::borrow<nb::bytes>(before);
             const std::string_view known(bytes.c_str(), bytes.size());
             std::pair<std::string, std::vector<uint32_t>> result;
             {
               Locked lock(self);
               Released released(!knows_mask(self));
               result = self.forced_after(known);
             }
             return std::pair(nb::bytes(result.first.data(), result.first.size()), std::move(result.second));
           },
           nb::arg("before").none(),
           nb::sig("def forced_after(self, before: bytes) -> tuple[bytes, list[int]]"),
           "Private: use ``forced_tokens``. Returns (forced bytes, open starts).\n\n"
           "``before``: the end of the accepted text. At an open start a token may begin that continues beyond the end of\n"
           "the forced bytes, which end with a whole UTF-8 character. Starts are offsets into ``before`` and the forced\n"
           "bytes. There are none if no byte is forced.");
}

void bind_matcher(nb::module_& m) {
  nb::class_<Matcher> matcher(m, "Matcher",
      "The position of one sequence in a compiled grammar. Not to be used by two threads at once.");
  matcher
      .def("__init__",
           [](Matcher* self, std::shared_ptr<CompiledGrammar> grammar, std::optional<uint64_t> max_tokens,
              const std::vector<std::optional<uint64_t>>& lexeme_limits) {
             Locked lock(*grammar);
             nb::gil_scoped_release release;
             new (self) Matcher(grammar, max_tokens, lexeme_limits);
           },
           "grammar"_a, "max_tokens"_a = nb::none(), "lexeme_limits"_a = std::vector<std::optional<uint64_t>>(),
           nb::sig("def __init__(self, grammar: CompiledGrammar, max_tokens: int | None = None, lexeme_limits: Sequence[int | "
                   "None] = ()) -> None"),
           "Makes a matcher at the beginning of a text.\n\n"
           "``lexeme_limits``: tokens after which a lexeme is brought to its end, by ``Terminal.kind``. Raises BudgetError\n"
           "if no known text takes at most ``max_tokens``.")
      .def("__init__",
           [](Matcher* self, Matcher& other) {
             Locked lock(other.grammar());
             new (self) Matcher(other);
           },
           "other"_a,
           nb::sig("def __init__(self, grammar: Matcher) -> None"));
  matcher
      .def("_become",
           [](Matcher& self, Matcher& other) {
             Locked lock(other.grammar());
             self = other;
           },
           "other"_a, nb::sig("def _become(self, other: Matcher) -> None"),
           "Takes over grammar, position, limits and budget of another matcher. Private.")
      .def("_change_to",
           [](Matcher& self, std::shared_ptr<CompiledGrammar> grammar, std::optional<uint64_t> max_tokens,
              const std::vector<std::optional<uint64_t>>& lexeme_limits) {
             Locked lock(*grammar);
             nb::gil_scoped_release release;
             return self.change_to(grammar, max_tokens, lexeme_limits);
           },
           "grammar"_a, "max_tokens"_a.none(), "lexeme_limits"_a,
           nb::sig("def _change_to(self, grammar: CompiledGrammar, max_tokens: int | None, lexeme_limits: Sequence[int | None]) -> bool"),
           "Goes on in another grammar, as if that had read all tokens; False, without a change, if it refuses them or\n"
           "cannot end the text within the budget. Private.");
  bind_reading(matcher);
  bind_masks(matcher);
  bind_limits_met(matcher);
  bind_completions(matcher);
}

}  // namespace

NB_MODULE(_kernel, m) {
  nb::set_leak_warnings(false);  // objects that callers keep in module globals may outlive the module
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    auto raise = [](const char* name, const char* message) {
      nb::object type = nb::module_::import_("constrain.errors").attr(name);
      PyErr_SetString(type.ptr(), message);
    };
    try {
      std::rethrow_exception(p);
    } catch (const GrammarError& e) {
      raise("GrammarError", e.what());
    } catch (const LimitError& e) {
      nb::object type = nb::module_::import_("constrain.errors").attr("LimitError");
      nb::object pointer = e.pointer.empty() ? nb::none() : nb::object(nb::str(e.pointer.c_str(), e.pointer.size()));
      nb::object error = type(e.what(), "pointer"_a = pointer);
      PyErr_SetObject(type.ptr(), error.ptr());
    } catch (const Stopped& e) {
      PyErr_SetString(PyExc_TimeoutError, e.what());
    } catch (const ModelError& e) {
      raise("ModelError", e.what());
    } catch (const BudgetError& e) {
      nb::object type = nb::module_::import_("constrain.errors").attr("BudgetError");
      nb::object error = type(e.what(), "needed"_a = e.needed);
      PyErr_SetObject(type.ptr(), error.ptr());
    }
  });
  nb::exception<StorageError>(m, "StorageError", PyExc_ValueError).attr("__doc__") = "Stored tables are damaged or of another build.";
  m.def("checksum",
        [](nb::handle data) {
          const Bytes bytes(data);
          const Hash sum = [&] {
            Released released(bytes.view().size() >= many_bytes);
            return checksum(bytes.view());
          }();
          return python_bytes({reinterpret_cast<const char*>(&sum), sizeof sum});
        },
        "data"_a,
        nb::sig("def checksum(data: Buffer) -> bytes"),
        "A checksum of 16 bytes; it detects every change of up to 8 adjacent bytes, and nearly every other one.\n\n"
        "It does not protect against forgery.");
  m.def("mask_logits",
        [](nb::handle logits, nb::handle bitmask, nb::handle masked, uint32_t rows, uint32_t width, uint32_t words) {
          Buffer from(logits, "logits", "f", 4, size_t{rows} * width, false);
          Buffer bits(bitmask, "bitmask", "IiLl", 4, size_t{rows} * words, false);
          Buffer to(masked, "masked", "f", 4, size_t{rows} * width, true);
          nb::gil_scoped_release release;
          int64_t empty = -1;
          for (size_t row = rows; row-- > 0;) {
            const bool is_left = mask_logits(bits.as<const uint32_t>().subspan(row * words, words),
                                             from.as<const float>().subspan(row * width, width),
                                             to.as<float>().subspan(row * width, width));
            if (!is_left) empty = static_cast<int64_t>(row);
          }
          return empty;
        },
        "logits"_a.none(), "bitmask"_a.none(), "masked"_a.none(), "rows"_a, "width"_a, "words"_a,
        nb::sig("def mask_logits(logits: Buffer, bitmask: Buffer, masked: Buffer, rows: int, width: int, words: int) -> int"),
        "Copies logits, with minus infinity for each token whose bit is 0 or that has no bit.\n\n"
        "Args:\n"
        "    logits: float32 of shape (rows * width,).\n"
        "    bitmask: uint32 of shape (rows * words,); bit ``token % 32`` of word ``token // 32`` of a row.\n"
        "    masked: where the logits go; float32 of shape (rows * width,).\n"
        "    rows: number of places.\n"
        "    width: logits of one row.\n"
        "    words: words of one row of ``bitmask``.\n\n"
        "Returns:\n"
        "    The first row without a token left (all of its logits are minus infinity); -1 if there is none.\n\n"
        "Raises TypeError or ValueError for other buffers.");
  m.def("seed", [] { return python_bytes({reinterpret_cast<const char*>(&process_seed()), sizeof(Hash)}); },
        "The 16 bytes with which this process hashes the tables of its grammars; random, drawn at first use.");
  m.def("offer_seed",
        [](nb::bytes seed) {
          Hash offered;
          if (seed.size() != sizeof offered) throw nb::value_error("a seed has 16 bytes");
          std::memcpy(&offered, seed.c_str(), sizeof offered);
          return offer_seed(offered);
        },
        "seed"_a,
        "Offers a seed of 16 bytes to the process, which takes it if it has none yet; returns whether it uses that seed.\n\n"
        "Constraints of one seed share the context-independent tokens of a vocabulary. Raises ValueError for other lengths.");
  bind_vocabulary(m);
  bind_grammar(m);
  bind_draft(m);
  bind_emission(m);
  bind_matcher(m);
  bind_questions(m);
  bind_texts(m);
  bind_stop_time(m);
}

}  // namespace constrain
