// Checks of a grammar as a whole, made once when it is compiled.
#include <algorithm>
#include <functional>
#include <queue>
#include <set>
#include <utility>

#include "base/errors.h"
#include "grammar/grammar.h"

namespace constrain {

namespace {

constexpr uint64_t endless = ~uint64_t{0};

// The number of lexemes from each state to the end of its rule, or endless (Knuth 1977). Memory is ignored: front ends
// ensure that conditions never close the last way.
std::vector<uint64_t> lexemes_to_end(const Grammar& grammar) {
  struct Use {
    uint32_t source;
    const Edge* edge;
    uint32_t next_before, next_caller;  // the next edge into the same state, and that reads the same rule; or none
  };
  constexpr uint32_t none = ~uint32_t{0};
  std::vector<Use> uses;
  uses.reserve(grammar.edges.size());
  std::vector<uint32_t> before(grammar.states.size(), none);  // the first edge into each state
  std::vector<uint32_t> callers(grammar.rules.size(), none);  // the first edge that reads each rule
  std::vector<uint64_t> left(grammar.states.size(), endless);
  using Entry = std::pair<uint64_t, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  for (uint32_t q = 0; q < grammar.states.size(); ++q) {
    if (grammar.states[q].accepting) queue.emplace(0, q);
    for (const Edge& edge : grammar.edges_of(StateId{q})) {
      if (edge.kind == EdgeKind::terminal && grammar.terminals[edge.symbol] == ExprId::nothing) continue;
      const auto use = static_cast<uint32_t>(uses.size());
      uses.push_back({q, &edge, std::exchange(before[index(edge.target)], use), none});
      if (edge.kind == EdgeKind::rule) uses.back().next_caller = std::exchange(callers[edge.symbol], use);
    }
  }
  auto offer = [&](const Use& use) {
    if (left[use.source] != endless) return;
    const uint64_t after = left[index(use.edge->target)];
    uint64_t own = use.edge->kind == EdgeKind::terminal;
    if (use.edge->kind == EdgeKind::rule) own = left[index(grammar.rules[use.edge->symbol].start)];
    if (own != endless && after != endless) queue.emplace(std::min(own + after, endless / 4), use.source);
  };
  while (!queue.empty()) {
    auto [cost, q] = queue.top();
    queue.pop();
    if (left[q] != endless) continue;
    left[q] = cost;
    for (uint32_t use = before[q]; use != none; use = uses[use].next_before) offer(uses[use]);
    const uint32_t rule = grammar.states[q].rule;
    if (index(grammar.rules[rule].start) != q) continue;
    for (uint32_t use = callers[rule]; use != none; use = uses[use].next_caller) offer(uses[use]);
  }
  return left;
}

// Whether the rule can end without reading, if the rules in `nullable` can. Counters are followed exactly.
bool ends_silently(const Grammar& grammar, const Rule& rule) {
  using Counters = std::vector<uint32_t>;
  std::set<std::pair<uint32_t, Counters>> seen{{index(rule.start), Counters(rule.slots.size(), 0)}};
  std::vector<std::pair<uint32_t, Counters>> work(seen.begin(), seen.end());
  while (!work.empty()) {
    auto [q, counters] = work.back();
    work.pop_back();
    if (grammar.states[q].accepting) return true;
    for (const Edge& edge : grammar.edges_of(StateId{q})) {
      if (edge.kind == EdgeKind::terminal || (edge.kind == EdgeKind::rule && !grammar.rules[edge.symbol].nullable)) continue;
      std::span<const Condition> conditions = grammar.conditions_of(edge);
      if (!std::all_of(conditions.begin(), conditions.end(), [&](const Condition& c) {
            return counters[c.slot] >= c.minimum && (c.maximum == unbounded || counters[c.slot] <= c.maximum);
          })) {
        continue;
      }
      Counters next = counters;
      for (const Action& action : grammar.actions_of(edge)) {
        auto cap = static_cast<uint32_t>(rule.slots[action.slot]);
        next[action.slot] = std::min(next[action.slot] + 1, cap);
      }
      if (seen.size() > MAX_SILENT_STATES.value) {
        throw LimitError(limit_message("rule " + rule.name + " counts too far without reading", MAX_SILENT_STATES));
      }
      if (seen.emplace(index(edge.target), next).second) work.emplace_back(index(edge.target), std::move(next));
    }
  }
  return false;
}

void find_nullable_rules(Grammar& grammar) {
  std::vector<std::vector<uint32_t>> callers(grammar.rules.size());  // the rules with an edge that reads each rule
  std::vector<uint32_t> work;
  for (uint32_t r = 0; r < grammar.rules.size(); ++r) {
    const State& start = grammar.state(grammar.rules[r].start);
    std::span<const Edge> edges = grammar.edges_of(grammar.rules[r].start);
    // a rule can be nullable only if some first edge reads no terminal
    if (start.accepting || std::any_of(edges.begin(), edges.end(), [](const Edge& e) { return e.kind != EdgeKind::terminal; })) {
      work.push_back(r);
    }
  }
  for (const State& state : grammar.states) {
    for (uint32_t i = state.edges_begin; i < state.edges_begin + state.edges_count; ++i) {
      if (grammar.edges[i].kind == EdgeKind::rule) callers[grammar.edges[i].symbol].push_back(state.rule);
    }
  }
  while (!work.empty()) {
    uint32_t r = work.back();
    work.pop_back();
    if (grammar.rules[r].nullable || !ends_silently(grammar, grammar.rules[r])) continue;
    grammar.rules[r].nullable = true;
    work.insert(work.end(), callers[r].begin(), callers[r].end());
  }
}

// Checks that a rule with a value that must be distinct reads one group, from its opening lexeme to its closing one.
void check_groups(const Grammar& grammar, const std::vector<bool>& groups) {
  auto opens = [&](const Edge& edge) {
    if (edge.kind != EdgeKind::terminal) return false;
    const Role role = grammar.roles[edge.symbol];
    return role == Role::open_ordered || role == Role::open_labelled;
  };
  auto closes = [&](const Edge& edge) {
    if (!grammar.state(edge.target).accepting) return true;
    return edge.kind == EdgeKind::terminal && grammar.roles[edge.symbol] == Role::close;
  };
  for (uint32_t q = 0; q < grammar.states.size(); ++q) {
    const State& state = grammar.states[q];
    if (!groups[state.rule]) continue;
    const Rule& rule = grammar.rules[state.rule];
    std::span<const Edge> edges = grammar.edges_of(StateId{q});
    bool good = std::all_of(edges.begin(), edges.end(), closes) && (!state.accepting || edges.empty());
    if (rule.start == StateId{q}) good &= std::all_of(edges.begin(), edges.end(), opens);
    if (!good) throw GrammarError("rule " + rule.name + " must read one group, as its values must be distinct");
  }
}

}  // namespace

void analyse(Grammar& grammar) {
  for (uint32_t t = 0; t < grammar.terminals.size(); ++t) {
    if (of_terminal(t, [&] { return grammar.expressions.nullable(grammar.terminals[t]); })) {
      throw GrammarError("terminal " + grammar.terminal_names[t] + " matches the empty text; make it optional in the rules instead");
    }
  }
  const std::vector<uint64_t> left = lexemes_to_end(grammar);
  auto ends = [&](StateId q) { return left[index(q)] != endless; };
  if (!ends(grammar.rules[0].start)) {
    throw GrammarError("the grammar generates nothing: rule " + grammar.rules[0].name + " can never be finished");
  }
  if (left[index(grammar.rules[0].start)] > MAX_SHORTEST_MATCH.value) {
    throw LimitError("every text of the grammar has more bytes than " + MAX_SHORTEST_MATCH.shown() + " allows");
  }
  for (State& state : grammar.states) {  // drop edges that no finished text takes
    auto begin = grammar.edges.begin() + state.edges_begin;
    auto end = std::remove_if(begin, begin + state.edges_count, [&](const Edge& edge) {
      bool dead_rule = edge.kind == EdgeKind::rule && !ends(grammar.rules[edge.symbol].start);
      bool dead_terminal = edge.kind == EdgeKind::terminal && grammar.terminals[edge.symbol] == ExprId::nothing;
      return dead_rule || dead_terminal || !ends(edge.target);
    });
    state.edges_count = static_cast<uint32_t>(end - begin);
  }
  grammar.remembered.assign(grammar.terminals.size(), false);
  std::vector<bool> groups(grammar.rules.size());
  for (const State& state : grammar.states) {
    for (uint32_t i = state.edges_begin; i < state.edges_begin + state.edges_count; ++i) {
      const Edge& edge = grammar.edges[i];
      for (const Action& action : grammar.actions_of(edge)) {
        if (action.kind == ActionKind::remember) grammar.remembered[edge.symbol] = true;
      }
      if (edge.distinct >= 0) groups[edge.symbol] = true;
    }
  }
  for (size_t t = 0; t < grammar.roles.size(); ++t) {  // the text of a group's lexeme is part of its value
    const bool label = grammar.roles[t] == Role::label && grammar.labels[t].empty();
    if (label || grammar.roles[t] == Role::scalar) grammar.remembered[t] = true;
  }
  if (grammar.reads_groups) check_groups(grammar, groups);
  find_nullable_rules(grammar);
}

}  // namespace constrain
