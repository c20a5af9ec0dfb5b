// Values: what texts stand for, so that two spellings of one value are the same; and texts under way as values.
//
// A scalar is a lexeme: numbers by value (as decimals or as doubles), other texts as they are. A group has members: in
// order, or as a set with labels. A *track* is what has been read of a text by the roles of its lexemes: the groups that
// are open, with their members so far. All are immutable and interned; a group of labelled members has one id in any
// order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hashing.h"
#include "ids.h"

namespace constrain {

// What a lexeme is to the value it is part of.
enum class Role : uint8_t { none, scalar, label, open_ordered, open_labelled, close };

struct Token {
  Role role = Role::none;
  ValueId value = ValueId::none;  // of a scalar, or the text of a label
  auto operator<=>(const Token&) const = default;
};

class Values {
 public:
  Values();

  // by_double: numbers are the same if they read as the same IEEE double.
  void compare_by_double(bool by_double) { by_double_ = by_double; }
  bool by_double() const { return by_double_; }

  // strings_by_value: texts that begin with JSON strings are the same if these spell the same string.
  void compare_strings(bool strings_by_value) { strings_by_value_ = strings_by_value; }
  bool strings_by_value() const { return strings_by_value_; }

  ValueId scalar(std::string_view text);
  ValueId text(std::string_view text);  // of a label
  bool is_group(ValueId v) const { return values_[index(v)].kind != Kind::scalar; }
  bool is_decimal(ValueId v) const { return values_[index(v)].decimal; }
  const std::string& text(ValueId v) const { return texts_[values_[index(v)].begin]; }  // normal form of a scalar

  // The track after one more lexeme. What is not known stays so.
  TrackId read(TrackId track, Token token);
  ValueId last(TrackId track) const;  // the value completed last in the group that is open

  // The lexemes with which a text on `track`, which agrees with `value` so far, goes on to agree with it.
  void next_tokens(TrackId track, ValueId value, std::vector<Token>& out) const;

  size_t memory_bytes() const;

  template <typename Archive>
  void visit(Archive& archive) {
    archive(values_, texts_, members_, lists_, tracks_, value_ids_, list_ids_, track_ids_, text_bytes_, by_double_, strings_by_value_);
  }

 private:
  enum class Kind : uint8_t { scalar, ordered, labelled, top };
  struct Member {
    ValueId label;
    ValueId value;
  };
  struct Value {
    Kind kind;
    bool decimal;
    uint32_t begin, count;  // text, or members (those with labels sorted by label)
  };
  struct List {  // members so far, the last first
    uint32_t before;
    Member member;
    Hash hash;
  };
  struct Track {
    TrackId around;  // where this group was opened
    Kind kind;
    ValueId label;  // read, and its value not yet
    uint32_t members, count;
    ValueId last;
  };

  ValueId intern(std::string_view form, bool decimal);
  TrackId intern(const Track& track);
  ValueId group(const Track& track);
  TrackId append(Track track, ValueId value);
  ValueId counterpart(TrackId track, ValueId value) const;
  ValueId labelled_member(ValueId group, ValueId label) const;
  Token first_token(ValueId value) const;

  std::vector<Value> values_;
  std::vector<std::string> texts_;
  std::vector<Member> members_;
  std::vector<List> lists_;
  std::vector<Track> tracks_;
  FlatMap<Hash, uint32_t> value_ids_;
  FlatMap<Hash, uint32_t> list_ids_;
  FlatMap<Hash, uint32_t> track_ids_;
  size_t text_bytes_ = 0;
  bool by_double_ = false;
  bool strings_by_value_ = false;
};

// 0.DIGITS times ten to the power of `point`; zero has no digits. The first and the last digit are not 0.
struct Magnitude {
  bool negative = false;
  std::string digits;
  long long point = 0;
};
Magnitude magnitude_of(std::string_view number);  // of a JSON number

// The plain decimal form of a JSON number (RFC 8259 section 6): no exponent, no zeros at the ends, no negative zero; in
// scientific form where that would take thousands of digits. Empty if `text` is no number.
std::string decimal_form(std::string_view text);

// The same of the shortest number that reads as the same IEEE double; of the number itself beyond the greatest double.
std::string double_form(std::string_view text);

}  // namespace constrain
