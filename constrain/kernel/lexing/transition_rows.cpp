// Makes transition rows.
#include "lexing/transition_rows.h"

namespace constrain {

uint32_t TransitionRows::of(LexId lexer) {
  if (lexer == LexId::dead) return none;
  if (const uint32_t* found = ids_.find(index(lexer))) return *found;
  const auto row = static_cast<uint32_t>(rows_.size());
  Row& made = add(index(lexer), none);
  made.lexer = lexer;
  made.matched = lexer_.matched(lexer);
  for (const Lexer::Entry& entry : lexer_.entries(lexer)) {
    const int16_t lead = lexer_.expressions()[entry.expression].lead;
    if (lead >= 0) {
      made.next[static_cast<size_t>(lead)] = unknown;
    } else {
      lexer_.expressions().first(entry.expression).each([&made](uint8_t byte) { made.next[byte] = unknown; });
    }
  }
  return row;
}

uint32_t TransitionRows::find_step(uint32_t row, uint8_t byte) {
  const uint32_t next = of(lexer_.step(rows_[row]->lexer, byte));
  rows_[row]->next[byte] = next;
  return next;
}

}  // namespace constrain
