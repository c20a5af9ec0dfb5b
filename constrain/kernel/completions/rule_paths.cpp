// Solves rules, and searches ways through them.
#include "completions/rule_paths.h"

#include <algorithm>
#include <optional>
#include <queue>
#include <tuple>

#include "base/errors.h"

namespace constrain {

namespace {

constexpr size_t max_path_states = MAX_PATH_STATES.value;
constexpr size_t max_exact_states = 20'000;     // states of one search; beyond them, some short way is enough
constexpr size_t min_exact_states = 500;        // even if earlier searches have used up the total
constexpr size_t max_exact_states_ever = 400'000;  // states of all searches together
constexpr size_t max_memory_words = 2'000'000;       // words that one such search may intern
constexpr size_t max_memory_words_ever = 20'000'000;  // words that all may intern; beyond them, any way is enough

}  // namespace

// Costs -------------------------------------------------------------------------------------------------------------

uint64_t RulePaths::edge_cost(const Edge& edge) {
  switch (edge.kind) {
    case EdgeKind::epsilon:
      return 1;
    case EdgeKind::rule:
      return rule_costs_[edge.symbol] == endless ? endless : rule_costs_[edge.symbol] + 1;
    case EdgeKind::terminal: {
      uint64_t& known = terminal_costs_[edge.symbol];
      if (known == 0) known = of_terminal(edge.symbol, [&] { return lexeme_cost(lexer_.expression(TermId{edge.symbol})); }) + 1;
      return known;
    }
  }
  return endless;
}

void RulePaths::find_rest_costs(uint32_t rule) {
  using Entry = std::pair<uint64_t, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  for (uint32_t q : states_of_[rule]) {
    rest_costs_[q] = endless;
    if (grammar_.states[q].accepting) queue.emplace(0, q);
  }
  while (!queue.empty()) {
    auto [cost, q] = queue.top();
    queue.pop();
    if (rest_costs_[q] != endless) continue;
    rest_costs_[q] = cost;
    for (auto [source, edge] : edges_into_[q]) {
      const uint64_t own = rest_costs_[source] == endless ? edge_cost(grammar_.edges[edge]) : endless;
      if (own != endless) queue.emplace(cost + own, source);
    }
  }
}

void RulePaths::index_states() {
  rule_costs_.assign(grammar_.rules.size(), endless);
  terminal_costs_.assign(grammar_.terminals.size(), 0);
  rest_costs_.assign(grammar_.states.size(), endless);
  states_of_.assign(grammar_.rules.size(), {});  // an earlier attempt may have met a limit halfway
  edges_into_.assign(grammar_.states.size(), {});
  needs_.resize(grammar_.rules.size());
  for (uint32_t rule = 0; rule < grammar_.rules.size(); ++rule) needs_[rule].assign(grammar_.rules[rule].slots.size(), 0);
  for (uint32_t q = 0; q < grammar_.states.size(); ++q) {
    const State& state = grammar_.states[q];
    states_of_[state.rule].push_back(q);
    for (uint32_t i = state.edges_begin; i < state.edges_begin + state.edges_count; ++i) {
      edges_into_[index(grammar_.edges[i].target)].emplace_back(q, i);
      for (const Condition& c : grammar_.conditions_of(grammar_.edges[i])) {
        uint32_t& need = needs_[state.rule][c.slot];
        if (c.maximum == unbounded) need = std::max(need, c.minimum);
      }
    }
  }
}

void RulePaths::solve() {
  if (solved_) return;
  index_states();
  std::vector<std::vector<uint32_t>> callers(grammar_.rules.size());
  for (uint32_t q = 0; q < grammar_.states.size(); ++q) {
    for (const Edge& edge : grammar_.edges_of(StateId{q})) {
      if (edge.kind == EdgeKind::rule) callers[edge.symbol].push_back(grammar_.states[q].rule);
    }
  }
  for (visit_limit_ = max_path_states / 40;; visit_limit_ = max_path_states) {
    cut_short_ = false;
    std::vector<bool> open(grammar_.rules.size(), true);
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t rule = grammar_.rules.size(); rule-- > 0;) {
        if (!open[rule]) continue;
        open[rule] = false;
        find_rest_costs(static_cast<uint32_t>(rule));
        uint64_t cost = find(grammar_.rules[rule].start, slots_.fresh(static_cast<uint32_t>(rule)), false);
        if (cost >= rule_costs_[rule]) continue;
        rule_costs_[rule] = cost;
        for (uint32_t caller : callers[rule]) open[caller] = true;
        changed = true;
      }
    }
    if (!cut_short_ || visit_limit_ == max_path_states) break;
  }
  visit_limit_ = max_path_states;
  visited_ = 0;
  solved_ = true;
}

