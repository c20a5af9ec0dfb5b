// Sets of tokens as bits.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace constrain {

using Bitmask = std::vector<uint32_t>;  // bit t % 32 of word t / 32 stands for token t

inline void set_bit(std::span<uint32_t> words, uint32_t token) { words[token >> 5] |= 1u << (token & 31); }
inline void clear_bit(std::span<uint32_t> words, uint32_t token) { words[token >> 5] &= ~(1u << (token & 31)); }
inline bool has_bit(std::span<const uint32_t> words, uint32_t token) { return (words[token >> 5] >> (token & 31) & 1) != 0; }
template <typename F>
void each_bit(std::span<const uint32_t> words, uint32_t first, uint32_t end, F&& f) {  // from `first` on, before `end`
  for (uint32_t word = first >> 5; 32 * word < end; ++word) {
    for (uint32_t bits = words[word] & (word == first >> 5 ? ~0u << (first & 31) : ~0u); bits; bits &= bits - 1) {
      const uint32_t at = 32 * word + static_cast<uint32_t>(std::countr_zero(bits));
      if (at >= end) return;
      f(at);
    }
  }
}
inline void set_bits(std::span<uint32_t> words, uint32_t first, uint32_t last) {  // the last one included
  for (uint32_t word = first >> 5; word <= last >> 5; ++word) {
    const uint32_t from = word == first >> 5 ? ~0u << (first & 31) : ~0u, to = word == last >> 5 ? ~0u >> (31 - (last & 31)) : ~0u;
    words[word] |= from & to;
  }
}

// A set of tokens: a list while they are few, bits after that.
class TokenSet {
 public:
  void add(std::span<const uint32_t> tokens, size_t words) {
    if (bits_.empty()) {
      list_.insert(list_.end(), tokens.begin(), tokens.end());
      if (list_.size() <= words) return;
      bits_.assign(words, 0);
      for (uint32_t token : list_) set_bit(bits_, token);
      list_ = {};
    } else {
      for (uint32_t token : tokens) set_bit(bits_, token);
    }
  }
  void add_to(std::span<uint32_t> words) const {
    for (uint32_t token : list_) set_bit(words, token);
    for (size_t i = 0; i < bits_.size(); ++i) words[i] |= bits_[i];
  }
  void remove_from(std::span<uint32_t> words) const {
    for (uint32_t token : list_) clear_bit(words, token);
    for (size_t i = 0; i < bits_.size(); ++i) words[i] &= ~bits_[i];
  }
  bool empty() const { return list_.empty() && bits_.empty(); }
  bool contains(uint32_t token) const {
    return bits_.empty() ? std::find(list_.begin(), list_.end(), token) != list_.end() : has_bit(bits_, token);
  }
  size_t memory_bytes() const { return 4 * (list_.capacity() + bits_.capacity()); }

 private:
  std::vector<uint32_t> list_;
  Bitmask bits_;
};

}  // namespace constrain
