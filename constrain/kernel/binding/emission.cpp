// Automata of arrays and objects. Scalars, combined shapes, objects with keys in any order, key patterns and the notations
// of tool calls are made by the methods of constrain/json_schema/emission/emitter.py, which extends `Emission`.
//
// An array is a chain for the prefix, then a loop that counts as far as bounds need it.
//
// An object with its keys in schema order has the declared keys, then those of the key classes. `C0` offers the first key
// or skips it, `M1` follows its member; a comma is read only if a member follows:
//
//     START --{--> C0 --"a":--> V0 --value--> M1 --}--> END
//                   |                          |
//                   | (if optional)            | ,
//                   v                          v
//                  C1 --"b":--> V1 ...        C1
//
// Edges are linear in the number of keys. A counter exists only if the number of members has a bound that the automaton
// does not enforce by itself, a set of used keys only if an undeclared key could come twice.
#include "binding/emission.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "binding/draft.h"
#include "binding/import.h"
#include "values/strings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace constrain {

namespace {

constexpr size_t edges_at_a_time = 5'000;  // made before other threads may take the GIL
constexpr int64_t no_bound = -1;
constexpr double endless = std::numeric_limits<double>::infinity();

// What this file needs of Python. Made once, as looking names up takes as long as a small schema.
struct Names {
  PyObject* shapes = name("shapes");
  PyObject* productive = name("productive");
  PyObject* location = name("location");
  nb::object spend = of("constrain.work", "spend");
  nb::object key_goals = of("constrain.json_schema.shapes.objects", "key_goals");
  nb::object key_classes = of("constrain.json_schema.shapes.keys", "key_classes");
  nb::object capacity = of("constrain.json_schema.shapes.keys", "capacity");
  nb::object spell_string = of("constrain.json_schema.spelling.canonical", "spell_string");
  nb::object has_value = of("constrain.json_schema.formulas.closing", "has_value");
  nb::object empty_text = of("constrain.language.tree", "EMPTY_TEXT");
  nb::object array_shape = of("constrain.json_schema.shapes.data", "ArrayShape");
  size_t keys_per_step = nb::cast<size_t>(of("constrain.json_schema.shapes.objects", "KEYS_PER_STEP"));
  size_t bytes_per_step = nb::cast<size_t>(of("constrain.json_schema.emission.scalars", "BYTES_PER_STEP"));

  static const Names& get() {  // no static object with a guard: importing lets other threads run
    static const Names* names = nullptr;
    if (!names) names = new Names();
    return *names;
  }

 private:
  static PyObject* name(const char* text) { return PyUnicode_InternFromString(text); }
  static nb::object of(const char* module, const char* attribute) { return nb::module_::import_(module).attr(attribute); }
};

// The items of the tuples of constrain/json_schema/shapes/data.py.
enum ShapesItem { simple, numbers, strings, arrays, objects, combined };
enum ArrayItem { prefix, rest, array_minimum, array_maximum, is_unique };
enum ObjectItem { properties, required, patterns, additional, object_minimum, object_maximum };
// Those of `Punctuation`, as far as they are lexemes.
enum Lexeme { open_object, close_object, close_empty_object, open_array, close_array, close_empty_array, comma, colon };
constexpr size_t lexemes = 8;

nb::handle item(nb::handle tuple, Py_ssize_t index) {
  PyObject* found = PyTuple_GetItem(tuple.ptr(), index);
  if (!found) throw nb::python_error();
  return found;
}

size_t size_of(nb::handle tuple) {
  const Py_ssize_t size = PyTuple_Size(tuple.ptr());
  if (size < 0) throw nb::python_error();
  return static_cast<size_t>(size);
}

size_t size_of(nb::handle shape, int index) { return size_of(item(shape, index)); }

nb::object attribute(nb::handle object, PyObject* name) {
  PyObject* found = PyObject_GetAttr(object.ptr(), name);
  if (!found) throw nb::python_error();
  return nb::steal(found);
}

bool is_productive(nb::handle goal) { return attribute(goal, Names::get().productive).is(nb::handle(Py_True)); }

int64_t bound_of(nb::handle number) { return number.is_none() ? no_bound : integer_cut(number); }

bool contains(const nb::object& set, nb::handle key) {
  if (!set.is_valid()) return false;
  const int found = PySet_Contains(set.ptr(), key.ptr());
  if (found < 0) throw nb::python_error();
  return found != 0;
}

// The item of a dict; null if there is none.
nb::handle get(nb::handle dict, nb::handle key) {
  PyObject* found = PyDict_GetItemWithError(dict.ptr(), key.ptr());
  if (!found && PyErr_Occurred()) throw nb::python_error();
  return found;
}

// The text of a key, whose object must live on. Raises UnsupportedSchemaError for lone surrogates.
std::string_view spellable(nb::handle text) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (!data) {
    PyErr_Clear();
    Names::get().spell_string(text);
  }
  return {data, static_cast<size_t>(size)};
}

