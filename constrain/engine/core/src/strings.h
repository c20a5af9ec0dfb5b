// JSON strings by value: which text stands for all spellings of a string, and all its spellings as an expression.
//
// RFC 8259 section 7 lets every character be written as \uXXXX, some also as a short escape or as itself. The
// canonical spelling of a string is the one of ExpressionStore::char_class.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "expressions.h"

namespace constrain {

inline bool is_string(std::string_view text) { return !text.empty() && text[0] == '"'; }

// `text`, which begins with a JSON string, with the canonical spelling of that string.
std::string canonical_string(std::string_view text);

// All spellings of texts that each begin with a JSON string; what is behind the string is as it is.
ExprId string_spellings(ExpressionStore& store, const std::vector<std::string>& texts);

}  // namespace constrain
