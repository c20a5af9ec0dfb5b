// Lexer states: the terminals that the current lexeme may still become, each with the rest of its expression.
//
// Invariant: a state is interned; its entries are live, and sorted by (hash of the expression, terminal), so that a
// position in it means the same in every constraint with the same expressions and the same lazy terminals.
//
// Where a lazy terminal matches, the lexeme ends: the state has this terminal alone (all lazy ones that match), and no
// steps. All other lexemes are as long as possible.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/interned_lists.h"
#include "expressions/expressions.h"
#include "expressions/shortest.h"
#include "values/memory.h"
#include "values/values.h"

namespace constrain {

class Lexer {
 public:
  struct Entry {
    TermId terminal;
    ExprId expression;
  };

  Lexer(const ExpressionStore& expressions, std::vector<ExprId> terminals, const std::vector<bool>& remembered, const std::vector<bool>& lazy);
  Lexer() = default;  // an empty lexer to restore

  ExpressionStore& expressions() { return expressions_; }
  const ExpressionStore& expressions() const { return expressions_; }
  ShortestTexts& shortest_texts() { return shortest_; }  // of the expressions
  LexId state(std::vector<Entry> entries);
  LexId step(LexId state, uint8_t byte);
  // The bytes that it may take; all others lead to LexId::dead, and need no step. The reference lasts until the next call.
  const ByteSet& possible(LexId state);
  std::optional<LexId> known_step(LexId state, uint8_t byte) const;  // none if it was not sought yet
  void keep_step(LexId state, uint8_t byte, LexId to) { steps_.insert((uint64_t{index(state)} << 8) | byte, index(to)); }

  std::span<const Entry> entries(LexId s) const {
    const State& state = states_[index(s)];
    return {entries_.data() + state.begin, state.count};
  }
  std::vector<Entry> copy_of_entries(LexId s) const;  // for loops that make states
  MatchId matched(LexId s) const { return states_[index(s)].matched; }
  bool remembers(LexId s) const { return states_[index(s)].remembers; }
  bool context_dependent(LexId s) const { return states_[index(s)].context_dependent; }
  bool is_lazy(LexId s) const { return states_[index(s)].lazy; }  // some terminal in it is
  bool is_lazy(TermId t) const { return terminals_[index(t)].lazy; }

  std::span<const TermId> terminals_of(MatchId m) const { return matched_[index(m)]; }
  MatchId match(std::vector<TermId> terminals);

  ExprId expression(TermId t) const { return terminals_[index(t)].expression; }
  TermId base_terminal(TermId t) const { return terminals_[index(t)].base; }  // the terminal itself if it is not derived
  bool is_derived(TermId t) const { return base_terminal(t) != t; }            // made by `without` or `without_values`
  bool is_context_dependent(TermId t) const { return terminals_[index(t)].context_dependent; }

  // Terminal `t` without the texts of a set; TextId::unknown in the set makes it context-dependent. Its expression may
  // be ExprId::nothing: then every text is used.
  TermId without(TermId t, TextSetId set, const Memory& memory, const Values& values);
  // Terminal `t` without the texts of the scalars in a list of values; ValueId::unknown_scalar makes it
  // context-dependent.
  TermId without_values(TermId t, uint32_t list, const Memory& memory, const Values& values);
  // What was left out of a terminal by `without` or `without_values`, as a list of texts or values in memory; an empty
  // list for a terminal that is not derived.
  struct Excluded {
    uint32_t list = 0;
    bool are_values = false;
  };
  Excluded excluded(TermId t) const { return terminals_[index(t)].excluded; }
  // The texts; if strings are compared by value, all spellings of these strings.
  ExprId spelled_texts(std::vector<std::string> texts, const Values& values);

  // Terminals without any text. In a state, they take bytes and match nothing; the lazy one ends like a lazy terminal.
  TermId none() const { return none_; }
  TermId none_like(TermId t) const { return is_lazy(t) ? TermId{index(none_) + 1} : none_; }
  bool is_none(TermId t) const { return index(t) == index(none_) || index(t) == index(none_) + 1; }
  bool matches(TermId t, ValueId scalar, const Values& values);  // some text of the scalar

