// Interns values and tracks.
#include "values/values.h"

#include <algorithm>
#include <charconv>

#ifndef __cpp_lib_to_chars
#include <locale.h>
#include <stdlib.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

#include <cmath>
#endif

#include "values/strings.h"

namespace constrain {

namespace {

constexpr long long longest_plain_form = 5'000;
constexpr size_t max_short_form = 15;
constexpr long long greatest_exponent = 1'000'000'000;  // greater exponents count as this one

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// RFC 8259 section 6.
bool is_number(std::string_view text) {
  size_t at = 0;
  auto digits = [&] {
    const size_t begin = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return at - begin;
  };
  auto next = [&](char c) { return at < text.size() && text[at] == c; };
  if (next('-')) ++at;
  const bool zero = next('0');
  const size_t whole = digits();
  if (whole == 0 || (zero && whole > 1)) return false;
  if (next('.')) {
    ++at;
    if (digits() == 0) return false;
  }
  if (next('e') || next('E')) {
    ++at;
    if (next('+') || next('-')) ++at;
    if (digits() == 0) return false;
  }
  return at == text.size();
}

Hash text_hash(uint64_t tag, std::string_view text) {
  Hash hash = mix(seeded(tag), text.size());
  uint64_t word = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    word = (word << 8) | static_cast<uint8_t>(text[i]);
    if (i % 8 == 7) hash = mix(hash, word);
  }
  return mix(hash, word);
}

}  // namespace

Magnitude magnitude_of(std::string_view text) {
  Magnitude result;
  result.negative = text[0] == '-';
  if (result.negative) text.remove_prefix(1);
  const size_t end = std::min(text.find_first_of("eE"), text.size());
  std::string_view mantissa = text.substr(0, end);
  for (char c : mantissa) {
    if (c != '.') result.digits.push_back(c);
  }
  result.point = static_cast<long long>(std::min(mantissa.find('.'), mantissa.size()));
  if (end < text.size()) {
    const bool down = text[end + 1] == '-';
    long long exponent = 0;
    for (char c : text.substr(end + 1)) {
      if (is_digit(c)) exponent = std::min(exponent * 10 + (c - '0'), greatest_exponent);
    }
    result.point += down ? -exponent : exponent;
  }
  const size_t zeros = result.digits.find_first_not_of('0');
  if (zeros == std::string::npos) return {};
  result.digits.erase(0, zeros);
  result.point -= static_cast<long long>(zeros);
  result.digits.erase(result.digits.find_last_not_of('0') + 1);
  return result;
}

std::string decimal_form(std::string_view text) {
  if (!is_number(text)) return {};
  const Magnitude number = magnitude_of(text);
  if (number.digits.empty()) return "0";
  const std::string sign = number.negative ? "-" : "";
  const auto count = static_cast<long long>(number.digits.size());
  const long long point = number.point;
  if (point > longest_plain_form || point < -longest_plain_form) return sign + "0." + number.digits + "e" + std::to_string(point);
  if (point <= 0) return sign + "0." + std::string(static_cast<size_t>(-point), '0') + number.digits;
  if (point >= count) return sign + number.digits + std::string(static_cast<size_t>(point - count), '0');
  return sign + number.digits.substr(0, static_cast<size_t>(point)) + "." + number.digits.substr(static_cast<size_t>(point));
}

bool read_double(std::string_view text, double& number) {
#ifdef __cpp_lib_to_chars
  return std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc();
#else  // libc++ before version 20 reads no doubles
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  number = strtod_l(std::string(text).c_str(), nullptr, plain);
  return std::isfinite(number) && (number != 0 || text.find_first_of("123456789") >= text.find_first_of("eE"));
#endif
}

