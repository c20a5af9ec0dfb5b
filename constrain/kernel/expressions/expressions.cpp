// Construction, normal forms and derivatives of expressions. emptiness.cpp decides emptiness.
#include "expressions/expressions.h"

#include <algorithm>
#include <utility>

#include "base/errors.h"

namespace constrain {

namespace {

using Kind = ExpressionStore::Kind;

constexpr uint32_t saturating_decrement(uint32_t count) { return count == unbounded || count == 0 ? count : count - 1; }

Hash tagged(Kind kind) { return seeded(static_cast<uint64_t>(kind)); }

}  // namespace

ExpressionStore::ExpressionStore() {
  intern({.hash = tagged(Kind::nothing), .kind = Kind::nothing, .finite = true});
  intern({.hash = tagged(Kind::epsilon), .kind = Kind::epsilon, .nullable = true, .finite = true});
  intern({.hash = tagged(Kind::anything), .kind = Kind::anything, .nullable = true, .infinite = true});
}

ExprId ExpressionStore::intern(Node node) {
  if (const uint32_t* found = interned_.find(node.hash)) return ExprId{*found};
  set_height(node);
  auto id = static_cast<uint32_t>(nodes_.size());
  interned_.insert(node.hash, id);
  nodes_.push_back(node);
  verdicts_.push_back(Verdict::unknown);
  onward_.push_back(-1);
  return ExprId{id};
}

std::span<const ExprId> ExpressionStore::parts(ExprId e) const {
  const Node& node = nodes_[index(e)];
  return {children_.data() + node.first_part(), node.part_count()};
}

ExprId ExpressionStore::bytes(const ByteSet& set) {
  if (set.empty()) return ExprId::nothing;
  Node node{.hash = set.hash(tagged(Kind::bytes)), .kind = Kind::bytes, .finite = true};
  if (const uint32_t* found = interned_.find(node.hash)) return ExprId{*found};
  node.arg[0] = static_cast<uint32_t>(byte_sets_.size());
  if (set.size() == 1) node.lead = set.first();
  byte_sets_.push_back(set);
  return intern(node);
}

ExprId ExpressionStore::literal(std::string_view text) {
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

ExprId ExpressionStore::literal_at(uint32_t offset, uint32_t length) {
  if (length == 0) return ExprId::epsilon;
  return intern({.hash = literal_hashes_[offset],
                 .arg = {offset, length},
                 .kind = Kind::literal,
                 .finite = true,
                 .lead = static_cast<uint8_t>(literals_[offset])});
}

ExprId ExpressionStore::concatenation(ExprId first, ExprId second) {
  if (first == ExprId::nothing || second == ExprId::nothing) return ExprId::nothing;
  if (first == ExprId::epsilon) return second;
  if (second == ExprId::epsilon) return first;
  const Node& a = nodes_[index(first)];
  if (a.kind == Kind::concatenation) {  // lean to the right, so that a derivative changes only the front
    std::vector<ExprId> heads;
    ExprId last = first;
    for (; nodes_[index(last)].kind == Kind::concatenation; last = rest_of(last)) {
      heads.push_back(head_of(last));
    }
    spend(heads.size() / 8 * 8);  // expressions that share parts may double in each level
    second = concatenation(last, second);
    for (size_t i = heads.size(); i-- > 0;) second = concatenation(heads[i], second);
    return second;
  }
  const Node& b = nodes_[index(second)];
  return intern({.hash = mix(mix(tagged(Kind::concatenation), a.hash), b.hash),
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
    const Node& node = nodes_[index(parts[i])];
    if (node.kind == Kind::nothing) continue;
    if (node.kind == Kind::anything) return ExprId::anything;
    if (node.kind == Kind::alternation) {
      parts.insert(parts.end(), children_.begin() + node.first_part(), children_.begin() + node.first_part() + node.part_count());
    } else if (node.kind == Kind::bytes) {
      single = single | byte_sets_[node.byte_set()];
      any_single = parts[i];
      ++singles;
    } else {
      flat.push_back(parts[i]);
    }
  }
  count_parts(flat.size());
  if (singles) flat.push_back(singles == 1 ? any_single : bytes(single));
  if (flat.empty()) return ExprId::nothing;
  if (flat.size() == 1) return flat[0];
  std::sort(flat.begin(), flat.end(), [this](ExprId a, ExprId b) { return hash(a) < hash(b); });
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  absorb(flat);
  const auto matches_empty = [this](ExprId part) { return part != ExprId::epsilon && nullable(part); };
  if (std::ranges::any_of(flat, matches_empty)) std::erase(flat, ExprId::epsilon);  // x | epsilon, with x nullable, is x
  if (flat.size() == 1) return flat[0];
  Node result{.hash = tagged(Kind::alternation), .kind = Kind::alternation, .finite = true};
  for (ExprId part : flat) {
    const Node& node = nodes_[index(part)];
    result.hash = mix(result.hash, node.hash);
    result.nullable |= node.nullable;
    result.finite &= node.finite;
    result.infinite |= node.infinite;
  }
  if (const uint32_t* found = interned_.find(result.hash)) return ExprId{*found};
  result.arg = {static_cast<uint32_t>(children_.size()), static_cast<uint32_t>(flat.size())};
  children_.insert(children_.end(), flat.begin(), flat.end());
  return intern(result);
}

ExprId ExpressionStore::intersection_undecided(std::vector<ExprId> parts) {
  std::vector<ExprId> flat;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Node& node = nodes_[index(parts[i])];
    if (node.kind == Kind::nothing) return ExprId::nothing;
    if (node.kind == Kind::anything) continue;
    if (node.kind == Kind::intersection) {
      parts.insert(parts.end(), children_.begin() + node.first_part(), children_.begin() + node.first_part() + node.part_count());
    } else {
      flat.push_back(parts[i]);
    }
  }
  if (flat.empty()) return ExprId::anything;
  count_parts(flat.size());
  std::sort(flat.begin(), flat.end(), [this](ExprId a, ExprId b) { return hash(a) < hash(b); });
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  if (flat.size() == 1) return flat[0];
  if (excludes_itself(flat)) return ExprId::nothing;
  Node result{.hash = tagged(Kind::intersection), .kind = Kind::intersection, .nullable = true};
  bool all_bytes = true, has_epsilon = false, all_infinite = true, all_finite_excluded = true;
  int positives = 0;
  for (ExprId part : flat) {
    const Node& node = nodes_[index(part)];
    if (node.lead >= 0) result.lead = node.lead;
    result.hash = mix(result.hash, node.hash);
    result.nullable &= node.nullable;
    result.finite |= node.finite;
    all_bytes &= node.kind == Kind::bytes;
    has_epsilon |= node.kind == Kind::epsilon;
    if (node.kind == Kind::complement) {
      all_finite_excluded &= nodes_[index(node.excluded())].finite;
    } else {
      ++positives;
      all_infinite &= node.infinite;
    }
  }
  if (has_epsilon) return result.nullable ? ExprId::epsilon : ExprId::nothing;
  if (all_bytes) {
    ByteSet set = ByteSet::all();
    for (ExprId part : flat) set = set & byte_sets_[nodes_[index(part)].byte_set()];
    return bytes(set);
  }
  result.infinite = positives <= 1 && all_infinite && all_finite_excluded;
  if (const uint32_t* found = interned_.find(result.hash)) return ExprId{*found};
  result.arg = {static_cast<uint32_t>(children_.size()), static_cast<uint32_t>(flat.size())};
  children_.insert(children_.end(), flat.begin(), flat.end());
  return intern(result);
}

ExprId ExpressionStore::intersection(std::vector<ExprId> parts) {
  ExprId e = intersection_undecided(std::move(parts));
  if (nodes_[index(e)].kind != Kind::intersection) return e;
  return decide_intersection(e) ? e : ExprId::nothing;
}

ExprId ExpressionStore::complement(ExprId part) {
  const Node& node = nodes_[index(part)];
  if (node.kind == Kind::complement) return node.excluded();
  if (node.kind == Kind::nothing) return ExprId::anything;
  if (node.kind == Kind::anything || (node.nullable && !node.finite && is_universal(part))) return ExprId::nothing;
  return intern_complement(part);
}

ExprId ExpressionStore::intern_complement(ExprId part) {
  const Node& node = nodes_[index(part)];
  return intern({.hash = mix(tagged(Kind::complement), node.hash),
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
  const Node& node = nodes_[index(part)];
  if (node.nullable) minimum = 0;
  if (node.kind == Kind::repetition && node.minimum() == 0 && node.maximum() == unbounded) return part;
  return intern({.hash = mix(mix(tagged(Kind::repetition), node.hash), paired(minimum, maximum)),
                 .arg = {index(part), minimum, maximum},
                 .kind = Kind::repetition,
                 .nullable = minimum == 0,
                 .finite = node.finite && maximum != unbounded,
                 .infinite = node.infinite || maximum == unbounded});
}

ExprId ExpressionStore::literal_set(std::vector<std::string> texts) {
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  if (texts.empty()) return ExprId::nothing;
  if (texts.size() == 1) return literal(texts[0]);
  Hash hash = tagged(Kind::literal_set);
  for (const std::string& text : texts) {
    hash = mix(hash, text.size());
    uint64_t word = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      word = (word << 8) | static_cast<uint8_t>(text[i]);
      if (i % 8 == 7) hash = mix(hash, word);
    }
    hash = mix(hash, word);
  }
  auto high = static_cast<uint32_t>(texts.size());
  for (const std::string& text : texts) literal_set_bytes_ += sizeof(text) + (text.size() > 15 ? text.size() : 0);
  literal_sets_.push_back({std::move(texts), hash});
  return literal_set_at(static_cast<uint32_t>(literal_sets_.size() - 1), 0, high, 0);
}

ExprId ExpressionStore::literal_set_at(uint32_t set, uint32_t low, uint32_t high, uint32_t depth) {
  if (low == high) return ExprId::nothing;
  const LiteralSet& literals = literal_sets_[set];
  if (high - low == 1) {
    // Copied, because literal() appends to the pool.
    return literal(std::string_view(literals.texts[low]).substr(depth));
  }
  Hash hash = mix(mix(literals.hash, paired(low, high)), depth);
  return intern({.hash = hash,
                 .arg = {set, low, high, depth},
                 .kind = Kind::literal_set,
                 .nullable = literals.texts[low].size() == depth,
                 .finite = true});
}

ExprId ExpressionStore::multiple(uint64_t divisor, uint32_t scale) {
  if (divisor == 0 || divisor >= MAX_DIVISOR.value) {
    throw LimitError("multipleOf needs a divisor below 2^59 (" + std::string(MAX_DIVISOR.name) + "), after removing the decimal point");
  }
  multiples_.push_back({divisor, scale});
  return multiple_at(static_cast<uint32_t>(multiples_.size() - 1), phase_start, 0);
}

ExprId ExpressionStore::multiple_at(uint32_t machine, uint32_t phase, uint64_t residue) {
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

ExprId ExpressionStore::derive_multiple(const Node& node, uint8_t byte) {
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

ExprId ExpressionStore::window(ExprId part, ExprId unit, uint32_t minimum, uint32_t maximum) {
  const Node& node = nodes_[index(part)];
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
  if (const uint32_t* found = interned_.find(hash)) return ExprId{*found};
  if (!decide_window(part, unit, state, minimum, maximum)) return ExprId::nothing;
  const Node& node = nodes_[index(part)];
  return intern({.hash = hash,
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
    minimum = saturating_decrement(minimum);
    maximum = saturating_decrement(maximum);
  }
  return window_at(next_part, unit, nullable(next) ? unit : next, minimum, maximum);
}

ExprId ExpressionStore::derivative(ExprId e, uint8_t byte) {
  if (index(e) <= index(ExprId::anything)) return e == ExprId::anything ? e : ExprId::nothing;
  if (int16_t lead = nodes_[index(e)].lead; lead >= 0 && lead != byte) return ExprId::nothing;
  uint64_t key = (uint64_t{index(e)} << 8) | byte;
  if (const uint32_t* found = derivatives_.find(key)) return ExprId{*found};
  if (is_tall(e)) derive_tall_parts(e, byte);
  ExprId result = derive(e, byte);
  derivatives_.insert(key, index(result));
  return result;
}

ExprId ExpressionStore::derivative(ExprId e, std::string_view text) {
  for (char c : text) e = derivative(e, static_cast<uint8_t>(c));
  return e;
}

void ExpressionStore::allow(size_t work, const NamedLimit* limit) {
  allowance_ = spent_ + work;
  search_end_ = spent_ + work / 2;
  limit_ = limit;
  allow_searches(max_states_, max_sets_);
}

void ExpressionStore::notice() {
  notice_at_ = spent_ + steps_between_looks;
  if (notice_) std::exchange(notice_, nullptr)(notice_argument_);
  if (stop_time) stop_time->check();
}

void ExpressionStore::overspent() const {
  const std::string name = limit_ ? limit_->with_unit() : "the rest of an Allowance";
  throw LimitError("the expressions take too much work (" + name + "); simplify the pattern or its bounds", limit_ ? limit_->met : Limit::compile_work);
}

// The parts of an alternation or chain that may come first, each with what follows it.
std::vector<std::pair<ExprId, ExprId>> ExpressionStore::leading_parts(ExprId e) {
  std::vector<std::pair<ExprId, ExprId>> found;
  FlatMap<uint32_t, uint8_t> seen;  // many alternatives end alike
  const auto add_links = [&](ExprId link) {
    for (;; link = rest_of(link)) {
      const bool last = nodes_[index(link)].kind != Kind::concatenation;
      const ExprId head = last ? link : head_of(link);
      if (seen.find(index(link))) return;
      found.emplace_back(head, last ? ExprId::epsilon : rest_of(link));
      if (last || !nullable(head)) return;
      seen.insert(index(link), 1);
    }
  };
  if (nodes_[index(e)].kind == Kind::concatenation) {
    add_links(e);
    spend(found.size() / links_per_step);
    return found;
  }
  found.reserve(nodes_[index(e)].part_count());
  for (ExprId part : parts(e)) {
    if (nodes_[index(part)].kind == Kind::concatenation && nullable(head_of(part))) {
      add_links(part);
    } else {
      found.emplace_back(part, ExprId::epsilon);
    }
  }
  spend(found.size() / links_per_step);
  return found;
}

ExprId ExpressionStore::derive(ExprId e, uint8_t byte) {
  const Node node = nodes_[index(e)];  // a copy, because making expressions moves the nodes
  spend(1);
  switch (node.kind) {
    case Kind::nothing:
    case Kind::epsilon:
      return ExprId::nothing;
    case Kind::anything:
      return e;
    case Kind::bytes:
      return byte_sets_[node.byte_set()].contains(byte) ? ExprId::epsilon : ExprId::nothing;
    case Kind::literal:
      if (static_cast<uint8_t>(literals_[node.offset()]) != byte) return ExprId::nothing;
      return literal_at(node.offset() + 1, node.length() - 1);
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
      std::vector<ExprId> next;
      spend(node.part_count() / parts_per_step);
      next.reserve(node.part_count());
      for (uint32_t i = 0; i < node.part_count(); ++i) {
        const ExprId d = derivative(children_[node.first_part() + i], byte);
        if (d == ExprId::nothing) return d;
        next.push_back(d);
      }
      return intersection(std::move(next));
    }
    case Kind::complement:
      return complement(derivative(node.excluded(), byte));
    case Kind::repetition: {
      ExprId d = derivative(node.unit(), byte);
      if (d == ExprId::nothing) return d;
      return concatenation(d, repetition(node.unit(), saturating_decrement(node.minimum()), saturating_decrement(node.maximum())));
    }
    case Kind::literal_set: {
      const std::vector<std::string>& texts = literal_sets_[node.literal_set()].texts;
      const uint32_t depth = node.depth();
      auto at_depth = [depth](const std::string& text) {
        return text.size() > depth ? static_cast<int>(static_cast<uint8_t>(text[depth])) : -1;
      };
      auto low = std::partition_point(texts.begin() + node.low(), texts.begin() + node.high(),
                                      [&](const std::string& text) { return at_depth(text) < byte; });
      auto high = std::partition_point(low, texts.begin() + node.high(),
                                       [&](const std::string& text) { return at_depth(text) <= byte; });
      return literal_set_at(node.literal_set(), static_cast<uint32_t>(low - texts.begin()),
                            static_cast<uint32_t>(high - texts.begin()), depth + 1);
    }
    case Kind::multiple:
      return derive_multiple(node, byte);
    case Kind::window:
      return derive_window(node, byte);
    case Kind::substring:
      return derive_substring(node, byte);
  }
  return ExprId::nothing;
}

size_t ExpressionStore::memory_bytes() const {
  size_t total = nodes_.size() * (sizeof(Node) + 3) + children_.size() * 4 + byte_sets_.size() * sizeof(ByteSet);
  total += alphabets_.bytes() + firsts_.bytes() + collected_.size() * sizeof(uint32_t) + literals_.size() * (1 + sizeof(Hash)) + interned_.bytes() + derivatives_.bytes() + unit_ids_.bytes();
  for (const std::shared_ptr<const SuffixAutomaton>& each : substrings_) total += each->memory_bytes();
  return total + literal_set_bytes_;
}

}  // namespace constrain
