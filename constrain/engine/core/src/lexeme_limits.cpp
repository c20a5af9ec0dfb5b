// Limits on the tokens of one lexeme: masks that bring a lexeme to its end once it has had enough of them.
//
// At its limit a lexeme first ends the word it is in: nothing in it begins a new one. Once that took long enough, or
// where there are no words, only tokens are left that end the lexeme or make its shortest rest shorter. That rest falls
// with each of them, so the lexeme ends. The next token of a way to finish is always among them.
#include <algorithm>

#include "automaton.h"
#include "errors.h"
#include "matcher.h"

namespace constrain {

namespace {

constexpr uint32_t max_word_tokens = 8;  // beyond the limit, after which the end is no nearer than it was before
constexpr uint64_t near_end = 32;        // bytes of the rest; while it is longer, words must be begun to come to it

}  // namespace

bool Automaton::stays_in_lexeme(LexId lexer, std::string_view bytes) {
  for (char c : bytes) {
    lexer = lexer_.step(lexer, static_cast<uint8_t>(c));
    if (lexer == LexId::dead) return false;
  }
  return true;
}

uint64_t Automaton::lexeme_limit(LexId lexer, std::span<const uint64_t> limits) const {
  uint64_t limit = no_lexeme_limit;
  for (const Lexer::Entry& entry : lexer_.entries(lexer)) {
    if (entry.expression == ExprId::epsilon) continue;
    const size_t kind = grammar_.kinds[index(lexer_.base_terminal(entry.terminal))];
    if (kind < limits.size()) limit = std::min(limit, limits[kind]);
  }
  return limit;
}

uint64_t Automaton::lexeme_rest(LexId lexer) {
  if (const uint64_t* found = lexeme_rests_.find(index(lexer))) return *found;
  uint64_t rest = never_fits;
  for (const Lexer::Entry& entry : lexer_.copy_of_entries(lexer)) {
    rest = std::min<uint64_t>(rest, lexer_.expressions().shortest(entry.expression).size());
  }
  lexeme_rests_.insert(index(lexer), rest);
  return rest;
}

void Automaton::keep_nearer(LexId lexer, bool words_only, std::span<uint32_t> words) {
  allow_mask();
  const uint64_t rest = lexeme_rest(lexer);
  const size_t enough = lexer_.expressions().work() + limits_.mask_work;
  const auto is_nearer = [&](LexId end) {
    if (lexer_.expressions().work() > enough) return false;  // searches take too long
    try {
      return lexeme_rest(end) < rest;
    } catch (const LimitError&) {  // not verified
      return false;
    }
  };
  Bitmask farther(words.size());
  for (const End& end : ends_of(lexer)) {
    if (!is_nearer(end.lexer)) end.tokens->add_to(farther);
  }
  if (words_only) {
    Bitmask begun(words.size());
    vocabulary_.words_begun().add_to(begun);
    for (size_t i = 0; i < words.size(); ++i) farther[i] &= begun[i];
  }
  for (size_t i = 0; i < words.size(); ++i) words[i] &= ~farther[i];
}

// Whether the lexeme under way has had as many tokens as it should.
bool Matcher::limit_reached() {
  if (ended_ || progress_.back().lexeme_tokens < least_limit_) return false;
  const LexId lexer = here().lexer;
  return progress_.back().lexeme_tokens >= automaton_->lexeme_limit(lexer, limits_);
}

// The tokens that the limit of the lexeme under way leaves, the budget aside. Never none: a way to finish is among them.
const Bitmask& Matcher::limited(const Mask& mask) {
  if (limited_) return *limited_;
  const Place& place = places_.back();
  Bitmask all(grammar_->vocabulary().words());
  automaton_->fill(mask, place, all);
  Bitmask left = all;
  try {
    const bool in_word = progress_.back().word_tokens < max_word_tokens;
    if (!in_word || automaton_->lexeme_rest(place.lexer) <= near_end) {
      if (in_word) automaton_->keep_nearer(place.lexer, true, left);
      if (left == all) automaton_->keep_nearer(place.lexer, false, left);
      automaton_->allow_call();
      const Progress& progress = planned();
      const uint32_t token = grammar_->vocabulary().first_token(*progress.plan, progress.at);
      if (token != Vocabulary::no_token) set_bit(left, token);
    }
  } catch (const LimitError&) {  // no way to finish was found: nothing is left out
    left = all;
  }
  automaton_->allow_call();
  if (left != all && !progress_.back().shortened) {
    progress_.back().shortened = true;
    ++progress_.back().shortened_lexemes;
  }
  limited_ = std::make_shared<const Bitmask>(std::move(left));
  return *limited_;
}

// Notes `token`, which led from one place to another; `at_limit`: the lexeme there had had its tokens.
void Matcher::count_lexeme_tokens(Progress& progress, const Place& from, const Place& place, std::string_view token, bool at_limit) {
  if (from.fresh || place.set != from.set || !automaton_->stays_in_lexeme(from.lexer, token)) {
    progress.lexeme_tokens = 1;
    progress.word_tokens = 0;
    progress.least_rest = Automaton::never_fits;
    progress.shortened = false;
    return;
  }
  ++progress.lexeme_tokens;
  if (!at_limit) return;
  automaton_->allow_call();
  uint64_t rest = Automaton::never_fits;
  try {
    progress.least_rest = std::min(progress.least_rest, automaton_->lexeme_rest(from.lexer));
    rest = automaton_->lexeme_rest(place.lexer);
  } catch (const LimitError&) {  // not verified
  }
  if (rest >= progress.least_rest) ++progress.word_tokens;
  progress.least_rest = std::min(progress.least_rest, rest);
}

}  // namespace constrain
