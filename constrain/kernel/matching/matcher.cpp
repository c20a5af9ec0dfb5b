// Reads tokens, and finds masks, plans and explanations for the current place.
#include "matching/matcher.h"

#include <algorithm>
#include <tuple>
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

std::vector<uint32_t> sorted(std::vector<uint32_t> numbers) {  // without equals
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

std::string without_borders(std::string text) {
  for (size_t at; (at = text.find(std::string{mark_begin, border_mark})) != text.npos;) text.erase(at, border_length(std::string_view(text).substr(at)));
  return text;
}

bool is_same(const auto& one, const auto& other) { return one && other ? *one == *other : one == other; }

}  // namespace

Matcher::Matcher(std::shared_ptr<CompiledGrammar> grammar, std::optional<uint64_t> max_tokens,
                 const std::vector<std::optional<uint64_t>>& lexeme_limits)
    : grammar_(std::move(grammar)), automaton_(grammar_->automaton()), readings_{{automaton_->stepping().start()}}, begins_{0},
      max_tokens_(max_tokens), progress_(1), present_(1) {
  for (const std::optional<uint64_t>& limit : lexeme_limits) {
    limits_.push_back(limit.value_or(LexemeLimits::none));
    least_limit_ = std::min(least_limit_, limits_.back());
  }
  tracks_ = max_tokens_ || least_limit_ != LexemeLimits::none || grammar_->grammar().limits_tokens || grammar_->has_readings();
  if (max_tokens_) begin_budget();
  begin();
}

void Matcher::begin() {
  left_out_ = {};
  follow_borders();
  note_left_out();
  present_.assign(readings(), {});
}

void Matcher::begin_budget() {
  progress_[0].plan = plan_from(place(), nullptr, *max_tokens_);
  const uint64_t needed = progress_[0].plan->counts[0];
  if (needed > *max_tokens_) {
    throw BudgetError("max_tokens is " + std::to_string(*max_tokens_) + ", but the shortest text known takes " + std::to_string(needed) + " tokens", needed);
  }
  margin_ = std::min(max_margin, (*max_tokens_ - needed) / 4);
  automaton_->budget().prepare();
}

// The current place. If a new generation has begun, the tokens are replayed in it, unless the present mask was asked
// for.
const Place& Matcher::here() {
  automaton_->stepping().allow_call();
  if (automaton_ != grammar_->automaton() && !is_asked()) {
    if (has_budget() && !ended_) {  // by present knowledge: searches of another generation may end differently
      try {
        planned();
      } catch (const LimitError&) {  // then it is computed later
      }
    }
    keep_last();
    replay(grammar_->automaton());
  }
  return place();
}

void Matcher::replay(std::shared_ptr<Automaton> next) {
  const Stepping::Scope scope = next->stepping().without_limits();  // a token accepted once is accepted again
  readings_[0].place = next->stepping().start();
  for (size_t i = 1; i < readings_.size(); ++i) {
    Place place = readings_[readings_[i].before].place;
    const std::string_view bytes = grammar_->bytes_of(readings_[i].id);
    if (grammar_->is_border(readings_[i].id)) {
      next->stepping().step(place, bytes);
    } else if (!grammar_->vocabulary().is_eos(readings_[i].id)) {
      next->token_limits().take(place, bytes);
    }
    readings_[i].place = place;
  }
  automaton_ = std::move(next);
  for (size_t i = 0; i < futures_.size(); ++i) futures_[i] = resolved(readings_[readings_.size() - futures_.size() + i].place);
  grammar_->keep_what_is_in_use();
}

bool Matcher::is_asked() const {
  return std::any_of(present_.begin(), present_.end(), [](const PresentMask& mask) { return mask.is_asked(); });
}

// The place; behind the lexeme, if no byte continues it. Equal for readings with the same future.
Place Matcher::resolved(const Place& place) {
  if (place.fresh) return place;
  for (const Lexer::Entry& entry : automaton_->stepping().lexer().entries(place.lexer)) {
    if (entry.expression != ExprId::epsilon) return place;
  }
  try {
    const Place after = automaton_->stepping().finished(place);
    return after.set == SetId::none ? place : after;
  } catch (const LimitError&) {  // then it is not known to be that of another reading
    return place;
  }
}

bool Matcher::is_full() const { return tokens_.size() % tokens_between_checks == 0 && !is_asked() && grammar_->is_full(); }

