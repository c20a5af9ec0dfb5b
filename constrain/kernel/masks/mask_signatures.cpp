// Keeping and finding signatures of masks.
#include "masks/mask_signatures.h"

#include <algorithm>

#include "base/errors.h"
#include "base/ways.h"

namespace constrain {

namespace {

constexpr size_t max_tried = 32;  // signatures tried for one mask

}  // namespace

// The signatures to try: those whose first lexeme leads to a set with the same properties.
Hash MaskSignatures::key(const Place& place, const MaskSignature& first) {
  Hash key = mix(seeded(0x6F75746C), index(place.lexer));
  if (first.lexemes.empty()) return key;
  const EndedLexeme& lexeme = *first.lexemes.begin();
  const SetLook look = look_at(parser_, parser_.advance(place.set, lexeme.matched, lexeme.text, TrackId::unknown));
  return mix(mix(key, index(look.start)), (look.exists ? 1u : 0u) | (look.accepting ? 2u : 0u) | (look.uses_text ? 4u : 0u));
}

bool MaskSignatures::find(Mask& mask, const Place& place) {
  if (has_none(place) || !uses("signatures")) return false;
  const uint32_t* first = first_.find(index(place.lexer));
  if (!first) return false;
  std::vector<SetId> sets;
  try {
    const uint32_t* found = lists_.find(key(place, signatures_[*first]));
    for (uint32_t id = found ? *found : MaskSignature::none; id != MaskSignature::none; id = signatures_[id].next) {
      const MaskSignature& signature = signatures_[id];
      if (!agrees(signature, place.set, sets)) continue;
      ++found_;
      mask.tokens = signature.tokens;
      std::vector<SetId> ends;
      for (uint32_t end : signature.ends) ends.push_back(sets[end]);
      mask.sets = distinct_sets(std::move(ends));
      return true;
    }
  } catch (const LimitError&) {  // then the mask itself is computed, perhaps within limits
  }
  return false;
}

bool MaskSignatures::agrees(const MaskSignature& signature, SetId set, std::vector<SetId>& sets) {
  if (parser_.closure(set).uses_text != signature.uses_text) return false;
  sets.assign(1, set);
  for (const EndedLexeme& each : signature.lexemes) {
    const SetId next = parser_.advance(sets[each.from], each.matched, each.text, TrackId::unknown);
    if (each.to == sets.size()) {
      sets.push_back(next);
    } else if (sets[each.to] != next) {
      return false;
    }
    if (look_at(parser_, next) != each.look) return false;
  }
  return true;
}

void MaskSignatures::keep(const Mask& mask, const Place& place, const SignatureRecorder& recorder) {
  if (has_none(place) || recorder.lexemes().size() > SignatureRecorder::max_lexemes) return;
  const auto id = static_cast<uint32_t>(signatures_.size());
  const std::vector<SetId>& sets = recorder.sets();
  std::vector<uint32_t> ends;
  for (SetId end : mask.sets) ends.push_back(static_cast<uint32_t>(std::find(sets.begin(), sets.end(), end) - sets.begin()));
  MaskSignature signature{parser_.closure(place.set).uses_text, Array(recorder.lexemes()), Array(std::move(ends)), mask.tokens};
  const uint32_t* first = first_.find(index(place.lexer));
  Hash list;
  try {
    list = key(place, first ? signatures_[*first] : signature);
  } catch (const LimitError&) {  // the mask is known nevertheless
    return;
  }
  if (!first) first_.insert(index(place.lexer), id);
  if (const uint32_t* found = lists_.find(list)) {
    uint32_t last = *found;
    for (size_t tried = 1; signatures_[last].next != MaskSignature::none; last = signatures_[last].next) {
      if (++tried == max_tried) return;
    }
    signatures_[last].next = id;
  } else {
    lists_.insert(list, id);
  }
  bytes_ += sizeof signature + signature.lexemes.own_bytes() + signature.ends.own_bytes();
  signatures_.push_back(std::move(signature));
}

}  // namespace constrain
