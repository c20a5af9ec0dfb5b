// Expressions without long counts: they match all texts of the original and more, with few derivatives.
#include <algorithm>

#include "expressions/nesting.h"

namespace constrain {

namespace {

constexpr uint32_t max_short_count = 16;  // shorter counts are kept

}  // namespace

ExprId ExpressionStore::without_counts(ExprId e) {
  auto known = [this](ExprId each) { return without_counts_.find(index(each)); };
  if (const uint32_t* found = known(e)) return ExprId{*found};
  auto parts_of = [this](ExprId each, auto&& f) { each_part(each, f); };
  for (ExprId each : tall_parts(e, known, parts_of)) {
    const ExprId found = find_without_counts(each);
    without_counts_.insert(index(each), index(found));
  }
  return ExprId{*known(e)};
}

ExprId ExpressionStore::find_without_counts(ExprId e) {
  const Node node = nodes_[index(e)];
  switch (node.kind) {
    case Kind::concatenation: {
      std::vector<ExprId> parts;
      ExprId rest = e;
      for (; nodes_[index(rest)].kind == Kind::concatenation; rest = rest_of(rest)) {
        parts.push_back(head_of(rest));
      }
      ExprId result = without_counts(rest);
      for (size_t i = parts.size(); i-- > 0;) result = concatenation(without_counts(parts[i]), result);
      return result;
    }
    case Kind::alternation:
    case Kind::intersection: {
      const std::span<const ExprId> span = parts(e);
      std::vector<ExprId> all(span.begin(), span.end());
      for (ExprId& part : all) part = without_counts(part);
      return node.kind == Kind::alternation ? alternation(std::move(all)) : intersection(std::move(all));
    }
    case Kind::repetition: {
      const ExprId part = without_counts(node.unit());
      const uint32_t minimum = node.minimum(), maximum = node.maximum();
      const bool is_short = std::max(minimum, maximum == unbounded ? 0 : maximum) <= max_short_count;
      return is_short ? repetition(part, minimum, maximum) : repetition(part, std::min(minimum, 1u), unbounded);
    }
    case Kind::window:
      return node.unit() == node.unit_state() ? without_counts(node.part()) : e;
    default:  // replacing a count in a complement would remove texts
      return e;
  }
}

}  // namespace constrain
