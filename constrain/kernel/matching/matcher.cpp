// Reads tokens, and finds masks, plans and explanations for the current place.
#include "matching/matcher.h"

#include <algorithm>
#include <utility>

#include "base/errors.h"
#include "completions/forced_text.h"

namespace constrain {

namespace {

constexpr size_t max_forced_bytes = 4096;      // bytes forced at a time
constexpr size_t tokens_between_checks = 64;  // between checks of the tables' size, if no mask is asked for
constexpr uint64_t max_margin = 16;           // tokens
constexpr uint64_t near_end = 32;             // tokens before the last moment, and before the limit of a lexeme

// Length of `text` without an unfinished UTF-8 character at its end.
size_t whole_characters(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<uint8_t>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;  // inside a character
    const size_t length = byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : byte < 0xF8 ? 4 : 1;
    return length > back ? text.size() - back : text.size();
  }
  return text.size();
}

// Length of `text` without an unfinished character or special token's name at its end.
size_t whole_symbols(std::string_view text) {
  const size_t mark = text.find_last_of(std::string_view("\xFE\xFF"));
  if (mark != text.npos && text[mark] == mark_begin) return mark;
  return whole_characters(text);
}

}  // namespace

Matcher::Matcher(std::shared_ptr<CompiledGrammar> grammar, std::optional<uint64_t> max_tokens,
                 const std::vector<std::optional<uint64_t>>& lexeme_limits)
    : grammar_(std::move(grammar)), automaton_(grammar_->automaton()), max_tokens_(max_tokens), progress_(1) {
  places_.push_back(automaton_->stepping().start());
  for (const std::optional<uint64_t>& limit : lexeme_limits) {
    limits_.push_back(limit.value_or(LexemeLimits::none));
    least_limit_ = std::min(least_limit_, limits_.back());
  }
  tracks_ = max_tokens_ || least_limit_ != LexemeLimits::none || grammar_->grammar().limits_tokens;
  if (!max_tokens_) return;
  progress_[0].plan = plan_from(places_[0], nullptr, *max_tokens_);
  const uint64_t needed = progress_[0].plan->counts[0];
  if (needed > *max_tokens_) {
    throw BudgetError("max_tokens is " + std::to_string(*max_tokens_) + ", but the shortest text known takes " + std::to_string(needed) + " tokens", needed);
  }
  margin_ = std::min(max_margin, (*max_tokens_ - needed) / 4);
  automaton_->budget().prepare();
}

// The current place. If a new generation has begun, the tokens are replayed in it, unless the present mask was asked
// for.
Place& Matcher::here() {
  automaton_->stepping().allow_call();
  if (automaton_ != grammar_->automaton() && !present_.is_asked()) {
    if (max_tokens_ && !ended_) {  // by present knowledge: searches of another generation may end differently
      try {
        planned();
      } catch (const LimitError&) {  // then it is computed later
      }
    }
    keep_last();
    std::shared_ptr<Automaton> next = grammar_->automaton();
    const Stepping::Scope scope = next->stepping().without_limits();  // a token accepted once is accepted again
    Place place = next->stepping().start();
    std::vector<Place> places{place};
    places.reserve(places_.size());
    for (uint32_t token : tokens_) {
      if (!grammar_->vocabulary().is_eos(token)) next->token_limits().take(place, grammar_->vocabulary().token(token));
      places.push_back(place);
    }
    automaton_ = std::move(next);
    places_ = std::move(places);
    grammar_->keep_what_is_in_use();
  }
  return places_.back();
}

Place Matcher::place() {
  const Place& place = here();
  if (place.fresh) return place;
  for (const Lexer::Entry& entry : automaton_->stepping().lexer().entries(place.lexer)) {
    if (entry.expression != ExprId::epsilon) return place;
  }
  try {
    const Place after = automaton_->stepping().finished(place);
    return after.set == SetId::none ? place : after;
  } catch (const LimitError&) {  // then it is not known to be that of another matcher
    return place;
  }
}

bool Matcher::is_full() const { return !present_.is_asked() && tokens_.size() % tokens_between_checks == 0 && grammar_->is_full(); }

