// Dense transitions of lexer states, for walks over the vocabulary's trie: see dense_rows.h.
//
// Invariant: a byte that the state cannot take leads to `none`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/ids.h"
#include "lexing/dense_rows.h"
#include "lexing/lexer.h"

namespace constrain {

struct LexerRow {
  LexId lexer;
  MatchId matched;
  bool of_texts = false;  // the state is a literal, or a set of them, in front of the rest of one terminal
  uint16_t possible = 0;  // bytes that the expressions may begin with
  uint16_t found = 0;     // steps found
};

class TransitionRows : public DenseRows<TransitionRows, uint32_t, LexerRow> {
 public:
  static constexpr size_t kept_rows = 32;  // kept between walks, 1 KiB each

  explicit TransitionRows(Lexer& lexer) : lexer_(lexer) {}

  uint32_t of(LexId lexer);
  size_t memory_bytes() const { return table_bytes(); }
  bool matches(uint32_t row) const { return rows_[row]->matched != MatchId::none; }  // the state is a whole lexeme

 private:
  friend DenseRows;
  uint32_t find_step(uint32_t row, uint8_t byte);
  void find_classes(Row& row);
  bool is_of_texts(LexId lexer) const;

  Lexer& lexer_;
};

}  // namespace constrain
