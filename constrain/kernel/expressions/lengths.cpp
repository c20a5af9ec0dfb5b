// How long matches must be, from the structure of an expression: upper bounds, for budgets.
//
// A match that goes in a circle also matches without the circle. So among matches of at least n bytes the shortest is
// hardly longer than n: by less than the longest circle (`circle`), unless no match that short goes in a circle at all
// (`settled`). An automaton with p positions settles within p bytes, and its circles are no longer than that.
#include <algorithm>

#include "base/errors.h"
#include "expressions/nesting.h"

namespace constrain {

namespace {

uint64_t capped(uint64_t length) { return std::min(length, ExpressionStore::no_limit); }

uint64_t times(uint64_t a, uint64_t b) {
  if (a == 0 || b == 0) return 0;
  return a > ExpressionStore::no_limit / b ? ExpressionStore::no_limit : capped(a * b);
}

ExpressionStore::Lengths of_one(uint64_t length) { return {length, length, length, length + 1, length, 0}; }

}  // namespace

ExpressionStore::Lengths ExpressionStore::lengths(ExprId e) {
  const Node& node = nodes_[index(e)];
  if (node.kind == Kind::literal) return of_one(node.length());
  auto known = [this](ExprId each) { return length_ids_.find(index(each)); };
  if (const uint32_t* found = known(e)) return lengths_[*found];
  auto parts_of = [this](ExprId each, auto&& f) { each_part(each, f); };
  for (ExprId each : tall_parts(e, known, parts_of)) keep_lengths(each, find_lengths(each));
  return lengths_[*known(e)];
}

void ExpressionStore::keep_lengths(ExprId e, const Lengths& lengths) {
  length_ids_.insert(index(e), static_cast<uint32_t>(lengths_.size()));
  lengths_.push_back(lengths);
}

ExpressionStore::Lengths ExpressionStore::find_lengths(ExprId e) {
  const Node node = nodes_[index(e)];
  switch (node.kind) {
    case Kind::nothing:
    case Kind::epsilon:
      return of_one(0);
    case Kind::anything:
      return {0, 0, no_limit, 1, 0, 1};
    case Kind::bytes:
      return of_one(1);
    case Kind::literal:
      return of_one(node.length());
    case Kind::literal_set:
      return lengths_of_set(node);
    case Kind::substring:
      return lengths_of_substring(node);
    case Kind::concatenation:
      return lengths_of_chain(e);
    case Kind::alternation:
      return lengths_of_alternation(node);
    case Kind::repetition:
      return lengths_of_repetition(node);
    case Kind::complement: {
      const uint64_t longest = lengths(node.excluded()).longest;
      const uint64_t limit = longest < no_limit ? longest + 1 : no_limit;
      return {limit, limit, no_limit, no_limit, no_limit, no_limit};
    }
    case Kind::multiple: {
      const uint64_t digits = digits_of(node);
      return {digits, digits, no_limit, no_limit, no_limit, no_limit};
    }
    case Kind::window:
      return lengths_of_window(node);
    case Kind::intersection:
      return lengths_of_intersection(e);
  }
  return {no_limit, no_limit, no_limit, no_limit, no_limit, no_limit};
}

ExpressionStore::Lengths ExpressionStore::lengths_of_set(const Node& node) {
  const std::vector<std::string>& texts = literal_sets_[node.literal_set()].texts;
  Lengths all{no_limit, 0, 0, 1, 0, 0};
  for (uint32_t i = node.low(); i < node.high(); ++i) {
    const uint64_t length = texts[i].size() - node.depth();
    all.least = std::min(all.least, length);
    all.longest = std::max(all.longest, length);
    all.positions += length;
  }
  all.rest = all.settled = all.longest;
  return all;
}

ExpressionStore::Lengths ExpressionStore::lengths_of_chain(ExprId e) {
  const std::vector<ExprId> links = new_links(e, [this](ExprId link) { return length_ids_.find(index(link)); });
  Lengths all = lengths(rest_of(links.back()));
  for (size_t i = links.size(); i-- > 0;) {
    const Lengths first = lengths(head_of(links[i]));
    all.rest = capped(std::max(first.rest + all.least, all.rest));
    all.least = capped(all.least + first.least);
    all.longest = capped(all.longest + first.longest);
    all.positions = capped(all.positions + first.positions);
    all.settled = capped(all.settled + first.settled);
    all.circle = std::max(all.circle, first.circle);
    if (i > 0) keep_lengths(links[i], all);
  }
  return all;
}

ExpressionStore::Lengths ExpressionStore::lengths_of_alternation(const Node& node) {
  Lengths all{no_limit, 0, 0, 1, 0, 0};
  for (uint32_t i = 0; i < node.part_count(); ++i) {
    const Lengths each = lengths(children_[node.first_part() + i]);
    all.least = std::min(all.least, each.least);
    all.rest = std::max(all.rest, each.rest);
    all.longest = std::max(all.longest, each.longest);
    all.positions = capped(all.positions + each.positions);
    all.settled = std::max(all.settled, each.settled);
    all.circle = std::max(all.circle, each.circle);
  }
  return all;
}

ExpressionStore::Lengths ExpressionStore::lengths_of_repetition(const Node& node) {
  const Lengths each = lengths(node.unit());
  const uint64_t minimum = node.minimum(), maximum = node.maximum() == unbounded ? no_limit : node.maximum();
  return {times(minimum, each.least),
          capped(each.rest + times(minimum, each.least)),
          times(maximum, each.longest),
          capped(1 + times(maximum == no_limit ? minimum + 1 : maximum, each.positions)),
          times(minimum + 1, each.settled),
          std::max(each.circle, each.settled)};
}

ExpressionStore::Lengths ExpressionStore::lengths_of_window(const Node& node) {
  const Lengths part = lengths(node.part());
  const Lengths unit = lengths(node.unit());
  const uint64_t minimum = node.minimum();
  const uint64_t states = times(part.positions, unit.positions);
  const uint64_t most = node.maximum() == unbounded ? no_limit : times(uint64_t{node.maximum()} + 1, unit.longest);
  const uint64_t longest = std::min(part.longest, most);
  const uint64_t settled = times(capped(minimum + 1 + states), unit.longest);
  const uint64_t rest = std::min(settled, longest);
  return {rest, rest, longest, times(states, minimum + 2), settled, times(states, unit.longest)};
}

ExpressionStore::Lengths ExpressionStore::lengths_of_intersection(ExprId e) {
  uint64_t positions = 1, longest = no_limit, excluded = 0, digits = 0;
  uint64_t states = 1, settled = 0, circle = 0;  // of the parts that are neither complements nor multiples
  size_t plain = 0;
  const std::span<const ExprId> span = parts(e);
  for (ExprId part : std::vector<ExprId>(span.begin(), span.end())) {
    const Node inner = nodes_[index(part)];
    const Lengths each = lengths(part);
    positions = times(positions, each.positions);
    longest = std::min(longest, each.longest);
    if (inner.kind == Kind::complement) {  // a longer match is not excluded
      excluded = std::max(excluded, each.least);
    } else if (inner.kind == Kind::multiple) {
      digits += digits_of(inner);
    } else {
      states = times(states, each.positions);
      settled = each.settled;
      circle = each.circle;
      ++plain;
    }
  }
  if (plain != 1) settled = circle = states;
  settled = capped(std::max(excluded, settled) + circle + digits);
  const uint64_t rest = std::min(longest, settled);
  return {rest, rest, longest, positions, settled, settled};
}

// Enough digits to make a multiple of the number read so far, if any digit may follow.
uint64_t ExpressionStore::digits_of(const Node& multiple) const { return 24 + uint64_t{multiples_[multiple.machine()].scale}; }

// All derivatives, breadth first, and the distance of each from a match, found from the matches backwards.
ExpressionStore::Explored ExpressionStore::explore(ExprId start, size_t max_states) {
  std::vector<ExprId> states{start};
  std::vector<std::vector<uint32_t>> into(1);
  FlatMap<uint32_t, uint32_t> numbers;
  numbers.insert(index(start), 0);
  for (uint32_t at = 0; at < states.size(); ++at) {
    ByteSet possible = first(states[at]);
    for (uint8_t byte : representatives({states[at]})) {
      if (!possible.contains(byte)) continue;
      ExprId next = ExprId::nothing;
      try {
        next = derivative(states[at], byte);
      } catch (const LimitError&) {
        return {no_limit, no_limit};
      }
      if (next == ExprId::nothing) continue;
      const uint32_t* found = numbers.find(index(next));
      const uint32_t number = found ? *found : static_cast<uint32_t>(states.size());
      if (!found) {
        if (states.size() == max_states) return {no_limit, no_limit};
        numbers.insert(index(next), number);
        states.push_back(next);
        into.emplace_back();
      }
      into[number].push_back(at);
    }
  }
  std::vector<uint64_t> distances(states.size(), no_limit);
  std::vector<uint32_t> queue;
  for (uint32_t at = 0; at < states.size(); ++at) {
    if (!nullable(states[at])) continue;
    distances[at] = 0;
    queue.push_back(at);
  }
  for (size_t i = 0; i < queue.size(); ++i) {
    for (uint32_t from : into[queue[i]]) {
      if (distances[from] != no_limit) continue;
      distances[from] = distances[queue[i]] + 1;
      queue.push_back(from);
    }
  }
  return {*std::max_element(distances.begin(), distances.end()), states.size()};
}

}  // namespace constrain
