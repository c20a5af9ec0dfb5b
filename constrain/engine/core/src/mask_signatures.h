// Mask signatures: what a mask was computed from, so that the same place in another context takes over its tokens.
//
// Besides its lexer state, a mask depends only on the lexer states after the lexemes that its tokens complete, and on
// whether the text may end there. Invariant: a place whose lexemes lead to what a signature describes has the tokens of
// that signature. Grammars with groups that must be distinct have no signatures, because their masks also depend on the
// values that may still be repeated.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hashing.h"
#include "ids.h"
#include "mask.h"
#include "parser.h"
#include "place.h"
#include "storage.h"

namespace constrain {

// Sets are numbered in the order of their discovery; the mask's own set is 0.
struct MaskSignature {
  struct Look {  // the properties of a set that a mask depends on
    LexId start = LexId::dead;
    bool exists = false, accepting = false, uses_text = false;
    bool operator==(const Look&) const = default;
  };
  struct Lexeme {
    uint32_t from, to;
    MatchId matched;
    TextId text;
    Look look;  // of the set that the lexeme leads to
  };
  bool uses_text = false;  // of the mask's own set
  Array<Lexeme> lexemes;
  Array<uint32_t> ends;  // sets in which tokens may end
  std::shared_ptr<const MaskTokens> tokens;
  uint32_t next = none;  // the next signature of a list: see MaskSignatures::key
  static constexpr uint32_t none = ~uint32_t{0};
  static constexpr size_t max_lexemes = 64;  // lexemes recorded for one mask; beyond them its tokens are not shared

  template <typename Archive>
  void visit(Archive& archive) {
    archive(uses_text, lexemes, ends, tokens, next);
  }
};

// Records, during the computation of one mask, which lexemes end and where the tokens end.
class SignatureRecorder {
 public:
  // `own`: the set of the mask. Lexemes are recorded only if `notes_lexemes`.
  SignatureRecorder(Parser& parser, SetId own, bool notes_lexemes) : parser_(parser), notes_lexemes_(notes_lexemes), sets_{own} {}

  void record(SetId set, MatchId matched, TextId text, SetId next);
  void record_end(SetId set) { ends_.push_back(set); }  // a token may end in this set

  const std::vector<SetId>& sets() const { return sets_; }
  const std::vector<MaskSignature::Lexeme>& lexemes() const { return lexemes_; }
  const std::vector<SetId>& ends() const { return ends_; }

 private:
  uint32_t number_of(SetId set);

  Parser& parser_;
  const bool notes_lexemes_;
  std::vector<SetId> sets_;  // by number
  std::vector<MaskSignature::Lexeme> lexemes_;
  std::vector<SetId> ends_;
};

class MaskSignatures {
 public:
  explicit MaskSignatures(Parser& parser) : parser_(parser) {}

  // Fills in the mask of a place from a mask with the same signature; returns false if there is none.
  bool find(Mask& mask, const Place& place);
  void keep(const Mask& mask, const Place& place, const SignatureRecorder& recorder);
  uint64_t found() const { return found_; }  // masks taken over from other places

  size_t memory_bytes() const { return first_.bytes() + lists_.bytes() + bytes_; }

  template <typename Archive>
  void visit(Archive& archive) {
    archive(first_, lists_, signatures_, bytes_);
  }

 private:
  bool has_none(const Place& place) const { return parser_.grammar().reads_groups || place.lexer == LexId::dead; }
  Hash key(const Place& place, const MaskSignature& first);
  bool agrees(const MaskSignature& signature, SetId set, std::vector<SetId>& sets);

  Parser& parser_;
  FlatMap<uint32_t, uint32_t> first_;  // the signatures of each lexer state
  FlatMap<Hash, uint32_t> lists_;      // the first of each list
  OnDemand<MaskSignature> signatures_;
  size_t bytes_ = 0;
  uint64_t found_ = 0;
};

}  // namespace constrain