uint32_t count_from(int64_t number) {
  if (number < 0) throw GrammarError("a count is negative");
  return static_cast<uint32_t>(number);  // RuleAutomaton::slot has checked the greatest one
}

struct Blocking {
  nb::object goal;
  nb::object which;  // the key or index
};

// A required item of an array that is not known to have a value.
std::optional<Blocking> unproductive_item(nb::handle array) {
  const int64_t minimum = bound_of(item(array, array_minimum));
  const nb::handle first = item(array, prefix);
  const auto length = static_cast<int64_t>(size_of(first));
  for (int64_t i = 0; i < std::min(minimum, length); ++i) {
    if (!is_productive(item(first, i))) return Blocking{nb::borrow(item(first, i)), nb::int_(i)};
  }
  if (minimum > length && !is_productive(item(array, rest))) return Blocking{nb::borrow(item(array, rest)), nb::int_(length)};
  return {};
}

// The greatest number of items whose goals admit a value, as far as known.
int64_t longest_length(nb::handle array) {
  const int64_t maximum = bound_of(item(array, array_maximum));
  const nb::handle first = item(array, prefix);
  const auto length = static_cast<int64_t>(size_of(first));
  const auto at_most = [&](int64_t items) { return maximum == no_bound ? items : std::min(items, maximum); };
  for (int64_t i = 0; i < length; ++i) {
    if (!is_productive(item(first, i))) return at_most(i);
  }
  return is_productive(item(array, rest)) ? maximum : at_most(length);
}

// A required member that is not known to have a value. Adds to `steps`.
std::optional<Blocking> unproductive_member(nb::handle shape, size_t& steps) {
  const nb::handle keys = item(shape, required);
  const size_t count = size_of(keys);
  if (count == 0) return {};
  nb::object goals;
  if (size_of(shape, patterns) > 0) {
    goals = Names::get().key_goals(shape, keys);
  } else {
    steps += count / Names::get().keys_per_step;
  }
  const nb::handle declared = goals.is_valid() ? goals : item(shape, properties);
  for (size_t i = 0; i < count; ++i) {
    const nb::handle key = item(keys, static_cast<Py_ssize_t>(i)), found = get(declared, key);
    const nb::handle goal = found.is_valid() ? found : item(shape, additional);
    if (!is_productive(goal)) return Blocking{nb::borrow(goal), nb::borrow(key)};
  }
  return {};
}

bool has_object(nb::handle shape, size_t& steps) {
  if (unproductive_member(shape, steps)) return false;
  const nb::handle minimum = item(shape, object_minimum);
  if (integer_cut(minimum) == 0) return true;
  const int enough = PyObject_RichCompareBool(nb::object(Names::get().capacity(shape)).ptr(), minimum.ptr(), Py_GE);
  if (enough < 0) throw nb::python_error();
  return enough != 0;
}

enum class Inner : uint8_t { array, object, any };  // what a rule reads

Inner inner_of(nb::handle kind) {
  const std::string_view text = spellable(kind);
  return text == "array" ? Inner::array : text == "object" ? Inner::object : Inner::any;
}

struct UndeclaredKey {
  int64_t before, key, after;
};

int64_t symbol_of(nb::handle symbol) { return symbol.is_none() ? reads_nothing : integer_cut(symbol); }

class Emission {
 public:
  Emission(nb::object draft, nb::object json, bool any_order, bool close_objects, bool keys_apart, bool any_spelling)
      : owner_(std::move(draft)), draft_(*nb::cast<Draft*>(owner_)), any_order_(any_order), close_objects_(close_objects),
        always_apart_(keys_apart), any_spelling_(any_spelling), keys_apart(keys_apart) {
    set_punctuation(std::move(json));
  }

  nb::object notation = nb::none();  // of the object or array of a tool call that is being made; None for JSON
  const nb::object& punctuation() const { return punctuation_; }
  void set_punctuation(nb::object given) {
    punctuation_ = std::move(given);
    lexemes_.fill({});
  }

  void set_ambiguous(nb::handle goals) {
    for (nb::handle goal : goals) ambiguous_.insert(keep(goal));
  }

  // The goal whose rule is being made.
  nb::object goal() const { return made_ < queue_.size() ? queue_[made_].goal : nb::none(); }

  // Symbols of terminals and goals.

  // The symbol of a terminal; each object is added once.
  int64_t add(nb::handle terminal) {
    const auto [known, is_new] = ids_.try_emplace(terminal.ptr());
    if (is_new) known->second = new_terminal({nb::borrow(terminal), {}, {}, {}});
    return known->second;
  }

  int64_t add_unless_empty(nb::handle terminal) {
    return terminal.attr("expression").is(Names::get().empty_text) ? reads_nothing : add(terminal);
  }

