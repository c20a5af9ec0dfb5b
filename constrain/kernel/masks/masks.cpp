// Looks up masks, makes them, and writes them out.
#include "masks/masks.h"

#include <algorithm>
#include <utility>

#include "base/errors.h"
#include "masks/mask_computation.h"

namespace constrain {

namespace {

Hash text_mask_key(const Place& place) {
  return mix(mix(seeded(0x6D61736B), paired(place.lexer, place.set)), paired(place.text, place.track));
}

Hash limited_mask_key(const Place& place) { return mix(text_mask_key(place), place.fresh ? 1u : 0u); }

uint64_t mask_key(const Place& place) { return paired(place.lexer, place.set); }

}  // namespace

Bitmask& MaskDraft::own_base(size_t words) {
  if (!own) {
    own = base ? std::make_shared<Bitmask>(*base) : std::make_shared<Bitmask>(words);
    base = own;
  }
  for (uint32_t token : remove) clear_bit(*own, token);
  remove.clear();
  return *own;
}

Array<SetId> distinct_sets(std::vector<SetId> sets) {
  std::sort(sets.begin(), sets.end());
  sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
  sets.shrink_to_fit();
  return Array(std::move(sets));
}

size_t MaskTokens::memory_bytes() const {
  return sizeof(*this) + add.own_bytes() + remove.own_bytes() + dependent.own_bytes() + (base && base.use_count() == 1 ? 4 * base->size() : 0);
}

const Mask* Masks::known(const Place& place) const {
  const uint32_t* found = parser_.has_earlier(place.set) ? text_ids_.find(text_mask_key(place)) : ids_.find(mask_key(place));
  return found ? &masks_[*found] : nullptr;
}

const Mask& Masks::of(const Place& place) {
  const bool needs_text = parser_.closure(place.set).has_earlier;
  if (const uint32_t* found = needs_text ? text_ids_.find(text_mask_key(place)) : ids_.find(mask_key(place))) return masks_[*found];
  const std::optional<Place> stand_in = [&] {
    const Stepping::Scope scope = stepping_.for_mask();
    return stand_ins_.of(place);
  }();
  if (!stand_in) return masks_[make(place, needs_text)];
  const uint32_t* known = ids_.find(mask_key(*stand_in));
  if (known) ++stood_in_;
  const uint32_t id = known ? *known : make(*stand_in, needs_text);
  ids_.insert(mask_key(place), id);
  masks_[id].stands_in = true;
  return masks_[id];
}

// Computes the mask of a place, and keeps it.
uint32_t Masks::make(const Place& place, bool needs_text) {
  const Stepping::Scope scope = stepping_.for_mask();
  Mask mask;
  compute(mask, place);
  bytes_ += mask.memory_bytes();
  const auto id = static_cast<uint32_t>(masks_.size());
  if (needs_text) {
    text_ids_.insert(text_mask_key(place), id);
  } else {
    ids_.insert(mask_key(place), id);
  }
  masks_.push_back(std::move(mask));
  return id;
}

// If a limit is met, all tokens of one byte remain, to be judged one by one.
void Masks::compute(Mask& mask, const Place& place) {
  MaskDraft draft;
  try {
    MaskComputation computation(stepping_, vocabulary_, independent_, rows_,
                                [this](const ByteSet& bytes) -> const Bitmask& { return tokens_beginning(bytes); });
    computation.compute(draft, place);
    mask.sets = distinct_sets(std::move(computation.ends()));
  } catch (const LimitError& error) {
    draft = {};
    draft.limits.add(error.limit);
    vocabulary_.trie().each_child(Trie::root, [&](uint32_t child) {
      const std::span<const uint32_t> tokens = vocabulary_.trie().tokens(child);
      draft.dependent.insert(draft.dependent.end(), tokens.begin(), tokens.end());
    });
  }
  mask.tokens = kept(std::move(draft));
}

// Keeps equal tokens once.
std::shared_ptr<const MaskTokens> Masks::kept(MaskDraft draft) {
  auto bytes_of = [](const auto& values) { return std::as_bytes(std::span(values)); };
  Hash key = mix(seeded(0x746F6B656E73), draft.eos ? 1u : 0u);
  draft.limits.each([&](Limit limit) { key = mix(key, static_cast<uint64_t>(limit)); });
  for (const std::vector<uint32_t>* each : {&draft.add, &draft.remove, &draft.dependent}) key = mix(key, checksum(bytes_of(*each)));
  if (draft.own) {
    key = mix(key, checksum(bytes_of(*draft.own)));
    draft.own = nullptr;
  } else {
    key = mix(key, reinterpret_cast<uintptr_t>(draft.base.get()));
  }
  auto equal = [&draft](const MaskTokens& other) {
    return std::ranges::equal(draft.add, other.add) && std::ranges::equal(draft.remove, other.remove) &&
           std::ranges::equal(draft.dependent, other.dependent) && draft.eos == other.eos && draft.limits == other.limits &&
           !draft.base == !other.base && (!draft.base || draft.base == other.base || *draft.base == *other.base);
  };
  if (const uint32_t* found = token_ids_.find(key); found && equal(*tokens_[*found])) return tokens_[*found];
  auto tokens = std::make_shared<const MaskTokens>(MaskTokens{std::move(draft.base), Array(std::move(draft.add)), Array(std::move(draft.remove)),
                                                              Array(std::move(draft.dependent)), draft.eos, draft.limits});
  bytes_ += tokens->memory_bytes();
  token_ids_.insert(key, static_cast<uint32_t>(tokens_.size()));
  tokens_.push_back(tokens);
  return tokens;
}

const Bitmask& Masks::tokens_beginning(const ByteSet& bytes) {
  for (const auto& [known, tokens] : tokens_beginning_) {
    if (known == bytes) return tokens;
  }
  Bitmask tokens(vocabulary_.words());
  vocabulary_.trie().each_child(Trie::root, [&](uint32_t child) {
    if (!bytes.contains(vocabulary_.trie().byte(child))) return;
    for (uint32_t token : vocabulary_.trie().tokens_below(child)) set_bit(tokens, token);
  });
  bytes_ += 4 * tokens.size();
  return tokens_beginning_.emplace_back(bytes, std::move(tokens)).second;
}

// Writing out -------------------------------------------------------------------------------------------------------

LimitSet Masks::fill(const Mask& mask, const Place& place, std::span<uint32_t> words, const Judge* judge) {
  const MaskTokens& tokens = *mask.tokens;
  if (!tokens.limits.empty() || !tokens.dependent.empty()) return fill_dependent(mask, place, words, judge);
  fill_independent(tokens, words);
  if (place.fresh ? parser_.closure(place.set).accepting : tokens.eos) {
    for (uint32_t token : vocabulary_.eos()) set_bit(words, token);
  }
  return {};
}

// Writes all tokens that do not depend on the text.
void Masks::fill_independent(const MaskTokens& tokens, std::span<uint32_t> words) const {
  if (tokens.base) {
    std::copy(tokens.base->begin(), tokens.base->end(), words.begin());
    for (uint32_t token : tokens.remove) clear_bit(words, token);
  } else {
    std::fill(words.begin(), words.end(), 0u);
  }
  for (uint32_t token : tokens.add) set_bit(words, token);
}

// Writes a mask that met a limit or has context-dependent tokens.
LimitSet Masks::fill_dependent(const Mask& mask, const Place& place, std::span<uint32_t> words, const Judge* judge) {
  auto take_out_judged = [&](LimitSet& met) {
    stepping_.allow_call();
    for (uint32_t token : mask.tokens->dependent) {
      if (has_bit(words, token) && !(*judge)(token, met)) clear_bit(words, token);
    }
  };
  if (const Limited* known = limited(place)) {
    LimitSet met = known->limits;
    std::copy(known->words.begin(), known->words.end(), words.begin());
    if (judge) take_out_judged(met);
    return met;
  }
  LimitSet met = fill_unknown(mask, place, words, judge);
  if (met.empty()) return met;
  if (judge) {  // the kept mask must be the same for all judges
    LimitSet all = fill_unknown(mask, place, words, nullptr);
    if (!all.empty()) keep_limited(place, all, words);
    take_out_judged(all);
    all.add(met);
    return all;
  }
  keep_limited(place, met, words);
  return met;
}

// The same if no limited mask of the place is known.
LimitSet Masks::fill_unknown(const Mask& mask, const Place& place, std::span<uint32_t> words, const Judge* judge) {
  const MaskTokens& tokens = *mask.tokens;
  LimitSet met = tokens.limits;
  fill_independent(tokens, words);
  const bool is_limited = !tokens.limits.empty();
  if (place.fresh ? parser_.closure(place.set).accepting : is_limited ? stepping_.surely_accepting(place, met) : tokens.eos) {
    for (uint32_t token : vocabulary_.eos()) set_bit(words, token);
  } else if (is_limited) {
    fill_way_to_finish(place, words, met);
  }
  if (is_limited) {
    stepping_.allow_mask();
  } else if (!tokens.dependent.empty()) {
    stepping_.allow_call();
  }
  for (uint32_t token : tokens.dependent) {
    if (judge ? (*judge)(token, met) : allows(place, token, met)) set_bit(words, token);
  }
  return met;
}

bool Masks::allows(const Place& place, uint32_t token, LimitSet& met) {
  const std::string_view bytes = vocabulary_.token(token);
  Place next = place;
  try {
    return !bytes.empty() && stepping_.step(next, bytes);
  } catch (const LimitError& error) {  // not verified, so not allowed
    met.add(error.limit);
    return false;
  }
}

// The way to finish is verified first, while the work suffices.
void Masks::fill_way_to_finish(const Place& place, std::span<uint32_t> words, LimitSet& met) {
  std::string text;
  stepping_.allow_way();
  try {
    text = completions_.shortest(place);
  } catch (const LimitError&) {  // no way is known; the tokens below are verified one by one nevertheless
  }
  stepping_.allow_way();
  if (text.empty()) return;
  const Trie& trie = vocabulary_.trie();
  trie.each_child(Trie::root, [&](uint32_t child) {
    if (trie.byte(child) != static_cast<uint8_t>(text[0])) return;
    for (uint32_t token : trie.tokens(child)) {
      if (allows(place, token, met)) set_bit(words, token);
    }
  });
}

// Keeps a limited mask for its place; computed again, it would be larger, because more would be known.
const Masks::Limited* Masks::limited(const Place& place) const {
  if (limited_.empty()) return nullptr;
  const uint32_t* found = limited_ids_.find(limited_mask_key(place));
  return found ? &limited_[*found] : nullptr;
}

void Masks::keep_limited(const Place& place, LimitSet limits, std::span<const uint32_t> words) {
  limited_ids_.insert(limited_mask_key(place), static_cast<uint32_t>(limited_.size()));
  limited_.push_back({Bitmask(words.begin(), words.end()), limits});
  bytes_ += sizeof(Limited) + 4 * words.size();
}

bool Masks::has_token(const Place& place, uint32_t token) {
  Bitmask words(vocabulary_.words());
  fill(of(place), place, words);
  return has_bit(words, token);
}

void Masks::read(size_t most) {
  for (size_t i = 0; i < std::min(most, masks_.size()); ++i) static_cast<void>(masks_[i]);
}

}  // namespace constrain
