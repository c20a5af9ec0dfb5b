// Construction, normal forms and derivatives of expressions. emptiness.cpp decides emptiness.
#include "expressions/expressions.h"

#include <algorithm>
#include <utility>

#include "expressions/nesting.h"

namespace constrain {

namespace {

using Kind = ExpressionNodes::Kind;

// Links are found, derived and joined again, with several look-ups each. Among many nodes these miss the processor's caches.
constexpr size_t links_per_step = 8, links_per_slow_step = 1, many_nodes = size_t{1} << 16;

}  // namespace

ExprId ExpressionStore::concatenation(ExprId first, ExprId second) {
  if (first == ExprId::nothing || second == ExprId::nothing) return ExprId::nothing;
  if (first == ExprId::epsilon) return second;
  if (second == ExprId::epsilon) return first;
  const Node& a = nodes_[first];
  if (a.kind == Kind::concatenation) {  // lean to the right, so that a derivative changes only the front
    std::vector<ExprId> heads;
    ExprId last = first;
    for (; nodes_[last].kind == Kind::concatenation; last = nodes_.rest_of(last)) {
      heads.push_back(nodes_.head_of(last));
    }
    work().spend(heads.size() / 8 * 8);  // expressions that share parts may double in each level
    second = concatenation(last, second);
    for (size_t i = heads.size(); i-- > 0;) second = concatenation(heads[i], second);
    return second;
  }
  const Node& b = nodes_[second];
  return nodes_.intern({.hash = mix(mix(tagged(Kind::concatenation), a.hash), b.hash),
                        .arg = {index(first), index(second)},
                        .kind = Kind::concatenation,
                        .nullable = a.nullable && b.nullable,
                        .finite = a.finite && b.finite,
                        .infinite = a.infinite || b.infinite,
                        .lead = a.nullable ? int16_t{-1} : a.lead});
}

ExprId ExpressionStore::alternation(std::vector<ExprId> parts) {
  std::vector<ExprId> flat;
  ByteSet single;
  int singles = 0;
  ExprId any_single{};
  for (size_t i = 0; i < parts.size(); ++i) {
    const Node& node = nodes_[parts[i]];
    if (node.kind == Kind::nothing) continue;
    if (node.kind == Kind::anything) return ExprId::anything;
    if (node.kind == Kind::alternation) {
      const std::span<const ExprId> inner = nodes_.parts(node);
      parts.insert(parts.end(), inner.begin(), inner.end());
    } else if (node.kind == Kind::bytes) {
      single = single | nodes_.byte_set(node);
      any_single = parts[i];
      ++singles;
    } else {
      flat.push_back(parts[i]);
    }
  }
  work().count_parts(flat.size());
  if (singles) flat.push_back(singles == 1 ? any_single : bytes(single));
  if (flat.empty()) return ExprId::nothing;
  if (flat.size() == 1) return flat[0];
  std::sort(flat.begin(), flat.end(), [this](ExprId a, ExprId b) { return hash(a) < hash(b); });
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  inclusions_.absorb(*this, flat);
  const auto matches_empty = [this](ExprId part) { return part != ExprId::epsilon && nullable(part); };
  if (std::ranges::any_of(flat, matches_empty)) std::erase(flat, ExprId::epsilon);  // x | epsilon, with x nullable, is x
  if (flat.size() == 1) return flat[0];
  Node result{.hash = tagged(Kind::alternation), .kind = Kind::alternation, .finite = true};
  for (ExprId part : flat) {
    const Node& node = nodes_[part];
    result.hash = mix(result.hash, node.hash);
    result.nullable |= node.nullable;
    result.finite &= node.finite;
    result.infinite |= node.infinite;
  }
  return nodes_.intern(result, flat);
}

ExprId ExpressionStore::intersection_undecided(std::vector<ExprId> parts) {
  std::vector<ExprId> flat;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Node& node = nodes_[parts[i]];
    if (node.kind == Kind::nothing) return ExprId::nothing;
    if (node.kind == Kind::anything) continue;
    if (node.kind == Kind::intersection) {
      const std::span<const ExprId> inner = nodes_.parts(node);
      parts.insert(parts.end(), inner.begin(), inner.end());
    } else {
      flat.push_back(parts[i]);
    }
  }
  if (flat.empty()) return ExprId::anything;
  work().count_parts(flat.size());
  std::sort(flat.begin(), flat.end(), [this](ExprId a, ExprId b) { return hash(a) < hash(b); });
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  if (flat.size() == 1) return flat[0];
  if (inclusions_.excludes_itself(*this, flat)) return ExprId::nothing;
  Node result{.hash = tagged(Kind::intersection), .kind = Kind::intersection, .nullable = true};
  bool all_bytes = true, has_epsilon = false, all_infinite = true, all_finite_excluded = true;
  int positives = 0;
  for (ExprId part : flat) {
    const Node& node = nodes_[part];
    if (node.lead >= 0) result.lead = node.lead;
    result.hash = mix(result.hash, node.hash);
    result.nullable &= node.nullable;
    result.finite |= node.finite;
    all_bytes &= node.kind == Kind::bytes;
    has_epsilon |= node.kind == Kind::epsilon;
    if (node.kind == Kind::complement) {
      all_finite_excluded &= nodes_[node.excluded()].finite;
    } else {
      ++positives;
      all_infinite &= node.infinite;
    }
  }
  if (has_epsilon) return result.nullable ? ExprId::epsilon : ExprId::nothing;
  if (all_bytes) {
    ByteSet set = ByteSet::all();
    for (ExprId part : flat) set = set & nodes_.byte_set(nodes_[part]);
    return bytes(set);
  }
  result.infinite = positives <= 1 && all_infinite && all_finite_excluded;
  return nodes_.intern(result, flat);
}

