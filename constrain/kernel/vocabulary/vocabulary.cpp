// Builds the trie and keeps the shared store.
#include "vocabulary/vocabulary.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace constrain {

Trie::Trie(std::span<const std::string_view> tokens) {
  tokens_.resize(tokens.size());
  std::iota(tokens_.begin(), tokens_.end(), 0u);
  std::erase_if(tokens_, [&](uint32_t id) { return tokens[id].empty(); });
  std::sort(tokens_.begin(), tokens_.end(), [&](uint32_t a, uint32_t b) {
    int order = tokens[a].compare(tokens[b]);
    return order != 0 ? order < 0 : a < b;
  });
  tokens_.shrink_to_fit();
  bytes_.push_back(0);
  ends_.push_back(0);
  first_token_.push_back(0);
  std::vector<uint32_t> path{root};  // nodes from the root to the last token
  std::string_view last;
  for (uint32_t i = 0; i < tokens_.size(); ++i) {
    std::string_view text = tokens[tokens_[i]];
    size_t common = 0;
    while (common < last.size() && common < text.size() && last[common] == text[common]) ++common;
    if (i > 0 && common == text.size() && common == last.size()) continue;
    for (; path.size() > common + 1; path.pop_back()) ends_[path.back()] = size();
    for (size_t depth = common; depth < text.size(); ++depth) {
      path.push_back(size());
      bytes_.push_back(static_cast<uint8_t>(text[depth]));
      ends_.push_back(0);
      first_token_.push_back(i);
    }
    if (text.size() > long_token) {
      long_nodes_.push_back(path.back());
      long_sizes_.push_back(static_cast<uint32_t>(text.size()));
    }
    last = text;
  }
  long_nodes_.shrink_to_fit();
  long_sizes_.shrink_to_fit();
  for (; !path.empty(); path.pop_back()) ends_[path.back()] = size();
  first_token_.push_back(static_cast<uint32_t>(tokens_.size()));
  bytes_.shrink_to_fit();
  ends_.shrink_to_fit();
  first_token_.shrink_to_fit();
  groups_below_.resize(size());
  for (uint32_t node = size(); node-- > 0;) {
    each_child(node, [&](uint32_t child) { groups_below_[node] |= groups_below_[child] | ByteGroups{1} << byte_groups[bytes_[child]]; });
  }
}

size_t IndependentTokens::memory_bytes() const {
  size_t total = sizeof(*this) + 4 * (add.size() + remove.size() + matched_at_root.size());
  for (const Exits& group : exits) total += sizeof(group) + 4 * (group.matched.size() + group.nodes.size());
  return total + (base && base.use_count() == 1 ? 4 * base->size() : 0);
}

size_t UnitEnds::memory_bytes() const {
  size_t bytes = sizeof(*this);
  for (const Group& group : groups) bytes += sizeof(Group) + group.tokens->memory_bytes();
  return bytes;
}

size_t UnitTokens::memory_bytes() const { return sizeof(*this) + 8 * (by_units.size() + boundaries.size()) + (all ? 4 * all->size() : 0); }

namespace {

std::string joined(std::span<const std::string_view> tokens) {
  size_t total = 0;
  for (std::string_view token : tokens) total += token.size();
  std::string text;
  text.reserve(total);
  for (std::string_view token : tokens) text += token;
  return text;
}

std::vector<uint32_t> token_offsets(std::span<const std::string_view> tokens) {
  std::vector<uint32_t> offsets{0};
  offsets.reserve(tokens.size() + 1);
  for (std::string_view token : tokens) offsets.push_back(offsets.back() + static_cast<uint32_t>(token.size()));
  return offsets;
}

// Removes and returns tokens that can be part of no text.
std::vector<std::pair<uint32_t, std::string>> take_unreadable(std::vector<std::string_view>& tokens, const std::vector<uint32_t>& special) {
  std::vector<bool> named(tokens.size());
  for (uint32_t id : special) named[id] = true;
  std::vector<std::pair<uint32_t, std::string>> taken;
  for (uint32_t id = 0; id < tokens.size(); ++id) {
    if (named[id] || std::none_of(tokens[id].begin(), tokens[id].end(), is_mark)) continue;
    taken.emplace_back(id, tokens[id]);
    tokens[id] = {};
  }
  return taken;
}

}  // namespace

