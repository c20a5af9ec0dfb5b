// How deeply expressions are nested, and their derivatives where that is deep.
#include "nesting.h"

#include <limits>

namespace constrain {

void ExpressionStore::set_height(Node& node) const {
  uint32_t height = 0;
  auto above = [&](ExprId part) { height = std::max<uint32_t>(height, nodes_[index(part)].height + 1u); };
  switch (node.kind) {
    case Kind::concatenation: {
      above(ExprId{node.arg[0]});
      const Node& rest = nodes_[node.arg[1]];
      height = std::max<uint32_t>(height, rest.height + (rest.kind == Kind::concatenation ? 0u : 1u));
      break;
    }
    case Kind::alternation:
    case Kind::intersection:
      for (uint32_t i = 0; i < node.arg[1]; ++i) above(children_[node.arg[0] + i]);
      break;
    case Kind::complement:
    case Kind::repetition:
      above(ExprId{node.arg[0]});
      break;
    case Kind::window:
      for (size_t i = 0; i < 3; ++i) above(ExprId{node.arg[i]});
      break;
    default:
      break;
  }
  // far beyond what derivatives of an imported expression come to: they are about twice as high as it is
  constexpr uint32_t highest = std::numeric_limits<uint16_t>::max();
  if (height > highest) {
    throw LimitError(limit_message("an expression is nested too deeply", "16 * MAX_EXPRESSION_DEPTH", highest), Limit::expression_depth);
  }
  node.height = static_cast<uint16_t>(height);
}

// Of the parts that the derivative of `e` is put together from.
void ExpressionStore::derive_tall_parts(ExprId e, uint8_t byte) {
  auto key = [byte](ExprId each) { return (uint64_t{index(each)} << 8) | byte; };
  auto known = [&](ExprId each) {
    const int16_t lead = nodes_[index(each)].lead;
    return (lead >= 0 && lead != byte) || derivatives_.find(key(each));
  };
  auto parts_of = [this](ExprId each, auto&& f) {
    const Node& node = nodes_[index(each)];
    if (node.kind == Kind::window) {
      f(ExprId{node.arg[0]});
      f(ExprId{node.arg[2]});
    } else if (node.kind != Kind::concatenation) {
      each_part(each, f);
    } else {
      for (ExprId rest = each;; rest = ExprId{nodes_[index(rest)].arg[1]}) {
        const bool last = nodes_[index(rest)].kind != Kind::concatenation;
        const ExprId head = last ? rest : ExprId{nodes_[index(rest)].arg[0]};
        f(head);
        if (last || !nullable(head)) break;
      }
    }
  };
  for (ExprId each : tall_parts(e, known, parts_of)) {
    if (each == e || derivatives_.find(key(each))) continue;
    const ExprId result = derive(each, byte);
    derivatives_.insert(key(each), index(result));
  }
}

}  // namespace constrain