  // The symbol of a declared key, with its colon unless `keys_apart`.
  int64_t key(nb::handle name) {
    if (!notation.is_none()) return integer_cut(notation.attr("key")(name));
    auto& keys = keys_[keys_apart];
    const std::string_view text = spellable(name);
    if (const auto known = keys.find(text); known != keys.end()) return known->second;
    ++counted_.terminals;
    counted_.steps += static_cast<size_t>(PyUnicode_GetLength(name.ptr())) / Names::get().bytes_per_step;
    DraftTerminal made{{}, nb::borrow(name), {}, {spelled_string(text)}, keys_apart};
    if (any_spelling_) {
      count();
      made.expression = host().attr("widened")(nb::bytes(made.texts[0].data(), made.texts[0].size()));
    }
    return keys[text] = new_terminal(std::move(made));  // the terminal keeps the name, and so the text
  }

  // The symbols of a class of undeclared keys, each expression once.
  UndeclaredKey undeclared_key(nb::handle expression) {
    if (!notation.is_none()) {
      const nb::object key = notation.attr("undeclared_key")(expression);
      return {symbol_of(item(key, 0)), symbol_of(item(key, 1)), symbol_of(item(key, 2))};
    }
    const int64_t behind = lexeme(colon);
    const auto [known, is_new] = undeclared_.try_emplace(keep(expression));
    if (is_new) {
      known->second = any_spelling_ ? add(host().attr("undeclared_terminal")(expression)) : new_terminal({{}, {}, nb::borrow(expression), {}});
    }
    return {reads_nothing, known->second, behind};
  }

  // The symbols that read a value of a goal as JSON, which must admit one; reserves a rule if one is needed.
  const std::vector<int64_t>& symbols(nb::handle goal) {
    const auto [known, is_new] = values_.try_emplace(goal.ptr());
    if (is_new) {
      std::vector<int64_t>& found = values_[keep(goal)];
      found = scalars(goal);
      const int64_t rule = inner(goal, Inner::any);
      if (rule != reads_nothing) found.push_back(rule);
    }
    return known->second;
  }

  // The symbol that reads arrays or objects of a goal, or both, if it has any.
  int64_t inner(nb::handle goal, Inner kind) {
    const auto [known, is_new] = inner_[static_cast<size_t>(kind)].try_emplace(keep(goal), reads_nothing);
    if (is_new && has_inner(goal, kind)) {
      const uint32_t rule = draft_.reserve();
      queue_.push_back({nb::borrow(goal), rule, kind});
      known->second = ~static_cast<int64_t>(rule);
    }
    return known->second;
  }

  // The symbols that read the value of a member, or an item, and what stands around it.
  std::vector<int64_t> member(int64_t key, nb::handle goal) {
    return notation.is_none() ? symbols(goal) : nb::cast<std::vector<int64_t>>(notation.attr("member")(key, goal));
  }
  std::vector<int64_t> item_symbols(nb::handle goal) {
    return notation.is_none() ? symbols(goal) : nb::cast<std::vector<int64_t>>(notation.attr("item")(goal));
  }

  // Rules.

  uint32_t reserve() { return draft_.reserve(); }

  // Adds a `Rule` of Python in the place of a reserved one.
  void set_rule(uint32_t number, nb::handle rule) {
    DraftEdges edges;
    for (nb::handle each : rule.attr("edges")) edges.read(each);
    draft_.make(number, rule.attr("name"), edges, nb::cast<std::vector<uint32_t>>(rule.attr("accepting")));
  }

  // Makes the first rule: the values of a goal, and white space around if that is allowed.
  void make_start(nb::handle goal) {
    constexpr uint32_t inside = 2, behind = 3;
    DraftEdges edges;
    std::vector<uint32_t> accepting{end_state};
    const uint32_t rule = draft_.reserve();
    const std::vector<int64_t>& values = symbols(goal);
    for (int64_t symbol : values) edges.add({start_state, end_state, symbol});
    const nb::object around = punctuation_.attr("around");
    if (!around.is_none()) {
      const int64_t white = add(around);
      for (int64_t symbol : values) edges.add({inside, end_state, symbol});
      edges.add({start_state, inside, white});
      edges.add({end_state, behind, white});
      accepting.push_back(behind);
    }
    draft_.make(rule, nb::str("text"), edges, std::move(accepting));
  }

  // Makes the rules that are reserved, and those that they reserve.
  void make_rules() {
    for (; made_ < queue_.size(); ++made_) {
      const Queued next = queue_[made_];  // a copy, as the queue grows
      make_rule(next.goal, next.rule, next.kind);
    }
  }

