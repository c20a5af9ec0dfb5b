// Edges of rules, from objects of Python and back.
#include "binding/draft.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>

#include "base/errors.h"
#include "binding/import.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace constrain {

namespace {

constexpr int64_t max_counter = 0x7FFFFFFF;

nb::tuple condition_tuple(const Condition& c) {
  return nb::make_tuple(c.slot, c.minimum, c.maximum == unbounded ? nb::none() : nb::object(nb::int_(c.maximum)));
}

}  // namespace

int64_t integer_cut(nb::handle number) {
  constexpr int64_t most = int64_t{1} << 62;
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (value == -1 && PyErr_Occurred()) throw nb::python_error();
  if (overflow != 0) return overflow > 0 ? most : -most;
  return std::clamp<int64_t>(value, -most, most);
}

void DraftEdges::add(DraftEdge edge, std::span<const Condition> its_conditions, std::span<const Action> its_actions) {
  edge.conditions_begin = static_cast<uint32_t>(conditions.size());
  edge.conditions_count = static_cast<uint32_t>(its_conditions.size());
  edge.actions_begin = static_cast<uint32_t>(actions.size());
  edge.actions_count = static_cast<uint32_t>(its_actions.size());
  conditions.insert(conditions.end(), its_conditions.begin(), its_conditions.end());
  actions.insert(actions.end(), its_actions.begin(), its_actions.end());
  edges.push_back(edge);
}

void DraftEdges::read(nb::handle given, const std::string& where) {
  const nb::tuple edge = tuple_of(given);
  if (edge.size() != 7) throw GrammarError(where + "an edge is not (source, symbol, target, conditions, actions, excluding, distinct)");
  DraftEdge made{count_of(edge[0]), count_of(edge[2]), reads_nothing};
  if (!edge[1].is_none()) made.symbol = integer_cut(edge[1]);
  made.conditions_begin = static_cast<uint32_t>(conditions.size());
  for (nb::handle each : tuple_of(edge[3])) {
    const nb::tuple c = tuple_of(each);
    if (c.size() != 3) throw GrammarError(where + "a condition is not (slot, minimum, maximum)");
    conditions.push_back({count_of(c[0]), count_of(c[1]), c[2].is_none() ? unbounded : count_of(c[2])});
  }
  made.conditions_count = static_cast<uint32_t>(conditions.size()) - made.conditions_begin;
  made.actions_begin = static_cast<uint32_t>(actions.size());
  for (nb::handle each : tuple_of(edge[4])) {
    const nb::tuple a = tuple_of(each);
    if (a.size() != 2) throw GrammarError(where + "an action is not (action, slot)");
    actions.push_back({nb::cast<int>(a[0]) != 0 ? ActionKind::remember : ActionKind::increment, count_of(a[1])});
  }
  made.actions_count = static_cast<uint32_t>(actions.size()) - made.actions_begin;
  made.excluding = integer_cut(edge[5]);
  made.distinct = integer_cut(edge[6]);
  edges.push_back(made);
}

void DraftEdges::append(const DraftEdges& others) {
  const auto first_condition = static_cast<uint32_t>(conditions.size()), first_action = static_cast<uint32_t>(actions.size());
  conditions.insert(conditions.end(), others.conditions.begin(), others.conditions.end());
  actions.insert(actions.end(), others.actions.begin(), others.actions.end());
  for (DraftEdge edge : others.edges) {
    edge.conditions_begin += first_condition;
    edge.actions_begin += first_action;
    edges.push_back(edge);
  }
}

nb::tuple DraftEdges::tuple(const DraftEdge& edge) const {
  nb::list its_conditions, its_actions;
  for (const Condition& c : conditions_of(edge)) its_conditions.append(condition_tuple(c));
  for (const Action& a : actions_of(edge)) its_actions.append(nb::make_tuple(static_cast<int>(a.kind), a.slot));
  const nb::object symbol = edge.symbol == reads_nothing ? nb::none() : nb::object(nb::int_(edge.symbol));
  return nb::make_tuple(edge.source, symbol, edge.target, nb::tuple(its_conditions), nb::tuple(its_actions), edge.excluding, edge.distinct);
}

uint32_t RuleAutomaton::slot(int64_t kind) {
  if (kind > max_counter) {
    nb::module_::import_("constrain.language.rule_automaton").attr("refuse_count")();
  }
  Kind& same = kinds_[kind];
  if (same.used == same.slots.size()) {
    same.slots.push_back(static_cast<uint32_t>(slots.size()));
    slots.push_back(kind);
  }
  return same.slots[same.used++];
}

