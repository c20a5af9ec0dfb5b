// Writes and reads compiled grammars and the vocabulary's context-independent tokens as bytes.
#include "storage.h"

#include <algorithm>
#include <array>
#include <bit>

#include "compiled_grammar.h"

namespace constrain {

namespace {

constexpr size_t masks_read_at_once = 256;  // at most a microsecond each; the masks met first are likeliest to be used

}  // namespace

Hash checksum(std::span<const std::byte> data) {
  // Every step is a bijection of the lane for a given word, and of the word for a given lane: damage to one word, and a
  // single flipped bit, is always detected. Eight lanes run at about the speed of memory.
  constexpr std::array<uint64_t, 8> factors{0x9E3779B97F4A7C15u, 0xC2B2AE3D27D4EB4Fu, 0x165667B19E3779F9u, 0xD6E8FEB86659FD93u,
                                            0x27D4EB2F165667C5u, 0xFF51AFD7ED558CCDu, 0xC4CEB9FE1A85EC53u, 0xBF58476D1CE4E5B9u};
  std::array<uint64_t, 8> lanes = factors;
  auto step = [&](const std::byte* block) {
    for (size_t i = 0; i < lanes.size(); ++i) {
      uint64_t word;
      std::memcpy(&word, block + i * sizeof word, sizeof word);
      lanes[i] = std::rotl(lanes[i] ^ word, 29) * factors[i];
      lanes[i] ^= lanes[i] >> 32;  // otherwise the highest bit would only mix with that of the next word
    }
  };
  constexpr size_t block_bytes = sizeof lanes;
  const size_t whole = data.size() / block_bytes * block_bytes;
  for (size_t at = 0; at < whole; at += block_bytes) step(data.data() + at);
  if (whole < data.size()) {
    std::array<std::byte, block_bytes> rest{};
    std::memcpy(rest.data(), data.data() + whole, data.size() - whole);
    step(rest.data());
  }
  Hash result{data.size(), factors[0]};
  for (uint64_t lane : lanes) result = mix(result, lane);
  return result;
}

// The grammar's own expressions are nested bytes: only a new generation needs them.
std::string CompiledGrammar::stored() {
  std::string expressions(reinterpret_cast<const char*>(stored_expressions_.data()), stored_expressions_.size());
  if (expressions.empty()) {
    Writer archive;
    archive(grammar_.expressions);
    expressions = archive.take();
  }
  Writer archive;
  uint32_t n_vocab = vocabulary_->size();
  archive(n_vocab, seed_, expressions, grammar_, *automaton_);
  return archive.take();
}

CompiledGrammar::CompiledGrammar(Stored stored, std::shared_ptr<const Vocabulary> vocabulary, size_t limit)
    : stored_(std::move(stored)), vocabulary_(std::move(vocabulary)), limit_(limit), expressions_there_(false) {
  Reader archive(stored_.data);
  uint32_t n_vocab = 0;
  archive(n_vocab, seed_);
  archive.require(n_vocab == vocabulary_->size());
  stored_expressions_ = std::as_bytes(archive.array<char>());
  automaton_ = std::make_shared<Automaton>(grammar_, *vocabulary_, Automaton::ToBeRestored{});
  archive(grammar_, *automaton_);
  archive.require_end();
  automaton_->masks().read(masks_read_at_once);
  keep_what_is_in_use();
}

void CompiledGrammar::restore_expressions() {
  if (expressions_there_) return;
  Reader archive(stored_expressions_);
  archive(grammar_.expressions);
  archive.require_end();
  expressions_there_ = true;
}

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
