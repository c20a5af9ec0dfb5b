// Memory values: the slots of one activation of a rule, sets of remembered texts or values, and the texts themselves.
//
// All are immutable and interned. A text is a node of a tree (its beginning, its last byte), so one more byte costs
// one look-up. TextId::unknown stands for any text, while one mask is computed for all texts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/hashing.h"
#include "base/ids.h"
#include "base/interned_lists.h"

namespace constrain {

class Memory {
 public:
  Memory() {
    intern_values({});
    intern_list({});
    texts_ = {{TextId::empty, 0}, {TextId::unknown, 0}};
  }

  std::span<const uint32_t> values(MemoryId m) const { return values_[index(m)]; }
  MemoryId fresh(size_t slots) { return intern_values(std::vector<uint32_t>(slots, 0)); }

  MemoryId increment(MemoryId m, uint32_t slot, uint32_t cap) {
    std::span<const uint32_t> old = values(m);
    if (old[slot] >= cap) return m;
    std::vector<uint32_t> next(old.begin(), old.end());
    ++next[slot];
    return intern_values(next);
  }

  MemoryId with(MemoryId m, uint32_t slot, uint32_t value) {
    std::span<const uint32_t> old = values(m);
    if (old[slot] == value) return m;
    std::vector<uint32_t> next(old.begin(), old.end());
    next[slot] = value;
    return intern_values(next);
  }

  // Adds to the set of texts or values in a slot.
  MemoryId remember(MemoryId m, uint32_t slot, TextId text) { return remember(m, slot, index(text)); }
  MemoryId remember(MemoryId m, uint32_t slot, ValueId value) { return remember(m, slot, index(value)); }

  std::span<const uint32_t> text_set(TextSetId set) const { return list(index(set)); }  // of TextId, ascending

  // Lists of numbers in a slot; the empty one is 0.
  uint32_t intern_list(const std::vector<uint32_t>& numbers) { return intern(sets_, numbers); }
  std::span<const uint32_t> list(uint32_t id) const { return sets_[id]; }

  TextId extend(TextId text, uint8_t byte) {
    if (text == TextId::unknown) return text;
    uint64_t key = (uint64_t{index(text)} << 8) | byte;
    if (const uint32_t* found = extended_.find(key)) return TextId{*found};
    auto id = static_cast<uint32_t>(texts_.size());
    texts_.push_back({text, byte});
    extended_.insert(key, id);
    return TextId{id};
  }

  TextId beginning(TextId id) const { return texts_[index(id)].beginning; }  // a text without its last byte
  uint8_t last(TextId id) const { return texts_[index(id)].last; }

  std::string text(TextId id) const {
    std::string result;
    for (; id != TextId::empty; id = texts_[index(id)].beginning) result.push_back(static_cast<char>(texts_[index(id)].last));
    std::reverse(result.begin(), result.end());
    return result;
  }

  size_t memory_bytes() const { return values_.memory_bytes() + sets_.memory_bytes() + 8 * texts_.size() + extended_.bytes(); }

  template <typename Archive>
  void visit(Archive& archive) {
    archive(values_, sets_, texts_, extended_);
  }

 private:
  struct Text {
    TextId beginning;
    uint8_t last;
  };

  static uint32_t intern(InternedLists<uint32_t>& lists, const std::vector<uint32_t>& values) {
    Hash key = seeded(values.size());
    for (uint32_t value : values) key = mix(key, value);
    return lists.intern(key, values);
  }
  MemoryId intern_values(const std::vector<uint32_t>& values) { return MemoryId{intern(values_, values)}; }
  MemoryId remember(MemoryId m, uint32_t slot, uint32_t number) {
    std::span<const uint32_t> known = list(values(m)[slot]);
    std::vector<uint32_t> numbers(known.begin(), known.end());
    auto place = std::lower_bound(numbers.begin(), numbers.end(), number);
    if (place == numbers.end() || *place != number) numbers.insert(place, number);
    return with(m, slot, intern_list(numbers));
  }

  InternedLists<uint32_t> values_, sets_;
  std::vector<Text> texts_;
  FlatMap<uint64_t, uint32_t> extended_;
};

}  // namespace constrain
