// Outlines of masks: what a mask was told from, so that the same place in another context need not compute it once more.
#include <algorithm>

#include "automaton.h"
#include "errors.h"

namespace constrain {

namespace {

constexpr size_t max_outline = 64;   // lexemes that are looked at
constexpr size_t max_outlines = 32;  // that are tried

}  // namespace

Array<SetId> Automaton::distinct(std::vector<SetId> sets) {
  std::sort(sets.begin(), sets.end());
  sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
  sets.shrink_to_fit();
  return Array(std::move(sets));
}

// The set after a lexeme. While a mask is computed, it is noted.
SetId Automaton::advance(SetId set, MatchId matched, TextId text, TrackId track) {
  const SetId next = parser_.advance(set, matched, text, track);
  if (!ahead_.noting || ahead_.lexemes.size() > max_outline) return next;
  if (!parser_.closure(set).uses_text) text = TextId::empty;
  const uint32_t from = number_of(set);
  for (const Outline::Lexeme& each : ahead_.lexemes) {
    if (each.from == from && each.matched == matched && each.text == text) return next;
  }
  ahead_.lexemes.push_back({from, number_of(next), matched, text, look_at(next)});
  return next;
}

uint32_t Automaton::number_of(SetId set) {
  const auto found = std::find(ahead_.sets.begin(), ahead_.sets.end(), set);
  const auto number = static_cast<uint32_t>(found - ahead_.sets.begin());
  if (found == ahead_.sets.end()) ahead_.sets.push_back(set);
  return number;
}

Outline::Look Automaton::look_at(SetId set) {
  if (set == SetId::none) return {};
  const Parser::Closure& closure = parser_.closure(set);
  return {closure.start, true, closure.accepting, closure.uses_text};
}

// Which outlines to try: those where the lexeme that comes first in this lexer state leads to what looks the same.
Hash Automaton::outline_key(const Place& place, const Outline& first) {
  Hash key = mix(seeded(0x6F75746C), index(place.lexer));
  if (first.lexemes.empty()) return key;
  const Outline::Lexeme& lexeme = *first.lexemes.begin();
  const Outline::Look look = look_at(parser_.advance(place.set, lexeme.matched, lexeme.text, TrackId::unknown));
  return mix(mix(key, index(look.start)), (look.exists ? 1u : 0u) | (look.accepting ? 2u : 0u) | (look.uses_text ? 4u : 0u));
}

bool Automaton::find_alike(Mask& mask, const Place& place) {
  if (grammar_.reads_groups || place.lexer == LexId::dead) return false;  // rivals are more than what is looked at
  const uint32_t* first = first_outlines_.find(index(place.lexer));
  if (!first) return false;
  std::vector<SetId> sets;
  try {
    const uint32_t* found = outline_ids_.find(outline_key(place, outlines_[*first]));
    for (uint32_t id = found ? *found : Outline::none; id != Outline::none; id = outlines_[id].next) {
      const Outline& outline = outlines_[id];
      if (!looks_alike(outline, place.set, sets)) continue;
      ++shared_masks_;
      mask.tokens = outline.tokens;
      std::vector<SetId> ends;
      for (uint32_t end : outline.ends) ends.push_back(sets[end]);
      mask.sets = distinct(std::move(ends));
      return true;
    }
  } catch (const LimitError&) {  // the mask itself is computed, or cut short, by what it needs
  }
  return false;
}

bool Automaton::looks_alike(const Outline& outline, SetId set, std::vector<SetId>& sets) {
  if (parser_.closure(set).uses_text != outline.uses_text) return false;
  sets.assign(1, set);
  for (const Outline::Lexeme& each : outline.lexemes) {
    const SetId next = parser_.advance(sets[each.from], each.matched, each.text, TrackId::unknown);
    if (each.to == sets.size()) {
      sets.push_back(next);
    } else if (sets[each.to] != next) {
      return false;
    }
    if (look_at(next) != each.look) return false;
  }
  return true;
}

void Automaton::keep_outline(const Mask& mask, const Place& place, const LookAhead& ahead) {
  if (grammar_.reads_groups || place.lexer == LexId::dead || ahead.lexemes.size() > max_outline) return;
  const auto id = static_cast<uint32_t>(outlines_.size());
  std::vector<uint32_t> ends;
  for (SetId end : mask.sets) {
    ends.push_back(static_cast<uint32_t>(std::find(ahead.sets.begin(), ahead.sets.end(), end) - ahead.sets.begin()));
  }
  Outline outline{parser_.closure(place.set).uses_text, Array(ahead.lexemes), Array(std::move(ends)), mask.tokens};
  const uint32_t* first = first_outlines_.find(index(place.lexer));
  Hash key;
  try {
    key = outline_key(place, first ? outlines_[*first] : outline);
  } catch (const LimitError&) {  // the mask is known all the same
    return;
  }
  if (!first) first_outlines_.insert(index(place.lexer), id);
  if (const uint32_t* found = outline_ids_.find(key)) {
    uint32_t last = *found;
    for (size_t tried = 1; outlines_[last].next != Outline::none; last = outlines_[last].next) {
      if (++tried == max_outlines) return;
    }
    outlines_[last].next = id;
  } else {
    outline_ids_.insert(key, id);
  }
  mask_bytes_ += sizeof outline + outline.lexemes.own_bytes() + outline.ends.own_bytes();
  outlines_.push_back(std::move(outline));
}

}  // namespace constrain
