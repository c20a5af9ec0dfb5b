// Stepping over bytes.
#include "automaton.h"

#include "errors.h"

namespace constrain {

Automaton::Automaton(const Grammar& grammar, const Vocabulary& vocabulary, const Limits& limits)
    : grammar_(grammar),
      vocabulary_(vocabulary),
      limits_(limits),
      lexer_(grammar.expressions, grammar.terminals, grammar.remembered),
      parser_(grammar, lexer_, memory_) {
  lexer_.expressions().limit_searches(limits);
}

Automaton::Automaton(const Grammar& grammar, const Vocabulary& vocabulary, ToBeRestored)
    : grammar_(grammar), vocabulary_(vocabulary), parser_(grammar, lexer_, memory_, Parser::ToBeRestored{}) {}

Place Automaton::start() { return entered(parser_.start(), TrackId::start); }

Place Automaton::finished(const Place& place) {
  MatchId matched = lexer_.matched(place.lexer);
  if (matched == MatchId::none || place.fresh) return {};
  TextId text = lexer_.remembers(place.lexer) ? place.text : TextId::empty;
  TrackId track = grammar_.reads_groups ? parser_.read(place.track, matched, text) : place.track;
  SetId set = advance(place.set, matched, text, track);
  return set == SetId::none ? Place{} : entered(set, track);
}

bool Automaton::step(Place& place, uint8_t byte) {
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

bool Automaton::step(Place& place, std::string_view bytes) {
  Place next = place;
  for (char c : bytes) {
    if (!step(next, static_cast<uint8_t>(c))) return false;
  }
  place = next;
  return true;
}

bool Automaton::accepting(const Place& place) {
  if (place.fresh) return parser_.closure(place.set).accepting;
  const Place after = finished(place);
  return after.set != SetId::none && parser_.closure(after.set).accepting;
}

bool Automaton::surely_accepting(const Place& place) {
  try {
    return accepting(place);
  } catch (const LimitError& error) {  // not verified
    limits_met_.add(error.limit);
    return false;
  }
}

bool Automaton::allows(const Place& place, uint32_t token, const Wall* wall) {
  std::string_view bytes = vocabulary_.token(token);
  Place next = place;
  try {
    return !bytes.empty() && step(next, bytes) && (!wall || fits(next, *wall));
  } catch (const LimitError& error) {  // not verified, so not allowed
    limits_met_.add(error.limit);
    return false;
  }
}

ByteSet Automaton::next_bytes(const Place& place) {
  ByteSet result;
  for (unsigned b = 0; b < 256; ++b) {
    Place next = place;
    if (step(next, static_cast<uint8_t>(b))) result.add(static_cast<uint8_t>(b));
  }
  return result;
}

size_t Automaton::memory_bytes() const {
  return lexer_.memory_bytes() + memory_.memory_bytes() + parser_.memory_bytes() + mask_ids_.bytes() + mask_bytes_ + limited_mask_ids_.bytes() + unknown_needs_.bytes() +
         first_outlines_.bytes() + outline_ids_.bytes() + token_ids_.bytes() +
         rows_.size() * (sizeof(Row) + sizeof(void*)) + parts_.size() * 64 + parts_after_.bytes() + paths_.size() * (sizeof(OwnPath) + sizeof(Segment)) + path_ids_.bytes() +
         origin_costs_.bytes() + inside_.bytes() + text_mask_ids_.bytes() + units * set_bounds_[0].size() * sizeof(std::optional<Bound>) +
         units * path_ways_[0].size() * sizeof(std::optional<Way>) + origin_ways_.bytes() + shortest_tokens_.bytes() + ways_out_.bytes() + tokens_needed_.bytes() + end_ids_.bytes() + end_bytes_ +
         lexeme_rests_.bytes();
}

}  // namespace constrain
