// Inclusions in X* and in alternations, as far as structure shows them.
//
// Once a text contains a match of an unanchored pattern, the derivative of the pattern is X* besides its former parts.
// If X* is known to include them, such expressions stay small: settled conditions vanish instead of multiplying the
// states of other conditions.
#include "expressions/inclusion.h"

#include <algorithm>
#include <span>

#include "expressions/expressions.h"

namespace constrain {

namespace {

using Kind = ExpressionNodes::Kind;

constexpr size_t max_pairs = 64;  // pairs of derivatives of a unit and of X*
constexpr uint32_t max_nested_inclusions = 8;  // nested questions about units

// Whether every alternative of one expression is an alternative of the other, which is an alternation.
bool is_among(const ExpressionNodes& nodes, ExprId e, ExprId alternation) {
  auto before = [&nodes](ExprId a, ExprId b) { return nodes.hash(a) < nodes.hash(b); };
  const std::span<const ExprId> all = nodes.parts(nodes[alternation]);
  if (nodes.kind(e) != Kind::alternation) return std::binary_search(all.begin(), all.end(), e, before);
  const std::span<const ExprId> some = nodes.parts(nodes[e]);
  return some.size() <= all.size() && std::includes(all.begin(), all.end(), some.begin(), some.end(), before);
}

}  // namespace

// Whether every match of the expression certainly is one of `star`, which is X*. No for tall expressions.
bool Inclusions::within(ExpressionStore& store, ExprId e, ExprId star) {
  std::vector<uint64_t> chain;  // of concatenations: each is included if all heads after it, and the end, are
  bool result = true;
  for (;;) {
    if (e == star || e == ExprId::epsilon || e == ExprId::nothing) break;
    const uint64_t key = paired(e, star);
    if (const uint8_t* known = within_.find(key)) {
      result = *known != 0;
      break;
    }
    within_.insert(key, false);  // until it is known, because derivatives of X* may ask the same again
    chain.push_back(key);
    const ExpressionNodes::Node& node = store[e];
    if (node.kind != Kind::concatenation || node.finite) {
      result = is_part_within(store, e, star);
      break;
    }
    const ExprId rest = node.rest();
    result = within(store, node.head(), star);
    if (!result) break;
    e = rest;
  }
  for (uint64_t key : chain) within_.insert(key, result);
  return result;
}

// The same for an expression that is no chain of concatenations, or is finite.
bool Inclusions::is_part_within(ExpressionStore& store, ExprId e, ExprId star) {
  if (store.nodes().is_tall(e)) return false;
  const ExpressionNodes::Node node = store[e];
  auto inside = [&](ExprId each) { return within(store, each, star); };
  switch (node.kind) {
    case Kind::repetition:
      return inside(node.unit());
    case Kind::window:
      return inside(node.part());
    case Kind::intersection: {
      const std::vector<ExprId> parts = store.nodes().copy_of_parts(node);
      return std::any_of(parts.begin(), parts.end(), inside);
    }
    case Kind::alternation: {
      const std::vector<ExprId> parts = store.nodes().copy_of_parts(node);
      return node.finite ? units_within(store, e, star) : std::all_of(parts.begin(), parts.end(), inside);
    }
    case Kind::concatenation:
    case Kind::bytes:
    case Kind::literal:
      return units_within(store, e, star);
    default:
      return false;
  }
}

// The same for few and short texts, by following both. The derivatives of X* may lead to further nested questions;
// beyond a few of them the answer is no.
bool Inclusions::units_within(ExpressionStore& store, ExprId e, ExprId star) {
  if (inclusions_ == max_nested_inclusions) return false;
  struct Nested {
    uint32_t& count;
    explicit Nested(uint32_t& inclusions) : count(inclusions) { ++count; }
    ~Nested() { --count; }
  } nested(inclusions_);
  std::vector<std::pair<ExprId, ExprId>> pairs{{e, star}};
  for (size_t at = 0; at < pairs.size(); ++at) {
    const auto [own, other] = pairs[at];
    if (store.nullable(own) && !store.nullable(other)) return false;
    ByteSet possible = store.first(own);
    for (uint8_t byte : store.representatives({own, other})) {
      if (!possible.contains(byte)) continue;
      const std::pair<ExprId, ExprId> next{store.derivative(own, byte), store.derivative(other, byte)};
      if (next.first == ExprId::nothing) continue;
      if (next.second == ExprId::nothing) return false;
      if (std::find(pairs.begin(), pairs.end(), next) != pairs.end()) continue;
      if (pairs.size() == max_pairs) return false;
      pairs.push_back(next);
    }
  }
  return true;
}

// Removes alternatives that an alternative X* includes.
void Inclusions::absorb(ExpressionStore& store, std::vector<ExprId>& alternatives) {
  const auto star = std::find_if(alternatives.begin(), alternatives.end(), [&](ExprId e) { return store.nodes().is_star(e); });
  if (star == alternatives.end()) return;
  const ExprId taking = *star;
  std::erase_if(alternatives, [&](ExprId e) { return e != taking && within(store, e, taking); });
}

// Whether one part certainly excludes all that another one matches. The parts are sorted by their hashes.
bool Inclusions::excludes_itself(ExpressionStore& store, const std::vector<ExprId>& parts) {
  auto before = [&](ExprId a, ExprId b) { return store.hash(a) < store.hash(b); };
  for (ExprId part : parts) {
    const ExpressionNodes::Node& node = store[part];
    if (node.kind != Kind::complement) continue;
    const ExprId excluded = node.excluded();
    store.work().count_parts(parts.size() / 4);
    if (store[excluded].kind == Kind::alternation) {
      if (std::any_of(parts.begin(), parts.end(), [&](ExprId each) { return is_among(store.nodes(), each, excluded); })) return true;
    } else if (std::binary_search(parts.begin(), parts.end(), excluded, before)) {
      return true;
    }
    if (!store.nodes().is_star(excluded)) continue;
    if (std::any_of(parts.begin(), parts.end(), [&](ExprId each) { return each != part && within(store, each, excluded); })) return true;
  }
  return false;
}

}  // namespace constrain
