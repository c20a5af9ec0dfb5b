// Expressions without long counts, or without counts that are out of a token's reach.
//
// A text that begins at most n units cannot tell X{m,n} from X{m,}: after it, the unit can be ended, further ones read
// until there are m, and the repetition left. Nor can it tell X{m,} from X{k,} if it begins fewer than m and k units. In
// concatenations, alternations and repetitions that holds for every part of the text. A window that has no minimum left
// allows every text after which its part can be completed within the maximum. What other expressions hold together
// (intersections, complements) is left alone.
#include "expressions/counts.h"

#include <algorithm>

#include "expressions/nesting.h"

namespace constrain {

namespace {

using Kind = ExpressionNodes::Kind;

constexpr uint32_t max_short_count = 16;  // shorter counts are no long ones
constexpr size_t max_unit_pairs = 1000;  // states of a window's part, with states of its unit
constexpr size_t max_far_counts = 8;     // different conditions on one expression

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

ExprId LongCounts::without(ExpressionStore& store, ExprId e) {
  auto known = [this](ExprId each) { return without_.find(index(each)); };
  if (const uint32_t* found = known(e)) return ExprId{*found};
  for (ExprId each : store.nodes().tall_parts(e, known)) {
    const ExprId found = find(store, each);
    without_.insert(index(each), index(found));
  }
  return ExprId{*known(e)};
}

ExprId LongCounts::find(ExpressionStore& store, ExprId e) {
  const ExpressionNodes::Node node = store[e];
  switch (node.kind) {
    case Kind::concatenation: {
      std::vector<ExprId> parts;
      ExprId rest = e;
      for (; store[rest].kind == Kind::concatenation; rest = store.nodes().rest_of(rest)) {
        parts.push_back(store.nodes().head_of(rest));
      }
      ExprId result = without(store, rest);
      for (size_t i = parts.size(); i-- > 0;) result = store.concatenation(without(store, parts[i]), result);
      return result;
    }
    case Kind::alternation:
    case Kind::intersection: {
      std::vector<ExprId> all = store.nodes().copy_of_parts(node);
      for (ExprId& part : all) part = without(store, part);
      return node.kind == Kind::alternation ? store.alternation(std::move(all)) : store.intersection(std::move(all));
    }
    case Kind::repetition: {
      const ExprId part = without(store, node.unit());
      const uint32_t minimum = node.minimum(), maximum = node.maximum();
      const bool is_short = std::max(minimum, maximum == unbounded ? 0 : maximum) <= max_short_count;
      return is_short ? store.repetition(part, minimum, maximum) : store.repetition(part, std::min(minimum, 1u), unbounded);
    }
    case Kind::window:
      return node.unit() == node.unit_state() ? without(store, node.part()) : e;
    default:  // replacing a count in a complement would remove texts
      return e;
  }
}

const Uncounted& FarCounts::without(ExprId e) {
  auto known = [this](ExprId each) { return ids_.find(index(each)); };
  if (const uint32_t* found = known(e)) return uncounted_[*found];
  for (ExprId each : store_.nodes().tall_parts(e, known)) {
    Uncounted found = find(each);
    if (found.counts.size() > max_far_counts) found = {each};
    ids_.insert(index(each), static_cast<uint32_t>(uncounted_.size()));
    uncounted_.push_back(std::move(found));
  }
  return uncounted_[*known(e)];
}

Uncounted FarCounts::find(ExprId e) {
  switch (store_[e].kind) {
    case Kind::concatenation:
      return of_chain(e);
    case Kind::alternation: {
      std::vector<ExprId> all = store_.nodes().copy_of_parts(store_[e]);
      Uncounted result{e};
      bool changed = false;
      for (ExprId& part : all) {
        if (!store_[part].has_count) continue;
        const Uncounted& found = without(part);
        changed |= found.expression != part;
        join(result, found);
        part = found.expression;
      }
      if (changed) result.expression = store_.alternation(std::move(all));
      return result;
    }
    case Kind::repetition:
      return of_repetition(e);
    case Kind::window:
      return of_window(e);
    default:
      return {e};
  }
}

Uncounted FarCounts::of_chain(ExprId e) {
  std::vector<ExprId> links;
  store_.nodes().each_part(e, [&](ExprId link) { links.push_back(link); });
  Uncounted result{e};
  bool changed = false;
  for (ExprId& link : links) {
    if (!store_[link].has_count) continue;
    const Uncounted& found = without(link);
    changed |= found.expression != link;
    join(result, found);
    link = found.expression;
  }
  if (!changed) return result;
  result.expression = links.back();
  for (size_t i = links.size() - 1; i-- > 0;) result.expression = store_.concatenation(links[i], result.expression);
  return result;
}

Uncounted FarCounts::of_repetition(ExprId e) {
  const ExpressionNodes::Node node = store_[e];
  const ExprId unit = node.unit();
  if (store_.nullable(unit)) return {e};
  Uncounted result = without(unit);
  const uint32_t far = (short_text - 1) / unit_bounds(store_, unit).least + 2;  // a short text begins fewer units
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
  result.expression = changed ? store_.repetition(result.expression, minimum, maximum) : e;
  return result;
}

Uncounted FarCounts::of_window(ExprId e) {
  const ExpressionNodes::Node node = store_[e];
  const uint32_t maximum = node.maximum();
  if (node.minimum() > 0 || node.unit() != node.unit_state() || maximum == unbounded) return {e};
  const uint64_t rest = lengths_.of(node.part()).rest;
  if (rest + short_text > maximum) return {e};
  Uncounted result = without(node.part());
  if (!keeps_units(result.expression, node.unit())) return {e};
  result.most_bytes = std::min(result.most_bytes, maximum - rest);
  return result;
}

// Whether no match of the part goes on in the middle of a unit with a byte that the unit does not have. A window would
// not allow it.
bool FarCounts::keeps_units(ExprId part, ExprId unit) {
  if (const uint8_t* known = keeps_units_.find(paired(part, unit))) return *known != 0;
  std::vector<std::pair<ExprId, ExprId>> pairs{{part, unit}};
  FlatMap<uint64_t, uint8_t> seen;
  seen.insert(paired(part, unit), 1);
  bool keeps = true;
  for (size_t at = 0; at < pairs.size() && keeps; ++at) {
    const auto [own, rest] = pairs[at];
    const ByteSet possible = store_.first(own);
    for (uint8_t byte : store_.representatives({own, rest})) {
      if (!possible.contains(byte)) continue;
      const ExprId next = store_.derivative(own, byte);
      if (next == ExprId::nothing) continue;
      ExprId next_rest = store_.derivative(rest, byte);
      if (next_rest == ExprId::nothing) {
        keeps &= rest == unit;
        continue;
      }
      if (store_.nullable(next_rest)) next_rest = unit;
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

UnitBounds unit_bounds(ExpressionStore& store, ExprId unit) {
  std::vector<ExprId> links;
  if (store[unit].kind == Kind::concatenation) {
    store.nodes().each_part(unit, [&](ExprId link) { links.push_back(link); });
  } else {
    links.push_back(unit);
  }
  UnitBounds bounds{store.first(unit), {}, store.alphabet(unit), 0};
  for (ExprId link : links) {
    if (store.nullable(link)) {
      bounds.last = bounds.last | store.alphabet(link);
      continue;
    }
    const ExpressionNodes::Node& node = store[link];
    if (node.kind == Kind::literal) {
      bounds.least += node.length();
      bounds.last = {};
      bounds.last.add(static_cast<uint8_t>(store.nodes().literal(node).back()));
    } else {
      ++bounds.least;
      bounds.last = store.alphabet(link);
    }
  }
  bounds.least = std::max(bounds.least, 1u);
  return bounds;
}

uint32_t UnitBounds::most_begun(std::string_view text) const {
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
