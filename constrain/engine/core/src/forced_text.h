// What a place leaves no choice about, and which tokens could go on beyond its end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stepping.h"
#include "vocabulary.h"

namespace constrain {

// Moves on to where there is a choice, or the text may end, and returns what lies between: at most `limit` bytes. Where a
// limit is met it is not known what else is possible, so nothing is forced.
std::string forced_bytes(Stepping& stepping, Place& place, size_t limit);

// Offsets into `text`, which ends at `place`, at which a token may begin that goes on beyond its end; ascending. Where a
// limit is met it may.
std::vector<uint32_t> open_starts(Stepping& stepping, const Vocabulary& vocabulary, std::string_view text, const Place& place);

}  // namespace constrain
