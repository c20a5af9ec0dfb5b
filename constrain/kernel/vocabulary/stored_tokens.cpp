// Writes and reads the vocabulary's context-independent tokens as bytes.
#include "base/archive.h"
#include "vocabulary/vocabulary.h"

namespace constrain {

std::string Vocabulary::stored() const {
  std::vector<Hash> state_keys, unit_keys;
  std::vector<std::shared_ptr<const IndependentTokens>> states;
  std::vector<std::shared_ptr<const UnitTokens>> units;
  {
    std::scoped_lock lock(mutex_);
    for (const auto& [key, tokens] : independent_) {
      state_keys.push_back(key);
      states.push_back(tokens);
    }
    for (const auto& [key, tokens] : units_) {
      unit_keys.push_back(key);
      units.push_back(tokens);
    }
  }
  Writer archive;
  archive(unit_keys, units, state_keys, states);
  return archive.take();
}

void Vocabulary::restore(std::span<const std::byte> data) const {
  std::vector<Hash> state_keys, unit_keys;
  std::vector<std::shared_ptr<const IndependentTokens>> states;
  std::vector<std::shared_ptr<const UnitTokens>> units;
  Reader archive(data);
  archive(unit_keys, units, state_keys, states);
  archive.require(unit_keys.size() == units.size() && state_keys.size() == states.size());
  archive.require_end();
  std::scoped_lock lock(mutex_);
  auto keep = [this](auto& store, const Hash& key, const auto& value) {
    const size_t bytes = value->memory_bytes();
    if (store_bytes_ + bytes > store_limit || !store.emplace(key, value).second) return;
    store_bytes_ += bytes;
  };
  for (size_t i = 0; i < units.size(); ++i) keep(units_, unit_keys[i], units[i]);
  for (size_t i = 0; i < states.size(); ++i) keep(independent_, state_keys[i], states[i]);
}

std::string Vocabulary::description() const {
  Writer archive;
  std::string text = text_;
  std::vector<uint32_t> offsets = offsets_, special = special_, eos = eos_;
  archive(text, offsets, special, eos);
  return archive.take();
}

}  // namespace constrain