  void make_rule(nb::handle goal, uint32_t rule, Inner kind) {
    const auto made = std::make_shared<RuleAutomaton>();
    keys_apart = always_apart_ || ambiguous_.contains(goal.ptr());
    if (!notation.is_none()) notation.attr("begin_rule")();
    const nb::object shapes = attribute(goal, Names::get().shapes);
    if (kind != Inner::object) {
      for (nb::handle array : nb::borrow<nb::tuple>(item(shapes, arrays))) {
        if (!unproductive_item(array)) add_array(*made, array);
      }
    }
    if (close_objects_ || size_of(shapes, combined) > 0) {
      count();
      const nb::object found = host().attr("emitted")(goal);
      if (kind != Inner::array) {
        for (nb::handle shape : nb::borrow<nb::list>(item(found, 0))) add_object(made, shape);
      }
      for (nb::handle shape : nb::borrow<nb::list>(item(found, 1))) {
        if (!is_of_kind(shape, kind)) continue;
        made->begin_alternative();
        count();
        host().attr("add_combined")(made, shape);
        made->take_edges();
      }
    } else {
      for (nb::handle shape : nb::borrow<nb::tuple>(item(shapes, objects))) {
        if (has_object(shape, counted_.steps) && kind != Inner::array) add_object(made, shape);
      }
    }
    if (!notation.is_none()) add_ways_around(made->list, symbol_of(notation.attr("line_break")()));
    ++counted_.rules;
    counted_.edges += made->list.edges.size();
    count();
    const nb::object location = attribute(goal, Names::get().location);
    nb::object name = location.is_none() ? nb::str("value") : location.attr("pointer")();
    draft_.make(rule, nb::len(name) > 0 ? std::move(name) : nb::str("/"), made->list, {end_state}, std::move(made->slots));
    unoffered_ += made->list.edges.size();
    if (unoffered_ > edges_at_a_time) {
      unoffered_ = 0;
      offer_gil();
    }
  }

 private:
  struct Queued {
    nb::object goal;
    uint32_t rule;
    Inner kind;
  };

  // What this emission takes of the steps of the compilation, until `count` tells Python.
  struct Counted {
    size_t rules = 0, edges = 0, terminals = 0, steps = 0;
  };

  struct KeyClass {
    nb::object expression;  // null: all keys that the object does not declare
    nb::object goal;
    double number;
  };

  struct Member {
    int64_t key;
    nb::object goal;
    bool required;
  };

  // Members of an object, `minimum` to `maximum` of them; `counter`, if any, counts them.
  struct Members {
    std::vector<Member> declared;
    std::vector<KeyClass> classes;
    double extra = 0;  // number of keys in all classes
    int64_t minimum = 0, maximum = no_bound;
    uint32_t counter = 0;

    bool are_counted() const { return minimum > 0 || maximum != no_bound; }
    // There are at most, or at least, so many members so far.
    std::vector<Condition> at_most(int64_t number) const {
      return maximum == no_bound ? std::vector<Condition>{} : std::vector<Condition>{{counter, 0, count_from(number)}};
    }
    std::vector<Condition> at_least(double number) const {
      return number <= 0 ? std::vector<Condition>{} : std::vector<Condition>{{counter, static_cast<uint32_t>(number), unbounded}};
    }
    std::vector<Action> counted() const { return are_counted() ? std::vector<Action>{{ActionKind::increment, counter}} : std::vector<Action>{}; }
  };

  nb::object host() { return nb::find(this); }

  PyObject* keep(nb::handle object) {  // so that no other object gets its address
    kept_.push_back(nb::borrow(object));
    return object.ptr();
  }

  // Tells Python what was taken. Raises LimitError.
  void count() {
    const Counted taken = std::exchange(counted_, {});
    host().attr("count")(taken.rules, taken.edges, taken.terminals, taken.steps);
  }

  int64_t new_terminal(DraftTerminal made) {
    draft_.terminals.push_back(std::move(made));
    return static_cast<int64_t>(draft_.terminals.size()) - 1;
  }

  int64_t lexeme(Lexeme which) {
    std::optional<int64_t>& known = lexemes_[which];
    if (!known) known = add_unless_empty(item(punctuation_, which));
    return *known;
  }

  // Frequent scalars are found by the identity of their shapes.
  std::vector<int64_t> scalars(nb::handle goal) {
    const nb::object shapes = attribute(goal, Names::get().shapes);
    const int64_t constants = integer_cut(item(shapes, simple));
    const nb::handle of_numbers = item(shapes, numbers), of_strings = item(shapes, strings);
    const size_t number_shapes = size_of(of_numbers), string_shapes = size_of(of_strings);
    if (constants == 0 && number_shapes == 0 && string_shapes == 0) return {};
    const bool is_brief = number_shapes < 2 && string_shapes < 2;
    const auto only = [](nb::handle tuple, size_t size) { return size == 1 ? item(tuple, 0).ptr() : nullptr; };
    const std::tuple key{constants, only(of_numbers, number_shapes), only(of_strings, string_shapes)};
    if (is_brief) {
      if (const auto known = scalars_.find(key); known != scalars_.end()) return known->second;
    }
    count();
    std::vector<int64_t> found;
    for (nb::handle terminal : nb::borrow<nb::list>(host().attr("scalars_of")(goal))) found.push_back(add(terminal));
    if (is_brief) {
      keep(shapes);
      scalars_.emplace(key, found);
    }
    return found;
  }

