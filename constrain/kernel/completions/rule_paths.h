// Ways through single rules: from a state of a rule, with what is remembered there, to the rule's end.
//
// Knuth (1977) generalizes Dijkstra's algorithm to grammars; here rules are solved by rounds over all of them (children
// mostly have higher numbers than parents, so few rounds suffice), each rule's automaton by A* over (state, memory).
// Costs are bytes in the upper bits, then edges: every edge costs something, so cheapest ways never go in circles.
// Invariant: a path is kept once, under its state and memory, as its first segment and the path that follows; paths
// never change. Each is the cheapest, unless finding that takes too long.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "base/hashing.h"
#include "base/ids.h"
#include "grammar/grammar.h"
#include "parsing/stepping.h"
#include "vocabulary/vocabulary.h"

namespace constrain {

struct RulePath {
  struct Segment {
    bool is_rule;
    uint32_t id;         // a rule, or an expression whose shortest match is meant
    bool fresh = false;  // it must be a text or value that was not read before
  };
  uint64_t cost;
  Segment segment;  // the first segment, if `reads`
  bool reads;
  uint32_t next;  // the path that follows, or none
  static constexpr uint32_t none = 0xFFFFFFFFu;
  static constexpr uint64_t endless = ~uint64_t{0};  // there is no way
};

class RulePaths {
 public:
  explicit RulePaths(Stepping& stepping)
      : grammar_(stepping.grammar()), lexer_(stepping.lexer()), memory_(stepping.memory()), slots_(stepping.slots()) {}

  void solve();  // solves all rules; otherwise the first request for a path does
  // Raises the LimitError that kept a readable rule from being solved.
  void check_solved();

  uint32_t id_of(StateId state, MemoryId memory);
  const RulePath& operator[](uint32_t id) const { return paths_[id]; }
  const RulePath& of(StateId state, MemoryId memory) { return paths_[id_of(state, memory)]; }
  size_t size() const { return paths_.size(); }

  // Once solved, and without conditions: a lower bound.
  uint64_t rest_cost(StateId state) const { return rest_costs_[index(state)]; }
  uint64_t edge_cost(const Edge& edge);
  const std::vector<uint32_t>& states_of(uint32_t rule) const { return states_of_[rule]; }

  uint64_t lexeme_cost(ExprId lexeme) {  // a special token counts as one byte, and a border as none
    const std::string& text = lexer_.shortest_texts().of(lexeme);
    return (is_marked(text) ? uint64_t{border_length(text) == 0} : uint64_t{text.size()}) << 16;
  }
  bool searched_long() const;  // searches have taken so long that any way is good enough

  size_t memory_bytes() const { return paths_.size() * (sizeof(RulePath) + sizeof(RulePath::Segment)) + ids_.bytes(); }

 private:
  static constexpr uint64_t endless = RulePath::endless;
  class Search;
  enum class SearchMode : uint8_t { without_texts, along, with_texts };

  static uint64_t key(StateId state, MemoryId memory) { return paired(state, memory); }
  void index_states();
  void find_rest_costs(uint32_t rule);
  uint64_t find(StateId state, MemoryId memory, bool keep);
  bool follow_rest_costs(StateId start, MemoryId memory, bool keep);
  uint32_t keep(StateId state, MemoryId memory, const RulePath& path);
  void count_search(size_t states, uint32_t rule);

  const Grammar& grammar_;
  Lexer& lexer_;
  Memory& memory_;
  RuleSlots& slots_;

  bool solved_ = false;
  std::vector<uint64_t> rule_costs_;      // of a new activation
  std::vector<uint64_t> terminal_costs_;  // and one edge; 0: not known yet
  std::vector<uint64_t> rest_costs_;      // by state
  std::vector<std::vector<uint32_t>> states_of_;                        // by rule
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> edges_into_;  // by state: source and edge
  std::vector<std::vector<uint32_t>> needs_;  // by rule and slot: the highest count a condition requires
  size_t visit_limit_ = 0;                    // of one search
  bool cut_short_ = false;                    // some search met the limit
  size_t visited_ = 0;                        // states visited by all searches since the rules were solved
  size_t memory_words_ = 0;                   // size of the memories of these searches, and of all earlier ones
  FlatMap<uint64_t, uint32_t> ids_;
  std::deque<RulePath> paths_;
};

}  // namespace constrain
