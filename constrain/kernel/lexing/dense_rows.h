// Tables of transitions that are filled in while the vocabulary's trie is walked: one row for each state, with the next
// row for each byte.
//
// `Self` finds a transition that is not known yet, `find_step(row, byte)`; `State` is what it keeps of a row besides.
// Invariant: a row's number means the same state until `forget`, which walks call at their end.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/byte_groups.h"
#include "base/hashing.h"

namespace constrain {

template <typename Self, typename Key, typename State>
class DenseRows {
 public:
  struct Row : State {
    ByteGroups staying = 0, leaving = 0;  // groups whose bytes all lead back here, and groups with another byte
    std::array<uint32_t, 256> next;       // rows, or none, or unknown
  };
  static constexpr uint32_t none = 0xFFFFFFFFu;
  static constexpr uint32_t unknown = 0xFFFFFE00u;  // and a byte that leads to the same row, perhaps the byte itself
  static constexpr bool is_unknown(uint32_t next) { return next - unknown < 256; }

  uint32_t step(uint32_t row, uint8_t byte) {
    const uint32_t next = rows_[row]->next[byte];
    return !is_unknown(next) ? next : static_cast<Self*>(this)->find_step(row, byte);
  }

  // Whether all bytes of the groups lead from the row to itself.
  bool stays_in(uint32_t row, ByteGroups groups) {
    Row& at = *rows_[row];
    if (groups & at.leaving) return false;
    for (ByteGroups unknown_groups = groups & ~at.staying; unknown_groups; unknown_groups &= unknown_groups - 1) {
      const ByteGroups group = unknown_groups & -unknown_groups;
      for (uint8_t byte : bytes_of_groups.in(static_cast<unsigned>(std::countr_zero(group)))) {
        if (step(row, byte) == row) continue;
        at.leaving |= group;
        return false;
      }
      at.staying |= group;
    }
    return true;
  }

  const Row& operator[](uint32_t row) const { return *rows_[row]; }

  void forget() {  // forgets all rows, if there are many
    if (rows_.size() <= kept_rows) return;
    rows_.clear();
    ids_ = {};
  }

 protected:
  size_t table_bytes() const { return rows_.size() * (sizeof(Row) + sizeof(void*)); }

  Row& add(Key key, uint32_t fill) {
    ids_.insert(key, static_cast<uint32_t>(rows_.size()));
    Row& made = *rows_.emplace_back(std::make_unique<Row>());
    made.next.fill(fill);
    return made;
  }

  FlatMap<Key, uint32_t> ids_;
  std::vector<std::unique_ptr<Row>> rows_;

 private:
  static constexpr size_t kept_rows = Self::kept_rows;
};

}  // namespace constrain
