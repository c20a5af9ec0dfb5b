// Masks on logits: what a decode loop in another language does with a mask, for loops that have none of their own.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace constrain {

// For each byte of a mask, eight words: all bits of those whose bit in the byte is 1.
inline constexpr std::array<std::array<uint32_t, 8>, 256> spread_bits = [] {
  std::array<std::array<uint32_t, 8>, 256> rows{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    for (uint32_t i = 0; i < 8; ++i) rows[byte][i] = (byte >> i & 1) != 0 ? ~0u : 0u;
  }
  return rows;
}();

// Copies the logits of one place, with minus infinity for each token whose bit is 0 or beyond the words. Returns whether
// a token is left: one whose logit is not minus infinity. Eight tokens at a time, without a branch for each.
inline bool mask_logits(std::span<const uint32_t> words, std::span<const float> logits, std::span<float> masked) {
  constexpr float none = -std::numeric_limits<float>::infinity();
  constexpr uint32_t none_bits = std::bit_cast<uint32_t>(none);
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
    if (bits == ~0u) {
      std::copy_n(from, count, to);
    } else if (count == 32) {
      for (size_t byte = 0; byte < 4; ++byte) {
        const std::array<uint32_t, 8>& keep = spread_bits[bits >> 8 * byte & 255];
        for (size_t i = 8 * byte; i < 8 * byte + 8; ++i) {
          const uint32_t mask = keep[i % 8];
          to[i] = std::bit_cast<float>((std::bit_cast<uint32_t>(from[i]) & mask) | (none_bits & ~mask));
        }
      }
    } else {
      for (size_t i = 0; i < count; ++i) to[i] = (bits >> i & 1) != 0 ? from[i] : none;
    }
    if (!is_left) is_left = std::any_of(to, to + count, [](float value) { return value != none; });
  }
  std::fill(masked.begin() + static_cast<std::ptrdiff_t>(known), masked.end(), none);
  return is_left;
}

}  // namespace constrain
