// Checks of a grammar as a whole, made once when it is compiled.
#include <algorithm>

#include "errors.h"
#include "grammar.h"

namespace constrain {

namespace {

// States from which the rule can end, given which rules are known to (memory is not looked at: front ends see to it that
// conditions never close the last way).
std::vector<bool> states_that_end(const Grammar& grammar) {
  std::vector<std::vector<uint32_t>> before(grammar.states.size());  // sources of edges into a state
  std::vector<bool> ends(grammar.states.size());
  std::vector<std::vector<uint32_t>> callers(grammar.rules.size());  // states with an edge that reads the rule
  for (uint32_t q = 0; q < grammar.states.size(); ++q) {
    for (const Edge& edge : grammar.edges_of(StateId{q})) {
      before[index(edge.target)].push_back(q);
      if (edge.kind == EdgeKind::rule) callers[edge.symbol].push_back(q);
    }
  }
  auto usable = [&](const Edge& edge) {
    if (edge.kind == EdgeKind::rule) return static_cast<bool>(ends[index(grammar.rules[edge.symbol].start)]);
    return edge.kind == EdgeKind::epsilon || grammar.terminals[edge.symbol] != ExprId::nothing;
  };
  std::vector<uint32_t> work;
  for (uint32_t q = 0; q < grammar.states.size(); ++q) {
    if (grammar.states[q].accepting) work.push_back(q);
  }
  for (uint32_t q : work) ends[q] = true;
  while (!work.empty()) {
    uint32_t q = work.back();
    work.pop_back();
    std::vector<uint32_t> check = before[q];
    const Rule& rule = grammar.rules[grammar.states[q].rule];
    if (index(rule.start) == q) {
      const std::vector<uint32_t>& more = callers[grammar.states[q].rule];
      check.insert(check.end(), more.begin(), more.end());
    }
    for (uint32_t source : check) {
      if (ends[source]) continue;
      std::span<const Edge> edges = grammar.edges_of(StateId{source});
      if (std::any_of(edges.begin(), edges.end(), [&](const Edge& e) { return usable(e) && ends[index(e.target)]; })) {
        ends[source] = true;
        work.push_back(source);
      }
    }
  }
  return ends;
}

void find_nullable_rules(Grammar& grammar) {
  for (bool changed = true; changed;) {
    changed = false;
    for (Rule& rule : grammar.rules) {
      if (rule.nullable) continue;
      std::vector<StateId> work{rule.start};
      std::vector<StateId> seen = work;
      while (!work.empty() && !rule.nullable) {
        StateId q = work.back();
        work.pop_back();
        rule.nullable = grammar.state(q).accepting;
        for (const Edge& edge : grammar.edges_of(q)) {
          bool silent = edge.kind == EdgeKind::epsilon || (edge.kind == EdgeKind::rule && grammar.rules[edge.symbol].nullable);
          // counters are 0 at the start, and an edge that reads nothing may only count from there
          for (const Condition& c : grammar.conditions_of(edge)) silent &= c.minimum == 0;
          if (silent && std::find(seen.begin(), seen.end(), edge.target) == seen.end()) {
            seen.push_back(edge.target);
            work.push_back(edge.target);
          }
        }
      }
      changed |= rule.nullable;
    }
  }
}

}  // namespace

void analyse(Grammar& grammar) {
  for (uint32_t t = 0; t < grammar.terminals.size(); ++t) {
    if (grammar.expressions.nullable(grammar.terminals[t])) {
      throw GrammarError("terminal " + grammar.terminal_names[t] + " matches the empty text; make it optional in the rules instead");
    }
  }
  std::vector<bool> ends = states_that_end(grammar);
  if (!ends[index(grammar.rules[0].start)]) {
    throw GrammarError("the grammar generates nothing: rule " + grammar.rules[0].name + " can never be finished");
  }
  for (State& state : grammar.states) {  // drop edges that no finished text takes
    auto begin = grammar.edges.begin() + state.edges_begin;
    auto end = std::remove_if(begin, begin + state.edges_count, [&](const Edge& edge) {
      bool dead_rule = edge.kind == EdgeKind::rule && !ends[index(grammar.rules[edge.symbol].start)];
      bool dead_terminal = edge.kind == EdgeKind::terminal && grammar.terminals[edge.symbol] == ExprId::nothing;
      return dead_rule || dead_terminal || !ends[index(edge.target)];
    });
    state.edges_count = static_cast<uint32_t>(end - begin);
  }
  grammar.remembered.assign(grammar.terminals.size(), false);
  for (const State& state : grammar.states) {
    for (uint32_t i = state.edges_begin; i < state.edges_begin + state.edges_count; ++i) {
      const Edge& edge = grammar.edges[i];
      for (const Action& action : grammar.actions_of(edge)) {
        if (action.kind == ActionKind::remember) grammar.remembered[edge.symbol] = true;
      }
    }
  }
  find_nullable_rules(grammar);
}

}  // namespace constrain
