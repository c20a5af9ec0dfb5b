// Composes completions.
#include "completions/completions.h"

#include <algorithm>
#include <queue>

#include "base/errors.h"

namespace constrain {

namespace {

[[noreturn]] void throw_too_long() {
  throw LimitError("the shortest way to finish is too long (" + MAX_SHORTEST_MATCH.with_unit() + ")", Limit::shortest_match);
}

// Bytes of a text, in which a special token counts as one and a border as none.
size_t length_of(std::string_view text) {
  size_t length = 0;
  for (size_t at = 0; at < text.size();) {
    length += border_length(text.substr(at)) == 0;
    at = text[at] == mark_begin ? text.find(mark_end, at) + 1 : at + 1;
  }
  return length;
}

}  // namespace

void Completions::check_finish(bool steps) {
  stepping_.allow_call();
  paths_.check_solved();
  static_cast<void>(steps || grammar_.has_values ? shortest(stepping_.start()) : by_rules(stepping_.start()));
}

std::string Completions::shortest(const Place& place, const Effort& effort) {
  limits_.prepare(place.lexer);
  std::string text = grammar_.has_values ? by_steps(place) : by_rules(place, effort.thorough);
  if (grammar_.self_delimiting) return text;
  // rules and values ignore that the longest match may take the next bytes
  Place at = place;
  return stepping_.step(at, text) && stepping_.accepting(at) ? text : by_search(place, effort);
}

// Costs -------------------------------------------------------------------------------------------------------------

uint64_t Completions::item_cost(const Item& item) {
  uint64_t own = paths_.of(item.state, item.memory).cost;
  uint64_t rest = own == endless ? endless : origin_cost(item.origin);
  return rest == endless ? endless : own + rest;
}

// Shortest ways from origins to the end of the text: Dijkstra's algorithm, from the end backwards over the origins that
// are not settled yet.
uint64_t Completions::origin_cost(OriginId wanted) {
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
      uint64_t own = paths_.of(item.state, item.memory).cost;
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

const Item* Completions::next_waiting(const std::vector<Item>& waiting) {
  return &*std::min_element(waiting.begin(), waiting.end(), [this](const Item& a, const Item& b) { return item_cost(a) < item_cost(b); });
}

// By rules ----------------------------------------------------------------------------------------------------------

// Appends the text of a way.
void Completions::expand(const RulePath& path, std::string& out) {
  if (out.size() + (path.cost >> 16) > MAX_SHORTEST_MATCH.value) throw_too_long();  // known before it is written
  std::vector<const RulePath*> stack{&path};
  while (!stack.empty()) {
    const RulePath& here = *stack.back();
    stack.pop_back();
    if (here.next != RulePath::none) stack.push_back(&paths_[here.next]);
    if (!here.reads) continue;
    if (here.segment.is_rule) {
      stack.push_back(&paths_.of(grammar_.rules[here.segment.id].start, stepping_.slots().fresh(here.segment.id)));
    } else {
      out += lexer_.shortest_texts().of(ExprId{here.segment.id});
    }
    if (out.size() > MAX_SHORTEST_MATCH.value) throw_too_long();
  }
}

void Completions::complete_item(Item item, std::string& out) {
  for (;;) {
    expand(paths_.of(item.state, item.memory), out);
    if (parser_.ends_text(item.origin)) return;
    item = *next_waiting(parser_.copy_of_waiting(item.origin));
  }
}

// A possible end of the text: the rest of the current lexeme, and the item after it.
struct Completions::Ending {
  uint64_t cost = endless;
  ExprId rest{};
  Item item{};
  bool whole = false;  // the text may end after the lexeme

  void offer(const Ending& other) {
    if (other.cost < cost) *this = other;
  }
};

// After very long searches, any way is good enough.
bool Completions::is_enough(const Ending& best, bool thorough) const { return !thorough && best.cost != endless && paths_.searched_long(); }

std::string Completions::by_rules(const Place& place, bool thorough) {
  limits_.prepare(place.lexer);
  return compose(place, thorough);
}

std::string Completions::compose(const Place& place, bool thorough) {
  if (stepping_.accepting(place)) return {};
  Ending best;
  if (place.fresh) {
    const std::vector<Item> items = parser_.copy_of_items(place.set);
    for (const Item& item : items) {
      if (is_enough(best, thorough)) break;
      best.offer({item_cost(item), ExprId::epsilon, item, false});
    }
  } else {
    const std::vector<Lexer::Entry> entries = lexer_.copy_of_entries(place.lexer);
    for (const Lexer::Entry& entry : entries) offer_entry(best, entry, place, thorough);
  }
  if (best.cost == endless) throw GrammarError("there is no way to finish from here");
  std::string text = lexer_.shortest_texts().of(best.rest);
  if (!best.whole) complete_item(best.item, text);
  return text;
}

// The item after the current lexeme, if it becomes one of this terminal.
void Completions::offer_entry(Ending& best, const Lexer::Entry& entry, const Place& place, bool thorough) {
  const uint64_t own = of_terminal(index(entry.terminal), [&] { return paths_.lexeme_cost(entry.expression); });
  const Parser::Closure closure = parser_.closure(place.set);
  std::vector<Parser::Step> steps = parser_.copy_of_steps(closure);
  for (Parser::Step& step : steps) {
    if (step.terminal != entry.terminal) continue;
    if (is_enough(best, thorough)) break;
    if (step.remember >= 0) {
      TextId text = place.text;
      for (char c : lexer_.shortest_texts().of(entry.expression)) text = stepping_.memory().extend(text, static_cast<uint8_t>(c));
      step.next.memory = stepping_.slots().remembering(grammar_.state(step.next.state).rule, step.next.memory, step.remember, text);
    }
    const uint64_t rest = item_cost(step.next);
    if (rest != endless) best.offer({own + rest, entry.expression, step.next, false});
  }
  if (!grammar_.is_ignored(entry.terminal)) return;
  if (closure.accepting) best.offer({own, entry.expression, {}, true});
  const std::vector<Item> items = parser_.copy_of_items(place.set);
  for (const Item& item : items) {
    const uint64_t rest = item_cost(item);
    if (rest != endless) best.offer({own + rest, entry.expression, item, false});
  }
}

// By steps ----------------------------------------------------------------------------------------------------------

// If values must be distinct, the rules give only a lower bound. So lexemes are taken one by one: each time the allowed
// lexeme that seems to lead to the shortest end. It either follows earlier values, which are finite, or comes nearer to
// the end.
std::string Completions::by_steps(Place place) {
  std::string text;
  while (!stepping_.accepting(place)) {
    stepping_.allow_way();  // for each lexeme, because each brings the end nearer
    limits_.prepare(place.lexer);
    const ExprId rest = next_lexeme(place);
    const std::string lexeme = rest == ExprId::nothing ? std::string() : lexer_.shortest_texts().of(rest);
    Place next = place;
    if (rest == ExprId::nothing || !stepping_.step(next, lexeme)) throw GrammarError("there is no way to finish from here");
    text += lexeme;
    if (text.size() > MAX_SHORTEST_MATCH.value) throw_too_long();
    place = stepping_.accepting(next) ? next : stepping_.finished(next);
    if (place.set == SetId::none) throw GrammarError("there is no way to finish from here");
  }
  return text;
}

// The rest of the current lexeme, as the terminal from which the end seems nearest; `nothing` if there is none.
ExprId Completions::next_lexeme(const Place& place) {
  uint64_t best = endless;
  ExprId rest = ExprId::nothing;
  const Parser::Closure closure = parser_.closure(place.set);
  const std::vector<Parser::Step> steps = parser_.copy_of_steps(closure);
  const std::vector<Lexer::Entry> entries = lexer_.copy_of_entries(place.lexer);
  for (const Lexer::Entry& entry : entries) {
    const uint64_t own = of_terminal(index(entry.terminal), [&] { return paths_.lexeme_cost(entry.expression); });
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
  return rest;
}

// By search ---------------------------------------------------------------------------------------------------------

// Whether the lexeme may become a terminal without a token limit.
bool Completions::reads_unlimited(LexId lexer) const {
  const std::span<const Lexer::Entry> entries = lexer_.entries(lexer);
  return std::any_of(entries.begin(), entries.end(), [this](const Lexer::Entry& entry) { return !lexer_.is_none(entry.terminal) && !limits_.has_limit(entry.terminal); });
}

// Rests of the current lexeme, each in fewest tokens for a terminal with a limit: where the search begins, or right
// after the first byte of a lexeme. `before`: the place before the bytes `read`.
std::vector<std::string> Completions::limited_rests(const Place& place, const Place& before, std::string_view read) {
  std::vector<std::string> rests;
  if (!limits_.any() || place.fresh) return rests;
  const bool begun = read.size() == 1 && (before.fresh || lexer_.step(before.lexer, static_cast<uint8_t>(read[0])) == LexId::dead);
  if (!begun && !read.empty()) return rests;
  for (const Lexer::Entry& entry : lexer_.copy_of_entries(place.lexer)) {
    if (!limits_.has_limit(entry.terminal)) continue;
    if (read.empty()) {
      rests.push_back(lexer_.shortest_texts().of(entry.expression));
    } else if (const std::optional<std::string>& rest = limits_.rests_of_beginnings(entry.terminal)[static_cast<uint8_t>(read[0])]) {
      rests.push_back(*rest);
    }
  }
  std::erase(rests, std::string());
  return rests;
}

// A* over places; the way by rules is the lower bound on the rest. A lexeme with a token limit is read as one edge.
std::string Completions::by_search(const Place& start, const Effort& effort) {
  struct Visit {
    Place place;
    size_t parent;
    std::string read;
    size_t length;
  };
  std::vector<Visit> visits{{start, 0, {}, 0}};
  using Entry = std::pair<size_t, size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  FlatMap<Hash, uint8_t> seen;
  const auto visit = [&](size_t from, const Place& next, std::string read) {
    Hash key = mix(mix(seeded(0), paired(next.lexer, next.set)), index(next.text));
    if (limits_.any()) key = mix(key, limited_rests(next, visits[from].place, read).empty() ? 0u : 1u);
    if (seen.find(key)) return;
    seen.insert(key, 1);
    if (visits.size() > effort.searched_places) {
      throw LimitError(limit_message("the shortest way to finish takes too many steps to find", MAX_SEARCHED_PLACES, effort.searched_places),
                       Limit::searched_places);
    }
    const size_t length = visits[from].length + length_of(read);
    visits.push_back({next, from, std::move(read), length});
    queue.emplace(length + length_of(compose(next, effort.thorough)), visits.size() - 1);
  };
  queue.emplace(0, 0);
  while (!queue.empty()) {
    const size_t at = queue.top().second;
    queue.pop();
    const Place here = visits[at].place;
    if (stepping_.accepting(here)) {
      std::string text;
      for (size_t i = at; i != 0; i = visits[i].parent) text.insert(0, visits[i].read);
      return text;
    }
    for (unsigned b = 0; b < 256; ++b) {
      const auto byte = static_cast<uint8_t>(b);
      Place next = here;
      if (!stepping_.step(next, byte)) continue;
      if (static_cast<char>(byte) == mark_begin) {
        for (auto& [read, after] : stepping_.marks_from(next)) visit(at, after, mark_begin + std::move(read));
        continue;
      }
      const bool stays = !here.fresh && limits_.any() && lexer_.step(here.lexer, byte) != LexId::dead;
      if (!stays || reads_unlimited(next.lexer)) visit(at, next, std::string(1, static_cast<char>(byte)));
    }
    for (std::string& rest : limited_rests(here, visits[visits[at].parent].place, visits[at].read)) {
      Place next = here;
      if (stepping_.step(next, rest)) visit(at, next, std::move(rest));
    }
  }
  throw GrammarError("there is no way to finish from here");
}

}  // namespace constrain
