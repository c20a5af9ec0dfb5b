// Interned lists: the lists of one key have one number, counted from 0.
//
// Invariant: a list is made with the first use of its key, and stays. Spans last until the next list is made.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/hashing.h"

namespace constrain {

template <typename T>
class InternedLists {
 public:
  std::span<const T> operator[](uint32_t id) const { return {pool_.data() + runs_[id].first, runs_[id].second}; }
  std::span<T> change(uint32_t id) { return {pool_.data() + runs_[id].first, runs_[id].second}; }
  size_t size() const { return runs_.size(); }
  const uint32_t* find(Hash key) const { return ids_.find(key); }
  uint32_t intern(Hash key, std::span<const T> list) {
    if (const uint32_t* found = find(key)) return *found;
    const auto id = static_cast<uint32_t>(size());
    runs_.emplace_back(static_cast<uint32_t>(pool_.size()), static_cast<uint32_t>(list.size()));
    pool_.insert(pool_.end(), list.begin(), list.end());
    ids_.insert(key, id);
    return id;
  }
  size_t memory_bytes() const { return sizeof(T) * pool_.size() + 8 * runs_.size() + ids_.bytes(); }

  template <typename Archive>
  void visit(Archive& archive) {
    archive(pool_, runs_, ids_);
  }

 private:
  std::vector<T> pool_;
  std::vector<std::pair<uint32_t, uint32_t>> runs_;  // begin, count
  FlatMap<Hash, uint32_t> ids_;
};

}  // namespace constrain
