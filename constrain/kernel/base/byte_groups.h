// A partition of all bytes into 32 groups whose bytes mostly mean the same to a lexer state. A set of groups is one
// word; it describes the bytes below a trie node.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace constrain {

using ByteGroups = uint32_t;  // a set of groups

constexpr std::array<uint8_t, 256> make_byte_groups() {
  struct Range {
    unsigned first, last;
  };
  constexpr Range ranges[] = {{0, 255}, {'a', 'f'}, {'g', 'z'}, {'A', 'F'}, {'G', 'Z'}, {'0', '0'}, {'1', '9'}, {0x80, 0xBF}, {0xC0, 0xDF}, {0xE0, 0xEF}, {0xF0, 0xFF}};
  constexpr std::string_view sets[] = {"_", " ", "\t", "\n", "\r", "\"", "\\", "'", "-", "+", ".", ",", ":", ";", "/", "*", "()[]{}", "<>=", "#", "$@%&!?^~|`"};
  static_assert(std::size(ranges) + std::size(sets) <= 32);
  std::array<uint8_t, 256> groups{};
  uint8_t group = 0;
  for (const Range& range : ranges) {
    for (unsigned byte = range.first; byte <= range.last; ++byte) groups[byte] = group;
    ++group;
  }
  for (std::string_view set : sets) {
    for (char c : set) groups[static_cast<uint8_t>(c)] = group;
    ++group;
  }
  return groups;
}

inline constexpr std::array<uint8_t, 256> byte_groups = make_byte_groups();

// The bytes of each group.
struct BytesOfGroups {
  std::array<uint8_t, 256> bytes{};
  std::array<uint16_t, 33> begins{};
  constexpr BytesOfGroups() {
    uint16_t at = 0;
    for (unsigned group = 0; group < 32; ++group) {
      for (unsigned byte = 0; byte < 256; ++byte) {
        if (byte_groups[byte] == group) bytes[at++] = static_cast<uint8_t>(byte);
      }
      begins[group + 1] = at;
    }
  }
  std::span<const uint8_t> in(unsigned group) const { return std::span(bytes).subspan(begins[group], begins[group + 1] - begins[group]); }
};
inline constexpr BytesOfGroups bytes_of_groups;

}  // namespace constrain
