// Matchers, and the change of generations.
#include "matcher.h"

#include <algorithm>

#include "errors.h"

namespace constrain {

namespace {

constexpr size_t max_forced_bytes = 4096;      // at a time
constexpr size_t tokens_between_checks = 64;  // of the size of the tables, where no mask is asked for

}  // namespace

CompiledGrammar::CompiledGrammar(Grammar grammar, std::shared_ptr<const Vocabulary> vocabulary, size_t limit)
    : grammar_(std::move(grammar)), vocabulary_(std::move(vocabulary)), limit_(limit) {
  check_bytes();
  renew();
}

// Every terminal must have a match that single-byte tokens can spell: otherwise a mask may run empty.
void CompiledGrammar::check_bytes() {
  ExpressionStore& expressions = grammar_.expressions;
  ByteSet there;
  const Trie& trie = vocabulary_->trie();
  trie.each_child(Trie::root, [&](uint32_t child) {
    if (!trie.tokens(child).empty()) there.add(trie.byte(child));
  });
  const ExprId spelled = expressions.repetition(expressions.bytes(there), 0, unbounded);
  for (size_t t = 0; t < grammar_.terminals.size(); ++t) {
    const ByteSet needed = expressions.alphabet(grammar_.terminals[t]);
    if (grammar_.terminals[t] == ExprId::nothing || (needed & there) == needed) continue;
    if (expressions.intersection({grammar_.terminals[t], spelled}) != ExprId::nothing) continue;
    std::string missing;
    needed.each([&](uint8_t byte) {
      static const char* digits = "0123456789abcdef";
      if (!there.contains(byte) && missing.size() < 40) missing += std::string(" 0x") + digits[byte >> 4] + digits[byte & 15];
    });
    throw ModelError("terminal " + grammar_.terminal_names[t] +
                     " cannot be written with this vocabulary, which has no token of their own for the bytes" + missing);
  }
}

void CompiledGrammar::renew() {
  restore_expressions();
  automaton_ = std::make_shared<Automaton>(grammar_, *vocabulary_);
  automaton_->start();
  keep_what_is_in_use();
}

void CompiledGrammar::keep_what_is_in_use() { threshold_ = std::max(limit_, 2 * automaton_->memory_bytes()); }

void CompiledGrammar::renew_if_full() {
  if (automaton_->memory_bytes() <= threshold_) return;
  renew();
  ++generation_;
}

bool CompiledGrammar::accepts(std::string_view text) {
  automaton_->allow_call();
  Place place = automaton_->start();
  bool accepted = automaton_->step(place, text) && automaton_->accepting(place);
  renew_if_full();
  return accepted;
}

Matcher::Matcher(std::shared_ptr<CompiledGrammar> grammar) : grammar_(std::move(grammar)), automaton_(grammar_->automaton()) {
  places_.push_back(automaton_->start());
}

// The current place. If a new generation has begun, what has been read is read again in it.
Place& Matcher::here() {
  grammar_->automaton()->allow_call();
  if (automaton_ != grammar_->automaton()) {
    std::shared_ptr<Automaton> next = grammar_->automaton();
    next->allow_all();  // what was accepted once is accepted again, however long it takes together
    Place place = next->start();
    std::vector<Place> places{place};
    places.reserve(places_.size());
    for (uint32_t token : tokens_) {
      if (!grammar_->vocabulary().is_eos(token)) next->step(place, grammar_->vocabulary().token(token));
      places.push_back(place);
    }
    next->allow_call();
    automaton_ = std::move(next);
    places_ = std::move(places);
    grammar_->keep_what_is_in_use();
  }
  return places_.back();
}

bool Matcher::accept(uint32_t token) {
  if (ended_) return false;
  if (tokens_.size() % tokens_between_checks == 0) grammar_->renew_if_full();
  Place place = here();
  const Vocabulary& vocabulary = grammar_->vocabulary();
  if (vocabulary.is_eos(token)) {
    if (!automaton_->surely_accepting(place)) return false;
    ended_ = true;
  } else {
    std::string_view bytes = vocabulary.token(token);
    try {
      if (bytes.empty() || !automaton_->step(place, bytes)) return false;
    } catch (const LimitError&) {  // not verified within the limits, so not allowed: as in masks
      return false;
    }
  }
  tokens_.push_back(token);
  places_.push_back(place);
  return true;
}

void Matcher::rollback(size_t count) {
  here();
  if (count > 0) ended_ = false;
  tokens_.resize(tokens_.size() - count);
  places_.resize(places_.size() - count);
}

void Matcher::reset() {
  tokens_.clear();
  automaton_ = grammar_->automaton();
  places_.assign(1, automaton_->start());
  ended_ = false;
}

const Mask* Matcher::known_mask() {
  const Place& place = here();
  return automaton_->known_mask(place);
}

const Mask& Matcher::mask() {
  grammar_->renew_if_full();
  const Place& place = here();
  return automaton_->mask(place);
}

void Matcher::fill(const Mask& mask, std::span<uint32_t> words) { automaton_->fill(mask, places_.back(), words); }

bool Matcher::accepting() {
  if (ended_) return false;
  const Place& place = here();
  return automaton_->surely_accepting(place);
}

bool Matcher::finished() {
  if (ended_) return true;
  const Place& place = here();
  try {
    return automaton_->accepting(place) && automaton_->next_bytes(place).empty();
  } catch (const LimitError&) {  // what else is possible is not known
    return false;
  }
}

std::string Matcher::shortest_completion() {
  const Place& place = here();
  return automaton_->shortest_completion(place);
}

// Tokens of the shortest completion, each as long as possible.
uint32_t Matcher::shortest_completion_tokens() {
  if (ended_) return 0;
  const Trie& trie = grammar_->vocabulary().trie();
  std::string text = shortest_completion();
  uint32_t count = 0;
  for (size_t at = 0; at < text.size(); ++count) {
    size_t length = 0;
    uint32_t node = Trie::root;
    for (size_t i = at; i < text.size(); ++i) {
      uint32_t next = Trie::root;
      trie.each_child(node, [&](uint32_t child) {
        if (trie.byte(child) == static_cast<uint8_t>(text[i])) next = child;
      });
      if (next == Trie::root) break;
      node = next;
      if (!trie.tokens(node).empty()) length = i + 1 - at;
    }
    if (length == 0) throw GrammarError("the vocabulary has no token for a byte that the shortest completion needs");
    at += length;
  }
  return count;
}

std::string Matcher::forced_bytes() {
  if (ended_) return {};
  const Place& place = here();
  return automaton_->forced_bytes(place, max_forced_bytes);
}

Explanation Matcher::explain(uint32_t token) {
  Explanation result;
  Place place = here();
  const Vocabulary& vocabulary = grammar_->vocabulary();
  if (ended_) return result;
  if (vocabulary.is_eos(token)) {
    result.allowed = automaton_->accepting(place);
    result.at_end = true;
  } else {
    std::string_view bytes = vocabulary.token(token);
    while (result.offset < bytes.size() && automaton_->step(place, static_cast<uint8_t>(bytes[result.offset]))) ++result.offset;
    result.allowed = !bytes.empty() && result.offset == bytes.size();
  }
  if (result.allowed) return result;
  auto add = [&](LexId lexer) {
    for (const Lexer::Entry& entry : automaton_->lexer().entries(lexer)) {
      TermId t = automaton_->lexer().base_terminal(entry.terminal);
      if (std::find(result.terminals.begin(), result.terminals.end(), index(t)) == result.terminals.end()) {
        result.terminals.push_back(index(t));
      }
    }
  };
  add(place.lexer);
  if (const Place next = automaton_->finished(place); next.set != SetId::none) add(next.lexer);
  return result;
}

}  // namespace constrain
