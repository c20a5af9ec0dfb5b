// Exploration of the automaton ahead of time, likeliest places first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <queue>
#include <tuple>
#include <vector>

#include "matching/automaton.h"
#include "matching/compiled_grammar.h"

namespace constrain {

// Visits places in the order of the cost to reach them: see precompute.cpp. With the grammar's mutex held; ends when a
// new generation begins.
class Exploration {
 public:
  explicit Exploration(CompiledGrammar& grammar);

  // Computes the mask of the next place and all steps from there. Returns false if no place is left.
  bool advance();
  size_t places() const { return masks_; }
  size_t memory_bytes() const { return memory_bytes_; }  // of all tables

 private:
  struct Node {
    Place place;
    double cost;
    uint32_t arrival;  // trie node of the token that leads to it
    bool explored = false;
  };
  struct Waiting {
    double cost;
    uint32_t node;
    bool operator<(const Waiting& other) const { return std::tie(other.cost, other.node) < std::tie(cost, node); }
  };
  struct Reached {  // a place reached by a token
    Place place;
    uint32_t trie_node;
    size_t tokens;  // the number of such tokens, about
    double cost;
  };

  uint64_t key(const Place& place);
  void explore(uint32_t node);
  void follow_all(const Place& from, uint32_t arrival);
  bool follow(const Place& from, uint32_t trie_node, uint32_t depth, double cost, uint32_t joined);
  bool step(Place& place, uint8_t byte);
  bool same_terminals(LexId one, LexId other);
  bool is_short(ExprId e);
  bool has_few_texts(LexId state);
  ByteSet definite_bytes(const Place& place);
  ByteSet possible_bytes(const Place& place);
  bool reads_free_text(const Place& place);
  void meet(const Place& place, double cost, uint32_t arrival);

  CompiledGrammar& grammar_;
  std::shared_ptr<Automaton> automaton_;
  Lengths lengths_{automaton_->stepping().expressions().nodes()};
  std::vector<Node> nodes_;
  FlatMap<uint64_t, uint32_t> node_ids_;
  std::priority_queue<Waiting> waiting_;
  FlatMap<uint64_t, double> inside_;    // places inside of tokens, from the current node, with their costs
  FlatMap<uint64_t, uint32_t> reached_ids_;
  std::vector<Reached> reached_;  // places at the ends of these tokens
  size_t masks_ = 0;
  size_t memory_bytes_ = 0;
};

}  // namespace constrain
