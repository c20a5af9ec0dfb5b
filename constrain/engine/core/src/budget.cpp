// The token budget: which tokens leave enough of it to finish.
//
// What it takes to finish is limited from above twice. `tokens_bound` adds up what is known of a set: cheap enough to be
// asked for every mask, and while even that fits, masks are what they are without a budget. Where it does not,
// `tokens_needed` counts the tokens of a real way to finish for everything that a token may lead to.
#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "automaton.h"
#include "errors.h"

namespace constrain {

namespace {

constexpr uint64_t short_rest = 2'000;      // bytes; what is more may be less when looked at closely
constexpr size_t max_explored = 300;        // derivatives of one terminal
constexpr unsigned max_rule_depth = 200;    // of rules within rules whose fresh texts are counted
constexpr size_t max_judged = 4'000;        // tokens of one mask that are judged one by one
constexpr size_t search_questions = 60;     // as many as a search for a shortest match counts
constexpr size_t max_search_near_wall = 2'000;  // places, of one search for a way to finish

const Bound unknown_bound{Bound::unknown, 0};

// What is asked on the way to an answer does not count.
class Unasked {
 public:
  explicit Unasked(size_t& left) : left_(left), before_(std::exchange(left, Automaton::endless_questions)) {}
  ~Unasked() { left_ = before_; }
  Unasked(const Unasked&) = delete;
  Unasked& operator=(const Unasked&) = delete;

