// 128-bit structural hashes and the flat hash map that every interning table uses.
//
// Equal hashes are taken for equal values. The seed is drawn at random, so nobody can prepare two texts that collide; by
// chance, 2^40 values would collide with probability below 2^-48. All tables of one grammar have the same seed: that of
// the process, or, if they were stored, that of the process which stored them (SeedScope).
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace constrain {

struct Hash {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const Hash&) const = default;
  auto operator<=>(const Hash&) const = default;
};

inline uint64_t scramble(uint64_t x) {  // the finalizer of splitmix64
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9u;
  x ^= x >> 27;
  x *= 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

struct OfferedSeed {
  std::mutex mutex;
  std::optional<Hash> seed;
};

inline OfferedSeed& offered_seed() {
  static OfferedSeed offered;
  return offered;
}

inline const Hash& process_seed() {
  static const Hash seed = [] {
    std::scoped_lock lock(offered_seed().mutex);
    if (offered_seed().seed) return *offered_seed().seed;
    std::random_device device;
    auto word = [&device] { return (static_cast<uint64_t>(device()) << 32) | device(); };
    return Hash{word(), word()};
  }();
  return seed;
}

// Makes a seed that was drawn at random before that of the process, if it has none yet; says whether it is that now.
inline bool offer_seed(const Hash& seed) {
  {
    std::scoped_lock lock(offered_seed().mutex);
    offered_seed().seed = seed;
  }
  return process_seed() == seed;
}

inline thread_local constinit const Hash* scoped_seed = nullptr;

// While it lives, this thread hashes with a given seed. Whoever uses the tables of a grammar has one (Locked, in the
// binding).
class SeedScope {
 public:
  explicit SeedScope(const Hash& seed) : before_(std::exchange(scoped_seed, &seed)) {}
  SeedScope(const SeedScope&) = delete;
  SeedScope& operator=(const SeedScope&) = delete;
  ~SeedScope() { scoped_seed = before_; }

 private:
  const Hash* before_;
};

inline Hash mix(const Hash& hash, uint64_t value) {
  return {scramble(hash.low ^ value) + hash.high, scramble(hash.high + value * 0x9E3779B97F4A7C15u) ^ hash.low};
}

inline Hash mix(const Hash& hash, const Hash& value) { return mix(mix(hash, value.low), value.high); }

inline Hash seeded(uint64_t tag) { return mix(scoped_seed ? *scoped_seed : process_seed(), tag); }

// Open addressing with linear probing. Key is an integer or a Hash; the all-ones key is reserved for empty slots.
template <typename Key, typename Value>
class FlatMap {
 public:
  const Value* find(const Key& key) const {
    if (slots_.empty()) return nullptr;
    for (size_t i = place(key) & mask_;; i = (i + 1) & mask_) {
      if (slots_[i].key == key) return &slots_[i].value;
      if (slots_[i].key == vacant()) return nullptr;
    }
  }

  void insert(const Key& key, Value value) {
    if (count_ * 3 >= slots_.size() * 2) grow();
    size_t i = place(key) & mask_;
    while (!(slots_[i].key == vacant()) && !(slots_[i].key == key)) i = (i + 1) & mask_;
    if (slots_[i].key == vacant()) ++count_;
    slots_[i] = {key, std::move(value)};
  }

  size_t size() const { return count_; }
  size_t bytes() const { return slots_.size() * sizeof(Slot); }

  // Stored as the keys and the values that are there, in the order of their slots.
  template <typename Archive>
  void visit(Archive& archive) {
    if constexpr (Archive::is_writer) {
      std::vector<Key> keys;
      std::vector<Value> values;
      for (const Slot& slot : slots_) {
        if (slot.key == vacant()) continue;
        keys.push_back(slot.key);
        values.push_back(slot.value);
      }
      archive(keys, values);
    } else {
      const std::span<const Key> keys = archive.template array<Key>();
      const std::span<const Value> values = archive.template array<Value>();
      archive.require(keys.size() == values.size());
      size_t slots = keys.empty() ? 0 : 16;
      while (keys.size() * 3 >= slots * 2 && slots > 0) slots *= 2;
      slots_.assign(slots, Slot{});
      mask_ = slots - 1;
      count_ = 0;
      for (size_t i = 0; i < keys.size(); ++i) insert(keys[i], values[i]);
    }
  }

 private:
  struct Slot {
    Key key = vacant();
    Value value{};
  };

  static constexpr Key vacant() {
    if constexpr (requires(Key k) { k.low; }) {
      return Key{~uint64_t{0}, ~uint64_t{0}};
    } else {
      return static_cast<Key>(~uint64_t{0});
    }
  }

  static size_t place(const Key& key) {
    if constexpr (requires(Key k) { k.low; }) {
      return static_cast<size_t>(key.low);
    } else {
      return static_cast<size_t>(scramble(static_cast<uint64_t>(key)));
    }
  }

  void grow() {
    std::vector<Slot> old = std::move(slots_);
    slots_.assign(old.empty() ? 16 : old.size() * 2, Slot{});
    mask_ = slots_.size() - 1;
    for (Slot& slot : old) {
      if (slot.key == vacant()) continue;
      size_t i = place(slot.key) & mask_;
      while (!(slots_[i].key == vacant())) i = (i + 1) & mask_;
      slots_[i] = std::move(slot);
    }
  }

  std::vector<Slot> slots_;
  size_t mask_ = 0;
  size_t count_ = 0;
};

}  // namespace constrain
