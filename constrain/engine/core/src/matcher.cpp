// Matchers, and the change of generations.
#include "matcher.h"

#include <algorithm>
#include <utility>

#include "errors.h"

namespace constrain {

namespace {

constexpr size_t max_forced_bytes = 4096;      // at a time
constexpr size_t tokens_between_checks = 64;  // of the size of the tables, where no mask is asked for
constexpr uint64_t max_margin = 16;           // tokens
constexpr uint64_t short_way = 50'000;        // bytes, states of counting rules, and counts within counts; beyond, a text is tried when compiling

// Length of `text` without the beginning of a UTF-8 character at its end.
size_t whole_characters(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<uint8_t>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;  // of a character that began before
    const size_t length = byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : byte < 0xF8 ? 4 : 1;
    return length > back ? text.size() - back : text.size();
  }
  return text.size();
}

// Length of `text` without the beginning of a character or of a special token's name at its end.
size_t whole_symbols(std::string_view text) {
  const size_t mark = text.find_last_of(std::string_view("\xFE\xFF"));
  if (mark != text.npos && text[mark] == mark_begin) return mark;
  return whole_characters(text);
}

// The one text of an expression that has one.
std::string only_text(ExpressionStore& expressions, ExprId e) {
  std::string text;
  while (e != ExprId::epsilon) {
    text.push_back(static_cast<char>(expressions.first(e).first()));
    e = expressions.derivative(e, static_cast<uint8_t>(text.back()));
  }
  return text;
}

// The greatest product of the numbers of rules that read one another, from the first rule on; in a circle each counts once.
uint64_t product_of_rules(const Grammar& grammar, const std::vector<uint64_t>& numbers) {
  constexpr uint64_t unknown = 0;
  std::vector<uint64_t> products(numbers.size(), unknown);
  std::vector<bool> begun(numbers.size());
  std::vector<std::vector<uint32_t>> read(numbers.size());
  for (const State& state : grammar.states) {
    for (uint32_t i = state.edges_begin; i < state.edges_begin + state.edges_count; ++i) {
      if (grammar.edges[i].kind == EdgeKind::rule) read[state.rule].push_back(grammar.edges[i].symbol);
    }
  }
  std::vector<uint32_t> work{0};
  while (!work.empty()) {
    const uint32_t rule = work.back();
    if (!begun[rule]) {
      begun[rule] = true;
      for (uint32_t other : read[rule]) {
        if (!begun[other]) work.push_back(other);
      }
      continue;
    }
    work.pop_back();
    if (products[rule] != unknown) continue;
    uint64_t within = 1;
    for (uint32_t other : read[rule]) within = std::max(within, products[other]);
    products[rule] = std::min(within * std::max<uint64_t>(numbers[rule], 1), uint64_t{1} << 31);
  }
  return products[0];
}

}  // namespace

CompiledGrammar::CompiledGrammar(Grammar grammar, std::shared_ptr<const Vocabulary> vocabulary, size_t limit, const Limits& limits)
    : grammar_(std::move(grammar)), vocabulary_(std::move(vocabulary)), limit_(limit), limits_(limits) {
  check_bytes();
  renew();
  if (takes_long_to_finish()) {
    automaton_->check_finish(true);
  } else if (counts_nest()) {
    automaton_->check_finish(false);
  }
}

// May a shortest text be so long that finding it meets a limit? Told from counts and lexemes alone.
bool CompiledGrammar::takes_long_to_finish() {
  uint64_t bytes = 0, states = 0;
  for (uint32_t t = 0; t < grammar_.terminals.size(); ++t) {
    const ExprId terminal = grammar_.terminals[t];
    if (terminal != ExprId::nothing) bytes += of_terminal(t, [&] { return grammar_.expressions.distance(terminal); });
  }
  std::vector<uint64_t> edges(grammar_.rules.size()), counts(grammar_.rules.size());
  for (const State& state : grammar_.states) {
    for (uint32_t i = state.edges_begin; i < state.edges_begin + state.edges_count; ++i) {
      ++edges[state.rule];
      for (const Condition& condition : grammar_.conditions_of(grammar_.edges[i])) {
        counts[state.rule] = std::max<uint64_t>(counts[state.rule], condition.minimum);
      }
    }
  }
  for (size_t rule = 0; rule < edges.size(); ++rule) states = std::max(states, edges[rule] * counts[rule]);
  return bytes > short_way || states > short_way;
}

