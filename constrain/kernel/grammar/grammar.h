// The grammar in the kernel: expressions of terminals, and the automata of rules in flat arrays.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "expressions/counts.h"
#include "expressions/expressions.h"
#include "values/values.h"

namespace constrain {

struct Condition {
  uint32_t slot;
  uint32_t minimum;
  uint32_t maximum;  // or `unbounded`
};

enum class ActionKind : uint8_t { increment, remember };

struct Action {
  ActionKind kind;
  uint32_t slot;
};

enum class EdgeKind : uint8_t { epsilon, terminal, rule };

struct Edge {
  EdgeKind kind = EdgeKind::epsilon;
  uint32_t symbol = 0;  // a terminal or a rule
  StateId target{};
  uint32_t conditions_begin = 0, conditions_count = 0;
  uint32_t actions_begin = 0, actions_count = 0;
  int32_t excluding = -1;  // slot of a text set, or of a value set that an edge with a terminal also extends; or -1
  int32_t distinct = -1;   // slot of a value set; the edge reads a rule whose value is new to it, and adds the value
};

constexpr int32_t text_set = -1;
constexpr int32_t value_set = -2;

struct Rule {
  std::string name;
  StateId start{};
  std::vector<int32_t> slots;  // the cap of a counter, or text_set or value_set
  bool nullable = false;

  template <typename Archive>
  void visit(Archive& archive) {
    archive(name, start, slots, nullable);
  }
};

struct State {
  uint32_t rule = 0;
  uint32_t edges_begin = 0, edges_count = 0;
  bool accepting = false;
  bool only_accepting() const { return accepting && edges_count == 0; }
};

struct Grammar {
  ExpressionStore expressions;  // as at the end of compilation: every generation starts from a copy
  LongCounts long_counts;       // of the expressions
  std::vector<ExprId> terminals;
  std::vector<std::string> terminal_names;
  std::vector<bool> remembered;  // by terminal: some edge remembers the lexeme
  std::vector<uint8_t> kinds;    // by terminal: which token limit applies; front ends define the kinds
  std::vector<bool> lazy;        // by terminal: a lexeme ends where this terminal first matches, even if others could go on
  std::vector<uint32_t> token_limits;  // by terminal: the most tokens of the lexeme, or `unbounded`
  std::vector<double> temperatures;    // by terminal; negative if none is asked for
  std::vector<Role> roles;         // by terminal; only where `reads_groups`
  std::vector<std::string> labels;  // by terminal: the label of its texts; empty: each text itself
  std::vector<uint32_t> ignored;
  std::vector<Rule> rules;  // rules[0] is the start
  std::vector<State> states;
  std::vector<Edge> edges;  // by state
  std::vector<Condition> conditions;
  std::vector<Action> actions;
  bool self_delimiting = false;
  bool may_need_fresh = false;  // some edge reads only texts or values that were not read before
  bool has_values = false;    // some slot is a set of values
  bool numbers_by_double = false;  // numbers that must be distinct are compared as IEEE doubles
  bool strings_by_value = false;   // JSON strings are compared by the strings that they spell
  bool reads_groups = false;  // some edge reads a rule whose value must be distinct
  bool limits_tokens = false;  // some terminal has a token limit
  bool reads_bytes = false;    // terminals of the front end are read byte by byte, each as a rule
  bool has_temperatures = false;

  template <typename Archive>
  void visit(Archive& archive) {  // without expressions
    archive(terminals, terminal_names, remembered, kinds, lazy, token_limits, temperatures, roles, labels, ignored, rules, states, edges,
            conditions, actions, self_delimiting, has_values, numbers_by_double, strings_by_value, reads_groups, may_need_fresh,
            limits_tokens, reads_bytes, has_temperatures);
  }

  // The most tokens of a lexeme; `unbounded` for terminals without a limit, and for those made from memory.
  uint32_t token_limit(TermId t) const { return index(t) < token_limits.size() ? token_limits[index(t)] : unbounded; }
  const State& state(StateId q) const { return states[index(q)]; }
  bool is_ignored(TermId t) const { return std::find(ignored.begin(), ignored.end(), index(t)) != ignored.end(); }
  std::span<const Edge> edges_of(StateId q) const {
    const State& s = states[index(q)];
    return {edges.data() + s.edges_begin, s.edges_count};
  }
  std::span<const Condition> conditions_of(const Edge& e) const { return {conditions.data() + e.conditions_begin, e.conditions_count}; }
  std::span<const Action> actions_of(const Edge& e) const { return {actions.data() + e.actions_begin, e.actions_count}; }
};

// Fills in derived fields (nullable rules, remembered terminals) and drops edges that lead nowhere. Throws GrammarError
// if the grammar is malformed or generates no text.
void analyse(Grammar& grammar);

// Two terminals of which the longest match of the one could take the beginning of the other that follows it.
struct LexingConflict {
  uint32_t terminal, follower;
  std::vector<uint32_t> parallel;  // terminals read in parallel with `terminal`, which may go on instead; with itself
};

// Proves that reading the longest match never leads to a dead end (lexing_proof.cpp), or, with `lossless`, that it reads
// every text of the rules. Returns the first conflict found where it cannot be proved.
std::optional<LexingConflict> find_lexing_conflict(Grammar& grammar, bool lossless = false);

// Returns terminals without which no conflict is found, in ascending order: of each conflict, `parallel`, unless its
// `terminal` is among those already.
std::vector<uint32_t> find_conflicting_terminals(Grammar& grammar, bool lossless);

// What can be shown of reading the longest match.
struct LexingClaims {
  bool no_dead_end = false;
  // No terminal can continue with a byte that may follow it. False for a grammar with lazy terminals or limits on tokens,
  // which end lexemes otherwise.
  bool self_delimiting = false;
};

LexingClaims find_lexing_claims(Grammar& grammar);

}  // namespace constrain
