// A tokenizer's vocabulary as a byte trie, and the store of context-independent tokens that all constraints share.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/bitmask.h"
#include "base/byte_groups.h"
#include "base/byte_set.h"
#include "base/hashing.h"
#include "base/ids.h"

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
  std::span<const uint32_t> tokens_below(uint32_t node) const {  // the node itself included
    return run(first_token_[node], first_token_[ends_[node]]);
  }
  // Raw arrays, for walks over the whole trie: byte and end by node, first token by node (one more entry), tokens.
  const uint8_t* bytes() const { return bytes_.data(); }
  const uint32_t* ends() const { return ends_.data(); }
  const uint32_t* first_tokens() const { return first_token_.data(); }
  const uint32_t* all_tokens() const { return tokens_.data(); }
  // The groups of all bytes below a node, without its own.
  ByteGroups groups_below(uint32_t node) const { return groups_below_[node]; }
  // The nodes of tokens of more than `long_token` bytes, ascending, and their lengths.
  static constexpr size_t long_token = 16;
  std::span<const uint32_t> long_nodes() const { return long_nodes_; }
  std::span<const uint32_t> long_sizes() const { return long_sizes_; }

  template <typename F>
  void each_child(uint32_t node, F&& f) const {
    for (uint32_t child = node + 1; child < ends_[node]; child = ends_[child]) f(child);
  }
  size_t memory_bytes() const {
    const size_t words = ends_.capacity() + first_token_.capacity() + tokens_.capacity() + groups_below_.capacity() + 2 * long_nodes_.capacity();
    return bytes_.capacity() + 4 * words;
  }

 private:
  std::span<const uint32_t> run(uint32_t from, uint32_t to) const { return {tokens_.data() + from, to - from}; }

  std::vector<uint8_t> bytes_;
  std::vector<uint32_t> ends_;
  std::vector<uint32_t> first_token_;  // one entry more than nodes
  std::vector<uint32_t> tokens_;
  std::vector<ByteGroups> groups_below_;
  std::vector<uint32_t> long_nodes_, long_sizes_;
};

// Tokens that end the lexeme, for one set of matched terminals (by position in the lexer state): the trie nodes whose
// byte the state cannot take although the text of the parent is a whole lexeme. Sorted by byte.
struct Exits {
  std::vector<uint32_t> matched;
  std::vector<uint32_t> nodes;
  Hash key;  // hash of the nodes

  template <typename Archive>
  void visit(Archive& archive) {
    archive(matched, nodes, key);
  }
};

// The context-independent tokens of a lexer state: what it alone says about every token.
struct IndependentTokens {
  std::shared_ptr<const Bitmask> base;  // tokens that stay inside the lexeme; may be null
  std::vector<uint32_t> add;            // tokens besides `base`, sorted
  std::vector<uint32_t> remove;         // tokens to remove from `base`, sorted
  std::vector<Exits> exits;
  std::vector<uint32_t> matched_at_root;  // not empty if the state itself is a whole lexeme
  ByteSet taken_at_root;                  // bytes that continue the lexeme

  size_t memory_bytes() const;

  template <typename Archive>
  void visit(Archive& archive) {
    archive(base, add, remove, exits, matched_at_root, taken_at_root);
  }
};

// The tokens made of units X (X prefix-free): those that stay in X*, and where others leave it.
struct UnitTokens {
  struct Boundary {
    uint32_t node;   // a child of a node whose path is `units` whole units
    uint32_t units;
  };
  std::shared_ptr<const Bitmask> all;                     // tokens that stay in X*
  std::vector<std::pair<uint32_t, uint32_t>> by_units;    // (units begun, token), most units first
  uint32_t most_units = 0;
  std::vector<Boundary> boundaries;                       // nodes whose byte begins no unit; sorted by byte
  size_t memory_bytes() const;

  template <typename Archive>
  void visit(Archive& archive) {
    archive(all, by_units, most_units, boundaries);
  }
};

// The tokens made of bytes of one set, and the nodes at which others leave it: their byte is the first that is not in it.
struct ByteTokens {
  std::shared_ptr<const Bitmask> all;
  Bitmask leaving;  // by node; none is a child of the root
  size_t memory_bytes() const { return sizeof(*this) + 4 * (all->size() + leaving.size()); }
};

