// Follows forced text, and the trie beyond its end.
#include "completions/forced_text.h"

#include "base/errors.h"

namespace constrain {

namespace {

// Whether some longer token below the trie's `node` can continue from `place`.
bool token_goes_on(Stepping& stepping, const Trie& trie, uint32_t node, const Place& place) {
  struct Frame {
    uint32_t child, end;
    Place place;
  };
  std::vector<Frame> path{{node + 1, trie.end(node), place}};
  while (!path.empty()) {
    const uint32_t child = path.back().child;
    if (child >= path.back().end) {
      path.pop_back();
      continue;
    }
    path.back().child = trie.end(child);
    Place next = path.back().place;
    if (!stepping.step(next, trie.byte(child))) continue;
    if (!trie.tokens(child).empty()) return true;
    path.push_back({child + 1, trie.end(child), next});
  }
  return false;
}

}  // namespace

std::string forced_bytes(Stepping& stepping, Place& place, size_t limit) {
  std::string forced;
  try {
    while (forced.size() < limit && !stepping.accepting(place)) {
      Place only = place;
      unsigned possible = 0;
      uint8_t last = 0;
      for (unsigned b = 0; b < 256 && possible < 2; ++b) {
        Place next = place;
        if (!stepping.step(next, static_cast<uint8_t>(b))) continue;
        ++possible;
        last = static_cast<uint8_t>(b);
        only = next;
      }
      if (possible != 1) break;
      forced.push_back(static_cast<char>(last));
      place = only;
    }
  } catch (const LimitError&) {
  }
  return forced;
}

std::vector<uint32_t> open_starts(Stepping& stepping, const Vocabulary& vocabulary, std::string_view text, const Place& place) {
  const Trie& trie = vocabulary.trie();
  std::vector<uint32_t> starts;
  for (size_t start = 0; start < text.size(); ++start) {
    uint32_t node = Trie::root;
    size_t at = start;
    for (; at < text.size(); ++at) {
      uint32_t child = node + 1;
      while (child < trie.end(node) && trie.byte(child) != static_cast<uint8_t>(text[at])) child = trie.end(child);
      if (child == trie.end(node)) break;
      node = child;
    }
    if (at < text.size() || !trie.has_children(node)) continue;
    try {
      if (!token_goes_on(stepping, trie, node, place)) continue;
    } catch (const LimitError&) {
    }
    starts.push_back(static_cast<uint32_t>(start));
  }
  return starts;
}

}  // namespace constrain
