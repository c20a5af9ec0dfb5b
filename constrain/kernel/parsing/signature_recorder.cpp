// Notes lexemes and sets.
#include "parsing/signature_recorder.h"

#include <algorithm>

namespace constrain {

SetLook look_at(Parser& parser, SetId set) {
  if (set == SetId::none) return {};
  const Parser::Closure& closure = parser.closure(set);
  return {closure.start, true, closure.accepting, closure.uses_text};
}

void SignatureRecorder::record(SetId set, MatchId matched, TextId text, SetId next) {
  if (!notes_lexemes_ || lexemes_.size() > max_lexemes) return;
  if (!parser_.closure(set).uses_text) text = TextId::empty;
  const uint32_t from = number_of(set);
  for (const EndedLexeme& each : lexemes_) {
    if (each.from == from && each.matched == matched && each.text == text) return;
  }
  lexemes_.push_back({from, number_of(next), matched, text, look_at(parser_, next)});
}

uint32_t SignatureRecorder::number_of(SetId set) {
  const auto found = std::find(sets_.begin(), sets_.end(), set);
  const auto number = static_cast<uint32_t>(found - sets_.begin());
  if (found == sets_.end()) sets_.push_back(set);
  return number;
}

}  // namespace constrain
