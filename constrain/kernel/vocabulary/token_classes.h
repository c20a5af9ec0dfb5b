// Classes of tokens: tokens that no set of the grammar tells apart.
//
// A token of a class may be read in two ways, by its text and as the mark of its class. Invariant: no token is in two
// classes, and the mark of class i has the id `first_mark() + i` in the vocabulary.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bitmask.h"
#include "vocabulary/vocabulary.h"

namespace constrain {

class TokenClasses {
 public:
  using Ranges = std::vector<std::pair<uint32_t, uint32_t>>;  // ids of tokens, first and last of each range, ascending

  TokenClasses(const Vocabulary& vocabulary, std::vector<Ranges> ranges) : vocabulary_(vocabulary), ranges_(std::move(ranges)) {
    if (any()) marks_.assign(vocabulary.n_tokens(), Vocabulary::no_token);
    for (uint32_t i = 0; i < ranges_.size(); ++i) {
      for (const auto& [first, last] : ranges_[i]) std::fill(marks_.begin() + first, marks_.begin() + last + 1, vocabulary.first_mark() + i);
    }
  }

  bool any() const { return !ranges_.empty(); }
  uint32_t mark_of(uint32_t token) const { return marks_.empty() ? Vocabulary::no_token : marks_[token]; }

  // Adds the tokens of the classes whose marks are in a mask.
  void add_tokens(std::span<uint32_t> words) const {
    for (uint32_t i = 0; i < ranges_.size(); ++i) {
      if (!has_bit(words, vocabulary_.first_mark() + i)) continue;
      for (const auto& [first, last] : ranges_[i]) set_bits(words, first, last);
    }
  }

  // The token that stands for a mark where one must be chosen; other ids stand for themselves.
  uint32_t shown(uint32_t id) const;
  // A text with tokens in place of marks: their texts, or else their marked names or ids.
  std::string spelled(std::string_view text) const;

 private:
  const Vocabulary& vocabulary_;
  std::vector<Ranges> ranges_;   // by class
  std::vector<uint32_t> marks_;  // by token; empty if there are no classes
};

}  // namespace constrain
