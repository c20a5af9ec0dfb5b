// Classes of code points as expressions over their bytes: UTF-8, plain or spelled as in a JSON string.
#include <algorithm>
#include <initializer_list>

#include "expressions/expressions.h"

namespace constrain {

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

// The encodings of `ranges`, all with the same number of continuation bytes, as an expression that branches once, on
// the lead byte: lead bytes with equal tails share a branch. `lead` is the marker of the lead byte.
ExprId utf8(ExpressionStore& store, const std::vector<CodePointRange>& ranges, unsigned continuation_bytes, uint32_t lead) {
  if (ranges.empty()) return ExprId::nothing;
  if (continuation_bytes == 0) {
    ByteSet set;
    for (auto [a, b] : ranges) set = set | ByteSet::range(lead | a, lead | b);
    return store.bytes(set);
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
      for (unsigned i = 0; i < continuation_bytes; ++i) full = store.concatenation(store.bytes(ByteSet::range(0x80, 0xBF)), full);
      add(full, lead | value);
      continue;
    }
    std::vector<CodePointRange> inside;
    for (size_t i = from; i < ranges.size() && ranges[i].first < base + block; ++i) {
      inside.emplace_back(std::max(ranges[i].first, base) - base, std::min(ranges[i].second, base + block - 1) - base);
    }
    if (!inside.empty()) add(utf8(store, inside, continuation_bytes - 1, 0x80), lead | value);
  }
  std::vector<ExprId> branches;
  for (auto& [tail, set] : tails) branches.push_back(store.concatenation(store.bytes(set), tail));
  return store.alternation(std::move(branches));
}

}  // namespace

ExprId char_class(ExpressionStore& store, std::span<const CodePointRange> given, bool json) {
  std::vector<CodePointRange> ranges(given.begin(), given.end());
  std::sort(ranges.begin(), ranges.end());
  std::vector<ExprId> branches;
  if (json) {  // RFC 8259 section 7, one spelling for each code point
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
    ExprId unicode = store.alternation({store.concatenation(store.literal("u000"), store.bytes(high_zero)), store.concatenation(store.literal("u001"), store.bytes(high_one))});
    ExprId after = store.alternation({store.bytes(escapes), unicode});
    branches.push_back(store.concatenation(store.literal("\\"), after));
    std::vector<CodePointRange> plain;
    for (auto [low, high] : std::initializer_list<CodePointRange>{{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0x10FFFF}}) {
      std::vector<CodePointRange> piece = clip(ranges, low, high);
      plain.insert(plain.end(), piece.begin(), piece.end());
    }
    std::sort(plain.begin(), plain.end());
    ranges = std::move(plain);
  }
  branches.push_back(utf8(store, clip(ranges, 0, 0x7F), 0, 0));
  branches.push_back(utf8(store, clip(ranges, 0x80, 0x7FF), 1, 0xC0));
  std::vector<CodePointRange> three = clip(ranges, 0x800, 0xD7FF);
  for (CodePointRange range : clip(ranges, 0xE000, 0xFFFF)) three.push_back(range);
  branches.push_back(utf8(store, three, 2, 0xE0));
  branches.push_back(utf8(store, clip(ranges, 0x10000, 0x10FFFF), 3, 0xF0));
  return store.alternation(std::move(branches));
}

}  // namespace constrain
