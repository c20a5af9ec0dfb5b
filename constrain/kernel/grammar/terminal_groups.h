// Terminals of a grammar that begin alike, and terminals that may be usable at once, for the proof of lexing.
//
// Thousands of terminals may be usable at one place, and their pairs would be millions. So one automaton follows all
// terminals in parallel and meets exactly the pairs that begin alike; and terminals that are readable at the same
// places are one *group*.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/rule_places.h"

namespace constrain {

// All terminals, followed from their beginnings while at least two are left.
//
//     {if, int, name} --i--> {f, nt, name*} --f--> {(end), name*}
class JointAutomaton {
 public:
  static constexpr size_t max_overlap_work = 300'000;  // derivatives that comparing terminals may take

  struct Entry {
    uint32_t terminal;
    ExprId rest;
  };

  // Whether the terminals could be followed within the limits.
  bool follow(ExpressionStore& store, const std::vector<ExprId>& terminals, ProofWork& work);

  size_t states() const { return begins_.size() - 1; }
  std::span<const Entry> entries(size_t state) const {
    return {entries_.data() + begins_[state], begins_[state + 1] - begins_[state]};
  }

 private:
  static constexpr size_t max_joint_steps = 2'000'000;  // steps of terminals; beyond, not followed in parallel

  void add(const std::vector<Entry>& set);

  std::vector<Entry> entries_;      // of all states, one after the other
  std::vector<size_t> begins_{0};   // by state
  FlatMap<Hash, uint8_t> known_;
  size_t steps_ = 0;
};

// Groups of terminals, and the groups that may be usable at once.
class TerminalGroups {
 public:
  explicit TerminalGroups(const Grammar& grammar) : of_(grammar.terminals.size(), 0) {}

  void find(const Grammar& grammar, const RulePlaces& places);
  void merge();  // all terminals may be usable at once
  void allocate(ProofWork& work);
  void meet(uint32_t one, uint32_t two) {
    together_[one * words_ + two / 64] |= uint64_t{1} << (two % 64);
    together_[two * words_ + one / 64] |= uint64_t{1} << (one % 64);
  }
  size_t meet_all(const std::vector<uint32_t>& ones, const std::vector<uint32_t>& twos);  // returns the number of steps

  size_t count() const { return count_; }
  uint32_t of(uint32_t terminal) const { return of_[terminal]; }
  bool may_meet(uint32_t one, uint32_t two) const { return (together_[one * words_ + two / 64] >> (two % 64)) & 1; }
  bool in_parallel(uint32_t t, uint32_t u) const { return may_meet(of_[t], of_[u]); }

 private:
  std::vector<uint32_t> of_;  // by terminal
  size_t count_ = 0, words_ = 0;
  std::vector<uint64_t> together_;  // a row of bits for each group
};

}  // namespace constrain
