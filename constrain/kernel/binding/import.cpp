// Reads grammars through attribute and tuple access only; keeps nothing of Python.
#include "binding/import.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "base/errors.h"
#include "matching/conflict_examples.h"
#include "vocabulary/vocabulary.h"

namespace nb = nanobind;

namespace constrain {

namespace {

constexpr unsigned max_recursed_depth = 50;  // levels read by recursive calls; deeper ones bottom up
constexpr size_t objects_at_a_time = 5'000;  // Python objects read before other threads may take the GIL, about 1 ms
constexpr size_t large_set = 2'000;          // texts whose sorting takes long
constexpr uint32_t max_count = 0xFFFFFFFEu;  // of repetitions, window lengths and counters

uint32_t count_of(nb::handle number) {  // greater numbers are cut: no text is that long
  int overflow = 0;
  long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (value == -1 && PyErr_Occurred()) throw nb::python_error();
  if (overflow > 0 || value > max_count) return max_count;
  if (overflow < 0 || value < 0) throw GrammarError("a count is negative");
  return static_cast<uint32_t>(value);
}

nb::tuple tuple_of(nb::handle object) {
  if (!PyTuple_Check(object.ptr())) throw GrammarError("expected a tuple, not " + nb::cast<std::string>(nb::repr(object.type())));
  return nb::borrow<nb::tuple>(object);
}

uint32_t maximum_of(nb::handle number) { return number.is_none() ? unbounded : count_of(number); }

std::string bytes_of(nb::handle object) {
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(object.ptr(), &data, &size) < 0) throw nb::python_error();
  return {data, static_cast<size_t>(size)};
}

class Importer {
 public:
  explicit Importer(ExpressionStore& store) : store_(store) {
    nb::module_ tree = nb::module_::import_("constrain.language.tree");
    const char* names[] = {"Literal", "ByteClass", "CharClass", "Concatenation", "Alternation", "Intersection",
                           "Complement", "Repetition", "LiteralSet", "Multiple", "Window", "Substring"};
    for (int i = 0; i < kinds; ++i) types_[i] = tree.attr(names[i]).ptr();
  }

  ExprId expression(nb::handle object, unsigned depth = 0) {
    if (auto known = known_.find(object.ptr()); known != known_.end()) return known->second;
    return depth < max_recursed_depth ? import(object, depth) : import_from_below(object);
  }

 private:
  static constexpr int kinds = 12;

  ExprId import(nb::handle object, unsigned depth) {
    has_read();
    const ExprId result = make(object, depth);
    if (store_[result].height > MAX_EXPRESSION_DEPTH.value) {
      throw LimitError(limit_message("an expression is nested too deeply", MAX_EXPRESSION_DEPTH));
    }
    known_.emplace(object.ptr(), result);
    return result;
  }

  // Visits each expression after all its parts.
  ExprId import_from_below(nb::handle object) {
    std::vector<nb::handle> waiting{object};
    while (!waiting.empty()) {
      const nb::handle next = waiting.back();
      const size_t before = waiting.size();
      if (!known_.contains(next.ptr())) {
        each_part(next, [&](nb::handle part) {
          if (!known_.contains(part.ptr())) waiting.push_back(part);
        });
        if (waiting.size() == before) import(next, max_recursed_depth);
        std::reverse(waiting.begin() + static_cast<std::ptrdiff_t>(before), waiting.end());
      }
      if (waiting.size() == before) waiting.pop_back();
    }
    return known_.at(object.ptr());
  }

  template <typename F>
  static void each_part(nb::handle object, F&& f) {  // frozen objects hold their parts, so handles stay valid
    if (nb::hasattr(object, "parts")) {
      for (nb::handle part : tuple_of(object.attr("parts"))) f(part);
    }
    for (const char* name : {"part", "unit"}) {
      if (nb::hasattr(object, name)) f(object.attr(name));
    }
  }

  std::vector<ExprId> parts(nb::handle tuple, unsigned depth) {
    std::vector<ExprId> result;
    for (nb::handle part : tuple_of(tuple)) result.push_back(expression(part, depth + 1));
    return result;
  }

