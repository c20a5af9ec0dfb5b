// Masks on logits: what a decode loop in another language does with a mask, for loops that have none of their own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace constrain {

// Copies the logits of one place, with minus infinity for each token whose bit is 0 or beyond the words. Returns whether
// a token is left: one whose logit is not minus infinity.
inline bool mask_logits(std::span<const uint32_t> words, std::span<const float> logits, std::span<float> masked) {
  constexpr float none = -std::numeric_limits<float>::infinity();
  bool is_left = false;
  const size_t known = std::min(logits.size(), words.size() * 32);
  for (size_t begin = 0; begin < known; begin += 32) {
    const uint32_t bits = words[begin / 32];
    const size_t count = std::min<size_t>(32, known - begin);
    const float* from = logits.data() + begin;
    float* to = masked.data() + begin;
    if (bits == 0) {
      std::fill_n(to, count, none);
      continue;
    }
    uint32_t left = 0;
    for (uint32_t i = 0; i < count; ++i) {
      const float value = (bits >> i & 1) != 0 ? from[i] : none;
      left |= value != none ? 1u : 0u;
      to[i] = value;
    }
    is_left |= left != 0;
  }
  std::fill(masked.begin() + static_cast<std::ptrdiff_t>(known), masked.end(), none);
  return is_left;
}

}  // namespace constrain