std::string double_form(std::string_view text) {
  std::string form = decimal_form(text);
  if (form.size() <= max_short_form) return form;  // each of these is the shortest for its double
  double number = 0;
  if (!read_double(text, number)) return magnitude_of(text).point > 0 ? form : "0";
  char shortest[32];
  const auto written = std::to_chars(shortest, shortest + sizeof shortest, number);
  return decimal_form({shortest, written.ptr});
}

Values::Values() {
  texts_.emplace_back();
  for (Kind kind : {Kind::scalar, Kind::scalar, Kind::ordered}) values_.push_back({kind, false, 0, 0});  // the values that ValueId names
  lists_.push_back({0, {}, seeded(0x6C697374)});
  tracks_.push_back({TrackId::unknown, Kind::top, ValueId::none, 0, 0, ValueId::unknown_group});
  intern(Track{TrackId::unknown, Kind::top, ValueId::none, 0, 0, ValueId::none});  // TrackId::start
}

ValueId Values::scalar(std::string_view text) {
  bool may_be_decimal = !text.empty() && (text[0] == '-' || is_digit(text[0]));
  std::string form = !may_be_decimal ? std::string() : by_double_ ? double_form(text) : decimal_form(text);
  return form.empty() ? this->text(text) : intern(form, true);
}

ValueId Values::text(std::string_view text) {
  if (strings_by_value_ && is_string(text)) return intern(canonical_string(text), false);
  return intern(text, false);
}

ValueId Values::intern(std::string_view form, bool decimal) {
  Hash key = text_hash(decimal ? 0x646563 : 0x746578, form);
  if (const uint32_t* found = value_ids_.find(key)) return ValueId{*found};
  auto id = static_cast<uint32_t>(values_.size());
  text_bytes_ += form.size();
  values_.push_back({Kind::scalar, decimal, static_cast<uint32_t>(texts_.size()), 0});
  texts_.emplace_back(form);
  value_ids_.insert(key, id);
  return ValueId{id};
}

TrackId Values::intern(const Track& track) {
  Hash key = mix(seeded(0x747261636B + static_cast<uint64_t>(track.kind)), paired(track.around, track.label));
  key = mix(mix(key, paired(track.members, track.count)), index(track.last));
  if (const uint32_t* found = track_ids_.find(key)) return TrackId{*found};
  auto id = static_cast<uint32_t>(tracks_.size());
  tracks_.push_back(track);
  track_ids_.insert(key, id);
  return TrackId{id};
}

// Appends a member. A labelled group counts as a set, so the hashes of its members are added up.
TrackId Values::append(Track track, ValueId value) {
  track.last = value;
  if (track.kind != Kind::top) {
    const Hash before = lists_[track.members].hash;
    Hash hash;
    if (track.kind == Kind::labelled) {
      Hash one = mix(seeded(0x6D656D626572), paired(track.label, value));
      hash = {before.low + one.low, before.high + one.high};
    } else {
      hash = mix(before, index(value));
    }
    if (const uint32_t* found = list_ids_.find(hash)) {
      track.members = *found;
    } else {
      lists_.push_back({track.members, {track.label, value}, hash});
      track.members = static_cast<uint32_t>(lists_.size() - 1);
      list_ids_.insert(hash, track.members);
    }
    ++track.count;
    track.label = ValueId::none;
  }
  return intern(track);
}

ValueId Values::group(const Track& track) {
  Hash key = mix(mix(seeded(0x67726F7570 + static_cast<uint64_t>(track.kind)), lists_[track.members].hash), track.count);
  if (const uint32_t* found = value_ids_.find(key)) return ValueId{*found};
  auto begin = static_cast<uint32_t>(members_.size());
  for (uint32_t at = track.members; at != 0; at = lists_[at].before) members_.push_back(lists_[at].member);
  if (track.kind == Kind::ordered) {
    std::reverse(members_.begin() + begin, members_.end());
  } else {
    std::sort(members_.begin() + begin, members_.end(), [](const Member& a, const Member& b) { return a.label < b.label; });
  }
  auto id = static_cast<uint32_t>(values_.size());
  values_.push_back({track.kind, false, begin, static_cast<uint32_t>(members_.size()) - begin});
  value_ids_.insert(key, id);
  return ValueId{id};
}

