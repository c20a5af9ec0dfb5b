// The parser: Earley (1970) with hash-consed sets instead of positions.
//
// An item is (state of a rule's automaton, origin, memory). The origin is the interned set of items that wait for this
// activation of the rule, already advanced past it; OriginId::end waits for the whole text. Invariants:
//   - an item at a state that only accepts never stands in a set or an origin: it is replaced by its own waiters, so
//     right recursion keeps one origin;
//   - a set holds the items right after a lexeme; what they predict is its closure, computed once and kept with it;
//   - origins that wait for one another (left recursion) are interned as a group.
//
// If groups of lexemes must be distinct values (Edge::distinct), two more slots follow those of each rule. *Earlier
// values* are values that the current text must not become, and still may: see earlier_values.cpp. *Pending* is the
// slot (plus 1) of a waiting item that gets the value once it is complete.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "grammar/grammar.h"
#include "lexing/lexer.h"
#include "values/memory.h"
#include "values/values.h"

namespace constrain {

struct Item {
  StateId state;
  OriginId origin;
  MemoryId memory;
  auto operator<=>(const Item&) const = default;
};

class Parser {
 public:
  // A terminal that may come next, and the item it leads to.
  struct Step {
    TermId terminal;
    Item next;
    int32_t remember;  // slot of next.memory that gets the lexeme's text or value, or -1
  };
  struct Closure {
    LexId start = LexId::dead;  // lexer state at the beginning of the next lexeme
    bool accepting = false;     // the text may end here
    bool has_earlier = false;    // what follows depends on the text of the lexemes
    bool uncertain = false;     // some earlier value is not known: the closure is an upper bound
    bool uses_text = false;     // the set after a lexeme depends on its text
    uint32_t begin = 0, count = 0;
  };

  Parser(const Grammar& grammar, Lexer& lexer, Memory& memory);
  struct ToBeRestored {};
  Parser(const Grammar& grammar, Lexer& lexer, Memory& memory, ToBeRestored) : grammar_(grammar), lexer_(lexer), memory_(memory) {}

  SetId start() const { return start_; }
  const Closure& closure(SetId set);  // the reference lasts until the next call
  std::span<const Step> steps(const Closure& closure) const { return {steps_.data() + closure.begin, closure.count}; }

  // The set after a lexeme that matches `matched`; SetId::none if there is none. `text` matters if it is remembered,
  // `track` (after the lexeme) if the lexeme completes a group.
  SetId advance(SetId set, MatchId matched, TextId text, TrackId track);
  TrackId read(TrackId track, MatchId matched, TextId text);

  bool has_earlier(SetId set) const { return closures_[index(set)].has_earlier; }  // its closure must be known

  std::span<const Item> items(SetId set) const { return view(sets_, index(set)); }
  std::span<const Item> waiting(OriginId origin) const { return view(origins_, index(origin)); }
  // Copies, for loops that make sets or origins, which move the tables.
  std::vector<Item> copy_of_items(SetId set) const;
  std::vector<Item> copy_of_waiting(OriginId origin) const;
  std::vector<Step> copy_of_steps(const Closure& closure) const;

  bool ends_text(OriginId origin) const { return origin_ends_[index(origin)]; }
  bool ends(SetId set) const { return set_ends_[index(set)]; }  // a whole text has just been read
  // The set or origin with these items, sorted; `ends`: a whole text may also end there.
  SetId set_of(std::vector<Item> items, bool ends) { return intern_set(std::move(items), ends); }
  OriginId origin_of(const std::vector<Item>& items, bool ends) { return intern_origin(items, ends, nullptr); }
  const Grammar& grammar() const { return grammar_; }

  bool holds(const Edge& edge, MemoryId memory) const;
  MemoryId updated(const Edge& edge, uint32_t rule, MemoryId memory, int32_t& remember);
  MemoryId fresh_memory(uint32_t rule) const { return fresh_[rule]; }
  TermId excluding(const Edge& edge, uint32_t rule, MemoryId memory);
  MemoryId remembering(uint32_t rule, MemoryId memory, int32_t slot, TextId text);
  // The spellings of a remembered text, or of a value, by its number in memory. Nothing for values that are not one text,
  // or that begin like a number: one number has infinitely many texts, which take away what goes on after such a beginning.
  std::optional<ExprId> texts_of(uint32_t number, bool is_value);
  MemoryId without_values(uint32_t rule, MemoryId memory);  // with no value read, and no earlier value
  MemoryId without_texts(uint32_t rule, MemoryId memory);   // with no text read

