// Regular expressions over bytes, hash-consed, stepped by Brzozowski derivatives (Brzozowski 1964).
//
// Owns the nodes, and what constructors know of them: bytes, inclusions, decisions. Invariant: a node denotes a non-empty
// language unless it is ExprId::nothing. Intersections, complements, windows and multiples are decided when they are
// made; all other nodes are non-empty by construction. So a lexer state with a live expression can be completed.
#pragma once

#include <initializer_list>
#include <utility>

#include "expressions/byte_classes.h"
#include "expressions/emptiness.h"
#include "expressions/inclusion.h"

namespace constrain {

using CodePointRange = std::pair<uint32_t, uint32_t>;

class ExpressionStore {
 public:
  using Kind = ExpressionNodes::Kind;
  using Node = ExpressionNodes::Node;

  ExprId bytes(const ByteSet& set) { return nodes_.bytes(set); }
  ExprId literal(std::string_view text) { return nodes_.literal(text); }
  ExprId literal_set(const std::vector<std::string>& texts) { return nodes_.literal_set(std::make_shared<const SortedTexts>(texts)); }
  ExprId literal_set(std::shared_ptr<const SortedTexts> texts) { return nodes_.literal_set(std::move(texts)); }
  ExprId multiple(uint64_t divisor, uint32_t scale) { return nodes_.multiple(divisor, scale); }
  ExprId substring(const SuffixAutomaton::Source& source, uint32_t minimum, uint32_t maximum) {  // lengths in characters
    return nodes_.substring(source, minimum, maximum);
  }
  ExprId concatenation(ExprId first, ExprId second);
  ExprId alternation(std::vector<ExprId> parts);
  ExprId intersection(std::vector<ExprId> parts);
  ExprId intersection_undecided(std::vector<ExprId> parts);  // for Emptiness: perhaps an empty one
  ExprId complement(ExprId part);
  ExprId repetition(ExprId part, uint32_t minimum, uint32_t maximum);
  ExprId window(ExprId part, ExprId unit, uint32_t minimum, uint32_t maximum);

  ExprId derivative(ExprId e, uint8_t byte);
  ExprId derivative(ExprId e, std::string_view text);

  const Node& operator[](ExprId e) const { return nodes_[e]; }
  bool nullable(ExprId e) const { return nodes_[e].nullable; }
  bool infinite(ExprId e) const { return nodes_[e].infinite; }
  const Hash& hash(ExprId e) const { return nodes_[e].hash; }
  std::span<const ExprId> parts(ExprId e) const { return nodes_.parts(nodes_[e]); }  // of an alternation or intersection

  ByteSet first(ExprId e) { return classes_.first(nodes_, e); }
  ByteSet alphabet(ExprId e) { return classes_.alphabet(nodes_, e); }
  std::array<uint64_t, 256> byte_classes(std::span<const ExprId> expressions) { return classes_.classes(nodes_, expressions); }
  std::vector<uint8_t> representatives(std::span<const ExprId> expressions) { return classes_.representatives(nodes_, expressions); }
  std::vector<uint8_t> representatives(std::initializer_list<ExprId> expressions) {
    return representatives(std::span<const ExprId>(expressions.begin(), expressions.size()));
  }

  ExpressionNodes& nodes() { return nodes_; }
  Emptiness& emptiness() { return emptiness_; }
  Work& work() { return nodes_.work(); }
  size_t steps() const { return nodes_.steps(); }
  size_t memory_bytes() const {
    return nodes_.memory_bytes() + classes_.memory_bytes() + emptiness_.memory_bytes() + derivatives_.bytes();
  }

  template <typename Archive>
  void visit(Archive& archive) {  // without derivatives, which are found again
    archive(nodes_, classes_, inclusions_, emptiness_);
  }

 private:
  ExprId window_at(ExprId part, ExprId unit, ExprId unit_state, uint32_t minimum, uint32_t maximum);
  void derive_tall_parts(ExprId e, uint8_t byte);
  std::vector<std::pair<ExprId, ExprId>> leading_parts(ExprId e);
  ExprId derive(ExprId e, uint8_t byte);
  ExprId derive_window(const Node& node, uint8_t byte);
  ExprId derive_substring(const Node& node, uint8_t byte);

  ExpressionNodes nodes_;
  ByteClasses classes_;
  Inclusions inclusions_;
  Emptiness emptiness_;
  FlatMap<uint64_t, uint32_t> derivatives_;
};

ExprId char_class(ExpressionStore& store, std::span<const CodePointRange> ranges, bool json);  // char_classes.cpp

}  // namespace constrain