// The tokens that stay in X*, by the state they lead to: all tokens of a group begin equally many units and end at the
// same position of the last one.
struct UnitEnds {
  struct Group {
    uint32_t units;
    uint32_t token;  // one token of the group
    std::shared_ptr<const TokenSet> tokens;
  };
  std::vector<Group> groups;
  size_t memory_bytes() const;
};

// The tokens that may follow at a place from which every byte leads to one of few places (place_rows.h): they depend on
// the transitions between these alone. Sets of equal transitions in all grammars share them.
struct PlaceTokens {
  std::shared_ptr<const Bitmask> base;  // may be null
  std::vector<uint32_t> add;            // tokens besides `base`
  std::vector<uint32_t> ends;           // the places at which tokens end, by their numbers
  size_t memory_bytes() const { return sizeof(*this) + (base ? 4 * base->size() : 0) + 4 * (add.size() + ends.size()); }
};

// A special token that a grammar may name has as bytes its name between two bytes that no text has.
constexpr char mark_begin = '\xFF', mark_end = '\xFE';
inline bool is_mark(char c) { return c == mark_begin || c == mark_end; }
inline bool is_marked(std::string_view text) { return !text.empty() && text[0] == mark_begin; }

// Marks of classes and of borders have a number instead of a name. Their second byte is in no name: names are UTF-8.
// A class is read in place of each of its tokens (token_classes.h). A border is where a rule that limits its tokens begins
// or ends: it stands between tokens, and takes none.
constexpr char class_mark = '\xC0', border_mark = '\xC1';
inline std::string numbered_mark(char kind, uint32_t number) { return std::string{mark_begin, kind} + std::to_string(number) + mark_end; }
inline size_t border_length(std::string_view text) {  // of the border with which the text begins; 0 if it does not
  return text.size() > 1 && text[0] == mark_begin && text[1] == border_mark ? text.find(mark_end) + 1 : 0;
}

class Vocabulary {
 public:
  // `tokens[i]`: bytes of token i; empty for ids without text, the marked name for special tokens with a name. A token
  // with a mark elsewhere can be part of no text.
  Vocabulary(std::vector<std::string_view> tokens, std::vector<uint32_t> special, std::vector<uint32_t> eos);

  // The same tokens and, behind them, marks of so many classes or more. Shared while it is in use.
  std::shared_ptr<const Vocabulary> with_marks(uint32_t count) const;

  uint32_t size() const { return static_cast<uint32_t>(offsets_.size() - 1); }  // ids, those of marks included
  uint32_t words() const { return (size() + 31) / 32; }
  uint32_t n_tokens() const { return n_tokens_; }
  uint32_t token_words() const { return (n_tokens_ + 31) / 32; }
  uint32_t first_mark() const { return 32 * token_words(); }  // so marks have words of their own
  std::string_view token(uint32_t id) const {  // the bytes by which it is read
    return std::string_view(text_).substr(offsets_[id], offsets_[id + 1] - offsets_[id]);
  }
  std::string_view text(uint32_t id) const;  // the text it stands for
  uint32_t find(std::string_view token) const;  // an id with these bytes; no_token if there is none
  std::vector<uint32_t> beginnings_of(std::string_view text) const;  // all tokens with which the text begins
  const Trie& trie() const { return trie_; }
  uint32_t node_after(uint32_t node, uint8_t byte) const;  // of the trie; the root if there is none
  const std::vector<uint32_t>& special() const { return special_; }
  const std::vector<uint32_t>& eos() const { return eos_; }
  bool is_eos(uint32_t id) const;
  // Fewest tokens that spell `text` from each byte on; `counts[text.size()]` is 0, no_spelling means none. The counts
  // of a common ending with `like` are taken from there. No token crosses one of `borders`, which ascend; the marks of
  // borders take no token.
  static constexpr uint32_t no_spelling = ~uint32_t{0};
  struct Spelling {
    std::string text;
    std::vector<uint32_t> counts;
    std::vector<uint32_t> borders = {};
    size_t behind_border() const {  // the end of the first mark of a border, or of the text
      const size_t at = text.find(std::string{mark_begin, border_mark});
      return at == std::string::npos ? text.size() : at + border_length(std::string_view(text).substr(at));
    }
    // The text from `at` to the next border.
    std::string_view from(size_t at) const {
      const auto border = std::upper_bound(borders.begin(), borders.end(), at);
      return std::string_view(text).substr(at, border == borders.end() ? std::string_view::npos : *border - at);
    }
  };
  Spelling spell(std::string text, const Spelling* like = nullptr, std::vector<uint32_t> borders = {}) const;
  uint32_t first_token(const Spelling& spelling, size_t from) const;  // the longest that begins a shortest spelling
  static constexpr uint32_t no_token = ~uint32_t{0};
  size_t longest_token() const { return longest_token_; }  // in bytes