 private:
  size_t& left_;
  size_t before_;
};

uint32_t first_token(size_t word, uint32_t bits) { return static_cast<uint32_t>(word * 32) + static_cast<uint32_t>(std::countr_zero(bits)); }

}  // namespace

// What a lexeme under way may still take, wherever in it a text is; in bytes, and looked at more closely for tokens.
Bound Automaton::lexeme_bound(TermId terminal, Unit unit) {
  std::vector<std::optional<Bound>>& bounds = lexeme_bounds_[static_cast<size_t>(unit)];
  if (bounds.size() <= index(terminal)) bounds.resize(index(terminal) + 1);
  if (!bounds[index(terminal)]) {
    const bool own = index(terminal) < grammar_.terminals.size();  // or one of these without what has been read
    const TermId base = own ? terminal : lexer_.base_terminal(terminal);
    const ExprId e = lexer_.expression(terminal);
    const bool by_base = !own && unit == Unit::bytes && surely_endless(base);
    Bound bound{by_base ? Bound::unknown : lexer_.expressions().lengths(e).rest, 0};
    if (!own) {
      if (bound.length >= Bound::unknown) bound = {lexeme_bound(base, unit).length, 1};
    } else if (bound.length >= Bound::unknown || (bound.length > short_rest && unit == Unit::tokens)) {
      bound.length = std::min(bound.length, lexer_.expressions().explore(e, max_explored).rest);
    }
    if (bounds.size() <= index(terminal)) bounds.resize(index(terminal) + 1);
    bounds[index(terminal)] = bound;
  }
  return *bounds[index(terminal)];
}

// Whether a terminal of the grammar has endlessly many texts; false if that takes long to tell.
bool Automaton::surely_endless(TermId terminal) {
  if (surely_endless_.empty()) surely_endless_.resize(grammar_.terminals.size());
  std::optional<bool>& known = surely_endless_[index(terminal)];
  if (!known) {
    try {
      known = lexer_.expressions().has_endless_matches(grammar_.terminals[index(terminal)], max_explored).value_or(false);
    } catch (const LimitError&) {
      known = false;
    }
  }
  return *known;
}

// Whether some edge of a rule reads texts that were not read before of which there may be no more.
bool Automaton::excludes_few(uint32_t rule) {
  solve_rules();  // sorts states by rule
  if (excludes_few_.empty()) excludes_few_.resize(grammar_.rules.size());
  if (!excludes_few_[rule]) {
    bool few = false;
    for (uint32_t q : states_of_[rule]) {
      for (const Edge& edge : grammar_.edges_of(StateId{q})) {
        few |= edge.excluding >= 0 && !surely_endless(TermId{edge.symbol});
      }
    }
    excludes_few_[rule] = few;
  }
  return *excludes_few_[rule];
}

// Which texts have been read matters only for how long fresh ones are, where there are always more: so places that only
// differ in them share their bounds.
MemoryId Automaton::bound_memory(const Item& item) {
  const uint32_t rule = grammar_.state(item.state).rule;
  if (rule != last_bound_memory_.rule || item.memory != last_bound_memory_.memory) {
    last_bound_memory_ = {rule, item.memory, excludes_few(rule) ? item.memory : parser_.without_texts(rule, item.memory)};
  }
  return last_bound_memory_.without;
}

// Whether the way from a state that is cheapest if conditions are ignored has none, and reads nothing that must be fresh:
// then it costs `rest_costs_` whatever is remembered, and no way need be looked for.
bool Automaton::is_plain(StateId start, unsigned depth) {
  if (plain_.empty()) plain_.resize(grammar_.states.size());
  std::vector<StateId> chain;
  bool plain = rest_costs_[index(start)] != endless;
  for (StateId q = start; plain && !grammar_.state(q).accepting;) {
    if (plain_[index(q)]) {
      plain = *plain_[index(q)];
      break;
    }
    chain.push_back(q);
    const std::span<const Edge> edges = grammar_.edges_of(q);
    const auto edge = std::find_if(edges.begin(), edges.end(), [&](const Edge& each) {
      const uint64_t rest = rest_costs_[index(each.target)], own = rest == endless ? endless : edge_cost(each);
      return own != endless && own + rest == rest_costs_[index(q)] && each.conditions_count == 0 && each.excluding < 0 && each.distinct < 0;
    });
    plain = edge != edges.end() && (edge->kind != EdgeKind::rule || (depth < max_rule_depth && is_plain(grammar_.rules[edge->symbol].start, depth + 1)));
    if (plain) q = edge->target;
  }
  for (StateId q : chain) plain_[index(q)] = plain;
  return plain;
}

// Of an item, to the end of its rule.
Automaton::WayOut Automaton::own_way(const Item& item) {
  solve_rules();
  if (is_plain(item.state)) return {rest_costs_[index(item.state)], 0};
  const uint32_t path = own_path_id(item.state, bound_memory(item));
  return {paths_[path].cost, grammar_.may_need_fresh ? way_of_path(path, Unit::bytes).fresh : 0};
}

// What is on the ways of all that waits behind an origin, one after the other, to the end of the text.
template <typename W, typename F>
W Automaton::along_waiting(OriginId origin, FlatMap<uint32_t, W>& known, F&& way_of) {
  std::vector<std::pair<OriginId, W>> chain;  // and the way to the next one
  W way{0, 0};
  while (!parser_.ends_text(origin)) {
    if (const W* found = known.find(index(origin))) {
      way = *found;
      break;
    }
    const std::vector<Item> waiting = parser_.copy_of_waiting(origin);
    const Item item = waiting.size() == 1 ? waiting[0] : *next_waiting(waiting);
    chain.emplace_back(origin, way_of(item));
    origin = item.origin;
  }
  for (size_t i = chain.size(); i-- > 0;) {
    way.add(chain[i].second);
    known.insert(index(chain[i].first), way);
  }
  return way;
}

// One that is no longer than the completion is, but for the length of fresh texts.
Automaton::WayOut Automaton::way_out(OriginId origin) {
  return along_waiting(origin, ways_out_, [this](const Item& item) {
    WayOut way = own_way(item);
    way.add({1, 0});
    return way;
  });
}

// Of the shortest match of `e`, written by itself.
uint32_t Automaton::tokens_of_shortest(ExprId e) {
  if (const uint32_t* found = shortest_tokens_.find(index(e))) return *found;
  const uint32_t count = vocabulary_.spell(lexer_.expressions().shortest(e)).counts[0];
  const uint32_t tokens = count == Vocabulary::no_spelling ? many_tokens : std::min(count, many_tokens);
  shortest_tokens_.insert(index(e), tokens);
  return tokens;
}

// Texts on a way that must not have been read before, `many` if they are too many to tell; and tokens that are enough, if
// that is the unit.
Automaton::Way Automaton::way_of_path(uint32_t path, Unit unit, unsigned depth) {
  std::vector<std::optional<Way>>& ways = path_ways_[static_cast<size_t>(unit)];
  std::vector<uint32_t> chain;
  Way way{0, 0};
  for (uint32_t at = path; at != no_path; at = paths_[at].next) {
    if (at < ways.size() && ways[at]) {
      way = *ways[at];
      break;
    }
    chain.push_back(at);
  }
  for (size_t i = chain.size(); i-- > 0;) {
    const Segment segment = paths_[chain[i]].segment;
    if (paths_[chain[i]].reads) {
      way.add({segment.fresh, segment.is_rule || unit == Unit::bytes ? 0 : tokens_of_shortest(ExprId{segment.id})});
      if (segment.is_rule) {
        const uint32_t called = own_path_id(grammar_.rules[segment.id].start, parser_.fresh_memory(segment.id));
        way.add(depth == max_rule_depth ? Way{many, many_tokens} : way_of_path(called, unit, depth + 1));
      }
    }
    if (ways.size() < paths_.size()) ways.resize(paths_.size());
    ways[chain[i]] = way;
  }
  return way;
}

Automaton::Way Automaton::way_of_origin(OriginId origin) {
  return along_waiting(origin, origin_ways_, [this](const Item& item) { return way_of_path(own_path_id(item.state, item.memory), Unit::tokens); });
}

// Where the longest match may swallow what would follow, a lexeme begins with another byte, or something ignored comes
// first: the proof of lexing says that one of them ends whatever is read.
Bound Automaton::item_bound(const Item& item, Unit unit) {
  const WayOut own = own_way(item);
  if (item.origin != last_way_out_.first) last_way_out_ = {item.origin, way_out(item.origin)};
  const WayOut after = last_way_out_.second;
  if (own.cost == endless || after.cost == endless) return {Bound::unknown, 0};
  const uint64_t cost = own.cost + after.cost;
  Bound bound{cost >> 16, std::min(many, own.fresh + after.fresh)};
  if (unit == Unit::tokens && counts_tokens() && bound.fresh == 0) {
    Way way = way_of_path(own_path_id(item.state, item.memory), Unit::tokens);
    way.add(way_of_origin(item.origin));
    if (way.fresh == 0) bound.length = std::min<uint64_t>(bound.length, way.tokens);
  }
  if (!grammar_.self_delimiting) {
    if (swallow_slack_ == 0) {
      uint64_t longest = 0, ignored = 0;
      for (uint32_t t = 0; t < grammar_.terminals.size(); ++t) longest = std::max(longest, lexeme_bound(TermId{t}, Unit::tokens).length);
      for (uint32_t t : grammar_.ignored) ignored = std::max(ignored, lexeme_bound(TermId{t}, Unit::tokens).length);
      swallow_slack_ = std::min(Bound::unknown, longest + ignored + 1);
    }
    bound.length = std::min(Bound::unknown, bound.length + ((cost & 0xFFFF) + 1) * swallow_slack_);
  }
  return bound;
}

Bound Automaton::find_set_bound(SetId set, Unit unit) {
  const Parser::Closure closure = parser_.closure(set);
  Bound bound;
  for (const Parser::Step& step : parser_.steps(closure)) {
    Bound after = item_bound(step.next, unit);
    after.add(lexeme_bound(step.terminal, unit));
    bound.widen(after);
  }
  for (uint32_t t : grammar_.ignored) {
    for (const Item& item : parser_.copy_of_items(set)) {
      Bound after = item_bound(item, unit);
      after.add(lexeme_bound(TermId{t}, unit));
      bound.widen(after);
    }
  }
  bound.length = std::min(bound.length, Bound::unknown);
  if (closure.has_rivals || closure.uncertain) bound.fresh = std::min(many, bound.fresh + 1);  // what is under way
  return bound;
}

// From wherever in the lexeme after `set`.
const Bound& Automaton::set_bound(SetId set, Unit unit) {
  std::vector<std::optional<Bound>>& bounds = set_bounds_[static_cast<size_t>(unit)];
  if (bounds.size() <= index(set)) bounds.resize(index(set) + 1);
  if (!may_ask(mix(seeded(0x736574), (uint64_t{index(set)} << 1) | static_cast<uint64_t>(unit)), 1)) return unknown_bound;
  if (!bounds[index(set)]) {
    Bound bound{Bound::unknown, 0};
    const Unasked unasked(questions_left_);
    try {
      bound = find_set_bound(set, unit);
    } catch (const LimitError&) {  // then everything is looked at closely
    }
    if (bounds.size() <= index(set)) bounds.resize(index(set) + 1);
    bounds[index(set)] = bound;
  }
  return *bounds[index(set)];
}

// How much longer a text that must be fresh is, at most, than one that is only longer than all that has been read.
uint64_t Automaton::fresh_slack() {
  if (fresh_slack_ != 0) return fresh_slack_;
  std::vector<bool> counts(grammar_.terminals.size(), grammar_.reads_groups);  // groups may end in any of them
  for (const Edge& edge : grammar_.edges) {
    if (edge.excluding >= 0) counts[edge.symbol] = true;
  }
  uint64_t slack = 1;
  for (size_t t = 0; t < counts.size(); ++t) {
    if (!counts[t]) continue;
    const ExpressionStore::Lengths lengths = lexer_.expressions().lengths(grammar_.terminals[t]);
    uint64_t longer = std::min(lengths.longest, lengths.settled + lengths.circle);
    if (longer >= Bound::unknown) longer = 2 * lexer_.expressions().explore(grammar_.terminals[t], max_explored).states;
    slack = grammar_.reads_groups ? slack + longer : std::max(slack, longer);
  }
  return fresh_slack_ = std::min(slack, Bound::unknown);
}

void Automaton::prepare_budget() {
  solve_rules();
  for (uint32_t q = 0; q < grammar_.states.size(); ++q) is_plain(StateId{q});
  if (grammar_.may_need_fresh) fresh_slack();
}

// A token has at least one byte. What must be fresh is, if it is longer than all that has been read; else what it may be
// is not longer than that either.
uint64_t Automaton::tokens_of(const Bound& bound, size_t read) {
  if (bound.fresh == 0) return bound.length;
  if (bound.fresh >= many) return Bound::unknown;
  const uint64_t each = read + vocabulary_.longest_token() + bound.fresh * fresh_slack();
  return std::min(Bound::unknown, bound.length + bound.fresh * each);
}

// Bytes are asked first.
template <typename F>
bool Automaton::within(size_t read, uint64_t tokens, F&& bound_in) {
  return tokens_of(bound_in(Unit::bytes), read) <= tokens || tokens_of(bound_in(Unit::tokens), read) <= tokens;
}

bool Automaton::surely_fits(const Place& place, size_t read, uint64_t tokens) {
  return within(read, tokens, [&](Unit unit) { return set_bound(place.set, unit); });
}

Bound Automaton::mask_bound(const Mask& mask, const Place& place, Unit unit) {
  std::optional<Bound>& known = mask.bounds[static_cast<size_t>(unit)];
  if (!known) {
    Bound bound = set_bound(place.set, unit);
    for (SetId set : mask.sets) bound.widen(set_bound(set, unit));
    known = bound;
  }
  return *known;
}

bool Automaton::any_surely_fits(const Mask& mask, const Place& place, size_t read, uint64_t tokens) {
  return within(read, tokens, [&](Unit unit) { return mask_bound(mask, place, unit); });
}

// Once enough was asked about a mask, what has not been asked is left out of it. What is known from other masks counts,
// too: so a mask does not depend on what was asked for before.
bool Automaton::may_ask(Hash key, size_t questions) {
  if (questions_left_ == endless_questions) return true;
  if (asked_.find(key)) return true;
  if (questions_left_ == 0) {
    limits_met_.add(Limit::budget_questions);
    return false;
  }
  questions_left_ -= std::min(questions_left_, questions);
  asked_.insert(key, 1);
  return true;
}

// From where a lexeme stands: the way with fewest fresh texts and bytes; or tokens of any way, for that may not be the one
// with fewest tokens.
Bound Automaton::place_bound(const Place& place, Unit unit) {
  Bound best{Bound::unknown, 0};
  bool met = false;
  const Parser::Closure closure = parser_.closure(place.set);
  for (const Lexer::Entry& entry : lexer_.copy_of_entries(place.lexer)) {
    if (unit == Unit::tokens && grammar_.is_ignored(entry.terminal)) return {Bound::unknown, 0};
    const uint64_t least = lexer_.expressions().lengths(entry.expression).least;
    for (const Parser::Step& step : parser_.copy_of_steps(closure)) {
      if (step.terminal != entry.terminal) continue;
      Bound bound = item_bound(step.next, unit);
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
  if (closure.has_rivals || closure.uncertain) best.fresh = std::min(many, best.fresh + 1);  // the group under way
  return best;
}

// Places with equal keys have the same way to finish. Where rules tell it, what is left of the lexeme is its shortest end.
Hash Automaton::completion_key(const Place& place, bool by_rules) {
  Hash key = mix(mix(seeded(0x6E656564), (uint64_t{index(place.set)} << 32) | index(place.text)), (uint64_t{index(place.track)} << 1) | place.fresh);
  if (!by_rules || place.fresh) return mix(key, index(place.lexer));
  for (const Lexer::Entry& entry : lexer_.copy_of_entries(place.lexer)) {
    if (lexer_.expressions().shortest_takes_search(entry.expression)) {
      key = mix(mix(key, ~uint64_t{index(entry.terminal)}), index(entry.expression));
      continue;
    }
    const std::string rest = lexer_.expressions().shortest(entry.expression);
    key = mix(key, (uint64_t{index(entry.terminal)} << 32) | rest.size());
    for (char c : rest) key = mix(key, static_cast<uint8_t>(c));
  }
  return key;
}

// Of a place whose text is not known, if that does not matter (`text_matters`).
uint64_t Automaton::tokens_needed(const Place& place) {
  const bool by_rules = counts_by_rules(place);
  try {
    const Hash key = completion_key(place, by_rules);
    size_t questions = 1;
    for (const Lexer::Entry& entry : lexer_.copy_of_entries(place.lexer)) {
      if (lexer_.expressions().shortest_takes_search(entry.expression)) questions += search_questions;
    }
    if (!may_ask(key, questions)) return never_fits;
    if (const uint64_t* found = tokens_needed_.find(key)) {
      if (const Limit* why = *found == never_fits ? unknown_needs_.find(key) : nullptr) limits_met_.add(*why);
      return *found;
    }
    const Unasked unasked(questions_left_);
    uint64_t needed = never_fits;
    try {
      const Vocabulary::Spelling spelling = vocabulary_.spell(by_rules ? completion_by_rules(place) : shortest_completion(place));
      if (spelling.counts[0] != Vocabulary::no_spelling) needed = spelling.counts[0];
    } catch (const LimitError& error) {  // no way is known
      limits_met_.add(error.limit);
      unknown_needs_.insert(key, error.limit);
    }
    tokens_needed_.insert(key, needed);
    return needed;
  } catch (const LimitError& error) {  // nor its key
    limits_met_.add(error.limit);
    return never_fits;
  }
}

std::string Automaton::counted_completion(const Place& place) {
  return counts_by_rules(place) ? completion_by_rules(place) : shortest_completion(place);
}

// Whether the way to finish depends on the text of the lexeme under way.
bool Automaton::text_matters(const Place& place) {
  if (parser_.closure(place.set).has_rivals) return true;
  const Bound& bound = set_bound(place.set, Unit::tokens);
  return bound.fresh != 0 || bound.length == Bound::unknown;
}

bool Automaton::fits(const Place& place, const Wall& wall) {
  if (wall.left == 0) return false;
  if (!wall.soft && (surely_fits(place, wall.read, wall.left - 1) ||
                     within(wall.read, wall.left - 1, [&](Unit unit) { return place_bound(place, unit); }))) {
    return true;
  }
  const uint64_t needed = tokens_needed(place);
  return needed < wall.left && !(wall.soft && needed > wall.needed);
}

// From wherever in the lexeme under way.
Bound Automaton::inside_bound(const Place& place, Unit unit) {
  Bound bound;
  const std::vector<Lexer::Entry> entries = lexer_.copy_of_entries(place.lexer);
  const std::vector<Parser::Step> steps = parser_.copy_of_steps(parser_.closure(place.set));
  for (const Lexer::Entry& entry : entries) {
    if (grammar_.is_ignored(entry.terminal)) return set_bound(place.set, unit);
    for (const Parser::Step& step : steps) {
      if (step.terminal != entry.terminal) continue;
      Bound after = item_bound(step.next, unit);
      after.add(lexeme_bound(step.terminal, unit));
      bound.widen(after);
    }
  }
  return bound;
}

// Of the tokens that stay in the lexeme, those that fit; all of them are `known`.
void Automaton::add_fitting_ends(const Place& place, const Wall& wall, Bitmask& known, std::span<uint32_t> words) {
  const std::shared_ptr<const LexemePart> part = this->part(place.lexer);
  if (part->base) std::copy(part->base->begin(), part->base->end(), known.begin());
  for (uint32_t token : part->remove) clear_bit(known, token);
  for (uint32_t token : part->add) set_bit(known, token);
  if (!place.fresh && within(wall.read, wall.left - 1, [&](Unit unit) { return inside_bound(place, unit); })) {
    std::copy(known.begin(), known.end(), words.begin());
    return;
  }
  for (const End& end : ends_of(place.lexer)) {
    const Place after{end.lexer, place.set, lexer_.remembers(end.lexer) ? TextId::unknown : TextId::empty, false, place.track};
    if (fits(after, wall)) end.tokens->add_to(words);
  }
}

Automaton::Narrowed Automaton::fill_within(const Mask& mask, const Place& place, const Wall& wall, std::span<uint32_t> words) {
  fill(mask, place, words);  // notes the limits that are met from here on
  const Bitmask all(words.begin(), words.end());
  std::fill(words.begin(), words.end(), 0u);
  searched_places_limit_ = max_search_near_wall;
  questions_left_ = grammar_.self_delimiting && !text_matters(place) ? limits_.budget_questions : limits_.budget_searches;
  try {
    if (wall.left > 0) add_fitting(mask, place, wall, all, words);
  } catch (const LimitError& error) {  // what was verified so far is allowed
    limits_met_.add(error.limit);
  }
  asked_ = {};
  searched_places_limit_ = max_searched_places;
  questions_left_ = endless_questions;
  if (wall.soft && !place.fresh) vocabulary_.words_begun().remove_from(words);
  if (wall.plan_token != Vocabulary::no_token) set_bit(words, wall.plan_token);
  for (uint32_t token : vocabulary_.eos()) {
    if (has_bit(all, token)) set_bit(words, token);
  }
  return {!std::equal(words.begin(), words.end(), all.begin()), limits_met_};
}

// Of `all` tokens that are allowed without a budget, those that fit.
void Automaton::add_fitting(const Mask& mask, const Place& place, const Wall& wall, const Bitmask& all, std::span<uint32_t> words) {
  Bitmask known(words.size());
  if (mask.tokens->limits.empty() && place.lexer != LexId::dead && !text_matters(place)) {
    add_fitting_ends(place, wall, known, words);
    for (size_t i = 0; i < words.size(); ++i) words[i] &= all[i];
  }
  size_t judged = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    for (uint32_t bits = all[i] & ~known[i]; bits != 0; bits &= bits - 1) {
      const uint32_t token = first_token(i, bits);
      if (vocabulary_.is_eos(token)) continue;
      if (++judged > max_judged || questions_left_ == 0) return limits_met_.add(Limit::budget_questions);
      allow_call();
      if (allows(place, token, &wall)) set_bit(words, token);
    }
  }
}

}  // namespace constrain