bool Matcher::accept(uint32_t token) {
  if (ended_) return false;
  if (is_full()) grammar_->renew_if_full();
  if (!present_.is_asked() && !begins_plan(token)) settle(token);
  if (present_.words() && !has_bit(*present_.words(), token)) return false;
  Place place = here();
  Progress progress = tracks_ ? progress_.back() : Progress{};
  if (grammar_->vocabulary().is_eos(token)) {
    if (!present_.words() && !accepting()) return false;
    ended_ = true;
  } else {
    if (!step_over(place, token)) return false;
    const std::string_view bytes = grammar_->vocabulary().token(token);
    if (tracks_) count_lexeme_tokens(progress, places_.back(), place, bytes);
    if (tracks_) go_on(progress, places_.back(), place, bytes);
  }
  progress.limited = false;
  last_ = {tokens_.size(), present_.pass_on()};
  tokens_.push_back(token);
  places_.push_back(place);
  if (tracks_) progress_.push_back(std::move(progress));
  return true;
}

// A mask that was exact may meet a limit in another generation.
void Matcher::keep_last() {
  if (!last_.mask.is_exact()) return;
  const Place& place = places_[last_.accepted];
  Bitmask words(grammar_->vocabulary().words());
  automaton_->masks().fill(automaton_->masks().of(place), place, words);
  last_.mask.keep(std::move(words));
}

// Computes what `accept` needs to know of the present mask, which was not asked for.
void Matcher::settle(uint32_t token) {
  const Mask& mask = this->mask();
  if (plain(mask)) return;
  const std::span<const uint32_t> dependent = mask.tokens->dependent;
  const bool by_itself = mask.tokens->limits.empty() && !max_tokens_ && !limit_reached();
  if (by_itself && std::find(dependent.begin(), dependent.end(), token) == dependent.end()) return;
  Bitmask words(grammar_->vocabulary().words());
  fill(mask, words);
}

// The next token of the plan is in every mask.
bool Matcher::begins_plan(uint32_t token) const {
  if (!tracks_) return false;
  const Progress& progress = progress_.back();
  return progress.plan && grammar_->vocabulary().first_token(*progress.plan, progress.at) == token;
}

// Steps a token of the mask, however long that takes; a token that only the plan has, within what `allow_plan` has.
bool Matcher::step_over(Place& place, uint32_t token) {
  const std::string_view bytes = grammar_->vocabulary().token(token);
  if (bytes.empty()) return false;
  try {
    return automaton_->token_limits().take(place, bytes);
  } catch (const LimitError&) {
    if (!present_.words() && !automaton_->masks().has_token(place, token)) return begins_plan(token) && step_in_plan(place, bytes);
  }
  const Stepping::Scope scope = automaton_->stepping().without_limits();
  return automaton_->token_limits().take(place, bytes);
}

bool Matcher::step_in_plan(Place& place, std::string_view bytes) {
  const Stepping::Scope scope = automaton_->stepping().for_way();
  try {
    return automaton_->token_limits().take(place, bytes);
  } catch (const LimitError&) {  // not verified, so not allowed
    return false;
  }
}

void Matcher::track() {
  if (!tracks_) progress_.resize(places_.size());
  tracks_ = true;
}

void Matcher::note_limits(LimitSet limits) {
  if (limits.empty()) return;
  track();
  Progress& progress = progress_.back();
  progress.limits.add(limits);
  if (std::exchange(progress.limited, true)) return;
  ++progress.limited_masks;
  grammar_->count_limited_mask();
}