bool Matcher::accept(uint32_t token) {
  if (ended_) return false;
  if (is_full()) grammar_->renew_if_full();
  const size_t first = readings_.size();
  const uint32_t mark = grammar_->classes().mark_of(token);
  futures_.clear();
  left_out_ = {};
  try {
    if (grammar_->has_readings()) {
      read_in_order(token, mark);
    } else {
      read(token);
    }
  } catch (...) {
    drop(first);
    throw;
  }
  current_ = begins_.back();
  if (readings_.size() == first) return false;
  last_.accepted = tokens_.size();
  last_.masks.resize(present_.size());
  for (size_t i = 0; i < present_.size(); ++i) last_.masks[i] = present_[i].pass_on();
  tokens_.push_back(token);
  begins_.push_back(static_cast<uint32_t>(first));
  current_ = begins_.back();
  ended_ = grammar_->vocabulary().is_eos(token);
  try {
    if (!ended_) follow_borders();
  } catch (...) {
    rollback(1);
    throw;
  }
  note_left_out();
  present_.resize(readings());
  return true;
}

// Those whose plans end soonest come first: if there are too many readings, these can be completed as planned.
void Matcher::read_in_order(uint32_t token, uint32_t mark) {
  std::vector<std::tuple<uint64_t, uint32_t, uint32_t>> order;  // tokens of the plan, reading and id
  for (current_ = begins_.back(); current_ < readings_.size(); ++current_) {
    for (const uint32_t id : {token, mark}) {
      if (id != Vocabulary::no_token) order.emplace_back(begins_plan(id) ? progress().plan->counts[progress().at] : Budget::never_fits, current_, id);
    }
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& one, const auto& other) { return std::get<0>(one) < std::get<0>(other); });
  for (const auto& [_, reading, id] : order) {
    current_ = reading;
    read(id);
  }
}

void Matcher::drop(size_t first) {
  readings_.resize(first);
  if (tracks_) progress_.resize(first);
  futures_.clear();
  current_ = begins_.back();
}

// Adds the reading after a further token or mark, if that is allowed.
void Matcher::read(uint32_t id) {
  if (!present().is_asked() && !begins_plan(id)) settle(id);
  if (present().words() && !has_bit(*present().words(), id)) return;
  Place next = here();
  Progress progress = tracks_ ? this->progress() : Progress{};
  if (grammar_->vocabulary().is_eos(id)) {
    if (!present().words() && !accepts_end()) return;
  } else {
    if (!step_over(next, id)) return;
    const std::string_view bytes = grammar_->vocabulary().token(id);
    if (tracks_) count_lexeme_tokens(progress, place(), next, bytes);
    if (tracks_) go_on(progress, place(), next, bytes);
  }
  progress.limited = false;
  if (progress.left_out) ++progress.limited_masks;
  add(next, current_, id, std::move(progress));
}

// Adds a reading with a new future, unless there are too many.
bool Matcher::add(const Place& place, uint32_t before, uint32_t id, Progress&& progress) {
  if (grammar_->has_readings()) {
    const Place future = resolved(place);
    const size_t first = readings_.size() - futures_.size();
    for (size_t i = 0; i < futures_.size(); ++i) {
      if (futures_[i] == future && is_same(progress_[first + i].rule, progress.rule)) return false;
    }
    if (futures_.size() == MAX_READINGS.value) {
      left_out_.add(Limit::readings);
      return false;
    }
    futures_.push_back(future);
  }
  readings_.push_back({place, before, id});
  if (tracks_) progress_.push_back(std::move(progress));
  return true;
}

// If readings are left out, masks lack the tokens that only those allow, from now on.
void Matcher::note_left_out() {
  if (left_out_.empty()) return;
  for (size_t i = begins_.back(); i < readings_.size(); ++i) {
    progress_[i].limits.add(left_out_);
    if (!std::exchange(progress_[i].left_out, true)) ++progress_[i].limited_masks;
  }
}

// Rules with a limit on their tokens -----------------------------------------------------------------------------------

// Adds the readings in which such rules end or begin at this place: right behind the reading that they go on from, so that
// if there are too many, the first readings can be completed.
void Matcher::follow_borders() {
  if (grammar_->rule_limits().empty()) return;
  const size_t first = begins_.back();
  const std::vector<Reading> taken(readings_.begin() + static_cast<ptrdiff_t>(first), readings_.end());
  std::vector<Progress> progress(progress_.begin() + static_cast<ptrdiff_t>(first), progress_.end());
  drop(first);
  for (size_t i = 0; i < taken.size(); ++i) add_with_borders(taken[i].place, taken[i].before, taken[i].id, std::move(progress[i]));
  current_ = begins_.back();
}

