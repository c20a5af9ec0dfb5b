// Forced text of a place, and the tokens that may continue beyond its end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "parsing/stepping.h"
#include "vocabulary/vocabulary.h"

namespace constrain {

// Moves on until there is a choice or the text may end; returns the bytes read, at most `limit`. If a limit of the
// kernel is met, other continuations are unknown, so nothing is forced.
std::string forced_bytes(Stepping& stepping, Place& place, size_t limit);

// Offsets into `text`, which ends at `place`, at which a token may begin that continues beyond the end; ascending. If a
// limit of the kernel is met, a token counts as possible.
std::vector<uint32_t> open_starts(Stepping& stepping, const Vocabulary& vocabulary, std::string_view text, const Place& place);

}  // namespace constrain
