// The height of expressions, whether they have a substring or a count, and the derivatives of high ones.
#include "expressions/nesting.h"

#include <limits>

namespace constrain {

void ExpressionStore::set_height(Node& node) const {
  uint32_t height = 0;
  node.has_substring = node.kind == Kind::substring;
  auto above = [&](ExprId part) {
    height = std::max<uint32_t>(height, nodes_[index(part)].height + 1u);
    node.has_substring |= nodes_[index(part)].has_substring;
    node.has_count |= nodes_[index(part)].has_count;
  };
  switch (node.kind) {
    case Kind::concatenation: {
      above(node.head());
      const Node& rest = nodes_[index(node.rest())];
      node.has_substring |= rest.has_substring;
      node.has_count |= rest.has_count;
      height = std::max<uint32_t>(height, rest.height + (rest.kind == Kind::concatenation ? 0u : 1u));
      break;
    }
    case Kind::alternation:
    case Kind::intersection:
      for (uint32_t i = 0; i < node.part_count(); ++i) above(children_[node.first_part() + i]);
      break;
    case Kind::complement:
      above(node.excluded());
      break;
    case Kind::repetition:
      above(node.unit());
      break;
    case Kind::window:
      for (ExprId part : {node.part(), node.unit(), node.unit_state()}) above(part);
      break;
    default:
      break;
  }
  const bool counts = node.kind == Kind::repetition && (node.minimum() > 1 || (node.maximum() > 1 && node.maximum() != unbounded));
  const bool is_left_alone = node.kind == Kind::intersection || node.kind == Kind::complement;
  node.has_count = (node.has_count || counts || node.kind == Kind::window) && !is_left_alone;
  // Derivatives of an imported expression are about twice as high as the expression, far below this limit.
  constexpr uint32_t highest = std::numeric_limits<uint16_t>::max();
  if (height > highest) {
    throw LimitError(limit_message("an expression is nested too deeply", MAX_EXPRESSION_DEPTH, highest, "16 * "), Limit::expression_depth);
  }
  node.height = static_cast<uint16_t>(height);
}

// The parts whose derivatives make up the derivative of `e`.
void ExpressionStore::derive_tall_parts(ExprId e, uint8_t byte) {
  spend(1);  // where nothing is left, not even the parts are looked at
  auto key = [byte](ExprId each) { return (uint64_t{index(each)} << 8) | byte; };
  auto known = [&](ExprId each) {
    const int16_t lead = nodes_[index(each)].lead;
    return (lead >= 0 && lead != byte) || derivatives_.find(key(each));
  };
  auto parts_of = [this](ExprId each, auto&& f) {
    const Node& node = nodes_[index(each)];
    if (node.kind == Kind::window) {
      f(node.part());
      f(node.unit_state());
    } else if (node.kind == Kind::concatenation || node.kind == Kind::alternation) {
      for (const auto& [part, rest] : leading_parts(each)) f(part);
    } else {
      each_part(each, f);
    }
  };
  for (ExprId each : tall_parts(e, known, parts_of)) {
    if (each == e || derivatives_.find(key(each))) continue;
    const ExprId result = derive(each, byte);
    derivatives_.insert(key(each), index(result));
  }
}

}  // namespace constrain
