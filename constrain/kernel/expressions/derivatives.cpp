// Questions that take the derivatives of an expression, one after the other.
#include "expressions/derivatives.h"

#include <algorithm>
#include <deque>

#include "base/errors.h"

namespace constrain {

std::optional<std::vector<std::string>> list_matches(ExpressionStore& store, ExprId start, size_t limit) {
  std::vector<std::string> found;
  if (start == ExprId::nothing) return found;
  if (store.infinite(start)) return std::nullopt;
  // every expression in the queue is live, so each stands for a match not listed yet
  std::deque<std::pair<ExprId, std::string>> queue{{start, {}}};
  while (!queue.empty()) {
    if (found.size() + queue.size() > limit) return std::nullopt;
    store.work().spend(1 + queue.front().second.size() / 64);
    auto [e, text] = std::move(queue.front());
    queue.pop_front();
    if (store.nullable(e)) found.push_back(text);
    if (text.size() > MAX_SHORTEST_MATCH.value) return std::nullopt;
    store.first(e).each([&, &from = e, &so_far = text](uint8_t byte) {
      ExprId next = store.derivative(from, byte);
      if (next != ExprId::nothing) queue.emplace_back(next, so_far + static_cast<char>(byte));
    });
  }
  return found;
}

// Every derivative other than `nothing` leads to a match. So there are infinitely many matches if and only if some
// derivative can be reached from itself: a depth-first search for such a cycle.
std::optional<bool> has_endless_matches(ExpressionStore& store, ExprId start, size_t max_states) {
  struct Visit {
    ExprId e;
    std::vector<uint8_t> bytes;
  };
  FlatMap<uint32_t, uint8_t> seen, finished;  // seen but not finished: on the current path
  std::vector<Visit> path;
  auto enter = [&](ExprId e) {
    seen.insert(index(e), 1);
    ByteSet possible = store.first(e);
    std::vector<uint8_t> bytes = store.representatives({e});
    std::erase_if(bytes, [&](uint8_t byte) { return !possible.contains(byte); });
    path.push_back({e, std::move(bytes)});
  };
  if (start == ExprId::nothing) return false;
  if (store.infinite(start)) return true;
  enter(start);
  size_t states = 1;
  while (!path.empty()) {
    if (path.back().bytes.empty()) {
      finished.insert(index(path.back().e), 1);
      path.pop_back();
      continue;
    }
    uint8_t byte = path.back().bytes.back();
    path.back().bytes.pop_back();
    ExprId next = store.derivative(path.back().e, byte);
    if (next == ExprId::nothing || store[next].finite) continue;
    if (store.infinite(next)) return true;
    if (finished.find(index(next))) continue;
    if (seen.find(index(next))) return true;
    if (++states > max_states) return std::nullopt;
    store.work().spend(1);
    enter(next);
  }
  return false;
}

// All derivatives, breadth first, and the distance of each from a match, found from the matches backwards.
Explored explore(ExpressionStore& store, ExprId start, size_t max_states) {
  std::vector<ExprId> states{start};
  std::vector<std::vector<uint32_t>> into(1);
  FlatMap<uint32_t, uint32_t> numbers;
  numbers.insert(index(start), 0);
  for (uint32_t at = 0; at < states.size(); ++at) {
    ByteSet possible = store.first(states[at]);
    for (uint8_t byte : store.representatives({states[at]})) {
      if (!possible.contains(byte)) continue;
      ExprId next = ExprId::nothing;
      try {
        next = store.derivative(states[at], byte);
      } catch (const LimitError&) {
        return {Lengths::no_limit, Lengths::no_limit};
      }
      if (next == ExprId::nothing) continue;
      const uint32_t* found = numbers.find(index(next));
      const uint32_t number = found ? *found : static_cast<uint32_t>(states.size());
      if (!found) {
        if (states.size() == max_states) return {Lengths::no_limit, Lengths::no_limit};
        numbers.insert(index(next), number);
        states.push_back(next);
        into.emplace_back();
      }
      into[number].push_back(at);
    }
  }
  std::vector<uint64_t> distances(states.size(), Lengths::no_limit);
  std::vector<uint32_t> queue;
  for (uint32_t at = 0; at < states.size(); ++at) {
    if (!store.nullable(states[at])) continue;
    distances[at] = 0;
    queue.push_back(at);
  }
  for (size_t i = 0; i < queue.size(); ++i) {
    for (uint32_t from : into[queue[i]]) {
      if (distances[from] != Lengths::no_limit) continue;
      distances[from] = distances[queue[i]] + 1;
      queue.push_back(from);
    }
  }
  return {*std::max_element(distances.begin(), distances.end()), states.size()};
}

// What texts have in common at their beginnings is followed once; where nothing is left, neither are those that go on.
SortedTexts matching_texts(ExpressionStore& store, ExprId e, const SortedTexts& texts) {
  std::string bytes;
  std::vector<uint32_t> ends;
  std::vector<ExprId> path{e};  // by bytes read of the last text
  std::string_view last;
  for (uint32_t i = 0; i < texts.size(); ++i) {
    const std::string_view text = texts[i];
    const auto common = static_cast<size_t>(std::ranges::mismatch(text, last).in1 - text.begin());
    last = text;
    path.resize(std::min(path.size(), common + 1));
    while (path.size() <= text.size() && path.back() != ExprId::nothing) {
      path.push_back(store.derivative(path.back(), static_cast<uint8_t>(text[path.size() - 1])));
    }
    if (path.size() <= text.size() || !store.nullable(path.back())) continue;
    bytes += text;
    ends.push_back(static_cast<uint32_t>(bytes.size()));
  }
  return {std::move(bytes), std::move(ends)};
}

std::optional<std::vector<AutomatonState>> automaton_of(ExpressionStore& store, ExprId e, size_t max_states) {
  std::vector<AutomatonState> result;
  std::vector<ExprId> states{e};
  FlatMap<uint32_t, uint32_t> numbers;
  numbers.insert(static_cast<uint32_t>(e), 0);
  for (size_t at = 0; at < states.size(); ++at) {
    if (states.size() > max_states) return std::nullopt;
    AutomatonState state{store.nullable(states[at]), {}};
    FlatMap<uint32_t, uint32_t> edges;  // by target
    const ByteSet possible = store.first(states[at]);
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (!possible.contains(static_cast<uint8_t>(byte))) continue;
      const ExprId next = store.derivative(states[at], static_cast<uint8_t>(byte));
      if (next == ExprId::nothing) continue;
      const uint32_t* known = numbers.find(static_cast<uint32_t>(next));
      const uint32_t target = known ? *known : static_cast<uint32_t>(states.size());
      if (!known) {
        numbers.insert(static_cast<uint32_t>(next), target);
        states.push_back(next);
      }
      const uint32_t* edge = edges.find(target);
      if (!edge) {
        edges.insert(target, static_cast<uint32_t>(state.edges.size()));
        state.edges.push_back({target, {{byte, byte}}});
        continue;
      }
      auto& ranges = state.edges[*edge].ranges;
      if (ranges.back().second + 1 == byte) {
        ranges.back().second = byte;
      } else {
        ranges.emplace_back(byte, byte);
      }
    }
    result.push_back(std::move(state));
  }
  return result;
}

}  // namespace constrain
