// The computation of one mask: the union of the tokens that stay inside the lexeme (context_independent_tokens.h; they
// depend on the lexer state alone) and of those that end it and go on.
//
// Lives for one mask. Invariant: what its recorder takes down is all that the tokens depend on, besides the lexer state;
// tokens whose place depends on a text that is not known are context-dependent, and no others.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "context_independent_tokens.h"
#include "mask.h"
#include "mask_signatures.h"
#include "stepping.h"
#include "vocabulary.h"

namespace constrain {

class MaskComputation {
 public:
  // All tokens that begin with one of the bytes.
  using TokensBeginning = std::function<const Bitmask&(const ByteSet&)>;

  MaskComputation(Stepping& stepping, const Vocabulary& vocabulary, ContextIndependentTokens& independent, TokensBeginning tokens_beginning,
                  SignatureRecorder& recorder)
      : stepping_(stepping), vocabulary_(vocabulary), independent_(independent), tokens_beginning_(std::move(tokens_beginning)),
        recorder_(recorder), grammar_(stepping.grammar()), lexer_(stepping.lexer()), parser_(stepping.parser()) {}

  // The mask is that of all texts of the lexeme under way, unless earlier values are still possible.
  void compute(MaskDraft& mask, const Place& here);

 private:
  Place after(const Place& here, const std::vector<uint32_t>& positions, TextId text);
  MatchId match_of(const std::vector<uint32_t>& positions, LexId lexer);
  void add_exits_by_text(MaskDraft& mask, const Exits& exits, const Place& here);
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
  const TokensBeginning tokens_beginning_;
  SignatureRecorder& recorder_;
  const Grammar& grammar_;
  Lexer& lexer_;
  Parser& parser_;
  std::vector<std::pair<uint32_t, Place>> suffixes_;  // on the way, in walk_suffixes
};

}  // namespace constrain
