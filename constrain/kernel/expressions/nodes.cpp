// Interns nodes; leaves, their rests, and the height of nodes with parts.
#include "expressions/nodes.h"

#include <limits>

#include "base/errors.h"

namespace constrain {

ExpressionNodes::ExpressionNodes() {
  intern({.hash = tagged(Kind::nothing), .kind = Kind::nothing, .finite = true});
  intern({.hash = tagged(Kind::epsilon), .kind = Kind::epsilon, .nullable = true, .finite = true});
  intern({.hash = tagged(Kind::anything), .kind = Kind::anything, .nullable = true, .infinite = true});
}

ExprId ExpressionNodes::intern(Node node) {
  if (const uint32_t* found = interned_.find(node.hash)) return ExprId{*found};
  set_height(node);
  auto id = static_cast<uint32_t>(nodes_.size());
  interned_.insert(node.hash, id);
  nodes_.push_back(node);
  return ExprId{id};
}

ExprId ExpressionNodes::intern(Node node, std::span<const ExprId> parts) {
  if (const uint32_t* found = interned_.find(node.hash)) return ExprId{*found};
  node.arg = {static_cast<uint32_t>(children_.size()), static_cast<uint32_t>(parts.size())};
  children_.insert(children_.end(), parts.begin(), parts.end());
  return intern(node);
}

bool ExpressionNodes::is_star(ExprId e) const {
  const Node& node = nodes_[index(e)];
  return node.kind == Kind::repetition && node.minimum() == 0 && node.maximum() == unbounded && nodes_[index(node.unit())].finite;
}

void ExpressionNodes::set_height(Node& node) const {
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

ExprId ExpressionNodes::bytes(const ByteSet& set) {
  if (set.empty()) return ExprId::nothing;
  Node node{.hash = set.hash(tagged(Kind::bytes)), .kind = Kind::bytes, .finite = true};
  if (const uint32_t* found = interned_.find(node.hash)) return ExprId{*found};
  node.arg[0] = static_cast<uint32_t>(byte_sets_.size());
  if (set.size() == 1) node.lead = set.first();
  byte_sets_.push_back(set);
  return intern(node);
}

ExprId ExpressionNodes::literal(std::string_view text) {
  if (text.empty()) return ExprId::epsilon;
  auto offset = static_cast<uint32_t>(literals_.size());
  literals_.append(text);
  literal_hashes_.resize(literals_.size());
  Hash hash = tagged(Kind::literal);
  for (size_t i = text.size(); i-- > 0;) {
    hash = mix(hash, static_cast<uint8_t>(text[i]));
    literal_hashes_[offset + i] = hash;
  }
  return literal_at(offset, static_cast<uint32_t>(text.size()));
}

ExprId ExpressionNodes::literal_at(uint32_t offset, uint32_t length) {
  if (length == 0) return ExprId::epsilon;
  return intern({.hash = literal_hashes_[offset],
                 .arg = {offset, length},
                 .kind = Kind::literal,
                 .finite = true,
                 .lead = static_cast<uint8_t>(literals_[offset])});
}

ExprId ExpressionNodes::literal_set(std::shared_ptr<const SortedTexts> texts) {
  const auto number = static_cast<uint32_t>(literal_sets_.size());
  literal_sets_.push_back(std::move(texts));
  const SortedTexts& all = *literal_sets_.back();
  const ExprId set = literal_set_at(number, 0, all.size(), 0);
  const Node& node = nodes_[index(set)];
  const bool is_new = node.kind == Kind::literal_set && node.literal_set() == number;
  if (is_new && literal_sets_.back().use_count() == 1) literal_set_bytes_ += all.memory_bytes();
  if (!is_new) literal_sets_.pop_back();
  return set;
}

ExprId ExpressionNodes::literal_set_at(uint32_t set, uint32_t low, uint32_t high, uint32_t depth) {
  if (low == high) return ExprId::nothing;
  const SortedTexts& texts = *literal_sets_[set];
  const std::string_view first = texts[low].substr(depth), last = texts[high - 1].substr(depth);
  if (high - low == 1) return literal(first);
  return intern({.hash = mix(mix(texts.hash(), paired(low, high)), depth),
                 .arg = {set, low, high, depth},
                 .kind = Kind::literal_set,
                 .nullable = first.empty(),
                 .finite = true,
                 .lead = !first.empty() && first[0] == last[0] ? int16_t{static_cast<uint8_t>(first[0])} : int16_t{-1}});
}

ExprId ExpressionNodes::multiple(uint64_t divisor, uint32_t scale) {
  if (divisor == 0 || divisor >= MAX_DIVISOR.value) {
    throw LimitError("multipleOf needs a divisor below 2^59 (" + std::string(MAX_DIVISOR.name) + "), after removing the decimal point");
  }
  multiples_.push_back({divisor, scale});
  return multiple_at(static_cast<uint32_t>(multiples_.size() - 1), phase_start, 0);
}

ExprId ExpressionNodes::multiple_at(uint32_t machine, uint32_t phase, uint64_t residue) {
  const Multiple& m = multiples_[machine];
  bool nullable = false;
  if (phase >= phase_integer) {  // residue * 10^(scale - fraction digits), modulo the divisor
    uint64_t r = residue;
    uint32_t digits = phase == phase_integer ? 0 : phase - phase_fraction;
    for (uint32_t i = digits; i < m.scale && r != 0; ++i) r = r * 10 % m.divisor;
    nullable = r == 0 && (phase != phase_fraction);
  }
  if (phase >= phase_fraction) {  // whether the remaining fraction digits can make a multiple
    uint64_t shifted = residue, power = 1;
    uint32_t digits = std::min(phase - phase_fraction, m.scale);
    for (uint32_t i = digits; i < m.scale; ++i) {
      shifted = shifted * 10 % m.divisor;
      power = power >= m.divisor ? power : power * 10;
    }
    if ((m.divisor - shifted) % m.divisor >= power) return ExprId::nothing;
  }
  Hash hash = mix(mix(mix(tagged(Kind::multiple), m.divisor), m.scale), mix({phase, 1}, residue));
  return intern({.hash = hash,
                 .arg = {machine, phase, static_cast<uint32_t>(residue), static_cast<uint32_t>(residue >> 32)},
                 .kind = Kind::multiple,
                 .nullable = nullable,
                 .infinite = true});
}

ExprId ExpressionNodes::derive_multiple(const Node& node, uint8_t byte) {
  const Multiple& m = multiples_[node.machine()];
  uint32_t phase = node.phase();
  const uint64_t residue = node.residue();
  if (byte == '-') return phase == phase_start ? multiple_at(node.machine(), phase_sign, 0) : ExprId::nothing;
  if (byte == '.') return phase == phase_integer ? multiple_at(node.machine(), phase_fraction, residue) : ExprId::nothing;
  if (byte < '0' || byte > '9') return ExprId::nothing;
  if (phase < phase_integer) phase = phase_integer;
  if (phase >= phase_fraction) {
    if (phase - phase_fraction >= m.scale) {  // past the last digit that counts: only zeros, if it is a multiple
      bool fits = byte == '0' && residue == 0;
      return fits ? multiple_at(node.machine(), phase_fraction + m.scale + 1, 0) : ExprId::nothing;
    }
    ++phase;
  }
  return multiple_at(node.machine(), phase, (residue * 10 + (byte - '0')) % m.divisor);
}

ExprId ExpressionNodes::derive_literal_set(const Node& node, uint8_t byte) {
  const SortedTexts& texts = this->texts(node);
  const uint32_t low = texts.find(node.low(), node.high(), node.depth(), byte);
  return literal_set_at(node.literal_set(), low, texts.find(low, node.high(), node.depth(), byte + 1u), node.depth() + 1);
}

ExprId ExpressionNodes::derive_leaf(const Node& leaf, uint8_t byte) {
  switch (leaf.kind) {
    case Kind::bytes:
      return byte_sets_[leaf.byte_set()].contains(byte) ? ExprId::epsilon : ExprId::nothing;
    case Kind::literal:
      if (static_cast<uint8_t>(literals_[leaf.offset()]) != byte) return ExprId::nothing;
      return literal_at(leaf.offset() + 1, leaf.length() - 1);
    case Kind::literal_set:
      return derive_literal_set(leaf, byte);
    case Kind::multiple:
      return derive_multiple(leaf, byte);
    default:  // anything matches what follows, and nothing and the empty text have no rest
      return leaf.kind == Kind::anything ? ExprId::anything : ExprId::nothing;
  }
}

size_t ExpressionNodes::memory_bytes() const {
  size_t total = nodes_.size() * sizeof(Node) + children_.size() * 4 + byte_sets_.size() * sizeof(ByteSet) + literals_.size() * (1 + sizeof(Hash));
  for (const std::shared_ptr<const SuffixAutomaton>& each : substrings_) total += each->memory_bytes();
  return total + interned_.bytes() + literal_set_bytes_;
}

}  // namespace constrain