  bool has_inner(nb::handle goal, Inner kind) {
    const nb::object shapes = attribute(goal, Names::get().shapes);
    if (kind != Inner::object) {
      for (nb::handle array : nb::borrow<nb::tuple>(item(shapes, arrays))) {
        if (!unproductive_item(array)) return true;
      }
    }
    if (kind != Inner::array) {
      for (nb::handle shape : nb::borrow<nb::tuple>(item(shapes, objects))) {
        if (has_object(shape, counted_.steps)) return true;
      }
    }
    for (nb::handle shape : nb::borrow<nb::tuple>(item(shapes, combined))) {
      if (is_of_kind(shape, kind) && nb::cast<bool>(Names::get().has_value(shape))) return true;
    }
    return false;
  }

  static bool is_of_kind(nb::handle combination, Inner kind) {
    if (kind == Inner::any) return true;
    return nb::isinstance(combination.attr("base"), Names::get().array_shape) == (kind == Inner::array);
  }

  // A way around each line break.
  static void add_ways_around(DraftEdges& list, int64_t line_break) {
    if (line_break == reads_nothing) return;
    for (size_t i = 0, count = list.edges.size(); i < count; ++i) {
      if (list.edges[i].symbol != line_break) continue;
      DraftEdge around = list.edges[i];
      around.symbol = reads_nothing;
      list.edges.push_back(around);
    }
  }

  // Adds edges from the start to the end that read the arrays of a shape, which must admit at least one.
  void add_array(RuleAutomaton& made, nb::handle shape) {
    DraftEdges& edges = made.list;
    const int64_t minimum = bound_of(item(shape, array_minimum)), longest = longest_length(shape);
    if (minimum > 1) host().attr("check_least")(item(shape, array_minimum));
    made.begin_alternative();
    const int64_t distinct = item(shape, is_unique).is(nb::handle(Py_True)) ? int64_t{made.slot(value_set)} : -1;
    const auto read = [&](uint32_t source, const std::vector<int64_t>& symbols, uint32_t target) {
      for (int64_t symbol : symbols) edges.add({.source = source, .target = target, .symbol = symbol, .distinct = distinct});
    };
    uint32_t before = made.state();
    edges.add({start_state, before, lexeme(open_array)});
    if (minimum == 0) edges.add({before, end_state, lexeme(close_empty_array)});
    if (longest == 0) return;
    const int64_t closing = lexeme(close_array);
    uint32_t after = before;
    const nb::handle goals = item(shape, prefix);
    auto length = static_cast<int64_t>(size_of(goals));
    if (longest != no_bound) length = std::min(length, longest);
    for (int64_t i = 0; i < length; ++i) {
      after = made.state();
      read(before, item_symbols(item(goals, i)), after);
      if (i + 1 == length) break;
      if (i + 1 >= minimum) edges.add({after, end_state, closing});
      before = made.state();
      edges.add({after, before, lexeme(comma)});
    }
    if (longest == length) return edges.add({after, end_state, closing});
    const std::vector<int64_t> others = item_symbols(item(shape, rest));
    if (length == 0) {
      after = made.state();
      length = 1;
      read(before, others, after);
    }
    if (longest == length) return edges.add({after, end_state, closing});
    const int64_t separator = lexeme(comma), needed = std::max<int64_t>(minimum - length, 0);
    before = made.state();
    if (needed == 0 && longest == no_bound) {
      edges.add({after, end_state, closing});
      edges.add({after, before, separator});
    } else {
      const int64_t most = longest == no_bound ? no_bound : longest - length;
      const uint32_t slot = made.slot(most == no_bound ? needed : most);
      const Condition enough{slot, count_from(needed), unbounded}, room{slot, 0, most == no_bound ? unbounded : count_from(most - 1)};
      const Action counted{ActionKind::increment, slot};
      edges.add({after, end_state, closing}, {&enough, needed > 0 ? size_t{1} : 0});
      edges.add({after, before, separator}, {&room, most != no_bound ? size_t{1} : 0}, {&counted, 1});
    }
    read(before, others, after);
  }

  // Adds edges from the start to the end that read the objects of a shape, which must admit at least one.
  void add_object(const std::shared_ptr<RuleAutomaton>& automaton, nb::handle shape) {
    RuleAutomaton& made = *automaton;
    made.begin_alternative();
    const auto needed = static_cast<int64_t>(size_of(shape, required));
    const int64_t minimum = bound_of(item(shape, object_minimum)), maximum = bound_of(item(shape, object_maximum));
    const bool is_full = maximum == needed;  // no room for others
    Members members;
    members.declared = declared_members(shape, is_full);
    const uint32_t opened = made.state();
    made.list.add({start_state, opened, lexeme(open_object)});
    if (needed == 0 && minimum == 0) made.list.add({opened, end_state, lexeme(close_empty_object)});
    if (maximum == 0) return;
    if (!is_full) members.classes = key_classes(shape);
    const auto declared = static_cast<int64_t>(members.declared.size());
    if (minimum > 1) host().attr("check_new_keys")(shape, declared);
    if (declared == 0 && members.classes.empty()) return;
    if (any_order_) return add_unordered(automaton, members, shape, opened);
    for (const KeyClass& each : members.classes) members.extra += each.number;
    members.minimum = minimum <= std::max<int64_t>(needed, 1) ? 0 : minimum;  // one member: the empty object is left out
    members.maximum = static_cast<double>(maximum) >= static_cast<double>(declared) + members.extra ? no_bound : maximum;
    if (members.are_counted()) members.counter = made.slot(members.maximum == no_bound ? members.minimum : members.maximum);
    uint32_t first = opened;
    if (declared == 0) {
      first = made.state();
      made.list.add({opened, first, reads_nothing});
    }
    const uint32_t last = add_members(made, members, first, needed);
    if (!members.classes.empty()) add_classes(made, members, last, shape);
  }

