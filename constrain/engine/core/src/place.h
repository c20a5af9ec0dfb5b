// A place: where a text stands. A value, as small as it is so that matchers keep one for each token.
#pragma once

#include "ids.h"

namespace constrain {

// Invariant: `set` is SetId::none where there is no such place; `text` is TextId::empty unless the lexer state remembers.
struct Place {
  LexId lexer{};                   // the lexeme under way
  SetId set{};                     // before it
  TextId text{};                   // of it, if that is remembered
  bool fresh = true;               // nothing of it has been read
  TrackId track = TrackId::start;  // what has been read before it, where values must be distinct
};

}  // namespace constrain
