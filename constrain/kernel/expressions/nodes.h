// The nodes of expressions: interned, read by all, and made without a decision where they are leaves.
//
// Invariant: a node is interned under its structural hash, so equal structure means equal id. A leaf (bytes, literals,
// multiples, substrings) is made here, and matches something unless it is ExprId::nothing; nodes with parts are made by
// ExpressionStore.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/byte_set.h"
#include "base/hashing.h"
#include "base/ids.h"
#include "expressions/sorted_texts.h"
#include "expressions/suffix_automaton.h"
#include "expressions/work.h"

namespace constrain {

class ExpressionNodes {
 public:
  enum class Kind : uint8_t {
    nothing, epsilon, anything, bytes, literal, concatenation, alternation, intersection, complement, repetition,
    literal_set, multiple, window, substring
  };

  struct Node {
    Hash hash;
    std::array<uint32_t, 6> arg{};  // operands; their meaning depends on the kind, see the accessors below
    Kind kind = Kind::nothing;
    bool nullable = false;
    bool finite = false;    // certainly a finite language
    bool infinite = false;  // certainly an infinite language
    bool has_substring = false;  // it, or one of its parts, is a substring of given texts
    bool has_count = false;      // it, or a part outside intersections and complements, is a window or counts to 2 or more
    int16_t lead = -1;      // the only byte a match may begin with, if there is just one and it is cheap to find
    uint16_t height = 0;    // levels of parts below; a chain of concatenations is one level, however long

    // A class of bytes: its number in the store.
    uint32_t byte_set() const { return arg[0]; }
    // A literal: its position in the text of all literals, in bytes.
    uint32_t offset() const { return arg[0]; }
    uint32_t length() const { return arg[1]; }
    // A concatenation, which leans to the right: the tail may be another concatenation.
    ExprId head() const { return ExprId{arg[0]}; }
    ExprId rest() const { return ExprId{arg[1]}; }
    // An alternation or intersection: the position of its parts in the array of all parts (see `parts`).
    uint32_t first_part() const { return arg[0]; }
    uint32_t part_count() const { return arg[1]; }
    // A complement.
    ExprId excluded() const { return ExprId{arg[0]}; }
    // A repetition or window: the unit, and how often it occurs; the maximum may be `unbounded`.
    ExprId unit() const { return ExprId{arg[0]}; }
    uint32_t minimum() const { return arg[1]; }
    uint32_t maximum() const { return arg[2]; }
    // A window: the pattern, and the rest of the current unit (a whole unit at a boundary).
    ExprId part() const { return ExprId{arg[3]}; }
    ExprId unit_state() const { return ExprId{arg[4]}; }
    // A set of literals: its number, the range of its texts that are still possible, and how many bytes of them have
    // been read.
    uint32_t literal_set() const { return arg[0]; }
    uint32_t low() const { return arg[1]; }
    uint32_t high() const { return arg[2]; }
    uint32_t depth() const { return arg[3]; }
    // A substring: the number of its suffix automaton. Its range of transitions and depth are those of a set of literals.
    // Then the characters needed and allowed from the beginning of the current chunk on; the maximum may be `unbounded`.
    uint32_t automaton() const { return arg[0]; }
    uint32_t least() const { return arg[4]; }
    uint32_t most() const { return arg[5]; }
    // A multiple: the number of its divisor, how much of the number has been read (phase_...), and the remainder.
    uint32_t machine() const { return arg[0]; }
    uint32_t phase() const { return arg[1]; }
    uint64_t residue() const { return arg[2] | (uint64_t{arg[3]} << 32); }
  };

  struct Multiple {
    uint64_t divisor;
    uint32_t scale;
  };

  static constexpr uint32_t phase_start = 0;  // of a multiple: nothing read, '-' read, integer digits, then 3 + fraction digits
  static constexpr uint32_t phase_sign = 1;
  static constexpr uint32_t phase_integer = 2;
  static constexpr uint32_t phase_fraction = 3;

  ExpressionNodes();

  ExprId bytes(const ByteSet& set);
  ExprId literal(std::string_view text);
  ExprId literal_set(std::shared_ptr<const SortedTexts> texts);
  ExprId literal_set_at(uint32_t set, uint32_t low, uint32_t high, uint32_t depth);  // what is left of a range of the texts
  ExprId multiple(uint64_t divisor, uint32_t scale);
  ExprId substring(const SuffixAutomaton::Source& source, uint32_t minimum, uint32_t maximum);

  // The rest of a leaf that is not a substring, and the runs of a substring that follow in a state, or in a range.
  ExprId derive_leaf(const Node& leaf, uint8_t byte);
  ExprId substring_from(uint32_t automaton, uint32_t state, uint32_t minimum, uint32_t maximum);
  ExprId substring_at(uint32_t automaton, uint32_t low, uint32_t high, uint32_t depth, uint32_t minimum, uint32_t maximum);

