// Explores the automaton ahead of time: the cost to reach a place.
#include "matching/precompute.h"

#include <algorithm>
#include <cmath>

#include "base/errors.h"

namespace constrain {

namespace {

// The cost of a token is how unusual it is, in units of a usual token; of two ways to a place the cheaper counts.
constexpr double token_cost = 1;
constexpr double layout_cost = 18;        // a line break or a tab
constexpr double escape_cost = 12;        // a backslash, or a token that ends within a character
constexpr double shorter_cost = 12;       // a longer token could have been used, however the text goes on
constexpr double split_cost = 12;         // the previous token and the beginning of this one form a token
constexpr double again_cost = 4;          // the mask is that of another place
constexpr double free_text_cost = 20;     // a remembered text that the writer chooses; other texts will come
constexpr double choice_cost = 0.5;       // for each halving of the share of tokens
constexpr uint64_t max_few_bytes = 256;   // longer texts are the writer's choice
constexpr uint32_t max_token_bytes = 64;  // longer tokens are not followed
constexpr uint32_t nothing_joined = ~uint32_t{0};

double cost_of(uint8_t byte) {
  if (byte < 0x20) return layout_cost;
  return byte == '\\' ? escape_cost : 0;
}

// Whether a text that ends with these bytes ends within a character (UTF-8).
bool ends_within_character(std::string_view text) {
  size_t continuing = 0;
  while (continuing < 3 && continuing < text.size() && (static_cast<uint8_t>(text[text.size() - 1 - continuing]) & 0xC0) == 0x80) ++continuing;
  if (continuing == text.size()) return false;  // began within a character
  const auto lead = static_cast<uint8_t>(text[text.size() - 1 - continuing]);
  return lead >= 0xC0 && lead < 0xF8 && continuing < (lead >= 0xF0 ? 3u : lead >= 0xE0 ? 2u : 1u);
}

}  // namespace

Exploration::Exploration(CompiledGrammar& grammar) : grammar_(grammar), automaton_(grammar.automaton()) {
  automaton_->stepping().allow_call();
  meet(automaton_->stepping().start(), 0, Trie::root);
  memory_bytes_ = automaton_->memory_bytes();
}

// Places with the same mask are one: the mask is that of any text of the current lexeme.
uint64_t Exploration::key(const Place& place) { return paired(place.lexer, place.set); }

void Exploration::meet(const Place& place, double cost, uint32_t arrival) {
  if (automaton_->stepping().parser().closure(place.set).has_earlier) return;  // masks of one text each
  const uint64_t id = key(place);
  const uint32_t* found = node_ids_.find(id);
  if (!found) {
    node_ids_.insert(id, static_cast<uint32_t>(nodes_.size()));
    waiting_.push({cost, static_cast<uint32_t>(nodes_.size())});
    nodes_.push_back({place, cost, arrival});
    return;
  }
  Node& node = nodes_[*found];
  if (node.explored || node.cost <= cost) return;
  node = {place, cost, arrival};
  waiting_.push({cost, *found});
}

bool Exploration::advance() {
  if (grammar_.automaton() != automaton_) return false;
  automaton_->stepping().allow_call();
  while (!waiting_.empty()) {
    const uint32_t node = waiting_.top().node;
    waiting_.pop();
    if (nodes_[node].explored) continue;
    explore(node);
    return true;
  }
  return false;
}

void Exploration::explore(uint32_t id) {
  nodes_[id].explored = true;
  const Node node = nodes_[id];
  const uint64_t shared = automaton_->masks().shared();
  automaton_->masks().of(node.place);
  ++masks_;
  const double again = automaton_->masks().shared() > shared ? again_cost : 0;
  const bool first = node.arrival == Trie::root;
  follow_all(node.place, first ? nothing_joined : node.arrival);
  if (!first && reached_ids_.find(key(node.place))) follow_all(node.place, nothing_joined);  // other tokens may have come before
  // If the lexeme goes on without deciding anything, the continuation of most tokens is likeliest.
  auto within = [&](const Reached& each) {
    return each.place.set == node.place.set && (!has_few_texts(each.place.lexer) || same_terminals(each.place.lexer, node.place.lexer));
  };
  size_t all = 0;
  for (const Reached& each : reached_) all += within(each) ? each.tokens : 0;
  for (const Reached& each : reached_) {
    double cost = node.cost + token_cost + again + each.cost;
    if (within(each)) cost += choice_cost * std::log2(static_cast<double>(all) / static_cast<double>(each.tokens));
    meet(each.place, cost, each.trie_node);
  }
  LimitSet met;  // the limits themselves do not matter here
  automaton_->stepping().surely_accepting(node.place, met);
  memory_bytes_ = automaton_->memory_bytes();
}

// Fills reached_. `arrival`: the token before.
void Exploration::follow_all(const Place& from, uint32_t arrival) {
  inside_ = {};
  reached_ids_ = {};
  reached_.clear();
  try {
    follow(from, Trie::root, 0, 0, arrival);
  } catch (const LimitError&) {  // the places found so far are enough
  }
}

// Follows all tokens below `trie_node`, whose text has led to `from`. `joined`: where the previous token leads together
// with that text, if anywhere. Returns whether there is a token for every next byte.
bool Exploration::follow(const Place& from, uint32_t trie_node, uint32_t depth, double cost, uint32_t joined) {
  const Trie& trie = automaton_->vocabulary().trie();
  if (depth == max_token_bytes) return false;
  const double leaving = reads_free_text(from) ? free_text_cost : 0;
  const ByteSet bytes = possible_bytes(from);
  const ByteSet definite = definite_bytes(from);
  ByteSet going_on;
  trie.each_child(trie_node, [&](uint32_t child) {
    const uint8_t byte = trie.byte(child);
    if (!bytes.contains(byte)) return;
    Place next = from;
    if (!step(next, byte)) return;
    const uint64_t place = key(next);
    uint32_t join = nothing_joined;
    double so_far = std::max(cost, cost_of(byte)) + (next.set == from.set ? 0 : leaving);
    if (joined != nothing_joined) {
      trie.each_child(joined, [&](uint32_t each) {
        if (trie.byte(each) == byte) join = each;
      });
      if (join != nothing_joined && !trie.tokens(join).empty()) so_far += split_cost, join = nothing_joined;
    }
    const double* met = inside_.find(place);
    const bool known = met && so_far >= *met;
    bool longer = false;
    if (!known) {
      inside_.insert(place, so_far);
      longer = follow(next, child, depth + 1, so_far, join);
    }
    const std::span<const uint32_t> tokens = trie.tokens(child);
    if (!tokens.empty() || longer) going_on.add(byte);
    const uint32_t* reached = reached_ids_.find(place);
    if (known && reached) reached_[*reached].tokens += trie.tokens_below(child).size() - tokens.size();  // about as many
    if (tokens.empty()) return;
    const bool within = ends_within_character(automaton_->vocabulary().token(tokens[0]));
    const double total = so_far + (longer ? shorter_cost : 0) + (within ? escape_cost : 0);
    if (!reached) {
      reached_ids_.insert(place, static_cast<uint32_t>(reached_.size()));
      reached_.push_back({next, child, tokens.size(), total});
      return;
    }
    Reached& each = reached_[*reached];
    each.tokens += tokens.size();
    if (total < each.cost) each = {next, child, each.tokens, total};
  });
  return going_on.size() > 0 && (going_on & definite) == definite;
}

// Keeps remembered texts short, so that tables are not filled with texts that hardly anybody writes: a byte that
// changes nothing is left out. The beginning of a text that the writer chooses stands for all, if only its novelty
// matters.
bool Exploration::step(Place& place, uint8_t byte) {
  Lexer& lexer = automaton_->stepping().lexer();
  if (lexer.remembers(place.lexer)) {
    const LexId next = lexer.step(place.lexer, byte);
    const bool any = !grammar_.grammar().has_values && next != LexId::dead && lexer.remembers(next) && !has_few_texts(next);
    if (any || (next == place.lexer && !place.fresh)) {
      place.lexer = next;
      place.fresh = false;
      return true;
    }
  }
  return automaton_->stepping().step(place, byte);
}

bool Exploration::same_terminals(LexId one, LexId other) {
  auto terminals = [&](LexId state) {
    std::vector<TermId> found;
    for (const Lexer::Entry& entry : automaton_->stepping().lexer().entries(state)) found.push_back(entry.terminal);
    std::sort(found.begin(), found.end());
    return found;
  };
  return terminals(one) == terminals(other);
}

bool Exploration::is_short(ExprId e) {
  return lengths_.of(e).longest <= max_few_bytes;
}

// Whether the current lexeme has few texts, by some terminal.
bool Exploration::has_few_texts(LexId state) {
  const std::vector<Lexer::Entry> entries = automaton_->stepping().lexer().copy_of_entries(state);
  return std::any_of(entries.begin(), entries.end(), [this](const Lexer::Entry& entry) { return is_short(entry.expression); });
}

// Bytes that continue a lexeme with few texts; all bytes if there is no such lexeme.
ByteSet Exploration::definite_bytes(const Place& place) {
  ExpressionStore& expressions = automaton_->stepping().lexer().expressions();
  if (!has_few_texts(place.lexer)) return possible_bytes(place);
  ByteSet few;
  for (const Lexer::Entry& entry : automaton_->stepping().lexer().copy_of_entries(place.lexer)) {
    if (is_short(entry.expression)) few = few | expressions.first(entry.expression);
  }
  if (const Place next = automaton_->stepping().finished(place); next.set != SetId::none) {
    for (const Lexer::Entry& entry : automaton_->stepping().lexer().copy_of_entries(next.lexer)) few = few | expressions.first(entry.expression);
  }
  return few;
}

// Bytes that may follow, and perhaps a few others; impossible places should not fill the tables.
ByteSet Exploration::possible_bytes(const Place& place) {
  Lexer& lexer = automaton_->stepping().lexer();
  ByteSet bytes;
  auto add = [&](LexId state) {
    for (const Lexer::Entry& entry : lexer.copy_of_entries(state)) bytes = bytes | lexer.expressions().first(entry.expression);
  };
  add(place.lexer);
  if (const Place next = automaton_->stepping().finished(place); next.set != SetId::none) add(next.lexer);
  return bytes;
}

// Whether the current lexeme may end here, and its text is both remembered and one of infinitely many.
bool Exploration::reads_free_text(const Place& place) {
  const Lexer& lexer = automaton_->stepping().lexer();
  if (!lexer.remembers(place.lexer) || lexer.matched(place.lexer) == MatchId::none) return false;
  const std::span<const Lexer::Entry> entries = lexer.entries(place.lexer);
  return std::any_of(entries.begin(), entries.end(),
                     [&lexer](const Lexer::Entry& entry) { return lexer.expressions().infinite(lexer.expression(entry.terminal)); });
}

}  // namespace constrain
