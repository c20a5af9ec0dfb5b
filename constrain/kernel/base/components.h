// Strongly connected components of a graph (Tarjan 1972), successors first. Without recursion, as graphs may be deep.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace constrain {

// Calls `found` with the nodes of each component. `append_successors(node, list)`: nodes are numbers below `count`.
template <typename Successors, typename Found>
void find_components(size_t count, Successors&& append_successors, Found&& found) {
  struct Visit {
    uint32_t node;
    size_t begin, at;  // in `next`
  };
  constexpr uint32_t done = ~uint32_t{0};
  std::vector<uint32_t> order(count), low(count), open, next, group;
  std::vector<Visit> visits;
  uint32_t counter = 0;
  const auto enter = [&](uint32_t node) {
    order[node] = low[node] = ++counter;
    open.push_back(node);
    visits.push_back({node, next.size(), next.size()});
    append_successors(node, next);
  };
  for (uint32_t root = 0; root < count; ++root) {
    if (!order[root]) enter(root);
    while (!visits.empty()) {
      Visit& visit = visits.back();
      const uint32_t node = visit.node;
      if (visit.at < next.size()) {
        const uint32_t successor = next[visit.at++];
        if (!order[successor]) {
          enter(successor);
        } else if (order[successor] != done) {
          low[node] = std::min(low[node], order[successor]);
        }
        continue;
      }
      next.resize(visit.begin);
      visits.pop_back();
      if (!visits.empty()) low[visits.back().node] = std::min(low[visits.back().node], low[node]);
      if (low[node] != order[node]) continue;
      group.clear();
      do {
        group.push_back(open.back());
        order[open.back()] = done;
        open.pop_back();
      } while (group.back() != node);
      found(group);
    }
  }
}

}  // namespace constrain
