// Archives: tables as flat bytes, written and read by the same `visit(archive)` of each class.
//
// Arrays are copied whole, so reading costs little more than a copy. Hash tables and OnDemand are used where they lie,
// so the bytes must outlive them. The bytes have passed a checksum before; nevertheless a reader never leaves them, and
// throws StorageError if they cannot be valid. They fit only this machine and this build of the kernel (alignment, byte
// order, layouts); they are no format for exchange.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bitmask.h"
#include "base/hashing.h"

namespace constrain {

struct StorageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

constexpr size_t storage_alignment = 8;  // of every array

template <typename T>
constexpr bool is_plain = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>;
template <typename A, typename B>
constexpr bool is_plain<std::pair<A, B>> = is_plain<A> && is_plain<B>;

// Whether a stored pointer may be null: only to a set of tokens, where it means that there are none.
template <typename T>
constexpr bool may_be_null = std::is_same_v<T, Bitmask>;

template <typename T>
class OnDemand;

class Writer {
 public:
  static constexpr bool is_writer = true;

  template <typename... T>
  void operator()(T&... fields) {
    (put(fields), ...);
  }
  std::string take() { return std::move(out_); }

 private:
  void raw(const void* data, size_t bytes) {
    if (bytes > 0) out_.append(static_cast<const char*>(data), bytes);
  }
  void count(uint64_t number) { raw(&number, sizeof number); }
  template <typename T>
  void array(const T* data, size_t size) {
    count(size);
    raw(data, size * sizeof(T));
    out_.resize((out_.size() + storage_alignment - 1) / storage_alignment * storage_alignment);
  }

  template <typename T>
  void put(T& value) {
    if constexpr (requires { value.visit(*this); }) {
      value.visit(*this);
    } else {
      static_assert(is_plain<T>);
      array(&value, 1);
    }
  }
  void put(std::string& text) { array(text.data(), text.size()); }
  void put(std::vector<bool>& flags) {
    std::vector<uint8_t> bytes(flags.begin(), flags.end());
    put(bytes);
  }
  template <typename T>
  void put(std::vector<T>& items) {
    if constexpr (is_plain<T>) {
      array(items.data(), items.size());
    } else {
      each(items);
    }
  }
  template <typename T>
  void put(std::deque<T>& items) {
    each(items);
  }
  template <typename Items>
  void each(Items& items) {
    count(items.size());
    for (auto& item : items) put(item);
  }
  // A shared object is written once, after the first pointer to it. A pointer is written as position and size.
  template <typename T>
  void put(std::shared_ptr<const T>& pointer) {
    if (!pointer) return count(0), count(0);
    const auto [shared, first] = places_.emplace(pointer.get(), out_.size() + 2 * sizeof(uint64_t));
    count(shared->second);
    const size_t size = reserve();
    if (first) put(const_cast<T&>(*pointer));  // `visit` of a writer changes nothing
    fill(size, out_.size() - size - sizeof(uint64_t));
  }
  template <typename T>
  void put(OnDemand<T>& items) {
    const size_t size = reserve();
    std::vector<uint64_t> places;
    for (size_t i = 0; i < items.size(); ++i) {
      places.push_back(out_.size());
      put(items[i]);
    }
    fill(size, out_.size() - size - sizeof(uint64_t));
    put(places);
  }
  size_t reserve() {
    count(0);
    return out_.size() - sizeof(uint64_t);
  }
  void fill(size_t reserved, uint64_t number) { std::memcpy(out_.data() + reserved, &number, sizeof number); }

  std::string out_;
  std::unordered_map<const void*, uint64_t> places_;
};

class Reader {
 public:
  static constexpr bool is_writer = false;

  explicit Reader(std::span<const std::byte> data) : data_(data), shared_(std::make_shared<Shared>()) {
    require(reinterpret_cast<uintptr_t>(data.data()) % storage_alignment == 0);
  }

  template <typename... T>
  void operator()(T&... fields) {
    (get(fields), ...);
  }
  void require(bool holds) const {
    if (!holds) throw StorageError("stored tables are not as they were written");
  }
  void require_end() const { require(at_ == data_.size()); }
  Reader at(uint64_t place) const {
    require(place <= data_.size() && place % storage_alignment == 0);
    Reader there = *this;
    there.at_ = place;
    return there;
  }

  template <typename T>
  std::span<const T> array() {  // a view of the data
    static_assert(is_plain<T> && alignof(T) <= storage_alignment);
    const uint64_t size = count();
    require(size <= (data_.size() - at_) / sizeof(T));
    const std::span<const T> view(reinterpret_cast<const T*>(data_.data() + at_), size);
    at_ += size * sizeof(T);
    const size_t padding = (storage_alignment - at_ % storage_alignment) % storage_alignment;
    require(padding <= data_.size() - at_);
    at_ += padding;
    return view;
  }