void RulePaths::check_solved() {
  solve();
  std::vector<bool> reached(grammar_.rules.size());
  std::vector<uint32_t> work{0};
  reached[0] = true;
  std::optional<uint32_t> unfinished;  // the last one found: the earlier ones read it
  while (cut_short_ && !work.empty()) {
    const uint32_t rule = work.back();
    work.pop_back();
    if (rule_costs_[rule] == endless) unfinished = rule;
    for (uint32_t q : states_of_[rule]) {
      for (const Edge& edge : grammar_.edges_of(StateId{q})) {
        if (edge.kind != EdgeKind::rule || reached[edge.symbol]) continue;
        reached[edge.symbol] = true;
        work.push_back(edge.symbol);
      }
    }
  }
  if (unfinished) {
    throw LimitError(limit_message("a shortest text of rule " + grammar_.rules[*unfinished].name + " takes too many steps to find", MAX_PATH_STATES));
  }
}

bool RulePaths::searched_long() const { return visited_ > max_exact_states_ever || memory_words_ > max_memory_words_ever; }

void RulePaths::count_search(size_t states, uint32_t rule) {
  visited_ += states;
  memory_words_ += states * (1 + grammar_.rules[rule].slots.size());
}

// Paths -------------------------------------------------------------------------------------------------------------

uint32_t RulePaths::id_of(StateId state, MemoryId memory) {
  solve();
  memory = slots_.without_values(grammar_.state(state).rule, memory);
  const uint64_t id = key(state, memory);
  if (const uint32_t* found = ids_.find(id)) return *found;
  find(state, memory, true);
  return *ids_.find(id);
}

uint32_t RulePaths::keep(StateId state, MemoryId memory, const RulePath& path) {
  const auto id = static_cast<uint32_t>(paths_.size());
  ids_.insert(key(state, memory), id);
  paths_.push_back(path);
  return id;
}

// If the cheapest way without regard to conditions meets all conditions, no search is needed.
bool RulePaths::follow_rest_costs(StateId start, MemoryId memory, bool keep) {
  const uint32_t rule = grammar_.state(start).rule;
  if (rest_costs_[index(start)] == endless) return false;
  struct Step {
    StateId state;
    MemoryId memory;
    const Edge* edge;  // the edge by which it is left
  };
  std::vector<Step> way;
  uint32_t next = RulePath::none;
  for (StateId q = start;;) {
    if (const uint32_t* known = keep ? ids_.find(key(q, memory)) : nullptr) {
      if (paths_[*known].cost != rest_costs_[index(q)]) return false;
      next = *known;
      break;
    }
    if (grammar_.state(q).accepting) break;
    const Edge* taken = nullptr;
    for (const Edge& edge : grammar_.edges_of(q)) {
      const uint64_t rest = rest_costs_[index(edge.target)], own = rest == endless ? endless : edge_cost(edge);
      if (own == endless || own + rest != rest_costs_[index(q)] || !slots_.holds(edge, memory)) continue;
      taken = &edge;
      break;
    }
    if (!taken || taken->excluding >= 0 || taken->distinct >= 0) return false;
    way.push_back({q, memory, taken});
    int32_t remember;
    memory = slots_.without_values(rule, slots_.updated(*taken, rule, memory, remember));
    if (remember >= 0) return false;
    q = taken->target;
  }
  if (!keep) return true;
  if (next == RulePath::none) {  // the end of the rule
    const StateId end = way.empty() ? start : way.back().edge->target;
    next = this->keep(end, memory, {0, {}, false, RulePath::none});
  }
  for (size_t i = way.size(); i-- > 0;) {
    const Step& step = way[i];
    RulePath::Segment segment{};
    if (step.edge->kind == EdgeKind::rule) segment = {true, step.edge->symbol};
    if (step.edge->kind == EdgeKind::terminal) segment = {false, index(lexer_.expression(TermId{step.edge->symbol}))};
    next = this->keep(step.state, step.memory, {paths_[next].cost + edge_cost(*step.edge), segment, step.edge->kind != EdgeKind::epsilon, next});
  }
  return true;
}

