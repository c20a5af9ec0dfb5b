// Visits the parts of expressions without a call for each level, for functions that derive a property of expressions.
//
// The property of an expression is computed from its parts. Deeply nested parts are computed from the bottom up, each
// once, so that no chain of calls is longer than max_recursed_height.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "expressions/nodes.h"

namespace constrain {

// All links of a chain of concatenations.
template <typename F>
void ExpressionNodes::each_part(ExprId e, F&& f) const {
  const Node& node = nodes_[index(e)];
  switch (node.kind) {
    case Kind::concatenation:
      for (; nodes_[index(e)].kind == Kind::concatenation; e = rest_of(e)) f(head_of(e));
      f(e);
      break;
    case Kind::alternation:
    case Kind::intersection:
      for (ExprId part : parts(node)) f(part);
      break;
    case Kind::complement:
      f(node.excluded());
      break;
    case Kind::repetition:
      f(node.unit());
      break;
    case Kind::window:
      for (ExprId part : {node.part(), node.unit(), node.unit_state()}) f(part);
      break;
    default:
      break;
  }
}

// The links of a chain of concatenations, up to one that is known: many chains end alike.
template <typename Known>
std::vector<ExprId> ExpressionNodes::new_links(ExprId e, Known&& known) const {
  std::vector<ExprId> links{e};
  for (ExprId rest = rest_of(e); nodes_[index(rest)].kind == Kind::concatenation && !known(rest); rest = rest_of(rest)) links.push_back(rest);
  return links;
}

// The expression itself, after its tall parts that are not known yet: the lowest first.
template <typename Known, typename EachPart>
std::vector<ExprId> ExpressionNodes::tall_parts(ExprId e, Known&& known, EachPart&& each_part) const {
  std::vector<ExprId> found{e};
  if (!is_tall(e)) return found;
  FlatMap<uint32_t, uint8_t> seen;
  for (size_t i = 0; i < found.size(); ++i) {
    each_part(found[i], [&](ExprId part) {
      if (!is_tall(part) || seen.find(index(part)) || known(part)) return;
      seen.insert(index(part), 1);
      found.push_back(part);
    });
  }
  std::sort(found.begin(), found.end(), [this](ExprId a, ExprId b) {
    const Node &one = nodes_[index(a)], &other = nodes_[index(b)];
    return std::pair(one.height, index(a)) < std::pair(other.height, index(b));
  });
  return found;
}

// The same for a property that all parts have a share in.
template <typename Known>
std::vector<ExprId> ExpressionNodes::tall_parts(ExprId e, Known&& known) const {
  return tall_parts(e, known, [this](ExprId each, auto&& f) { each_part(each, f); });
}

}  // namespace constrain
