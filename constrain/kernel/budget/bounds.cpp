// Adds up the bounds of sets, items and lexemes.
#include "budget/bounds.h"

#include <algorithm>
#include <tuple>

#include "base/errors.h"
#include "expressions/derivatives.h"

namespace constrain {

namespace {

constexpr uint64_t short_rest = 2'000;    // bytes; a longer rest is worth a closer look
constexpr uint64_t short_way = 256;       // bytes of a way that is spelled as a whole
constexpr size_t max_explored = 300;      // derivatives of one terminal
constexpr unsigned max_rule_depth = 200;  // nested rules whose fresh texts are counted

const Bound unknown_bound{Bound::unknown, 0};

}  // namespace

// Upper bound on the rest of the current lexeme, from any of its states; in bytes, or in tokens with a closer look. A
// lexeme with a limit can be completed in as many tokens.
Bound Bounds::of_lexeme(TermId terminal, Unit unit) {
  std::vector<std::optional<Bound>>& bounds = lexeme_bounds_[static_cast<size_t>(unit)];
  if (bounds.size() <= index(terminal)) bounds.resize(index(terminal) + 1);
  if (!bounds[index(terminal)] && grammar_.token_limit(terminal) != unbounded) bounds[index(terminal)] = {grammar_.token_limit(terminal), 0};
  if (!bounds[index(terminal)]) {
    const bool own = index(terminal) < grammar_.terminals.size();  // otherwise a terminal without texts already read
    const TermId base = own ? terminal : lexer_.base_terminal(terminal);
    const ExprId e = lexer_.expression(terminal);
    const bool by_base = !own && unit == Unit::bytes && surely_endless(base);
    Bound bound{by_base ? Bound::unknown : lengths_.of(e).rest, 0};
    if (!own) {
      if (bound.length >= Bound::unknown) bound = {of_lexeme(base, unit).length, 1};
    } else if (bound.length >= Bound::unknown || (bound.length > short_rest && unit == Unit::tokens)) {
      bound.length = std::min(bound.length, explore(lexer_.expressions(), e, max_explored).rest);
    }
    if (bounds.size() <= index(terminal)) bounds.resize(index(terminal) + 1);
    bounds[index(terminal)] = bound;
  }
  return *bounds[index(terminal)];
}

// Whether a terminal of the grammar surely has infinitely many texts; false if deciding takes long.
bool Bounds::surely_endless(TermId terminal) {
  if (surely_endless_.empty()) surely_endless_.resize(grammar_.terminals.size());
  std::optional<bool>& known = surely_endless_[index(terminal)];
  if (!known) {
    try {
      known = has_endless_matches(lexer_.expressions(), grammar_.terminals[index(terminal)], max_explored).value_or(false);
    } catch (const LimitError&) {
      known = false;
    }
  }
  return *known;
}

// Whether some edge of a rule reads fresh texts that may run out.
bool Bounds::excludes_few(uint32_t rule) {
  paths_.solve();  // also sorts states by rule
  if (excludes_few_.empty()) excludes_few_.resize(grammar_.rules.size());
  if (!excludes_few_[rule]) {
    bool few = false;
    for (uint32_t q : paths_.states_of(rule)) {
      for (const Edge& edge : grammar_.edges_of(StateId{q})) {
        few |= edge.excluding >= 0 && !surely_endless(TermId{edge.symbol});
      }
    }
    excludes_few_[rule] = few;
  }
  return *excludes_few_[rule];
}

// Places that differ only in the texts read share their bounds, where fresh texts never run out: the texts matter only
// for the length of fresh ones.
MemoryId Bounds::memory_of(const Item& item) {
  const uint32_t rule = grammar_.state(item.state).rule;
  if (rule != last_memory_.rule || item.memory != last_memory_.memory) {
    last_memory_ = {rule, item.memory, excludes_few(rule) ? item.memory : slots_.without_texts(rule, item.memory)};
  }
  return last_memory_.without;
}

// Whether the cheapest way from a state, without regard to conditions, has no conditions and reads no fresh text. Then
// it costs the rest cost whatever is remembered, without a search.
bool Bounds::is_plain(StateId start, unsigned depth) {
  if (plain_.empty()) plain_.resize(grammar_.states.size());
  std::vector<StateId> chain;
  bool plain = paths_.rest_cost(start) != RulePath::endless;
  for (StateId q = start; plain && !grammar_.state(q).accepting;) {
    if (plain_[index(q)]) {
      plain = *plain_[index(q)];
      break;
    }
    chain.push_back(q);
    const std::span<const Edge> edges = grammar_.edges_of(q);
    const auto edge = std::find_if(edges.begin(), edges.end(), [&](const Edge& each) {
      const uint64_t rest = paths_.rest_cost(each.target), own = rest == RulePath::endless ? RulePath::endless : paths_.edge_cost(each);
      return own != RulePath::endless && own + rest == paths_.rest_cost(q) && each.conditions_count == 0 && each.excluding < 0 && each.distinct < 0;
    });
    plain = edge != edges.end() && (edge->kind != EdgeKind::rule || (depth < max_rule_depth && is_plain(grammar_.rules[edge->symbol].start, depth + 1)));
    if (plain) q = edge->target;
  }
  for (StateId q : chain) plain_[index(q)] = plain;
  return plain;
}

// The way of an item, to the end of its rule.
Bounds::WayOut Bounds::own_way(const Item& item) {
  paths_.solve();
  if (is_plain(item.state)) return {paths_.rest_cost(item.state), 0};
  const uint32_t path = paths_.id_of(item.state, memory_of(item));
  return {paths_[path].cost, grammar_.may_need_fresh ? way_of_path(path, Unit::bytes).fresh : 0};
}

// The ways of all items that wait behind an origin, one after another, to the end of the text.
template <typename W, typename F>
W Bounds::along_waiting(OriginId origin, FlatMap<uint32_t, W>& known, F&& way_of) {
  std::vector<std::pair<OriginId, W>> chain;  // with the way to the next one
  W way{0, 0};
  while (!parser_.ends_text(origin)) {
    if (const W* found = known.find(index(origin))) {
      way = *found;
      break;
    }
    const std::vector<Item> waiting = parser_.copy_of_waiting(origin);
    const Item item = waiting.size() == 1 ? waiting[0] : *completions_.next_waiting(waiting);
    chain.emplace_back(origin, way_of(item));
    origin = item.origin;
  }
  for (size_t i = chain.size(); i-- > 0;) {
    way.add(chain[i].second);
    known.insert(index(chain[i].first), way);
  }
  return way;
}

// A bound no greater than the length of the completion, except for the length of fresh texts.
Bounds::WayOut Bounds::way_out(OriginId origin) {
  return along_waiting(origin, ways_out_, [this](const Item& item) {
    WayOut way = own_way(item);
    way.add({1, 0});
    return way;
  });
}

// The shortest match of `e`, spelled by itself.
uint32_t Bounds::tokens_of_shortest(ExprId e) {
  if (const uint32_t* found = shortest_tokens_.find(index(e))) return *found;
  const uint32_t count = vocabulary_.spell(lexer_.shortest_texts().of(e)).counts[0];
  const uint32_t tokens = count == Vocabulary::no_spelling ? many_tokens : std::min(count, many_tokens);
  shortest_tokens_.insert(index(e), tokens);
  return tokens;
}

// Fresh texts on a way (`many` if they are too many to count); and a sufficient number of tokens, if the unit is
// tokens.
Bounds::Way Bounds::way_of_path(uint32_t path, Unit unit, unsigned depth) {
  std::vector<std::optional<Way>>& ways = path_ways_[static_cast<size_t>(unit)];
  std::vector<uint32_t> chain;
  Way way{0, 0};
  for (uint32_t at = path; at != RulePath::none; at = paths_[at].next) {
    if (at < ways.size() && ways[at]) {
      way = *ways[at];
      break;
    }
    chain.push_back(at);
  }
  for (size_t i = chain.size(); i-- > 0;) {
    const RulePath::Segment segment = paths_[chain[i]].segment;
    if (paths_[chain[i]].reads) {
      way.add({segment.fresh, segment.is_rule || unit == Unit::bytes ? 0 : tokens_of_shortest(ExprId{segment.id})});
      if (segment.is_rule) {
        const uint32_t called = paths_.id_of(grammar_.rules[segment.id].start, slots_.fresh(segment.id));
        way.add(depth == max_rule_depth ? Way{many, many_tokens} : way_of_path(called, unit, depth + 1));
      }
    }
    if (ways.size() < paths_.size()) ways.resize(paths_.size());
    ways[chain[i]] = way;
  }
  return way;
}

Bounds::Way Bounds::way_of_origin(OriginId origin) {
  return along_waiting(origin, origin_ways_, [this](const Item& item) { return way_of_path(paths_.id_of(item.state, item.memory), Unit::tokens); });
}

// The way of an item, spelled as a whole.
uint32_t Bounds::spelled_tokens(const Item& item) {
  const Hash key = mix(mix(seeded(0x7370656C), paired(item.state, item.memory)), index(item.origin));
  if (const uint32_t* found = spelled_tokens_.find(key)) return *found;
  std::string text;
  completions_.complete_item(item, text);
  const uint32_t count = vocabulary_.spell(text).counts[0];
  const uint32_t tokens = count == Vocabulary::no_spelling ? many_tokens : std::min(count, many_tokens);
  spelled_tokens_.insert(key, tokens);
  return tokens;
}

// Where the longest match may take bytes of the next lexeme, each lexeme on the way counts as a longer one.
Bound Bounds::of_item(const Item& item, Unit unit) {
  const WayOut own = own_way(item);
  if (item.origin != last_way_out_.first) last_way_out_ = {item.origin, way_out(item.origin)};
  const WayOut after = last_way_out_.second;
  if (own.cost == RulePath::endless || after.cost == RulePath::endless) return {Bound::unknown, 0};
  const uint64_t cost = own.cost + after.cost;
  Bound bound{cost >> 16, std::min(many, own.fresh + after.fresh)};
  if (unit == Unit::tokens && counts_tokens() && bound.fresh == 0) {
    Way way = way_of_path(paths_.id_of(item.state, item.memory), Unit::tokens);
    way.add(way_of_origin(item.origin));
    if (way.fresh == 0) bound.length = std::min<uint64_t>(bound.length, way.tokens);
    if (way.fresh == 0 && way.tokens > 1 && cost >> 16 <= short_way) bound.length = std::min<uint64_t>(bound.length, spelled_tokens(item));
  }
  if (!grammar_.self_delimiting) bound.length = std::min(Bound::unknown, bound.length + ((cost & 0xFFFF) + 1) * longest_lexeme());
  return bound;
}

// The additional length of a lexeme that the longest match ends in the right place: it begins with another byte, or an
// ignored lexeme comes first. By the proof of lexing, one of these ends every lexeme.
uint64_t Bounds::longest_lexeme() {
  if (longest_lexeme_ != 0) return longest_lexeme_;
  uint64_t longest = 0, ignored = 0;
  for (uint32_t t = 0; t < grammar_.terminals.size(); ++t) longest = std::max(longest, of_lexeme(TermId{t}, Unit::tokens).length);
  for (uint32_t t : grammar_.ignored) ignored = std::max(ignored, of_lexeme(TermId{t}, Unit::tokens).length);
  return longest_lexeme_ = std::min(Bound::unknown, longest + ignored + 1);
}

Bound Bounds::find_set(SetId set, Unit unit) {
  const Parser::Closure closure = parser_.closure(set);
  Bound bound;
  for (const Parser::Step& step : parser_.steps(closure)) {
    Bound after = of_item(step.next, unit);
    after.add(of_lexeme(step.terminal, unit));
    bound.widen(after);
  }
  for (uint32_t t : grammar_.ignored) {
    for (const Item& item : parser_.copy_of_items(set)) {
      Bound after = of_item(item, unit);
      after.add(of_lexeme(TermId{t}, unit));
      bound.widen(after);
    }
  }
  bound.length = std::min(bound.length, Bound::unknown);
  if (closure.has_earlier || closure.uncertain) bound.fresh = std::min(many, bound.fresh + 1);  // the current group
  return bound;
}

const Bound& Bounds::of_set(SetId set, Unit unit, BudgetQuestions& questions) {
  std::vector<std::optional<Bound>>& bounds = set_bounds_[static_cast<size_t>(unit)];
  if (bounds.size() <= index(set)) bounds.resize(index(set) + 1);
  if (questions.limited()) {
    const Hash key = mix(seeded(0x736574), (uint64_t{index(set)} << 1) | static_cast<uint64_t>(unit));
    if (!questions.may_ask(key, 1)) return unknown_bound;
  }
  if (!bounds[index(set)]) {
    Bound bound{Bound::unknown, 0};
    try {
      bound = find_set(set, unit);
    } catch (const LimitError&) {  // then a closer look is taken everywhere
    }
    if (bounds.size() <= index(set)) bounds.resize(index(set) + 1);
    bounds[index(set)] = bound;
  }
  return *bounds[index(set)];
}

// An upper bound on how much longer a fresh text is than a text merely longer than all texts read.
uint64_t Bounds::fresh_slack() {
  if (fresh_slack_ != 0) return fresh_slack_;
  std::vector<bool> counts(grammar_.terminals.size(), grammar_.reads_groups);  // groups may end in any of them
  for (const Edge& edge : grammar_.edges) {
    if (edge.excluding >= 0) counts[edge.symbol] = true;
  }
  uint64_t slack = 1;
  for (size_t t = 0; t < counts.size(); ++t) {
    if (!counts[t]) continue;
    const LengthBounds lengths = lengths_.of(grammar_.terminals[t]);
    uint64_t longer = std::min(lengths.longest, lengths.settled + lengths.circle);
    if (longer >= Bound::unknown) longer = 2 * explore(lexer_.expressions(), grammar_.terminals[t], max_explored).states;
    slack = grammar_.reads_groups ? slack + longer : std::max(slack, longer);
  }
  return fresh_slack_ = std::min(slack, Bound::unknown);
}

void Bounds::prepare() {
  paths_.solve();
  for (uint32_t q = 0; q < grammar_.states.size(); ++q) is_plain(StateId{q});
  if (grammar_.may_need_fresh) fresh_slack();
}

// A token has at least one byte. A text longer than all texts read is fresh, so a fresh text is charged with the bytes
// of the longest text read, one more token, and the slack.
uint64_t Bounds::tokens_of(const Bound& bound, size_t read) {
  if (bound.fresh == 0) return bound.length;
  if (bound.fresh >= many) return Bound::unknown;
  const uint64_t each = read + vocabulary_.longest_token() + bound.fresh * fresh_slack();
  return std::min(Bound::unknown, bound.length + bound.fresh * each);
}

// The sets of a mask that stands in for others have fewer texts to differ from. Ways count every edge that excludes
// texts as fresh, whatever is remembered. So the bounds differ by one fresh text at most: the lexeme right after a set.
Bound Bounds::of_mask(const Mask& mask, const Place& place, Unit unit) {
  std::optional<Bound>& known = mask.bounds[static_cast<size_t>(unit)];
  BudgetQuestions questions;
  if (!known) {
    Bound all;
    for (SetId set : mask.sets) all.widen(of_set(set, unit, questions));
    known = all;  // only now: the time may be over before
  }
  Bound bound = *known;
  if (mask.stands_in) bound.fresh = std::min(many, bound.fresh + 1);
  bound.widen(of_set(place.set, unit, questions));
  return bound;
}

Bound Bounds::of_place(const Place& place, Unit unit) {
  Bound best{Bound::unknown, 0};
  bool met = false;
  const Parser::Closure closure = parser_.closure(place.set);
  for (const Lexer::Entry& entry : lexer_.copy_of_entries(place.lexer)) {
    if (unit == Unit::tokens && grammar_.is_ignored(entry.terminal)) return {Bound::unknown, 0};
    const uint64_t least = lengths_.of(entry.expression).least;
    for (const Parser::Step& step : parser_.copy_of_steps(closure)) {
      if (step.terminal != entry.terminal) continue;
      Bound bound = of_item(step.next, unit);
      bound.add({least, 0});
      if (!met) {
        best = bound;
      } else if (unit == Unit::tokens) {
        best.widen(bound);
      } else if (std::tie(bound.fresh, bound.length) < std::tie(best.fresh, best.length)) {
        best = bound;
      }
      met = true;
    }
  }
  if (closure.has_earlier || closure.uncertain) best.fresh = std::min(many, best.fresh + 1);  // the current group
  return best;
}

Bound Bounds::inside(const Place& place, Unit unit, BudgetQuestions& questions) {
  Bound bound;
  const std::vector<Lexer::Entry> entries = lexer_.copy_of_entries(place.lexer);
  const std::vector<Parser::Step> steps = parser_.copy_of_steps(parser_.closure(place.set));
  for (const Lexer::Entry& entry : entries) {
    if (grammar_.is_ignored(entry.terminal)) return of_set(place.set, unit, questions);
    for (const Parser::Step& step : steps) {
      if (step.terminal != entry.terminal) continue;
      Bound after = of_item(step.next, unit);
      after.add(of_lexeme(step.terminal, unit));
      bound.widen(after);
    }
  }
  return bound;
}

}  // namespace constrain
