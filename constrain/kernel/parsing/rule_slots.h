// Slots of the activations of rules: what edges ask of them, and do to them.
//
// Invariant: a memory has the slots of its rule. If groups of lexemes must be distinct values (Edge::distinct), two more
// follow: the earlier values (earlier_values.h), and the slot (plus 1) that gets the value of the group being read.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "grammar/grammar.h"
#include "lexing/lexer.h"
#include "values/memory.h"
#include "values/values.h"

namespace constrain {

class RuleSlots {
 public:
  RuleSlots(const Grammar& grammar, Lexer& lexer, Memory& memory) : grammar_(grammar), lexer_(lexer), memory_(memory) {}
  void begin();  // makes the fresh memories; otherwise `visit` restores them

  Values& values() { return values_; }
  MemoryId fresh(uint32_t rule) const { return fresh_[rule]; }  // of a new activation
  bool holds(const Edge& edge, MemoryId memory) const;
  MemoryId updated(const Edge& edge, uint32_t rule, MemoryId memory, int32_t& remember);
  TermId excluding(const Edge& edge, uint32_t rule, MemoryId memory);
  MemoryId remembering(uint32_t rule, MemoryId memory, int32_t slot, TextId text);
  MemoryId remembering(uint32_t rule, MemoryId memory, int32_t slot, ValueId value);  // the same for a lexeme of this value
  // The spellings of a remembered text, or of a value, by its number in memory. None for a value that is not one text,
  // or that begins like a number: a number has infinitely many spellings, and longer texts may begin with each of them.
  std::optional<ExprId> texts_of(uint32_t number, bool is_value);
  MemoryId without_values(uint32_t rule, MemoryId memory);  // with no value read, and no earlier value
  MemoryId without_texts(uint32_t rule, MemoryId memory);   // with no text read

  Token token_of(TermId terminal, TextId text);  // a lexeme as a part of a value
  bool reads_own_text(TermId terminal) const;    // this part depends on the text
  uint32_t earlier_slot(uint32_t rule) const { return static_cast<uint32_t>(grammar_.rules[rule].slots.size()); }
  uint32_t pending_slot(uint32_t rule) const { return earlier_slot(rule) + 1; }

  size_t memory_bytes() const { return values_.memory_bytes(); }

  template <typename Archive>
  void visit(Archive& archive) {
    archive(values_, labels_, fresh_);
  }

 private:
  const Grammar& grammar_;
  Lexer& lexer_;
  Memory& memory_;
  Values values_;
  std::vector<ValueId> labels_;  // by terminal
  std::vector<MemoryId> fresh_;  // by rule
};

}  // namespace constrain
