// Stand-ins: places of which many others take over the mask, because they differ only in texts that no token tells apart.
//
// After a free key, all sets of its object remember that key, and the next key must be another one. Nevertheless hardly
// any mask depends on it: a token would have to contain the whole key. The stand-in of a place is the same place without
// such texts: in the memory of its set and origins, and in the terminals of its lexer state. So a key that nobody has
// met finds the masks of all others. Invariant: a stand-in has the mask of its place, except for context-dependent
// tokens, which are always judged at the place itself.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/hashing.h"
#include "base/ids.h"
#include "grammar/grammar.h"
#include "parsing/place.h"
#include "parsing/stepping.h"
#include "vocabulary/vocabulary.h"

namespace constrain {

class StandIns {
 public:
  StandIns(Stepping& stepping, const Vocabulary& vocabulary)
      : vocabulary_(vocabulary), grammar_(stepping.grammar()), lexer_(stepping.lexer()), memory_(stepping.memory()), slots_(stepping.slots()),
        parser_(stepping.parser()) {}

  // Nothing if the place is its own stand-in.
  std::optional<Place> of(const Place& place);

  size_t memory_bytes() const {
    return 4 * (sets_.size() + origins_.size()) + memories_.bytes() + terminals_.bytes() + texts_.bytes() + told_apart_.bytes() +
           begins_tokens_.bytes() + rests_.bytes() + endless_.bytes();
  }

 private:
  static constexpr uint32_t not_known = ~uint32_t{0};
  struct Excluding {  // an edge that reads a terminal without the texts or values of a slot
    uint32_t slot, terminal;
    bool operator==(const Excluding&) const = default;
  };

  struct Visit {  // of an origin: before those behind it, or again after them
    OriginId origin;
    bool again;
  };

  bool has_none() const { return !grammar_.may_need_fresh || grammar_.reads_groups || grammar_.limits_tokens; }
  SetId of_set(SetId set);
  bool has_own_terminals(SetId set, SetId stand_in);
  OriginId known_origin(OriginId origin) const;
  OriginId of_origin(OriginId origin);
  void visit(std::vector<Visit>& visits);
  std::vector<Item> of_items(std::span<const Item> items);
  std::vector<Item> with_less(std::span<const Item> items);
  MemoryId of_memory(uint32_t rule, MemoryId memory);

  std::optional<LexId> of_lexer(const Place& place, SetId set);
  std::optional<TermId> of_terminal(TermId terminal, SetId set);
  ExprId wider(const Lexer::Entry& entry, TermId stand_in, TextId text);
  ExprId rest_after(ExprId e, TextId text);

  // A text or value by its number in memory.
  bool is_told_apart(uint32_t rule, uint32_t slot, uint32_t number);
  std::optional<ExprId> texts_of(uint32_t number, bool is_value);
  const std::vector<Excluding>& excluding(uint32_t rule);
  bool within_tokens(ExprId texts, ExprId terminal);
  bool begins_tokens(ExprId texts, ExprId terminal);
  bool is_endless(ExprId e);
  template <typename Position, typename F>
  bool meets_end(ExprId texts, ExprId terminal, Position start, F&& next);

  const Vocabulary& vocabulary_;
  const Grammar& grammar_;
  Lexer& lexer_;
  Memory& memory_;
  RuleSlots& slots_;
  Parser& parser_;
  std::vector<uint32_t> sets_;                      // by set: its stand-in, or not_known
  std::vector<uint32_t> origins_;                   // by origin
  FlatMap<uint64_t, uint32_t> memories_;            // by rule and memory
  FlatMap<uint64_t, uint32_t> terminals_;           // by terminal and stand-in of the set
  FlatMap<uint64_t, std::optional<ExprId>> texts_;  // by number, and whether it is that of a value
  FlatMap<Hash, uint8_t> told_apart_;               // by terminal, number, and whether it is that of a value
  FlatMap<uint64_t, uint8_t> begins_tokens_;        // by both rests
  FlatMap<uint64_t, uint32_t> rests_;               // by expression and text
  FlatMap<uint32_t, uint8_t> endless_;              // by expression
  std::vector<std::vector<Excluding>> excluding_;   // by rule, once asked for
};

}  // namespace constrain