// May counts within counts make it too long?
bool CompiledGrammar::counts_nest() const {
  std::vector<uint64_t> counts(grammar_.rules.size());
  for (const State& state : grammar_.states) {
    for (uint32_t i = state.edges_begin; i < state.edges_begin + state.edges_count; ++i) {
      for (const Condition& condition : grammar_.conditions_of(grammar_.edges[i])) {
        counts[state.rule] = std::max<uint64_t>(counts[state.rule], condition.minimum);
      }
    }
  }
  return product_of_rules(grammar_, counts) > short_way;
}

// Every terminal must be a special token of the vocabulary, or have a match that single-byte tokens can spell: otherwise
// a mask may run empty.
void CompiledGrammar::check_bytes() {
  ExpressionStore& expressions = grammar_.expressions;
  ByteSet there;
  const Trie& trie = vocabulary_->trie();
  trie.each_child(Trie::root, [&](uint32_t child) {
    if (!trie.tokens(child).empty()) there.add(trie.byte(child));
  });
  const ExprId spelled = expressions.repetition(expressions.bytes(there), 0, unbounded);
  for (uint32_t t = 0; t < grammar_.terminals.size(); ++t) {
    const ByteSet needed = expressions.alphabet(grammar_.terminals[t]);
    if (grammar_.terminals[t] == ExprId::nothing || (needed & there) == needed) continue;
    if (needed.contains(static_cast<uint8_t>(mark_begin))) {
      if (vocabulary_->find(only_text(expressions, grammar_.terminals[t])) != Vocabulary::no_token) continue;
      throw ModelError("terminal " + grammar_.terminal_names[t] + " is a special token that this vocabulary does not have");
    }
    const ExprId written = of_terminal(t, [&] { return expressions.intersection({grammar_.terminals[t], spelled}); });
    if (written != ExprId::nothing) continue;
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
  automaton_ = std::make_shared<Automaton>(grammar_, *vocabulary_, limits_);
  automaton_->start();
  keep_what_is_in_use();
}

void CompiledGrammar::keep_what_is_in_use() { threshold_ = std::max(limit_, 2 * table_bytes()); }

size_t CompiledGrammar::table_bytes() const {
  const size_t bytes = automaton_->memory_bytes();
  memory_bytes_.store(bytes + grammar_.expressions.memory_bytes() + stored_.data.size(), std::memory_order_relaxed);
  return bytes;
}

bool CompiledGrammar::is_full() const { return table_bytes() > threshold_; }

void CompiledGrammar::renew_if_full() {
  if (!is_full()) return;
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

Matcher::Matcher(std::shared_ptr<CompiledGrammar> grammar, std::optional<uint64_t> max_tokens,
                 const std::vector<std::optional<uint64_t>>& lexeme_limits)
    : grammar_(std::move(grammar)), automaton_(grammar_->automaton()), max_tokens_(max_tokens), progress_(1) {
  places_.push_back(automaton_->start());
  for (const std::optional<uint64_t>& limit : lexeme_limits) {
    limits_.push_back(limit.value_or(Automaton::no_lexeme_limit));
    least_limit_ = std::min(least_limit_, limits_.back());
  }
  tracks_ = max_tokens_ || least_limit_ != Automaton::no_lexeme_limit;
  if (!max_tokens_) return;
  progress_[0].plan = plan_from(places_[0], nullptr, *max_tokens_);
  const uint64_t needed = progress_[0].plan->counts[0];
  if (needed > *max_tokens_) {
    throw BudgetError("max_tokens is " + std::to_string(*max_tokens_) + ", but the shortest text known takes " + std::to_string(needed) + " tokens", needed);
  }
  margin_ = std::min(max_margin, (*max_tokens_ - needed) / 4);
  automaton_->prepare_budget();
}

// The current place. If a new generation has begun, what has been read is read again in it, unless the mask here was
// asked for.
Place& Matcher::here() {
  automaton_->allow_call();
  if (automaton_ != grammar_->automaton() && !settled()) {
    if (max_tokens_ && !ended_) {  // as it is known now: searches of another generation may end otherwise
      try {
        planned();
      } catch (const LimitError&) {  // then as it is known later
      }
    }
    keep_last();
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

bool Matcher::is_full() const { return !settled() && tokens_.size() % tokens_between_checks == 0 && grammar_->is_full(); }

bool Matcher::accept(uint32_t token) {
  if (ended_) return false;
  if (is_full()) grammar_->renew_if_full();
  const bool at_limit = limit_reached();
  if (!settled() && !begins_plan(token)) settle(token);
  if (words_ && !has_bit(*words_, token)) return false;
  Place place = here();
  Progress progress = tracks() ? progress_.back() : Progress{};
  if (grammar_->vocabulary().is_eos(token)) {
    if (!words_ && !accepting()) return false;
    ended_ = true;
  } else {
    if (!step_over(place, token)) return false;
    const std::string_view bytes = grammar_->vocabulary().token(token);
    if (least_limit_ != Automaton::no_lexeme_limit) count_lexeme_tokens(progress, places_.back(), place, bytes, at_limit);
    if (tracks()) go_on(progress, places_.back(), place, bytes);
  }
  progress.limited = false;
  last_ = {tokens_.size(), std::move(words_), exact_};
  tokens_.push_back(token);
  places_.push_back(place);
  if (tracks()) progress_.push_back(std::move(progress));
  unsettle();
  return true;
}

void Matcher::unsettle() {
  ample_ = exact_ = plain_ = false;
  words_ = nullptr;
  limited_ = nullptr;
}

// A mask that was exact may meet a limit in another generation.
void Matcher::keep_last() {
  if (!std::exchange(last_.exact, false)) return;
  const Place& place = places_[last_.accepted];
  Bitmask words(grammar_->vocabulary().words());
  automaton_->fill(automaton_->mask(place), place, words);
  last_.words = std::make_shared<const Bitmask>(std::move(words));
}

// Finds out what `accept` needs to know of the mask here, which was not asked for.
void Matcher::settle(uint32_t token) {
  const Mask& mask = this->mask();
  if (plain(mask)) return;
  const std::span<const uint32_t> by_text = mask.tokens->by_text;
  const bool by_itself = mask.tokens->limits.empty() && !max_tokens_ && !limit_reached();
  if (by_itself && std::find(by_text.begin(), by_text.end(), token) == by_text.end()) return;
  Bitmask words(grammar_->vocabulary().words());
  fill(mask, words);
}

// The next token of the plan is in every mask.
bool Matcher::begins_plan(uint32_t token) const {
  if (!tracks()) return false;
  const Progress& progress = progress_.back();
  return progress.plan && grammar_->vocabulary().first_token(*progress.plan, progress.at) == token;
}

// A token that is in the mask is taken, however long it takes.
bool Matcher::step_over(Place& place, uint32_t token) {
  const std::string_view bytes = grammar_->vocabulary().token(token);
  if (bytes.empty()) return false;
  try {
    return automaton_->step(place, bytes);
  } catch (const LimitError&) {
    if (!words_ && !begins_plan(token) && !automaton_->has_token(place, token)) return false;
  }
  automaton_->allow_all();
  const bool taken = automaton_->step(place, bytes);
  automaton_->allow_call();
  return taken;
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

// Plans for what follows `token`, which is in the mask here and led to `place`.
void Matcher::go_on(Progress& progress, const Place& from, const Place& place, std::string_view token) {
  const uint64_t left_after = left() - 1;
  const size_t read = progress.read;  // as when the mask was made
  if (grammar_->grammar().reads_groups) {  // groups are values: any part of the text may be one
    progress.read += token.size();
  } else if (automaton_->lexer().remembers(from.lexer) || automaton_->lexer().remembers(place.lexer)) {
    progress.lexeme = (place.set == from.set ? progress.lexeme : 0) + token.size();
    progress.read = std::max(progress.read, progress.lexeme);
  }
  const std::shared_ptr<const Plan> plan = std::exchange(progress.plan, nullptr);
  const size_t end = progress.at + token.size();
  if (plan && std::string_view(plan->text).substr(progress.at).starts_with(token) && plan->counts[end] <= left_after) {
    progress.plan = plan;
    progress.at = end;
    return;
  }
  if (!max_tokens_ || ample_) return;
  try {
    if (automaton_->surely_fits(place, read, left_after)) return;
    std::shared_ptr<const Plan> next = plan_from(place, plan.get(), left_after);
    if (next->counts[0] > left_after) return;  // it fits: the mask was told so by what is shorter than what is found here
    progress.plan = std::move(next);
    progress.at = 0;
  } catch (const LimitError&) {  // likewise
  }
}

// Of at most `limit` tokens, if possible.
std::shared_ptr<const Matcher::Plan> Matcher::plan_from(const Place& place, const Plan* like, uint64_t limit) {
  automaton_->allow_way();
  auto plan = std::make_shared<Plan>(grammar_->vocabulary().spell(automaton_->shortest_completion(place), like));
  const auto try_also = [&](std::string text) {
    Plan other = grammar_->vocabulary().spell(std::move(text), like);
    if (other.counts[0] < plan->counts[0]) *plan = std::move(other);
  };
  if (plan->counts[0] > limit) try_also(automaton_->counted_completion(place));
  if (plan->counts[0] > limit) try_also(automaton_->shortest_completion(place, true));
  if (plan->counts[0] == Vocabulary::no_spelling) {
    throw GrammarError("the vocabulary has no token for a byte that the shortest completion needs");
  }
  automaton_->allow_call();
  return plan;
}

// What has been read so far, with a plan.
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
  unsettle();
  tokens_.resize(tokens_.size() - count);
  places_.resize(places_.size() - count);
  if (tracks()) progress_.resize(progress_.size() - count);
  if (last_.accepted == tokens_.size()) {
    words_ = last_.words;
    exact_ = last_.exact;
  }
  if (last_.accepted >= tokens_.size()) last_ = {};
}

void Matcher::reset() {
  unsettle();
  last_ = {};
  tokens_.clear();
  progress_.resize(1);
  progress_[0].narrowed = progress_[0].limited = progress_[0].shortened = false;
  progress_[0].limited_masks = progress_[0].shortened_lexemes = 0;
  progress_[0].limits = {};
  automaton_ = grammar_->automaton();
  places_.assign(1, automaton_->start());
  ended_ = false;
}

const Mask* Matcher::known_mask() {
  const Place& place = here();
  return automaton_->known_mask(place);
}

const Mask& Matcher::mask() {
  if (!settled()) grammar_->renew_if_full();
  const Place& place = here();
  return automaton_->mask(place);
}

bool Matcher::ample(const Mask& mask) {
  if (!max_tokens_) return true;
  if (!mask.tokens->limits.empty()) return false;
  if (ample_) return true;
  const uint64_t after = left();  // one token less, and the margin
  const bool ample = after > margin_ && automaton_->any_surely_fits(mask, places_.back(), progress_.back().read, after - margin_ - 1);
  ample_ = ample && mask.tokens->by_text.empty();  // else some tokens have been judged by themselves
  return ample;
}

bool Matcher::plain(const Mask& mask) {
  if (plain_) return true;
  if (words_ || !mask.tokens->limits.empty() || !mask.tokens->by_text.empty() || !ample(mask) || limit_reached()) return false;
  return plain_ = exact_ = true;
}

void Matcher::prepare() {
  const Mask& mask = this->mask();
  if (words_ || plain(mask) || (mask.tokens->limits.empty() && !limit_reached())) return;
  Bitmask words(grammar_->vocabulary().words());
  fill(mask, words);
}

void Matcher::fill(const Mask& mask, std::span<uint32_t> words) {
  if (words_) {
    std::copy(words_->begin(), words_->end(), words.begin());
    return;
  }
  if (plain(mask)) {
    automaton_->fill(mask, places_.back(), words);
    return;
  }
  const LimitSet limits = fill_within_budget(mask, words);
  if (limit_reached()) {
    const Bitmask& allowed = limited(mask);
    for (size_t i = 0; i < words.size(); ++i) words[i] &= allowed[i];
  } else if (!max_tokens_ && limits.empty()) {
    exact_ = true;
    return;
  }
  note_limits(limits);
  if (!limits.empty()) allow_plan(words);
  words_ = std::make_shared<const Bitmask>(words.begin(), words.end());
}

// Where limits were met, a way to finish is known to be in the mask, and stays there.
void Matcher::allow_plan(std::span<uint32_t> words) {
  const Place place = here();
  try {
    const Progress& progress = planned();
    const uint32_t token = grammar_->vocabulary().first_token(*progress.plan, progress.at);
    if (token == Vocabulary::no_token) return;
    automaton_->allow_all();
    Place next = place;
    if (automaton_->step(next, grammar_->vocabulary().token(token))) set_bit(words, token);
  } catch (const LimitError&) {  // no way is known: what was verified is left
  }
  automaton_->allow_call();
}

// Returns the limits that were met.
LimitSet Matcher::fill_within_budget(const Mask& mask, std::span<uint32_t> words) {
  const Place& place = places_.back();
  if (!max_tokens_) return automaton_->fill(mask, place, words);
  Automaton::Wall wall{left(), progress_.back().read, 0, Vocabulary::no_token, false};
  if (ample(mask)) return automaton_->fill(mask, place, words, &wall);
  LimitSet limits;
  try {
    const Progress& progress = planned();
    wall.needed = progress.plan->counts[progress.at];
    wall.plan_token = grammar_->vocabulary().first_token(*progress.plan, progress.at);
    wall.soft = wall.left < wall.needed + margin_;
  } catch (const LimitError& error) {  // then what is known to fit is allowed
    limits.add(error.limit);
  }
  const Automaton::Narrowed narrowed = automaton_->fill_within(mask, place, wall, words);
  if (narrowed.by_budget) progress_.back().narrowed = true;
  limits.add(narrowed.limits);
  return limits;
}

bool Matcher::accepting() {
  if (ended_) return false;
  const Place& place = here();
  const std::vector<uint32_t>& eos = grammar_->vocabulary().eos();
  if (words_ && !eos.empty()) return has_bit(*words_, eos[0]);
  try {
    return automaton_->accepting(place);
  } catch (const LimitError&) {  // as the mask has it
    return !eos.empty() && automaton_->has_token(place, eos[0]);
  }
}

bool Matcher::finished() {
  if (ended_) return true;
  const Place& place = here();
  const bool used_up = max_tokens_ && left() == 0;
  try {
    const bool whole = automaton_->accepting(place) && automaton_->next_bytes(place).empty();
    if (used_up && !whole) progress_.back().narrowed = true;
    return whole || used_up;
  } catch (const LimitError&) {  // what else is possible is not known
    return used_up;
  }
}

std::string Matcher::shortest_completion() {
  const Place& place = here();
  return automaton_->shortest_completion(place);
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
  if (!progress.plan && tokens.size() <= left()) {  // it is to be followed: limits must not come in between
    track();
    progress_.back().plan = plan;
    progress_.back().at = 0;
  }
  return tokens;
}

std::string Matcher::forced_bytes() {
  if (ended_) return {};
  Place place = here();
  const std::string forced = automaton_->forced_bytes(place, max_forced_bytes);
  return forced.substr(0, forced.find(mark_begin));
}

// The forced bytes without a character that is not all there, and the offsets into `before` (the end of what has been
// read) and them at which a token may begin that goes on beyond their end.
std::pair<std::string, std::vector<uint32_t>> Matcher::forced_after(std::string_view before) {
  if (ended_) return {};
  Place place = here();
  const std::string forced = automaton_->forced_bytes(place, max_forced_bytes);
  if (forced.empty()) return {};
  std::string text = std::string(before) + forced;
  const size_t whole = whole_symbols(text);
  if (whole <= before.size()) return {};
  if (whole < text.size()) {
    text.resize(whole);
    place = here();
    automaton_->step(place, std::string_view(text).substr(before.size()));
  }
  return {text.substr(before.size()), automaton_->open_starts(text, place)};
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
  if (result.allowed) {
    const Mask& mask = this->mask();
    Bitmask words(vocabulary.words());
    fill(mask, words);
    result.at_limit = limit_reached() && !vocabulary.is_eos(token) && !has_bit(limited(mask), token);
    if (progress_.back().limited && !has_bit(words, token)) result.limits = progress_.back().limits;
    return result;
  }
  auto add = [&](LexId lexer) {
    for (const Lexer::Entry& entry : automaton_->lexer().entries(lexer)) {
      if (entry.expression == ExprId::epsilon) continue;  // it has come to its end
      TermId t = automaton_->lexer().base_terminal(entry.terminal);
      if (std::find(result.terminals.begin(), result.terminals.end(), index(t)) == result.terminals.end()) {
        result.terminals.push_back(index(t));
      }
    }
  };
  add(place.lexer);
  if (const Place next = automaton_->finished(place); next.set != SetId::none) add(next.lexer);
  std::sort(result.terminals.begin(), result.terminals.end());
  return result;
}

}  // namespace constrain