ExprId ExpressionStore::intersection(std::vector<ExprId> parts) {
  ExprId e = intersection_undecided(std::move(parts));
  if (nodes_[e].kind != Kind::intersection) return e;
  return emptiness_.decide_intersection(*this, e) ? e : ExprId::nothing;
}

ExprId ExpressionStore::complement(ExprId part) {
  const Node node = nodes_[part];  // a copy, because deciding moves the nodes
  if (node.kind == Kind::complement) return node.excluded();
  if (node.kind == Kind::nothing) return ExprId::anything;
  if (node.kind == Kind::anything || (node.nullable && !node.finite && emptiness_.is_universal(*this, part))) return ExprId::nothing;
  return nodes_.intern({.hash = mix(tagged(Kind::complement), node.hash),
                        .arg = {index(part)},
                        .kind = Kind::complement,
                        .nullable = !node.nullable,
                        .infinite = node.finite});
}

ExprId ExpressionStore::repetition(ExprId part, uint32_t minimum, uint32_t maximum) {
  if (minimum > maximum) return ExprId::nothing;
  if (maximum == 0) return ExprId::epsilon;
  if (part == ExprId::nothing) return minimum == 0 ? ExprId::epsilon : ExprId::nothing;
  if (part == ExprId::epsilon || part == ExprId::anything) return part;
  if (minimum == 1 && maximum == 1) return part;
  const Node& node = nodes_[part];
  if (node.nullable) minimum = 0;
  if (node.kind == Kind::repetition && node.minimum() == 0 && node.maximum() == unbounded) return part;
  return nodes_.intern({.hash = mix(mix(tagged(Kind::repetition), node.hash), paired(minimum, maximum)),
                        .arg = {index(part), minimum, maximum},
                        .kind = Kind::repetition,
                        .nullable = minimum == 0,
                        .finite = node.finite && maximum != unbounded,
                        .infinite = node.infinite || maximum == unbounded});
}

