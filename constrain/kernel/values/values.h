// Values: what texts stand for, so that two spellings of one value are equal; and unfinished texts as values.
//
// A scalar is one lexeme: a number by value (as a decimal or as a double), another text as it is. A group has members:
// in order, or as a set with labels. A *track* is the part of a text read so far, by the roles of its lexemes: the open
// groups with their members. All are immutable and interned; a group of labelled members has the same id in any order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hashing.h"
#include "base/ids.h"

namespace constrain {

// The role of a lexeme in the value that contains it.
enum class Role : uint8_t { none, scalar, label, open_ordered, open_labelled, close };

struct Token {
  Role role = Role::none;
  ValueId value = ValueId::none;  // a scalar, or the text of a label
  auto operator<=>(const Token&) const = default;
};

class Values {
 public:
  Values();

  // by_double: numbers are equal if they read as the same IEEE double.
  void compare_by_double(bool by_double) { by_double_ = by_double; }
  bool by_double() const { return by_double_; }

  // strings_by_value: texts that begin with JSON strings are equal if these spell the same string.
  void compare_strings(bool strings_by_value) { strings_by_value_ = strings_by_value; }
  bool strings_by_value() const { return strings_by_value_; }

  ValueId scalar(std::string_view text);
  ValueId text(std::string_view text);  // the value of a label
  bool is_group(ValueId v) const { return values_[index(v)].kind != Kind::scalar; }
  bool is_decimal(ValueId v) const { return values_[index(v)].decimal; }
  const std::string& text(ValueId v) const { return texts_[values_[index(v)].begin]; }  // the normal form of a scalar

  // The track after one more lexeme. Unknown parts stay unknown.
  TrackId read(TrackId track, Token token);
  ValueId last(TrackId track) const;  // the value completed last in the open group

  // The lexemes with which a text continues to agree with `value`, if its `track` agrees so far.
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
    uint32_t begin, count;  // the text, or the members (members with labels sorted by label)
  };
  struct List {  // the members so far, the last first
    uint32_t before;
    Member member;
    Hash hash;
  };
  struct Track {
    TrackId around;  // the track in which this group was opened
    Kind kind;
    ValueId label;  // the label read, while its value is missing
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

// The plain decimal form of a JSON number (RFC 8259 section 6): no exponent, no superfluous zeros, no negative zero; in
// scientific form if the plain form would take thousands of digits. Empty if `text` is not a number.
std::string decimal_form(std::string_view text);

// The same for the shortest number that reads as the same IEEE double; beyond the greatest double, for the number
// itself.
std::string double_form(std::string_view text);

// Reads a JSON number as the nearest double. False if that is infinite, or 0 although the number is not.
bool read_double(std::string_view text, double& number);

}  // namespace constrain
