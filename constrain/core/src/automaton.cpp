// One generation as a whole.
#include "automaton.h"

#include "errors.h"

namespace constrain {

Automaton::Automaton(const Grammar& grammar, const Vocabulary& vocabulary, const Limits& limits)
    : grammar_(grammar), vocabulary_(vocabulary), stepping_(grammar, limits) {}

Automaton::Automaton(const Grammar& grammar, const Vocabulary& vocabulary, ToBeRestored)
    : grammar_(grammar), vocabulary_(vocabulary), stepping_(grammar, Stepping::ToBeRestored{}) {}

bool Automaton::allows(const Place& place, uint32_t token, const Wall* wall) {
  std::string_view bytes = vocabulary_.token(token);
  Place next = place;
  try {
    return !bytes.empty() && stepping_.step(next, bytes) && (!wall || fits(next, *wall));
  } catch (const LimitError& error) {  // not verified, so not allowed
    limits_met_.add(error.limit);
    return false;
  }
}

size_t Automaton::memory_bytes() const {
  return stepping_.memory_bytes() + mask_ids_.bytes() + mask_bytes_ + limited_mask_ids_.bytes() + unknown_needs_.bytes() +
         signatures_.memory_bytes() + token_ids_.bytes() +
         rows_.memory_bytes() + independent_.memory_bytes() + ends_.memory_bytes() + paths_.size() * (sizeof(OwnPath) + sizeof(Segment)) + path_ids_.bytes() +
         origin_costs_.bytes() + text_mask_ids_.bytes() + units * set_bounds_[0].size() * sizeof(std::optional<Bound>) +
         units * path_ways_[0].size() * sizeof(std::optional<Way>) + origin_ways_.bytes() + shortest_tokens_.bytes() + ways_out_.bytes() + tokens_needed_.bytes() +
         lexeme_rests_.bytes();
}

}  // namespace constrain
