// Allowed tokens as llama.cpp's samplers read them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace constrain {

struct Candidate {  // llama_token_data
  int32_t id;
  float logit;
  float p;
};

// Writes the tokens whose bits are set, ascending, with their logits; returns their number. `target` has room for all.
// Words without a bit are skipped four at a time, full words are written as a whole: masks have mostly few or most
// tokens.
inline size_t gather(std::span<const uint32_t> words, std::span<const float> logits, Candidate* target) {
  size_t n = 0;
  for (size_t w = 0; w < words.size(); ++w) {
    for (uint64_t four[2]; w + 4 <= words.size(); w += 4) {
      std::memcpy(four, &words[w], sizeof four);
      if (four[0] | four[1]) break;
    }
    if (w == words.size()) break;
    const auto first = static_cast<uint32_t>(w * 32);
    if (words[w] == ~uint32_t{0} && first + 32 <= logits.size()) {
      for (uint32_t i = 0; i < 32; ++i) target[n + i] = {static_cast<int32_t>(first + i), logits[first + i], 0.0f};
      n += 32;
      continue;
    }
    for (uint32_t bits = words[w]; bits; bits &= bits - 1) {
      const uint32_t token = first + static_cast<uint32_t>(std::countr_zero(bits));
      target[n++] = {static_cast<int32_t>(token), logits[token], 0.0f};
    }
  }
  return n;
}

}  // namespace constrain