 private:
  uint64_t count() {
    require(sizeof(uint64_t) <= data_.size() - at_);
    uint64_t number;
    std::memcpy(&number, data_.data() + at_, sizeof number);
    at_ += sizeof number;
    return number;
  }

  template <typename T>
  void get(T& value) {
    if constexpr (requires { value.visit(*this); }) {
      value.visit(*this);
    } else {
      const std::span<const T> one = array<T>();
      require(one.size() == 1);
      value = one[0];
    }
  }
  void get(std::string& text) {
    const std::span<const char> view = array<char>();
    text.assign(view.begin(), view.end());
  }
  void get(std::vector<bool>& flags) {
    const std::span<const uint8_t> view = array<uint8_t>();
    flags.assign(view.begin(), view.end());
  }
  template <typename T>
  void get(std::vector<T>& items) {
    if constexpr (is_plain<T>) {
      const std::span<const T> view = array<T>();
      items.assign(view.begin(), view.end());
    } else {
      each(items);
    }
  }
  template <typename T>
  void get(std::deque<T>& items) {
    each(items);
  }
  template <typename Items>
  void each(Items& items) {
    const uint64_t size = count();
    require(size <= (data_.size() - at_) / sizeof(uint64_t));  // each takes at least one number
    items.clear();
    items.resize(size);
    for (auto& item : items) get(item);
  }
  template <typename T>
  void get(std::shared_ptr<const T>& pointer) {
    const uint64_t place = count();
    skip();
    pointer = nullptr;
    if (place == 0) return require(may_be_null<T>);
    if (auto known = shared_->find(place); known != shared_->end()) {
      pointer = std::static_pointer_cast<const T>(known->second);
      return;
    }
    auto made = std::make_shared<T>();
    at(place).get(*made);
    pointer = std::move(made);
    if constexpr (requires { T::shared(pointer); }) pointer = T::shared(std::move(pointer));
    shared_->emplace(place, pointer);
  }
  template <typename T>
  void get(OnDemand<T>& items) {
    skip();
    const std::span<const uint64_t> places = array<uint64_t>();
    items = OnDemand<T>(*this, places);
  }
  void skip() {
    const uint64_t size = count();
    require(size <= data_.size() - at_ && size % storage_alignment == 0);
    at_ += size;
  }

  using Shared = std::unordered_map<uint64_t, std::shared_ptr<const void>>;

  std::span<const std::byte> data_;
  size_t at_ = 0;
  std::shared_ptr<Shared> shared_;  // by position; common to all readers of the same data
};

// A growing table whose stored entries are read one by one, when they are asked for.
template <typename T>
class OnDemand {
 public:
  OnDemand() = default;
  OnDemand(const Reader& reader, std::span<const uint64_t> places) : reader_(reader), places_(places), there_(places.size()) {}

  T& operator[](size_t i) { return at(i); }
  const T& operator[](size_t i) const { return at(i); }
  void push_back(T item) {
    items_.push_back(std::move(item));
    there_.push_back(static_cast<uint32_t>(items_.size()));
  }
  size_t size() const { return there_.size(); }

 private:
  T& at(size_t i) const {
    if (there_[i] == 0) {
      Reader reader = reader_->at(places_[i]);
      reader(items_.emplace_back());
      there_[i] = static_cast<uint32_t>(items_.size());
    }
    return items_[there_[i] - 1];
  }

  std::optional<Reader> reader_;
  std::span<const uint64_t> places_;
  mutable std::deque<T> items_;           // in the order of the requests
  mutable std::vector<uint32_t> there_;   // index in items_, plus 1; 0: not read yet
};

// Immutable plain values: owned, or in stored bytes that must outlive this.
template <typename T>
class Array {
 public:
  Array() = default;
  explicit Array(std::vector<T> values) : own_(std::move(values)) {}

  std::span<const T> values() const { return own_.empty() ? stored_ : std::span<const T>(own_); }
  auto begin() const { return values().begin(); }
  auto end() const { return values().end(); }
  size_t size() const { return values().size(); }
  bool empty() const { return values().empty(); }
  size_t own_bytes() const { return own_.size() * sizeof(T); }

  template <typename Archive>
  void visit(Archive& archive) {
    if constexpr (Archive::is_writer) {
      std::vector<T> copy(begin(), end());
      archive(copy);
    } else {
      stored_ = archive.template array<T>();
    }
  }

 private:
  std::vector<T> own_;
  std::span<const T> stored_;
};

// A checksum that detects damage, but not forgery.
Hash checksum(std::span<const std::byte> data);

}  // namespace constrain
