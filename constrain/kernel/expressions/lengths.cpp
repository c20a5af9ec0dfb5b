// How long matches must be, and how far away their ends are.
#include "expressions/lengths.h"

#include <algorithm>

#include "expressions/nesting.h"

namespace constrain {

namespace {

using Kind = ExpressionNodes::Kind;

uint64_t capped(uint64_t length) { return std::min(length, Lengths::no_limit); }

uint64_t times(uint64_t a, uint64_t b) {
  if (a == 0 || b == 0) return 0;
  return a > Lengths::no_limit / b ? Lengths::no_limit : capped(a * b);
}

LengthBounds of_one(uint64_t length) { return {length, length, length, length + 1, length, 0}; }

}  // namespace

LengthBounds Lengths::of(ExprId e) {
  const ExpressionNodes::Node& node = nodes_[e];
  if (node.kind == Kind::literal) return of_one(node.length());
  auto known = [this](ExprId each) { return ids_.find(index(each)); };
  if (const uint32_t* found = known(e)) return bounds_[*found];
  for (ExprId each : nodes_.tall_parts(e, known)) keep(each, find(each));
  return bounds_[*known(e)];
}

void Lengths::keep(ExprId e, const LengthBounds& bounds) {
  ids_.insert(index(e), static_cast<uint32_t>(bounds_.size()));
  bounds_.push_back(bounds);
}

LengthBounds Lengths::find(ExprId e) {
  const ExpressionNodes::Node node = nodes_[e];
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
      return of_set(node);
    case Kind::substring:
      return of_substring(node);
    case Kind::concatenation:
      return of_chain(e);
    case Kind::alternation:
      return of_alternation(node);
    case Kind::repetition:
      return of_repetition(node);
    case Kind::complement: {
      const uint64_t longest = of(node.excluded()).longest;
      const uint64_t limit = longest < no_limit ? longest + 1 : no_limit;
      return {limit, limit, no_limit, no_limit, no_limit, no_limit};
    }
    case Kind::multiple: {
      const uint64_t digits = digits_of(node);
      return {digits, digits, no_limit, no_limit, no_limit, no_limit};
    }
    case Kind::window:
      return of_window(node);
    case Kind::intersection:
      return of_intersection(node);
  }
  return {no_limit, no_limit, no_limit, no_limit, no_limit, no_limit};
}

LengthBounds Lengths::of_set(const ExpressionNodes::Node& node) {
  const SortedTexts& texts = nodes_.texts(node);
  const uint64_t read = node.depth(), longest = texts.longest(node.low(), node.high()) - read;
  const uint64_t least = texts[texts.shortest(node.low(), node.high())].size() - read;
  const uint64_t positions = 1 + texts.bytes(node.low(), node.high()) - read * (node.high() - node.low());
  return {least, longest, longest, positions, longest, 0};
}

LengthBounds Lengths::of_chain(ExprId e) {
  const std::vector<ExprId> links = nodes_.new_links(e, [this](ExprId link) { return ids_.find(index(link)); });
  LengthBounds all = of(nodes_.rest_of(links.back()));
  for (size_t i = links.size(); i-- > 0;) {
    const LengthBounds first = of(nodes_.head_of(links[i]));
    all.rest = capped(std::max(first.rest + all.least, all.rest));
    all.least = capped(all.least + first.least);
    all.longest = capped(all.longest + first.longest);
    all.positions = capped(all.positions + first.positions);
    all.settled = capped(all.settled + first.settled);
    all.circle = std::max(all.circle, first.circle);
    if (i > 0) keep(links[i], all);
  }
  return all;
}

LengthBounds Lengths::of_alternation(const ExpressionNodes::Node& node) {
  LengthBounds all{no_limit, 0, 0, 1, 0, 0};
  for (ExprId part : nodes_.parts(node)) {
    const LengthBounds each = of(part);
    all.least = std::min(all.least, each.least);
    all.rest = std::max(all.rest, each.rest);
    all.longest = std::max(all.longest, each.longest);
    all.positions = capped(all.positions + each.positions);
    all.settled = std::max(all.settled, each.settled);
    all.circle = std::max(all.circle, each.circle);
  }
  return all;
}

LengthBounds Lengths::of_repetition(const ExpressionNodes::Node& node) {
  const LengthBounds each = of(node.unit());
  const uint64_t minimum = node.minimum(), maximum = node.maximum() == unbounded ? no_limit : node.maximum();
  return {times(minimum, each.least),
          capped(each.rest + times(minimum, each.least)),
          times(maximum, each.longest),
          capped(1 + times(maximum == no_limit ? minimum + 1 : maximum, each.positions)),
          times(minimum + 1, each.settled),
          std::max(each.circle, each.settled)};
}