Vocabulary::Vocabulary(std::vector<std::string_view> tokens, std::vector<uint32_t> special, std::vector<uint32_t> eos)
    : n_tokens_(static_cast<uint32_t>(tokens.size())), unreadable_(take_unreadable(tokens, special)), text_(joined(tokens)), offsets_(token_offsets(tokens)), special_(std::move(special)),
      eos_(std::move(eos)), trie_(tokens) {
  std::sort(eos_.begin(), eos_.end());
  for (std::string_view token : tokens) longest_token_ = std::max(longest_token_, token.size());
  index_beginnings();
  trie_.each_child(Trie::root, [this](uint32_t child) {
    const uint8_t byte = trie_.byte(child);
    if (!trie_.tokens(child).empty()) bytes_.add(byte);
  });
}

// One of a few numbers of marks, so that grammars share them.
std::shared_ptr<const Vocabulary> Vocabulary::with_marks(uint32_t count) const {
  const uint32_t number = std::max(32u, std::bit_ceil(count));
  std::scoped_lock lock(marking_);
  std::weak_ptr<const Vocabulary>& known = marked_[number];
  if (std::shared_ptr<const Vocabulary> shared = known.lock()) return shared;
  std::vector<std::string_view> texts;
  texts.reserve(first_mark() + number);
  for (uint32_t id = 0; id < size(); ++id) texts.push_back(token(id));
  texts.resize(first_mark());
  std::vector<std::string> marks;
  std::vector<uint32_t> special = special_;
  for (uint32_t i = 0; i < number; ++i) marks.push_back(numbered_mark(class_mark, i));
  for (const std::string& mark : marks) {
    special.push_back(static_cast<uint32_t>(texts.size()));
    texts.push_back(mark);
  }
  auto made = std::make_shared<Vocabulary>(std::move(texts), std::move(special), eos_);
  made->n_tokens_ = n_tokens_;
  made->unreadable_ = unreadable_;
  known = made;
  return made;
}

std::string_view Vocabulary::text(uint32_t id) const {
  for (const auto& [token, text] : unreadable_) {
    if (token == id) return text;
  }
  return is_marked(token(id)) ? std::string_view() : token(id);
}

std::vector<uint32_t> Vocabulary::beginnings_of(std::string_view text) const {
  std::vector<uint32_t> found;
  uint32_t node = Trie::root;
  for (char c : text) {
    uint32_t next = Trie::root;
    trie_.each_child(node, [&](uint32_t child) {
      if (trie_.byte(child) == static_cast<uint8_t>(c)) next = child;
    });
    if (next == Trie::root) break;
    node = next;
    found.insert(found.end(), trie_.tokens(node).begin(), trie_.tokens(node).end());
  }
  return found;
}

// Nothing if they are too many.
std::optional<std::vector<std::string_view>> Vocabulary::find_suffixes(uint8_t byte) const {
  std::vector<std::string_view> found;
  auto leave_out_equals = [&found] {
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
  };
  uint32_t token = 0;
  for (size_t at = text_.find(static_cast<char>(byte)); at != std::string::npos; at = text_.find(static_cast<char>(byte), at + 1)) {
    while (offsets_[token + 1] <= at) ++token;
    found.push_back(std::string_view(text_).substr(at, offsets_[token + 1] - at));
    if (found.size() < 2 * max_suffixes) continue;
    leave_out_equals();
    if (found.size() > max_suffixes) return std::nullopt;
  }
  leave_out_equals();
  if (found.size() > max_suffixes) return std::nullopt;
  found.shrink_to_fit();
  return found;
}

const std::vector<std::string_view>* Vocabulary::suffixes_from(uint8_t byte) const {
  std::scoped_lock lock(mutex_);
  Suffixes& suffixes = suffixes_[byte];
  if (!suffixes.sought) suffixes = {true, find_suffixes(byte)};
  return suffixes.found ? &*suffixes.found : nullptr;
}

bool Vocabulary::is_eos(uint32_t id) const { return std::binary_search(eos_.begin(), eos_.end(), id); }

std::shared_ptr<const IndependentTokens> Vocabulary::find_independent(const Hash& key) const {
  std::scoped_lock lock(mutex_);
  auto found = independent_.find(key);
  if (found != independent_.end()) return found->second;
  const auto same = same_independent_.find(key);
  if (same != same_independent_.end()) found = independent_.find(same->second);
  return found == independent_.end() ? nullptr : found->second;
}

void Vocabulary::charge(size_t bytes) const {
  if (store_bytes_ + bytes > store_limit) {  // tokens in use live on with their users
    independent_.clear();
    same_independent_.clear();
    begun_.clear();
    units_.clear();
    ends_.clear();
    places_.clear();
    byte_tokens_.clear();
    store_bytes_ = 0;
  }
  store_bytes_ += bytes;
}

