// Finds repetitions, and walks the trie for their units.
#include "lexing/repetitions.h"

namespace constrain {

namespace {

using Kind = ExpressionStore::Kind;

}  // namespace

std::optional<Repetition> Repetitions::find(ExprId e) {
  ExpressionStore& expressions = lexer_.expressions();
  ExpressionStore::Node node = expressions[e];
  Repetition found{};
  found.rest = ExprId::epsilon;
  if (node.kind == Kind::concatenation) {
    found.rest = node.rest();
    node = expressions[node.head()];
  }
  if (node.kind != Kind::repetition || node.maximum() < 2) return std::nullopt;
  found.unit = node.unit();
  if (expressions.nullable(found.unit) || expressions.first(found.unit).intersects(expressions.first(found.rest))) return std::nullopt;
  found.minimum = node.minimum();
  found.maximum = node.maximum();
  found.tokens = tokens_of(found.unit);
  if (!found.tokens->all) return std::nullopt;
  // A full repetition may end the lexeme even where another unit begins, which is not among the boundaries.
  if (expressions.nullable(found.rest) && found.maximum <= found.tokens->most_units) return std::nullopt;
  return found;
}

std::shared_ptr<const UnitTokens> Repetitions::tokens_of(ExprId unit) {
  const Hash key = mix(seeded(0x756E6974), lexer_.expressions().hash(unit));
  if (std::shared_ptr<const UnitTokens> known = vocabulary_.find_units(key)) return known;
  auto found = std::make_shared<UnitTokens>();
  auto all = std::make_shared<Bitmask>(vocabulary_.words());
  bool prefix_free = true;
  walk(*found, *all, unit, prefix_free);
  if (prefix_free) {
    std::vector<uint32_t> place;  // counting sort: positions of the tokens by units
    for (const auto& [units, token] : found->by_units) {
      if (place.size() <= units) place.resize(units + 1);
      ++place[units];
    }
    found->most_units = place.empty() ? 0 : static_cast<uint32_t>(place.size() - 1);
    uint32_t next = 0;
    for (size_t units = place.size(); units-- > 0;) next += std::exchange(place[units], next);
    std::vector<std::pair<uint32_t, uint32_t>> sorted(found->by_units.size());
    for (const auto& each : found->by_units) sorted[place[each.first]++] = each;
    found->by_units = std::move(sorted);
    found->boundaries = sorted_by_byte(vocabulary_.trie(), found->boundaries, [](const UnitTokens::Boundary& boundary) { return boundary.node; });
    found->all = std::move(all);
  } else {
    found->by_units = {};
    found->boundaries = {};
  }
  for (const UnitTokens::Boundary& boundary : found->boundaries) found->most_units = std::max(found->most_units, boundary.units);
  vocabulary_.keep_units(key, found);
  return found;
}

// Records the tokens that stay in X*, and the boundaries where they leave it; stops early if X is not prefix-free.
void Repetitions::walk(UnitTokens& found, Bitmask& all, ExprId unit, bool& prefix_free) {
  const Trie& trie = vocabulary_.trie();
  const uint32_t whole = rows_.of(lexer_.state({{TermId{0}, unit}}));
  const uint8_t* const bytes = trie.bytes();
  const uint32_t* const ends = trie.ends();
  const uint32_t* const first_tokens = trie.first_tokens();
  const uint32_t* const tokens = trie.all_tokens();
  struct Frame {
    uint32_t end, row, units;
    bool boundary;
    const TransitionRows::Row* at;
  };
  std::vector<Frame> above;
  Frame top{trie.size(), whole, 0, true, &rows_[whole]};
  uint32_t whole_unit = TransitionRows::none;  // a row at the end of a unit, which nothing may continue
  for (uint32_t node = 1; node < trie.size() && prefix_free;) {
    for (; top.end <= node; above.pop_back()) top = above.back();
    uint32_t next = top.at->next[bytes[node]];
    if (TransitionRows::is_unknown(next)) next = rows_.step(top.row, bytes[node]);
    if (next == TransitionRows::none) {
      if (top.boundary) found.boundaries.push_back({node, top.units});
      node = ends[node];
      continue;
    }
    const bool boundary = rows_.matches(next);
    if (boundary && next != whole_unit) {
      prefix_free = lexer_.entries(rows_[next].lexer)[0].expression == ExprId::epsilon;
      whole_unit = next;
    }
    const uint32_t units = top.units + (top.boundary ? 1 : 0);
    for (uint32_t i = first_tokens[node]; i < first_tokens[node + 1]; ++i) {
      found.by_units.emplace_back(units, tokens[i]);
      set_bit(all, tokens[i]);
    }
    if (ends[node] != node + 1) {
      above.push_back(top);
      const uint32_t from = boundary ? whole : next;
      top = {ends[node], from, units, boundary, &rows_[from]};
    }
    ++node;
  }
}

std::shared_ptr<const UnitTokens> Repetitions::endless(ExprId e, ExprId& unit) {
  ExpressionStore& expressions = lexer_.expressions();
  auto unit_of = [&](ExprId each) {
    ExpressionStore::Node node = expressions[each];
    if (node.kind == Kind::concatenation) node = expressions[node.head()];
    bool endless = node.kind == Kind::repetition && node.maximum() == unbounded && !expressions.nullable(node.unit());
    return endless ? node.unit() : ExprId::nothing;
  };
  unit = unit_of(e);
  if (expressions[e].kind == Kind::intersection || expressions[e].kind == Kind::alternation) {
    for (ExprId part : expressions.parts(e)) unit = unit == ExprId::nothing ? unit_of(part) : unit;
  }
  if (unit == ExprId::nothing) return nullptr;
  std::shared_ptr<const UnitTokens> tokens = tokens_of(unit);
  return tokens->by_units.size() > few_tokens ? tokens : nullptr;
}

std::shared_ptr<const UnitEnds> Repetitions::ends_of(ExprId unit, const UnitTokens& tokens) {
  const Hash key = mix(seeded(0x656E6473), lexer_.expressions().hash(unit));
  if (std::shared_ptr<const UnitEnds> known = vocabulary_.find_ends(key)) return known;
  const uint32_t whole = rows_.of(lexer_.state({{TermId{0}, unit}}));
  FlatMap<uint64_t, uint32_t> numbers;  // by units, and row within the last unit
  std::vector<std::pair<UnitEnds::Group, TokenSet>> found;
  for (const auto& [units, token] : tokens.by_units) {
    uint32_t row = whole;
    for (char c : vocabulary_.token(token)) {
      row = rows_.step(row, static_cast<uint8_t>(c));
      if (rows_.matches(row)) row = whole;
    }
    const uint64_t end = paired(units, row);
    const uint32_t* number = numbers.find(end);
    if (!number) {
      numbers.insert(end, static_cast<uint32_t>(found.size()));
      found.push_back({{units, token, nullptr}, TokenSet{}});
      number = numbers.find(end);
    }
    found[*number].second.add({&token, 1}, vocabulary_.words());
  }
  auto ends = std::make_shared<UnitEnds>();
  for (auto& [group, set] : found) {
    ends->groups.push_back({group.units, group.token, std::make_shared<const TokenSet>(std::move(set))});
  }
  vocabulary_.keep_ends(key, ends);
  return ends;
}

}  // namespace constrain
