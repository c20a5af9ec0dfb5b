// Shortest completions: a real text that finishes what has been begun.
//
// Knuth (1977) generalizes Dijkstra's algorithm to grammars; here rules are solved by rounds over all of them (children
// mostly have higher numbers than parents, so few rounds suffice), each rule's automaton by Dijkstra's algorithm over
// (state, memory). Every edge costs something, so cheapest ways never go in circles.
#include <algorithm>
#include <queue>
#include <tuple>

#include "automaton.h"
#include "errors.h"

namespace constrain {

namespace {

constexpr size_t max_path_states = 400'000;
constexpr size_t max_exact_states = 20'000;     // of one search; beyond, some short way is good enough
constexpr size_t min_exact_states = 500;        // also where earlier searches have used up
constexpr size_t max_exact_states_ever = 400'000;  // what all searches may use
constexpr size_t max_memory_words = 2'000'000;       // that one such search may intern
constexpr size_t max_memory_words_ever = 20'000'000;  // that all may intern, before any way will do

}  // namespace

uint64_t Automaton::edge_cost(const Edge& edge) {
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

// How far each state of a rule is from its end if conditions are ignored: never more than it is.
void Automaton::find_rest_costs(uint32_t rule) {
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

// A* (Hart, Nilsson and Raphael 1968) over states and memories. Where counters and sets of keys make too many of them,
// the search no longer looks for the cheapest way but goes where counters get what conditions ask of them soonest.
// With `keep`, the ways found are remembered for every place that they pass.
//
// Every text that is read makes a memory of its own, so a loop that reads keys, in front of a rule of which no value is
// known yet, would be followed without end. Without the texts there are finitely many memories: where that finds no way,
// there is none, and a way that remembers nothing is right as it is. One that does is tried with the texts first.
uint64_t Automaton::find_own_path(StateId start, MemoryId memory, bool keep) {
  if (follow_rest_costs(start, memory, keep)) return rest_costs_[index(start)];
  std::vector<uint32_t> edges;
  const uint64_t cost = search_own_path(start, memory, keep, PathSearch::without_texts, edges);
  if (edges.empty()) return cost;
  const uint64_t same = search_own_path(start, memory, keep, PathSearch::along, edges);
  return same != endless ? same : search_own_path(start, memory, keep, PathSearch::with_texts, edges);
}

// Where a way that is cheapest if conditions are ignored meets all conditions, nothing need be searched.
bool Automaton::follow_rest_costs(StateId start, MemoryId memory, bool keep) {
  const uint32_t rule = grammar_.state(start).rule;
  if (rest_costs_[index(start)] == endless) return false;
  struct Step {
    StateId state;
    MemoryId memory;
    const Edge* edge;  // by which it is left
  };
  std::vector<Step> way;
  uint32_t next = no_path;
  for (StateId q = start;;) {
    if (const uint32_t* known = keep ? path_ids_.find(path_key(q, memory)) : nullptr) {
      if (paths_[*known].cost != rest_costs_[index(q)]) return false;
      next = *known;
      break;
    }
    if (grammar_.state(q).accepting) break;
    const Edge* taken = nullptr;
    for (const Edge& edge : grammar_.edges_of(q)) {
      const uint64_t rest = rest_costs_[index(edge.target)], own = rest == endless ? endless : edge_cost(edge);
      if (own == endless || own + rest != rest_costs_[index(q)] || !parser_.holds(edge, memory)) continue;
      taken = &edge;
      break;
    }
    if (!taken || taken->excluding >= 0 || taken->distinct >= 0) return false;
    way.push_back({q, memory, taken});
    int32_t remember;
    memory = parser_.without_values(rule, parser_.updated(*taken, rule, memory, remember));
    if (remember >= 0) return false;
    q = taken->target;
  }
  if (!keep) return true;
  if (next == no_path) {  // the end of the rule
    const StateId end = way.empty() ? start : way.back().edge->target;
    path_ids_.insert(path_key(end, memory), static_cast<uint32_t>(paths_.size()));
    paths_.push_back({0, {}, false, no_path});
    next = static_cast<uint32_t>(paths_.size() - 1);
  }
  for (size_t i = way.size(); i-- > 0;) {
    const Step& step = way[i];
    Segment segment{};
    if (step.edge->kind == EdgeKind::rule) segment = {true, step.edge->symbol};
    if (step.edge->kind == EdgeKind::terminal) segment = {false, index(lexer_.expression(TermId{step.edge->symbol}))};
    path_ids_.insert(path_key(step.state, step.memory), static_cast<uint32_t>(paths_.size()));
    paths_.push_back({paths_[next].cost + edge_cost(*step.edge), segment, step.edge->kind != EdgeKind::epsilon, next});
    next = static_cast<uint32_t>(paths_.size() - 1);
  }
  return true;
}

// `edges`: without texts, those of the way found where it remembers texts, and is not kept; else those to go `along`.
uint64_t Automaton::search_own_path(StateId start, MemoryId memory, bool keep, PathSearch search, std::vector<uint32_t>& edges) {
  constexpr uint32_t none = ~uint32_t{0};
  struct Visit {
    StateId state;
    uint32_t edge;  // by which it was reached
    size_t parent;
    uint64_t cost;
    uint64_t missing;  // what counters need to get
    MemoryId memory;
    bool forgot;  // a text that is remembered
    uint32_t depth;
    uint32_t tried = 0;  // ways on, where they are tried one after the other
    bool taken = false;  // the edge: what it reads and does to the memory has been worked out
  };
  const uint32_t rule = grammar_.state(start).rule;
  const std::vector<uint32_t>& needs = needs_[rule];
  uint64_t missing = 0;
  for (uint32_t slot = 0; slot < needs.size(); ++slot) {
    const uint32_t value = memory_.values(memory)[slot];
    if (needs[slot] > value) missing += needs[slot] - value;
  }
  std::vector<Visit> visits{{start, none, 0, 0, missing, memory, false, 0}};
  std::vector<Segment> segments(1);
  struct Entry {
    uint64_t missing, cost;
    size_t at;
    bool operator>(const Entry& other) const {
      if (missing != other.missing) return missing > other.missing;
      return cost != other.cost ? cost > other.cost : at < other.at;
    }
  };
  std::vector<Entry> heap{{0, 0, 0}};
  struct Way {
    Visit visit;
    std::pair<int, uint64_t> rank;
  };
  std::vector<Way> ways;
  FlatMap<uint64_t, uint8_t> done;
  const size_t left = max_exact_states_ever - std::min(max_exact_states_ever, exact_states_);
  const size_t affordable = max_memory_words / (1 + grammar_.rules[rule].slots.size());
  const size_t exact_limit = std::max(min_exact_states, std::min({max_exact_states, left, affordable}));
  bool exact = true;
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const size_t at = heap.back().at;
    heap.pop_back();
    Visit visit = visits[at];
    MemoryId m = visit.memory;
    Segment segment{};
    const bool again = visit.tried > 0;
    if (visit.edge != none && !visit.taken) {  // only now: most edges are never taken
      const Edge& edge = grammar_.edges[visit.edge];
      const MemoryId before = m;
      int32_t remember;
      m = parser_.without_values(rule, parser_.updated(edge, rule, before, remember));
      const bool fresh = edge.excluding >= 0 || edge.distinct >= 0;
      if (edge.kind == EdgeKind::rule) {
        segment = {true, edge.symbol, fresh};
      } else if (edge.kind == EdgeKind::terminal) {
        TermId terminal{edge.symbol};
        if (edge.excluding >= 0) terminal = parser_.excluding(edge, rule, before);
        const ExprId e = lexer_.expression(terminal);
        segment = {false, index(e), fresh};
        if (fresh && e == ExprId::nothing) continue;
        if (fresh) visit.cost += of_terminal(edge.symbol, [&] { return lexeme_cost(e); }) + 1 - edge_cost(edge);
        if (remember >= 0 && grammar_.rules[rule].slots[static_cast<size_t>(remember)] == text_set) {
          visit.forgot |= search == PathSearch::without_texts;
          if (search != PathSearch::without_texts) {
            TextId id = TextId::empty;
            for (char c : lexer_.expressions().shortest(e)) id = memory_.extend(id, static_cast<uint8_t>(c));
            m = parser_.remembering(rule, m, remember, id);
          }
        }
      }
      const bool dearer = visit.cost > visits[at].cost;
      visit.memory = m;
      visit.taken = true;
      visits[at] = visit;
      segments[at] = segment;
      if (dearer && exact) {
        heap.push_back({0, visit.cost + rest_costs_[index(visit.state)], at});
        std::push_heap(heap.begin(), heap.end(), std::greater<>());
        continue;
      }
    }
    const uint64_t key = path_key(visit.state, m);
    if (!again && done.find(key)) continue;
    done.insert(key, 1);
    const uint32_t* known = keep && !again && !visit.forgot ? path_ids_.find(key) : nullptr;
    if (known && paths_[*known].cost == endless) continue;
    const State& s = grammar_.state(visit.state);
    if (s.accepting || known) {
      count_search(visits.size(), rule);
      uint32_t next = no_path;
      uint64_t after = 0;
      if (known) {
        next = *known;
        after = paths_[next].cost;
      }
      if (visit.forgot) {
        for (size_t i = at; i != 0; i = visits[i].parent) edges.push_back(visits[i].edge);
        std::reverse(edges.begin(), edges.end());
      }
      if (!keep || visit.forgot) return visit.cost + after;
      Segment onward{};
      bool reads = false;
      for (size_t i = at;; i = visits[i].parent) {
        const uint64_t id = path_key(visits[i].state, visits[i].memory);
        if (const uint32_t* found = path_ids_.find(id)) {
          next = *found;
          after = paths_[next].cost;
        } else {
          path_ids_.insert(id, static_cast<uint32_t>(paths_.size()));
          paths_.push_back({after, onward, reads, next});
          next = static_cast<uint32_t>(paths_.size() - 1);
        }
        if (i == 0) return after;
        onward = segments[i];
        reads = grammar_.edges[visits[i].edge].kind != EdgeKind::epsilon;
        after += visits[i].cost - visits[visits[i].parent].cost;
      }
    }
    if (exact && visits.size() > exact_limit) {
      exact = false;
      for (Entry& entry : heap) {
        entry.missing = visits[entry.at].missing;
        entry.cost = 0;
      }
      std::make_heap(heap.begin(), heap.end(), std::greater<>());
    }
    if (visits.size() > path_limit_) {
      if (!rules_solved_) {  // perhaps for a rule of which no value is known yet
        cut_short_ = true;
        count_search(visits.size(), rule);
        return endless;
      }
      throw LimitError(limit_message("the shortest way to finish takes too many steps to find", "MAX_PATH_STATES", max_path_states),
                       Limit::path_states);
    }
    ways.clear();
    for (uint32_t i = s.edges_begin; i < s.edges_begin + s.edges_count; ++i) {
      if (search == PathSearch::along && (visit.depth == edges.size() || i != edges[visit.depth])) continue;
      const Edge& edge = grammar_.edges[i];
      const uint64_t rest = rest_costs_[index(edge.target)];
      if (rest == endless || !parser_.holds(edge, m)) continue;
      // (where ways are numbered, all of them are)
      if (exact && edge.kind == EdgeKind::epsilon && edge.actions_count == 0 && done.find(path_key(edge.target, m))) continue;
      const uint64_t own = edge_cost(edge);  // at least
      if (own == endless) continue;
      uint64_t still = visit.missing;
      for (const Action& action : grammar_.actions_of(edge)) {
        if (still != 0 && action.kind == ActionKind::increment && needs[action.slot] > memory_.values(m)[action.slot]) --still;
      }
      bool goes_on = false;  // with what has been begun
      for (const Condition& c : grammar_.conditions_of(edge)) goes_on |= c.minimum > 0;
      ways.push_back({{edge.target, i, at, visit.cost + own, still, m, visit.forgot, visit.depth + 1}, {goes_on ? 0 : edge.excluding < 0 ? 1 : 2, rest}});
    }
    auto push = [&](uint64_t first, uint64_t cost, size_t which) {
      heap.push_back({first, cost, which});
      std::push_heap(heap.begin(), heap.end(), std::greater<>());
    };
    if (exact) {
      for (const Way& way : ways) {
        push(0, way.visit.cost + way.rank.second, visits.size());
        visits.push_back(way.visit);
        segments.emplace_back();
      }
      continue;
    }
    // depth first, unless counters say otherwise: one way on, and the others later; of equals those that come last, since
    // front ends put what ends a rule there
    std::reverse(ways.begin(), ways.end());
    std::stable_sort(ways.begin(), ways.end(), [](const Way& a, const Way& b) {
      return std::tie(a.visit.missing, a.rank) < std::tie(b.visit.missing, b.rank);
    });
    const size_t which = visits[at].tried++;
    if (which >= ways.size()) continue;
    if (which + 1 < ways.size()) push(ways[which + 1].visit.missing, 0, at);
    push(ways[which].visit.missing, 0, visits.size());
    visits.push_back(ways[which].visit);
    segments.emplace_back();
  }
  count_search(visits.size(), rule);
  if (keep && search != PathSearch::along) {
    const uint64_t id = path_key(start, memory);
    path_ids_.insert(id, static_cast<uint32_t>(paths_.size()));
    paths_.push_back({endless, {}, false, no_path});
  }
  return endless;
}

void Automaton::count_search(size_t states, uint32_t rule) {
  exact_states_ += states;
  search_words_ += states * (1 + grammar_.rules[rule].slots.size());
}

void Automaton::solve_rules() {
  if (rules_solved_) return;
  rule_costs_.assign(grammar_.rules.size(), endless);
  terminal_costs_.assign(grammar_.terminals.size(), 0);
  rest_costs_.assign(grammar_.states.size(), endless);
  states_of_.resize(grammar_.rules.size());
  edges_into_.resize(grammar_.states.size());
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
  std::vector<std::vector<uint32_t>> callers(grammar_.rules.size());
  for (uint32_t q = 0; q < grammar_.states.size(); ++q) {
    for (const Edge& edge : grammar_.edges_of(StateId{q})) {
      if (edge.kind == EdgeKind::rule) callers[edge.symbol].push_back(grammar_.states[q].rule);
    }
  }
  for (path_limit_ = max_path_states / 40;; path_limit_ = max_path_states) {
    cut_short_ = false;
    std::vector<bool> open(grammar_.rules.size(), true);
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t rule = grammar_.rules.size(); rule-- > 0;) {
        if (!open[rule]) continue;
        open[rule] = false;
        find_rest_costs(static_cast<uint32_t>(rule));
        uint64_t cost = find_own_path(grammar_.rules[rule].start, parser_.fresh_memory(static_cast<uint32_t>(rule)), false);
        if (cost >= rule_costs_[rule]) continue;
        rule_costs_[rule] = cost;
        for (uint32_t caller : callers[rule]) open[caller] = true;
        changed = true;
      }
    }
    if (!cut_short_ || path_limit_ == max_path_states) break;
  }
  path_limit_ = max_path_states;
  exact_states_ = 0;
  rules_solved_ = true;
}

