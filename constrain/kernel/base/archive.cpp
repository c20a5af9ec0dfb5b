// The checksum of archives.
#include "base/archive.h"

#include <array>
#include <bit>

namespace constrain {

Hash checksum(std::span<const std::byte> data) {
  // Every step is a bijection of the lane for a given word, and of the word for a given lane: damage to one word, and a
  // single flipped bit, is always detected. Eight lanes run at about the speed of memory.
  constexpr std::array<uint64_t, 8> factors{0x9E3779B97F4A7C15u, 0xC2B2AE3D27D4EB4Fu, 0x165667B19E3779F9u, 0xD6E8FEB86659FD93u,
                                            0x27D4EB2F165667C5u, 0xFF51AFD7ED558CCDu, 0xC4CEB9FE1A85EC53u, 0xBF58476D1CE4E5B9u};
  std::array<uint64_t, 8> lanes = factors;
  auto step = [&](const std::byte* block) {
    for (size_t i = 0; i < lanes.size(); ++i) {
      uint64_t word;
      std::memcpy(&word, block + i * sizeof word, sizeof word);
      lanes[i] = std::rotl(lanes[i] ^ word, 29) * factors[i];
      lanes[i] ^= lanes[i] >> 32;  // otherwise the highest bit would only mix with that of the next word
    }
  };
  constexpr size_t block_bytes = sizeof lanes;
  const size_t whole = data.size() / block_bytes * block_bytes;
  for (size_t at = 0; at < whole; at += block_bytes) step(data.data() + at);
  if (whole < data.size()) {
    std::array<std::byte, block_bytes> rest{};
    std::memcpy(rest.data(), data.data() + whole, data.size() - whole);
    step(rest.data());
  }
  Hash result{data.size(), factors[0]};
  for (uint64_t lane : lanes) result = mix(result, lane);
  return result;
}

}  // namespace constrain
