// Reads bytes, from place to place.
#include "parsing/stepping.h"

#include <algorithm>

#include "base/errors.h"
#include "vocabulary/vocabulary.h"

namespace constrain {

Stepping::Stepping(const Grammar& grammar, const Limits& limits)
    : grammar_(grammar), limits_(limits), lexer_(grammar.expressions, grammar.terminals, grammar.remembered, grammar.lazy) {
  slots_.begin();
  parser_.begin();
  expressions().work().limit_decisions(limits.nested_decisions);
}

Place Stepping::finished(const Place& place) {
  MatchId matched = lexer_.matched(place.lexer);
  if (matched == MatchId::none || place.fresh) return {};
  TextId text = lexer_.remembers(place.lexer) ? place.text : TextId::empty;
  TrackId track = grammar_.reads_groups ? parser_.read(place.track, matched, text) : place.track;
  SetId set = parser_.advance(place.set, matched, text, track);
  return set == SetId::none ? Place{} : entered(set, track);
}

bool Stepping::step(Place& place, uint8_t byte) {
  LexId next = lexer_.step(place.lexer, byte);
  if (next != LexId::dead) {
    place.lexer = next;
    place.text = lexer_.remembers(next) ? memory_.extend(place.text, byte) : TextId::empty;
    place.fresh = false;
    return true;
  }
  const Place after = finished(place);
  if (after.set == SetId::none) return false;
  next = lexer_.step(after.lexer, byte);
  if (next == LexId::dead) return false;
  place = {next, after.set, lexer_.remembers(next) ? memory_.extend(TextId::empty, byte) : TextId::empty, false, after.track};
  return true;
}

bool Stepping::step(Place& place, std::string_view bytes) {
  Place next = place;
  for (char c : bytes) {
    if (!step(next, static_cast<uint8_t>(c))) return false;
  }
  place = next;
  return true;
}

bool Stepping::accepting(const Place& place) {
  if (place.fresh) return parser_.closure(place.set).accepting;
  const Place after = finished(place);
  return after.set != SetId::none && parser_.closure(after.set).accepting;
}

bool Stepping::surely_accepting(const Place& place, LimitSet& met) {
  try {
    return accepting(place);
  } catch (const LimitError& error) {  // not verified
    met.add(error.limit);
    return false;
  }
}

std::vector<std::pair<std::string, Place>> Stepping::marks_from(const Place& place) {
  std::vector<std::pair<std::string, Place>> found, begun{{"", place}};
  while (!begun.empty()) {
    const auto [read, at] = std::move(begun.back());
    begun.pop_back();
    next_bytes(at).each([&, &read = read, &at = at](uint8_t byte) {
      Place next = at;
      step(next, byte);
      (static_cast<char>(byte) == mark_end ? found : begun).emplace_back(read + static_cast<char>(byte), next);
    });
  }
  return found;
}

ByteSet Stepping::next_bytes(const Place& place) {
  ByteSet result;
  for (unsigned b = 0; b < 256; ++b) {
    Place next = place;
    if (step(next, static_cast<uint8_t>(b))) result.add(static_cast<uint8_t>(b));
  }
  return result;
}

}  // namespace constrain