// Raises the LimitError that keeps a text from being finished: from its beginning, or within some rule.
void Automaton::check_finish(bool steps) {
  allow_call();
  solve_rules();
  std::vector<bool> reached(grammar_.rules.size());
  std::vector<uint32_t> work{0};
  reached[0] = true;
  std::optional<uint32_t> unfinished;  // the one that is found last: those before it read it
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
    throw LimitError(limit_message(("a shortest text of rule " + grammar_.rules[*unfinished].name + " takes too many steps to find").c_str(),
                                   "MAX_PATH_STATES", max_path_states));
  }
  static_cast<void>(steps || grammar_.has_values ? shortest_completion(start()) : completion_by_rules(start()));
}

uint32_t Automaton::own_path_id(StateId state, MemoryId memory) {
  solve_rules();
  memory = parser_.without_values(grammar_.state(state).rule, memory);
  const uint64_t key = path_key(state, memory);
  if (const uint32_t* found = path_ids_.find(key)) return *found;
  find_own_path(state, memory, true);
  return *path_ids_.find(key);
}

uint64_t Automaton::item_cost(const Item& item) {
  uint64_t own = own_path(item.state, item.memory).cost;
  uint64_t rest = own == endless ? endless : origin_cost(item.origin);
  return rest == endless ? endless : own + rest;
}