  ExprId make(nb::handle object, unsigned depth) {
    const PyObject* type = reinterpret_cast<const PyObject*>(Py_TYPE(object.ptr()));
    int kind = 0;
    while (kind < kinds && types_[kind] != type) ++kind;
    switch (kind) {
      case 0:
        return store_.literal(bytes_of(object.attr("text")));
      case 1: {
        ByteSet set;
        for (auto [low, high] : ranges(object)) {
          if (high > 255) throw GrammarError("a byte class holds bytes above 255");
          set = set | ByteSet::range(low, high);
        }
        return store_.bytes(set);
      }
      case 2:
        return char_class(store_, ranges(object), nb::cast<bool>(object.attr("json")));
      case 3: {
        std::vector<ExprId> all = parts(object.attr("parts"), depth);
        LongWork work(store_.work());
        ExprId result = ExprId::epsilon;
        for (size_t i = all.size(); i-- > 0;) result = store_.concatenation(all[i], result);
        return result;
      }
      case 4: {
        std::vector<ExprId> all = parts(object.attr("parts"), depth);
        LongWork work(store_.work(), all.size() > large_set);
        return store_.alternation(std::move(all));
      }
      case 5: {
        std::vector<ExprId> all = parts(object.attr("parts"), depth);
        LongWork work(store_.work());
        return store_.intersection(std::move(all));
      }
      case 6: {
        const ExprId part = expression(object.attr("part"), depth + 1);
        LongWork work(store_.work());
        return store_.complement(part);
      }
      case 7: {
        const ExprId part = expression(object.attr("part"), depth + 1);
        const uint32_t minimum = count_of(object.attr("minimum")), maximum = maximum_of(object.attr("maximum"));
        LongWork work(store_.work());
        return store_.repetition(part, minimum, maximum);
      }
      case 8: {
        std::vector<std::string> texts;
        for (nb::handle text : tuple_of(object.attr("texts"))) {
          texts.push_back(bytes_of(text));
          has_read();
        }
        LongWork work(store_.work(), texts.size() > large_set);
        return store_.literal_set(std::move(texts));
      }
      case 9: {
        int overflow = 0;
        nb::object divisor = object.attr("divisor");
        long long value = PyLong_AsLongLongAndOverflow(divisor.ptr(), &overflow);
        if (value == -1 && PyErr_Occurred()) throw nb::python_error();
        return store_.multiple(overflow || value <= 0 ? 0 : static_cast<uint64_t>(value), count_of(object.attr("scale")));
      }
      case 10: {
        ExprId part = expression(object.attr("part"), depth + 1);
        ExprId unit = expression(object.attr("unit"), depth + 1);
        const uint32_t minimum = count_of(object.attr("minimum")), maximum = maximum_of(object.attr("maximum"));
        LongWork work(store_.work());
        return store_.window(part, unit, minimum, maximum);
      }
      case 11: {
        SuffixAutomaton::Source source;
        for (nb::handle text : tuple_of(object.attr("texts"))) source.texts.push_back(bytes_of(nb::steal(encoded(text))));
        for (nb::handle cut : tuple_of(object.attr("cuts"))) source.cuts.push_back(bytes_of(cut));
        source.json = nb::cast<bool>(object.attr("json"));
        const uint32_t minimum = count_of(object.attr("minimum")), maximum = maximum_of(object.attr("maximum"));
        check(source);
        LongWork work(store_.work(), true);
        return store_.substring(source, minimum, maximum);
      }
      default:
        throw GrammarError(std::string("not an expression: ") + nb::cast<std::string>(nb::repr(object.type())));
    }
  }

  void has_read() {
    if (++read_ % objects_at_a_time == 0) offer_gil();
  }

  static PyObject* encoded(nb::handle text) {
    PyObject* made = PyUnicode_AsUTF8String(text.ptr());
    if (!made) throw nb::python_error();
    return made;
  }

  static void check(const SuffixAutomaton::Source& source) {
    size_t characters = 0;
    for (size_t i = 0; i < source.texts.size(); ++i) {
      const auto own = static_cast<size_t>(std::count_if(source.texts[i].begin(), source.texts[i].end(), [](char c) { return (c & 0xC0) != 0x80; }));
      characters += own;
      if (!source.cuts.empty() && (source.cuts.size() != source.texts.size() || source.cuts[i].size() != own)) {
        throw GrammarError("a substring has cuts, but not one for each character of its texts");
      }
    }
    if (characters > MAX_QUOTE_CHARACTERS.value) {
      throw LimitError(limit_message("the texts of a substring are too long", MAX_QUOTE_CHARACTERS));
    }
  }

