// Makes the rows of places.
#include "masks/place_rows.h"

#include "base/byte_set.h"

namespace constrain {

namespace {

constexpr size_t max_reach = 64;      // rows
constexpr uint32_t max_failures = 1;  // in a generation: a grammar with many places has them nearly everywhere

}  // namespace

void PlaceRows::begin() {
  forget();
  ++walk_;
}

uint32_t PlaceRows::of(const Place& place) {
  const Grammar& grammar = stepping_.grammar();
  Lexer& lexer = stepping_.lexer();
  if (grammar.reads_groups || lexer.remembers(place.lexer) || lexer.context_dependent(place.lexer)) return without_row;
  const Parser::Closure& closure = stepping_.parser().closure(place.set);
  if (closure.has_earlier || closure.uncertain) return without_row;
  const uint64_t key = paired(place.lexer, place.set);
  if (const uint32_t* found = ids_.find(key)) return *found;
  const auto row = static_cast<uint32_t>(rows_.size());
  Row& made = add(key, unknown);
  made.lexer = place.lexer;
  made.set = place.set;
  return row;
}

uint32_t PlaceRows::find_step(uint32_t row, uint8_t byte) {
  Place next = place(row);
  if (!rows_[row]->open) {
    open(*rows_[row], next);
    if (!is_unknown(rows_[row]->next[byte])) return rows_[row]->next[byte];
  }
  const uint32_t to = stepping_.step(next, byte) ? of(next) : none;
  rows_[row]->next[byte] = to;
  return to;
}

std::optional<PlaceRows::Reach> PlaceRows::reach(uint32_t row) {
  if (failures_ == max_failures) return std::nullopt;
  ++reach_;
  Reach found{{row}, seeded(0x706C61636573)};
  rows_[row]->reached = reach_;
  rows_[row]->number = 0;
  if (follow(found)) return found;
  ++failures_;
  return std::nullopt;
}

// Follows all bytes from all rows; false if there are too many, or a place has none.
bool PlaceRows::follow(Reach& reach) {
  for (size_t i = 0; i < reach.rows.size(); ++i) {
    reach.key = mix(reach.key, i);
    for (unsigned byte = 0; byte < 256; ++byte) {
      const uint32_t next = step(reach.rows[i], static_cast<uint8_t>(byte));
      if (next == none) continue;
      if (next == without_row) return false;
      Row& row = *rows_[next];
      if (std::exchange(row.reached, reach_) != reach_) {
        if (reach.rows.size() == max_reach) return false;
        row.number = static_cast<uint32_t>(reach.rows.size());
        reach.rows.push_back(next);
      }
      reach.key = mix(reach.key, uint64_t{byte} << 32 | row.number);
    }
  }
  return true;
}

// Notes the bytes that cannot follow: no expression of the lexeme, or of the lexeme behind it, begins with them.
void PlaceRows::open(Row& row, const Place& place) {
  ByteSet possible;
  auto add_first = [&](LexId lexer) {
    if (lexer == LexId::dead) return;
    possible = possible | stepping_.lexer().possible(lexer);
  };
  add_first(place.lexer);
  const Place after = stepping_.finished(place);
  if (after.set != SetId::none) add_first(after.lexer);
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (!possible.contains(static_cast<uint8_t>(byte))) row.next[byte] = none;
  }
  row.open = true;
}

}  // namespace constrain