  void add_unordered(const std::shared_ptr<RuleAutomaton>& automaton, const Members& members, nb::handle shape, uint32_t opened) {
    nb::list declared, classes;
    for (const Member& each : members.declared) declared.append(nb::make_tuple(each.key, each.goal, each.required));
    for (const KeyClass& each : members.classes) classes.append(nb::make_tuple(each.expression, each.goal, each.number));
    count();
    host().attr("add_unordered")(automaton, shape, opened, declared, classes);
    automaton->take_edges();
  }

  // The declared members in schema order, then the required keys outside `properties`.
  std::vector<Member> declared_members(nb::handle shape, bool only_required) {
    std::vector<Member> members;
    const nb::handle names = item(shape, required), declared = item(shape, properties);
    const nb::object needed = size_of(names) == 0 ? nb::object() : nb::steal(PyFrozenSet_New(names.ptr()));
    for (auto [name, goal] : nb::borrow<nb::dict>(declared)) {
      const bool is_required = contains(needed, name);
      if (is_productive(goal) && (is_required || !only_required)) members.push_back({key(name), nb::borrow(goal), is_required});
    }
    nb::list undeclared;
    for (nb::handle name : nb::borrow<nb::tuple>(names)) {
      if (!get(declared, name).is_valid()) undeclared.append(name);
    }
    if (nb::len(undeclared) > 0) {
      for (auto [name, goal] : nb::borrow<nb::dict>(Names::get().key_goals(shape, undeclared))) members.push_back({key(name), nb::borrow(goal), true});
    }
    return members;
  }

  std::vector<KeyClass> key_classes(nb::handle shape) {
    if (!notation.is_none() || any_order_ || any_spelling_ || size_of(shape, patterns) > 0) {
      std::vector<KeyClass> classes;
      for (nb::handle each : nb::list(Names::get().key_classes(shape))) {
        classes.push_back({nb::borrow(item(each, 0)), nb::borrow(item(each, 1)), nb::cast<double>(item(each, 2))});
      }
      return classes;
    }
    if (!is_productive(item(shape, additional))) return {};
    return {{{}, nb::borrow(item(shape, additional)), endless}};
  }

  // The symbols of all keys that an object does not declare.
  UndeclaredKey other_keys(nb::handle shape) {
    DraftTerminal made;
    const nb::handle declared = item(shape, properties);
    for (auto [name, goal] : nb::borrow<nb::dict>(declared)) made.texts.push_back(spelled_string(spellable(name)));
    for (nb::handle name : nb::borrow<nb::tuple>(item(shape, required))) {
      if (!get(declared, name).is_valid()) made.texts.push_back(spelled_string(spellable(name)));
    }
    if (made.texts.empty()) return undeclared_key(draft_.any_key);
    const int64_t behind = lexeme(colon);
    return {reads_nothing, new_terminal(std::move(made)), behind};
  }

  // Adds the declared members; returns the state that offers an undeclared one. `needed`: required ones, all still to come.
  uint32_t add_members(RuleAutomaton& made, const Members& members, uint32_t first, int64_t needed) {
    DraftEdges& edges = made.list;
    const std::vector<Action> counted = members.counted();
    uint32_t offer = first;
    double left = static_cast<double>(members.declared.size()) + members.extra;
    for (const Member& each : members.declared) {
      needed -= each.required;
      --left;
      uint32_t value = made.state();
      edges.add({offer, value, each.key}, each.required ? std::vector<Condition>{} : members.at_most(members.maximum - 1 - needed), counted);
      if (keys_apart) edges.add({std::exchange(value, made.state()), value, lexeme(colon)});
      const uint32_t following = made.state();
      for (int64_t symbol : member(each.key, each.goal)) edges.add({value, following, symbol});
      if (left > 0) {
        const uint32_t next = made.state();
        if (!each.required) edges.add({offer, next, reads_nothing}, members.at_least(static_cast<double>(members.minimum) - left));
        edges.add({following, next, lexeme(comma)}, needed > 0 ? std::vector<Condition>{} : members.at_most(members.maximum - 1));
        offer = next;
      }
      if (needed == 0) edges.add({following, end_state, lexeme(close_object)}, members.at_least(static_cast<double>(members.minimum)));
    }
    return offer;
  }