LengthBounds Lengths::of_window(const ExpressionNodes::Node& node) {
  const LengthBounds part = of(node.part());
  const LengthBounds unit = of(node.unit());
  const uint64_t minimum = node.minimum();
  const uint64_t states = times(part.positions, unit.positions);
  const uint64_t most = node.maximum() == unbounded ? no_limit : times(uint64_t{node.maximum()} + 1, unit.longest);
  const uint64_t longest = std::min(part.longest, most);
  const uint64_t settled = times(capped(minimum + 1 + states), unit.longest);
  const uint64_t rest = std::min(settled, longest);
  return {rest, rest, longest, times(states, minimum + 2), settled, times(states, unit.longest)};
}

LengthBounds Lengths::of_intersection(const ExpressionNodes::Node& node) {
  uint64_t positions = 1, longest = no_limit, excluded = 0, digits = 0;
  uint64_t states = 1, settled = 0, circle = 0;  // of the parts that are neither complements nor multiples
  size_t plain = 0;
  for (ExprId part : nodes_.parts(node)) {
    const ExpressionNodes::Node& inner = nodes_[part];
    const LengthBounds each = of(part);
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
uint64_t Lengths::digits_of(const ExpressionNodes::Node& multiple) const { return 24 + uint64_t{nodes_.multiple(multiple).scale}; }

// A character takes at most 6 bytes. The first permitted end lies less than a chunk beyond the minimum.
LengthBounds Lengths::of_substring(const ExpressionNodes::Node& node) const {
  constexpr uint64_t bytes_of_character = 6;
  const SuffixAutomaton& runs = nodes_.runs(node);
  const uint64_t longest = std::min<uint64_t>(runs.longest_text(), bytes_of_character * node.most());
  const uint64_t rest = std::min(longest, bytes_of_character * node.least() + runs.longest_chunk());
  return {node.nullable ? 0 : rest, rest, longest, runs.memory_bytes(), longest, 0};
}

// About how many bytes a match needs; found without a search.
uint32_t Distances::of(const ExpressionNodes& nodes, ExprId e) {
  const ExpressionNodes::Node node = nodes[e];
  if (node.nullable) return 0;
  if (node.kind == Kind::literal) return node.length();
  auto known = [this](ExprId each) { return distances_.find(index(each)); };
  if (const uint32_t* found = known(e)) return *found;
  for (ExprId each : nodes.tall_parts(e, known)) distances_.insert(index(each), find(nodes, each));
  return *known(e);
}

uint32_t Distances::find(const ExpressionNodes& nodes, ExprId e) {
  const ExpressionNodes::Node node = nodes[e];
  uint64_t bytes = 1;
  switch (node.kind) {
    case Kind::concatenation: {
      const std::vector<ExprId> links = nodes.new_links(e, [this](ExprId link) { return distances_.find(index(link)); });
      bytes = of(nodes, nodes.rest_of(links.back()));
      for (size_t i = links.size(); i-- > 0;) {
        bytes = std::min(bytes + of(nodes, nodes.head_of(links[i])), MAX_SHORTEST_MATCH.value);
        if (i > 0) distances_.insert(index(links[i]), static_cast<uint32_t>(bytes));
      }
      break;
    }
    case Kind::alternation:
      bytes = MAX_SHORTEST_MATCH.value;
      for (ExprId part : nodes.parts(node)) bytes = std::min<uint64_t>(bytes, of(nodes, part));
      break;
    case Kind::intersection:  // mostly too much, but a good guide to texts that suit all parts
      bytes = 0;
      for (ExprId part : nodes.parts(node)) bytes += of(nodes, part);
      break;
    case Kind::repetition:
      bytes = uint64_t{node.minimum()} * of(nodes, node.unit());
      break;
    case Kind::window:
      bytes = std::max<uint64_t>(of(nodes, node.part()), uint64_t{node.minimum()} * of(nodes, node.unit()));
      if (node.unit_state() != node.unit()) bytes += of(nodes, node.unit_state());
      break;
    case Kind::substring:
      bytes = std::max(node.least(), 1u);
      break;
    default:
      break;
  }
  return static_cast<uint32_t>(std::min(bytes, MAX_SHORTEST_MATCH.value));
}

}  // namespace constrain
