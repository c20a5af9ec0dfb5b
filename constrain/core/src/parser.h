// The parser: Earley (1970) with hash-consed sets instead of positions.
//
// An item is (state of a rule's automaton, origin, memory). The origin is the interned set of items that wait for this
// activation of the rule, already advanced past it; OriginId::end waits for the whole text. Invariants:
//   - an item at a state that only accepts never stands in a set or an origin: it is replaced by its own waiters, so
//     right recursion keeps one origin;
//   - a set holds the items right after a lexeme; what they predict is its closure, computed once and kept with it;
//   - origins that wait for one another (left recursion) are interned as a group.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "grammar.h"
#include "ids.h"
#include "lexer.h"
#include "memory.h"

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
    int32_t remember;  // slot of next.memory that takes the lexeme's text, or -1
  };
  struct Closure {
    LexId start = LexId::dead;  // lexer state at the beginning of the next lexeme
    bool accepting = false;     // the text may end here
    uint32_t begin = 0, count = 0;
  };

  Parser(const Grammar& grammar, Lexer& lexer, Memory& memory);

  SetId start() const { return start_; }
  const Closure& closure(SetId set);  // the reference lasts until the next call
  std::span<const Step> steps(const Closure& closure) const { return {steps_.data() + closure.begin, closure.count}; }

  // The set after a lexeme that matches `matched`; SetId::none if there is none. `text` matters if it is remembered.
  SetId advance(SetId set, MatchId matched, TextId text);

  std::span<const Item> items(SetId set) const { return view(sets_, index(set)); }
  std::span<const Item> waiting(OriginId origin) const { return view(origins_, index(origin)); }
  // For loops that make sets or origins, which move the tables.
  std::vector<Item> copy_of_items(SetId set) const;
  std::vector<Item> copy_of_waiting(OriginId origin) const;
  std::vector<Step> copy_of_steps(const Closure& closure) const;

  bool ends_text(OriginId origin) const { return origin_ends_[index(origin)]; }
  const Grammar& grammar() const { return grammar_; }

  bool holds(const Edge& edge, MemoryId memory) const;
  MemoryId updated(const Edge& edge, uint32_t rule, MemoryId memory, int32_t& remember);
  MemoryId fresh_memory(uint32_t rule) const { return fresh_[rule]; }

  size_t memory_bytes() const;

 private:
  struct Table {
    std::vector<Item> pool;
    std::vector<std::pair<uint32_t, uint32_t>> runs;
    FlatMap<Hash, uint32_t> ids;
  };

  static std::span<const Item> view(const Table& table, uint32_t id) {
    return {table.pool.data() + table.runs[id].first, table.runs[id].second};
  }
  SetId intern_set(std::vector<Item> items, bool ends_text);
  void add(std::vector<Item>& items, bool& ends_text, const Item& item) const;
  void compute_closure(SetId set);
  OriginId intern_origin(std::vector<Item> items, bool ends_text, const Hash* key);

  struct Predicted;
  void resolve(std::vector<Predicted>& predicted);

  const Grammar& grammar_;
  Lexer& lexer_;
  Memory& memory_;
  std::vector<MemoryId> fresh_;  // by rule: memory of a new activation
  Table sets_;
  std::vector<bool> set_ends_;  // a whole text has just been read
  Table origins_;
  std::vector<bool> origin_ends_;
  std::vector<Closure> closures_;
  std::vector<uint8_t> closed_;
  std::vector<Step> steps_;
  FlatMap<Hash, uint32_t> advances_;
  SetId start_{};
};

}  // namespace constrain
