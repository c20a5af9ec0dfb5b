// Reads and spells the characters of JSON strings.
#include "values/strings.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

namespace constrain {

namespace {

// A code point inside a string, or no_code_point + a byte that belongs to none.
using CodeUnit = uint32_t;
using CodeUnits = std::vector<CodeUnit>;

constexpr CodeUnit no_code_point = 0x110000;
constexpr size_t max_branchings = 64;  // consecutive, in a tree of texts; beyond, one alternative per text
constexpr std::string_view short_letters = "\"\\/bfnrt";
constexpr std::string_view short_characters = "\"\\/\b\f\n\r\t";
constexpr std::string_view hex_digits = "0123456789abcdef";

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// The number that the six characters `\uXXXX` at `at` write, or -1.
long escaped_unit(std::string_view text, size_t at) {
  if (text.size() < at + 6 || text[at] != '\\' || text[at + 1] != 'u') return -1;
  long result = 0;
  for (char c : text.substr(at + 2, 4)) {
    if (hex_value(c) < 0) return -1;
    result = 16 * result + hex_value(c);
  }
  return result;
}

// The character at `at`; moves past it.
CodeUnit next_unit(std::string_view text, size_t& at) {
  const auto byte = static_cast<uint8_t>(text[at]);
  if (byte == '\\' && at + 1 < text.size()) {
    if (const size_t which = short_letters.find(text[at + 1]); which != std::string_view::npos) {
      at += 2;
      return static_cast<uint8_t>(short_characters[which]);
    }
    const long unit = escaped_unit(text, at);
    const long low = unit >= 0xD800 && unit <= 0xDBFF ? escaped_unit(text, at + 6) : -1;
    if (low >= 0xDC00 && low <= 0xDFFF) {
      at += 12;
      return static_cast<CodeUnit>(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00));
    }
    if (unit >= 0 && (unit < 0xD800 || unit > 0xDFFF)) {
      at += 6;
      return static_cast<CodeUnit>(unit);
    }
  }
  const size_t more = byte < 0xC0 ? 0 : byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
  ++at;
  if (byte < 0x80) return byte;
  if (more == 0 || at + more > text.size()) return no_code_point + byte;
  CodeUnit code = byte & (0x3Fu >> more);
  for (size_t i = 0; i < more; ++i) code = (code << 6) | (static_cast<uint8_t>(text[at + i]) & 0x3Fu);
  at += more;
  return code;
}

CodeUnits units_of(std::string_view text) {
  CodeUnits result{no_code_point + '"'};
  size_t at = 1;
  while (at < text.size() && text[at] != '"') result.push_back(next_unit(text, at));
  for (; at < text.size(); ++at) result.push_back(no_code_point + static_cast<uint8_t>(text[at]));
  return result;
}

void append_utf8(std::string& out, CodeUnit code) {
  auto put = [&out](CodeUnit byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) return put(code);
  const unsigned more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr CodeUnit leads[] = {0, 0xC0, 0xE0, 0xF0};
  put(leads[more] | (code >> (6 * more)));
  for (unsigned i = more; i-- > 0;) put(0x80 | ((code >> (6 * i)) & 0x3F));
}

void append_canonical(std::string& out, CodeUnit unit) {
  if (unit >= no_code_point) {
    out.push_back(static_cast<char>(unit - no_code_point));
    return;
  }
  const size_t which = unit < 0x80 && unit != '/' ? short_characters.find(static_cast<char>(unit)) : std::string_view::npos;
  if (which != std::string_view::npos) {
    out += {'\\', short_letters[which]};
  } else if (unit < 0x20) {
    out += {'\\', 'u', '0', '0', hex_digits[unit >> 4], hex_digits[unit & 15]};
  } else {
    append_utf8(out, unit);
  }
}

class Speller {
 public:
  explicit Speller(ExpressionStore& store) : e_(store) {}

  // All of `texts` from byte `begin` on; they are sorted, distinct, and equal before it.
  ExprId tree(std::span<const CodeUnits> texts, size_t begin, size_t branchings) {
    const CodeUnits& low = texts.front();
    if (texts.size() == 1) return chain(low, begin, low.size(), ExprId::epsilon);
    std::vector<ExprId> parts;
    if (branchings == max_branchings) {
      for (const CodeUnits& text : texts) parts.push_back(chain(text, begin, text.size(), ExprId::epsilon));
      return e_.alternation(std::move(parts));
    }
    const CodeUnits& high = texts.back();
    const auto at = static_cast<size_t>(std::mismatch(low.begin(), low.end(), high.begin(), high.end()).first - low.begin());
    if (low.size() == at) {
      parts.push_back(ExprId::epsilon);
      texts = texts.subspan(1);
    }
    while (!texts.empty()) {
      const CodeUnit first = texts.front()[at];
      const auto end = std::find_if(texts.begin(), texts.end(), [&](const CodeUnits& text) { return text[at] != first; });
      const auto count = static_cast<size_t>(end - texts.begin());
      parts.push_back(e_.concatenation(spellings(first), tree(texts.first(count), at + 1, branchings + 1)));
      texts = texts.subspan(count);
    }
    return chain(low, begin, at, e_.alternation(std::move(parts)));
  }

 private:
  ExprId chain(const CodeUnits& units, size_t begin, size_t end, ExprId rest) {
    for (size_t i = end; i-- > begin;) rest = e_.concatenation(spellings(units[i]), rest);
    return rest;
  }

  ExprId escape(CodeUnit number) {
    ExprId result = ExprId::epsilon;
    for (unsigned shift = 0; shift < 16; shift += 4) {
      const char digit = hex_digits[(number >> shift) & 15];
      ByteSet cases;
      cases.add(static_cast<uint8_t>(digit));
      if (digit >= 'a') cases.add(static_cast<uint8_t>(digit - 0x20));
      result = e_.concatenation(e_.bytes(cases), result);
    }
    return e_.concatenation(e_.literal("\\u"), result);
  }

  ExprId spellings(CodeUnit unit) {
    if (unit < known_.size() && known_[unit] != ExprId::nothing) return known_[unit];
    std::string canonical;
    append_canonical(canonical, unit);
    std::vector<ExprId> parts{e_.literal(canonical)};
    if (unit == '/') parts.push_back(e_.literal("\\/"));
    if (unit < 0x10000) {
      parts.push_back(escape(unit));
    } else if (unit < no_code_point) {
      parts.push_back(e_.concatenation(escape(0xD800 + ((unit - 0x10000) >> 10)), escape(0xDC00 + (unit & 0x3FF))));
    }
    const ExprId result = e_.alternation(std::move(parts));
    if (unit < known_.size()) known_[unit] = result;
    return result;
  }

  ExpressionStore& e_;
  std::vector<ExprId> known_ = std::vector<ExprId>(0x80, ExprId::nothing);  // of the ASCII characters
};

}  // namespace

std::string canonical_string(std::string_view text) {
  if (text.find('\\') == std::string_view::npos) return std::string(text);
  std::string result;
  for (CodeUnit unit : units_of(text)) append_canonical(result, unit);
  return result;
}

std::string spelled_string(std::string_view text) {
  std::string result{'"'};
  for (char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    append_canonical(result, byte < 0x80 ? byte : no_code_point + byte);
  }
  return result += '"';
}

ExprId string_spellings(ExpressionStore& store, const std::vector<std::string>& texts) {
  std::vector<CodeUnits> all;
  for (const std::string& text : texts) all.push_back(units_of(text));
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all.empty() ? ExprId::nothing : Speller(store).tree(all, 0, 0);
}

}  // namespace constrain
