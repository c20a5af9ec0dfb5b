// Construction, normal forms and derivatives of expressions. Deciding emptiness: emptiness.cpp.
#include "expressions.h"

#include <algorithm>

#include "errors.h"

namespace constrain {

namespace {

using Kind = ExpressionStore::Kind;

constexpr uint32_t saturating_decrement(uint32_t count) { return count == unbounded || count == 0 ? count : count - 1; }

Hash tagged(Kind kind) { return seeded(static_cast<uint64_t>(kind)); }

constexpr uint32_t phase_start = 0;  // of a multiple: nothing read, '-' read, integer digits, then 3 + fraction digits
constexpr uint32_t phase_sign = 1;
constexpr uint32_t phase_integer = 2;
constexpr uint32_t phase_fraction = 3;

}  // namespace

ExpressionStore::ExpressionStore() {
  intern({.hash = tagged(Kind::nothing), .kind = Kind::nothing, .finite = true});
  intern({.hash = tagged(Kind::epsilon), .kind = Kind::epsilon, .nullable = true, .finite = true});
  intern({.hash = tagged(Kind::anything), .kind = Kind::anything, .nullable = true, .infinite = true});
}

ExprId ExpressionStore::intern(Node node) {
  if (const uint32_t* found = interned_.find(node.hash)) return ExprId{*found};
  auto id = static_cast<uint32_t>(nodes_.size());
  interned_.insert(node.hash, id);
  nodes_.push_back(node);
  verdicts_.push_back(Verdict::unknown);
  return ExprId{id};
}

std::span<const ExprId> ExpressionStore::parts(ExprId e) const {
  const Node& node = nodes_[index(e)];
  return {children_.data() + node.arg[0], node.arg[1]};
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
  if (a.kind == Kind::concatenation) {  // lean to the right, so that a derivative touches the front only
    std::vector<ExprId> heads;
    ExprId last = first;
    for (; nodes_[index(last)].kind == Kind::concatenation; last = ExprId{nodes_[index(last)].arg[1]}) {
      heads.push_back(ExprId{nodes_[index(last)].arg[0]});
    }
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
      parts.insert(parts.end(), children_.begin() + node.arg[0], children_.begin() + node.arg[0] + node.arg[1]);
    } else if (node.kind == Kind::bytes) {
      single = single | byte_sets_[node.arg[0]];
      any_single = parts[i];
      ++singles;
    } else {
      flat.push_back(parts[i]);
    }
  }
  if (singles) flat.push_back(singles == 1 ? any_single : bytes(single));
  if (flat.empty()) return ExprId::nothing;
  if (flat.size() == 1) return flat[0];
  std::sort(flat.begin(), flat.end(), [this](ExprId a, ExprId b) { return hash(a) < hash(b); });
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  if (flat.size() == 1) return flat[0];
  Node result{.hash = tagged(Kind::alternation), .kind = Kind::alternation, .finite = true};
  bool only_epsilon_added = true;
  for (ExprId part : flat) {
    const Node& node = nodes_[index(part)];
    result.hash = mix(result.hash, node.hash);
    result.nullable |= node.nullable;
    result.finite &= node.finite;
    result.infinite |= node.infinite;
    only_epsilon_added &= node.kind == Kind::epsilon || node.nullable;
  }
  if (flat.size() == 2 && only_epsilon_added) {  // x | epsilon, with x nullable, is x
    if (flat[0] == ExprId::epsilon) return flat[1];
    if (flat[1] == ExprId::epsilon) return flat[0];
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
      parts.insert(parts.end(), children_.begin() + node.arg[0], children_.begin() + node.arg[0] + node.arg[1]);
    } else {
      flat.push_back(parts[i]);
    }
  }
  if (flat.empty()) return ExprId::anything;
  std::sort(flat.begin(), flat.end(), [this](ExprId a, ExprId b) { return hash(a) < hash(b); });
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  if (flat.size() == 1) return flat[0];
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
      all_finite_excluded &= nodes_[node.arg[0]].finite;
    } else {
      ++positives;
      all_infinite &= node.infinite;
    }
  }
  if (has_epsilon) return result.nullable ? ExprId::epsilon : ExprId::nothing;
  if (all_bytes) {
    ByteSet set = ByteSet::all();
    for (ExprId part : flat) set = set & byte_sets_[nodes_[index(part)].arg[0]];
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
  if (node.kind == Kind::complement) return ExprId{node.arg[0]};
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
  if (node.kind == Kind::repetition && node.arg[1] == 0 && node.arg[2] == unbounded) return part;
  return intern({.hash = mix(mix(tagged(Kind::repetition), node.hash), (uint64_t{minimum} << 32) | maximum),
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
    // copied out: literal() appends to the pool
    return literal(std::string_view(literals.texts[low]).substr(depth));
  }
  Hash hash = mix(mix(literals.hash, (uint64_t{low} << 32) | high), depth);
  return intern({.hash = hash,
                 .arg = {set, low, high, depth},
                 .kind = Kind::literal_set,
                 .nullable = literals.texts[low].size() == depth,
                 .finite = true});
}

ExprId ExpressionStore::multiple(uint64_t divisor, uint32_t scale) {
  if (divisor == 0 || divisor >= (uint64_t{1} << 59)) {
    throw LimitError("multipleOf needs a divisor below 2^59 (MAX_DIVISOR), after removing the decimal point");
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
  if (phase >= phase_fraction) {  // can the fraction digits that are left make a multiple?
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
  const Multiple& m = multiples_[node.arg[0]];
  uint32_t phase = node.arg[1];
  uint64_t residue = node.arg[2] | (uint64_t{node.arg[3]} << 32);
  if (byte == '-') return phase == phase_start ? multiple_at(node.arg[0], phase_sign, 0) : ExprId::nothing;
  if (byte == '.') return phase == phase_integer ? multiple_at(node.arg[0], phase_fraction, residue) : ExprId::nothing;
  if (byte < '0' || byte > '9') return ExprId::nothing;
  if (phase < phase_integer) phase = phase_integer;
  if (phase >= phase_fraction) {
    if (phase - phase_fraction >= m.scale) {  // past the last digit that may count: only zeros, and only if it fits
      bool fits = byte == '0' && residue == 0;
      return fits ? multiple_at(node.arg[0], phase_fraction + m.scale + 1, 0) : ExprId::nothing;
    }
    ++phase;
  }
  return multiple_at(node.arg[0], phase, (residue * 10 + (byte - '0')) % m.divisor);
}

ExprId ExpressionStore::window(ExprId part, ExprId unit, uint32_t minimum, uint32_t maximum) {
  const Node& node = nodes_[index(part)];
  // one unit repeated needs no window: X{a,b} made of m..n X is X{max(a,m),min(b,n)}
  if (node.kind == Kind::repetition) {
    ExprId inner{node.arg[0]};
    uint32_t low = node.arg[1], high = node.arg[2];
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
  hash = mix(hash, (uint64_t{minimum} << 32) | maximum);
  if (const uint32_t* found = interned_.find(hash)) return ExprId{*found};
  if (!decide_window(part, unit, state, minimum, maximum)) return ExprId::nothing;
  const Node& node = nodes_[index(part)];
  return intern({.hash = hash,
                 .arg = {index(part), index(unit), index(state), minimum, maximum},
                 .kind = Kind::window,
                 .nullable = boundary && minimum == 0 && node.nullable,
                 .finite = node.finite});
}

ExprId ExpressionStore::derive_window(const Node& node, uint8_t byte) {
  ExprId part{node.arg[0]}, unit{node.arg[1]}, state{node.arg[2]};
  uint32_t minimum = node.arg[3], maximum = node.arg[4];
  ExprId next_part = derivative(part, byte);
  if (next_part == ExprId::nothing) return ExprId::nothing;
  ExprId next = derivative(state, byte);
  if (next == ExprId::nothing) return state == unit && minimum == 0 ? next_part : ExprId::nothing;
  if (state == unit) {  // a unit begins: it is counted now
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
  ExprId result = derive(e, byte);
  derivatives_.insert(key, index(result));
  return result;
}

ExprId ExpressionStore::derivative(ExprId e, std::string_view text) {
  for (char c : text) e = derivative(e, static_cast<uint8_t>(c));
  return e;
}

void ExpressionStore::allow(size_t work, const char* limit_name) {
  allowance_ = spent_ + work;
  limit_name_ = limit_name;
}

void ExpressionStore::overspent() const {
  throw LimitError(std::string("the expressions take too much work (") + limit_name_ + "); simplify the pattern or its bounds");
}

ExprId ExpressionStore::derive(ExprId e, uint8_t byte) {
  const Node node = nodes_[index(e)];  // a copy: making expressions moves the nodes
  spend(1);
  switch (node.kind) {
    case Kind::nothing:
    case Kind::epsilon:
      return ExprId::nothing;
    case Kind::anything:
      return e;
    case Kind::bytes:
      return byte_sets_[node.arg[0]].contains(byte) ? ExprId::epsilon : ExprId::nothing;
    case Kind::literal:
      if (static_cast<uint8_t>(literals_[node.arg[0]]) != byte) return ExprId::nothing;
      return literal_at(node.arg[0] + 1, node.arg[1] - 1);
    case Kind::concatenation: {
      std::vector<ExprId> next;  // one for each part that may come first, since those before it are nullable
      for (ExprId rest = e; rest != ExprId::epsilon;) {
        const Node at = nodes_[index(rest)];
        bool last = at.kind != Kind::concatenation;
        ExprId head = last ? rest : ExprId{at.arg[0]};
        rest = last ? ExprId::epsilon : ExprId{at.arg[1]};
        next.push_back(concatenation(derivative(head, byte), rest));
        spend(1);
        if (!nullable(head)) break;
      }
      return next.size() == 1 ? next[0] : alternation(std::move(next));
    }
    case Kind::alternation:
    case Kind::intersection: {
      std::vector<ExprId> next;
      spend(node.arg[1] / 8);
      next.reserve(node.arg[1]);
      for (uint32_t i = 0; i < node.arg[1]; ++i) {
        ExprId d = derivative(children_[node.arg[0] + i], byte);
        if (d != ExprId::nothing) {
          next.push_back(d);
        } else if (node.kind == Kind::intersection) {
          return ExprId::nothing;
        }
      }
      return node.kind == Kind::alternation ? alternation(std::move(next)) : intersection(std::move(next));
    }
    case Kind::complement:
      return complement(derivative(ExprId{node.arg[0]}, byte));
    case Kind::repetition: {
      ExprId d = derivative(ExprId{node.arg[0]}, byte);
      if (d == ExprId::nothing) return d;
      uint32_t minimum = saturating_decrement(node.arg[1]);
      return concatenation(d, repetition(ExprId{node.arg[0]}, minimum, saturating_decrement(node.arg[2])));
    }
    case Kind::literal_set: {
      const std::vector<std::string>& texts = literal_sets_[node.arg[0]].texts;
      uint32_t depth = node.arg[3];
      auto at_depth = [depth](const std::string& text) {
        return text.size() > depth ? static_cast<int>(static_cast<uint8_t>(text[depth])) : -1;
      };
      auto low = std::partition_point(texts.begin() + node.arg[1], texts.begin() + node.arg[2],
                                      [&](const std::string& text) { return at_depth(text) < byte; });
      auto high = std::partition_point(low, texts.begin() + node.arg[2],
                                       [&](const std::string& text) { return at_depth(text) <= byte; });
      return literal_set_at(node.arg[0], static_cast<uint32_t>(low - texts.begin()),
                            static_cast<uint32_t>(high - texts.begin()), depth + 1);
    }
    case Kind::multiple:
      return derive_multiple(node, byte);
    case Kind::window:
      return derive_window(node, byte);
  }
  return ExprId::nothing;
}

ByteSet ExpressionStore::first(ExprId e) {
  ByteSet before;  // what nullable parts in front may begin with
  while (nodes_[index(e)].kind == Kind::concatenation) {
    const Node& node = nodes_[index(e)];
    before = before | first(ExprId{node.arg[0]});
    if (!nullable(ExprId{node.arg[0]})) return before;
    e = ExprId{node.arg[1]};
  }
  return before | first_of(e);
}

ByteSet ExpressionStore::first_of(ExprId e) {
  const Node& node = nodes_[index(e)];
  switch (node.kind) {
    case Kind::nothing:
    case Kind::epsilon:
      return {};
    case Kind::anything:
    case Kind::complement:
      return ByteSet::all();
    case Kind::bytes:
      return byte_sets_[node.arg[0]];
    case Kind::literal: {
      ByteSet set;
      set.add(static_cast<uint8_t>(literals_[node.arg[0]]));
      return set;
    }
    case Kind::concatenation:
      return first(e);
    case Kind::alternation: {
      ByteSet set;
      for (ExprId part : parts(e)) set = set | first(part);
      return set;
    }
    case Kind::intersection: {
      ByteSet set = ByteSet::all();
      for (ExprId part : parts(e)) set = set & first(part);
      return set;
    }
    case Kind::repetition:
    case Kind::window:
      return first(ExprId{node.arg[0]});
    case Kind::literal_set: {
      ByteSet set;
      const std::vector<std::string>& texts = literal_sets_[node.arg[0]].texts;
      for (uint32_t i = node.arg[1]; i < node.arg[2]; ++i) {
        if (texts[i].size() > node.arg[3]) set.add(static_cast<uint8_t>(texts[i][node.arg[3]]));
      }
      return set;
    }
    case Kind::multiple: {
      ByteSet set = ByteSet::range('0', '9');
      set.add('-');
      set.add('.');
      return set;
    }
  }
  return {};
}

ByteSet ExpressionStore::alphabet(ExprId e) {
  if (const ByteSet* found = alphabets_.find(index(e))) return *found;
  const Node node = nodes_[index(e)];
  ByteSet set;
  switch (node.kind) {
    case Kind::nothing:
    case Kind::epsilon:
      break;
    case Kind::anything:
    case Kind::complement:
      set = ByteSet::all();
      break;
    case Kind::bytes:
    case Kind::multiple:
      set = first(e);
      break;
    case Kind::literal:
      for (uint32_t i = 0; i < node.arg[1]; ++i) set.add(static_cast<uint8_t>(literals_[node.arg[0] + i]));
      break;
    case Kind::concatenation:
      for (ExprId rest = e;; rest = ExprId{nodes_[index(rest)].arg[1]}) {
        bool last = nodes_[index(rest)].kind != Kind::concatenation;
        set = set | alphabet(last ? rest : ExprId{nodes_[index(rest)].arg[0]});
        if (last) break;
      }
      break;
    case Kind::alternation:
      for (uint32_t i = 0; i < node.arg[1]; ++i) set = set | alphabet(children_[node.arg[0] + i]);
      break;
    case Kind::intersection:
      set = ByteSet::all();
      for (uint32_t i = 0; i < node.arg[1]; ++i) set = set & alphabet(children_[node.arg[0] + i]);
      break;
    case Kind::repetition:
    case Kind::window:
      set = alphabet(ExprId{node.arg[0]});
      break;
    case Kind::literal_set:
      for (uint32_t i = node.arg[1]; i < node.arg[2]; ++i) {
        for (char c : literal_sets_[node.arg[0]].texts[i].substr(node.arg[3])) set.add(static_cast<uint8_t>(c));
      }
      break;
  }
  alphabets_.insert(index(e), set);
  return set;
}

void ExpressionStore::collect_byte_sets(ExprId e, std::vector<ByteSet>& out) {
  const Node& node = nodes_[index(e)];
  switch (node.kind) {
    case Kind::nothing:
    case Kind::epsilon:
    case Kind::anything:
      return;
    case Kind::bytes:
    case Kind::literal:
      out.push_back(first(e));
      return;
    case Kind::concatenation:
      for (ExprId rest = e;; rest = ExprId{nodes_[index(rest)].arg[1]}) {
        bool last = nodes_[index(rest)].kind != Kind::concatenation;
        ExprId head = last ? rest : ExprId{nodes_[index(rest)].arg[0]};
        collect_byte_sets(head, out);
        if (last || !nullable(head)) return;
      }
    case Kind::alternation:
    case Kind::intersection:
      for (uint32_t i = 0; i < node.arg[1]; ++i) collect_byte_sets(children_[node.arg[0] + i], out);
      return;
    case Kind::complement:
    case Kind::repetition:
      collect_byte_sets(ExprId{node.arg[0]}, out);
      return;
    case Kind::window:
      collect_byte_sets(ExprId{node.arg[0]}, out);
      collect_byte_sets(ExprId{node.arg[2]}, out);
      return;
    case Kind::literal_set:
    case Kind::multiple:
      first(e).each([&out](uint8_t b) { out.push_back(ByteSet::range(b, b)); });
      return;
  }
}

std::vector<uint8_t> ExpressionStore::representatives(std::span<const ExprId> expressions) {
  std::vector<ByteSet> sets;
  for (ExprId e : expressions) collect_byte_sets(e, sets);
  std::array<uint64_t, 256> signature{};
  for (size_t i = 0; i < sets.size(); ++i) {
    sets[i].each([&](uint8_t b) { signature[b] = scramble(signature[b] + i + 1); });
  }
  // letters and digits first: witnesses made of representatives should be readable
  static const std::array<uint8_t, 256> order = [] {
    std::array<uint8_t, 256> bytes{};
    size_t n = 0;
    for (auto [low, high] : std::initializer_list<std::pair<unsigned, unsigned>>{
             {'a', 'z'}, {'0', '9'}, {'A', 'Z'}, {0, '0' - 1}, {'9' + 1, 'A' - 1}, {'Z' + 1, 'a' - 1}, {'z' + 1, 255}}) {
      for (unsigned b = low; b <= high; ++b) bytes[n++] = static_cast<uint8_t>(b);
    }
    return bytes;
  }();
  std::vector<uint8_t> result;
  std::vector<uint64_t> known;
  for (uint8_t b : order) {
    if (std::find(known.begin(), known.end(), signature[b]) != known.end()) continue;
    known.push_back(signature[b]);
    result.push_back(b);
  }
  return result;
}

size_t ExpressionStore::memory_bytes() const {
  size_t total = nodes_.size() * (sizeof(Node) + 1) + children_.size() * 4 + byte_sets_.size() * sizeof(ByteSet);
  total += alphabets_.bytes() + literals_.size() * (1 + sizeof(Hash)) + interned_.bytes() + derivatives_.bytes() + unit_ids_.bytes();
  return total + literal_set_bytes_;
}

// Code points to UTF-8 ------------------------------------------------------------------------------------------

namespace {

std::vector<CodePointRange> clip(std::span<const CodePointRange> ranges, uint32_t low, uint32_t high) {
  std::vector<CodePointRange> result;
  for (auto [a, b] : ranges) {
    a = std::max(a, low);
    b = std::min(b, high);
    if (a <= b) result.emplace_back(a, b);
  }
  return result;
}

}  // namespace

// The encodings of `ranges`, all with the same number of continuation bytes, as an expression that branches on the
// lead byte once: lead bytes with equal tails share a branch. `lead` is the marker of the lead byte.
ExprId ExpressionStore::utf8(const std::vector<CodePointRange>& ranges, unsigned continuation_bytes, uint32_t lead) {
  if (ranges.empty()) return ExprId::nothing;
  if (continuation_bytes == 0) {
    ByteSet set;
    for (auto [a, b] : ranges) set = set | ByteSet::range(lead | a, lead | b);
    return bytes(set);
  }
  unsigned shift = 6 * continuation_bytes;
  uint32_t block = 1u << shift;
  std::vector<std::pair<ExprId, ByteSet>> tails;
  auto add = [&tails](ExprId tail, uint32_t byte) {
    auto known = std::find_if(tails.begin(), tails.end(), [tail](const auto& entry) { return entry.first == tail; });
    if (known == tails.end()) known = tails.insert(tails.end(), {tail, ByteSet{}});
    known->second.add(static_cast<uint8_t>(byte));
  };
  size_t from = 0;
  for (uint32_t value = ranges.front().first >> shift; value <= ranges.back().second >> shift; ++value) {
    uint32_t base = value << shift;
    while (ranges[from].second < base) ++from;
    if (ranges[from].first <= base && ranges[from].second >= base + block - 1) {
      ExprId full = ExprId::epsilon;
      for (unsigned i = 0; i < continuation_bytes; ++i) full = concatenation(bytes(ByteSet::range(0x80, 0xBF)), full);
      add(full, lead | value);
      continue;
    }
    std::vector<CodePointRange> inside;
    for (size_t i = from; i < ranges.size() && ranges[i].first < base + block; ++i) {
      inside.emplace_back(std::max(ranges[i].first, base) - base, std::min(ranges[i].second, base + block - 1) - base);
    }
    if (!inside.empty()) add(utf8(inside, continuation_bytes - 1, 0x80), lead | value);
  }
  std::vector<ExprId> branches;
  for (auto& [tail, set] : tails) branches.push_back(concatenation(bytes(set), tail));
  return alternation(std::move(branches));
}

ExprId ExpressionStore::char_class(std::span<const CodePointRange> given, bool json) {
  std::vector<CodePointRange> ranges(given.begin(), given.end());
  std::sort(ranges.begin(), ranges.end());
  std::vector<ExprId> branches;
  if (json) {  // RFC 8259 section 7, one spelling a code point
    ByteSet high_zero, high_one;
    auto wanted = [&](uint32_t c) {
      return std::any_of(ranges.begin(), ranges.end(), [c](auto r) { return r.first <= c && c <= r.second; });
    };
    ByteSet escapes;
    for (auto [code, letter] : std::initializer_list<std::pair<uint32_t, char>>{
             {0x22, '"'}, {0x5C, '\\'}, {8, 'b'}, {9, 't'}, {10, 'n'}, {12, 'f'}, {13, 'r'}}) {
      if (wanted(code)) escapes.add(static_cast<uint8_t>(letter));
    }
    for (uint32_t c = 0; c < 0x20; ++c) {
      if (c == 8 || c == 9 || c == 10 || c == 12 || c == 13 || !wanted(c)) continue;
      (c < 16 ? high_zero : high_one).add(static_cast<uint8_t>("0123456789abcdef"[c & 15]));
    }
    ExprId unicode = alternation({concatenation(literal("u000"), bytes(high_zero)), concatenation(literal("u001"), bytes(high_one))});
    ExprId after = alternation({bytes(escapes), unicode});
    branches.push_back(concatenation(literal("\\"), after));
    std::vector<CodePointRange> plain;
    for (auto [low, high] : std::initializer_list<CodePointRange>{{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0x10FFFF}}) {
      std::vector<CodePointRange> piece = clip(ranges, low, high);
      plain.insert(plain.end(), piece.begin(), piece.end());
    }
    std::sort(plain.begin(), plain.end());
    ranges = std::move(plain);
  }
  branches.push_back(utf8(clip(ranges, 0, 0x7F), 0, 0));
  branches.push_back(utf8(clip(ranges, 0x80, 0x7FF), 1, 0xC0));
  std::vector<CodePointRange> three = clip(ranges, 0x800, 0xD7FF);
  for (CodePointRange range : clip(ranges, 0xE000, 0xFFFF)) three.push_back(range);
  branches.push_back(utf8(three, 2, 0xE0));
  branches.push_back(utf8(clip(ranges, 0x10000, 0x10FFFF), 3, 0xF0));
  return alternation(std::move(branches));
}

}  // namespace constrain
