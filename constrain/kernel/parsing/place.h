// A place: the position of a text in the automaton. A small value, because matchers keep one for each token.
#pragma once

#include "base/ids.h"

namespace constrain {

// Invariant: `set` is SetId::none for an impossible place; `text` is TextId::empty unless the lexer state remembers.
struct Place {
  LexId lexer{};                   // the current lexeme
  SetId set{};                     // the set before it
  TextId text{};                   // its text, if that is remembered
  bool fresh = true;               // none of its bytes has been read
  TrackId track = TrackId::start;  // the values read before it, if values must be distinct
  uint32_t used = 0;               // tokens that began in it; counted only if some terminal has a token limit

  friend bool operator==(const Place&, const Place&) = default;
};

}  // namespace constrain
