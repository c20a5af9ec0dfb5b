// What states of rules read next, for the proof of lexing.
//
// Callers are not distinguished, so a state that ends a rule reads what follows any call. States that read the same
// next edges are one *place*, so thousands of alternatives share one list of terminals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "grammar/grammar.h"

namespace constrain {

// Steps that the proof of lexing has taken.
class ProofWork {
 public:
  void spend(size_t steps);

 private:
  size_t spent_ = 0;
};

class RulePlaces {
 public:
  RulePlaces(const Grammar& grammar, ProofWork& work);

  size_t count() const { return edges_.size(); }
  uint32_t of(StateId q) const { return place_[index(q)]; }
  // Indices of the edges with a terminal, in ascending order.
  const std::vector<uint32_t>& edges(uint32_t place) const { return edges_[place]; }

 private:
  static constexpr uint32_t unknown = ~uint32_t{0};

  template <typename F>
  void each_next(uint32_t node, F&& f) const;
  void make_place(const std::vector<uint32_t>& nodes);

  const Grammar& grammar_;
  ProofWork& work_;
  size_t returns_;  // nodes from here on are ends of rules
  std::vector<std::vector<uint32_t>> callers_;  // by rule: states after an edge that reads it
  std::vector<uint32_t> place_;                 // by node
  std::vector<std::vector<uint32_t>> edges_;    // by place
  std::vector<uint32_t> listed_;                // by edge: the last list that has it
  uint32_t list_ = 0;
};

}  // namespace constrain
