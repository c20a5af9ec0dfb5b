// Texts in the order of their bytes, without equals: what a set of literals matches.
//
// All texts lie in one run of bytes, so millions take little more memory than their bytes. A range of texts that begin
// alike is a state of the set: the texts that go on with a byte are a part of it, found by galloping search. Shortest and
// longest texts come from summaries of blocks. Invariant: immutable, and shared by all expressions with these texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_set.h"
#include "base/hashing.h"

namespace constrain {

class SortedTexts {
 public:
  // Texts in any order, one behind the other, and where each of them ends. At most 4 GiB.
  SortedTexts(std::string bytes, std::vector<uint32_t> ends);
  explicit SortedTexts(const std::vector<std::string>& texts);
  SortedTexts() = default;  // to restore

  uint32_t size() const { return static_cast<uint32_t>(ends_.size()); }
  std::string_view operator[](uint32_t i) const {
    const uint32_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }
  // The first text of a range with `byte` or a greater one behind `depth` bytes; `high` if there is none. Up to there the
  // texts of the range are equal, so those that end there come first.
  uint32_t find(uint32_t low, uint32_t high, size_t depth, unsigned byte) const {
    const auto is_before = [&](uint32_t i) {
      const std::string_view text = (*this)[i];
      return text.size() <= depth || static_cast<uint8_t>(text[depth]) < byte;
    };
    if (low == high || !is_before(low)) return low;
    if (high - low > block && depth < head_bytes) {  // by the heads of blocks first, which the processor's caches hold
      const uint32_t first = low / block + 1, end = (high - 1) / block + 1;
      const uint32_t at = first_from(first, end, [&](uint32_t i) { return static_cast<uint8_t>(heads_[i * head_bytes + depth]) < byte; });
      if (at < end) high = at * block;
      if (at > first) low = (at - 1) * block;
    }
    return first_from(low, high, is_before);
  }
  // The first number of a range for which `is_before` does not hold; near ones are found soonest.
  template <typename F>
  static uint32_t first_from(uint32_t low, uint32_t high, F&& is_before) {
    if (low == high || !is_before(low)) return low;
    uint32_t step = 1;
    for (; high - low > step && is_before(low + step); step *= 2) low += step;
    if (high - low > step) high = low + step;
    for (++low; low < high;) {
      const uint32_t middle = low + (high - low) / 2;
      if (is_before(middle)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  // The object in use with the same texts, if there is one: many grammars, also those from archives, then share a large
  // set. Any thread may call it.
  static std::shared_ptr<const SortedTexts> shared(std::shared_ptr<const SortedTexts> texts);

  uint32_t place(std::string_view text) const;  // the number of the first text that is not less
  SortedTexts in_both(const SortedTexts& other) const;

  uint32_t shortest(uint32_t low, uint32_t high) const;  // the number of the first shortest text of a range
  size_t longest(uint32_t low, uint32_t high) const;     // bytes of the longest text of a range
  size_t bytes(uint32_t low, uint32_t high) const { return ends_[high - 1] - (low == 0 ? 0 : ends_[low - 1]); }

  const Hash& hash() const { return hash_; }
  const ByteSet& alphabet() const { return alphabet_; }
  size_t memory_bytes() const { return sizeof *this + bytes_.capacity() + 4 * (ends_.capacity() + shortest_.capacity() + longest_.capacity()) + heads_.capacity(); }

  template <typename Archive>
  void visit(Archive& archive) {
    archive(hash_, alphabet_, bytes_, ends_, shortest_, longest_, heads_);
  }

 private:
  static constexpr uint32_t block = 64;      // texts
  static constexpr size_t head_bytes = 16;  // of the first text of a block

  bool is_sorted() const;
  void sort();
  void summarize();

  Hash hash_;
  ByteSet alphabet_;
  std::string bytes_;
  std::vector<uint32_t> ends_;      // by text
  std::vector<uint32_t> shortest_;  // by block: a text
  std::vector<uint32_t> longest_;   // by block: bytes
  std::string heads_;               // by block: the beginning of its first text, filled up with zeros
};

}  // namespace constrain