// Makes a plan after `token`, which is in the present mask and led to `place`.
void Matcher::go_on(Progress& progress, const Place& from, const Place& place, std::string_view token) {
  const uint64_t left_after = left() - 1;
  const size_t read = progress.read;  // as it was for the mask
  if (grammar_->grammar().reads_groups) {  // groups are values, and any part of the text may be one
    progress.read += token.size();
  } else if (automaton_->stepping().lexer().remembers(from.lexer) || automaton_->stepping().lexer().remembers(place.lexer)) {
    progress.lexeme = (place.set == from.set ? progress.lexeme : 0) + token.size();
    progress.read = std::max(progress.read, progress.lexeme);
  }
  const std::shared_ptr<const Plan> plan = std::exchange(progress.plan, nullptr);
  const size_t end = progress.at + token.size();
  const bool along = plan && std::string_view(plan->text).substr(progress.at).starts_with(token) && plan->counts[end] <= left_after;
  if (along && (!grammar_->grammar().limits_tokens || grammar_->vocabulary().token(grammar_->vocabulary().first_token(*plan, progress.at)) == token)) {
    progress.plan = plan;
    progress.at = end;
    return;
  }
  if (!max_tokens_ || present_.is_ample()) return;
  try {
    if (automaton_->budget().surely_fits(place, read, left_after)) return;
    std::shared_ptr<const Plan> next = plan_from(place, plan.get(), left_after);
    if (next->counts[0] > left_after) return;  // fits nevertheless: the mask used a bound shorter than this text
    progress.plan = std::move(next);
    progress.at = 0;
  } catch (const LimitError&) {  // no way is known, but a bound fits
  }
}

// A plan of at most `limit` tokens, if possible.
std::shared_ptr<const Matcher::Plan> Matcher::plan_from(const Place& place, const Plan* like, uint64_t limit) {
  const Stepping::Scope scope = automaton_->stepping().for_way();
  TokenLimits& limits = automaton_->token_limits();
  auto plan = std::make_shared<Plan>(limits.spell(place, automaton_->completions().shortest(place), like));
  const auto try_also = [&](std::string text) {
    Plan other = limits.spell(place, std::move(text), like);
    if (other.counts[0] < plan->counts[0]) *plan = std::move(other);
  };
  if (plan->counts[0] > limit) try_also(automaton_->budget().counted_completion(place));
  if (plan->counts[0] > limit) try_also(automaton_->completions().shortest(place, {.thorough = true}));
  if (plan->counts[0] == Vocabulary::no_spelling && limits.any()) {
    throw LimitError("no way to finish within the limits on the tokens of lexemes was found", Limit::searched_places);
  }
  if (plan->counts[0] == Vocabulary::no_spelling) {
    throw GrammarError("the vocabulary has no token for a byte that the shortest completion needs");
  }
  return plan;
}

// The progress so far, with a plan.
const Matcher::Progress& Matcher::planned() {
  Progress& progress = progress_.back();
  if (!progress.plan) {
    progress.plan = plan_from(places_.back(), nullptr, left());
    progress.at = 0;
    if (progress.plan->counts[0] > left()) {
      throw LimitError("no way to finish within the token budget was found", Limit::budget_questions);
    }
  }
  return progress;
}

void Matcher::rollback(size_t count) {
  if (count == 0) return;
  ended_ = false;
  present_.forget();
  tokens_.resize(tokens_.size() - count);
  places_.resize(places_.size() - count);
  if (tracks_) progress_.resize(progress_.size() - count);
  if (last_.accepted == tokens_.size()) present_ = last_.mask;
  if (last_.accepted >= tokens_.size()) last_ = {};
}

bool Matcher::spend(uint64_t count) {
  if (!max_tokens_ || count == 0) return true;
  if (count > left()) return false;
  here();
  std::shared_ptr<const Plan> plan;
  try {
    plan = plan_from(places_.back(), progress_.back().plan.get(), left() - count);
  } catch (const LimitError&) {  // no way is known
    return false;
  }
  if (plan->counts[0] > left() - count) return false;
  present_.forget();
  last_ = {};
  *max_tokens_ -= count;
  progress_.back().plan = std::move(plan);
  progress_.back().at = 0;
  return true;
}

void Matcher::reset() {
  present_.forget();
  last_ = {};
  tokens_.clear();
  progress_.resize(1);
  progress_[0].narrowed = progress_[0].limited = progress_[0].shortened = false;
  progress_[0].limited_masks = progress_[0].shortened_lexemes = 0;
  progress_[0].limits = {};
  automaton_ = grammar_->automaton();
  places_.assign(1, automaton_->stepping().start());
  ended_ = false;
}

const Mask* Matcher::known_mask() {
  const Place& place = here();
  return automaton_->masks().known(place);
}

