// 128-bit structural hashes, and the flat hash map of every interning table.
//
// Equal hashes are taken for equal values. The seed is random, so nobody can prepare two texts that collide; by
// chance, 2^40 values collide with probability below 2^-48. All tables of one grammar have the same seed: that of
// the process, or for stored tables that of the process which stored them (SeedScope).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <tuple>
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

// Offers a seed from an earlier process; the process takes it if it has none yet. Returns whether it uses that seed.
inline bool offer_seed(const Hash& seed) {
  {
    std::scoped_lock lock(offered_seed().mutex);
    offered_seed().seed = seed;
  }
  return process_seed() == seed;
}

inline thread_local constinit const Hash* scoped_seed = nullptr;

// Makes this thread hash with a given seed while the object lives. Users of a grammar's tables hold one (Locked, in the
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
// Stored entries stay in the mapped file, sorted by bucket; only entries inserted later have slots.
template <typename Key, typename Value>
class FlatMap {
 public:
  const Value* find(const Key& key) const {
    if (!slots_.empty()) {
      for (size_t i = place(key) & mask_;; i = (i + 1) & mask_) {
        if (slots_[i].key == key) return &slots_[i].value;
        if (slots_[i].key == vacant()) break;
      }
    }
    return stored_keys_.empty() ? nullptr : find_stored(key);
  }

  void insert(const Key& key, Value value) {
    if (count_ * 3 >= slots_.size() * 2) grow();
    size_t i = place(key) & mask_;
    while (!(slots_[i].key == vacant()) && !(slots_[i].key == key)) i = (i + 1) & mask_;
    if (slots_[i].key == vacant()) ++count_;
    slots_[i] = {key, std::move(value)};
  }

  size_t bytes() const { return slots_.size() * sizeof(Slot) + stored_keys_.size() * (sizeof(Key) + sizeof(Value)); }

  template <typename F>
  void each(F&& f) const {
    for (const Slot& slot : slots_) {
      if (!(slot.key == vacant())) f(slot.key, slot.value);
    }
    for (size_t i = 0; i < stored_keys_.size(); ++i) f(stored_keys_[i], stored_values_[i]);
  }

  template <typename Archive>
  void visit(Archive& archive) {
    if constexpr (Archive::is_writer) {
      auto [ends, keys, values] = by_bucket();
      archive(ends, keys, values);
    } else {  // views: the archived bytes must outlive the map
      stored_ends_ = archive.template array<uint32_t>();
      stored_keys_ = archive.template array<Key>();
      stored_values_ = archive.template array<Value>();
      const size_t buckets = stored_ends_.size();
      archive.require(stored_keys_.size() == stored_values_.size() && (buckets & (buckets - 1)) == 0 &&
                      (buckets == 0 ? size_t{0} : stored_ends_.back()) == stored_keys_.size());
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

  const Value* find_stored(const Key& key) const {
    const size_t bucket = place(key) & (stored_ends_.size() - 1);
    const size_t end = stored_ends_[bucket];
    for (size_t i = bucket == 0 ? 0 : stored_ends_[bucket - 1]; i < end; ++i) {
      if (stored_keys_[i] == key) return &stored_values_[i];
    }
    return nullptr;
  }

  // All entries, sorted by bucket, and the end of each bucket: one or two entries per bucket.
  std::tuple<std::vector<uint32_t>, std::vector<Key>, std::vector<Value>> by_bucket() const {
    size_t count = 0;
    each([&count](const Key&, const Value&) { ++count; });
    std::vector<uint32_t> ends(count == 0 ? 0 : std::bit_ceil(count + 1) / 2);
    std::vector<Key> keys(count);
    std::vector<Value> values(count);
    each([&](const Key& key, const Value&) { ++ends[place(key) & (ends.size() - 1)]; });
    uint32_t next = 0;
    for (uint32_t& end : ends) next += std::exchange(end, next);
    each([&](const Key& key, const Value& value) {
      const uint32_t i = ends[place(key) & (ends.size() - 1)]++;
      keys[i] = key;
      values[i] = value;
    });
    return {std::move(ends), std::move(keys), std::move(values)};
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
  std::span<const uint32_t> stored_ends_;
  std::span<const Key> stored_keys_;
  std::span<const Value> stored_values_;
};

}  // namespace constrain