  // Adds a loop over the undeclared keys, each at most once.
  void add_classes(RuleAutomaton& made, const Members& members, uint32_t offer, nb::handle shape) {
    DraftEdges& edges = made.list;
    const uint32_t following = made.state();
    int64_t used = -1;
    std::vector<Action> actions = members.counted();
    std::vector<Condition> room = members.at_most(members.maximum - 1);
    const std::vector<Condition> fits = room;
    const bool again = members.extra > 1 && (members.maximum == no_bound || members.maximum > 1);
    if (again) {
      used = made.slot(text_set);
      actions.push_back({ActionKind::remember, static_cast<uint32_t>(used)});
      if (members.extra != endless) {
        const uint32_t total = made.slot(static_cast<int64_t>(members.extra));
        actions.push_back({ActionKind::increment, total});
        room.push_back({total, 0, count_from(static_cast<int64_t>(members.extra) - 1)});
      }
    }
    for (const KeyClass& each : members.classes) {
      const UndeclaredKey key = each.expression.is_valid() ? undeclared_key(each.expression) : other_keys(shape);
      const uint32_t behind = made.state();
      uint32_t source = offer;
      if (key.before != reads_nothing) {
        source = made.state();
        edges.add({offer, source, key.before}, fits);
      }
      const uint32_t value = made.state();
      edges.add({.source = source, .target = behind, .symbol = key.key, .excluding = used}, fits, actions);
      edges.add({behind, value, key.after});
      for (int64_t symbol : member(key.key, each.goal)) edges.add({value, following, symbol});
    }
    edges.add({following, end_state, lexeme(close_object)}, members.at_least(static_cast<double>(members.minimum)));
    if (again) edges.add({following, offer, lexeme(comma)}, room);
  }

  nb::object owner_;
  Draft& draft_;
  const bool any_order_, close_objects_, always_apart_, any_spelling_;
  nb::object punctuation_;
  std::array<std::optional<int64_t>, lexemes> lexemes_;
  std::unordered_set<PyObject*> ambiguous_;  // goals with keys and colons apart
  std::unordered_map<PyObject*, int64_t> ids_, undeclared_;
  std::array<std::unordered_map<std::string_view, int64_t>, 2> keys_;  // with the colon, and without
  std::unordered_map<PyObject*, std::vector<int64_t>> values_;
  std::array<std::unordered_map<PyObject*, int64_t>, 3> inner_;
  std::map<std::tuple<int64_t, PyObject*, PyObject*>, std::vector<int64_t>> scalars_;
  std::vector<Queued> queue_;
  size_t made_ = 0;
  std::vector<nb::object> kept_;
  Counted counted_;
  size_t unoffered_ = 0;  // edges since other threads could last take the GIL

 public:
  bool keys_apart;  // whether keys and colons are separate lexemes in the rule that is being made
};

}  // namespace