  size_t memory_bytes() const {
    return expressions_.memory_bytes() + states_.size() * sizeof(State) + entries_.size() * sizeof(Entry) + steps_.bytes() + possible_.bytes() +
           blocks_.bytes() + 6 * stored_steps_.bytes.size() + ids_.bytes() + terminals_.size() * sizeof(Terminal);
  }

  template <typename Archive>
  void visit(Archive& archive) {
    if constexpr (Archive::is_writer) {
      StepRuns runs = all_steps();
      archive(runs.ends, runs.bytes, runs.targets);
    } else {  // views, like those of FlatMap
      stored_steps_ = {archive.template array<uint32_t>(), archive.template array<std::pair<uint8_t, uint8_t>>(), archive.template array<LexId>()};
      archive.require(stored_steps_.bytes.size() == stored_steps_.targets.size() &&
                      (stored_steps_.ends.empty() ? size_t{0} : stored_steps_.ends.back()) == stored_steps_.bytes.size());
    }
    archive(expressions_, terminals_, none_, states_, entries_, ids_, without_, without_values_, spelled_, matches_, matched_);
  }

 private:
  enum class Notation : uint8_t { whole, fraction, scientific };  // each includes the texts of those before it
  struct Terminal {
    ExprId expression;
    TermId base;
    bool remembered;
    bool context_dependent;
    bool lazy;
    Excluded excluded = {};
    std::optional<Notation> notation = std::nullopt;  // the notation of its numbers, once known
  };
  struct State {
    uint32_t begin, count;
    MatchId matched;
    bool remembers, context_dependent, lazy;
  };

  // Stored steps: for each state, runs of bytes that lead to the same state.
  struct StepRuns {
    std::vector<uint32_t> ends;  // by state: the end of its runs
    std::vector<std::pair<uint8_t, uint8_t>> bytes;
    std::vector<LexId> targets;
  };
  StepRuns all_steps() const;
  std::optional<LexId> stored_step(LexId state, uint8_t byte) const;

  template <typename F>
  ExprId in_blocks(uint64_t tag, std::span<const uint32_t> numbers, F&& expression_of);
  void end_at_lazy(std::vector<Entry>& entries) const;
  TermId derived(TermId t, ExprId used, Excluded excluded, bool context_dependent);
  ExprId all_spelled(const std::vector<ValueId>& scalars, const Values& values, Notation notation);
  ExprId spelled(const std::vector<ValueId>& scalars, const Values& values, Notation notation);
  void spell_scientific(const std::vector<ValueId>& decimals, const Values& values, std::vector<ExprId>& parts);
  bool spell_double(const std::string& form, Notation notation, std::vector<ExprId>& parts);
  ExprId exponent(long long number);
  Notation notation_of(TermId t);

  ExpressionStore expressions_;
  ShortestTexts shortest_{expressions_};
  std::vector<Terminal> terminals_;
  TermId none_{};
  std::vector<State> states_;
  std::vector<Entry> entries_;
  FlatMap<Hash, uint32_t> ids_;
  FlatMap<uint64_t, uint32_t> steps_;
  FlatMap<uint32_t, ByteSet> possible_;  // by state; not stored
  struct {
    std::span<const uint32_t> ends;
    std::span<const std::pair<uint8_t, uint8_t>> bytes;
    std::span<const LexId> targets;
  } stored_steps_;
  FlatMap<uint64_t, uint32_t> without_;
  FlatMap<uint64_t, uint32_t> without_values_;
  FlatMap<Hash, uint32_t> blocks_;  // blocks of texts or values, as expressions; not stored
  FlatMap<uint32_t, uint32_t> spelled_;  // all texts of one number, with exponents, by value
  FlatMap<uint64_t, uint8_t> matches_;
  InternedLists<TermId> matched_;
};

}  // namespace constrain