// Searches ----------------------------------------------------------------------------------------------------------

// One search: A* (Hart, Nilsson and Raphael 1968) over states and memories. If counters and sets of keys make these too
// many, the search stops looking for the cheapest way and goes where counters soonest get what conditions require.
class RulePaths::Search {
 public:
  // `edges`: without texts, receives the edges of a way that remembers texts, which is not kept; otherwise the edges to
  // follow.
  Search(RulePaths& paths, StateId start, MemoryId memory, bool keep, SearchMode mode, std::vector<uint32_t>& edges);
  uint64_t run();  // returns the cost of the way found, or endless

 private:
  static constexpr uint32_t none = ~uint32_t{0};
  struct Visit {
    StateId state;
    uint32_t edge;  // the edge that led here
    size_t parent;
    uint64_t cost;
    uint64_t missing;  // counts still missing for conditions
    MemoryId memory;
    bool forgot;  // ignored a text that should be remembered
    uint32_t depth;
    uint32_t tried = 0;  // ways tried, if they are tried one after another
    bool taken = false;  // the edge's text and memory have been computed
  };
  struct Entry {  // an entry of the heap
    uint64_t missing, cost;
    size_t at;
    bool operator>(const Entry& other) const {
      if (missing != other.missing) return missing > other.missing;
      return cost != other.cost ? cost > other.cost : at < other.at;
    }
  };
  struct Way {  // a way on from a visit
    Visit visit;
    std::pair<int, uint64_t> rank;
  };

  bool take_edge(size_t at, Visit& visit);
  uint64_t reach_end(size_t at, const Visit& visit, const uint32_t* known);
  uint64_t keep_way(size_t at, const uint32_t* known);
  void become_inexact();
  bool within_limit();
  void find_ways(size_t at, const Visit& visit);
  void add_all_ways();
  void add_next_way(size_t at);
  void add_visit(const Visit& visit);
  void push(const Entry& entry);

  RulePaths& paths_;
  const Grammar& grammar_;
  RuleSlots& slots_;
  const StateId start_;
  const MemoryId start_memory_;
  const bool keep_;
  const SearchMode mode_;
  std::vector<uint32_t>& edges_;
  const uint32_t rule_;
  const std::vector<uint32_t>& needs_;  // by slot
  std::vector<Visit> visits_;
  std::vector<RulePath::Segment> segments_;  // by visit: the text of its edge
  std::vector<Entry> heap_;
  std::vector<Way> ways_;  // from the current visit
  FlatMap<uint64_t, uint8_t> done_;
  bool exact_ = true;
};

RulePaths::Search::Search(RulePaths& paths, StateId start, MemoryId memory, bool keep, SearchMode mode, std::vector<uint32_t>& edges)
    : paths_(paths), grammar_(paths.grammar_), slots_(paths.slots_), start_(start), start_memory_(memory), keep_(keep), mode_(mode), edges_(edges),
      rule_(grammar_.state(start).rule), needs_(paths.needs_[rule_]), segments_(1), heap_{{0, 0, 0}} {
  uint64_t missing = 0;
  for (uint32_t slot = 0; slot < needs_.size(); ++slot) {
    const uint32_t value = paths_.memory_.values(memory)[slot];
    if (needs_[slot] > value) missing += needs_[slot] - value;
  }
  visits_.push_back({start, none, 0, 0, missing, memory, false, 0});
}

