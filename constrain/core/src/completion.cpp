// Shortest completions: a real text that finishes what has been begun.
//
// Knuth (1977) generalizes Dijkstra's algorithm to grammars; here rules are solved by rounds over all of them (children
// mostly have higher numbers than parents, so few rounds suffice), each rule's automaton by Dijkstra's algorithm over
// (state, memory). Every edge costs something, so cheapest ways never go in circles.
#include <algorithm>
#include <queue>

#include "automaton.h"
#include "errors.h"

namespace constrain {

namespace {

constexpr size_t max_path_states = 4'000'000;
constexpr size_t max_searched_places = 100'000;

}  // namespace

// Every text that is read makes a memory of its own. So a loop that reads keys, in front of a rule of which no value is
// known yet, would be followed without end. Without the texts there are finitely many memories: where that finds no way,
// there is none, and a way that remembers nothing is right as it is.
Automaton::OwnPath Automaton::find_own_path(StateId state, MemoryId memory) {
  bool remembers = false;
  OwnPath path = search_own_path(state, memory, false, remembers);
  return path.cost != endless && remembers ? search_own_path(state, memory, true, remembers) : path;
}

// `remembers`: whether texts are remembered on the way that was found (or would be, without `with_texts`).
Automaton::OwnPath Automaton::search_own_path(StateId state, MemoryId memory, bool with_texts, bool& remembers) {
  struct Visit {
    StateId state;
    MemoryId memory;
    size_t parent;
    Segment segment;
    bool has_segment;
    bool remembers;
  };
  std::vector<Visit> visits{{state, memory, 0, {}, false, false}};
  using Entry = std::pair<uint64_t, size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  FlatMap<uint64_t, uint8_t> done;
  queue.emplace(0, 0);
  while (!queue.empty()) {
    auto [cost, at] = queue.top();
    queue.pop();
    StateId q = visits[at].state;
    MemoryId m = visits[at].memory;
    uint64_t key = (uint64_t{index(q)} << 32) | index(m);
    if (done.find(key)) continue;
    done.insert(key, 1);
    const State& s = grammar_.state(q);
    if (s.accepting) {
      remembers = visits[at].remembers;
      OwnPath path{cost, {}};
      for (size_t i = at; i != 0; i = visits[i].parent) {
        if (visits[i].has_segment) path.segments.push_back(visits[i].segment);
      }
      std::reverse(path.segments.begin(), path.segments.end());
      return path;
    }
    if (visits.size() > max_path_states) {
      throw LimitError("the shortest way to finish takes too many steps to find (MAX_PATH_STATES = " +
                       std::to_string(max_path_states) + ")");
    }
    for (const Edge& edge : grammar_.edges_of(q)) {
      if (!parser_.holds(edge, m)) continue;
      int32_t remember;
      MemoryId next = parser_.without_values(s.rule, parser_.updated(edge, s.rule, m, remember));
      uint64_t edge_cost = 1;
      Segment segment{};
      bool texts = visits[at].remembers;
      if (edge.kind == EdgeKind::rule) {
        if (rule_costs_[edge.symbol] == endless) continue;
        edge_cost += rule_costs_[edge.symbol];
        segment = {true, edge.symbol};
      } else if (edge.kind == EdgeKind::terminal) {
        TermId terminal{edge.symbol};
        if (edge.excluding >= 0) terminal = parser_.excluding(edge, s.rule, m);
        ExprId e = lexer_.expression(terminal);
        if (e == ExprId::nothing) continue;
        const std::string text = lexer_.expressions().shortest(e);
        edge_cost += text_cost(text);
        segment = {false, index(e)};
        if (remember >= 0 && grammar_.rules[s.rule].slots[static_cast<size_t>(remember)] == text_set) {
          texts = true;
          if (with_texts) {
            TextId id = TextId::empty;
            for (char c : text) id = memory_.extend(id, static_cast<uint8_t>(c));
            next = memory_.remember(next, static_cast<uint32_t>(remember), id);
          }
        }
      }
      visits.push_back({edge.target, next, at, segment, edge.kind != EdgeKind::epsilon, texts});
      queue.emplace(cost + edge_cost, visits.size() - 1);
    }
  }
  return {endless, {}};
}

void Automaton::solve_rules() {
  if (rules_solved_) return;
  rule_costs_.assign(grammar_.rules.size(), endless);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t rule = grammar_.rules.size(); rule-- > 0;) {
      uint64_t cost = find_own_path(grammar_.rules[rule].start, parser_.fresh_memory(static_cast<uint32_t>(rule))).cost;
      if (cost < rule_costs_[rule]) {
        rule_costs_[rule] = cost;
        changed = true;
      }
    }
  }
  rules_solved_ = true;
}

