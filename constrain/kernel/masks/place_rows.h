// Dense transitions of places, for walks over the vocabulary's trie in grammars whose terminals are read byte by byte:
// every byte then ends a lexeme, and most bytes lead to one of few places. See dense_rows.h.
//
// Invariant: a place has a row only if what follows does not depend on a text or a value that was read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/hashing.h"
#include "base/ids.h"
#include "lexing/dense_rows.h"
#include "parsing/place.h"
#include "parsing/stepping.h"

namespace constrain {

struct PlaceRow {
  LexId lexer;
  SetId set;
  bool open = false;    // the bytes that cannot follow are known
  uint32_t ended = 0;   // the last walk with a token that ends here
  uint32_t reached = 0, number = 0;  // the last `reach` that came here, and the number in it
};

class PlaceRows : public DenseRows<PlaceRows, uint64_t, PlaceRow> {
 public:
  static constexpr size_t kept_rows = 1024;            // kept between walks, 1 KiB each
  static constexpr uint32_t without_row = 0xFFFFFFFDu;  // instead of a row, for a place that has none

  explicit PlaceRows(Stepping& stepping) : stepping_(stepping) {}

  void begin();     // begins the walks for one mask
  void new_walk() { ++walk_; }
  uint32_t of(const Place& place);
  size_t memory_bytes() const { return table_bytes(); }
  Place place(uint32_t row) const { return {rows_[row]->lexer, rows_[row]->set, TextId::empty, false, TrackId::start}; }

  // The rows that texts from a row lead to, numbered in an order that depends on their transitions alone, and a hash of
  // these transitions: equal hashes mean equal tokens. None if they are many, or some places have no row.
  struct Reach {
    std::vector<uint32_t> rows;
    Hash key;
  };
  std::optional<Reach> reach(uint32_t row);

  // Whether this is the first time in these walks that a token ends at the row.
  bool first_end(uint32_t row) { return std::exchange(rows_[row]->ended, walk_) != walk_; }
  bool has_end(uint32_t row) const { return rows_[row]->ended == walk_; }

 private:
  friend DenseRows;
  uint32_t find_step(uint32_t row, uint8_t byte);
  void open(Row& row, const Place& place);
  bool follow(Reach& reach);

  Stepping& stepping_;
  uint32_t walk_ = 0, reach_ = 0;  // numbers of the present walk and of the last `reach`
  uint32_t failures_ = 0;          // of `reach`; after a few, it is not tried again
};

}  // namespace constrain