TrackId Values::read(TrackId id, Token token) {
  if (id == TrackId::unknown || token.role == Role::none) return id;
  Track track = tracks_[index(id)];
  switch (token.role) {
    case Role::none:
      break;
    case Role::scalar:
      return token.value == ValueId::unknown_scalar ? TrackId::unknown : append(track, token.value);
    case Role::label:
      if (token.value == ValueId::unknown_scalar) return TrackId::unknown;
      track.label = token.value;
      return intern(track);
    case Role::open_ordered:
    case Role::open_labelled:
      return intern({id, token.role == Role::open_ordered ? Kind::ordered : Kind::labelled, ValueId::none, 0, 0, ValueId::none});
    case Role::close:
      if (track.kind == Kind::top) return TrackId::unknown;
      return append(tracks_[index(track.around)], group(track));
  }
  return id;
}

ValueId Values::last(TrackId track) const { return tracks_[index(track)].last; }

ValueId Values::labelled_member(ValueId group, ValueId label) const {
  const Value& value = values_[index(group)];
  auto begin = members_.begin() + value.begin, end = begin + value.count;
  auto place = std::lower_bound(begin, end, label, [](const Member& m, ValueId wanted) { return m.label < wanted; });
  return place != end && place->label == label ? place->value : ValueId::none;
}

// The group within `value` that corresponds to the open group of `track`, if both agree so far.
ValueId Values::counterpart(TrackId track, ValueId value) const {
  std::vector<const Track*> around;  // the open groups, inner ones first, without the track's own
  const Track* open = &tracks_[index(track)];
  while (open->kind != Kind::top) {
    open = &tracks_[index(open->around)];
    if (open->kind != Kind::top) around.push_back(open);
  }
  for (size_t i = around.size(); i-- > 0;) {
    const Track& group = *around[i];
    value = group.kind == Kind::labelled ? labelled_member(value, group.label) : members_[values_[index(value)].begin + group.count].value;
  }
  return value;
}

Token Values::first_token(ValueId value) const {
  switch (values_[index(value)].kind) {
    case Kind::ordered:
      return {Role::open_ordered};
    case Kind::labelled:
      return {Role::open_labelled};
    default:
      return {Role::scalar, value};
  }
}

void Values::next_tokens(TrackId id, ValueId value, std::vector<Token>& out) const {
  const Track& track = tracks_[index(id)];
  if (track.kind == Kind::top) {
    if (track.last == ValueId::none) out.push_back(first_token(value));
    return;
  }
  const ValueId group = counterpart(id, value);
  const Value& whole = values_[index(group)];
  if (track.label != ValueId::none) {
    out.push_back(first_token(labelled_member(group, track.label)));
  } else if (track.count == whole.count) {
    out.push_back({Role::close});
  } else if (track.kind == Kind::ordered) {
    out.push_back(first_token(members_[whole.begin + track.count].value));
  } else {
    std::vector<ValueId> there;
    for (uint32_t at = track.members; at != 0; at = lists_[at].before) there.push_back(lists_[at].member.label);
    std::sort(there.begin(), there.end());
    for (uint32_t i = whole.begin; i < whole.begin + whole.count; ++i) {
      if (!std::binary_search(there.begin(), there.end(), members_[i].label)) out.push_back({Role::label, members_[i].label});
    }
  }
}

size_t Values::memory_bytes() const {
  return values_.size() * sizeof(Value) + texts_.size() * sizeof(std::string) + text_bytes_ + members_.size() * sizeof(Member) +
         lists_.size() * sizeof(List) + tracks_.size() * sizeof(Track) + value_ids_.bytes() + list_ids_.bytes() + track_ids_.bytes();
}

}  // namespace constrain
