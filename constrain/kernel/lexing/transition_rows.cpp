// Makes transition rows.
#include "lexing/transition_rows.h"

#include <algorithm>

#include "base/ways.h"

namespace constrain {

namespace {

constexpr uint16_t steps_without_classes = 4;  // found for a row one by one, before the classes of its bytes are

}  // namespace

uint32_t TransitionRows::of(LexId lexer) {
  if (lexer == LexId::dead) return none;
  if (const uint32_t* found = ids_.find(index(lexer))) return *found;
  const auto row = static_cast<uint32_t>(rows_.size());
  Row& made = add(index(lexer), none);
  made.lexer = lexer;
  made.matched = lexer_.matched(lexer);
  made.of_texts = is_of_texts(lexer);
  const ByteSet& possible = lexer_.possible(lexer);
  possible.each([&made](uint8_t byte) { made.next[byte] = unknown | byte; });
  made.possible = static_cast<uint16_t>(possible.size());
  return row;
}

bool TransitionRows::is_of_texts(LexId lexer) const {
  const std::span<const Lexer::Entry> entries = lexer_.entries(lexer);
  if (entries.size() != 1 || lexer_.is_lazy(lexer) || !uses("texts")) return false;
  const ExpressionStore& expressions = lexer_.expressions();
  const ExpressionStore::Node* node = &expressions[entries[0].expression];
  if (node->kind == ExpressionStore::Kind::concatenation) node = &expressions[node->head()];
  return node->kind == ExpressionStore::Kind::literal || node->kind == ExpressionStore::Kind::literal_set;
}

uint32_t TransitionRows::find_step(uint32_t row, uint8_t byte) {
  Row& at = *rows_[row];
  if (const std::optional<LexId> known = lexer_.known_step(at.lexer, byte)) return at.next[byte] = of(*known);
  if (++at.found == steps_without_classes && at.possible > 2 * steps_without_classes) find_classes(at);
  const auto like = static_cast<uint8_t>(at.next[byte] & 255);
  if (like == byte) return at.next[byte] = of(lexer_.step(at.lexer, byte));
  const uint32_t next = step(row, like);
  lexer_.keep_step(at.lexer, byte, next == none ? LexId::dead : rows_[next]->lexer);
  return at.next[byte] = next;
}

// Lets each byte whose step is not known refer to the first byte of its class.
void TransitionRows::find_classes(Row& row) {
  std::vector<ExprId> together;
  for (const Lexer::Entry& entry : lexer_.entries(row.lexer)) together.push_back(entry.expression);
  const std::array<uint64_t, 256> classes = lexer_.expressions().byte_classes(together);
  std::vector<std::pair<uint64_t, uint8_t>> known;
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (row.next[byte] == none) continue;
    auto found = std::ranges::find(known, classes[byte], &std::pair<uint64_t, uint8_t>::first);
    if (found == known.end()) {
      known.emplace_back(classes[byte], static_cast<uint8_t>(byte));
    } else if (is_unknown(row.next[byte])) {
      row.next[byte] = unknown | found->second;
    }
  }
}

}  // namespace constrain
