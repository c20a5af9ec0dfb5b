// Expressions without counts that are out of a token's reach: many states then have the same tokens.
//
// A text that begins at most n units cannot tell X{m,n} from X{m,}: after it, the unit can be ended, further ones read
// until there are m, and the repetition left. Nor can it tell X{m,} from X{k,} if it begins fewer than m and k units. In
// concatenations, alternations and repetitions that holds for every part of the text. A window that has no minimum left
// allows every text after which its part can be completed within the maximum. What other expressions hold together
// (intersections, complements) is left alone.
#include <algorithm>

#include "expressions/nesting.h"

namespace constrain {

namespace {

constexpr size_t max_unit_pairs = 1000;  // states of a window's part, with states of its unit
constexpr size_t max_far_counts = 8;     // different conditions on one expression

using Uncounted = ExpressionStore::Uncounted;

// Adds the conditions of a part.
void join(Uncounted& to, const Uncounted& part) {
  to.most_bytes = std::min(to.most_bytes, part.most_bytes);
  for (const Uncounted::Count& each : part.counts) {
    const auto same = std::find_if(to.counts.begin(), to.counts.end(), [&](const Uncounted::Count& known) { return known.unit == each.unit; });
    if (same == to.counts.end()) {
      to.counts.push_back(each);
    } else {
      same->most = std::min(same->most, each.most);
    }
  }
}

}  // namespace

const Uncounted& ExpressionStore::without_far_counts(ExprId e) {
  auto known = [this](ExprId each) { return uncounted_ids_.find(index(each)); };
  if (const uint32_t* found = known(e)) return uncounted_[*found];
  auto parts_of = [this](ExprId each, auto&& f) { each_part(each, f); };
  for (ExprId each : tall_parts(e, known, parts_of)) {
    Uncounted found = find_without_far_counts(each);
    if (found.counts.size() > max_far_counts) found = {each};
    uncounted_ids_.insert(index(each), static_cast<uint32_t>(uncounted_.size()));
    uncounted_.push_back(std::move(found));
  }
  return uncounted_[*known(e)];
}

Uncounted ExpressionStore::find_without_far_counts(ExprId e) {
  switch (nodes_[index(e)].kind) {
    case Kind::concatenation:
      return uncounted_chain(e);
    case Kind::alternation: {
      const std::span<const ExprId> span = parts(e);
      std::vector<ExprId> all(span.begin(), span.end());
      Uncounted result{e};
      bool changed = false;
      for (ExprId& part : all) {
        if (!nodes_[index(part)].has_count) continue;
        const Uncounted& found = without_far_counts(part);
        changed |= found.expression != part;
        join(result, found);
        part = found.expression;
      }
      if (changed) result.expression = alternation(std::move(all));
      return result;
    }
    case Kind::repetition:
      return uncounted_repetition(e);
    case Kind::window:
      return uncounted_window(e);
    default:
      return {e};
  }
}

Uncounted ExpressionStore::uncounted_chain(ExprId e) {
  std::vector<ExprId> links;
  each_part(e, [&](ExprId link) { links.push_back(link); });
  Uncounted result{e};
  bool changed = false;
  for (ExprId& link : links) {
    if (!nodes_[index(link)].has_count) continue;
    const Uncounted& found = without_far_counts(link);
    changed |= found.expression != link;
    join(result, found);
    link = found.expression;
  }
  if (!changed) return result;
  result.expression = links.back();
  for (size_t i = links.size() - 1; i-- > 0;) result.expression = concatenation(links[i], result.expression);
  return result;
}

Uncounted ExpressionStore::uncounted_repetition(ExprId e) {
  const Node node = nodes_[index(e)];
  const ExprId unit = node.unit();
  if (nullable(unit)) return {e};
  Uncounted result = without_far_counts(unit);
  const uint32_t far = (short_text - 1) / unit_bounds(unit).least + 2;  // a short text begins fewer units
  uint32_t minimum = node.minimum(), maximum = node.maximum();
  if (maximum >= far && maximum != unbounded) {
    join(result, {unit, ~uint64_t{0}, {{unit, maximum}}});
    maximum = unbounded;
  }
  if (minimum > far && maximum == unbounded) {
    join(result, {unit, ~uint64_t{0}, {{unit, far - 1}}});
    minimum = far;
  }
  const bool changed = result.expression != unit || minimum != node.minimum() || maximum != node.maximum();
  result.expression = changed ? repetition(result.expression, minimum, maximum) : e;
  return result;
}

Uncounted ExpressionStore::uncounted_window(ExprId e) {
  const Node node = nodes_[index(e)];
  const uint32_t maximum = node.maximum();
  if (node.minimum() > 0 || node.unit() != node.unit_state() || maximum == unbounded) return {e};
  const uint64_t rest = lengths(node.part()).rest;
  if (rest + short_text > maximum) return {e};
  Uncounted result = without_far_counts(node.part());
  if (!keeps_units(result.expression, node.unit())) return {e};
  result.most_bytes = std::min(result.most_bytes, maximum - rest);
  return result;
}

// Whether no match of the part goes on in the middle of a unit with a byte that the unit does not have. A window would
// not allow it.
bool ExpressionStore::keeps_units(ExprId part, ExprId unit) {
  if (const uint8_t* known = keeps_units_.find(paired(part, unit))) return *known != 0;
  std::vector<std::pair<ExprId, ExprId>> pairs{{part, unit}};
  FlatMap<uint64_t, uint8_t> seen;
  seen.insert(paired(part, unit), 1);
  bool keeps = true;
  for (size_t at = 0; at < pairs.size() && keeps; ++at) {
    const auto [own, rest] = pairs[at];
    const ByteSet possible = first(own);
    for (uint8_t byte : representatives({own, rest})) {
      if (!possible.contains(byte)) continue;
      const ExprId next = derivative(own, byte);
      if (next == ExprId::nothing) continue;
      ExprId next_rest = derivative(rest, byte);
      if (next_rest == ExprId::nothing) {
        keeps &= rest == unit;
        continue;
      }
      if (nullable(next_rest)) next_rest = unit;
      if (seen.find(paired(next, next_rest))) continue;
      seen.insert(paired(next, next_rest), 1);
      pairs.emplace_back(next, next_rest);
      keeps &= pairs.size() <= max_unit_pairs;
    }
  }
  keeps_units_.insert(paired(part, unit), keeps);
  for (const auto& [own, rest] : pairs) {
    if (keeps && rest == unit) keeps_units_.insert(paired(own, unit), 1);
  }
  return keeps;
}

ExpressionStore::UnitBounds ExpressionStore::unit_bounds(ExprId unit) {
  std::vector<ExprId> links;
  if (nodes_[index(unit)].kind == Kind::concatenation) {
    each_part(unit, [&](ExprId link) { links.push_back(link); });
  } else {
    links.push_back(unit);
  }
  UnitBounds bounds{first(unit), {}, alphabet(unit), 0};
  for (ExprId link : links) {
    if (nullable(link)) {
      bounds.last = bounds.last | alphabet(link);
      continue;
    }
    const Node& node = nodes_[index(link)];
    const bool is_literal = node.kind == Kind::literal;
    bounds.least += is_literal ? node.length() : 1;
    bounds.last = {};
    if (is_literal) {
      bounds.last.add(static_cast<uint8_t>(literals_[node.offset() + node.length() - 1]));
    } else {
      bounds.last = alphabet(link);
    }
  }
  bounds.least = std::max(bounds.least, 1u);
  return bounds;
}

uint32_t ExpressionStore::UnitBounds::most_begun(std::string_view text) const {
  uint32_t most = 0, begun = 0;
  size_t last_begun = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if (!alphabet.contains(byte)) {
      begun = 0;
      continue;
    }
    const bool may_begin = first.contains(byte) && i > 0 && last.contains(static_cast<uint8_t>(text[i - 1]));
    if (!may_begin || (begun > 0 && i - last_begun < least)) continue;
    most = std::max(most, ++begun);
    last_begun = i;
  }
  return most + 1;  // the first one may begin anywhere
}

}  // namespace constrain