const Mask& Matcher::mask() {
  if (!present_.is_asked()) grammar_->renew_if_full();
  const Place& place = here();
  return automaton_->masks().of(place);
}

bool Matcher::ample(const Mask& mask) {
  if (!max_tokens_) return true;
  if (!mask.tokens->limits.empty()) return false;
  if (present_.is_ample()) return true;
  const uint64_t after = left();  // one token less, and the margin
  const bool ample = after > margin_ && automaton_->budget().any_surely_fits(mask, places_.back(), progress_.back().read, after - margin_ - 1);
  if (ample && mask.tokens->dependent.empty()) present_.find_ample();  // otherwise some tokens have been judged one by one
  return ample;
}

bool Matcher::plain(const Mask& mask) {
  if (present_.is_plain()) return true;
  if (present_.words() || !mask.tokens->limits.empty() || !mask.tokens->dependent.empty() || !ample(mask) || limit_reached() || refused(mask)) return false;
  present_.find_plain();
  return true;
}

void Matcher::prepare() {
  const Mask& mask = this->mask();
  if (present_.words() || plain(mask) || (mask.tokens->limits.empty() && !limit_reached() && !refused(mask))) return;
  Bitmask words(grammar_->vocabulary().words());
  fill(mask, words);
}

void Matcher::fill(const Mask& mask, std::span<uint32_t> words) {
  if (const Bitmask* kept = present_.words()) {
    std::copy(kept->begin(), kept->end(), words.begin());
    return;
  }
  if (plain(mask)) {
    automaton_->masks().fill(mask, places_.back(), words);
    return;
  }
  LimitSet limits = fill_within_budget(mask, words);
  if (const TokenSet* out = refused(mask)) {
    out->remove_from(words);
    if (progress_.back().limited) limits.add(progress_.back().limits);
  }
  std::shared_ptr<const Bitmask> at_limit;
  if (limit_reached()) {
    at_limit = limited(mask);
    for (size_t i = 0; i < words.size(); ++i) words[i] &= (*at_limit)[i];
  } else if (!max_tokens_ && limits.empty()) {
    present_.find_exact();
    return;
  }
  note_limits(limits);
  if (!limits.empty()) allow_plan(words);
  present_.keep({words.begin(), words.end()}, std::move(at_limit));
}

// If limits were met, the mask has the next token of a way to finish, which stays in it; at its end, the end of generation.
// Only a token that takes more than `for_way` allows to verify is left out: then not even the way is known to be one.
void Matcher::allow_plan(std::span<uint32_t> words) {
  const Place place = here();
  const Vocabulary& vocabulary = grammar_->vocabulary();
  try {
    const Progress& progress = planned();
    const uint32_t token = vocabulary.first_token(*progress.plan, progress.at);
    const Stepping::Scope scope = automaton_->stepping().for_way();
    Place next = place;
    if (token != Vocabulary::no_token) {
      if (automaton_->token_limits().take(next, vocabulary.token(token))) set_bit(words, token);
    } else if (automaton_->stepping().accepting(place)) {
      for (uint32_t eos : vocabulary.eos()) set_bit(words, eos);
    }
  } catch (const LimitError&) {  // no way is known; the verified tokens remain
  }
}

// Returns the limits that were met.
LimitSet Matcher::fill_within_budget(const Mask& mask, std::span<uint32_t> words) {
  const Place& place = places_.back();
  if (!max_tokens_) return automaton_->masks().fill(mask, place, words);
  Budget::Remaining remaining{left(), progress_.back().read, 0, Vocabulary::no_token, false};
  if (ample(mask)) return automaton_->budget().fill(mask, place, words, remaining);
  LimitSet limits;
  try {
    const Progress& progress = planned();
    remaining.needed = progress.plan->counts[progress.at];
    remaining.plan_token = grammar_->vocabulary().first_token(*progress.plan, progress.at);
    remaining.soft = remaining.left < remaining.needed + margin_;
  } catch (const LimitError& error) {  // tokens known to fit are allowed
    limits.add(error.limit);
  }
  const Budget::Narrowed narrowed = automaton_->budget().fill_fitting(mask, place, remaining, words);
  if (narrowed.by_budget) progress_.back().narrowed = true;
  limits.add(narrowed.limits);
  return limits;
}

