// Masks by place: looked up, taken over from a stand-in, or computed; and written out as bits.
//
// Invariant: bit t of what `fill` writes is set if and only if some continuation completes the text with token t. The
// only exception is a mask that met limits, whose names `fill` returns: it has only verified tokens, among them one
// that leads to an end if a way is known, and it stays the same for its place in this generation.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/hashing.h"
#include "completions/completions.h"
#include "lexing/context_independent_tokens.h"
#include "masks/mask.h"
#include "masks/place_rows.h"
#include "masks/stand_ins.h"
#include "parsing/stepping.h"
#include "vocabulary/vocabulary.h"

namespace constrain {

class Masks {
 public:
  Masks(Stepping& stepping, const Vocabulary& vocabulary, ContextIndependentTokens& independent, Completions& completions)
      : stepping_(stepping), vocabulary_(vocabulary), independent_(independent), completions_(completions), parser_(stepping.parser()),
        stand_ins_(stepping, vocabulary), rows_(stepping) {}

  const Mask& of(const Place& place);
  const Mask* known(const Place& place) const;

  // Judges a context-dependent token, and adds the limits that it meets.
  using Judge = std::function<bool(uint32_t token, LimitSet& met)>;
  // Writes the mask of its place and returns the limits that left out tokens; with any, the place always gets the same
  // mask. `judge`: judges context-dependent tokens, in place of stepping over them; or null.
  LimitSet fill(const Mask& mask, const Place& place, std::span<uint32_t> words, const Judge* judge = nullptr);
  bool has_token(const Place& place, uint32_t token);

  size_t size() const { return masks_.size(); }  // masks made, each for one place or many
  uint64_t shared() const { return stood_in_; }  // masks taken over from stand-ins
  void read(size_t most);  // reads stored masks now, instead of at first use
  size_t memory_bytes() const {
    return ids_.bytes() + text_ids_.bytes() + token_ids_.bytes() + limited_ids_.bytes() + stand_ins_.memory_bytes() + rows_.memory_bytes() + bytes_;
  }

  template <typename Archive>
  void visit(Archive& archive) {
    archive(ids_, text_ids_, masks_, bytes_);
  }

 private:
  struct Limited {  // a limited mask, as it was when its place was first asked for
    Bitmask words;
    LimitSet limits;
  };

  uint32_t make(const Place& place, bool needs_text);
  void compute(Mask& mask, const Place& place);
  std::shared_ptr<const MaskTokens> kept(MaskDraft draft);
  const Bitmask& tokens_beginning(const ByteSet& bytes);
  void fill_independent(const MaskTokens& tokens, std::span<uint32_t> words) const;
  LimitSet fill_dependent(const Mask& mask, const Place& place, std::span<uint32_t> words, const Judge* judge);
  LimitSet fill_unknown(const Mask& mask, const Place& place, std::span<uint32_t> words, const Judge* judge);
  void fill_way_to_finish(const Place& place, std::span<uint32_t> words, LimitSet& met);
  bool allows(const Place& place, uint32_t token, LimitSet& met);
  const Limited* limited(const Place& place) const;
  void keep_limited(const Place& place, LimitSet limits, std::span<const uint32_t> words);

  Stepping& stepping_;
  const Vocabulary& vocabulary_;
  ContextIndependentTokens& independent_;
  Completions& completions_;
  Parser& parser_;
  StandIns stand_ins_;
  PlaceRows rows_;
  FlatMap<uint64_t, uint32_t> ids_;  // numbers of masks, by `mask_key`
  FlatMap<Hash, uint32_t> text_ids_;  // numbers of masks that depend on the text of the current lexeme
  OnDemand<Mask> masks_;  // the masks, by number
  std::deque<std::pair<ByteSet, Bitmask>> tokens_beginning_;
  FlatMap<Hash, uint32_t> token_ids_;
  std::vector<std::shared_ptr<const MaskTokens>> tokens_;  // tokens made in this process
  FlatMap<Hash, uint32_t> limited_ids_;
  std::deque<Limited> limited_;
  uint64_t stood_in_ = 0;
  size_t bytes_ = 0;
};

}  // namespace constrain
