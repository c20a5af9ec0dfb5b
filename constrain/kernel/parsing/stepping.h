// Stepping: reading bytes, from place to place.
//
// Owns the lexer, the memory, the slots and the parser of one generation; all its ids belong to them. Invariant: a place
// that `step` returns can be completed. A step only adds to tables, which keep every result. Not synchronized.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_set.h"
#include "base/limits.h"
#include "grammar/grammar.h"
#include "lexing/lexer.h"
#include "parsing/parser.h"
#include "parsing/place.h"
#include "parsing/rule_slots.h"
#include "values/memory.h"

namespace constrain {

class Stepping {
 public:
  Stepping(const Grammar& grammar, const Limits& limits);

  // An empty object to restore: `visit` must read all that another object's `visit` has written.
  struct ToBeRestored {};
  Stepping(const Grammar& grammar, ToBeRestored) : grammar_(grammar) {}
  Stepping(const Stepping&) = delete;
  Stepping& operator=(const Stepping&) = delete;

  template <typename Archive>
  void visit(Archive& archive) {
    archive(lexer_, memory_, slots_, parser_);
  }

  Place start() { return entered(parser_.start(), TrackId::start); }
  // Returns false, and leaves `place` unchanged, if the byte cannot follow.
  bool step(Place& place, uint8_t byte);
  bool step(Place& place, std::string_view bytes);                               // false if the bytes cannot follow
  bool accepting(const Place& place);                                            // the text may end here
  bool surely_accepting(const Place& place, LimitSet& met);                      // and deciding that meets no limit
  // After the current lexeme; the set is SetId::none if the lexeme cannot end here.
  Place finished(const Place& place);
  Place entered(SetId set, TrackId track) { return {parser_.closure(set).start, set, TextId::empty, true, track}; }
  ByteSet next_bytes(const Place& place);
  std::vector<std::pair<std::string, Place>> marks_from(const Place& place);  // the marks that may follow their first byte

  const Grammar& grammar() const { return grammar_; }
  const Limits& limits() const { return limits_; }
  Lexer& lexer() { return lexer_; }
  Memory& memory() { return memory_; }
  RuleSlots& slots() { return slots_; }
  Parser& parser() { return parser_; }
  ExpressionStore& expressions() { return lexer_.expressions(); }

  // Allowances of steps; each holds until the next one.
  void allow_mask() { expressions().work().allow(of_mask()); }
  void allow_call() { expressions().work().allow({limits_.call_work, &MAX_CALL_WORK, limits_.intersection_states}); }
  void allow_way() { expressions().work().allow(of_way()); }

  // A scope with its own allowance. Its end grants the full allowance of a call.
  class Scope {
   public:
    Scope(Stepping& stepping, const Work::Allowance& allowance) : stepping_(stepping) { stepping.expressions().work().allow(allowance); }
    Scope(const Scope&) = delete;
    ~Scope() { stepping_.allow_call(); }

   private:
    Stepping& stepping_;
  };
  Scope for_mask() { return {*this, of_mask()}; }
  Scope for_way() { return {*this, of_way()}; }
  Scope without_limits() { return {*this, {Work::endless, nullptr, unbounded}}; }

  size_t memory_bytes() const { return lexer_.memory_bytes() + memory_.memory_bytes() + slots_.memory_bytes() + parser_.memory_bytes(); }

 private:
  Work::Allowance of_mask() const { return {limits_.mask_work, &MAX_MASK_WORK, limits_.intersection_states}; }
  // Enough work to find a way to finish, despite limits.
  Work::Allowance of_way() const { return {std::max(limits_.call_work, Limits{}.call_work), &MAX_CALL_WORK}; }

  const Grammar& grammar_;
  const Limits limits_;
  Lexer lexer_;
  Memory memory_;
  RuleSlots slots_{grammar_, lexer_, memory_};
  Parser parser_{grammar_, lexer_, memory_, slots_};
};

}  // namespace constrain