// Shortest ways from origins to the end of the text, by Dijkstra's algorithm from the end backwards over those origins
// that are not settled yet.
uint64_t Automaton::origin_cost(OriginId wanted) {
  if (const uint64_t* found = origin_costs_.find(index(wanted))) return *found;
  struct Way {
    OriginId from;
    uint64_t cost;
  };
  std::vector<OriginId> open{wanted};
  FlatMap<uint32_t, uint32_t> numbers;  // of open origins
  numbers.insert(index(wanted), 0);
  std::vector<std::vector<Way>> into(1);  // by number: origins whose items wait in front of this one
  using Entry = std::pair<uint64_t, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  for (size_t i = 0; i < open.size(); ++i) {
    OriginId origin = open[i];
    if (parser_.ends_text(origin)) queue.emplace(0, static_cast<uint32_t>(i));
    const std::vector<Item> waiting = parser_.copy_of_waiting(origin);
    for (const Item& item : waiting) {
      uint64_t own = own_path(item.state, item.memory).cost;
      if (own == endless) continue;
      if (const uint64_t* known = origin_costs_.find(index(item.origin))) {
        if (*known != endless) queue.emplace(own + *known + 1, static_cast<uint32_t>(i));
        continue;
      }
      const uint32_t* number = numbers.find(index(item.origin));
      if (!number) {
        numbers.insert(index(item.origin), static_cast<uint32_t>(open.size()));
        open.push_back(item.origin);
        into.emplace_back();
        number = numbers.find(index(item.origin));
      }
      into[*number].push_back({origin, own + 1});
    }
  }
  while (!queue.empty()) {
    auto [cost, number] = queue.top();
    queue.pop();
    if (origin_costs_.find(index(open[number]))) continue;
    origin_costs_.insert(index(open[number]), cost);
    for (const Way& way : into[number]) queue.emplace(cost + way.cost, *numbers.find(index(way.from)));
  }
  for (OriginId origin : open) {
    if (!origin_costs_.find(index(origin))) origin_costs_.insert(index(origin), endless);
  }
  return *origin_costs_.find(index(wanted));
}

