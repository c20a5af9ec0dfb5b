// The computation of one mask: the tokens that stay inside the lexeme (context_independent_tokens.h; they depend on the
// lexer state alone), and the tokens that end it and go on.
//
// In a grammar whose terminals are read byte by byte, hardly any token stays inside a lexeme: there, places with short
// lexemes only are walked as a whole (place_rows.h).
//
// An object lives for one mask. Invariant: exactly those tokens are context-dependent whose place depends on a text that is not known.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "lexing/context_independent_tokens.h"
#include "masks/mask.h"
#include "masks/place_rows.h"
#include "parsing/stepping.h"
#include "vocabulary/vocabulary.h"

namespace constrain {

class MaskComputation {
 public:
  // All tokens that begin with one of the bytes.
  using TokensBeginning = std::function<const Bitmask&(const ByteSet&)>;

  MaskComputation(Stepping& stepping, const Vocabulary& vocabulary, ContextIndependentTokens& independent, PlaceRows& rows,
                  TokensBeginning tokens_beginning)
      : stepping_(stepping), vocabulary_(vocabulary), independent_(independent), rows_(rows), tokens_beginning_(std::move(tokens_beginning)),
        grammar_(stepping.grammar()), lexer_(stepping.lexer()), parser_(stepping.parser()) {
    rows_.begin();
  }

  // The mask holds for all texts of the current lexeme, unless earlier values are still possible.
  void compute(MaskDraft& mask, const Place& here);
  std::vector<SetId>& ends() { return ends_; }  // the sets in which tokens end

 private:
  bool is_short(LexId lexer) const;
  void by_rows(MaskDraft& mask, const Place& here, uint32_t row);
  bool take_known(MaskDraft& mask, const PlaceRows::Reach& reach);
  void walk_rows(MaskDraft& mask, uint32_t node, uint32_t row);
  void end_in_row(MaskDraft& mask, std::span<const uint32_t> tokens, uint32_t row);
  void step_without_row(MaskDraft& mask, uint32_t node, const Place& from);
  void add(MaskDraft& mask, std::span<const uint32_t> tokens) const;
  Place after(const Place& here, const std::vector<uint32_t>& positions, TextId text);
  MatchId match_of(const std::vector<uint32_t>& positions, LexId lexer);
  void add_text_dependent_exits(MaskDraft& mask, const Exits& exits, const Place& here);
  void add_exits(MaskDraft& mask, const Exits& exits, const Place& next);
  void walk_exits(MaskDraft& mask, std::span<const uint32_t> nodes, const Place& next);
  void walk_suffixes(MaskDraft& mask, uint32_t node, Place place);
  void add_following(MaskDraft& mask, const IndependentTokens& alone, const Place& next);
  void leave_to_text(MaskDraft& mask, uint32_t node) const;
  bool surely_goes_on(const Place& place) const;
  void settle(MaskDraft& mask) const;

  Stepping& stepping_;
  const Vocabulary& vocabulary_;
  ContextIndependentTokens& independent_;
  PlaceRows& rows_;
  const TokensBeginning tokens_beginning_;
  const Grammar& grammar_;
  Lexer& lexer_;
  Parser& parser_;
  std::vector<SetId> ends_;
  std::vector<std::pair<uint32_t, Place>> suffixes_;  // the current path of walk_suffixes
};

}  // namespace constrain
