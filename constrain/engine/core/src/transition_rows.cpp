// Makes transition rows.
#include "transition_rows.h"

namespace constrain {

namespace {

constexpr size_t kept_rows = 32;  // kept between walks, 1 KiB each

}  // namespace

uint32_t TransitionRows::of(LexId lexer) {
  if (lexer == LexId::dead) return none;
  if (const uint32_t* found = ids_.find(index(lexer))) return *found;
  auto row = static_cast<uint32_t>(rows_.size());
  ids_.insert(index(lexer), row);
  Row& made = *rows_.emplace_back(std::make_unique<Row>());
  made.lexer = lexer;
  made.matched = lexer_.matched(lexer);
  made.next.fill(none);
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

bool TransitionRows::stays_in(uint32_t row, ByteGroups groups) {
  Row& at = *rows_[row];
  if (groups & at.leaving) return false;
  for (ByteGroups unknown_groups = groups & ~at.staying; unknown_groups; unknown_groups &= unknown_groups - 1) {
    const ByteGroups group = unknown_groups & -unknown_groups;
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (ByteGroups{1} << byte_groups[byte] != group || step(row, static_cast<uint8_t>(byte)) == row) continue;
      at.leaving |= group;
      return false;
    }
    at.staying |= group;
  }
  return true;
}

void TransitionRows::forget() {
  if (rows_.size() <= kept_rows) return;
  rows_.clear();
  ids_ = {};
}

}  // namespace constrain