  std::shared_ptr<const IndependentTokens> find_independent(const Hash& key) const;
  void keep_independent(const Hash& key, std::shared_ptr<const IndependentTokens> tokens) const;
  // Keeps a key of a state that has the same tokens as the state of another key.
  void keep_same_independent(const Hash& key, const Hash& same) const;
  // Bounds on the units that each long token begins, by unit.
  std::shared_ptr<const std::vector<uint32_t>> find_begun(const Hash& key) const;
  void keep_begun(const Hash& key, std::shared_ptr<const std::vector<uint32_t>> most) const;
  std::shared_ptr<const UnitTokens> find_units(const Hash& key) const;
  void keep_units(const Hash& key, std::shared_ptr<const UnitTokens> tokens) const;

  std::shared_ptr<const UnitEnds> find_ends(const Hash& key) const;
  void keep_ends(const Hash& key, std::shared_ptr<const UnitEnds> ends) const;

  std::shared_ptr<const ByteTokens> tokens_of(const ByteSet& bytes) const;

  std::shared_ptr<const PlaceTokens> find_places(const Hash& key) const;
  void keep_places(const Hash& key, std::shared_ptr<const PlaceTokens> tokens) const;

  // The ends of tokens that begin with `byte`, sorted, without equals; null if they are too many to be of use.
  static constexpr size_t max_suffixes = 1 << 15;
  const std::vector<std::string_view>* suffixes_from(uint8_t byte) const;

  // The bytes that are tokens by themselves.
  const ByteSet& bytes() const { return bytes_; }

  size_t memory_bytes() const;
  size_t store_bytes() const;

  std::string stored() const;                           // the kept tokens of states and units, for `restore` (stored_tokens.cpp)
  void restore(std::span<const std::byte> data) const;  // adds them to the store while there is room
  std::string description() const;                      // bytes that identify the vocabulary

  static constexpr size_t store_limit = size_t{48} << 20;  // bytes of kept tokens; beyond, all are dropped

 private:
  std::optional<std::vector<std::string_view>> find_suffixes(uint8_t byte) const;
  void charge(size_t bytes) const;
  void index_beginnings();
  template <typename F>
  void each_beginning(std::string_view text, F&& f) const;

  uint32_t n_tokens_;
  std::vector<std::pair<uint32_t, std::string>> unreadable_;  // tokens with marks in their texts
  std::string text_;
  std::vector<uint32_t> offsets_;
  std::vector<uint32_t> special_;
  std::vector<uint32_t> eos_;
  Trie trie_;
  ByteSet bytes_;
  size_t longest_token_ = 0;
  std::vector<uint32_t> singles_, pairs_;  // by a token's first byte, first two bytes: node or root

  struct HashOf {
    size_t operator()(const Hash& h) const { return static_cast<size_t>(h.low); }
  };
  mutable std::mutex mutex_;  // guards the members below
  mutable std::unordered_map<Hash, std::shared_ptr<const IndependentTokens>, HashOf> independent_;
  mutable std::unordered_map<Hash, Hash, HashOf> same_independent_;  // keys of independent_, by further keys; not stored
  mutable std::unordered_map<Hash, std::shared_ptr<const std::vector<uint32_t>>, HashOf> begun_;  // not stored
  mutable std::unordered_map<Hash, std::shared_ptr<const UnitTokens>, HashOf> units_;
  mutable std::unordered_map<Hash, std::shared_ptr<const UnitEnds>, HashOf> ends_;
  mutable std::unordered_map<Hash, std::shared_ptr<const PlaceTokens>, HashOf> places_;
  mutable std::unordered_map<Hash, std::shared_ptr<const ByteTokens>, HashOf> byte_tokens_;  // by their bytes; not stored
  struct Suffixes {
    bool sought = false;
    std::optional<std::vector<std::string_view>> found = {};  // nothing if they are too many
  };
  mutable std::array<Suffixes, 256> suffixes_;  // by their first byte
  mutable size_t store_bytes_ = 0;
  mutable std::mutex marking_;  // guards marked_
  mutable std::map<uint32_t, std::weak_ptr<const Vocabulary>> marked_;  // by number of marks
};

}  // namespace constrain
