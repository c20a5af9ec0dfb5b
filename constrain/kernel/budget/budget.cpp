// Judges tokens by the number of tokens left.
#include "budget/budget.h"

#include <algorithm>
#include <bit>

#include "base/errors.h"

namespace constrain {

namespace {

constexpr size_t max_judged = 50'000;           // tokens of one mask that are judged one by one, by steps that are known
constexpr size_t search_questions = 60;         // questions that a search for a shortest match counts as
constexpr size_t max_places_near_end = 2'000;   // visited by one search for a way to finish

uint32_t first_token(size_t word, uint32_t bits) { return static_cast<uint32_t>(word * 32) + static_cast<uint32_t>(std::countr_zero(bits)); }

}  // namespace

// From sets ---------------------------------------------------------------------------------------------------------

bool Budget::fits_from_set(const Place& place, size_t read, uint64_t tokens, BudgetQuestions& questions) {
  return bounds_.within(read, tokens, [&](Unit unit) { return bounds_.of_set(place.set, unit, questions); });
}

// A bound on the way to the end of the text bounds that to the end of a rule, if what follows the rule is the same on both.
uint64_t Budget::sure(uint64_t tokens, std::optional<uint64_t> after) const {
  if (!after || (grammar_.self_delimiting && !grammar_.has_values)) return tokens;
  return tokens - std::min(tokens, *after);
}

bool Budget::surely_fits(const Place& place, size_t read, uint64_t tokens) {
  BudgetQuestions questions;
  return fits_from_set(place, read, tokens, questions);
}

bool Budget::any_surely_fits(const Mask& mask, const Place& place, size_t read, uint64_t tokens) {
  return bounds_.within(read, tokens, [&](Unit unit) { return bounds_.of_mask(mask, place, unit); });
}

// Whether the way to finish depends on the text of the current lexeme.
bool Budget::text_matters(const Place& place, BudgetQuestions& questions) {
  if (parser_.closure(place.set).has_earlier) return true;
  const Bound& bound = bounds_.of_set(place.set, Unit::tokens, questions);
  return bound.fresh != 0 || bound.length == Bound::unknown;
}

// From places -------------------------------------------------------------------------------------------------------

// Places with equal keys have the same way to finish. If rules decide it, the rest of the lexeme is its shortest end.
Hash Budget::completion_key(const Place& place, bool by_rules) {
  Hash key = mix(mix(seeded(0x6E656564), paired(place.set, place.text)), (uint64_t{index(place.track)} << 1) | place.fresh);
  if (limits_.any()) key = mix(key, place.used);
  if (!by_rules || place.fresh || limits_.any()) return mix(key, index(place.lexer));
  for (const Lexer::Entry& entry : lexer_.copy_of_entries(place.lexer)) {
    if (lexer_.shortest_texts().takes_search(entry.expression)) {
      key = mix(mix(key, ~uint64_t{index(entry.terminal)}), index(entry.expression));
      continue;
    }
    const std::string rest = lexer_.shortest_texts().of(entry.expression);
    key = mix(key, paired(entry.terminal, rest.size()));
    for (char c : rest) key = mix(key, static_cast<uint8_t>(c));
  }
  return key;
}

// The tokens needed at a place whose text is unknown, if the text does not matter (`text_matters`): to the end of the text,
// or only to the next border.
uint64_t Budget::tokens_needed(const Place& place, BudgetQuestions& questions, bool in_rule) {
  const bool by_rules = counts_by_rules(place, questions);
  try {
    Hash key = completion_key(place, by_rules);
    if (in_rule) key = mix(key, 1);
    size_t cost = 1;
    for (const Lexer::Entry& entry : lexer_.copy_of_entries(place.lexer)) {
      if (lexer_.shortest_texts().takes_search(entry.expression)) cost += search_questions;
    }
    if (!questions.may_ask(key, cost)) return never_fits;
    if (const uint64_t* found = tokens_needed_.find(key)) {
      if (const Limit* why = *found == never_fits ? unknown_needs_.find(key) : nullptr) questions.note(*why);
      return *found;
    }
    return find_tokens_needed(place, by_rules, questions, key, in_rule);
  } catch (const LimitError& error) {  // the key itself is unknown
    questions.note(error.limit);
    return never_fits;
  }
}

uint64_t Budget::find_tokens_needed(const Place& place, bool by_rules, BudgetQuestions& questions, const Hash& key, bool in_rule) {
  uint64_t needed = never_fits;
  try {
    const Completions::Effort effort{.thorough = false, .searched_places = questions.searched_places()};
    const Vocabulary::Spelling spelling = limits_.spell(place, by_rules ? completions_.by_rules(place) : completions_.shortest(place, effort));
    if (spelling.counts[0] != Vocabulary::no_spelling) needed = spelling.counts[0] - (in_rule ? spelling.counts[spelling.behind_border()] : 0);
  } catch (const LimitError& error) {  // no way to finish is known
    questions.note(error.limit);
    unknown_needs_.insert(key, error.limit);
  }
  tokens_needed_.insert(key, needed);
  return needed;
}

std::string Budget::counted_completion(const Place& place) {
  BudgetQuestions questions;
  return counts_by_rules(place, questions) ? completions_.by_rules(place) : completions_.shortest(place);
}

bool Budget::fits(const Place& place, const Remaining& remaining, BudgetQuestions& questions) {
  if (remaining.left == 0) return false;
  const uint64_t sure = this->sure(remaining.left - 1, remaining.after);
  if (!remaining.soft && (fits_from_set(place, remaining.read, sure, questions) ||
                          bounds_.within(remaining.read, sure, [&](Unit unit) { return bounds_.of_place(place, unit); }))) {
    return true;
  }
  uint64_t needed = tokens_needed(place, questions, remaining.after.has_value());
  if (needed != never_fits) needed += remaining.after.value_or(0);
  return needed < remaining.left && !(remaining.soft && needed > remaining.needed);
}

bool Budget::allows(const Place& place, uint32_t token, const Remaining& remaining, BudgetQuestions& questions) {
  const std::string_view bytes = vocabulary_.token(token);
  Place next = place;
  try {
    return !bytes.empty() && limits_.take(next, bytes) && fits(next, remaining, questions);
  } catch (const LimitError& error) {  // not verified, so not allowed
    questions.note(error.limit);
    return false;
  }
}

// Masks -------------------------------------------------------------------------------------------------------------

LimitSet Budget::fill(const Mask& mask, const Place& place, std::span<uint32_t> words, const Remaining& remaining) {
  if (mask.tokens->dependent.empty()) return masks_.fill(mask, place, words);
  BudgetQuestions questions(stepping_.expressions(), stepping_.limits().mask_work);
  const Masks::Judge judge = [&](uint32_t token, LimitSet& met) {
    const bool allowed = !questions.used_up() && allows(place, token, remaining, questions);
    met.add(questions.met());
    return allowed;
  };
  return masks_.fill(mask, place, words, &judge);
}

Budget::Narrowed Budget::fill_fitting(const Mask& mask, const Place& place, const Remaining& remaining, std::span<uint32_t> words) {
  LimitSet met = masks_.fill(mask, place, words);
  const Bitmask all(words.begin(), words.end());
  std::fill(words.begin(), words.end(), 0u);
  BudgetQuestions endless;
  const Limits& limits = stepping_.limits();
  BudgetQuestions questions(stepping_.expressions(), limits.mask_work,
                            counts_by_rules(place, endless) ? limits.budget_questions : limits.budget_searches, max_places_near_end);
  stepping_.allow_mask();
  try {
    if (remaining.left > 0) add_fitting(mask, place, remaining, all, words, questions);
  } catch (const LimitError& error) {  // tokens verified so far are allowed
    questions.note(error.limit);
  }
  met.add(questions.met());
  if (remaining.plan_token != Vocabulary::no_token) set_bit(words, remaining.plan_token);
  for (uint32_t token : vocabulary_.eos()) {
    if (has_bit(all, token)) set_bit(words, token);
  }
  return {!std::equal(words.begin(), words.end(), all.begin()), met};
}

// Adds the tokens that fit, from `all` tokens that are allowed without a budget.
void Budget::add_fitting(const Mask& mask, const Place& place, const Remaining& remaining, const Bitmask& all, std::span<uint32_t> words,
                         BudgetQuestions& questions) {
  Bitmask known(words.size());
  if (mask.tokens->limits.empty() && place.lexer != LexId::dead && !text_matters(place, questions)) {
    add_fitting_ends(place, remaining, known, words, questions);
    for (size_t i = 0; i < words.size(); ++i) words[i] &= all[i];
  }
  size_t judged = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    for (uint32_t bits = all[i] & ~known[i]; bits != 0; bits &= bits - 1) {
      const uint32_t token = first_token(i, bits);
      if (vocabulary_.is_eos(token)) continue;
      if (++judged > max_judged) return questions.note(Limit::budget_questions);
      if (questions.used_up()) return;
      stepping_.allow_mask();
      if (allows(place, token, remaining, questions)) set_bit(words, token);
    }
  }
}