uint64_t RulePaths::Search::run() {
  const size_t left = max_exact_states_ever - std::min(max_exact_states_ever, paths_.visited_);
  const size_t affordable = max_memory_words / (1 + grammar_.rules[rule_].slots.size());
  const size_t exact_limit = std::max(min_exact_states, std::min({max_exact_states, left, affordable}));
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const size_t at = heap_.back().at;
    heap_.pop_back();
    Visit visit = visits_[at];
    const bool again = visit.tried > 0;
    if (visit.edge != none && !visit.taken && !take_edge(at, visit)) continue;
    const uint64_t key = RulePaths::key(visit.state, visit.memory);
    if (!again && done_.find(key)) continue;
    done_.insert(key, 1);
    const uint32_t* known = keep_ && !again && !visit.forgot ? paths_.ids_.find(key) : nullptr;
    if (known && paths_.paths_[*known].cost == endless) continue;
    if (grammar_.state(visit.state).accepting || known) return reach_end(at, visit, known);
    if (exact_ && visits_.size() > exact_limit) become_inexact();
    if (!within_limit()) return endless;
    find_ways(at, visit);
    if (exact_) {
      add_all_ways();
    } else {
      add_next_way(at);
    }
  }
  paths_.count_search(visits_.size(), rule_);
  if (keep_ && mode_ != SearchMode::along) paths_.keep(start_, start_memory_, {endless, {}, false, RulePath::none});
  return endless;
}

// Computes the text and the memory of a visit's edge: only now, since most edges are never taken. False if the edge
// cannot be taken, or costs more than estimated, so that others come first.
bool RulePaths::Search::take_edge(size_t at, Visit& visit) {
  const Edge& edge = grammar_.edges[visit.edge];
  const MemoryId before = visit.memory;
  int32_t remember;
  MemoryId memory = slots_.without_values(rule_, slots_.updated(edge, rule_, before, remember));
  const bool fresh = edge.excluding >= 0 || edge.distinct >= 0;
  RulePath::Segment segment{};
  if (edge.kind == EdgeKind::rule) {
    segment = {true, edge.symbol, fresh};
  } else if (edge.kind == EdgeKind::terminal) {
    TermId terminal{edge.symbol};
    if (edge.excluding >= 0) terminal = slots_.excluding(edge, rule_, before);
    const ExprId e = paths_.lexer_.expression(terminal);
    segment = {false, index(e), fresh};
    if (fresh && e == ExprId::nothing) return false;
    if (fresh) visit.cost += of_terminal(edge.symbol, [&] { return paths_.lexeme_cost(e); }) + 1 - paths_.edge_cost(edge);
    if (remember >= 0 && grammar_.rules[rule_].slots[static_cast<size_t>(remember)] == text_set) {
      visit.forgot |= mode_ == SearchMode::without_texts;
      if (mode_ != SearchMode::without_texts) {
        TextId id = TextId::empty;
        for (char c : paths_.lexer_.shortest_texts().of(e)) id = paths_.memory_.extend(id, static_cast<uint8_t>(c));
        memory = slots_.remembering(rule_, memory, remember, id);
      }
    }
  }
  const bool dearer = visit.cost > visits_[at].cost;
  visit.memory = memory;
  visit.taken = true;
  visits_[at] = visit;
  segments_[at] = segment;
  if (!dearer || !exact_) return true;
  push({0, visit.cost + paths_.rest_costs_[index(visit.state)], at});
  return false;
}

// The cost of the way to a visit from which the end is reached, or from which the way is `known`.
uint64_t RulePaths::Search::reach_end(size_t at, const Visit& visit, const uint32_t* known) {
  paths_.count_search(visits_.size(), rule_);
  if (visit.forgot) {
    for (size_t i = at; i != 0; i = visits_[i].parent) edges_.push_back(visits_[i].edge);
    std::reverse(edges_.begin(), edges_.end());
  }
  if (keep_ && !visit.forgot) return keep_way(at, known);
  return visit.cost + (known ? paths_.paths_[*known].cost : 0);
}

uint64_t RulePaths::Search::keep_way(size_t at, const uint32_t* known) {
  uint32_t next = known ? *known : RulePath::none;
  uint64_t after = known ? paths_.paths_[next].cost : 0;
  RulePath::Segment onward{};
  bool reads = false;
  for (size_t i = at;; i = visits_[i].parent) {
    if (const uint32_t* found = paths_.ids_.find(RulePaths::key(visits_[i].state, visits_[i].memory))) {
      next = *found;
      after = paths_.paths_[next].cost;
    } else {
      next = paths_.keep(visits_[i].state, visits_[i].memory, {after, onward, reads, next});
    }
    if (i == 0) return after;
    onward = segments_[i];
    reads = grammar_.edges[visits_[i].edge].kind != EdgeKind::epsilon;
    after += visits_[i].cost - visits_[visits_[i].parent].cost;
  }
}

