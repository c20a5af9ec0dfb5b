// The parser: Earley (1970) with hash-consed sets instead of positions.
//
// An item is (state of a rule's automaton, origin, memory). The origin is the interned set of items that wait for this
// activation of the rule, already advanced past it; OriginId::end waits for the whole text. Invariants:
//   - no set or origin has an item at a state that only accepts: the items that wait for it take its place, so right
//     recursion keeps one origin;
//   - a set holds the items right after a lexeme; what they predict is its closure, computed once and kept with it;
//   - origins that wait for one another (left recursion) are interned as a group.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/interned_lists.h"
#include "grammar/grammar.h"
#include "lexing/lexer.h"
#include "parsing/earlier_values.h"
#include "parsing/items.h"
#include "parsing/rule_slots.h"

namespace constrain {

class Parser {
 public:
  using Step = constrain::Step;
  struct Closure {
    LexId start = LexId::dead;  // lexer state at the beginning of the next lexeme
    bool accepting = false;     // the text may end here
    bool has_earlier = false;    // what follows depends on the text of the lexemes
    bool uncertain = false;     // some earlier value is not known: the closure is an upper bound
    bool uses_text = false;     // the set after a lexeme depends on its text
    uint32_t begin = 0, count = 0;
  };

  Parser(const Grammar& grammar, Lexer& lexer, Memory& memory, RuleSlots& slots)
      : grammar_(grammar), lexer_(lexer), slots_(slots), earlier_(grammar, lexer, memory, slots) {}

  void begin();  // makes the set at the beginning of a text; otherwise `visit` restores it
  SetId start() const { return start_; }
  const Closure& closure(SetId set);  // the reference lasts until the next call
  std::span<const Step> steps(const Closure& closure) const { return {steps_.data() + closure.begin, closure.count}; }

  // The set after a lexeme that matches `matched`; SetId::none if there is none. `text` matters if it is remembered,
  // `track` (after the lexeme) if the lexeme completes a group.
  SetId advance(SetId set, MatchId matched, TextId text, TrackId track);
  TrackId read(TrackId track, MatchId matched, TextId text);

  bool has_earlier(SetId set) const { return closures_[index(set)].has_earlier; }  // its closure must be known

  std::span<const Item> items(SetId set) const { return sets_[index(set)]; }
  std::span<const Item> waiting(OriginId origin) const { return origins_[index(origin)]; }
  // Copies, for loops that make sets or origins, which move the tables.
  std::vector<Item> copy_of_items(SetId set) const;
  std::vector<Item> copy_of_waiting(OriginId origin) const;
  std::vector<Step> copy_of_steps(const Closure& closure) const;

  bool ends_text(OriginId origin) const { return origin_ends_[index(origin)]; }
  bool ends(SetId set) const { return set_ends_[index(set)]; }  // a whole text has just been read
  // The set or origin with these items, which are sorted for an origin; `ends`: a whole text may also end there. `given`:
  // a key in place of the hash of the items.
  SetId set_of(std::vector<Item> items, bool ends);
  OriginId origin_of(std::span<const Item> items, bool ends, const Hash* given = nullptr);
  const Grammar& grammar() const { return grammar_; }

  size_t memory_bytes() const;

  template <typename Archive>
  void visit(Archive& archive) {
    archive(sets_, set_ends_, origins_, origin_ends_, closures_, closed_, steps_, advances_, earlier_, start_);
  }

 private:
  void add(std::vector<Item>& items, bool& ends_text, const Item& item) const;
  void finish(std::vector<Item>& items, bool& ends_text, const Item& item, ValueId value);
  void compute_closure(SetId set);

  class Closing;
  struct Predicted;
  void resolve(std::vector<Predicted>& predicted);
  void replace_tail_calls(std::vector<Predicted>& predicted);
  void intern_component(std::vector<Predicted>& predicted, std::vector<uint32_t>& group);

  const Grammar& grammar_;
  Lexer& lexer_;
  RuleSlots& slots_;
  EarlierValues earlier_;
  InternedLists<Item> sets_, origins_;  // the items of each, sorted
  std::vector<bool> set_ends_;          // whether a whole text has just been read
  std::vector<bool> origin_ends_;
  std::vector<Closure> closures_;
  std::vector<uint8_t> closed_;
  std::vector<Step> steps_;
  FlatMap<Hash, uint32_t> advances_;
  SetId start_{};
};

}  // namespace constrain