void bind_emission(nb::module_& m) {
  const auto found = [](const std::optional<Blocking>& each) { return each ? nb::object(nb::make_tuple(each->goal, each->which)) : nb::none(); };
  m.def("unproductive_item", [found](nb::handle shape) { return found(unproductive_item(shape)); }, "shape"_a,
        nb::sig("def unproductive_item(shape: typing.Any) -> tuple[typing.Any, int] | None"),
        "A required item of an array that is not known to have a value, with its index; None if there is none.");
  m.def("longest_length",
        [](nb::handle shape) -> nb::object {
          const int64_t longest = longest_length(shape);
          return longest == no_bound ? nb::none() : nb::object(nb::int_(longest));
        },
        "shape"_a, nb::sig("def longest_length(shape: typing.Any) -> int | None"),
        "The greatest number of items whose goals admit a value, as far as known; None: no bound.");
  m.def("unproductive_member",
        [found](nb::handle shape) {
          size_t steps = 0;
          const nb::object result = found(unproductive_member(shape, steps));
          if (steps > 0) Names::get().spend(steps);
          return result;
        },
        "shape"_a, nb::sig("def unproductive_member(shape: typing.Any) -> tuple[typing.Any, str] | None"),
        "A required member that is not known to have a value, with its key; None if there is none.");
  m.def("goals_with_alternatives",
        [](nb::handle goals) {
          nb::list result;
          for (nb::handle goal : goals) {
            const nb::object shapes = attribute(goal, Names::get().shapes);
            if (shapes.is_none()) continue;
            if (size_of(shapes, arrays) > 1 || size_of(shapes, objects) > 1 || size_of(shapes, combined) > 0) result.append(goal);
          }
          return result;
        },
        "goals"_a, nb::sig("def goals_with_alternatives(goals: collections.abc.Iterable[typing.Any]) -> list[typing.Any]"),
        "Those of some goals that have several shapes of arrays or objects, or combined ones.");
  const auto numbered = [](int64_t symbol) { return symbol == reads_nothing ? nb::none() : nb::object(nb::int_(symbol)); };
  const auto tuple = [](const std::vector<int64_t>& symbols) { return nb::tuple(nb::cast(symbols)); };
  nb::class_<Emission>(m, "Emission",
      "Makes the grammar of goals in a ``Draft``: gives terminals and goals their symbols, and makes the rules of goals.")
      .def(nb::init<nb::object, nb::object, bool, bool, bool, bool>(), "draft"_a, "punctuation"_a, nb::kw_only(), "any_order"_a,
           "close_objects"_a, "keys_apart"_a, "any_spelling"_a)
      .def_ro("keys_apart", &Emission::keys_apart, "Whether keys and colons are separate lexemes in the rule that is being made.")
      .def_rw("notation", &Emission::notation, nb::arg().none(),
              nb::for_getter(nb::sig("def notation(self) -> typing.Any")), nb::for_setter(nb::sig("def notation(self, given: typing.Any, /) -> None")),
              "The notation of the object or array that is being made; None for JSON.")
      .def_prop_rw("punctuation", &Emission::punctuation, &Emission::set_punctuation,
                   nb::for_getter(nb::sig("def punctuation(self) -> typing.Any")), nb::for_setter(nb::sig("def punctuation(self, given: typing.Any, /) -> None")),
                   "The lexemes of the rule that is being made.")
      .def_prop_ro("goal", &Emission::goal, nb::sig("def goal(self) -> typing.Any"), "The goal whose rule is being made.")
      .def("set_ambiguous", &Emission::set_ambiguous, "goals"_a, nb::sig("def set_ambiguous(self, goals: collections.abc.Iterable[typing.Any]) -> None"),
           "Sets the goals in whose rules keys and colons are separate lexemes.")
      .def("add", [numbered](Emission& self, nb::handle terminal) { return numbered(self.add_unless_empty(terminal)); }, "terminal"_a,
           nb::sig("def add(self, terminal: typing.Any) -> int | None"),
           "Adds a terminal to the grammar, each object once; returns its symbol, None for the empty text.")
      .def("key", &Emission::key, "name"_a, nb::sig("def key(self, name: str) -> int"),
           "Returns the symbol that reads a declared key and its colon; only the key if ``keys_apart``.")
      .def("undeclared_key",
           [numbered](Emission& self, nb::handle expression) {
             const UndeclaredKey key = self.undeclared_key(expression);
             return nb::make_tuple(numbered(key.before), key.key, numbered(key.after));
           },
           "expression"_a, nb::sig("def undeclared_key(self, expression: typing.Any) -> tuple[int | None, int, int | None]"),
           "Returns the symbols that read an undeclared key, and what stands before and after it; None for nothing.")
      .def("symbols", [tuple](Emission& self, nb::handle goal) { return tuple(self.symbols(goal)); }, "goal"_a,
           nb::sig("def symbols(self, goal: typing.Any) -> tuple[int, ...]"),
           "Returns the symbols that read a value of a goal, which must admit one, as JSON.")
      .def("member", [tuple](Emission& self, int64_t key, nb::handle goal) { return tuple(self.member(key, goal)); }, "key"_a, "goal"_a,
           nb::sig("def member(self, key: int, goal: typing.Any) -> tuple[int, ...]"),
           "Returns the symbols that read a member's value, and what stands behind it, after a key.")
      .def("item", [tuple](Emission& self, nb::handle goal) { return tuple(self.item_symbols(goal)); }, "goal"_a,
           nb::sig("def item(self, goal: typing.Any) -> tuple[int, ...]"),
           "Returns the symbols that read an item of an array, and what stands around it.")
      .def("inner", [numbered](Emission& self, nb::handle goal, nb::handle kind) { return numbered(self.inner(goal, inner_of(kind))); },
           "goal"_a, "kind"_a, nb::sig("def inner(self, goal: typing.Any, kind: str) -> int | None"),
           "Returns the symbol that reads arrays or objects (``kind``) of a goal; None if it has none.")
      .def("reserve", &Emission::reserve, "Returns the number of a rule to be made.")
      .def("set_rule", &Emission::set_rule, "number"_a, "rule"_a, nb::sig("def set_rule(self, number: int, rule: typing.Any) -> None"),
           "Makes a reserved rule.")
      .def("make_start", &Emission::make_start, "goal"_a, nb::sig("def make_start(self, goal: typing.Any) -> None"),
           "Makes the first rule: the values of a goal, and white space around if that is allowed.")
      .def("make_rule", [](Emission& self, nb::handle goal, uint32_t rule, nb::handle kind) { self.make_rule(goal, rule, inner_of(kind)); },
           "goal"_a, "rule"_a, "kind"_a, nb::sig("def make_rule(self, goal: typing.Any, rule: int, kind: str) -> None"),
           "Makes a reserved rule: the arrays or objects (``kind``) of a goal.")
      .def("make_rules", &Emission::make_rules, "Makes the rules that symbols of goals have reserved, and those that they reserve.");
}

}  // namespace constrain