  static std::vector<CodePointRange> ranges(nb::handle object) {
    std::vector<CodePointRange> result;
    for (nb::handle range : tuple_of(object.attr("ranges"))) {
      nb::tuple pair = tuple_of(range);
      if (pair.size() != 2) throw GrammarError("a range is not (first, last)");
      CodePointRange r{count_of(pair[0]), count_of(pair[1])};
      if (r.first > r.second || r.second > 0x10FFFF) throw GrammarError("a class holds an invalid range");
      result.push_back(r);
    }
    return result;
  }

  ExpressionStore& store_;
  PyObject* types_[kinds];
  size_t read_ = 0;  // objects
  std::unordered_map<PyObject*, ExprId> known_;
};

class RuleImporter {
 public:
  RuleImporter(Grammar& grammar, size_t rules) : grammar_(grammar), rule_count_(rules) {}

  void add(nb::handle rule) {
    Rule made;
    made.name = text_of(rule.attr("name"));
    auto index = static_cast<uint32_t>(grammar_.rules.size());
    for (nb::handle slot : tuple_of(rule.attr("slots"))) {
      long long cap = nb::cast<long long>(slot);
      made.slots.push_back(static_cast<int32_t>(std::min<long long>(cap, 0x7FFFFFFF)));
    }
    auto base = static_cast<uint32_t>(grammar_.states.size());
    made.start = StateId{base};
    nb::tuple edges = tuple_of(rule.attr("edges"));
    nb::tuple accepting = tuple_of(rule.attr("accepting"));
    uint32_t states = 1;
    std::vector<std::pair<uint32_t, Edge>> found;
    found.reserve(edges.size());
    for (nb::handle each : edges) {
      nb::tuple edge = tuple_of(each);
      if (edge.size() != 7) throw GrammarError("rule " + made.name + ": an edge is not (source, symbol, target, conditions, actions, excluding, distinct)");
      uint32_t source = count_of(edge[0]), target = count_of(edge[2]);
      if (std::max(source, target) >= MAX_RULE_STATES.value) throw_too_many_states(made);
      states = std::max({states, source + 1, target + 1});
      found.emplace_back(source, read_edge(edge, base + target, made));
      if (++read_ % objects_at_a_time == 0) offer_gil();
    }
    std::vector<uint32_t> ends;
    for (nb::handle state : accepting) {
      ends.push_back(count_of(state));
      if (ends.back() >= MAX_RULE_STATES.value) throw_too_many_states(made);
      states = std::max(states, ends.back() + 1);
    }
    grammar_.states.resize(base + states, State{.rule = index});
    for (uint32_t state : ends) grammar_.states[base + state].accepting = true;
    for (const auto& [source, edge] : found) ++grammar_.states[base + source].edges_count;
    auto next = static_cast<uint32_t>(grammar_.edges.size());
    for (uint32_t q = base; q < base + states; ++q) {
      grammar_.states[q].edges_begin = next;
      next += grammar_.states[q].edges_count;
      grammar_.states[q].edges_count = 0;
    }
    grammar_.edges.resize(next);
    for (const auto& [source, edge] : found) {
      State& state = grammar_.states[base + source];
      grammar_.edges[state.edges_begin + state.edges_count++] = edge;
    }
    grammar_.rules.push_back(std::move(made));
  }

 private:
  [[noreturn]] static void throw_too_many_states(const Rule& rule) {
    throw LimitError("rule " + rule.name + " has too many states (" + std::string(MAX_RULE_STATES.name) + ")");
  }