void RuleAutomaton::take_edges() {
  for (nb::handle edge : std::exchange(edges, nb::list())) list.read(edge);
}

void RuleAutomaton::begin_alternative() {
  for (auto& [kind, same] : kinds_) same.used = 0;
}

uint32_t Draft::reserve() {
  rules.emplace_back();
  return static_cast<uint32_t>(rules.size()) - 1;
}

void Draft::make(uint32_t rule, nb::object name, const DraftEdges& edges, std::vector<uint32_t> accepting, std::vector<int64_t> slots) {
  const auto begin = static_cast<uint32_t>(list.edges.size());
  list.append(edges);
  rules[rule] = {std::move(name), begin, static_cast<uint32_t>(edges.edges.size()), std::move(accepting), std::move(slots)};
}

void bind_draft(nb::module_& m) {
  nb::class_<RuleAutomaton>(m, "RuleAutomaton",
      "The automaton of a rule while it is made: state 0 and the accepting state 1 always exist.\n\n"
      "Only one alternative of a rule is active at a time, so alternatives share slots.")
      .def("state", &RuleAutomaton::state, "Returns a new state.")
      .def("slot", [](RuleAutomaton& self, nb::handle kind) { return self.slot(integer_cut(kind)); }, "kind"_a,
           nb::sig("def slot(self, kind: int) -> int"),
           "Returns a slot for the current alternative: a counter up to ``kind``, or a set of texts or values.")
      .def_rw("edges", &RuleAutomaton::edges, nb::for_getter(nb::sig("def edges(self) -> list[typing.Any]")),
              nb::for_setter(nb::sig("def edges(self, given: list[typing.Any], /) -> None")), "The edges that the module at work has added.");
  nb::class_<Draft>(m, "Draft",
      "The grammar of a JSON Schema, made by ``Emission``: input of ``CompiledGrammar``.")
      .def("__init__",
           [](Draft* self, nb::object any_key, nb::object colon_tail, bool numbers_by_double, bool strings_by_value) {
             new (self) Draft{std::move(any_key), std::move(colon_tail), numbers_by_double, strings_by_value, {}, {}, {}};
           },
           "any_key"_a, "colon_tail"_a, "numbers_by_double"_a, "strings_by_value"_a,
           "``any_key``: expression of a JSON string; ``colon_tail``: expression of what follows a key in its lexeme.")
      .def("terminal_parts",
           [](const Draft& self) {
             nb::list result;
             for (const DraftTerminal& each : self.terminals) {
               if (each.given.is_valid()) {
                 result.append(each.given);
                 continue;
               }
               nb::list texts;
               for (const std::string& text : each.texts) texts.append(nb::bytes(text.data(), text.size()));
               const auto or_none = [](const nb::object& part) { return part.is_valid() ? part : nb::none(); };
               result.append(nb::make_tuple(or_none(each.name), or_none(each.expression), nb::tuple(texts), each.apart));
             }
             return result;
           },
           nb::sig("def terminal_parts(self) -> list[typing.Any]"),
           "For each terminal, the ``Terminal``, or (name, expression, texts, whether the colon is apart) of a key.")
      .def("places",
           [](const Draft& self) {
             nb::list result;
             for (const DraftTerminal& each : self.terminals) {
               if (each.given.is_valid()) {
                 result.append(nb::make_tuple(each.given.attr("name"), each.given.attr("pointer")));
               } else {
                 const std::string name = each.name.is_valid() ? "key " + text_of(each.name) : "key";
                 result.append(nb::make_tuple(name, ""));
               }
             }
             return result;
           },
           nb::sig("def places(self) -> list[tuple[str, str]]"),
           "Name and pointer of each terminal.")
      .def("rule_parts",
           [](const Draft& self) {
             nb::list result;
             for (const DraftRule& rule : self.rules) {
               nb::list edges;
               for (const DraftEdge& edge : self.edges_of(rule)) edges.append(self.list.tuple(edge));
               result.append(nb::make_tuple(rule.name, edges, rule.accepting, rule.slots));
             }
             return result;
           },
           nb::sig("def rule_parts(self) -> list[tuple[str, list[tuple[typing.Any, ...]], list[int], list[int]]]"),
           "Name, edges, accepting states and slots of each rule.");
}

}  // namespace constrain
