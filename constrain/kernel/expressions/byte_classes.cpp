// The bytes that an expression may begin with or contain, and the bytes that it distinguishes.
#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "expressions/nesting.h"

namespace constrain {

namespace {

using Kind = ExpressionStore::Kind;

}  // namespace

ByteSet ExpressionStore::first(ExprId e) {
  if (!is_tall(e)) return find_first(e);
  auto known = [this](ExprId each) { return firsts_.find(index(each)); };
  if (const ByteSet* found = known(e)) return *found;
  auto parts_of = [this](ExprId each, auto&& f) { each_part(each, f); };
  for (ExprId each : tall_parts(e, known, parts_of)) firsts_.insert(index(each), find_first(each));
  return *known(e);
}

ByteSet ExpressionStore::find_first(ExprId e) {
  if (nodes_[index(e)].kind != Kind::concatenation) return first_of(e);
  if (!nullable(head_of(e))) return first(head_of(e));
  if (const ByteSet* found = firsts_.find(index(e))) return *found;
  const std::vector<ExprId> links = new_links(e, [this](ExprId link) { return !nullable(head_of(link)) || firsts_.find(index(link)); });
  const ExprId last = rest_of(links.back());
  ByteSet set = nodes_[index(last)].kind != Kind::concatenation ? first_of(last) : find_first(last);
  for (size_t i = links.size(); i-- > 0;) {
    set = set | first(head_of(links[i]));
    firsts_.insert(index(links[i]), set);
  }
  return set;
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
      return byte_sets_[node.byte_set()];
    case Kind::literal: {
      ByteSet set;
      set.add(static_cast<uint8_t>(literals_[node.offset()]));
      return set;
    }
    case Kind::concatenation:
      return first(e);
    case Kind::alternation:
    case Kind::intersection: {  // the result is kept: Boolean operations share their operands
      if (const ByteSet* found = firsts_.find(index(e))) return *found;
      const bool any = node.kind == Kind::alternation;
      ByteSet set = any ? ByteSet{} : ByteSet::all();
      for (ExprId part : parts(e)) set = any ? set | first(part) : set & first(part);
      firsts_.insert(index(e), set);
      return set;
    }
    case Kind::repetition:
      return first(node.unit());
    case Kind::window:
      return first(node.part());
    case Kind::substring:
      return first_of_substring(node);
    case Kind::literal_set: {
      ByteSet set;
      const std::vector<std::string>& texts = literal_sets_[node.literal_set()].texts;
      count_parts(node.high() - node.low());
      for (uint32_t i = node.low(); i < node.high(); ++i) {
        if (texts[i].size() > node.depth()) set.add(static_cast<uint8_t>(texts[i][node.depth()]));
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
  auto known = [this](ExprId each) { return alphabets_.find(index(each)); };
  if (const ByteSet* found = known(e)) return *found;
  auto parts_of = [this](ExprId each, auto&& f) { each_part(each, f); };
  for (ExprId each : tall_parts(e, known, parts_of)) alphabets_.insert(index(each), find_alphabet(each));
  return *known(e);
}

ByteSet ExpressionStore::find_alphabet(ExprId e) {
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
      for (uint32_t i = 0; i < node.length(); ++i) set.add(static_cast<uint8_t>(literals_[node.offset() + i]));
      break;
    case Kind::concatenation: {
      const std::vector<ExprId> links = new_links(e, [this](ExprId link) { return alphabets_.find(index(link)); });
      set = alphabet(rest_of(links.back()));
      for (size_t i = links.size(); i-- > 0;) {
        set = set | alphabet(head_of(links[i]));
        if (i > 0) alphabets_.insert(index(links[i]), set);
      }
      break;
    }
    case Kind::alternation:
      for (uint32_t i = 0; i < node.part_count(); ++i) set = set | alphabet(children_[node.first_part() + i]);
      break;
    case Kind::intersection:
      set = ByteSet::all();
      for (uint32_t i = 0; i < node.part_count(); ++i) set = set & alphabet(children_[node.first_part() + i]);
      break;
    case Kind::repetition:
      set = alphabet(node.unit());
      break;
    case Kind::window:
      set = alphabet(node.part());
      break;
    case Kind::substring:
      set = substrings_[node.automaton()]->alphabet();
      break;
    case Kind::literal_set:
      for (uint32_t i = node.low(); i < node.high(); ++i) {
        for (char c : literal_sets_[node.literal_set()].texts[i].substr(node.depth())) set.add(static_cast<uint8_t>(c));
      }
      break;
  }
  return set;
}

void ExpressionStore::collect_byte_sets(ExprId start, std::vector<ByteSet>& out) {
  size_t visited = 0;
  uncollected_.assign(1, start);
  while (!uncollected_.empty()) {
    const ExprId e = uncollected_.back();
    uncollected_.pop_back();
    if (std::exchange(collected_[index(e)], collection_) == collection_) continue;  // shared by several operands
    ++visited;
    const Node& node = nodes_[index(e)];
    switch (node.kind) {
      case Kind::nothing:
      case Kind::epsilon:
      case Kind::anything:
        break;
      case Kind::bytes:
      case Kind::literal:
        out.push_back(first(e));
        break;
      case Kind::concatenation:
        uncollected_.push_back(node.head());
        if (nullable(node.head())) uncollected_.push_back(node.rest());
        break;
      case Kind::alternation:
      case Kind::intersection:
        for (ExprId part : parts(e)) uncollected_.push_back(part);
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
        first(e).each([&out](uint8_t b) { out.push_back(ByteSet::range(b, b)); });
        break;
    }
  }
  count_parts(visited);
}

std::vector<uint8_t> ExpressionStore::representatives(std::span<const ExprId> expressions) {
  std::vector<ByteSet> sets;
  collected_.resize(nodes_.size());
  if (++collection_ == 0) {
    std::fill(collected_.begin(), collected_.end(), 0u);
    collection_ = 1;
  }
  for (ExprId e : expressions) collect_byte_sets(e, sets);
  ++spent_;
  count_parts(2 * sets.size());
  std::array<uint64_t, 256> signature{};
  for (size_t i = 0; i < sets.size(); ++i) {
    sets[i].each([&](uint8_t b) { signature[b] = scramble(signature[b] + i + 1); });
  }
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