// Appends what a way reads.
void Automaton::expand(const OwnPath& path, std::string& out) {
  std::vector<const OwnPath*> stack{&path};
  while (!stack.empty()) {
    const OwnPath& here = *stack.back();
    stack.pop_back();
    if (here.next != no_path) stack.push_back(&paths_[here.next]);
    if (!here.reads) continue;
    if (here.segment.is_rule) {
      stack.push_back(&own_path(grammar_.rules[here.segment.id].start, parser_.fresh_memory(here.segment.id)));
    } else {
      out += lexer_.expressions().shortest(ExprId{here.segment.id});
    }
    if (out.size() > ExpressionStore::max_shortest_match) {
      throw LimitError("the shortest way to finish is too long (MAX_SHORTEST_MATCH = " +
                       std::to_string(ExpressionStore::max_shortest_match) + " bytes)", Limit::shortest_match);
    }
  }
}

void Automaton::complete_item(Item item, std::string& out) {
  for (;;) {
    expand(own_path(item.state, item.memory), out);
    if (parser_.ends_text(item.origin)) return;
    item = *next_waiting(parser_.copy_of_waiting(item.origin));
  }
}

// The one from which the end is nearest.
const Item* Automaton::next_waiting(const std::vector<Item>& waiting) {
  return &*std::min_element(waiting.begin(), waiting.end(), [this](const Item& a, const Item& b) { return item_cost(a) < item_cost(b); });
}