void Vocabulary::keep_independent(const Hash& key, std::shared_ptr<const IndependentTokens> tokens) const {
  std::scoped_lock lock(mutex_);
  charge(tokens->memory_bytes());
  independent_.emplace(key, std::move(tokens));
}

void Vocabulary::keep_same_independent(const Hash& key, const Hash& same) const {
  std::scoped_lock lock(mutex_);
  charge(sizeof(std::pair<Hash, Hash>));
  same_independent_.emplace(key, same);
}

std::shared_ptr<const std::vector<uint32_t>> Vocabulary::find_begun(const Hash& key) const {
  std::scoped_lock lock(mutex_);
  auto found = begun_.find(key);
  return found == begun_.end() ? nullptr : found->second;
}

void Vocabulary::keep_begun(const Hash& key, std::shared_ptr<const std::vector<uint32_t>> most) const {
  std::scoped_lock lock(mutex_);
  charge(4 * most->size());
  begun_.emplace(key, std::move(most));
}

std::shared_ptr<const UnitTokens> Vocabulary::find_units(const Hash& key) const {
  std::scoped_lock lock(mutex_);
  auto found = units_.find(key);
  return found == units_.end() ? nullptr : found->second;
}

void Vocabulary::keep_units(const Hash& key, std::shared_ptr<const UnitTokens> tokens) const {
  std::scoped_lock lock(mutex_);
  charge(tokens->memory_bytes());
  units_.emplace(key, std::move(tokens));
}

std::shared_ptr<const UnitEnds> Vocabulary::find_ends(const Hash& key) const {
  std::scoped_lock lock(mutex_);
  auto found = ends_.find(key);
  return found == ends_.end() ? nullptr : found->second;
}

void Vocabulary::keep_ends(const Hash& key, std::shared_ptr<const UnitEnds> ends) const {
  std::scoped_lock lock(mutex_);
  charge(ends->memory_bytes());
  ends_.emplace(key, std::move(ends));
}

std::shared_ptr<const PlaceTokens> Vocabulary::find_places(const Hash& key) const {
  std::scoped_lock lock(mutex_);
  auto found = places_.find(key);
  return found == places_.end() ? nullptr : found->second;
}

void Vocabulary::keep_places(const Hash& key, std::shared_ptr<const PlaceTokens> tokens) const {
  std::scoped_lock lock(mutex_);
  charge(tokens->memory_bytes());
  places_.emplace(key, std::move(tokens));
}

std::shared_ptr<const ByteTokens> Vocabulary::tokens_of(const ByteSet& bytes) const {
  const Hash key = bytes.hash(seeded(0x62797465));
  {
    std::scoped_lock lock(mutex_);
    if (const auto found = byte_tokens_.find(key); found != byte_tokens_.end()) return found->second;
  }
  auto made = std::make_shared<ByteTokens>();
  auto all = std::make_shared<Bitmask>(words());
  made->leaving.resize((trie_.size() + 31) / 32);
  ByteGroups within = 0;  // groups of which all bytes are in the set
  for (unsigned group = 0; group < 32; ++group) {
    if (std::ranges::all_of(bytes_of_groups.in(group), [&](uint8_t byte) { return bytes.contains(byte); })) within |= ByteGroups{1} << group;
  }
  for (uint32_t node = 1, below_root = 1; node < trie_.size();) {
    const bool is_below_root = node == below_root;
    if (is_below_root) below_root = trie_.end(node);
    if (!bytes.contains(trie_.byte(node))) {
      if (!is_below_root) set_bit(made->leaving, node);
      node = trie_.end(node);
      continue;
    }
    const bool all_below = (trie_.groups_below(node) & ~within) == 0;
    for (uint32_t token : all_below ? trie_.tokens_below(node) : trie_.tokens(node)) set_bit(*all, token);
    node = all_below ? trie_.end(node) : node + 1;
  }
  made->all = std::move(all);
  std::scoped_lock lock(mutex_);
  charge(made->memory_bytes());
  byte_tokens_.emplace(key, made);
  return made;
}

size_t Vocabulary::memory_bytes() const {
  size_t suffixes = 0;
  {
    std::scoped_lock lock(mutex_);
    for (const Suffixes& each : suffixes_) suffixes += each.found ? each.found->capacity() * sizeof(std::string_view) : 0;
  }
  return suffixes + text_.capacity() + 4 * (offsets_.capacity() + special_.capacity() + eos_.capacity() + singles_.capacity() + pairs_.capacity()) + trie_.memory_bytes();
}

size_t Vocabulary::store_bytes() const {
  std::scoped_lock lock(mutex_);
  return store_bytes_;
}

}  // namespace constrain
