// Items of the parser, and the steps that lead to them.
#pragma once

#include <cstdint>

#include "base/ids.h"

namespace constrain {

struct Item {
  StateId state;
  OriginId origin;
  MemoryId memory;
  auto operator<=>(const Item&) const = default;
};

// A terminal that may come next, and the item it leads to.
struct Step {
  TermId terminal;
  Item next;
  int32_t remember;  // slot of next.memory that gets the lexeme's text or value, or -1
};

}  // namespace constrain