  size_t memory_bytes() const;

  template <typename Archive>
  void visit(Archive& archive) {
    archive(values_, labels_, fresh_, sets_, set_ends_, origins_, origin_ends_, closures_, closed_, steps_, advances_, outlook_ids_,
            outlooks_, start_);
  }

 private:
  struct Table {
    std::vector<Item> pool;
    std::vector<std::pair<uint32_t, uint32_t>> runs;
    FlatMap<Hash, uint32_t> ids;

    template <typename Archive>
    void visit(Archive& archive) {
      archive(pool, runs, ids);
    }
  };

  static std::span<const Item> view(const Table& table, uint32_t id) {
    return {table.pool.data() + table.runs[id].first, table.runs[id].second};
  }
  SetId intern_set(std::vector<Item> items, bool ends_text);
  void add(std::vector<Item>& items, bool& ends_text, const Item& item) const;
  void complete(std::vector<Item>& items, bool& ends_text, const Item& item, ValueId value);
  void finish(std::vector<Item>& items, bool& ends_text, const Item& item, ValueId value);
  void compute_closure(SetId set);
  OriginId intern_origin(std::span<const Item> items, bool ends_text, const Hash* given);

  class Closing;
  struct Predicted;
  void resolve(std::vector<Predicted>& predicted);
  void replace_tail_calls(std::vector<Predicted>& predicted);
  void intern_components(std::vector<Predicted>& predicted);
  void intern_component(std::vector<Predicted>& predicted, std::vector<uint32_t>& group, uint32_t head);

  // earlier_values.cpp
  using EarlierId = uint32_t;  // list in memory_ of (track, set of values) pairs, outer groups first; 0: none
  static constexpr EarlierId no_earlier = 0;
  struct Choice {  // a lexeme that earlier values have next, and the earlier values after it
    Token token;
    EarlierId after;
  };
  struct Outlook {           // of reading on from an item to the end of its rule
    bool escapes = false;    // some way leaves no earlier value
    std::vector<EarlierId> ends;  // otherwise: the earlier values that may be left at the end

    template <typename Archive>
    void visit(Archive& archive) {
      archive(escapes, ends);
    }
  };
  uint32_t earlier_slot(uint32_t rule) const { return static_cast<uint32_t>(grammar_.rules[rule].slots.size()); }
  EarlierId earlier_values(uint32_t rule, MemoryId memory) const;
  MemoryId with_earlier(uint32_t rule, MemoryId memory, EarlierId earlier);
  EarlierId begun(uint32_t rule, MemoryId memory, const Edge& edge);
  EarlierId read_earlier(EarlierId earlier, Token token);
  EarlierId outermost(EarlierId earlier, size_t pairs);
  EarlierId trimmed(std::vector<uint32_t> pairs);
  std::vector<Choice> choices(EarlierId earlier);
  Token token_of(TermId terminal, TextId text);
  bool reads_own_text(TermId terminal) const;
  bool leave(EarlierId earlier, Item& waiting, ValueId value);
  class OutlookSearch;
  const Outlook& outlook(StateId state, MemoryId memory, uint32_t depth);
  bool alive(const Item& item, uint32_t depth);
  void exclude_earlier(std::vector<Step>& steps, Closure& closure);
  MemoryId remembering_value(uint32_t rule, MemoryId memory, int32_t slot, ValueId value);
  ValueId last_value(EarlierId earlier) const;
  bool uncertain(EarlierId earlier) const;

  const Grammar& grammar_;
  Lexer& lexer_;
  Memory& memory_;
  Values values_;
  std::vector<ValueId> labels_;  // by terminal
  std::vector<MemoryId> fresh_;  // by rule: memory of a new activation
  Table sets_;
  std::vector<bool> set_ends_;  // whether a whole text has just been read
  Table origins_;
  std::vector<bool> origin_ends_;
  std::vector<Closure> closures_;
  std::vector<uint8_t> closed_;
  std::vector<Step> steps_;
  FlatMap<Hash, uint32_t> advances_;
  FlatMap<uint64_t, uint32_t> outlook_ids_;
  std::deque<Outlook> outlooks_;
  std::vector<uint64_t> under_way_;  // outlooks in progress
  SetId start_{};
};

}  // namespace constrain
