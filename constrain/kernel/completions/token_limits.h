// Limits on the tokens of one lexeme that the grammar gives its terminals (`max_tokens`).
//
// A token counts for the lexeme in which its first byte is; a place counts those of the current lexeme (`used`). A
// terminal is read only by lexemes of at most as many tokens. Lexemes are still the longest matches, as without limits.
//
// Invariant: after each token, a terminal that the lexeme can no longer become within its limit is replaced by
// `Lexer::none` (settle): that takes the same bytes, and matches nothing. The other terminals can be completed in the
// tokens left to them, spelled by themselves. So `take` reads exactly the tokens that leave a way to finish.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/bitmask.h"
#include "base/hashing.h"
#include "grammar/grammar.h"
#include "lexing/lexeme_ends.h"
#include "parsing/place.h"
#include "parsing/stepping.h"
#include "vocabulary/vocabulary.h"

namespace constrain {

class TokenLimits {
 public:
  TokenLimits(Stepping& stepping, const Vocabulary& vocabulary, LexemeEnds& ends)
      : stepping_(stepping), vocabulary_(vocabulary), ends_(ends), grammar_(stepping.grammar()), lexer_(stepping.lexer()) {}

  bool any() const { return grammar_.limits_tokens; }

  struct TooFew {
    uint32_t terminal;
    uint64_t needed;     // tokens
    bool by_beginnings;  // for the texts that the longest match leaves possible
  };
  std::optional<TooFew> find_too_few();  // a terminal that cannot be completed within its limit

  // Reads the bytes of a token and counts it. False, and `place` unchanged, if it cannot follow, or if no terminal can
  // be completed within its limit afterwards.
  bool take(Place& place, std::string_view token);
  bool settle(Place& place);  // for a place after a token, which has been counted; false if no terminal is left

  struct Refused {
    TokenSet tokens;
    LimitSet limits;  // limits met; then tokens of several bytes are refused, too, because they were not verified
  };
  // Tokens of the mask `words` of a place, without limits, that `take` refuses; null if there are none.
  const Refused* refused(const Place& place, std::span<const uint32_t> words);
  bool knows_refused(const Place& place) const { return !any() || refused_ids_.find(key(place)); }

  // Lets `ShortestTexts` complete the current lexeme, and later ones, in fewest tokens.
  void prepare(LexId lexer);
  bool has_limit(TermId terminal) const { return grammar_.token_limit(terminal) != unbounded; }
  // By first byte of a text: the rest, in fewest tokens; none if that does not fit into the limit.
  const std::vector<std::optional<std::string>>& rests_of_beginnings(TermId terminal);
  // Fewest tokens of a text from a place, each lexeme with a limit spelled by itself; no_spelling if limits forbid them.
  Vocabulary::Spelling spell(const Place& place, std::string text, const Vocabulary::Spelling* like = nullptr);

  size_t memory_bytes() const { return rests_.bytes() + worst_.bytes() + refused_ids_.bytes() + bytes_; }

 private:
  static constexpr uint64_t endless = ~uint64_t{0};

  Hash key(const Place& place) const;
  uint64_t rest_of(TermId terminal, ExprId rest);  // fewest tokens that complete a lexeme
  void solve(TermId terminal, ExprId rest);
  void prefer(TermId terminal, ExprId rest);
  std::string text_in_fewest_tokens(TermId terminal, ExprId rest);
  uint64_t worst_rest(LexId lexer);  // after any token that stays in the lexeme
  bool is_easy(uint32_t terminal);
  bool all_easy();
  struct Beginning {
    uint64_t tokens = endless;  // of the whole text
    std::string_view first;     // the first token
    ExprId after = ExprId::nothing;
  };
  std::array<Beginning, 256> find_beginnings(TermId terminal);
  void refuse_inside(const Place& place, std::span<const uint32_t> words, Bitmask& inside, TokenSet& out);
  Refused find_refused(const Place& place, std::span<const uint32_t> words);
  Refused verify(const Place& place, std::span<const uint32_t> words, LimitSet limits);
  bool ends_whole(const Place& place, const Vocabulary::Spelling& spelling);

  Stepping& stepping_;
  const Vocabulary& vocabulary_;
  LexemeEnds& ends_;
  const Grammar& grammar_;
  Lexer& lexer_;
  FlatMap<uint64_t, uint64_t> rests_;  // by terminal and expression
  FlatMap<uint32_t, uint64_t> worst_;  // by lexer state
  FlatMap<uint32_t, uint8_t> preferred_;  // expressions whose text in fewest tokens is known to the store
  FlatMap<Hash, uint32_t> refused_ids_;   // by place; 0: none
  std::unordered_map<uint32_t, std::vector<std::optional<std::string>>> beginnings_;  // by terminal
  std::vector<std::unique_ptr<const Refused>> refused_;
  std::optional<bool> all_easy_;
  bool prepared_ = false;
  size_t bytes_ = 0;
};

}  // namespace constrain
