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

#include "base/archive.h"
#include "base/hashing.h"
#include "base/ids.h"
#include "masks/mask.h"
#include "parsing/parser.h"
#include "parsing/place.h"
#include "parsing/signature_recorder.h"

namespace constrain {

// Sets are numbered as the recorder does.
struct MaskSignature {
  bool uses_text = false;  // of the mask's own set
  Array<EndedLexeme> lexemes;
  Array<uint32_t> ends;  // sets in which tokens may end
  std::shared_ptr<const MaskTokens> tokens;
  uint32_t next = none;  // the next signature of a list: see MaskSignatures::key
  static constexpr uint32_t none = ~uint32_t{0};

  template <typename Archive>
  void visit(Archive& archive) {
    archive(uses_text, lexemes, ends, tokens, next);
  }
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
