// A tokenizer's vocabulary as a byte trie, and the store of context-independent tokens that all constraints share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bitmask.h"
#include "byte_groups.h"
#include "byte_set.h"
#include "hashing.h"
#include "ids.h"

namespace constrain {

// Nodes in preorder: the first child of n is n + 1, the next sibling of n is end(n). Tokens in the same order, so the
// tokens below a node are one run. Tokens with equal bytes share a node; the root stands for the empty text.
class Trie {
 public:
  static constexpr uint32_t root = 0;

  Trie(std::span<const std::string_view> tokens);

  uint32_t size() const { return static_cast<uint32_t>(bytes_.size()); }
  uint8_t byte(uint32_t node) const { return bytes_[node]; }
  uint32_t end(uint32_t node) const { return ends_[node]; }
  bool has_children(uint32_t node) const { return ends_[node] != node + 1; }
  std::span<const uint32_t> tokens(uint32_t node) const { return run(first_token_[node], first_token_[node + 1]); }
  std::span<const uint32_t> tokens_below(uint32_t node) const {  // those of the node itself included
    return run(first_token_[node], first_token_[ends_[node]]);
  }
  // Raw arrays, for walks over all of it: byte and end by node, first token by node (one more), tokens.
  const uint8_t* bytes() const { return bytes_.data(); }
  const uint32_t* ends() const { return ends_.data(); }
  const uint32_t* first_tokens() const { return first_token_.data(); }
  const uint32_t* all_tokens() const { return tokens_.data(); }
  // The groups of all bytes below a node, its own left out.
  ByteGroups groups_below(uint32_t node) const { return groups_below_[node]; }

  template <typename F>
  void each_child(uint32_t node, F&& f) const {
    for (uint32_t child = node + 1; child < ends_[node]; child = ends_[child]) f(child);
  }
  size_t memory_bytes() const { return bytes_.capacity() + 4 * (ends_.capacity() + first_token_.capacity() + tokens_.capacity() + groups_below_.capacity()); }

 private:
  std::span<const uint32_t> run(uint32_t from, uint32_t to) const { return {tokens_.data() + from, to - from}; }

  std::vector<uint8_t> bytes_;
  std::vector<uint32_t> ends_;
  std::vector<uint32_t> first_token_;  // one more than nodes
  std::vector<uint32_t> tokens_;
  std::vector<ByteGroups> groups_below_;
};

// Tokens that end the lexeme: for one set of matched terminals (by position in the lexer state), the trie nodes whose
// byte the state cannot take although its parent's text is a whole lexeme. Sorted by byte.
struct Exits {
  std::vector<uint32_t> matched;
  std::vector<uint32_t> nodes;
  Hash key;  // of the nodes

  template <typename Archive>
  void visit(Archive& archive) {
    archive(matched, nodes, key);
  }
};

// The context-independent tokens of a lexer state: what it alone says about every token.
struct IndependentTokens {
  std::shared_ptr<const Bitmask> base;  // tokens that stay inside the lexeme; may be null
  std::vector<uint32_t> add;            // besides `base`, sorted
  std::vector<uint32_t> remove;         // from `base`, sorted
  std::vector<Exits> exits;
  std::vector<uint32_t> matched_at_root;  // not empty if the state itself is a whole lexeme
  ByteSet taken_at_root;                  // bytes with which the lexeme goes on

  size_t memory_bytes() const;

  template <typename Archive>
  void visit(Archive& archive) {
    archive(base, add, remove, exits, matched_at_root, taken_at_root);
  }
};

// The tokens made of units X (X prefix-free): which stay in X*, and where they leave it.
struct UnitTokens {
  struct Boundary {
    uint32_t node;   // child of a node whose path is `units` whole units
    uint32_t units;
  };
  std::shared_ptr<const Bitmask> all;                     // tokens that stay in X*
  std::vector<std::pair<uint32_t, uint32_t>> by_units;    // (units begun, token), most units first
  uint32_t most_units = 0;
  std::vector<Boundary> boundaries;                       // where a byte follows that no unit begins with; sorted by byte
  size_t memory_bytes() const;

