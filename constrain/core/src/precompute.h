// Exploring the automaton ahead of time, likeliest places first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "automaton.h"
#include "matcher.h"

namespace constrain {

// Random walks over places, from the beginning of a text to its end: what is likely is met early, along whichever of the
// many ways that lead to it. At each place all places that a token leads to are equally likely, but for those that text
// seldom has: see `weight`. The walks are the same every time. With the grammar's mutex held; where a new generation
// begins, nothing is left to do.
class Exploration {
 public:
  explicit Exploration(CompiledGrammar& grammar);

  // Walks on until a place is met for the first time, and computes its mask and all steps from there. False if that has
  // not happened for long.
  bool advance();
  size_t places() const { return masks_; }
  size_t memory_bytes() const { return memory_bytes_; }  // of all tables

 private:
  struct Following {
    uint32_t node;
    double weights;  // of this one and those before it
  };
  struct Node {
    Place place;
    std::vector<Following> following;
    bool explored = false;
  };

  uint32_t node_of(const Place& place);
  uint64_t key(const Place& place);
  void explore(uint32_t node);
  bool follow(const Place& from, uint32_t trie_node, uint32_t depth, double weight);
  ByteSet possible_bytes(const Place& place);
  bool reads_free_text(const Place& place);
  double random();

  CompiledGrammar& grammar_;
  std::shared_ptr<Automaton> automaton_;
  std::vector<Node> nodes_;
  FlatMap<uint64_t, uint32_t> node_ids_;
  FlatMap<uint64_t, double> inside_;    // places inside of the tokens from the node under way, with their weights
  FlatMap<uint32_t, double> reached_;   // nodes at the ends of those tokens
  std::vector<uint32_t> reached_order_;
  uint32_t at_ = 0;
  size_t steps_ = 0;  // of this walk
  size_t idle_ = 0;   // walks since a place was met for the first time
  size_t masks_ = 0;
  size_t memory_bytes_ = 0;
  uint64_t random_ = 0;
};

}  // namespace constrain
