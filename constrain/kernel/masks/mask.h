// Masks: the tokens that may come next at a place, during the computation and as kept afterwards.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/archive.h"
#include "base/bitmask.h"
#include "base/ids.h"
#include "base/limits.h"

namespace constrain {

enum class Unit : uint8_t { bytes, tokens };
constexpr size_t units = 2;

// An upper bound on a way to finish: `length`, and `fresh` further texts that must differ from texts already read.
struct Bound {
  uint64_t length = 0;  // in bytes, which shows quickly what fits easily, or in tokens
  uint32_t fresh = 0;
  static constexpr uint64_t unknown = uint64_t{1} << 40;
  void add(const Bound& other) {
    length = std::min(unknown, length + other.length);
    fresh += other.fresh;
  }
  void widen(const Bound& other) {
    length = std::max(length, other.length);
    fresh = std::max(fresh, other.fresh);
  }
};

// Tokens that may come next, during the computation.
struct MaskDraft {
  std::shared_ptr<const Bitmask> base;
  std::shared_ptr<Bitmask> own;  // the same tokens, unless `base` is shared with a lexer state
  std::vector<std::shared_ptr<const Bitmask>> more;
  std::vector<uint32_t> add;
  std::vector<uint32_t> remove;     // from `base`
  std::vector<uint32_t> dependent;  // tokens that depend on the text of the current lexeme
  bool eos = false;
  LimitSet limits;  // limits met; with any, all tokens are in `dependent`: those of one byte

  Bitmask& own_base(size_t words);  // without the removed tokens
};

// The tokens of a mask as kept. Context-dependent ones are judged one by one when the mask is written out.
struct MaskTokens {
  std::shared_ptr<const Bitmask> base;
  Array<uint32_t> add, remove, dependent;
  bool eos = false;
  LimitSet limits;
  size_t memory_bytes() const;

  template <typename Archive>
  void visit(Archive& archive) {
    archive(base, add, remove, dependent, eos, limits);
  }
};

// The mask of one place, and of the places it stands in for.
struct Mask {
  std::shared_ptr<const MaskTokens> tokens;
  Array<SetId> sets;  // sets in which the tokens may end, besides the set of the mask itself
  bool stands_in = false;  // for another place
  mutable std::array<std::optional<Bound>, units> bounds;  // on finishing after any token that leaves the lexeme, once asked for
  size_t memory_bytes() const { return sizeof(*this) + sets.own_bytes(); }

  template <typename Archive>
  void visit(Archive& archive) {  // without the bounds, which are computed again
    archive(tokens, sets, stands_in);
  }
};

// The sets of a mask: sorted, without duplicates.
Array<SetId> distinct_sets(std::vector<SetId> sets);

}  // namespace constrain
