// JSON strings by value: the canonical text of a string, and all its spellings as an expression.
//
// RFC 8259 section 7 lets every character be written as \uXXXX, some also as a short escape or as itself. The
// canonical spelling of a string is that of char_class.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "expressions/expressions.h"

namespace constrain {

inline bool begins_number(std::string_view text) { return !text.empty() && (text[0] == '-' || (text[0] >= '0' && text[0] <= '9')); }
inline bool is_string(std::string_view text) { return !text.empty() && text[0] == '"'; }

// Replaces the JSON string at the beginning of `text` by its canonical spelling.
std::string canonical_string(std::string_view text);

// The canonical spelling of a string, with its quotes; `text` is UTF-8.
std::string spelled_string(std::string_view text);

// All spellings of texts that each begin with a JSON string; the bytes after the string stay as they are.
ExprId string_spellings(ExpressionStore& store, const std::vector<std::string>& texts);

}  // namespace constrain
