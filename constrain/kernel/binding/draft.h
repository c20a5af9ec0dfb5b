// A grammar as front ends make it: edges as in constrain/language/grammar.py, but not as objects of Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "grammar/grammar.h"

namespace constrain {

constexpr int64_t reads_nothing = std::numeric_limits<int64_t>::min();

struct DraftEdge {
  uint32_t source, target;  // states of the rule
  int64_t symbol;           // of a terminal, `~rule`, or `reads_nothing`
  uint32_t conditions_begin = 0, conditions_count = 0;
  uint32_t actions_begin = 0, actions_count = 0;
  int64_t excluding = -1, distinct = -1;
};

// Edges with the conditions and actions that they refer to.
struct DraftEdges {
  std::vector<DraftEdge> edges;
  std::vector<Condition> conditions;
  std::vector<Action> actions;

  void add(DraftEdge edge, std::span<const Condition> its_conditions = {}, std::span<const Action> its_actions = {});

  // Reads an `Edge` of Python. Throws GrammarError, which begins with `where`, if it has no such form.
  void read(nanobind::handle edge, const std::string& where = "");

  void append(const DraftEdges& others);

  // The edge as a tuple with the items of an `Edge`.
  nanobind::tuple tuple(const DraftEdge& edge) const;

  std::span<const Condition> conditions_of(const DraftEdge& edge) const { return {conditions.data() + edge.conditions_begin, edge.conditions_count}; }
  std::span<const Action> actions_of(const DraftEdge& edge) const { return {actions.data() + edge.actions_begin, edge.actions_count}; }
};

constexpr uint32_t start_state = 0, end_state = 1;

// The automaton of a rule while it is made: `start_state` and the accepting `end_state` always exist. Only one
// alternative of a rule is active at a time, so alternatives share slots.
struct RuleAutomaton {
  DraftEdges list;
  std::vector<int64_t> slots;
  nanobind::list edges;  // that Python has added, until `take_edges` moves them to `list`

  void take_edges();

  uint32_t state() { return states_++; }
  // A slot for the current alternative: a counter up to `kind`, or a set of texts or values. Raises LimitError.
  uint32_t slot(int64_t kind);
  void begin_alternative();

 private:
  struct Kind {
    std::vector<uint32_t> slots;
    size_t used = 0;  // in this alternative
  };
  uint32_t states_ = 2;
  std::map<int64_t, Kind> kinds_;
};

// A terminal: an object of Python; or a key of JSON objects, declared (with its colon unless `apart`) or not.
struct DraftTerminal {
  nanobind::object given;       // a `Terminal`, or null
  nanobind::object name;        // of a declared key; null for undeclared keys
  nanobind::object expression;  // of the key itself; null: of `texts`
  std::vector<std::string> texts;  // the spelling of a declared key; or those of all keys that are none of the undeclared ones
  bool apart = false;
};

struct DraftRule {
  nanobind::object name;  // null until the rule is made
  uint32_t edges_begin = 0, edges_count = 0;
  std::vector<uint32_t> accepting;
  std::vector<int64_t> slots;
};

struct Draft {
  nanobind::object any_key, colon_tail;  // expressions of a JSON string, and of what follows a key in its lexeme
  bool numbers_by_double, strings_by_value;
  std::vector<DraftTerminal> terminals;
  std::vector<DraftRule> rules;
  DraftEdges list;  // of all rules

  std::span<const DraftEdge> edges_of(const DraftRule& rule) const { return {list.edges.data() + rule.edges_begin, rule.edges_count}; }

  uint32_t reserve();
  void make(uint32_t rule, nanobind::object name, const DraftEdges& edges, std::vector<uint32_t> accepting = {end_state}, std::vector<int64_t> slots = {});
};

// The value of a Python integer, cut to the numbers of 62 bits.
int64_t integer_cut(nanobind::handle number);

void bind_draft(nanobind::module_& m);

}  // namespace constrain