ExprId ExpressionStore::window(ExprId part, ExprId unit, uint32_t minimum, uint32_t maximum) {
  const Node& node = nodes_[part];
  // a repeated unit needs no window: X{a,b} made of m..n X is X{max(a,m),min(b,n)}
  if (node.kind == Kind::repetition) {
    const ExprId inner = node.unit();
    const uint32_t low = node.minimum(), high = node.maximum();
    if (inner == unit || intersection({inner, complement(unit)}) == ExprId::nothing) {
      return repetition(inner, std::max(low, minimum), std::min(high, maximum));
    }
  }
  return window_at(part, unit, unit, minimum, maximum);
}

ExprId ExpressionStore::window_at(ExprId part, ExprId unit, ExprId state, uint32_t minimum, uint32_t maximum) {
  if (part == ExprId::nothing || minimum > maximum) return ExprId::nothing;
  bool boundary = state == unit;
  if (boundary && minimum == 0 && maximum == unbounded) return part;
  Hash hash = mix(mix(mix(tagged(Kind::window), this->hash(part)), this->hash(unit)), this->hash(state));
  hash = mix(hash, paired(minimum, maximum));
  if (const uint32_t* found = nodes_.find(hash)) return ExprId{*found};
  if (!emptiness_.decide_window(*this, part, unit, state, minimum, maximum)) return ExprId::nothing;
  const Node& node = nodes_[part];
  return nodes_.intern({.hash = hash,
                        .arg = {index(unit), minimum, maximum, index(part), index(state)},
                        .kind = Kind::window,
                        .nullable = boundary && minimum == 0 && node.nullable,
                        .finite = node.finite});
}

ExprId ExpressionStore::derive_window(const Node& node, uint8_t byte) {
  const ExprId part = node.part(), unit = node.unit(), state = node.unit_state();
  uint32_t minimum = node.minimum(), maximum = node.maximum();
  ExprId next_part = derivative(part, byte);
  if (next_part == ExprId::nothing) return ExprId::nothing;
  ExprId next = derivative(state, byte);
  if (next == ExprId::nothing) return state == unit && minimum == 0 ? next_part : ExprId::nothing;
  if (state == unit) {  // a unit is counted when it begins
    if (maximum == 0) return ExprId::nothing;
    minimum = decreased(minimum);
    maximum = decreased(maximum);
  }
  return window_at(next_part, unit, nullable(next) ? unit : next, minimum, maximum);
}

ExprId ExpressionStore::derivative(ExprId e, uint8_t byte) {
  if (index(e) <= index(ExprId::anything)) return e == ExprId::anything ? e : ExprId::nothing;
  if (int16_t lead = nodes_[e].lead; lead >= 0 && lead != byte) return ExprId::nothing;
  uint64_t key = (uint64_t{index(e)} << 8) | byte;
  if (const uint32_t* found = derivatives_.find(key)) return ExprId{*found};
  if (nodes_.is_tall(e)) derive_tall_parts(e, byte);
  ExprId result = derive(e, byte);
  derivatives_.insert(key, index(result));
  return result;
}

ExprId ExpressionStore::derivative(ExprId e, std::string_view text) {
  for (char c : text) e = derivative(e, static_cast<uint8_t>(c));
  return e;
}

// The parts of an alternation or chain that may come first, each with what follows it.
std::vector<std::pair<ExprId, ExprId>> ExpressionStore::leading_parts(ExprId e) {
  std::vector<std::pair<ExprId, ExprId>> found;
  FlatMap<uint32_t, uint8_t> seen;  // many alternatives end alike
  const auto add_links = [&](ExprId link) {
    for (;; link = nodes_.rest_of(link)) {
      const bool last = nodes_[link].kind != Kind::concatenation;
      const ExprId head = last ? link : nodes_.head_of(link);
      if (seen.find(index(link))) return;
      found.emplace_back(head, last ? ExprId::epsilon : nodes_.rest_of(link));
      if (last || !nullable(head)) return;
      seen.insert(index(link), 1);
    }
  };
  if (nodes_[e].kind == Kind::concatenation) {
    add_links(e);
    work().spend(found.size() / (nodes_.size() < many_nodes ? links_per_step : links_per_slow_step));
    return found;
  }
  found.reserve(nodes_[e].part_count());
  for (ExprId part : parts(e)) {
    if (nodes_[part].kind == Kind::concatenation && nullable(nodes_.head_of(part))) {
      add_links(part);
    } else {
      found.emplace_back(part, ExprId::epsilon);
    }
  }
  work().spend(found.size() / (nodes_.size() < many_nodes ? links_per_step : links_per_slow_step));
  return found;
}

