// Expressions for parts of given texts: runs of a suffix automaton's chunks, with a length.
//
// A node holds a range of transitions of one state, the bytes of their chunks that have been read, and the characters
// that are needed and allowed from the beginning of the current chunk on. Every question is answered from the range.
#include <algorithm>

#include "expressions/nodes.h"

namespace constrain {

ExprId ExpressionNodes::substring(const SuffixAutomaton::Source& source, uint32_t minimum, uint32_t maximum) {
  if (minimum > maximum) return ExprId::nothing;
  const Hash hash = source.hash();
  const auto known = std::find_if(substrings_.begin(), substrings_.end(), [&](const auto& each) { return each->hash() == hash; });
  const auto number = static_cast<uint32_t>(known - substrings_.begin());
  if (known == substrings_.end()) substrings_.push_back(std::make_shared<const SuffixAutomaton>(source));
  return substring_from(number, SuffixAutomaton::start, minimum, maximum);
}

// The runs that may follow in a state.
ExprId ExpressionNodes::substring_from(uint32_t automaton, uint32_t state, uint32_t minimum, uint32_t maximum) {
  const SuffixAutomaton& runs = *substrings_[automaton];
  if (maximum >= runs.longest(state)) maximum = unbounded;  // so that fewer nodes differ
  if (maximum == 0 || runs.begin(state) == runs.end(state)) return minimum == 0 ? ExprId::epsilon : ExprId::nothing;
  return substring_at(automaton, runs.begin(state), runs.end(state), 0, minimum, maximum);
}

ExprId ExpressionNodes::substring_at(uint32_t automaton, uint32_t low, uint32_t high, uint32_t depth, uint32_t minimum, uint32_t maximum) {
  const SuffixAutomaton& runs = *substrings_[automaton];
  Node node{.hash = mix(mix(mix(mix(tagged(Kind::substring), runs.hash()), paired(low, high)), depth), paired(minimum, maximum)),
            .arg = {automaton, low, high, depth, minimum, maximum},
            .kind = Kind::substring,
            .nullable = depth == 0 && minimum == 0,
            .finite = true};
  if (const uint32_t* found = interned_.find(node.hash)) return ExprId{*found};
  bool live = node.nullable;
  for (uint32_t i = low; i < high && !live; ++i) live = completes(node, i);
  if (!live) return ExprId::nothing;
  if (!node.nullable && high - low == 1) node.lead = static_cast<uint8_t>(runs.chunk(low)[depth]);
  return intern(node);
}

// Whether a transition of the range leads to a run of a permitted length.
bool ExpressionNodes::completes(const Node& node, uint32_t transition) {
  const SuffixAutomaton& runs = this->runs(node);
  const uint32_t read = runs.characters(transition), state = runs.target(transition);
  if (read > node.most()) return false;
  const uint32_t minimum = decreased(node.least(), read), maximum = decreased(node.most(), read);
  if (minimum == 0) return true;
  if (runs.longest(state) < minimum || minimum > maximum) return false;
  return runs.by_characters() || maximum >= runs.longest(state) || reaches_length(runs, state, minimum, maximum);
}

// Whether a run of whole chunks from a state on has a length between the two: a search, as chunks have several lengths.
bool ExpressionNodes::reaches_length(const SuffixAutomaton& runs, uint32_t from, uint32_t minimum, uint32_t maximum) {
  std::vector<std::pair<uint32_t, uint32_t>> waiting{{from, 0}};  // states, and characters on the way to them
  FlatMap<uint64_t, uint8_t> seen;
  while (!waiting.empty()) {
    const auto [state, length] = waiting.back();
    waiting.pop_back();
    if (length >= minimum) return true;
    work_.spend(1);
    for (uint32_t i = runs.begin(state); i < runs.end(state); ++i) {
      const uint32_t next = length + runs.characters(i), target = runs.target(i);
      const uint64_t key = (uint64_t{target} << 32) | next;
      if (next > maximum || next + runs.longest(target) < minimum || seen.find(key)) continue;
      seen.insert(key, 1);
      waiting.emplace_back(target, next);
    }
  }
  return false;
}

// The transitions of the range whose chunks have a byte next.
std::pair<uint32_t, uint32_t> ExpressionNodes::transitions_by(const Node& node, uint8_t byte) const {
  const SuffixAutomaton& runs = *substrings_[node.automaton()];
  auto next = [&](uint32_t transition) { return static_cast<uint8_t>(runs.chunk(transition)[node.depth()]); };
  auto after = [&](uint32_t low, auto&& is_before) {
    uint32_t high = node.high();
    while (low < high) {
      const uint32_t middle = low + (high - low) / 2;
      if (is_before(next(middle))) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  };
  const uint32_t low = after(node.low(), [byte](uint8_t each) { return each < byte; });
  return {low, after(low, [byte](uint8_t each) { return each <= byte; })};
}

}  // namespace constrain
