// Sorts texts, and summarizes blocks of them.
#include "expressions/sorted_texts.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace constrain {

namespace {

constexpr size_t key_bytes = 8;   // of a text that are compared at once
constexpr size_t few_texts = 16;  // are compared as a whole
constexpr uint32_t large_set = 4096;  // texts of a set that is worth sharing

struct Keyed {
  uint64_t key;
  uint32_t text;
};

struct Run {  // of texts that are equal in their first `depth` bytes, but for zeros at their ends
  size_t begin, end, depth;
};

uint64_t key_of(std::string_view text) {
  uint64_t key = 0;
  for (size_t i = 0; i < key_bytes; ++i) key = (key << 8) | (i < text.size() ? static_cast<uint8_t>(text[i]) : 0);
  return key;
}

}  // namespace

SortedTexts::SortedTexts(std::string bytes, std::vector<uint32_t> ends) : bytes_(std::move(bytes)), ends_(std::move(ends)) {
  if (!is_sorted()) sort();
  bytes_.shrink_to_fit();
  ends_.shrink_to_fit();
  summarize();
}

SortedTexts::SortedTexts(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    bytes_ += text;
    ends_.push_back(static_cast<uint32_t>(bytes_.size()));
  }
  if (!is_sorted()) sort();
  summarize();
}

bool SortedTexts::is_sorted() const {
  for (uint32_t i = 1; i < size(); ++i) {
    if ((*this)[i - 1] >= (*this)[i]) return false;
  }
  return true;
}

// By eight bytes at a time, and then the texts that are equal so far: a comparison of whole texts would miss the
// processor's caches twice.
void SortedTexts::sort() {
  std::vector<Keyed> order(size());
  for (uint32_t i = 0; i < size(); ++i) order[i].text = i;
  std::vector<Run> waiting{{0, order.size(), 0}};
  while (!waiting.empty()) {
    const auto [begin, end, depth] = waiting.back();
    waiting.pop_back();
    const auto from = order.begin() + static_cast<std::ptrdiff_t>(begin), to = order.begin() + static_cast<std::ptrdiff_t>(end);
    if (end - begin <= few_texts) {
      std::sort(from, to, [&](const Keyed& a, const Keyed& b) { return (*this)[a.text] < (*this)[b.text]; });
      continue;
    }
    bool goes_on = false;
    for (auto each = from; each != to; ++each) {
      const std::string_view text = (*this)[each->text], rest = text.substr(std::min(depth, text.size()));
      each->key = key_of(rest);
      goes_on |= !rest.empty();
    }
    if (!goes_on) {
      std::sort(from, to, [&](const Keyed& a, const Keyed& b) { return (*this)[a.text].size() < (*this)[b.text].size(); });
      continue;
    }
    std::sort(from, to, [](const Keyed& a, const Keyed& b) { return a.key < b.key; });
    for (size_t i = begin; i < end;) {
      size_t next = i + 1;
      while (next < end && order[next].key == order[i].key) ++next;
      if (next - i > 1) waiting.push_back({i, next, depth + key_bytes});
      i = next;
    }
  }
  std::string bytes;
  std::vector<uint32_t> ends;
  bytes.reserve(bytes_.size());
  ends.reserve(ends_.size());
  std::string_view last;
  for (const Keyed& each : order) {
    const std::string_view text = (*this)[each.text];
    if (!ends.empty() && text == last) continue;
    last = text;
    bytes += text;
    ends.push_back(static_cast<uint32_t>(bytes.size()));
  }
  bytes_ = std::move(bytes);
  ends_ = std::move(ends);
}

void SortedTexts::summarize() {
  hash_ = seeded(0x7465787473);
  for (uint32_t i = 0; i < size(); ++i) {
    const std::string_view text = (*this)[i];
    hash_ = mix(hash_, text.size());
    for (size_t at = 0; at < text.size(); at += key_bytes) hash_ = mix(hash_, key_of(text.substr(at)));
    if (i % block == 0) {
      shortest_.push_back(i);
      longest_.push_back(0);
      heads_.append(text.substr(0, head_bytes)).resize((i / block + 1) * head_bytes);
    }
    if (text.size() < (*this)[shortest_.back()].size()) shortest_.back() = i;
    longest_.back() = std::max(longest_.back(), static_cast<uint32_t>(text.size()));
  }
  std::array<bool, 256> met{};
  for (char c : bytes_) met[static_cast<uint8_t>(c)] = true;
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (met[byte]) alphabet_.add(static_cast<uint8_t>(byte));
  }
}

std::shared_ptr<const SortedTexts> SortedTexts::shared(std::shared_ptr<const SortedTexts> texts) {
  static std::mutex mutex;
  static std::map<Hash, std::weak_ptr<const SortedTexts>> in_use;
  if (texts->size() < large_set) return texts;
  const std::scoped_lock lock(mutex);
  std::erase_if(in_use, [](const auto& each) { return each.second.expired(); });
  std::weak_ptr<const SortedTexts>& known = in_use[texts->hash_];
  if (auto other = known.lock(); other && other->ends_ == texts->ends_ && other->bytes_ == texts->bytes_) return other;
  known = texts;
  return texts;
}

uint32_t SortedTexts::place(std::string_view text) const {
  return first_from(0, size(), [&](uint32_t i) { return (*this)[i] < text; });
}

// Of two texts that differ, the lesser one's side gallops to the other, so that a small set costs little beside a large one.
SortedTexts SortedTexts::in_both(const SortedTexts& other) const {
  std::string bytes;
  std::vector<uint32_t> ends;
  for (uint32_t i = 0, j = 0; i < size() && j < other.size();) {
    const std::string_view ours = (*this)[i], theirs = other[j];
    if (ours == theirs) {
      bytes += ours;
      ends.push_back(static_cast<uint32_t>(bytes.size()));
      ++i, ++j;
    } else if (ours < theirs) {
      i = first_from(i, size(), [&](uint32_t at) { return (*this)[at] < theirs; });
    } else {
      j = first_from(j, other.size(), [&](uint32_t at) { return other[at] < ours; });
    }
  }
  return {std::move(bytes), std::move(ends)};
}

uint32_t SortedTexts::shortest(uint32_t low, uint32_t high) const {
  uint32_t best = low;
  for (uint32_t i = low; i < high;) {
    const bool whole = i % block == 0 && high - i >= block;
    const uint32_t each = whole ? shortest_[i / block] : i;
    if ((*this)[each].size() < (*this)[best].size()) best = each;
    i += whole ? block : 1;
  }
  return best;
}

size_t SortedTexts::longest(uint32_t low, uint32_t high) const {
  size_t most = 0;
  for (uint32_t i = low; i < high;) {
    const bool whole = i % block == 0 && high - i >= block;
    most = std::max(most, whole ? size_t{longest_[i / block]} : (*this)[i].size());
    i += whole ? block : 1;
  }
  return most;
}

}  // namespace constrain
