// Masks: the tokens that may come next at a place, while they are worked out and as they are kept.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "bitmask.h"
#include "ids.h"
#include "limits.h"
#include "storage.h"

namespace constrain {

enum class Unit : uint8_t { bytes, tokens };
constexpr size_t units = 2;

// A limit on what it takes to finish: `length`, and `fresh` texts more that differ from some that have been read.
struct Bound {
  uint64_t length = 0;  // in bytes, which tells soon what fits easily, or in tokens
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

// Tokens that may come next, while they are worked out.
struct MaskDraft {
  std::shared_ptr<const Bitmask> base;
  std::shared_ptr<Bitmask> own;  // the same, unless it is shared with a lexer state's tokens
  std::vector<std::shared_ptr<const Bitmask>> more;
  std::vector<uint32_t> add;
  std::vector<uint32_t> remove;     // from `base`
  std::vector<uint32_t> dependent;  // on the text of the lexeme under way
  bool eos = false;
  LimitSet limits;  // that were met: then `dependent` are the tokens of one byte, and there are no others

  Bitmask& own_base(size_t words);  // without what is to be removed
};

// The same, as it is kept. Context-dependent tokens are judged one by one when the mask is written out.
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

// What may come next at one place.
struct Mask {
  std::shared_ptr<const MaskTokens> tokens;
  Array<SetId> sets;  // in which they may end, besides the one it belongs to
  mutable std::array<std::optional<Bound>, units> bounds;  // on finishing after any of them; once asked for
  size_t memory_bytes() const { return sizeof(*this) + sets.own_bytes(); }

  template <typename Archive>
  void visit(Archive& archive) {  // all but the bounds, which are worked out again
    archive(tokens, sets);
  }
};

// Sets as a mask lists them: sorted, each once.
Array<SetId> distinct_sets(std::vector<SetId> sets);

}  // namespace constrain