  const uint32_t* find(const Hash& hash) const { return interned_.find(hash); }  // the node of this structure, if there is one
  ExprId intern(Node node);
  ExprId intern(Node node, std::span<const ExprId> parts);  // an alternation or intersection

  const Node& operator[](ExprId e) const { return nodes_[index(e)]; }
  Kind kind(ExprId e) const { return nodes_[index(e)].kind; }
  bool nullable(ExprId e) const { return nodes_[index(e)].nullable; }
  const Hash& hash(ExprId e) const { return nodes_[index(e)].hash; }
  ExprId head_of(ExprId e) const { return nodes_[index(e)].head(); }  // of a concatenation
  ExprId rest_of(ExprId e) const { return nodes_[index(e)].rest(); }
  std::span<const ExprId> parts(const Node& node) const { return {children_.data() + node.first_part(), node.part_count()}; }
  std::vector<ExprId> copy_of_parts(const Node& node) const {  // for loops that make expressions
    const std::span<const ExprId> all = parts(node);
    return {all.begin(), all.end()};
  }
  bool is_star(ExprId e) const;  // X*, of a finite X
  const ByteSet& byte_set(const Node& node) const { return byte_sets_[node.byte_set()]; }
  std::string_view literal(const Node& node) const { return std::string_view(literals_).substr(node.offset(), node.length()); }
  const SortedTexts& texts(const Node& node) const { return *literal_sets_[node.literal_set()]; }
  const Multiple& multiple(const Node& node) const { return multiples_[node.machine()]; }
  const SuffixAutomaton& runs(const Node& node) const { return *substrings_[node.automaton()]; }
  std::pair<uint32_t, uint32_t> transitions_by(const Node& substring, uint8_t byte) const;
  bool completes(const Node& substring, uint32_t transition);

  // Nesting (nesting.h): no function recurses as often as an expression is high.
  static constexpr uint16_t max_recursed_height = 16;  // levels; parts of higher expressions go first
  bool is_tall(ExprId e) const { return nodes_[index(e)].height > max_recursed_height; }
  template <typename F>
  void each_part(ExprId e, F&& f) const;
  template <typename Known>
  std::vector<ExprId> new_links(ExprId e, Known&& known) const;
  template <typename Known, typename EachPart>
  std::vector<ExprId> tall_parts(ExprId e, Known&& known, EachPart&& each_part) const;
  template <typename Known>
  std::vector<ExprId> tall_parts(ExprId e, Known&& known) const;

  Work& work() { return work_; }
  size_t size() const { return nodes_.size(); }
  size_t steps() const { return work_.spent() + nodes_.size(); }  // so far; each new node counts as a step, too
  size_t memory_bytes() const;

  template <typename Archive>
  void visit(Archive& archive) {
    archive(nodes_, children_, byte_sets_, literals_, literal_hashes_, literal_sets_, multiples_, substrings_, interned_);
    if constexpr (!Archive::is_writer) {
      for (const auto& each : literal_sets_) literal_set_bytes_ += each->memory_bytes();
    }
  }

 private:
  void set_height(Node& node) const;
  ExprId literal_at(uint32_t offset, uint32_t length);
  ExprId multiple_at(uint32_t machine, uint32_t phase, uint64_t residue);
  ExprId derive_literal_set(const Node& node, uint8_t byte);
  ExprId derive_multiple(const Node& node, uint8_t byte);
  bool reaches_length(const SuffixAutomaton& runs, uint32_t from, uint32_t minimum, uint32_t maximum);

  Work work_;
  std::vector<Node> nodes_;
  std::vector<ExprId> children_;
  std::vector<ByteSet> byte_sets_;
  std::string literals_;             // all literal texts, one after the other
  std::vector<Hash> literal_hashes_;  // from each offset on: the hash of the rest of its literal
  std::vector<std::shared_ptr<const SortedTexts>> literal_sets_;
  size_t literal_set_bytes_ = 0;  // of those that nothing else shares
  std::vector<Multiple> multiples_;
  std::vector<std::shared_ptr<const SuffixAutomaton>> substrings_;
  FlatMap<Hash, uint32_t> interned_;
};

// What is left of a count of units; `unbounded` stays.
constexpr uint32_t decreased(uint32_t count, uint32_t by = 1) { return count == unbounded ? count : count - std::min(count, by); }

inline Hash tagged(ExpressionNodes::Kind kind) { return seeded(static_cast<uint64_t>(kind)); }

}  // namespace constrain