bool Matcher::accepting() {
  if (ended_) return false;
  const Place& place = here();
  const std::vector<uint32_t>& eos = grammar_->vocabulary().eos();
  if (present_.words() && !eos.empty()) return has_bit(*present_.words(), eos[0]);
  try {
    return automaton_->stepping().accepting(place);
  } catch (const LimitError&) {  // as the mask says
    Bitmask words(grammar_->vocabulary().words());
    fill(mask(), words);
    return !eos.empty() && has_bit(words, eos[0]);
  }
}

bool Matcher::finished() {
  if (ended_) return true;
  const Place& place = here();
  const bool used_up = max_tokens_ && left() == 0;
  try {
    const bool whole = automaton_->stepping().accepting(place) && !goes_on();
    if (used_up && !whole) progress_.back().narrowed = true;
    return whole || used_up;
  } catch (const LimitError&) {  // other continuations are unknown
    return used_up;
  }
}

bool Matcher::cut() {
  if (ended_ || !max_tokens_ || left() > 0) return false;
  try {
    return goes_on();
  } catch (const LimitError&) {  // other continuations are unknown
    return true;
  }
}

// Whether any token but the end of generation may follow.
bool Matcher::goes_on() {
  if (!grammar_->grammar().limits_tokens) return !automaton_->stepping().next_bytes(places_.back()).empty();
  const Mask& mask = automaton_->masks().of(places_.back());
  Bitmask words(grammar_->vocabulary().words());
  automaton_->masks().fill(mask, places_.back(), words);
  if (const TokenSet* out = refused(mask)) out->remove_from(words);
  for (uint32_t token : grammar_->vocabulary().eos()) clear_bit(words, token);
  return std::any_of(words.begin(), words.end(), [](uint32_t word) { return word != 0; });
}

std::string Matcher::shortest_completion() {
  const Place& place = here();
  return automaton_->completions().shortest(place);
}

uint64_t Matcher::tokens_to_finish() {
  if (ended_) return 0;
  const Place& place = here();
  const Progress& progress = progress_.back();
  return progress.plan ? progress.plan->counts[progress.at] : plan_from(place, nullptr, left())->counts[0];
}

std::vector<uint32_t> Matcher::completion() {
  std::vector<uint32_t> tokens;
  if (ended_) return tokens;
  const Place& place = here();
  const Progress& progress = progress_.back();
  const Vocabulary& vocabulary = grammar_->vocabulary();
  const std::shared_ptr<const Plan> plan = progress.plan ? progress.plan : plan_from(place, nullptr, left());
  for (size_t at = progress.plan ? progress.at : 0; at < plan->text.size(); at += vocabulary.token(tokens.back()).size()) {
    tokens.push_back(vocabulary.first_token(*plan, at));
  }
  if (!progress.plan && tokens.size() <= left()) {  // the caller will follow it, and limits must not interfere
    track();
    progress_.back().plan = plan;
    progress_.back().at = 0;
  }
  return tokens;
}

std::string Matcher::forced_bytes() {
  if (ended_) return {};
  Place place = here();
  const std::string forced = constrain::forced_bytes(automaton_->stepping(), place, max_forced_bytes);
  return forced.substr(0, forced.find(mark_begin));
}

// The forced bytes without an unfinished character at the end, and the offsets into `before` (the end of the text so
// far) and the forced bytes at which a token may begin that continues beyond their end.
std::pair<std::string, std::vector<uint32_t>> Matcher::forced_after(std::string_view before) {
  if (ended_) return {};
  Place place = here();
  const std::string forced = constrain::forced_bytes(automaton_->stepping(), place, max_forced_bytes);
  if (forced.empty()) return {};
  std::string text = std::string(before) + forced;
  const size_t whole = whole_symbols(text);
  if (whole <= before.size()) return {};
  if (whole < text.size()) {
    text.resize(whole);
    place = here();
    automaton_->stepping().step(place, std::string_view(text).substr(before.size()));
  }
  return {text.substr(before.size()), constrain::open_starts(automaton_->stepping(), automaton_->vocabulary(), text, place)};
}