ExprId ExpressionStore::derive(ExprId e, uint8_t byte) {
  const Node node = nodes_[e];  // a copy, because making expressions moves the nodes
  work().spend(1);
  switch (node.kind) {
    case Kind::concatenation:
    case Kind::alternation: {
      const auto leading = leading_parts(e);
      std::vector<ExprId> next;
      for (const auto& [part, rest] : leading) {
        if (const ExprId d = derivative(part, byte); d != ExprId::nothing) next.push_back(concatenation(d, rest));
      }
      return next.size() == 1 ? next[0] : alternation(std::move(next));
    }
    case Kind::intersection: {
      std::vector<ExprId> next = nodes_.copy_of_parts(node);
      work().spend(next.size() / Work::parts_per_step);
      for (ExprId& part : next) {
        part = derivative(part, byte);
        if (part == ExprId::nothing) return part;
      }
      return intersection(std::move(next));
    }
    case Kind::complement:
      return complement(derivative(node.excluded(), byte));
    case Kind::repetition: {
      ExprId d = derivative(node.unit(), byte);
      if (d == ExprId::nothing) return d;
      return concatenation(d, repetition(node.unit(), decreased(node.minimum()), decreased(node.maximum())));
    }
    case Kind::window:
      return derive_window(node, byte);
    case Kind::substring:
      return derive_substring(node, byte);
    default:
      return nodes_.derive_leaf(node, byte);
  }
}

ExprId ExpressionStore::derive_substring(const Node& node, uint8_t byte) {
  const SuffixAutomaton& runs = nodes_.runs(node);
  const auto [low, high] = nodes_.transitions_by(node, byte);
  if (low == high) return ExprId::nothing;
  const auto in_chunks = [&](uint32_t from) { return nodes_.substring_at(node.automaton(), from, high, node.depth() + 1, node.least(), node.most()); };
  if (runs.chunk(low).size() > node.depth() + 1) return in_chunks(low);
  ExprId ended = ExprId::nothing;
  if (const uint32_t read = runs.characters(low); read <= node.most()) {
    ended = nodes_.substring_from(node.automaton(), runs.target(low), decreased(node.least(), read), decreased(node.most(), read));
  }
  return high - low == 1 ? ended : alternation({ended, in_chunks(low + 1)});  // other chunks of the range are longer
}

// The parts whose derivatives make up the derivative of `e`.
void ExpressionStore::derive_tall_parts(ExprId e, uint8_t byte) {
  work().spend(1);  // where nothing is left, not even the parts are looked at
  auto key = [byte](ExprId each) { return (uint64_t{index(each)} << 8) | byte; };
  auto known = [&](ExprId each) {
    const int16_t lead = nodes_[each].lead;
    return (lead >= 0 && lead != byte) || derivatives_.find(key(each));
  };
  auto parts_of = [this](ExprId each, auto&& f) {
    const Node& node = nodes_[each];
    if (node.kind == Kind::window) {
      f(node.part());
      f(node.unit_state());
    } else if (node.kind == Kind::concatenation || node.kind == Kind::alternation) {
      for (const auto& [part, rest] : leading_parts(each)) f(part);
    } else {
      nodes_.each_part(each, f);
    }
  };
  for (ExprId each : nodes_.tall_parts(e, known, parts_of)) {
    if (each == e || derivatives_.find(key(each))) continue;
    const ExprId result = derive(each, byte);
    derivatives_.insert(key(each), index(result));
  }
}

}  // namespace constrain
