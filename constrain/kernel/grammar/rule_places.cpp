// Places of a grammar's rules: the strongly connected components of its states, each with all edges it reads next.
#include "grammar/rule_places.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/components.h"
#include "base/errors.h"

namespace constrain {

constexpr size_t steps_per_step = 10;  // of the proof, which take about 50 ns each, for one of a compilation

void ProofWork::spend(size_t steps) {
  spent_ += steps;
  if (spent_ <= steps_per_step * MAX_COMPILE_WORK.value) return;
  throw LimitError("too many terminals may be read at the same places to prove that the longest match takes no byte of the next "
                   "(" + MAX_COMPILE_WORK.with_unit() + "); write alternatives as one terminal");
}

// Calls `f` with each node reachable without reading a terminal. Nodes are states, and the end of each rule.
template <typename F>
void RulePlaces::each_next(uint32_t node, F&& f) const {
  if (node >= returns_) {
    for (uint32_t caller : callers_[node - returns_]) f(caller);
    return;
  }
  const State& state = grammar_.states[node];
  for (const Edge& edge : grammar_.edges_of(StateId{node})) {
    if (edge.kind == EdgeKind::epsilon) f(index(edge.target));
    if (edge.kind != EdgeKind::rule) continue;
    f(index(grammar_.rules[edge.symbol].start));
    if (grammar_.rules[edge.symbol].nullable) f(index(edge.target));
  }
  if (state.accepting) f(static_cast<uint32_t>(returns_) + state.rule);
}

RulePlaces::RulePlaces(const Grammar& grammar, ProofWork& work) : grammar_(grammar), work_(work), returns_(grammar.states.size()) {
  callers_.resize(grammar.rules.size());
  for (uint32_t q = 0; q < returns_; ++q) {
    for (const Edge& edge : grammar.edges_of(StateId{q})) {
      if (edge.kind == EdgeKind::rule) callers_[edge.symbol].push_back(index(edge.target));
    }
  }
  place_.assign(returns_ + grammar.rules.size(), unknown);
  listed_.assign(grammar.edges.size(), 0);
  find_components(
      place_.size(), [this](uint32_t node, std::vector<uint32_t>& list) { each_next(node, [&](uint32_t next) { list.push_back(next); }); },
      [this](const std::vector<uint32_t>& nodes) { make_place(nodes); });
}

// The place of a component: that of a successor, if the component reads nothing more.
void RulePlaces::make_place(const std::vector<uint32_t>& nodes) {
  std::vector<uint32_t> own, others;
  for (uint32_t node : nodes) {
    each_next(node, [&](uint32_t next) {
      if (place_[next] != unknown) others.push_back(place_[next]);  // otherwise it is one of the nodes
    });
    if (node >= returns_) continue;
    const State& state = grammar_.states[node];
    for (uint32_t i = state.edges_begin; i < state.edges_begin + state.edges_count; ++i) {
      if (grammar_.edges[i].kind == EdgeKind::terminal) own.push_back(i);
    }
  }
  std::sort(others.begin(), others.end());
  others.erase(std::unique(others.begin(), others.end()), others.end());
  auto place = static_cast<uint32_t>(edges_.size());
  if (own.empty() && others.size() == 1) {
    place = others[0];
  } else {
    ++list_;
    for (uint32_t edge : own) listed_[edge] = list_;
    for (uint32_t other : others) {
      work_.spend(edges_[other].size());
      for (uint32_t edge : edges_[other]) {
        if (listed_[edge] == list_) continue;
        listed_[edge] = list_;
        own.push_back(edge);
      }
    }
    work_.spend(own.size());
    std::sort(own.begin(), own.end());
    edges_.push_back(std::move(own));
  }
  for (uint32_t node : nodes) place_[node] = place;
}

}  // namespace constrain