// Adds the tokens that stay in the lexeme and fit; all of these tokens are `known`. They begin no new value.
void Budget::add_fitting_ends(const Place& place, Remaining remaining, Bitmask& known, std::span<uint32_t> words, BudgetQuestions& questions) {
  remaining.soft = false;
  const std::shared_ptr<const IndependentTokens> alone = independent_.of(place.lexer);
  if (alone->base) std::copy(alone->base->begin(), alone->base->end(), known.begin());
  for (uint32_t token : alone->remove) clear_bit(known, token);
  for (uint32_t token : alone->add) set_bit(known, token);
  const auto bound_inside = [&](Unit unit) { return bounds_.inside(place, unit, questions); };
  if (!place.fresh && bounds_.within(remaining.read, sure(remaining.left - 1, remaining.after), bound_inside)) {
    std::copy(known.begin(), known.end(), words.begin());
    return;
  }
  for (const LexemeEnd& end : ends_.of(place.lexer)) {
    Place after{end.lexer, place.set, lexer_.remembers(end.lexer) ? TextId::unknown : TextId::empty, false, place.track};
    if (limits_.any()) {
      after.used = place.used + 1;
      if (!limits_.settle(after)) continue;
    }
    if (fits(after, remaining, questions)) end.tokens->add_to(words);
  }
}

}  // namespace constrain
