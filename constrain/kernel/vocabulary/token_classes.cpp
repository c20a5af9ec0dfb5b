// Chooses tokens of classes.
#include "vocabulary/token_classes.h"

#include <charconv>
#include <tuple>

namespace constrain {

namespace {

constexpr uint32_t max_tried = 1'000;  // tokens of a class among which the one to show is chosen

}  // namespace

// A short printable text, if there is one.
uint32_t TokenClasses::shown(uint32_t id) const {
  if (id < vocabulary_.first_mark()) return id;
  const auto cost = [this](uint32_t token) {
    const std::string_view text = vocabulary_.text(token);
    const bool is_plain = std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
    return std::tuple(text.empty(), !is_plain, text.size());
  };
  const Ranges& ranges = ranges_[id - vocabulary_.first_mark()];
  uint32_t best = ranges[0].first, tried = 0;
  for (const auto& [first, last] : ranges) {
    for (uint32_t token = first; token <= last && tried < max_tried; ++token, ++tried) {
      if (cost(token) < cost(best)) best = token;
    }
  }
  return best;
}

std::string TokenClasses::spelled(std::string_view text) const {
  const std::string begin{mark_begin, class_mark};
  std::string result;
  for (size_t at; (at = text.find(begin)) != text.npos;) {
    const size_t end = text.find(mark_end, at);
    uint32_t number = 0;
    std::from_chars(text.data() + at + begin.size(), text.data() + end, number);
    const uint32_t token = shown(vocabulary_.first_mark() + number);
    result += text.substr(0, at);
    if (const std::string_view written = vocabulary_.text(token), name = vocabulary_.token(token); !written.empty() || !name.empty()) {
      result += written.empty() ? name : written;
    } else {
      result += mark_begin + ("<[" + std::to_string(token) + "]>") + mark_end;
    }
    text.remove_prefix(end + 1);
  }
  return result += text;
}

}  // namespace constrain
