// Limits on the tokens of one lexeme: the tokens that bring a lexeme to its end at its limit.
//
// At its limit, only tokens remain that end the lexeme or make its shortest rest shorter. Invariant: that rest gets
// shorter with each token that `keep_nearer` leaves, so the lexeme ends. Matchers count the tokens (matcher.h).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/hashing.h"
#include "grammar/grammar.h"
#include "lexing/lexeme_ends.h"
#include "parsing/stepping.h"
#include "vocabulary/vocabulary.h"

namespace constrain {

class LexemeLimits {
 public:
  static constexpr uint64_t none = ~uint64_t{0};
  static constexpr uint64_t endless = ~uint64_t{0};

  LexemeLimits(Stepping& stepping, LexemeEnds& ends)
      : stepping_(stepping), ends_(ends), grammar_(stepping.grammar()), lexer_(stepping.lexer()) {}

  bool stays(LexId lexer, std::string_view bytes);  // whether the bytes stay in the lexeme
  // `limits`: tokens of one lexeme, by kind of terminal. No limit if the lexeme cannot go on.
  uint64_t limit_of(LexId lexer, std::span<const uint64_t> limits) const;
  uint64_t rest_of(LexId lexer);  // bytes of the shortest rest
  // Removes the tokens that stay in the lexeme and make its rest no shorter.
  void keep_nearer(LexId lexer, std::span<uint32_t> words);

  size_t memory_bytes() const { return rests_.bytes(); }

 private:
  Stepping& stepping_;
  LexemeEnds& ends_;
  const Grammar& grammar_;
  Lexer& lexer_;
  FlatMap<uint32_t, uint64_t> rests_;  // by lexer state
};

}  // namespace constrain
