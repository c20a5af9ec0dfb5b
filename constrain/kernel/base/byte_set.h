// A set of bytes as 256 bits.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "base/hashing.h"

namespace constrain {

class ByteSet {
 public:
  static ByteSet range(unsigned first, unsigned last) {
    ByteSet set;
    for (unsigned i = 0; i < 4; ++i) {
      unsigned low = first > i * 64 ? first - i * 64 : 0, high = last < i * 64 + 63 ? last - i * 64 : 63;
      if (first > i * 64 + 63 || last < i * 64) continue;
      set.words_[i] = (~uint64_t{0} >> (63 - (high - low))) << low;
    }
    return set;
  }
  static ByteSet all() {
    ByteSet set;
    set.words_.fill(~uint64_t{0});
    return set;
  }

  bool contains(uint8_t b) const { return (words_[b >> 6] >> (b & 63)) & 1; }
  void add(uint8_t b) { words_[b >> 6] |= uint64_t{1} << (b & 63); }
  bool empty() const { return !(words_[0] | words_[1] | words_[2] | words_[3]); }
  int size() const {
    int n = 0;
    for (uint64_t w : words_) n += std::popcount(w);
    return n;
  }
  uint8_t first() const {  // the least member; the set must not be empty
    for (unsigned i = 0; i < 4; ++i) {
      if (words_[i]) return static_cast<uint8_t>(i * 64 + static_cast<unsigned>(std::countr_zero(words_[i])));
    }
    return 0;
  }

  ByteSet operator|(const ByteSet& o) const { return zip(o, [](uint64_t a, uint64_t b) { return a | b; }); }
  ByteSet operator&(const ByteSet& o) const { return zip(o, [](uint64_t a, uint64_t b) { return a & b; }); }
  bool operator==(const ByteSet&) const = default;
  bool intersects(const ByteSet& o) const { return !(*this & o).empty(); }

  Hash hash(Hash h) const {
    for (uint64_t w : words_) h = mix(h, w);
    return h;
  }

  template <typename F>
  void each(F&& f) const {
    for (unsigned i = 0; i < 4; ++i) {
      for (uint64_t w = words_[i]; w; w &= w - 1) {
        f(static_cast<uint8_t>(i * 64 + static_cast<unsigned>(std::countr_zero(w))));
      }
    }
  }

 private:
  template <typename F>
  ByteSet zip(const ByteSet& o, F&& f) const {
    ByteSet r;
    for (unsigned i = 0; i < 4; ++i) r.words_[i] = f(words_[i], o.words_[i]);
    return r;
  }

  std::array<uint64_t, 4> words_{};
};

}  // namespace constrain
