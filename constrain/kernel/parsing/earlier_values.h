// Values that must be distinct, as groups of lexemes: the current group must not become a value read before.
//
// A rule read through a `distinct` edge begins with the values of that edge's slot, its *earlier values*: the current
// text could still become one of them, and must not. Each lexeme drops the values that go on differently; once none is
// left, the rest is unrestricted. The items inside carry the earlier values of all groups around them.
//
// Invariant: after `exclude`, every step leads to an item from which the text can be completed without reading an
// earlier value. This is decided here: a way that no earlier value takes escapes, because items without earlier values
// can be completed; the other ways are followed, and they are as finite as the earlier values.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "base/hashing.h"
#include "base/interned_lists.h"
#include "parsing/items.h"
#include "parsing/rule_slots.h"

namespace constrain {

using EarlierId = uint32_t;  // list in memory: for each group, outer ones first, the track of its text and the set of values
constexpr EarlierId no_earlier = 0;

class EarlierValues {
 public:
  EarlierValues(const Grammar& grammar, Lexer& lexer, Memory& memory, RuleSlots& slots)
      : grammar_(grammar), lexer_(lexer), memory_(memory), slots_(slots), values_(slots.values()) {}

  // Earlier values in the memory of a rule.
  EarlierId of(uint32_t rule, MemoryId memory) const { return memory_.values(memory)[slots_.earlier_slot(rule)]; }
  EarlierId of(const Item& item) const { return of(grammar_.state(item.state).rule, item.memory); }
  MemoryId with(uint32_t rule, MemoryId memory, EarlierId earlier);
  EarlierId begun(uint32_t rule, MemoryId memory, const Edge& edge);  // for the rule that the edge begins to read
  EarlierId read(EarlierId earlier, Token token);                     // the values that go on with this lexeme
  // Goes from the end of a rule, with the earlier values left, to a waiting item. False if `value` is an earlier one.
  bool leave(EarlierId left, Item& waiting, ValueId value);
  bool are_uncertain(EarlierId earlier) const;  // some are not known
  // Removes from the steps of a closure the lexemes after which only earlier values could be read.
  void exclude(std::vector<Step>& steps, const InternedLists<Item>& origins);

  size_t memory_bytes() const;

  template <typename Archive>
  void visit(Archive& archive) {
    archive(outlook_ids_, outlooks_);
  }

 private:
  struct Choice {  // a lexeme that earlier values have next, and the earlier values after it
    Token token;
    EarlierId after;
  };
  struct Outlook {           // of reading on from an item to the end of its rule
    bool escapes = false;    // some way leaves no earlier value
    std::vector<EarlierId> ends;  // otherwise: the earlier values that may be left at the end
    bool operator==(const Outlook&) const = default;

    template <typename Archive>
    void visit(Archive& archive) {
      archive(escapes, ends);
    }
  };
  struct Draft {
    Outlook outlook;
    uint32_t pass = 0;  // in which it was found last
    bool open = false;  // it is being found
  };
  class OutlookSearch;
  EarlierId trimmed(std::vector<uint32_t> pairs);
  std::vector<Choice> choices(EarlierId earlier);
  Outlook outlook(StateId state, MemoryId memory, uint32_t depth = 0);
  bool alive(const Item& item, const InternedLists<Item>& origins);

  const Grammar& grammar_;
  Lexer& lexer_;
  Memory& memory_;
  RuleSlots& slots_;
  Values& values_;
  FlatMap<uint64_t, uint32_t> outlook_ids_;
  std::deque<Outlook> outlooks_;
  std::unordered_map<uint64_t, Draft> drafts_;  // the outlook in progress, and the outlooks that it depends on
  uint32_t pass_ = 0;
  bool changed_ = false, reads_open_ = false;  // in this pass: a draft has changed; an open one was read
};

}  // namespace constrain
