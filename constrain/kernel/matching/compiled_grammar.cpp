// Checks of a grammar with its vocabulary, and the start of new generations.
#include "matching/compiled_grammar.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/errors.h"

namespace constrain {

namespace {

constexpr uint64_t quick_finish = 50'000;  // bytes, states of counting rules, and counts within counts; beyond, a text is tried when compiling

// The only text of an expression with exactly one text.
std::string only_text(ExpressionStore& expressions, ExprId e) {
  std::string text;
  while (e != ExprId::epsilon) {
    text.push_back(static_cast<char>(expressions.first(e).first()));
    e = expressions.derivative(e, static_cast<uint8_t>(text.back()));
  }
  return text;
}

// The greatest product of the counts along rules that read one another, from the first rule on; in a circle each rule
// counts once.
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

CompiledGrammar::CompiledGrammar(Grammar grammar, std::shared_ptr<const Vocabulary> vocabulary, size_t limit, const Limits& limits, TokenRules rules)
    : grammar_(std::move(grammar)), vocabulary_(with_marks(std::move(vocabulary), rules.classes)), classes_(*vocabulary_, std::move(rules.classes)),
      rule_limits_(std::move(rules.limits)), limit_(limit), limits_(limits) {
  for (uint32_t i = 0; i < rule_limits_.size() + 1; ++i) borders_.push_back(numbered_mark(border_mark, i));
  check_bytes();
  renew();
  check_token_limits();
  if (takes_long_to_finish()) {
    automaton_->completions().check_finish(true);
  } else if (counts_nest()) {
    automaton_->completions().check_finish(false);
  }
}

std::shared_ptr<const Vocabulary> CompiledGrammar::with_marks(std::shared_ptr<const Vocabulary> vocabulary, const std::vector<TokenClasses::Ranges>& classes) {
  return classes.empty() ? std::move(vocabulary) : vocabulary->with_marks(static_cast<uint32_t>(classes.size()));
}

// Whether finding a shortest text may meet a limit because it is too long, judged by counts and lexemes alone.
bool CompiledGrammar::takes_long_to_finish() {
  uint64_t bytes = 0, states = 0;
  Distances distances;
  for (uint32_t t = 0; t < grammar_.terminals.size(); ++t) {
    const ExprId terminal = grammar_.terminals[t];
    if (terminal != ExprId::nothing) bytes += of_terminal(t, [&] { return distances.of(grammar_.expressions.nodes(), terminal); });
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
  return bytes > quick_finish || states > quick_finish;
}

// Whether counts within counts may make it too long.
bool CompiledGrammar::counts_nest() const {
  std::vector<uint64_t> counts(grammar_.rules.size());
  for (const State& state : grammar_.states) {
    for (uint32_t i = state.edges_begin; i < state.edges_begin + state.edges_count; ++i) {
      for (const Condition& condition : grammar_.conditions_of(grammar_.edges[i])) {
        counts[state.rule] = std::max<uint64_t>(counts[state.rule], condition.minimum);
      }
    }
  }
  return product_of_rules(grammar_, counts) > quick_finish;
}

// Every terminal must be a special token of the vocabulary, or have a match that single-byte tokens can spell;
// otherwise a mask could be empty.
void CompiledGrammar::check_bytes() {
  ExpressionStore& expressions = grammar_.expressions;
  const ByteSet& there = vocabulary_->bytes();
  for (uint32_t t = 0; t < grammar_.terminals.size(); ++t) {
    const ByteSet needed = expressions.alphabet(grammar_.terminals[t]);
    if (grammar_.terminals[t] == ExprId::nothing || (needed & there) == needed) continue;
    if (needed.contains(static_cast<uint8_t>(mark_begin))) {
      const std::string mark = only_text(expressions, grammar_.terminals[t]);
      if (border_length(mark) || vocabulary_->find(mark) != Vocabulary::no_token) continue;
      throw ModelError("terminal " + grammar_.terminal_names[t] + " is a special token that this vocabulary does not have");
    }
    const ExprId spelled = expressions.repetition(expressions.bytes(there), 0, unbounded);
    const ExprId written = of_terminal(t, [&] { return expressions.intersection({grammar_.terminals[t], spelled}); });
    if (written != ExprId::nothing) continue;
    std::string missing;
    needed.each([&](uint8_t byte) {
      static const char* digits = "0123456789abcdef";
      if (!there.contains(byte) && missing.size() < 40) missing += std::string(" 0x") + digits[byte >> 4] + digits[byte & 15];
    });
    throw ModelError("terminal " + grammar_.terminal_names[t] +
                     " cannot be written with this vocabulary, which has no single-byte tokens for the bytes" + missing);
  }
}

void CompiledGrammar::check_token_limits() {
  if (const auto few = automaton_->token_limits().find_too_few()) {
    const std::string name = grammar_.terminal_names[few->terminal], limit = std::to_string(grammar_.token_limits[few->terminal]);
    const std::string needed = std::to_string(few->needed);
    std::string message = "terminal " + name + ": max_tokens=" + limit + " is too few: ";
    message += few->by_beginnings ? "some of its texts take " + needed + " tokens of this vocabulary, and the lexeme before it may take the beginning of the others"
                                  : "its shortest text takes " + needed + " tokens of this vocabulary";
    throw TokenLimitError(message + "; give it " + needed + " or more", few->terminal);
  }
}

void CompiledGrammar::renew() {
  restore_expressions();
  automaton_ = std::make_shared<Automaton>(grammar_, *vocabulary_, limits_);
  automaton_->stepping().start();
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
  automaton_->stepping().allow_call();
  Place place = automaton_->stepping().start();
  bool accepted = automaton_->stepping().step(place, text) && automaton_->stepping().accepting(place);
  renew_if_full();
  return accepted;
}

bool CompiledGrammar::accepts(std::string_view text, std::span<const Detour> detours) {
  Stepping& stepping = automaton_->stepping();
  stepping.allow_call();
  std::map<size_t, std::vector<Place>> reached{{0, {stepping.start()}}};
  auto reach = [&](size_t at, const Place& place) {
    std::vector<Place>& places = reached[at];
    if (std::find(places.begin(), places.end(), place) != places.end()) return;
    if (places.size() == MAX_READINGS_OF_TEXT.value) throw LimitError(limit_message("this text can be read in too many ways", MAX_READINGS_OF_TEXT));
    places.push_back(place);
  };
  for (size_t next = 0; !reached.empty() && reached.begin()->first < text.size(); reached.erase(reached.begin())) {
    const auto& [at, places] = *reached.begin();
    while (next < detours.size() && detours[next].begin < at) ++next;
    for (Place place : places) {
      for (size_t i = next; i < detours.size() && detours[i].begin == at; ++i) {
        Place after = place;
        if (stepping.step(after, detours[i].instead)) reach(detours[i].end, after);
      }
      if (stepping.step(place, static_cast<uint8_t>(text[at]))) reach(at + 1, place);
    }
  }
  bool accepted = false;
  if (const auto last = reached.find(text.size()); last != reached.end()) {
    accepted = std::any_of(last->second.begin(), last->second.end(), [&](const Place& place) { return stepping.accepting(place); });
  }
  renew_if_full();
  return accepted;
}

std::vector<uint32_t> CompiledGrammar::terminals_read(const Place& place) {
  Lexer& lexer = automaton_->stepping().lexer();
  std::vector<uint32_t> found;
  for (TermId t : lexer.terminals_of(lexer.matched(place.lexer))) found.push_back(index(lexer.base_terminal(t)));
  return found;
}

std::optional<std::vector<CompiledGrammar::ReadLexeme>> CompiledGrammar::lexemes(std::string_view text) {
  Stepping& stepping = automaton_->stepping();
  Lexer& lexer = stepping.lexer();
  stepping.allow_call();
  std::vector<ReadLexeme> found;
  Place place = stepping.start();
  auto end_lexeme = [&](size_t end) {
    if (place.fresh) return;
    found.push_back({end, terminals_read(place)});
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if (lexer.step(place.lexer, byte) == LexId::dead) end_lexeme(i);
    if (!stepping.step(place, byte)) return std::nullopt;
  }
  end_lexeme(text.size());
  const bool accepted = stepping.accepting(place);
  renew_if_full();
  return accepted ? std::optional(std::move(found)) : std::nullopt;
}

std::optional<CompiledGrammar::LexemeGraph> CompiledGrammar::lexeme_graph(std::string_view text, std::span<const Detour> detours) {
  Stepping& stepping = automaton_->stepping();
  stepping.allow_call();
  struct Reading {
    Place place;
    uint32_t begin;  // node before the current lexeme
    bool operator==(const Reading&) const = default;
  };
  LexemeGraph graph{{0}, {}};
  std::map<size_t, std::vector<Reading>> reached{{0, {{stepping.start(), 0}}}};
  auto reach = [&](size_t at, const Reading& reading) {
    std::vector<Reading>& readings = reached[at];
    if (std::find(readings.begin(), readings.end(), reading) != readings.end()) return;
    if (readings.size() == MAX_READINGS_OF_TEXT.value) throw LimitError(limit_message("this text can be read in too many ways", MAX_READINGS_OF_TEXT));
    readings.push_back(reading);
  };
  for (size_t next = 0; !reached.empty() && reached.begin()->first < text.size(); reached.erase(reached.begin())) {
    const auto& [at, readings] = *reached.begin();
    std::vector<Reading> begun;  // places between lexemes here
    while (next < detours.size() && detours[next].begin < at) ++next;
    for (const Reading& reading : readings) {
      std::optional<Reading> after_lexeme;
      auto step = [&](size_t to, std::string_view bytes) {
        Place place = reading.place;
        if (!stepping.step(place, bytes)) return;
        if (stepping.lexer().step(reading.place.lexer, static_cast<uint8_t>(bytes[0])) != LexId::dead) return reach(to, {place, reading.begin});
        if (!after_lexeme) {
          const Place finished = stepping.finished(reading.place);
          const auto known = std::find_if(begun.begin(), begun.end(), [&](const Reading& each) { return each.place == finished; });
          if (known == begun.end()) {
            after_lexeme = begun.emplace_back(Reading{finished, static_cast<uint32_t>(graph.offsets.size())});
            graph.offsets.push_back(at);
          } else {
            after_lexeme = *known;
          }
          graph.lexemes.push_back({reading.begin, after_lexeme->begin, terminals_read(reading.place)});
        }
        reach(to, {place, after_lexeme->begin});
      };
      for (size_t i = next; i < detours.size() && detours[i].begin == at; ++i) step(detours[i].end, detours[i].instead);
      step(at + 1, text.substr(at, 1));
    }
  }
  bool accepted = false;
  const auto end = static_cast<uint32_t>(graph.offsets.size());
  if (const auto last = reached.find(text.size()); last != reached.end()) {
    for (const Reading& reading : last->second) {
      if (!stepping.accepting(reading.place)) continue;
      accepted = true;
      if (!reading.place.fresh) graph.lexemes.push_back({reading.begin, end, terminals_read(reading.place)});
    }
  }
  if (!text.empty()) graph.offsets.push_back(text.size());
  renew_if_full();
  return accepted ? std::optional(std::move(graph)) : std::nullopt;
}

}  // namespace constrain
