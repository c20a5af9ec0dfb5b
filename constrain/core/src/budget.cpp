// The token budget: which tokens leave enough of it to finish.
//
// What it takes to finish is limited from above twice. `tokens_bound` adds up what is known of a set: cheap enough to be
// asked for every mask, and while even that fits, masks are what they are without a budget. Where it does not,
// `tokens_needed` counts the tokens of a real way to finish for everything that a token may lead to.
#include <algorithm>
#include <bit>

#include "automaton.h"
#include "errors.h"

namespace constrain {

namespace {

constexpr uint64_t short_rest = 2'000;      // bytes; what is more may be less when looked at closely
constexpr size_t max_explored = 300;        // derivatives of one terminal
constexpr unsigned max_rule_depth = 200;    // of rules within rules whose fresh texts are counted
constexpr size_t max_judged = 4'000;        // tokens of one mask that are judged one by one
constexpr size_t max_questions = 4'000;     // about sets and ways to finish, for one mask; where each may take a search:
constexpr size_t max_searches = 64;
constexpr size_t search_questions = 60;     // as many as a search for a shortest match counts
constexpr size_t max_search_near_wall = 2'000;  // places, of one search for a way to finish

void set_bit(std::span<uint32_t> words, uint32_t token) { words[token >> 5] |= 1u << (token & 31); }
void clear_bit(std::span<uint32_t> words, uint32_t token) { words[token >> 5] &= ~(1u << (token & 31)); }
bool has_bit(std::span<const uint32_t> words, uint32_t token) { return (words[token >> 5] >> (token & 31) & 1) != 0; }

const Bound unknown_bound{Bound::unknown, 0};

uint32_t first_token(size_t word, uint32_t bits) { return static_cast<uint32_t>(word * 32) + static_cast<uint32_t>(std::countr_zero(bits)); }

bool begins_word(std::string_view token) { return token[0] == ' ' || token[0] == '\n' || token[0] == '\t'; }

}  // namespace

// What a lexeme under way may still take, wherever in it a text is.
Bound Automaton::lexeme_bound(TermId terminal) {
  if (lexeme_bounds_.size() <= index(terminal)) lexeme_bounds_.resize(index(terminal) + 1);
  if (!lexeme_bounds_[index(terminal)]) {
    const ExprId e = lexer_.expression(terminal);
    Bound bound{lexer_.expressions().lengths(e).rest, 0};
    if (index(terminal) >= grammar_.terminals.size()) {  // some of the grammar's, without what has been read
      if (bound.bytes >= Bound::unknown) bound = {lexeme_bound(lexer_.base_terminal(terminal)).bytes, 1};
    } else if (bound.bytes > short_rest) {
      bound.bytes = std::min(bound.bytes, lexer_.expressions().explore(e, max_explored).rest);
    }
    lexeme_bounds_[index(terminal)] = bound;
  }
  return *lexeme_bounds_[index(terminal)];
}

// Texts on a way that must not have been read before; `many` if they are too many to tell.
uint32_t Automaton::fresh_of_path(uint32_t path, unsigned depth) {
  if (path_fresh_.size() < paths_.size()) path_fresh_.resize(paths_.size());
  std::vector<uint32_t> chain;
  uint32_t count = 0;
  for (uint32_t at = path; at != no_path; at = paths_[at].next) {
    if (path_fresh_[at] != 0) {
      count = path_fresh_[at] - 1;
      break;
    }
    chain.push_back(at);
  }
  for (size_t i = chain.size(); i-- > 0;) {
    const Segment segment = paths_[chain[i]].segment;
    if (paths_[chain[i]].reads) {
      count = std::min(many, count + segment.fresh);
      if (segment.is_rule) {
        const uint32_t called = own_path_id(grammar_.rules[segment.id].start, parser_.fresh_memory(segment.id));
        count = std::min(many, count + (depth == max_rule_depth ? many : fresh_of_path(called, depth + 1)));
      }
    }
    if (path_fresh_.size() < paths_.size()) path_fresh_.resize(paths_.size());
    path_fresh_[chain[i]] = count + 1;
  }
  return count;
}

uint32_t Automaton::fresh_of_origin(OriginId origin) {
  std::vector<std::pair<OriginId, uint32_t>> chain;  // and what the way to the next one takes
  uint32_t count = 0;
  while (!parser_.ends_text(origin)) {
    if (const uint32_t* found = origin_fresh_.find(index(origin))) {
      count = *found;
      break;
    }
    const std::vector<Item> waiting = parser_.copy_of_waiting(origin);
    const Item item = *next_waiting(waiting);
    chain.emplace_back(origin, fresh_of_path(own_path_id(item.state, item.memory), 0));
    origin = item.origin;
  }
  for (size_t i = chain.size(); i-- > 0;) {
    count = std::min(many, count + chain[i].second);
    origin_fresh_.insert(index(chain[i].first), count);
  }
  return count;
}

// Where the longest match may swallow what would follow, a lexeme begins with another byte, or something ignored comes
// first: the proof of lexing says that one of them ends whatever is read.
Bound Automaton::item_bound(const Item& item) {
  const uint32_t path = own_path_id(item.state, item.memory);
  const uint64_t after = origin_cost(item.origin), cost = paths_[path].cost + after;
  if (paths_[path].cost == endless || after == endless) return {Bound::unknown, 0};
  Bound bound{cost >> 16, 0};
  if (grammar_.may_need_fresh) bound.fresh = std::min(many, fresh_of_path(path, 0) + fresh_of_origin(item.origin));
  if (!grammar_.self_delimiting) {
    if (swallow_slack_ == 0) {
      uint64_t longest = 0, ignored = 0;
      for (uint32_t t = 0; t < grammar_.terminals.size(); ++t) longest = std::max(longest, lexeme_bound(TermId{t}).bytes);
      for (uint32_t t : grammar_.ignored) ignored = std::max(ignored, lexeme_bound(TermId{t}).bytes);
      swallow_slack_ = std::min(Bound::unknown, longest + ignored + 1);
    }
    bound.bytes = std::min(Bound::unknown, bound.bytes + ((cost & 0xFFFF) + 1) * swallow_slack_);
  }
  return bound;
}

Bound Automaton::find_set_bound(SetId set) {
  const Parser::Closure closure = parser_.closure(set);
  Bound bound;
  for (const Parser::Step& step : parser_.steps(closure)) {
    Bound after = item_bound(step.next);
    after.add(lexeme_bound(step.terminal));
    bound.widen(after);
  }
  for (uint32_t t : grammar_.ignored) {
    for (const Item& item : parser_.copy_of_items(set)) {
      Bound after = item_bound(item);
      after.add(lexeme_bound(TermId{t}));
      bound.widen(after);
    }
  }
  bound.bytes = std::min(bound.bytes, Bound::unknown);
  if (closure.has_rivals || closure.uncertain) bound.fresh = std::min(many, bound.fresh + 1);  // what is under way
  return bound;
}

// From wherever in the lexeme after `set`.
const Bound& Automaton::set_bound(SetId set) {
  if (set_bounds_.size() <= index(set)) set_bounds_.resize(index(set) + 1);
  if (!set_bounds_[index(set)]) {
    Bound bound{Bound::unknown, 0};
    if (!may_ask()) return unknown_bound;
    try {
      bound = find_set_bound(set);
    } catch (const LimitError&) {  // then everything is looked at closely
    }
    if (set_bounds_.size() <= index(set)) set_bounds_.resize(index(set) + 1);
    set_bounds_[index(set)] = bound;
  }
  return *set_bounds_[index(set)];
}

// A token has at least one byte. What must be fresh is, if it is longer than all that has been read; else what it may be
// is not longer than that either.
uint64_t Automaton::tokens_of(const Bound& bound, size_t read) {
  if (bound.fresh == 0) return bound.bytes;
  if (bound.fresh >= many) return Bound::unknown;
  if (fresh_slack_ == 0) {
    std::vector<bool> counts(grammar_.terminals.size(), grammar_.reads_groups);  // groups may end in any of them
    for (const Edge& edge : grammar_.edges) {
      if (edge.excluding >= 0) counts[edge.symbol] = true;
    }
    fresh_slack_ = 1;
    for (size_t t = 0; t < counts.size(); ++t) {
      if (!counts[t]) continue;
      const ExpressionStore::Lengths& lengths = lexer_.expressions().lengths(grammar_.terminals[t]);
      uint64_t longer = std::min(lengths.longest, lengths.settled + lengths.circle);
      if (longer >= Bound::unknown) longer = 2 * lexer_.expressions().explore(grammar_.terminals[t], max_explored).states;
      fresh_slack_ = grammar_.reads_groups ? fresh_slack_ + longer : std::max(fresh_slack_, longer);
    }
    fresh_slack_ = std::min(fresh_slack_, Bound::unknown);
  }
  const uint64_t each = read + vocabulary_.longest_token() + bound.fresh * fresh_slack_;
  return std::min(Bound::unknown, bound.bytes + bound.fresh * each);
}

uint64_t Automaton::tokens_bound(const Place& place, size_t read) { return tokens_of(set_bound(place.set), read); }

uint64_t Automaton::tokens_after_any(const Mask& mask, const Place& place, size_t read) {
  if (!mask.bound) {
    Bound bound = set_bound(place.set);
    for (SetId set : mask.sets) bound.widen(set_bound(set));
    mask.bound = bound;
  }
  return tokens_of(*mask.bound, read);
}

// Once a mask has taken long enough, what is not known yet is left out of it.
bool Automaton::may_ask() {
  if (questions_left_ == 0) return false;
  --questions_left_;
  return true;
}

// For one way on from where a lexeme stands.
Bound Automaton::place_bound(const Place& place) {
  Bound best{Bound::unknown, 0};
  for (const Lexer::Entry& entry : lexer_.copy_of_entries(place.lexer)) {
    const uint64_t least = lexer_.expressions().lengths(entry.expression).least;
    for (const Parser::Step& step : parser_.copy_of_steps(parser_.closure(place.set))) {
      if (step.terminal != entry.terminal) continue;
      Bound bound = item_bound(step.next);
      bound.bytes += least;
      if (bound.fresh < best.fresh || (bound.fresh == best.fresh && bound.bytes < best.bytes) || best.bytes == Bound::unknown) best = bound;
    }
  }
  return best;
}

// Of a place whose text is not known, if that does not matter (`text_matters`).
uint64_t Automaton::tokens_needed(const Place& place) {
  const Hash key = mix(mix(mix(seeded(0x6E656564), (uint64_t{index(place.lexer)} << 32) | index(place.set)), (uint64_t{index(place.text)} << 32) | index(place.track)),
                       place.fresh);
  if (const uint64_t* found = tokens_needed_.find(key)) return *found;
  if (!may_ask()) return never_fits;
  for (const Lexer::Entry& entry : lexer_.copy_of_entries(place.lexer)) {
    if (lexer_.expressions().shortest_takes_search(entry.expression)) questions_left_ -= std::min(questions_left_, search_questions);
  }
  uint64_t needed = never_fits;
  const bool by_rules = grammar_.self_delimiting && !text_matters(place);
  try {
    const Vocabulary::Spelling spelling = vocabulary_.spell(by_rules ? completion_by_rules(place) : shortest_completion(place));
    if (spelling.counts[0] != Vocabulary::no_spelling) needed = spelling.counts[0];
  } catch (const LimitError&) {  // no way is known
  }
  tokens_needed_.insert(key, needed);
  return needed;
}

// Whether the way to finish depends on the text of the lexeme under way.
bool Automaton::text_matters(const Place& place) {
  if (parser_.closure(place.set).has_rivals) return true;
  const Bound& bound = set_bound(place.set);
  return bound.fresh != 0 || bound.bytes == Bound::unknown;
}

bool Automaton::fits(const Place& place, const Wall& wall) {
  if (!wall.soft && (tokens_bound(place, wall.read) < wall.left || tokens_of(place_bound(place), wall.read) < wall.left)) return true;
  const uint64_t needed = tokens_needed(place);
  return needed < wall.left && !(wall.soft && needed > wall.needed);
}

// Tokens that stay in the lexeme, by the state they leave it in.
const std::vector<Automaton::End>& Automaton::ends_of(LexId lexer) {
  if (const uint32_t* found = end_ids_.find(index(lexer))) return ends_[*found];
  ends_.push_back(find_ends(lexer));
  end_ids_.insert(index(lexer), static_cast<uint32_t>(ends_.size() - 1));
  return ends_.back();
}

std::vector<Automaton::End> Automaton::find_ends(LexId lexer) {
  const Trie& trie = vocabulary_.trie();
  FlatMap<uint32_t, uint32_t> numbers;  // by row
  std::vector<End> ends;
  struct Frame {
    uint32_t end, row;
  };
  std::vector<Frame> path{{trie.end(Trie::root), row_of(lexer)}};
  for (uint32_t node = 1; node < trie.size();) {
    while (path.back().end <= node) path.pop_back();
    const uint32_t row = row_step(path.back().row, trie.byte(node));
    if (row == no_row) {
      node = trie.end(node);
      continue;
    }
    if (const std::span<const uint32_t> tokens = trie.tokens(node); !tokens.empty()) {
      const uint32_t* found = numbers.find(row);
      const uint32_t number = found ? *found : static_cast<uint32_t>(ends.size());
      if (!found) {
        numbers.insert(row, number);
        ends.push_back({rows_[row].lexer, {}, {}});
      }
      ends[number].tokens.insert(ends[number].tokens.end(), tokens.begin(), tokens.end());
    }
    if (trie.has_children(node)) path.push_back({trie.end(node), row});
    ++node;
  }
  for (End& end : ends) {
    if (end.tokens.size() > vocabulary_.words()) {
      end.mask.assign(vocabulary_.words(), 0);
      for (uint32_t token : end.tokens) set_bit(end.mask, token);
      end.tokens = {};
    }
    end.tokens.shrink_to_fit();
    end_bytes_ += sizeof(End) + 4 * (end.tokens.size() + end.mask.size());
  }
  return ends;
}

// From wherever in the lexeme under way.
Bound Automaton::inside_bound(const Place& place) {
  Bound bound;
  const std::vector<Lexer::Entry> entries = lexer_.copy_of_entries(place.lexer);
  const std::vector<Parser::Step> steps = parser_.copy_of_steps(parser_.closure(place.set));
  for (const Lexer::Entry& entry : entries) {
    if (std::find(grammar_.ignored.begin(), grammar_.ignored.end(), index(entry.terminal)) != grammar_.ignored.end()) return set_bound(place.set);
    for (const Parser::Step& step : steps) {
      if (step.terminal != entry.terminal) continue;
      Bound after = item_bound(step.next);
      after.add(lexeme_bound(step.terminal));
      bound.widen(after);
    }
  }
  return bound;
}

// Of the tokens that stay in the lexeme, those that fit; all of them are `known`.
void Automaton::add_fitting_ends(const Place& place, const Wall& wall, Bitmask& known, std::span<uint32_t> words) {
  if (!place.fresh && tokens_of(inside_bound(place), wall.read) < wall.left) {
    const std::shared_ptr<const LexemePart> part = this->part(place.lexer);
    if (part->base) std::copy(part->base->begin(), part->base->end(), known.begin());
    for (uint32_t token : part->remove) clear_bit(known, token);
    for (uint32_t token : part->add) set_bit(known, token);
    std::copy(known.begin(), known.end(), words.begin());
    return;
  }
  for (const End& end : ends_of(place.lexer)) {
    const Place after{end.lexer, place.set, lexer_.remembers(end.lexer) ? TextId::unknown : TextId::empty, false, place.track};
    const bool allowed = fits(after, wall);
    for (uint32_t token : end.tokens) {
      set_bit(known, token);
      if (allowed) set_bit(words, token);
    }
    for (size_t i = 0; i < end.mask.size(); ++i) {
      known[i] |= end.mask[i];
      if (allowed) words[i] |= end.mask[i];
    }
  }
}

bool Automaton::fill_within(const Mask& mask, const Place& place, const Wall& wall, std::span<uint32_t> words) {
  fill(mask, place, words);
  const Bitmask all(words.begin(), words.end());
  std::fill(words.begin(), words.end(), 0u);
  searched_places_limit_ = max_search_near_wall;
  questions_left_ = grammar_.self_delimiting && !text_matters(place) ? max_questions : max_searches;
  try {
    if (wall.left > 0) add_fitting(mask, place, wall, all, words);
  } catch (const LimitError&) {  // what was verified so far is allowed
    questions_left_ = 0;
  }
  if (questions_left_ == 0) ++limited_masks_;
  searched_places_limit_ = max_searched_places;
  questions_left_ = ~size_t{0};
  if (wall.soft && !place.fresh) {
    for (size_t i = 0; i < words.size(); ++i) {
      for (uint32_t bits = words[i]; bits != 0; bits &= bits - 1) {
        const uint32_t token = first_token(i, bits);
        if (begins_word(vocabulary_.token(token))) clear_bit(words, token);
      }
    }
  }
  if (wall.plan_token != Vocabulary::no_token) set_bit(words, wall.plan_token);
  for (uint32_t token : vocabulary_.eos()) {
    if (has_bit(all, token)) set_bit(words, token);
  }
  return !std::equal(words.begin(), words.end(), all.begin());
}

// Of `all` tokens that are allowed without a budget, those that fit.
void Automaton::add_fitting(const Mask& mask, const Place& place, const Wall& wall, const Bitmask& all, std::span<uint32_t> words) {
  Bitmask known(words.size());
  if (!mask.limited && place.lexer != LexId::dead && !text_matters(place)) {
    add_fitting_ends(place, wall, known, words);
    for (size_t i = 0; i < words.size(); ++i) words[i] &= all[i];
  }
  size_t judged = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    for (uint32_t bits = all[i] & ~known[i]; bits != 0; bits &= bits - 1) {
      const uint32_t token = first_token(i, bits);
      if (vocabulary_.is_eos(token)) continue;
      if (++judged > max_judged || questions_left_ == 0) return;
      allow_call();
      if (allows(place, token, &wall)) set_bit(words, token);
    }
  }
}

}  // namespace constrain