void Matcher::add_with_borders(const Place& place, uint32_t before, uint32_t id, Progress progress) {
  if (!add(place, before, id, std::move(progress))) return;
  const auto added = static_cast<uint32_t>(readings_.size() - 1);
  current_ = added;
  const size_t rules = grammar_->rule_limits().size();
  Place marked = here();
  try {
    if (!automaton_->stepping().step(marked, static_cast<uint8_t>(mark_begin))) return;
    if (this->progress().rule) return end_rule();
    for (size_t i = 0; i < rules; ++i) {
      current_ = added;
      begin_rule(i);
    }
  } catch (const LimitError& error) {  // no way to finish is known
    left_out_.add(error.limit);
  }
}

std::optional<Place> Matcher::beyond(uint32_t border) {
  Place place = here();
  return automaton_->stepping().step(place, grammar_->bytes_of(border)) ? std::optional(place) : std::nullopt;
}

void Matcher::begin_rule(size_t number) {
  const std::optional<Place> place = beyond(grammar_->border(number));
  if (!place) return;
  const uint64_t most = grammar_->rule_limits()[number], left = left_of_text();
  std::shared_ptr<const Plan> plan = plan_from(*place, progress().plan.get(), left);
  const auto in_rule = [](const Plan& plan) { return plan.counts[0] - plan.counts[plan.behind_border()]; };
  if (plan->counts[0] > left || in_rule(*plan) > most) return;
  const size_t end = plan->behind_border();
  const uint64_t after = plan->counts[end], needed = in_rule(*plan);
  automaton_->budget().prepare();
  Progress progress = this->progress();
  progress.rule = std::make_shared<const LimitedRule>(
      LimitedRule{number, tokens_.size(), plan->text.substr(end), after, std::min(max_margin, (std::min(most, left - after) - needed) / 4)});
  progress.plan = std::move(plan);
  progress.at = 0;
  progress.lexeme_tokens = 0;
  add_with_borders(*place, current_, grammar_->border(number), std::move(progress));
}

// A rule has one token at least: rules may be left out if they may be empty.
void Matcher::end_rule() {
  if (tokens_.size() == progress().rule->begin) return;
  const uint32_t border = grammar_->border(grammar_->rule_limits().size());
  const std::optional<Place> place = beyond(border);
  if (!place) return;
  Progress progress = this->progress();
  progress.lexeme_tokens = 0;
  if (progress.plan && border_length(std::string_view(progress.plan->text).substr(progress.at))) {
    progress.at += grammar_->bytes_of(border).size();
  } else {
    const std::shared_ptr<const Plan> plan = std::exchange(progress.plan, nullptr);
    if (max_tokens_) plan_after(progress, *place, progress.read, plan.get(), left_of_text(), nullptr);
  }
  progress.rule = nullptr;
  add_with_borders(*place, current_, border, std::move(progress));
}

// A mask that was exact may meet a limit in another generation.
void Matcher::keep_last() {
  for (size_t i = 0; i < last_.masks.size(); ++i) {
    if (!last_.masks[i].is_exact()) continue;
    const Place& place = readings_[begins_[last_.accepted] + i].place;
    Bitmask words(grammar_->vocabulary().words());
    automaton_->masks().fill(automaton_->masks().of(place), place, words);
    last_.masks[i].keep(std::move(words));
  }
}

// Computes what `accept` needs to know of the present mask, which was not asked for.
void Matcher::settle(uint32_t id) {
  const Mask& mask = this->mask();
  if (plain(mask)) return;
  const std::span<const uint32_t> dependent = mask.tokens->dependent;
  const bool by_itself = mask.tokens->limits.empty() && !has_budget() && !limit_reached();
  if (by_itself && std::find(dependent.begin(), dependent.end(), id) == dependent.end()) return;
  Bitmask words(grammar_->vocabulary().words());
  fill(mask, words);
}

// The next token of the plan is in every mask.
bool Matcher::begins_plan(uint32_t id) const {
  if (!tracks_) return false;
  const Progress& progress = this->progress();
  return progress.plan && grammar_->vocabulary().first_token(*progress.plan, progress.at) == id;
}

