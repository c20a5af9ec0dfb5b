// The one spelling of each character in a JSON string (RFC 8259 section 7), as in char_class.
#pragma once

#include <cstdint>
#include <string>

namespace constrain {

// Appends a byte of a text in UTF-8; only single bytes are escaped.
inline void spell_json(std::string& out, char c) {
  const auto byte = static_cast<uint8_t>(c);
  if (byte == '"' || byte == '\\') {
    out.push_back('\\');
    out.push_back(c);
  } else if (byte >= 0x20) {
    out.push_back(c);
  } else if (byte == 8 || byte == 9 || byte == 10 || byte == 12 || byte == 13) {
    out.push_back('\\');
    out.push_back("btn-fr"[byte - 8]);
  } else {
    out.append(byte < 16 ? "\\u000" : "\\u001");
    out.push_back("0123456789abcdef"[byte & 15]);
  }
}

}  // namespace constrain