void RulePaths::Search::become_inexact() {
  exact_ = false;
  for (Entry& entry : heap_) {
    entry.missing = visits_[entry.at].missing;
    entry.cost = 0;
  }
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
}

bool RulePaths::Search::within_limit() {
  if (visits_.size() <= paths_.visit_limit_) return true;
  if (paths_.solved_) {
    throw LimitError(limit_message("the shortest way to finish takes too many steps to find", MAX_PATH_STATES),
                     Limit::path_states);
  }
  paths_.cut_short_ = true;  // perhaps for a rule without known values
  paths_.count_search(visits_.size(), rule_);
  return false;
}

// Fills ways_.
void RulePaths::Search::find_ways(size_t at, const Visit& visit) {
  ways_.clear();
  const State& state = grammar_.state(visit.state);
  for (uint32_t i = state.edges_begin; i < state.edges_begin + state.edges_count; ++i) {
    if (mode_ == SearchMode::along && (visit.depth == edges_.size() || i != edges_[visit.depth])) continue;
    const Edge& edge = grammar_.edges[i];
    const uint64_t rest = paths_.rest_costs_[index(edge.target)];
    if (rest == endless || !slots_.holds(edge, visit.memory)) continue;
    // Only exact searches skip known places; other searches number the ways and keep them all.
    if (exact_ && edge.kind == EdgeKind::epsilon && edge.actions_count == 0 && done_.find(RulePaths::key(edge.target, visit.memory))) continue;
    const uint64_t own = paths_.edge_cost(edge);  // a lower bound
    if (own == endless) continue;
    uint64_t still = visit.missing;
    for (const Action& action : grammar_.actions_of(edge)) {
      const bool counts = action.kind == ActionKind::increment && needs_[action.slot] > paths_.memory_.values(visit.memory)[action.slot];
      if (still != 0 && counts) --still;
    }
    bool goes_on = false;  // a condition of the edge needs an earlier count
    for (const Condition& c : grammar_.conditions_of(edge)) goes_on |= c.minimum > 0;
    ways_.push_back({{edge.target, i, at, visit.cost + own, still, visit.memory, visit.forgot, visit.depth + 1},
                     {goes_on ? 0 : edge.excluding < 0 ? 1 : 2, rest}});
  }
}

void RulePaths::Search::add_all_ways() {
  for (const Way& way : ways_) {
    push({0, way.visit.cost + way.rank.second, visits_.size()});
    add_visit(way.visit);
  }
}

// Depth first, unless counters decide otherwise: one way on, the others later; among equals the last one, since front
// ends put the way to the end of a rule last.
void RulePaths::Search::add_next_way(size_t at) {
  std::reverse(ways_.begin(), ways_.end());
  std::stable_sort(ways_.begin(), ways_.end(), [](const Way& a, const Way& b) {
    return std::tie(a.visit.missing, a.rank) < std::tie(b.visit.missing, b.rank);
  });
  const size_t which = visits_[at].tried++;
  if (which >= ways_.size()) return;
  if (which + 1 < ways_.size()) push({ways_[which + 1].visit.missing, 0, at});
  push({ways_[which].visit.missing, 0, visits_.size()});
  add_visit(ways_[which].visit);
}

void RulePaths::Search::add_visit(const Visit& visit) {
  visits_.push_back(visit);
  segments_.emplace_back();
}

void RulePaths::Search::push(const Entry& entry) {
  heap_.push_back(entry);
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

// With `keep`, ways are kept for every place on them.
//
// Every text that is read makes a new memory, so a loop that reads keys before a rule without known values would never
// end. Without the texts there are finitely many memories: if that search finds no way, there is none, and a way that
// remembers no text is correct as it is. A way that remembers texts is tried with the texts first.
uint64_t RulePaths::find(StateId start, MemoryId memory, bool keep) {
  if (follow_rest_costs(start, memory, keep)) return rest_costs_[index(start)];
  std::vector<uint32_t> edges;
  const uint64_t cost = Search(*this, start, memory, keep, SearchMode::without_texts, edges).run();
  if (edges.empty()) return cost;
  const uint64_t same = Search(*this, start, memory, keep, SearchMode::along, edges).run();
  return same != endless ? same : Search(*this, start, memory, keep, SearchMode::with_texts, edges).run();
}

}  // namespace constrain