// Whether the current lexeme has reached its limit.
bool Matcher::limit_reached() {
  if (ended_ || progress_.back().lexeme_tokens < least_limit_) return false;
  const LexId lexer = here().lexer;
  return progress_.back().lexeme_tokens >= automaton_->lexeme_limits().limit_of(lexer, limits_);
}

// The tokens allowed at the limit of the current lexeme, without regard to the budget. Never empty: a way to finish is
// in it.
std::shared_ptr<const Bitmask> Matcher::limited(const Mask& mask) {
  if (std::shared_ptr<const Bitmask> known = present_.at_limit()) return known;
  const Place& place = places_.back();
  Bitmask all(grammar_->vocabulary().words());
  automaton_->masks().fill(mask, place, all);
  Bitmask left = all;
  try {
    automaton_->lexeme_limits().keep_nearer(place.lexer, left);
    const Progress& progress = planned();
    const uint32_t token = grammar_->vocabulary().first_token(*progress.plan, progress.at);
    if (token != Vocabulary::no_token) set_bit(left, token);
  } catch (const LimitError&) {  // no way to finish was found, so all tokens stay
    left = all;
  }
  if (left != all && !progress_.back().shortened) {
    progress_.back().shortened = true;
    ++progress_.back().shortened_lexemes;
  }
  return std::make_shared<const Bitmask>(std::move(left));
}

// Counts `token`, which led from one place to another.
void Matcher::count_lexeme_tokens(Progress& progress, const Place& from, const Place& place, std::string_view token) {
  if (from.fresh || place.set != from.set || !automaton_->lexeme_limits().stays(from.lexer, token)) {
    progress.lexeme_tokens = 1;
    progress.shortened = false;
    return;
  }
  ++progress.lexeme_tokens;
}

Lexeme Matcher::lexeme() {
  Lexeme found;
  const Place& place = here();
  if (ended_ || place.fresh || !tracks_) return found;
  Stepping& stepping = automaton_->stepping();
  Lexer& lexer = stepping.lexer();
  stepping.allow_call();
  try {
    bool goes_on = false;
    for (int byte = 0; byte < 256 && !goes_on; ++byte) goes_on = lexer.step(place.lexer, static_cast<uint8_t>(byte)) != LexId::dead;
    if (!goes_on) return found;
    for (const Lexer::Entry& entry : lexer.copy_of_entries(place.lexer)) {
      if (entry.expression == ExprId::epsilon || lexer.is_none(entry.terminal)) continue;
      std::string rest = stepping.lexer().shortest_texts().of(entry.expression);
      const uint8_t kind = grammar_->grammar().kinds[index(lexer.base_terminal(entry.terminal))];
      if (kind < found.kind || (kind == found.kind && found.read && rest.size() >= found.rest.size())) continue;
      found.read = true;
      found.kind = kind;
      found.rest = std::move(rest);
    }
    found.tokens = std::min<size_t>(progress_.back().lexeme_tokens, tokens_.size());
    if (found.tokens == 0) return found;
    const size_t first = tokens_.size() - found.tokens;
    const std::string_view bytes = grammar_->vocabulary().token(tokens_[first]);
    Place at = places_[first];
    for (size_t i = 0; i < bytes.size(); ++i) {
      const Place before = at;
      stepping.step(at, static_cast<uint8_t>(bytes[i]));
      if (before.fresh || at.set != before.set) found.begin = i;
    }
  } catch (const LimitError&) {  // how the lexeme ends is unknown
    return {};
  }
  const uint64_t limit = found.kind < limits_.size() ? limits_[found.kind] : LexemeLimits::none;
  if (limit != LexemeLimits::none) found.left = limit - std::min<uint64_t>(limit, progress_.back().lexeme_tokens);
  return found;
}

bool Matcher::near_limit() {
  if (ended_) return false;
  const LexId lexer = here().lexer;
  const uint64_t lexeme_end = progress_.back().lexeme_tokens + near_end;
  if (lexeme_end >= least_limit_ && lexeme_end >= automaton_->lexeme_limits().limit_of(lexer, limits_)) return true;
  if (!max_tokens_) return false;
  const Mask& mask = this->mask();
  const uint64_t after = left();
  return after <= near_end + 1 || !mask.tokens->limits.empty() ||
         !automaton_->budget().any_surely_fits(mask, places_.back(), progress_.back().read, after - near_end - 1);
}

