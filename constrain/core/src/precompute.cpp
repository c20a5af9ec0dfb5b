// Exploring the automaton ahead of time: random walks, and how likely each token is on them.
#include "precompute.h"

#include <algorithm>

#include "errors.h"

namespace constrain {

namespace {

constexpr double shorter_token_weight = 0.3;  // a longer token could have said as much
constexpr double layout_weight = 0.3;         // a line break or a tab
constexpr double escape_weight = 0.03;        // a backslash, or a token that ends within a character
constexpr double free_text_weight = 0.03;     // a remembered text of the writer's choice: another one will come
constexpr double end_weight = 1;
constexpr uint32_t max_token_bytes = 64;  // longer tokens are not followed
constexpr size_t max_walk = 1'000;        // tokens
constexpr size_t max_idle = 500;          // walks

double weight(uint8_t byte) {
  if (byte < 0x20) return layout_weight;
  return byte == '\\' ? escape_weight : 1;
}

// Does a text that ends with these bytes end within a character (UTF-8)?
bool ends_within_character(std::string_view text) {
  size_t continuing = 0;
  while (continuing < 3 && continuing < text.size() && (static_cast<uint8_t>(text[text.size() - 1 - continuing]) & 0xC0) == 0x80) ++continuing;
  if (continuing == text.size()) return false;  // it began within one
  const auto lead = static_cast<uint8_t>(text[text.size() - 1 - continuing]);
  return lead >= 0xC0 && continuing < (lead >= 0xF0 ? 3u : lead >= 0xE0 ? 2u : 1u);
}

}  // namespace

Exploration::Exploration(CompiledGrammar& grammar) : grammar_(grammar), automaton_(grammar.automaton()) {
  automaton_->allow_call();
  node_of(automaton_->start());
  memory_bytes_ = automaton_->memory_bytes();
}

// Places with one mask are one, mostly: that of any text of the lexeme under way will do.
uint64_t Exploration::key(const Place& place) {
  const uint64_t plain = (uint64_t{index(place.lexer)} << 32) | index(place.set);
  if (!automaton_->parser().closure(place.set).has_rivals) return plain;
  return mix(seeded(plain), (uint64_t{index(place.text)} << 32) | index(place.track)).low;
}

uint32_t Exploration::node_of(const Place& place) {
  const uint64_t id = key(place);
  if (const uint32_t* found = node_ids_.find(id)) return *found;
  const auto node = static_cast<uint32_t>(nodes_.size());
  node_ids_.insert(id, node);
  nodes_.push_back({place, {}});
  return node;
}

bool Exploration::advance() {
  if (grammar_.automaton() != automaton_) return false;
  automaton_->allow_call();
  while (idle_ < max_idle) {
    const bool met = !nodes_[at_].explored;
    if (met) explore(at_);
    const std::vector<Following>& following = nodes_[at_].following;
    const double place = following.empty() ? 0 : random() * following.back().weights;
    auto next = std::partition_point(following.begin(), following.end(), [place](const Following& each) { return each.weights <= place; });
    const bool ends = next == following.end() || next->node == at_ || ++steps_ == max_walk;
    at_ = ends ? 0 : next->node;
    idle_ = met ? 0 : idle_ + ends;
    if (ends) steps_ = 0;
    if (met) return true;
  }
  return false;
}

void Exploration::explore(uint32_t node) {
  const Place place = nodes_[node].place;
  automaton_->mask(place);
  ++masks_;
  inside_ = {};
  reached_ = {};
  reached_order_.clear();
  try {
    follow(place, Trie::root, 0, 1);
  } catch (const LimitError&) {  // what was found until then will do
  }
  double weights = 0;
  std::vector<Following>& following = nodes_[node].following;
  for (uint32_t next : reached_order_) {
    if (next != node) following.push_back({next, weights += *reached_.find(next)});
  }
  if (automaton_->surely_accepting(place)) following.push_back({node, weights += end_weight});
  nodes_[node].explored = true;
  memory_bytes_ = automaton_->memory_bytes();
}

// Follows all tokens that go on from `node`, whose text has led to `from`. Does any of them?
bool Exploration::follow(const Place& from, uint32_t trie_node, uint32_t depth, double weight_so_far) {
  const Trie& trie = automaton_->vocabulary().trie();
  bool any = false;
  if (depth == max_token_bytes) return any;
  const double leaving = reads_free_text(from) ? free_text_weight : 1;
  const ByteSet bytes = possible_bytes(from);
  trie.each_child(trie_node, [&](uint32_t child) {
    if (!bytes.contains(trie.byte(child))) return;
    Place next = from;
    if (!automaton_->step(next, trie.byte(child))) return;
    const uint64_t place = key(next);
    const double so_far = std::min(weight_so_far, weight(trie.byte(child))) * (next.set == from.set ? 1 : leaving);
    const double* met = inside_.find(place);
    bool longer = false;
    if (!met || so_far > *met) {
      inside_.insert(place, so_far);
      longer = follow(next, child, depth + 1, so_far);
    }
    any |= longer;
    const std::span<const uint32_t> tokens = trie.tokens(child);
    if (tokens.empty()) return;
    any = true;
    const bool within = ends_within_character(automaton_->vocabulary().token(tokens[0]));
    const double total = so_far * (longer ? shorter_token_weight : 1) * (within ? escape_weight : 1);
    const uint32_t node = node_of(next);
    const double* reached = reached_.find(node);
    if (!reached) reached_order_.push_back(node);
    if (!reached || *reached < total) reached_.insert(node, total);
  });
  return any;
}

// Bytes that may follow, and perhaps a few others: what cannot be is not to be kept in the tables.
ByteSet Exploration::possible_bytes(const Place& place) {
  Lexer& lexer = automaton_->lexer();
  ByteSet bytes;
  auto add = [&](LexId state) {
    for (const Lexer::Entry& entry : lexer.copy_of_entries(state)) bytes = bytes | lexer.expressions().first(entry.expression);
  };
  add(place.lexer);
  if (const Place next = automaton_->finished(place); next.set != SetId::none) add(next.lexer);
  return bytes;
}

// May the lexeme under way end here, and is its text both remembered and one of endlessly many?
bool Exploration::reads_free_text(const Place& place) {
  const Lexer& lexer = automaton_->lexer();
  if (!lexer.remembers(place.lexer) || lexer.matched(place.lexer) == MatchId::none) return false;
  const std::span<const Lexer::Entry> entries = lexer.entries(place.lexer);
  return std::any_of(entries.begin(), entries.end(),
                     [&lexer](const Lexer::Entry& entry) { return lexer.expressions().infinite(lexer.expression(entry.terminal)); });
}

double Exploration::random() {  // splitmix64 (Steele, Lea, Flood 2014)
  random_ += 0x9E3779B97F4A7C15u;
  return static_cast<double>(scramble(random_) >> 11) * 0x1p-53;
}

}  // namespace constrain
