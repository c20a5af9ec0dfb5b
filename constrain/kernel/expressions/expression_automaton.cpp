// The deterministic automaton of an expression, from its derivatives: for grammars that read a terminal byte by byte.
#include <optional>

#include "expressions/expressions.h"

namespace constrain {

std::optional<std::vector<ExpressionStore::AutomatonState>> ExpressionStore::automaton(ExprId e, size_t max_states) {
  std::vector<AutomatonState> result;
  std::vector<ExprId> states{e};
  FlatMap<uint32_t, uint32_t> numbers;
  numbers.insert(static_cast<uint32_t>(e), 0);
  for (size_t at = 0; at < states.size(); ++at) {
    if (states.size() > max_states) return std::nullopt;
    AutomatonState state{nullable(states[at]), {}};
    FlatMap<uint32_t, uint32_t> edges;  // by target
    const ByteSet possible = first(states[at]);
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (!possible.contains(static_cast<uint8_t>(byte))) continue;
      const ExprId next = derivative(states[at], static_cast<uint8_t>(byte));
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