void Matcher::fill_unlimited(const Mask& mask, std::span<uint32_t> words) {
  const bool met = plain(mask) || !mask.tokens->limits.empty() || !automaton_->masks().fill(mask, places_.back(), words).empty();
  const TokenSet* out = met ? nullptr : refused(mask);
  if (met || progress_.back().limited) return fill(mask, words);
  if (out) out->remove_from(words);
}

const TokenSet* Matcher::refused(const Mask& mask) {
  if (!grammar_->grammar().limits_tokens) return nullptr;
  const Place place = places_.back();
  TokenLimits& limits = automaton_->token_limits();
  Bitmask words;
  if (!limits.knows_refused(place)) {
    words.resize(grammar_->vocabulary().words());
    automaton_->masks().fill(mask, place, words);
  }
  const TokenLimits::Refused* out = limits.refused(place, words);
  automaton_->stepping().allow_call();
  if (!out) return nullptr;
  note_limits(out->limits);
  if (!std::exchange(progress_.back().shortened, true)) ++progress_.back().shortened_lexemes;
  return &out->tokens;
}

std::optional<double> Matcher::temperature() {
  if (ended_ || !grammar_->grammar().has_temperatures) return std::nullopt;
  const Lexer& lexer = automaton_->stepping().lexer();
  const auto highest = [&](LexId state) {
    std::pair<bool, double> found{false, -1};  // whether the lexeme can go on, and its temperature
    for (const Lexer::Entry& entry : lexer.entries(state)) {
      if (entry.expression == ExprId::epsilon || lexer.is_none(entry.terminal)) continue;
      found.first = true;
      found.second = std::max(found.second, grammar_->grammar().temperatures[index(lexer.base_terminal(entry.terminal))]);
    }
    return found;
  };
  const Place& place = here();
  auto found = highest(place.lexer);
  if (!found.first && !place.fresh) {
    const Place next = automaton_->stepping().finished(place);
    if (next.set != SetId::none) found = highest(next.lexer);
  }
  return found.second < 0 ? std::nullopt : std::optional(found.second);
}

Explanation Matcher::explain(uint32_t token) {
  Explanation result;
  Place place = here();
  const Vocabulary& vocabulary = grammar_->vocabulary();
  if (ended_) return result;
  if (vocabulary.is_eos(token)) {
    result.allowed = automaton_->stepping().accepting(place);
    result.at_end = true;
  } else {
    std::string_view bytes = vocabulary.token(token);
    while (result.offset < bytes.size() && automaton_->stepping().step(place, static_cast<uint8_t>(bytes[result.offset]))) ++result.offset;
    result.allowed = !bytes.empty() && result.offset == bytes.size();
  }
  if (result.allowed) {
    const Mask& mask = this->mask();
    Bitmask words(vocabulary.words());
    fill(mask, words);
    result.at_limit = limit_reached() && !vocabulary.is_eos(token) && !has_bit(*limited(mask), token);
    if (const TokenSet* out = refused(mask)) result.at_limit |= out->contains(token);
    if (progress_.back().limited && !has_bit(words, token)) result.limits = progress_.back().limits;
    return result;
  }
  result.terminals = terminals_at(place);
  return result;
}

std::vector<uint32_t> Matcher::expected() { return ended_ ? std::vector<uint32_t>{} : terminals_at(here()); }

std::vector<uint32_t> Matcher::terminals_at(Place place) {
  std::vector<uint32_t> found;
  const Lexer& lexer = automaton_->stepping().lexer();
  auto add = [&](LexId state) {
    for (const Lexer::Entry& entry : lexer.entries(state)) {
      if (entry.expression == ExprId::epsilon || lexer.is_none(entry.terminal)) continue;  // the terminal ends here
      found.push_back(index(lexer.base_terminal(entry.terminal)));
    }
  };
  add(place.lexer);
  if (const Place next = automaton_->stepping().finished(place); next.set != SetId::none) add(next.lexer);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace constrain
