// Expressions for parts of given texts: runs of a suffix automaton's chunks, with a length.
//
// A node holds a range of transitions of one state, the bytes of their chunks that have been read, and the characters
// that are needed and allowed from the beginning of the current chunk on. Every question is answered from the range.
#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>

#include "base/errors.h"
#include "expressions/expressions.h"

namespace constrain {

namespace {

constexpr size_t max_shortest_steps = 20'000;  // of the search for a shortest run; beyond it, some short run is enough

uint32_t without(uint32_t count, uint32_t characters) {
  return count == unbounded ? count : count - std::min(count, characters);
}

}  // namespace

ExprId ExpressionStore::substring(const SuffixAutomaton::Source& source, uint32_t minimum, uint32_t maximum) {
  if (minimum > maximum) return ExprId::nothing;
  const Hash hash = source.hash();
  const auto known = std::find_if(substrings_.begin(), substrings_.end(), [&](const auto& each) { return each->hash() == hash; });
  const auto number = static_cast<uint32_t>(known - substrings_.begin());
  if (known == substrings_.end()) substrings_.push_back(std::make_shared<const SuffixAutomaton>(source));
  return substring_from(number, SuffixAutomaton::start, minimum, maximum);
}

// The runs that may follow in a state.
ExprId ExpressionStore::substring_from(uint32_t automaton, uint32_t state, uint32_t minimum, uint32_t maximum) {
  const SuffixAutomaton& runs = *substrings_[automaton];
  if (maximum >= runs.longest(state)) maximum = unbounded;  // so that fewer nodes differ
  if (maximum == 0 || runs.begin(state) == runs.end(state)) return minimum == 0 ? ExprId::epsilon : ExprId::nothing;
  return substring_at(automaton, runs.begin(state), runs.end(state), 0, minimum, maximum);
}

ExprId ExpressionStore::substring_at(uint32_t automaton, uint32_t low, uint32_t high, uint32_t depth, uint32_t minimum, uint32_t maximum) {
  const SuffixAutomaton& runs = *substrings_[automaton];
  Node node{.hash = mix(mix(mix(mix(seeded(static_cast<uint64_t>(Kind::substring)), runs.hash()), paired(low, high)), depth), paired(minimum, maximum)),
            .arg = {automaton, low, high, depth, minimum, maximum},
            .kind = Kind::substring,
            .nullable = depth == 0 && minimum == 0,
            .finite = true};
  if (const uint32_t* found = interned_.find(node.hash)) return ExprId{*found};
  if (!node.nullable && !substring_completes(node)) return ExprId::nothing;
  if (!node.nullable && high - low == 1) node.lead = static_cast<uint8_t>(runs.chunk(low)[depth]);
  return intern(node);
}

// Whether some transition of the range leads to a run of a permitted length.
bool ExpressionStore::substring_completes(const Node& node) {
  for (uint32_t i = node.low(); i < node.high(); ++i) {
    if (substring_completes(node, i)) return true;
  }
  return false;
}

bool ExpressionStore::substring_completes(const Node& node, uint32_t transition) {
  const SuffixAutomaton& runs = *substrings_[node.automaton()];
  const uint32_t read = runs.characters(transition), state = runs.target(transition);
  if (read > node.most()) return false;
  const uint32_t minimum = without(node.least(), read), maximum = without(node.most(), read);
  if (minimum == 0) return true;
  if (runs.longest(state) < minimum || minimum > maximum) return false;
  return runs.by_characters() || maximum >= runs.longest(state) || reaches_length(runs, state, minimum, maximum);
}

// Whether a run of whole chunks from a state on has a length between the two: a search, as chunks have several lengths.
bool ExpressionStore::reaches_length(const SuffixAutomaton& runs, uint32_t from, uint32_t minimum, uint32_t maximum) {
  std::vector<std::pair<uint32_t, uint32_t>> waiting{{from, 0}};  // states, and characters on the way to them
  FlatMap<uint64_t, uint8_t> seen;
  while (!waiting.empty()) {
    const auto [state, length] = waiting.back();
    waiting.pop_back();
    if (length >= minimum) return true;
    spend(1);
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

ExprId ExpressionStore::derive_substring(const Node& node, uint8_t byte) {
  const std::shared_ptr<const SuffixAutomaton> runs = substrings_[node.automaton()];
  const auto [low, high] = transitions_by(node, byte);
  if (low == high) return ExprId::nothing;
  if (runs->chunk(low).size() > node.depth() + 1) return substring_at(node.automaton(), low, high, node.depth() + 1, node.least(), node.most());
  ExprId ended = ExprId::nothing;
  if (const uint32_t read = runs->characters(low); read <= node.most()) {
    ended = substring_from(node.automaton(), runs->target(low), without(node.least(), read), without(node.most(), read));
  }
  if (high - low == 1) return ended;  // other chunks of the range are longer
  return alternation({ended, substring_at(node.automaton(), low + 1, high, node.depth() + 1, node.least(), node.most())});
}

// The transitions of the range whose chunks have a byte next.
std::pair<uint32_t, uint32_t> ExpressionStore::transitions_by(const Node& node, uint8_t byte) const {
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

ByteSet ExpressionStore::first_of_substring(const Node& node) const {
  const SuffixAutomaton& runs = *substrings_[node.automaton()];
  ByteSet set;
  for (uint32_t at = node.low(); at < node.high();) {
    const auto byte = static_cast<uint8_t>(runs.chunk(at)[node.depth()]);
    set.add(byte);
    at = node.high() - at == 1 ? node.high() : transitions_by(node, byte).second;
  }
  return set;
}

// A run with fewest bytes: best first, where each needed character takes at least one byte. After many steps some short
// run, of the chunks that seem shortest. Each run is met once: one way leads to it.
std::string ExpressionStore::shortest_substring(const Node& start) {
  if (start.nullable) return {};
  struct Step {
    Node at;
    size_t parent, bytes;
    uint32_t transition;  // that led here
  };
  std::vector<Step> steps{{start, 0, 0, 0}};
  using Entry = std::tuple<size_t, uint32_t, size_t>;  // bytes at least, characters needed, step
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  queue.emplace(start.least(), start.least(), 0);
  while (!queue.empty()) {
    const auto [total, needed, number] = queue.top();
    queue.pop();
    const Node at = steps[number].at;
    if (at.depth() == 0 && at.least() == 0) {
      std::vector<uint32_t> way;
      for (size_t i = number; i != 0; i = steps[i].parent) way.push_back(steps[i].transition);
      std::string text;
      for (size_t i = way.size(); i-- > 0;) text += substrings_[start.automaton()]->chunk(way[i]);
      return text.substr(start.depth());
    }
    if (steps.size() > max_shortest_steps) queue = {};  // goes on from the best step alone
    const SuffixAutomaton& runs = *substrings_[at.automaton()];
    for (uint32_t i = at.low(); i < at.high(); ++i) {
      const uint32_t read = runs.characters(i), state = runs.target(i), least = without(at.least(), read);
      if (!substring_completes(at, i)) continue;
      Node next = at;
      next.arg = {at.automaton(), runs.begin(state), runs.end(state), 0, least, without(at.most(), read)};
      const size_t bytes = steps[number].bytes + runs.chunk(i).size();
      queue.emplace(bytes + least, least, steps.size());
      steps.push_back({next, number, bytes, i});
    }
  }
  throw GrammarError("an expression that matches nothing has no shortest match");
}

// A character takes at most 6 bytes. The first permitted end lies less than a chunk beyond the minimum.
ExpressionStore::Lengths ExpressionStore::lengths_of_substring(const Node& node) const {
  constexpr uint64_t bytes_of_character = 6;
  const SuffixAutomaton& runs = *substrings_[node.automaton()];
  const uint64_t longest = std::min<uint64_t>(runs.longest_text(), bytes_of_character * node.most());
  const uint64_t rest = std::min(longest, bytes_of_character * node.least() + runs.longest_chunk());
  return {node.nullable ? 0 : rest, rest, longest, runs.memory_bytes(), longest, 0};
}

}  // namespace constrain