  Edge read_edge(const nb::tuple& tuple, uint32_t target, const Rule& rule) {
    Edge edge;
    edge.target = StateId{target};
    nb::handle symbol = tuple[1];
    if (!symbol.is_none()) {
      long long value = nb::cast<long long>(symbol);
      edge.kind = value < 0 ? EdgeKind::rule : EdgeKind::terminal;
      long long number = value < 0 ? ~value : value;
      long long known = static_cast<long long>(value < 0 ? rule_count_ : grammar_.terminals.size());
      if (number >= known) throw GrammarError("rule " + rule.name + ": an edge names a symbol that does not exist");
      edge.symbol = static_cast<uint32_t>(number);
    }
    edge.conditions_begin = static_cast<uint32_t>(grammar_.conditions.size());
    nb::tuple conditions = tuple_of(tuple[3]);
    for (nb::handle each : conditions) {
      nb::tuple c = tuple_of(each);
      if (c.size() != 3) throw GrammarError("rule " + rule.name + ": a condition is not (slot, minimum, maximum)");
      grammar_.conditions.push_back({slot(c[0], rule, false), count_of(c[1]), maximum_of(c[2])});
    }
    edge.conditions_count = static_cast<uint32_t>(conditions.size());
    edge.actions_begin = static_cast<uint32_t>(grammar_.actions.size());
    nb::tuple actions = tuple_of(tuple[4]);
    for (nb::handle each : actions) {
      nb::tuple a = tuple_of(each);
      if (a.size() != 2) throw GrammarError("rule " + rule.name + ": an action is not (action, slot)");
      bool remember = nb::cast<int>(a[0]) != 0;
      if (remember && edge.kind != EdgeKind::terminal) {
        throw GrammarError("rule " + rule.name + ": only an edge that reads a terminal can remember a text");
      }
      if (remember) {
        grammar_.actions.push_back({ActionKind::remember, slot(a[1], rule, text_set)});
      } else {
        grammar_.actions.push_back({ActionKind::increment, slot(a[1], rule, 0)});
      }
    }
    long long excluding = nb::cast<long long>(tuple[5]);
    if (excluding >= 0) {
      if (edge.kind != EdgeKind::terminal) throw GrammarError("rule " + rule.name + ": only a terminal can exclude texts");
      edge.excluding = static_cast<int32_t>(slot(tuple[5], rule, text_set));
      grammar_.may_need_fresh = true;
    }
    if (nb::cast<long long>(tuple[6]) >= 0) {
      const uint32_t values = slot(tuple[6], rule, value_set);
      grammar_.has_values = grammar_.may_need_fresh = true;
      if (edge.kind == EdgeKind::rule) {
        edge.distinct = static_cast<int32_t>(values);
        grammar_.reads_groups = true;
      } else if (edge.kind == EdgeKind::terminal && excluding < 0 && !remembers(edge)) {
        edge.excluding = static_cast<int32_t>(values);
        grammar_.actions.push_back({ActionKind::remember, values});
      } else {
        throw GrammarError("rule " + rule.name + ": an edge that is distinct reads a terminal or a rule, and remembers nothing else");
      }
    }
    edge.actions_count = static_cast<uint32_t>(grammar_.actions.size()) - edge.actions_begin;
    return edge;
  }

  bool remembers(const Edge& edge) const {
    return std::any_of(grammar_.actions.begin() + edge.actions_begin, grammar_.actions.end(),
                       [](const Action& action) { return action.kind == ActionKind::remember; });
  }

  static uint32_t slot(nb::handle number, const Rule& rule, int32_t kind) {  // kind 0: a counter
    uint32_t slot = count_of(number);
    if (slot >= rule.slots.size() || std::min(rule.slots[slot], 0) != kind) {
      const char* name = kind == text_set ? "text set" : kind == value_set ? "value set" : "counter";
      throw GrammarError("rule " + rule.name + ": slot " + std::to_string(slot) + " is not a " + name + " of its memory");
    }
    return slot;
  }

  Grammar& grammar_;
  size_t rule_count_;
  size_t read_ = 0;  // edges
};

}  // namespace

ExprId import_expression(ExpressionStore& store, nb::handle expression, size_t allowance) {
  const bool is_less = allowance < MAX_COMPILE_WORK.value;
  store.work().allow({is_less ? allowance : MAX_COMPILE_WORK.value, is_less ? nullptr : &MAX_COMPILE_WORK});
  return Importer(store).expression(expression);
}

namespace {

bool is_special(nb::handle expression) {
  if (nb::cast<std::string>(expression.type().attr("__name__")) != "Literal") return false;
  const std::string text = bytes_of(expression.attr("text"));
  return text.size() > 2 && text.front() == mark_begin && text.back() == mark_end && std::none_of(text.begin() + 1, text.end() - 1, is_mark);
}

// Text contains no marks.
ExprId without_marks(ExpressionStore& store, ExprId terminal) {
  const ByteSet text = ByteSet::range(0, 0xFD);
  if ((store.alphabet(terminal) & text) == store.alphabet(terminal)) return terminal;
  LongWork work(store.work());
  return store.intersection({terminal, store.repetition(store.bytes(text), 0, unbounded)});
}

}  // namespace