std::string Automaton::shortest_completion(const Place& place, bool thorough) {
  struct Restored {
    bool& flag;
    ~Restored() { flag = false; }
  } restored{thorough_};
  thorough_ = thorough;
  std::string text = grammar_.has_values ? completion_by_steps(place) : completion_by_rules(place);
  if (grammar_.self_delimiting) return text;
  // neither knows that the longest match may swallow what follows
  Place at = place;
  return step(at, text) && accepting(at) ? text : completion_by_search(place);
}

// Where values must be distinct, the rules know a lower bound only. So one lexeme after the other is taken that seems
// to lead to the shortest end and is allowed. What is read follows rivals, which are finite, or comes nearer to the end.
std::string Automaton::completion_by_steps(Place place) {
  std::string text;
  while (!accepting(place)) {
    allow_way();  // for each lexeme: every one brings the end nearer
    uint64_t best = endless;
    ExprId rest = ExprId::nothing;
    const Parser::Closure closure = parser_.closure(place.set);
    const std::vector<Parser::Step> steps = parser_.copy_of_steps(closure);
    const std::vector<Lexer::Entry> entries = lexer_.copy_of_entries(place.lexer);
    for (const Lexer::Entry& entry : entries) {
      const uint64_t own = of_terminal(index(entry.terminal), [&] { return lexeme_cost(entry.expression); });
      uint64_t after = endless;
      for (const Parser::Step& step : steps) {
        if (step.terminal == entry.terminal) after = std::min(after, item_cost(step.next));
      }
      if (grammar_.is_ignored(entry.terminal)) {
        if (closure.accepting) after = 0;
        const std::vector<Item> items = parser_.copy_of_items(place.set);
        for (const Item& item : items) after = std::min(after, item_cost(item));
      }
      if (after != endless && own + after < best) {
        best = own + after;
        rest = entry.expression;
      }
    }
    const std::string lexeme = best == endless ? std::string() : lexer_.expressions().shortest(rest);
    Place next = place;
    if (best == endless || !step(next, lexeme)) throw GrammarError("there is no way to finish from here");
    text += lexeme;
    if (text.size() > ExpressionStore::max_shortest_match) {
      throw LimitError("the shortest way to finish is too long (MAX_SHORTEST_MATCH = " +
                       std::to_string(ExpressionStore::max_shortest_match) + " bytes)", Limit::shortest_match);
    }
    place = accepting(next) ? next : finished(next);
    if (place.set == SetId::none) throw GrammarError("there is no way to finish from here");
  }
  return text;
}

