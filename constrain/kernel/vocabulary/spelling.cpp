// Fewest tokens for a text: its length in a token budget.
#include <algorithm>

#include "vocabulary/vocabulary.h"

namespace constrain {

namespace {

size_t common_suffix(std::string_view a, std::string_view b) {
  const size_t most = std::min(a.size(), b.size());
  size_t length = 0;
  while (length < most && a[a.size() - 1 - length] == b[b.size() - 1 - length]) ++length;
  return length;
}

}  // namespace

// The node after a byte below `node`; the root if there is none.
uint32_t Vocabulary::node_after(uint32_t node, uint8_t byte) const {
  if (node == Trie::root) return singles_[byte];
  if (const uint8_t first = trie_.byte(node); singles_[first] == node) return pairs_[size_t{first} << 8 | byte];
  for (uint32_t child = node + 1; child < trie_.end(node); child = trie_.end(child)) {
    if (trie_.byte(child) >= byte) return trie_.byte(child) == byte ? child : Trie::root;
  }
  return Trie::root;
}

// Calls `f(length, node)` for every non-empty beginning of `text` with which a token begins.
template <typename F>
void Vocabulary::each_beginning(std::string_view text, F&& f) const {
  const auto byte_at = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  uint32_t node = Trie::root;
  for (size_t length = 1; length <= text.size(); ++length) {
    node = node_after(node, byte_at(length - 1));
    if (node == Trie::root) return;
    f(length, node);
  }
}

void Vocabulary::index_beginnings() {
  singles_.assign(256, Trie::root);
  pairs_.assign(size_t{1} << 16, Trie::root);
  trie_.each_child(Trie::root, [&](uint32_t first) {
    singles_[trie_.byte(first)] = first;
    trie_.each_child(first, [&](uint32_t second) { pairs_[size_t{trie_.byte(first)} << 8 | trie_.byte(second)] = second; });
  });
}

Vocabulary::Spelling Vocabulary::spell(std::string text, const Spelling* like, std::vector<uint32_t> borders) const {
  Spelling spelling{std::move(text), {}, std::move(borders)};
  if (like && !(spelling.borders.empty() && like->borders.empty())) like = nullptr;
  const std::string_view all = spelling.text;
  std::vector<uint32_t>& counts = spelling.counts;
  counts.assign(all.size() + 1, no_spelling);
  const size_t known = like ? common_suffix(all, like->text) : 0;
  if (known > 0) std::copy(like->counts.end() - static_cast<ptrdiff_t>(known) - 1, like->counts.end(), counts.end() - static_cast<ptrdiff_t>(known) - 1);
  counts.back() = 0;
  for (size_t at = all.size() - known; at-- > 0;) {
    if (const size_t border = border_length(all.substr(at))) {
      counts[at] = counts[at + border];
      continue;
    }
    each_beginning(spelling.from(at), [&](size_t length, uint32_t node) {
      const uint32_t rest = counts[at + length];
      if (rest != no_spelling && !trie_.tokens(node).empty()) counts[at] = std::min(counts[at], rest + 1);
    });
  }
  return spelling;
}

uint32_t Vocabulary::find(std::string_view token) const {
  uint32_t found = no_token;
  each_beginning(token, [&](size_t length, uint32_t node) {
    if (length == token.size() && !trie_.tokens(node).empty()) found = trie_.tokens(node)[0];
  });
  return found;
}

uint32_t Vocabulary::first_token(const Spelling& spelling, size_t from) const {
  uint32_t token = no_token;
  each_beginning(spelling.from(from), [&](size_t length, uint32_t node) {
    const uint32_t rest = spelling.counts[from + length];
    if (rest != no_spelling && rest + 1 == spelling.counts[from] && !trie_.tokens(node).empty()) token = trie_.tokens(node)[0];
  });
  return token;
}

}  // namespace constrain