namespace {

void read_token_options(Grammar& grammar, nb::handle terminal) {
  const nb::object limit = terminal.attr("max_tokens"), temperature = terminal.attr("temperature");
  grammar.token_limits.push_back(unbounded);
  if (!limit.is_none()) {
    const long long most = nb::cast<long long>(limit);
    if (most < 1) throw GrammarError("terminal " + grammar.terminal_names.back() + ": max_tokens is " + std::to_string(most) + "; it must be 1 or more");
    grammar.token_limits.back() = static_cast<uint32_t>(std::min<long long>(most, unbounded - 1));
    grammar.limits_tokens = true;
  }
  grammar.temperatures.push_back(-1);
  if (!temperature.is_none()) {
    const double wanted = nb::cast<double>(temperature);
    if (!(wanted >= 0 && wanted < std::numeric_limits<double>::infinity())) {
      throw GrammarError("terminal " + grammar.terminal_names.back() + ": the temperature must be a finite number, 0 or more");
    }
    grammar.temperatures.back() = wanted;
    grammar.has_temperatures = true;
  }
}

// Texts that are compared with others, and ignored ones, have no token limit: both are read without regard to it.
void check_token_limits(const Grammar& grammar) {
  if (!grammar.limits_tokens) return;
  const auto refuse = [&](uint32_t terminal, const char* why) {
    throw GrammarError("terminal " + grammar.terminal_names[terminal] + " has a limit on its tokens (max_tokens), but " + why);
  };
  for (uint32_t t : grammar.ignored) {
    if (grammar.token_limit(TermId{t}) != unbounded) refuse(t, "it is ignored");
  }
  for (const Edge& edge : grammar.edges) {
    if (edge.kind != EdgeKind::terminal || grammar.token_limit(TermId{edge.symbol}) == unbounded) continue;
    const std::span<const Action> actions = grammar.actions_of(edge);
    const bool remembers = std::any_of(actions.begin(), actions.end(), [](const Action& a) { return a.kind == ActionKind::remember; });
    if (edge.excluding >= 0 || remembers) refuse(edge.symbol, "its texts are compared with others");
  }
}

}  // namespace

std::string text_of(nb::handle text) {
  const nb::object encoded = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace"));
  if (!encoded) throw nb::python_error();
  return bytes_of(encoded);
}

Grammar import_grammar(nb::handle object, bool prove) {
  Grammar grammar;
  grammar.expressions.work().allow({MAX_COMPILE_WORK.value, &MAX_COMPILE_WORK});
  Importer importer(grammar.expressions);
  for (nb::handle each : tuple_of(object.attr("terminals"))) {
    grammar.terminal_names.push_back(text_of(each.attr("name")));
    of_terminal(static_cast<uint32_t>(grammar.terminals.size()), [&] {
      const ExprId expression = importer.expression(each.attr("expression"));
      grammar.terminals.push_back(is_special(each.attr("expression")) ? expression : without_marks(grammar.expressions, expression));
    });
    grammar.kinds.push_back(nb::cast<uint8_t>(each.attr("kind")));
    grammar.lazy.push_back(nb::cast<bool>(each.attr("lazy")));
    read_token_options(grammar, each);
  }
  nb::tuple rules = tuple_of(object.attr("rules"));
  if (rules.size() == 0) throw GrammarError("a grammar needs at least one rule");
  RuleImporter rule_importer(grammar, rules.size());
  for (nb::handle each : rules) rule_importer.add(each);
  if (grammar.reads_groups) {
    for (nb::handle each : tuple_of(object.attr("terminals"))) {
      const int role = nb::cast<int>(each.attr("role"));
      if (role < 0 || role > static_cast<int>(Role::close)) throw GrammarError("a terminal has a role that does not exist");
      grammar.roles.push_back(static_cast<Role>(role));
      grammar.labels.push_back(bytes_of(each.attr("label")));
    }
  }
  for (nb::handle each : tuple_of(object.attr("ignored"))) {
    grammar.ignored.push_back(count_of(each));
    if (grammar.ignored.back() >= grammar.terminals.size()) throw GrammarError("an ignored terminal does not exist");
  }
  grammar.self_delimiting = nb::cast<bool>(object.attr("self_delimiting"));
  grammar.reads_bytes = tuple_of(object.attr("split")).size() > 0;
  grammar.numbers_by_double = nb::cast<bool>(object.attr("numbers_by_double"));
  grammar.strings_by_value = nb::cast<bool>(object.attr("strings_by_value"));
  check_token_limits(grammar);
  nb::gil_scoped_release release;
  analyse(grammar);
  if (prove && !grammar.self_delimiting) prove_lexing(grammar);
  return grammar;
}

}  // namespace constrain