const Automaton::OwnPath& Automaton::own_path(StateId state, MemoryId memory) {
  solve_rules();
  memory = parser_.without_values(grammar_.state(state).rule, memory);
  uint64_t key = (uint64_t{index(state)} << 32) | index(memory);
  if (const uint32_t* found = path_ids_.find(key)) return paths_[*found];
  OwnPath path = find_own_path(state, memory);
  path_ids_.insert(key, static_cast<uint32_t>(paths_.size()));
  paths_.push_back(std::move(path));
  return paths_.back();
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

void Automaton::expand(const std::vector<Segment>& segments, std::string& out) {
  std::vector<Segment> stack(segments.rbegin(), segments.rend());
  while (!stack.empty()) {
    Segment segment = stack.back();
    stack.pop_back();
    if (segment.is_rule) {
      const OwnPath& path = own_path(grammar_.rules[segment.id].start, parser_.fresh_memory(segment.id));
      stack.insert(stack.end(), path.segments.rbegin(), path.segments.rend());
    } else {
      out += lexer_.expressions().shortest(ExprId{segment.id});
    }
    if (out.size() > ExpressionStore::max_shortest_match) {
      throw LimitError("the shortest way to finish is too long (MAX_SHORTEST_MATCH = " +
                       std::to_string(ExpressionStore::max_shortest_match) + " bytes)");
    }
  }
}

void Automaton::complete_item(Item item, std::string& out) {
  for (;;) {
    expand(own_path(item.state, item.memory).segments, out);
    if (parser_.ends_text(item.origin)) return;
    const std::vector<Item> waiting = parser_.copy_of_waiting(item.origin);
    item = *std::min_element(waiting.begin(), waiting.end(), [this](const Item& a, const Item& b) { return item_cost(a) < item_cost(b); });
  }
}

std::string Automaton::shortest_completion(const Place& place) {
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
    uint64_t best = endless;
    ExprId rest = ExprId::nothing;
    const Parser::Closure closure = parser_.closure(place.set);
    const std::vector<Parser::Step> steps = parser_.copy_of_steps(closure);
    const std::vector<Lexer::Entry> entries = lexer_.copy_of_entries(place.lexer);
    for (const Lexer::Entry& entry : entries) {
      const uint64_t own = text_cost(lexer_.expressions().shortest(entry.expression));
      uint64_t after = endless;
      for (const Parser::Step& step : steps) {
        if (step.terminal == entry.terminal) after = std::min(after, item_cost(step.next));
      }
      if (std::find(grammar_.ignored.begin(), grammar_.ignored.end(), index(entry.terminal)) != grammar_.ignored.end()) {
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
                       std::to_string(ExpressionStore::max_shortest_match) + " bytes)");
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
      Hash key = mix(seeded(0), (uint64_t{index(next.lexer)} << 32) | index(next.set));
      key = mix(key, (uint64_t{index(next.text)} << 32) | index(next.track));
      if (seen.find(key)) continue;
      seen.insert(key, 1);
      if (visits.size() > max_searched_places) {
        throw LimitError("the shortest way to finish takes too many steps to find (MAX_SEARCHED_PLACES = " +
                         std::to_string(max_searched_places) + ")");
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
  if (place.fresh) {
    const std::vector<Item> items = parser_.copy_of_items(place.set);
    for (const Item& item : items) offer(item_cost(item), ExprId::epsilon, item, false);
  } else {
    const std::vector<Lexer::Entry> entries = lexer_.copy_of_entries(place.lexer);
    for (const Lexer::Entry& entry : entries) {
      uint64_t own = text_cost(lexer_.expressions().shortest(entry.expression));
      const Parser::Closure closure = parser_.closure(place.set);
      std::vector<Parser::Step> steps = parser_.copy_of_steps(closure);
      for (Parser::Step& step : steps) {
        if (step.terminal != entry.terminal) continue;
        if (step.remember >= 0) {
          TextId text = place.text;
          for (char c : lexer_.expressions().shortest(entry.expression)) text = memory_.extend(text, static_cast<uint8_t>(c));
          step.next.memory = parser_.remembering(grammar_.state(step.next.state).rule, step.next.memory, step.remember, text);
        }
        uint64_t rest = item_cost(step.next);
        if (rest != endless) offer(own + rest, entry.expression, step.next, false);
      }
      if (std::find(grammar_.ignored.begin(), grammar_.ignored.end(), index(entry.terminal)) != grammar_.ignored.end()) {
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