// Steps a token of the mask, however long that takes; a token that only the plan has, within what `allow_plan` has.
bool Matcher::step_over(Place& place, uint32_t id) {
  const std::string_view bytes = grammar_->vocabulary().token(id);
  if (bytes.empty()) return false;
  try {
    return automaton_->token_limits().take(place, bytes);
  } catch (const LimitError&) {
    if (!present().words() && !automaton_->masks().has_token(place, id)) return begins_plan(id) && step_in_plan(place, bytes);
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
  if (!tracks_) progress_.resize(readings_.size());
  tracks_ = true;
}

void Matcher::note_limits(LimitSet limits) {
  if (limits.empty()) return;
  track();
  Progress& progress = this->progress();
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
  if (!has_budget() || present().is_ample()) return;
  plan_after(progress, place, read, plan.get(), left_after, progress.rule ? &progress.rule->rest : nullptr);
}

void Matcher::plan_after(Progress& progress, const Place& place, size_t read, const Plan* like, uint64_t left_after, const std::string* rest) {
  try {
    if (automaton_->budget().surely_fits(place, read, automaton_->budget().sure(left_after, rest ? after_rule() : std::nullopt))) return;
    std::shared_ptr<const Plan> next = plan_from(place, like, left_after, rest);
    if (next->counts[0] > left_after) return;  // fits nevertheless: the mask used a bound shorter than this text
    progress.plan = std::move(next);
    progress.at = 0;
  } catch (const LimitError&) {  // no way is known, but a bound fits
  }
}

// A plan of at most `limit` tokens, if possible. `rest`: the text behind the next border, in a rule with a limit.
std::shared_ptr<const Matcher::Plan> Matcher::plan_from(const Place& place, const Plan* like, uint64_t limit, const std::string* rest) {
  const Stepping::Scope scope = automaton_->stepping().for_way();
  TokenLimits& limits = automaton_->token_limits();
  const auto spelled = [&](std::string text) {
    if (rest) text = text.substr(0, Plan{text, {}}.behind_border()) + *rest;
    return limits.spell(place, std::move(text), like);
  };
  auto plan = std::make_shared<Plan>(spelled(automaton_->completions().shortest(place)));
  const auto try_also = [&](std::string text) {
    Plan other = spelled(std::move(text));
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
  Progress& progress = this->progress();
  if (!progress.plan) {
    progress.plan = plan_here(left());
    progress.at = 0;
    if (progress.plan->counts[0] > left()) {
      throw LimitError("no way to finish within the token budget was found", Limit::budget_questions);
    }
  }
  return progress;
}

std::shared_ptr<const Matcher::Plan> Matcher::plan_here(uint64_t limit) {
  const Progress& progress = this->progress();
  return plan_from(place(), nullptr, limit, progress.rule ? &progress.rule->rest : nullptr);
}

void Matcher::rollback(size_t count) {
  if (count == 0) return;
  ended_ = false;
  const size_t left = tokens_.size() - count;
  readings_.resize(begins_[left + 1]);
  if (tracks_) progress_.resize(readings_.size());
  begins_.resize(left + 1);
  tokens_.resize(left);
  futures_.clear();
  current_ = begins_.back();
  if (last_.accepted == left && !last_.masks.empty()) {
    present_.swap(last_.masks);
  } else {
    present_.assign(readings(), {});
  }
  if (last_.accepted >= left) last_.masks.clear();
}

void Matcher::reset() {
  last_.masks.clear();
  tokens_.clear();
  begins_.resize(1);
  current_ = 0;
  ended_ = false;
  automaton_ = grammar_->automaton();
  readings_.assign(1, {automaton_->stepping().start()});
  Progress first;
  first.plan = progress_[0].plan;
  progress_.assign(1, first);
  begin();
}

bool Matcher::change_to(std::shared_ptr<CompiledGrammar> grammar, std::optional<uint64_t> max_tokens,
                        const std::vector<std::optional<uint64_t>>& lexeme_limits) {
  if (ended_ || grammar_->has_readings() || grammar->has_readings()) return false;
  Matcher next(std::move(grammar), std::nullopt, lexeme_limits);
  if (max_tokens) next.track();
  const Stepping::Scope scope = next.automaton_->stepping().without_limits();
  for (const uint32_t token : tokens_) {
    const std::string_view bytes = next.grammar_->vocabulary().token(token);
    const Place from = next.place();
    Place place = from;
    Progress progress = next.tracks_ ? next.progress() : Progress{};
    if (!next.automaton_->stepping().step(place, bytes)) return false;
    if (next.tracks_) {
      next.count_lexeme_tokens(progress, from, place, bytes);
      next.go_on(progress, from, place, bytes);
    }
    next.tokens_.push_back(token);
    next.begins_.push_back(static_cast<uint32_t>(next.readings_.size()));
    next.add(place, next.current_, token, std::move(progress));
    next.current_ = next.begins_.back();
  }
  next.present_.assign(1, {});
  if (max_tokens) {
    next.max_tokens_ = max_tokens;
    next.margin_ = margin_;
    next.automaton_->budget().prepare();
    Progress& progress = next.progress();
    progress.plan = next.plan_here(next.left());
    progress.at = 0;
    if (progress.plan->counts[0] > next.left()) return false;
  }
  *this = std::move(next);
  return true;
}

// Masks ---------------------------------------------------------------------------------------------------------------

const Mask* Matcher::known_mask() {
  const Place& place = here();
  return automaton_->masks().known(place);
}

const Mask& Matcher::mask() {
  if (!is_asked()) grammar_->renew_if_full();
  const Place& place = here();
  return automaton_->masks().of(place);
}

bool Matcher::knows_refused() { return !grammar_->grammar().limits_tokens || automaton_->token_limits().knows_refused(here()); }

bool Matcher::knows_mask() {
  return ended_ || !any_reading([this] { return !known_mask() || !knows_refused() || (!present().words() && limit_reached()); });
}

bool Matcher::known_plain() const {
  return std::all_of(present_.begin(), present_.end(), [](const PresentMask& mask) { return mask.is_plain(); });
}

bool Matcher::is_quick() {
  if (ended_ || known_plain()) return true;
  try {
    return !any_reading([this] {
      const Mask* known = known_mask();
      return !known || !knows_refused() || !plain(*known);
    });
  } catch (const LimitError&) {
    return false;
  }
}

bool Matcher::ample(const Mask& mask) {
  if (!has_budget()) return true;
  if (!mask.tokens->limits.empty()) return false;
  if (present().is_ample()) return true;
  const uint64_t after = left();  // one token less, and the margin
  const bool ample = after > margin() && automaton_->budget().any_surely_fits(mask, place(), progress().read, automaton_->budget().sure(after - margin() - 1, after_rule()));
  if (ample && mask.tokens->dependent.empty()) present().find_ample();  // otherwise some tokens have been judged one by one
  return ample;
}

bool Matcher::plain(const Mask& mask) {
  if (present().is_plain()) return true;
  if (present().words() || !mask.tokens->limits.empty() || !mask.tokens->dependent.empty() || !ample(mask) || limit_reached() || refused(mask)) return false;
  present().find_plain();
  return true;
}

void Matcher::prepare() {
  each_reading([this] {
    const Mask& mask = this->mask();
    if (present().words() || plain(mask) || (mask.tokens->limits.empty() && !limit_reached() && !refused(mask))) return;
    Bitmask words(grammar_->vocabulary().words());
    fill(mask, words);
  });
}

// The tokens that any reading allows; `fill` writes the ids that the current one does.
template <typename F>
void Matcher::fill_all(std::span<uint32_t> words, F&& fill) {
  if (!grammar_->has_readings()) return fill(words);
  Bitmask all(grammar_->vocabulary().words()), some(all.size());
  each_reading([&] {
    fill(std::span(some));
    for (size_t i = 0; i < all.size(); ++i) all[i] |= some[i];
  });
  grammar_->classes().add_tokens(all);
  std::copy_n(all.begin(), words.size(), words.begin());
}

void Matcher::fill(std::span<uint32_t> words) {
  fill_all(words, [this](std::span<uint32_t> ids) { fill(mask(), ids); });
}

void Matcher::fill_unlimited(std::span<uint32_t> words) {
  fill_all(words, [this](std::span<uint32_t> ids) { fill_unlimited(mask(), ids); });
}

void Matcher::fill(const Mask& mask, std::span<uint32_t> words) {
  if (const Bitmask* kept = present().words()) {
    std::copy(kept->begin(), kept->end(), words.begin());
    return;
  }
  if (plain(mask)) {
    automaton_->masks().fill(mask, place(), words);
    return;
  }
  LimitSet limits = fill_within_budget(mask, words);
  if (const TokenSet* out = refused(mask)) {
    out->remove_from(words);
    if (progress().limited) limits.add(progress().limits);
  }
  std::shared_ptr<const Bitmask> at_limit;
  if (limit_reached()) {
    at_limit = limited(mask);
    for (size_t i = 0; i < words.size(); ++i) words[i] &= (*at_limit)[i];
  } else if (!has_budget() && limits.empty()) {
    present().find_exact();
    return;
  }
  note_limits(limits);
  if (!limits.empty()) allow_plan(words);
  present().keep({words.begin(), words.end()}, std::move(at_limit));
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
  const Place place = this->place();
  if (!has_budget()) return automaton_->masks().fill(mask, place, words);
  Budget::Remaining remaining{left(), progress().read, 0, Vocabulary::no_token, false, after_rule()};
  if (ample(mask)) return automaton_->budget().fill(mask, place, words, remaining);
  LimitSet limits;
  try {
    const Progress& progress = planned();
    remaining.needed = progress.plan->counts[progress.at];
    remaining.plan_token = grammar_->vocabulary().first_token(*progress.plan, progress.at);
    remaining.soft = remaining.left < remaining.needed + margin();
  } catch (const LimitError& error) {  // tokens known to fit are allowed
    limits.add(error.limit);
  }
  const Budget::Narrowed narrowed = automaton_->budget().fill_fitting(mask, place, remaining, words);
  if (narrowed.by_budget) (rule_decides() ? progress().narrowed_in_rule : progress().narrowed) = true;
  limits.add(narrowed.limits);
  return limits;
}

bool Matcher::accepting() {
  return !ended_ && any_reading([this] { return accepts_end(); });
}

bool Matcher::accepts_end() {
  const Place& place = here();
  const std::vector<uint32_t>& eos = grammar_->vocabulary().eos();
  if (present().words() && !eos.empty()) return has_bit(*present().words(), eos[0]);
  try {
    return automaton_->stepping().accepting(place);
  } catch (const LimitError&) {  // as the mask says
    Bitmask words(grammar_->vocabulary().words());
    fill(mask(), words);
    return !eos.empty() && has_bit(words, eos[0]);
  }
}

bool Matcher::finished() {
  return ended_ || !any_reading([this] { return !reads_no_more(); });
}

bool Matcher::reads_no_more() {
  const Place& place = here();
  const bool used_up = is_used_up();
  try {
    const bool whole = (!grammar_->rule_limits().empty() || automaton_->stepping().accepting(place)) && !can_go_on();
    if (used_up && !whole) (left_of_text() == 0 ? progress().narrowed : progress().narrowed_in_rule) = true;
    return whole || used_up;
  } catch (const LimitError&) {  // other continuations are unknown
    return used_up;
  }
}

bool Matcher::cut() {
  if (ended_ || !has_budget()) return false;
  bool goes_on = false, has_tokens = false;
  each_reading([&] {
    try {
      here();
      if (!can_go_on()) return;
    } catch (const LimitError&) {  // other continuations are unknown
    }
    goes_on = true;
    has_tokens |= !is_used_up();
  });
  return goes_on && !has_tokens;
}

// Whether any token but the end of generation may follow.
bool Matcher::can_go_on() {
  Stepping& stepping = automaton_->stepping();
  if (!grammar_->grammar().limits_tokens) {
    const ByteSet next = stepping.next_bytes(place());
    const auto mark = static_cast<uint8_t>(mark_begin);
    if (grammar_->rule_limits().empty() || next != ByteSet::range(mark, mark)) return !next.empty();
    Place marked = place();
    stepping.step(marked, mark);
    const auto border = static_cast<uint8_t>(border_mark);
    return stepping.next_bytes(marked) != ByteSet::range(border, border);
  }
  const Mask& mask = automaton_->masks().of(place());
  Bitmask words(grammar_->vocabulary().words());
  automaton_->masks().fill(mask, place(), words);
  if (const TokenSet* out = refused(mask)) out->remove_from(words);
  for (uint32_t token : grammar_->vocabulary().eos()) clear_bit(words, token);
  return std::any_of(words.begin(), words.end(), [](uint32_t word) { return word != 0; });
}

std::string Matcher::shortest_completion() {
  std::optional<std::string> shortest;
  each_reading([&] {
    const std::string text = grammar_->classes().spelled(without_borders(automaton_->completions().shortest(here())));
    if (!shortest || text.size() < shortest->size()) shortest = text;
  });
  return *shortest;
}

uint64_t Matcher::needed_here() {
  here();
  const Progress& progress = this->progress();
  return progress.plan ? progress.plan->counts[progress.at] : plan_here(left())->counts[0];
}

uint64_t Matcher::tokens_to_finish() {
  uint64_t fewest = ended_ ? 0 : Budget::never_fits;
  if (!ended_) each_reading([&] { fewest = std::min(fewest, needed_here()); });
  return fewest;
}

std::vector<uint32_t> Matcher::completion() {
  std::vector<uint32_t> tokens;
  if (ended_) return tokens;
  uint32_t best = begins_.back();
  if (readings() > 1) {
    uint64_t fewest = Budget::never_fits;
    each_reading([&] {
      const uint64_t needed = needed_here();
      if (needed >= fewest) return;
      fewest = needed;
      best = current_;
    });
  }
  current_ = best;
  here();
  const Progress& progress = this->progress();
  const Vocabulary& vocabulary = grammar_->vocabulary();
  const std::shared_ptr<const Plan> plan = progress.plan ? progress.plan : plan_here(left());
  for (size_t at = progress.plan ? progress.at : 0; at < plan->text.size();) {
    if (const size_t border = border_length(std::string_view(plan->text).substr(at))) {
      at += border;
      continue;
    }
    const uint32_t id = vocabulary.first_token(*plan, at);
    at += vocabulary.token(id).size();
    tokens.push_back(grammar_->classes().shown(id));
  }
  if (!progress.plan && tokens.size() <= left()) {  // the caller will follow it, and limits must not interfere
    track();
    this->progress().plan = plan;
    this->progress().at = 0;
  }
  current_ = begins_.back();
  return tokens;
}

std::string Matcher::forced_bytes() {
  std::optional<std::string> same;
  if (!ended_) {
    each_reading([&] {
      Place place = here();
      const std::string forced = constrain::forced_bytes(automaton_->stepping(), place, max_forced_bytes);
      const std::string text = forced.substr(0, forced.find(mark_begin));
      if (!same) same = text;
      same->resize(static_cast<size_t>(std::mismatch(same->begin(), same->end(), text.begin(), text.end()).first - same->begin()));
    });
  }
  return same.value_or("");
}

// The forced bytes without an unfinished character at the end, and the offsets into `before` (the end of the text so
// far) and the forced bytes at which a token may begin that continues beyond their end. Nothing is forced while there are
// several readings, or after a token that the grammar asks for by id. Grammars with limited rules force nothing, because
// the tokenizer does not know the borders of these rules.
std::pair<std::string, std::vector<uint32_t>> Matcher::forced_after(std::string_view before) {
  if (ended_ || readings() > 1 || !grammar_->rule_limits().empty()) return {};
  Place place = here();
  std::string text(before);
  text += constrain::forced_bytes(automaton_->stepping(), place, max_forced_bytes);
  const size_t forced = text.size();
  text.resize(std::min(forced, text.find(std::string{mark_begin, class_mark}, before.size())));
  text.resize(whole_symbols(text));
  if (text.size() <= before.size()) return {};
  if (text.size() < forced) {
    place = here();
    automaton_->stepping().step(place, std::string_view(text).substr(before.size()));
  }
  return {text.substr(before.size()), constrain::open_starts(automaton_->stepping(), automaton_->vocabulary(), text, place)};
}

// Whether the current lexeme has reached its limit.
bool Matcher::limit_reached() {
  if (ended_ || progress().lexeme_tokens < least_limit_) return false;
  const LexId lexer = here().lexer;
  return progress().lexeme_tokens >= automaton_->lexeme_limits().limit_of(lexer, limits_);
}

// The tokens allowed at the limit of the current lexeme, without regard to the budget. Never empty: a way to finish is
// in it.
std::shared_ptr<const Bitmask> Matcher::limited(const Mask& mask) {
  if (std::shared_ptr<const Bitmask> known = present().at_limit()) return known;
  const Place& place = this->place();
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
  if (left != all && !progress().shortened) {
    progress().shortened = true;
    ++progress().shortened_lexemes;
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
  if (ended_ || place.fresh || !tracks_ || grammar_->has_readings()) return found;
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
    found.tokens = std::min<size_t>(progress().lexeme_tokens, tokens_.size());
    if (found.tokens == 0) return found;
    const size_t first = tokens_.size() - found.tokens;
    const std::string_view bytes = grammar_->vocabulary().token(tokens_[first]);
    Place at = readings_[first].place;
    for (size_t i = 0; i < bytes.size(); ++i) {
      const Place before = at;
      stepping.step(at, static_cast<uint8_t>(bytes[i]));
      if (before.fresh || at.set != before.set) found.begin = i;
    }
  } catch (const LimitError&) {  // how the lexeme ends is unknown
    return {};
  }
  const uint64_t limit = found.kind < limits_.size() ? limits_[found.kind] : LexemeLimits::none;
  if (limit != LexemeLimits::none) found.left = limit - std::min<uint64_t>(limit, progress().lexeme_tokens);
  return found;
}

bool Matcher::near_limit() {
  const auto is_near = [this] {
    const LexId lexer = here().lexer;
    const uint64_t lexeme_end = progress().lexeme_tokens + near_end;
    if (lexeme_end >= least_limit_ && lexeme_end >= automaton_->lexeme_limits().limit_of(lexer, limits_)) return true;
    if (!has_budget()) return false;
    const Mask& mask = this->mask();
    const uint64_t after = left();
    Budget& budget = automaton_->budget();
    return after <= near_end + 1 || !mask.tokens->limits.empty() ||
           !budget.any_surely_fits(mask, place(), progress().read, budget.sure(after - near_end - 1, after_rule()));
  };
  return !ended_ && any_reading(is_near);
}

void Matcher::fill_unlimited(const Mask& mask, std::span<uint32_t> words) {
  const bool met = rule_decides() || plain(mask) || !mask.tokens->limits.empty() || !automaton_->masks().fill(mask, place(), words).empty();
  const TokenSet* out = met ? nullptr : refused(mask);
  if (met || progress().limited) return fill(mask, words);
  if (out) out->remove_from(words);
}

// Limits that were met ------------------------------------------------------------------------------------------------

bool Matcher::narrowed() {
  return any_reading([this] { return progress().narrowed; });
}

bool Matcher::narrowed_in_rule() {
  return any_reading([this] { return progress().narrowed_in_rule; });
}

uint64_t Matcher::shortened() {
  uint64_t most = 0;
  each_reading([&] { most = std::max<uint64_t>(most, progress().shortened_lexemes); });
  return most;
}

uint64_t Matcher::limited_masks() {
  uint64_t most = 0;
  each_reading([&] { most = std::max<uint64_t>(most, progress().limited_masks); });
  return most;
}

LimitSet Matcher::limits_met() {
  LimitSet limits;
  each_reading([&] { limits.add(progress().limits); });
  return limits;
}

const TokenSet* Matcher::refused(const Mask& mask) {
  if (!grammar_->grammar().limits_tokens) return nullptr;
  const Place place = this->place();
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
  if (!std::exchange(progress().shortened, true)) ++progress().shortened_lexemes;
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
  double all = -1;
  each_reading([&] {
    const Place& place = here();
    auto found = highest(place.lexer);
    if (!found.first && !place.fresh) {
      const Place next = automaton_->stepping().finished(place);
      if (next.set != SetId::none) found = highest(next.lexer);
    }
    all = std::max(all, found.second);
  });
  return all < 0 ? std::nullopt : std::optional(all);
}

// If no reading allows the token, the one that reads most of its text tells where it fails.
Explanation Matcher::explain(uint32_t token) {
  std::optional<Explanation> best;
  std::vector<uint32_t> terminals;
  const uint32_t mark = grammar_->classes().mark_of(token);
  if (ended_) return {};
  each_reading([&] {
    if (best && best->allowed) return;
    Explanation found = explain_here(token);
    terminals.insert(terminals.end(), found.terminals.begin(), found.terminals.end());
    if (!found.allowed && mark != Vocabulary::no_token) {
      if (Explanation marked = explain_here(mark); marked.allowed) found = std::move(marked);
    }
    if (!best || found.allowed || found.offset > best->offset) best = std::move(found);
  });
  best->terminals = sorted(std::move(terminals));
  return *best;
}

Explanation Matcher::explain_here(uint32_t id) {
  Explanation result;
  Place place = here();
  const Vocabulary& vocabulary = grammar_->vocabulary();
  if (vocabulary.is_eos(id)) {
    result.allowed = automaton_->stepping().accepting(place);
    result.at_end = true;
  } else {
    std::string_view bytes = vocabulary.token(id);
    while (result.offset < bytes.size() && automaton_->stepping().step(place, static_cast<uint8_t>(bytes[result.offset]))) ++result.offset;
    result.allowed = !bytes.empty() && result.offset == bytes.size();
  }
  if (result.allowed) {
    const Mask& mask = this->mask();
    Bitmask words(vocabulary.words());
    fill(mask, words);
    result.at_limit = limit_reached() && !vocabulary.is_eos(id) && !has_bit(*limited(mask), id);
    if (const TokenSet* out = refused(mask)) result.at_limit |= out->contains(id);
    if (progress().limited && !has_bit(words, id)) result.limits = progress().limits;
    return result;
  }
  result.terminals = terminals_at(place);
  return result;
}

std::vector<uint32_t> Matcher::expected() {
  std::vector<uint32_t> found;
  if (ended_) return found;
  each_reading([&] {
    const std::vector<uint32_t> terminals = terminals_at(here());
    found.insert(found.end(), terminals.begin(), terminals.end());
  });
  return sorted(std::move(found));
}

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
  return sorted(std::move(found));
}

}  // namespace constrain
