// Dense transitions of lexer states, for walks over the vocabulary's trie.
//
// A row has the next row for each byte. Invariant: a row's number means the same state until `forget`, which walks call
// at their end; a byte that the state cannot take leads to `none`.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "byte_groups.h"
#include "hashing.h"
#include "ids.h"
#include "lexer.h"

namespace constrain {

class TransitionRows {
 public:
  struct Row {
    LexId lexer;
    MatchId matched;
    ByteGroups staying = 0, leaving = 0;  // groups whose bytes all lead back here, and groups with another byte
    std::array<uint32_t, 256> next;       // rows, or none, or unknown
  };
  static constexpr uint32_t none = 0xFFFFFFFFu;
  static constexpr uint32_t unknown = 0xFFFFFFFEu;

  explicit TransitionRows(Lexer& lexer) : lexer_(lexer) {}

  uint32_t of(LexId lexer);
  uint32_t step(uint32_t row, uint8_t byte) {
    const uint32_t next = rows_[row]->next[byte];
    return next != unknown ? next : find_step(row, byte);
  }
  bool stays_in(uint32_t row, ByteGroups groups);  // Whether all bytes of the groups lead from the row to itself.
  const Row& operator[](uint32_t row) const { return *rows_[row]; }
  bool matches(uint32_t row) const { return rows_[row]->matched != MatchId::none; }  // the state is a whole lexeme

  void forget();  // forgets all rows, if there are many
  size_t memory_bytes() const { return rows_.size() * (sizeof(Row) + sizeof(void*)); }

 private:
  uint32_t find_step(uint32_t row, uint8_t byte);

  Lexer& lexer_;
  FlatMap<uint32_t, uint32_t> ids_;
  std::vector<std::unique_ptr<Row>> rows_;
};

}  // namespace constrain
