// The bytes that an expression may begin with or contain, and the bytes that it distinguishes.
#include "expressions/byte_classes.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "expressions/nesting.h"

namespace constrain {

namespace {

using Kind = ExpressionNodes::Kind;

constexpr uint32_t max_own_alphabet = 16;  // texts of a set of literals; more have the alphabet of the whole set

ByteSet first_of_substring(const ExpressionNodes& nodes, const ExpressionNodes::Node& node) {
  const SuffixAutomaton& runs = nodes.runs(node);
  ByteSet set;
  for (uint32_t at = node.low(); at < node.high();) {
    const auto byte = static_cast<uint8_t>(runs.chunk(at)[node.depth()]);
    set.add(byte);
    at = node.high() - at == 1 ? node.high() : nodes.transitions_by(node, byte).second;
  }
  return set;
}

}  // namespace

ByteSet ByteClasses::first(ExpressionNodes& nodes, ExprId e) {
  if (!nodes.is_tall(e)) return find_first(nodes, e);
  auto known = [this](ExprId each) { return firsts_.find(index(each)); };
  if (const ByteSet* found = known(e)) return *found;
  for (ExprId each : nodes.tall_parts(e, known)) firsts_.insert(index(each), find_first(nodes, each));
  return *known(e);
}

ByteSet ByteClasses::find_first(ExpressionNodes& nodes, ExprId e) {
  if (nodes[e].kind != Kind::concatenation) return first_of(nodes, e);
  if (!nodes.nullable(nodes.head_of(e))) return first(nodes, nodes.head_of(e));
  if (const ByteSet* found = firsts_.find(index(e))) return *found;
  const std::vector<ExprId> links = nodes.new_links(e, [&](ExprId link) { return !nodes.nullable(nodes.head_of(link)) || firsts_.find(index(link)); });
  const ExprId last = nodes.rest_of(links.back());
  ByteSet set = nodes[last].kind != Kind::concatenation ? first_of(nodes, last) : find_first(nodes, last);
  for (size_t i = links.size(); i-- > 0;) {
    set = set | first(nodes, nodes.head_of(links[i]));
    firsts_.insert(index(links[i]), set);
  }
  return set;
}

ByteSet ByteClasses::first_of(ExpressionNodes& nodes, ExprId e) {
  const ExpressionNodes::Node& node = nodes[e];
  switch (node.kind) {
    case Kind::nothing:
    case Kind::epsilon:
      return {};
    case Kind::anything:
    case Kind::complement:
      return ByteSet::all();
    case Kind::bytes:
      return nodes.byte_set(node);
    case Kind::literal: {
      ByteSet set;
      set.add(static_cast<uint8_t>(nodes.literal(node)[0]));
      return set;
    }
    case Kind::concatenation:
      return first(nodes, e);
    case Kind::alternation:
    case Kind::intersection: {  // the result is kept: Boolean operations share their operands
      if (const ByteSet* found = firsts_.find(index(e))) return *found;
      const bool any = node.kind == Kind::alternation;
      ByteSet set = any ? ByteSet{} : ByteSet::all();
      for (ExprId part : nodes.parts(node)) set = any ? set | first(nodes, part) : set & first(nodes, part);
      firsts_.insert(index(e), set);
      return set;
    }
    case Kind::repetition:
      return first(nodes, node.unit());
    case Kind::window:
      return first(nodes, node.part());
    case Kind::substring:
      return first_of_substring(nodes, node);
    case Kind::literal_set: {
      ByteSet set;
      const SortedTexts& texts = nodes.texts(node);
      for (uint32_t at = texts.find(node.low(), node.high(), node.depth(), 0); at < node.high();) {
        const auto byte = static_cast<uint8_t>(texts[at][node.depth()]);
        set.add(byte);
        at = texts.find(at, node.high(), node.depth(), byte + 1u);
      }
      nodes.work().count_parts(static_cast<size_t>(set.size()));
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

ByteSet ByteClasses::alphabet(ExpressionNodes& nodes, ExprId e) {
  auto known = [this](ExprId each) { return alphabets_.find(index(each)); };
  if (const ByteSet* found = known(e)) return *found;
  for (ExprId each : nodes.tall_parts(e, known)) alphabets_.insert(index(each), find_alphabet(nodes, each));
  return *known(e);
}

ByteSet ByteClasses::find_alphabet(ExpressionNodes& nodes, ExprId e) {
  const ExpressionNodes::Node node = nodes[e];
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
      set = first(nodes, e);
      break;
    case Kind::literal:
      for (char c : nodes.literal(node)) set.add(static_cast<uint8_t>(c));
      break;
    case Kind::concatenation: {
      const std::vector<ExprId> links = nodes.new_links(e, [&](ExprId link) { return alphabets_.find(index(link)); });
      set = alphabet(nodes, nodes.rest_of(links.back()));
      for (size_t i = links.size(); i-- > 0;) {
        set = set | alphabet(nodes, nodes.head_of(links[i]));
        if (i > 0) alphabets_.insert(index(links[i]), set);
      }
      break;
    }
    case Kind::alternation:
      for (ExprId part : nodes.parts(node)) set = set | alphabet(nodes, part);
      break;
    case Kind::intersection:
      set = ByteSet::all();
      for (ExprId part : nodes.parts(node)) set = set & alphabet(nodes, part);
      break;
    case Kind::repetition:
      set = alphabet(nodes, node.unit());
      break;
    case Kind::window:
      set = alphabet(nodes, node.part());
      break;
    case Kind::substring:
      set = nodes.runs(node).alphabet();
      break;
    case Kind::literal_set: {
      const SortedTexts& texts = nodes.texts(node);
      if (node.high() - node.low() > max_own_alphabet) return texts.alphabet();
      for (uint32_t i = node.low(); i < node.high(); ++i) {
        for (char c : texts[i].substr(node.depth())) set.add(static_cast<uint8_t>(c));
      }
      break;
    }
  }
  return set;
}

void ByteClasses::collect(ExpressionNodes& nodes, ExprId start, std::vector<ByteSet>& out) {
  size_t visited = 0;
  uncollected_.assign(1, start);
  while (!uncollected_.empty()) {
    const ExprId e = uncollected_.back();
    uncollected_.pop_back();
    if (std::exchange(collected_[index(e)], collection_) == collection_) continue;  // shared by several operands
    ++visited;
    const ExpressionNodes::Node& node = nodes[e];
    switch (node.kind) {
      case Kind::nothing:
      case Kind::epsilon:
      case Kind::anything:
        break;
      case Kind::bytes:
      case Kind::literal:
        out.push_back(first(nodes, e));
        break;
      case Kind::concatenation:
        uncollected_.push_back(node.head());
        if (nodes.nullable(node.head())) uncollected_.push_back(node.rest());
        break;
      case Kind::alternation:
      case Kind::intersection:
        for (ExprId part : nodes.parts(node)) uncollected_.push_back(part);
        break;
      case Kind::complement:
        uncollected_.push_back(node.excluded());
        break;
      case Kind::repetition:
        uncollected_.push_back(node.unit());
        break;
      case Kind::window:
        uncollected_.push_back(node.part());
        uncollected_.push_back(node.unit_state());
        break;
      case Kind::literal_set:
      case Kind::multiple:
      case Kind::substring:
        first(nodes, e).each([&out](uint8_t b) { out.push_back(ByteSet::range(b, b)); });
        break;
    }
  }
  nodes.work().count_parts(visited);
}

std::array<uint64_t, 256> ByteClasses::classes(ExpressionNodes& nodes, std::span<const ExprId> expressions) {
  std::vector<ByteSet> sets;
  collected_.resize(nodes.size());
  if (++collection_ == 0) {
    std::fill(collected_.begin(), collected_.end(), 0u);
    collection_ = 1;
  }
  for (ExprId e : expressions) collect(nodes, e, sets);
  nodes.work().count(1);
  nodes.work().count_parts(2 * sets.size());
  std::array<uint64_t, 256> signature{};
  for (size_t i = 0; i < sets.size(); ++i) {
    sets[i].each([&](uint8_t b) { signature[b] = scramble(signature[b] + i + 1); });
  }
  return signature;
}

std::vector<uint8_t> ByteClasses::representatives(ExpressionNodes& nodes, std::span<const ExprId> expressions) {
  const std::array<uint64_t, 256> signature = classes(nodes, expressions);
  // letters and digits first, so that examples are readable
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

}  // namespace constrain
