// Reads grammars through attribute and tuple access only; keeps nothing of Python.
#include "binding/import.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "base/errors.h"
#include "binding/draft.h"
#include "expressions/json_spelling.h"
#include "matching/conflict_examples.h"
#include "vocabulary/vocabulary.h"

namespace nb = nanobind;

namespace constrain {

namespace {

constexpr uint32_t max_count = 0xFFFFFFFEu;  // of repetitions, window lengths and counters

}  // namespace

uint32_t count_of(nb::handle number) {
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

namespace {

constexpr unsigned max_recursed_depth = 50;  // levels read by recursive calls; deeper ones bottom up
constexpr size_t objects_at_a_time = 5'000;  // Python objects read before other threads may take the GIL, about 1 ms
constexpr size_t large_set = 2'000;          // texts whose sorting takes long

uint32_t maximum_of(nb::handle number) { return number.is_none() ? unbounded : count_of(number); }

std::string bytes_of(nb::handle object) {
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(object.ptr(), &data, &size) < 0) throw nb::python_error();
  return {data, static_cast<size_t>(size)};
}

nb::object encoded(nb::handle text) {
  PyObject* made = PyUnicode_AsUTF8String(text.ptr());
  if (!made) throw nb::python_error();
  return nb::steal(made);
}

class Importer {
 public:
  explicit Importer(ExpressionStore& store) : store_(store) {
    nb::module_ tree = nb::module_::import_("constrain.language.tree");
    const char* names[] = {"Literal", "ByteClass", "CharClass", "Concatenation", "Alternation", "Intersection",
                           "Complement", "Repetition", "LiteralSet", "Multiple", "Window", "Substring",
                           "LiteralTable"};
    for (int i = 0; i < kinds; ++i) types_[i] = tree.attr(names[i]).ptr();
  }

  ExprId expression(nb::handle object, unsigned depth = 0) {
    if (auto known = known_.find(object.ptr()); known != known_.end()) return known->second;
    return depth < max_recursed_depth ? import(object, depth) : import_from_below(object);
  }

  bool is_literal(nb::handle object) const { return reinterpret_cast<const PyObject*>(Py_TYPE(object.ptr())) == types_[0]; }

 private:
  static constexpr int kinds = 13;

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
        return store_.literal_set(texts);
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
        for (nb::handle text : tuple_of(object.attr("texts"))) source.texts.push_back(bytes_of(encoded(text)));
        for (nb::handle cut : tuple_of(object.attr("cuts"))) source.cuts.push_back(bytes_of(cut));
        source.json = nb::cast<bool>(object.attr("json"));
        const uint32_t minimum = count_of(object.attr("minimum")), maximum = maximum_of(object.attr("maximum"));
        check(source);
        LongWork work(store_.work(), true);
        return store_.substring(source, minimum, maximum);
      }
      case 12:
        return store_.literal_set(nb::cast<const Texts&>(object.attr("texts")).sorted);
      default:
        throw GrammarError(std::string("not an expression: ") + nb::cast<std::string>(nb::repr(object.type())));
    }
  }

  void has_read() {
    if (++read_ % objects_at_a_time == 0) offer_gil();
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

  // Reads a `Rule` of Python.
  void add(nb::handle rule) {
    Rule made;
    made.name = text_of(rule.attr("name"));
    for (nb::handle slot : tuple_of(rule.attr("slots"))) made.slots.push_back(kind_of(nb::cast<long long>(slot)));
    DraftEdges list;
    const nb::tuple edges = tuple_of(rule.attr("edges"));
    list.edges.reserve(edges.size());
    for (nb::handle each : edges) {
      list.read(each, "rule " + made.name + ": ");
      has_read();
    }
    std::vector<uint32_t> accepting;
    for (nb::handle state : tuple_of(rule.attr("accepting"))) accepting.push_back(count_of(state));
    add(std::move(made), list.edges, list, accepting);
  }

  void add(const DraftRule& rule, const Draft& draft) {
    Rule made;
    made.name = text_of(rule.name);
    for (int64_t slot : rule.slots) made.slots.push_back(kind_of(slot));
    add(std::move(made), draft.edges_of(rule), draft.list, rule.accepting);
  }

 private:
  void add(Rule made, std::span<const DraftEdge> edges, const DraftEdges& list, const std::vector<uint32_t>& accepting) {
    const auto base = static_cast<uint32_t>(grammar_.states.size());
    made.start = StateId{base};
    uint32_t last = 0;
    for (const DraftEdge& edge : edges) last = std::max({last, edge.source, edge.target});
    for (uint32_t state : accepting) last = std::max(last, state);
    if (last >= MAX_RULE_STATES.value) {
      throw LimitError("rule " + made.name + " has too many states (" + std::string(MAX_RULE_STATES.name) + ")");
    }
    grammar_.states.resize(base + last + 1, State{.rule = static_cast<uint32_t>(grammar_.rules.size())});
    for (uint32_t state : accepting) grammar_.states[base + state].accepting = true;
    for (const DraftEdge& edge : edges) ++grammar_.states[base + edge.source].edges_count;
    auto next = static_cast<uint32_t>(grammar_.edges.size());
    for (uint32_t q = base; q < grammar_.states.size(); ++q) {
      grammar_.states[q].edges_begin = next;
      next += grammar_.states[q].edges_count;
      grammar_.states[q].edges_count = 0;
    }
    grammar_.edges.resize(next);
    for (const DraftEdge& edge : edges) {
      State& state = grammar_.states[base + edge.source];
      grammar_.edges[state.edges_begin + state.edges_count++] = imported(edge, list, base, made);
    }
    grammar_.rules.push_back(std::move(made));
  }

  Edge imported(const DraftEdge& draft, const DraftEdges& list, uint32_t base, const Rule& rule) {
    Edge edge;
    edge.target = StateId{base + draft.target};
    if (draft.symbol != reads_nothing) {
      edge.kind = draft.symbol < 0 ? EdgeKind::rule : EdgeKind::terminal;
      const auto number = static_cast<uint64_t>(draft.symbol < 0 ? ~draft.symbol : draft.symbol);
      if (number >= (draft.symbol < 0 ? rule_count_ : grammar_.terminals.size())) {
        throw GrammarError("rule " + rule.name + ": an edge names a symbol that does not exist");
      }
      edge.symbol = static_cast<uint32_t>(number);
    }
    edge.conditions_begin = static_cast<uint32_t>(grammar_.conditions.size());
    for (const Condition& each : list.conditions_of(draft)) {
      check_slot(each.slot, rule, 0);
      grammar_.conditions.push_back(each);
    }
    edge.conditions_count = draft.conditions_count;
    edge.actions_begin = static_cast<uint32_t>(grammar_.actions.size());
    bool remembers = false;
    for (const Action& each : list.actions_of(draft)) {
      const bool remember = each.kind == ActionKind::remember;
      if (remember && edge.kind != EdgeKind::terminal) {
        throw GrammarError("rule " + rule.name + ": only an edge that reads a terminal can remember a text");
      }
      check_slot(each.slot, rule, remember ? text_set : 0);
      grammar_.actions.push_back(each);
      remembers |= remember;
    }
    if (draft.excluding >= 0) {
      if (edge.kind != EdgeKind::terminal) throw GrammarError("rule " + rule.name + ": only a terminal can exclude texts");
      edge.excluding = check_slot(draft.excluding, rule, text_set);
      grammar_.may_need_fresh = true;
    }
    if (draft.distinct >= 0) {
      const int32_t values = check_slot(draft.distinct, rule, value_set);
      grammar_.has_values = grammar_.may_need_fresh = true;
      if (edge.kind == EdgeKind::rule) {
        edge.distinct = values;
        grammar_.reads_groups = true;
      } else if (edge.kind == EdgeKind::terminal && draft.excluding < 0 && !remembers) {
        edge.excluding = values;
        grammar_.actions.push_back({ActionKind::remember, static_cast<uint32_t>(values)});
      } else {
        throw GrammarError("rule " + rule.name + ": an edge that is distinct reads a terminal or a rule, and remembers nothing else");
      }
    }
    edge.actions_count = static_cast<uint32_t>(grammar_.actions.size()) - edge.actions_begin;
    has_read();
    return edge;
  }

  void has_read() {
    if (++read_ % objects_at_a_time == 0) offer_gil();
  }

  static int32_t kind_of(int64_t cap) { return static_cast<int32_t>(std::min<int64_t>(cap, 0x7FFFFFFF)); }

  static int32_t check_slot(int64_t slot, const Rule& rule, int32_t kind) {  // kind 0: a counter
    if (static_cast<uint64_t>(slot) >= rule.slots.size() || std::min(rule.slots[static_cast<size_t>(slot)], 0) != kind) {
      const char* name = kind == text_set ? "text set" : kind == value_set ? "value set" : "counter";
      throw GrammarError("rule " + rule.name + ": slot " + std::to_string(slot) + " is not a " + name + " of its memory");
    }
    return static_cast<int32_t>(slot);
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

class TerminalImporter {
 public:
  explicit TerminalImporter(Grammar& grammar) : grammar_(grammar), importer_(grammar.expressions) {}

  // Reads a `Terminal` of Python.
  void add(nb::handle terminal) {
    const nb::object expression = terminal.attr("expression");
    add(text_of(terminal.attr("name")), nb::cast<uint8_t>(terminal.attr("kind")), nb::cast<bool>(terminal.attr("lazy")), [&] {
      const ExprId result = importer_.expression(expression);
      return is_special(expression) ? result : without_marks(grammar_.expressions, result);
    });
    read_token_options(terminal);
  }

  void add(const DraftTerminal& terminal, const Draft& draft) {
    if (terminal.given.is_valid()) return add(terminal.given);
    const bool declared = terminal.name.is_valid();
    add(declared ? "key " + text_of(terminal.name) : "key", declared ? other_kind : string_kind, false, [&] {
      return declared ? declared_key(terminal, draft) : without_marks(grammar_.expressions, undeclared_key(terminal, draft));
    });
    grammar_.token_limits.push_back(unbounded);
    grammar_.temperatures.push_back(-1);
  }

  void add_role(nb::handle terminal) {
    const int role = nb::cast<int>(terminal.attr("role"));
    if (role < 0 || role > static_cast<int>(Role::close)) throw GrammarError("a terminal has a role that does not exist");
    grammar_.roles.push_back(static_cast<Role>(role));
    grammar_.labels.push_back(bytes_of(terminal.attr("label")));
  }

  void add_role(const DraftTerminal& terminal) {
    if (terminal.given.is_valid()) return add_role(terminal.given);
    grammar_.roles.push_back(Role::label);
    grammar_.labels.push_back(terminal.name.is_valid() ? terminal.texts[0] : "");
  }

 private:
  static constexpr uint8_t other_kind = 0, string_kind = 1;  // of constrain/language/grammar.py

  template <typename F>
  void add(std::string name, uint8_t kind, bool lazy, F&& expression) {
    grammar_.terminal_names.push_back(std::move(name));
    of_terminal(static_cast<uint32_t>(grammar_.terminals.size()), [&] { grammar_.terminals.push_back(expression()); });
    grammar_.kinds.push_back(kind);
    grammar_.lazy.push_back(lazy);
  }

  ExprId declared_key(const DraftTerminal& terminal, const Draft& draft) {
    ExpressionStore& store = grammar_.expressions;
    if (terminal.expression.is_valid()) {
      const ExprId key = importer_.expression(terminal.expression);
      return without_marks(store, terminal.apart ? key : store.concatenation(key, importer_.expression(draft.colon_tail)));
    }
    if (terminal.apart) return store.literal(terminal.texts[0]);
    if (importer_.is_literal(draft.colon_tail)) return store.literal(terminal.texts[0] + bytes_of(draft.colon_tail.attr("text")));
    const ExprId key = store.literal(terminal.texts[0]);
    return store.concatenation(key, importer_.expression(draft.colon_tail));
  }

  ExprId undeclared_key(const DraftTerminal& terminal, const Draft& draft) {
    ExpressionStore& store = grammar_.expressions;
    if (terminal.expression.is_valid()) return importer_.expression(terminal.expression);
    const ExprId any = importer_.expression(draft.any_key);
    LongWork work(store.work(), terminal.texts.size() > large_set);
    return store.intersection({any, store.complement(store.literal_set(terminal.texts))});
  }

  bool is_special(nb::handle expression) const {
    if (!importer_.is_literal(expression)) return false;
    const std::string text = bytes_of(expression.attr("text"));
    return text.size() > 2 && text.front() == mark_begin && text.back() == mark_end && std::none_of(text.begin() + 1, text.end() - 1, is_mark);
  }

  // Text contains no marks.
  static ExprId without_marks(ExpressionStore& store, ExprId terminal) {
    const ByteSet text = ByteSet::range(0, 0xFD);
    if ((store.alphabet(terminal) & text) == store.alphabet(terminal)) return terminal;
    LongWork work(store.work());
    return store.intersection({terminal, store.repetition(store.bytes(text), 0, unbounded)});
  }

  void read_token_options(nb::handle terminal) {
    const nb::object limit = terminal.attr("max_tokens"), temperature = terminal.attr("temperature");
    grammar_.token_limits.push_back(unbounded);
    if (!limit.is_none()) {
      const long long most = nb::cast<long long>(limit);
      if (most < 1) throw GrammarError("terminal " + grammar_.terminal_names.back() + ": max_tokens is " + std::to_string(most) + "; it must be 1 or more");
      grammar_.token_limits.back() = static_cast<uint32_t>(std::min<long long>(most, unbounded - 1));
      grammar_.limits_tokens = true;
    }
    grammar_.temperatures.push_back(-1);
    if (!temperature.is_none()) {
      const double wanted = nb::cast<double>(temperature);
      if (!(wanted >= 0 && wanted < std::numeric_limits<double>::infinity())) {
        throw GrammarError("terminal " + grammar_.terminal_names.back() + ": the temperature must be a finite number, 0 or more");
      }
      grammar_.temperatures.back() = wanted;
      grammar_.has_temperatures = true;
    }
  }

  Grammar& grammar_;
  Importer importer_;
};

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

Texts read_texts(nb::handle values) {
  std::string bytes;
  std::vector<uint32_t> ends;
  for (nb::handle value : values) {
    if (!PyUnicode_Check(value.ptr())) {
      const std::string type = nb::cast<std::string>(value.type().attr("__name__"));
      throw nb::type_error(("the values of a table must be strings, but one is of the type " + type).c_str());
    }
    const nb::object text = encoded(value);
    char* data = nullptr;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(text.ptr(), &data, &size) < 0) throw nb::python_error();
    for (char c : std::string_view(data, static_cast<size_t>(size))) spell_json(bytes, c);
    if (bytes.size() > MAX_TABLE_BYTES.value) throw LimitError(limit_message("a table has too many values", MAX_TABLE_BYTES));
    ends.push_back(static_cast<uint32_t>(bytes.size()));
    if (ends.size() % objects_at_a_time == 0) offer_gil();
  }
  nb::gil_scoped_release release;
  return Texts(SortedTexts(std::move(bytes), std::move(ends)));
}

namespace {

void import(Grammar& grammar, const Draft& draft) {
  TerminalImporter terminals(grammar);
  for (const DraftTerminal& each : draft.terminals) terminals.add(each, draft);
  RuleImporter rules(grammar, draft.rules.size());
  for (const DraftRule& each : draft.rules) rules.add(each, draft);
  if (grammar.reads_groups) {
    for (const DraftTerminal& each : draft.terminals) terminals.add_role(each);
  }
  grammar.self_delimiting = true;
  grammar.numbers_by_double = draft.numbers_by_double;
  grammar.strings_by_value = draft.strings_by_value;
}

void import(Grammar& grammar, nb::handle object) {
  TerminalImporter terminals(grammar);
  for (nb::handle each : tuple_of(object.attr("terminals"))) terminals.add(each);
  nb::tuple rules = tuple_of(object.attr("rules"));
  if (rules.size() == 0) throw GrammarError("a grammar needs at least one rule");
  RuleImporter rule_importer(grammar, rules.size());
  for (nb::handle each : rules) rule_importer.add(each);
  if (grammar.reads_groups) {
    for (nb::handle each : tuple_of(object.attr("terminals"))) terminals.add_role(each);
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
}

}  // namespace

Grammar import_grammar(nb::handle object, bool prove) {
  Grammar grammar;
  grammar.expressions.work().allow({MAX_COMPILE_WORK.value, &MAX_COMPILE_WORK});
  if (nb::isinstance<Draft>(object)) {
    import(grammar, *nb::cast<const Draft*>(object));
  } else {
    import(grammar, object);
  }
  nb::gil_scoped_release release;
  analyse(grammar);
  if (prove && !grammar.self_delimiting) prove_lexing(grammar);
  return grammar;
}

}  // namespace constrain