// A* over places: the way that the rules know is a lower bound on what is left.
std::string Automaton::completion_by_search(const Place& start) {
  struct Visit {
    Place place;
    size_t parent;
    uint8_t byte;
    size_t length;
  };
  std::vector<Visit> visits{{start, 0, 0, 0}};
  using Entry = std::pair<size_t, size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  FlatMap<Hash, uint8_t> seen;
  queue.emplace(0, 0);
  while (!queue.empty()) {
    size_t at = queue.top().second;
    queue.pop();
    if (accepting(visits[at].place)) {
      std::string text;
      for (size_t i = at; i != 0; i = visits[i].parent) text.push_back(static_cast<char>(visits[i].byte));
      std::reverse(text.begin(), text.end());
      return text;
    }
    for (unsigned b = 0; b < 256; ++b) {
      Place next = visits[at].place;
      if (!step(next, static_cast<uint8_t>(b))) continue;
      Hash key = mix(mix(seeded(0), (uint64_t{index(next.lexer)} << 32) | index(next.set)), index(next.text));
      if (seen.find(key)) continue;
      seen.insert(key, 1);
      if (visits.size() > searched_places_limit_) {
        throw LimitError(limit_message("the shortest way to finish takes too many steps to find", "MAX_SEARCHED_PLACES", searched_places_limit_), Limit::searched_places);
      }
      size_t length = visits[at].length + 1;
      visits.push_back({next, at, static_cast<uint8_t>(b), length});
      queue.emplace(length + completion_by_rules(next).size(), visits.size() - 1);
    }
  }
  throw GrammarError("there is no way to finish from here");
}

std::string Automaton::completion_by_rules(const Place& place) {
  if (accepting(place)) return {};
  struct Choice {
    uint64_t cost = endless;
    ExprId rest{};
    Item item{};
    bool whole = false;  // nothing follows
  } best;
  auto offer = [&](uint64_t cost, ExprId rest, const Item& item, bool whole) {
    if (cost < best.cost) best = {cost, rest, item, whole};
  };
  // once searches have taken very long, any way will do
  auto settled = [&] {
    return !thorough_ && best.cost != endless && (exact_states_ > max_exact_states_ever || search_words_ > max_memory_words_ever);
  };
  if (place.fresh) {
    const std::vector<Item> items = parser_.copy_of_items(place.set);
    for (const Item& item : items) {
      if (settled()) break;
      offer(item_cost(item), ExprId::epsilon, item, false);
    }
  } else {
    const std::vector<Lexer::Entry> entries = lexer_.copy_of_entries(place.lexer);
    for (const Lexer::Entry& entry : entries) {
      uint64_t own = of_terminal(index(entry.terminal), [&] { return lexeme_cost(entry.expression); });
      const Parser::Closure closure = parser_.closure(place.set);
      std::vector<Parser::Step> steps = parser_.copy_of_steps(closure);
      for (Parser::Step& step : steps) {
        if (step.terminal != entry.terminal) continue;
        if (settled()) break;
        if (step.remember >= 0) {
          TextId text = place.text;
          for (char c : lexer_.expressions().shortest(entry.expression)) text = memory_.extend(text, static_cast<uint8_t>(c));
          step.next.memory = parser_.remembering(grammar_.state(step.next.state).rule, step.next.memory, step.remember, text);
        }
        uint64_t rest = item_cost(step.next);
        if (rest != endless) offer(own + rest, entry.expression, step.next, false);
      }
      if (grammar_.is_ignored(entry.terminal)) {
        if (closure.accepting) offer(own, entry.expression, {}, true);
        const std::vector<Item> items = parser_.copy_of_items(place.set);
        for (const Item& item : items) {
          uint64_t rest = item_cost(item);
          if (rest != endless) offer(own + rest, entry.expression, item, false);
        }
      }
    }
  }
  if (best.cost == endless) throw GrammarError("there is no way to finish from here");
  std::string text = lexer_.expressions().shortest(best.rest);
  if (!best.whole) complete_item(best.item, text);
  return text;
}

}  // namespace constrain