  template <typename Archive>
  void visit(Archive& archive) {
    archive(all, by_units, most_units, boundaries);
  }
};

// The tokens that stay in X*, by where in it they lead: all of a group begin as many units and end at the same place of
// the last one.
struct UnitEnds {
  struct Group {
    uint32_t units;
    uint32_t token;  // one of them
    std::shared_ptr<const TokenSet> tokens;
  };
  std::vector<Group> groups;
  size_t memory_bytes() const;
};

// Special tokens that a grammar may name are read as their name between two bytes that no text has.
constexpr char mark_begin = '\xFF', mark_end = '\xFE';
inline bool is_mark(char c) { return c == mark_begin || c == mark_end; }
inline bool is_marked(std::string_view text) { return !text.empty() && text[0] == mark_begin; }

class Vocabulary {
 public:
  // `tokens[i]`: bytes of token i; empty for those without a text, the marked name for special tokens that have one.
  // What has a mark elsewhere can be part of no text.
  Vocabulary(std::vector<std::string_view> tokens, std::vector<uint32_t> special, std::vector<uint32_t> eos);

  uint32_t size() const { return static_cast<uint32_t>(offsets_.size() - 1); }
  uint32_t words() const { return (size() + 31) / 32; }
  std::string_view token(uint32_t id) const {  // as it is read
    return std::string_view(text_).substr(offsets_[id], offsets_[id + 1] - offsets_[id]);
  }
  std::string_view text(uint32_t id) const;  // what it stands for
  uint32_t find(std::string_view token) const;  // an id that is read as this; no_token if there is none
  const Trie& trie() const { return trie_; }
  const std::vector<uint32_t>& special() const { return special_; }
  const std::vector<uint32_t>& eos() const { return eos_; }
  bool is_eos(uint32_t id) const;
  // Fewest tokens that spell `text` from each byte on, `counts[text.size()]` being 0; no_spelling where none do. What
  // `text` ends with as `like` does is taken over from there.
  static constexpr uint32_t no_spelling = ~uint32_t{0};
  struct Spelling {
    std::string text;
    std::vector<uint32_t> counts;
  };
  Spelling spell(std::string text, const Spelling* like = nullptr) const;
  uint32_t first_token(const Spelling& spelling, size_t from) const;  // of fewest; the longest such; no_token at the end
  static constexpr uint32_t no_token = ~uint32_t{0};
  size_t longest_token() const { return longest_token_; }  // bytes

  std::shared_ptr<const IndependentTokens> find_independent(const Hash& key) const;
  void keep_independent(const Hash& key, std::shared_ptr<const IndependentTokens> tokens) const;
  std::shared_ptr<const UnitTokens> find_units(const Hash& key) const;
  void keep_units(const Hash& key, std::shared_ptr<const UnitTokens> tokens) const;

  std::shared_ptr<const UnitEnds> find_ends(const Hash& key) const;
  void keep_ends(const Hash& key, std::shared_ptr<const UnitEnds> ends) const;

  // Tokens that begin with a space, a line break or a tab.
  const TokenSet& words_begun() const { return words_begun_; }

  size_t memory_bytes() const;
  size_t store_bytes() const;

  std::string stored() const;                           // the kept tokens of states and units, for `restore` (storage.cpp)
  void restore(std::span<const std::byte> data) const;  // keeps them beside those that are there, while there is room
  std::string description() const;                      // all that tells it from other vocabularies

  static constexpr size_t store_limit = size_t{48} << 20;  // bytes that are kept; beyond, all are dropped and made anew

 private:
  void charge(size_t bytes) const;
  void index_beginnings();
  template <typename F>
  void each_beginning(std::string_view text, F&& f) const;

  std::vector<std::pair<uint32_t, std::string>> unreadable_;  // tokens with marks in their texts
  std::string text_;
  std::vector<uint32_t> offsets_;
  std::vector<uint32_t> special_;
  std::vector<uint32_t> eos_;
  Trie trie_;
  TokenSet words_begun_;
  size_t longest_token_ = 0;
  std::vector<uint32_t> singles_, pairs_;  // by the first byte, and by the first two, of a token: its node, or Trie::root

  struct HashOf {
    size_t operator()(const Hash& h) const { return static_cast<size_t>(h.low); }
  };
  mutable std::mutex mutex_;  // guards what follows
  mutable std::unordered_map<Hash, std::shared_ptr<const IndependentTokens>, HashOf> independent_;
  mutable std::unordered_map<Hash, std::shared_ptr<const UnitTokens>, HashOf> units_;
  mutable std::unordered_map<Hash, std::shared_ptr<const UnitEnds>, HashOf> ends_;
  mutable size_t store_bytes_ = 0;
};

}  // namespace constrain
