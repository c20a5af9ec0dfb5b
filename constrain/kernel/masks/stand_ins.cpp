// Finds stand-ins.
//
// A text may be left out if no mask depends on it: no token contains the whole text where a lexeme may begin, and
// wherever a token ends within it, infinitely many other texts go on. So what is live stays live without the text, and
// what matches within a token stays the same.
#include "masks/stand_ins.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string>

#include "base/errors.h"
#include "base/ways.h"
#include "expressions/derivatives.h"

namespace constrain {

namespace {

constexpr size_t max_derivatives = 300;  // derivatives of one terminal

}  // namespace

std::optional<Place> StandIns::of(const Place& place) {
  if (has_none() || !uses("stand-ins")) return std::nullopt;
  try {
    Place stand_in = place;
    stand_in.set = of_set(place.set);
    if (stand_in.set == place.set) return std::nullopt;
    const std::optional<LexId> lexer = of_lexer(place, stand_in.set);
    if (!lexer) return std::nullopt;
    stand_in.lexer = *lexer;
    return stand_in;
  } catch (const LimitError&) {  // then the mask of the place itself is computed, perhaps within limits
    return std::nullopt;
  }
}

// Sets and origins --------------------------------------------------------------------------------------------------

SetId StandIns::of_set(SetId set) {
  if (index(set) < sets_.size() && sets_[index(set)] != not_known) return SetId{sets_[index(set)]};
  const std::vector<Item> own = parser_.copy_of_items(set);
  std::vector<Item> items = of_items(own);
  SetId result = set;
  if (items != own) {
    const SetId found = parser_.set_of(std::move(items), parser_.ends(set));
    if (has_own_terminals(set, found)) result = found;
  }
  if (sets_.size() <= index(set)) sets_.resize(index(set) + 1, not_known);
  return SetId{sets_[index(set)] = index(result)};
}

// Whether each terminal made from memory after `set` becomes a terminal of its own after the stand-in. Two terminals of
// one base must not become one, because the current lexeme may be a text of only one of them.
bool StandIns::has_own_terminals(SetId set, SetId stand_in) {
  const std::vector<Parser::Step> steps = parser_.copy_of_steps(parser_.closure(set));
  for (size_t i = steps.size(); i-- > 0 && lexer_.is_derived(steps[i].terminal);) {  // these have the greatest ids
    const TermId base = lexer_.base_terminal(steps[i].terminal);
    if (grammar_.is_ignored(base)) return false;
    for (const Parser::Step& step : steps) {
      if (step.terminal != steps[i].terminal && lexer_.base_terminal(step.terminal) == base) return false;
    }
    if (!of_terminal(steps[i].terminal, stand_in)) return false;
  }
  return true;
}

OriginId StandIns::known_origin(OriginId origin) const {
  return index(origin) < origins_.size() && origins_[index(origin)] != not_known ? OriginId{origins_[index(origin)]} : origin;
}

// While the origins behind an origin are followed, it stands for itself. So an origin that waits for itself in the end
// keeps its texts there, and only the first round is without them.
OriginId StandIns::of_origin(OriginId origin) {
  std::vector<Visit> visits{{origin, false}};
  try {
    while (!visits.empty()) visit(visits);
  } catch (...) {
    for (const Visit& each : visits) {
      if (each.again) origins_[index(each.origin)] = not_known;
    }
    throw;
  }
  return known_origin(origin);
}

void StandIns::visit(std::vector<Visit>& visits) {
  const auto [origin, again] = visits.back();
  const uint32_t at = index(origin);
  if (again) {
    const std::vector<Item> own = parser_.copy_of_waiting(origin);
    std::vector<Item> items = with_less(own);
    if (items != own) origins_[at] = index(parser_.origin_of(std::move(items), parser_.ends_text(origin)));
    visits.pop_back();
    return;
  }
  visits.pop_back();
  if (origins_.size() <= at) origins_.resize(at + 1, not_known);
  if (origins_[at] != not_known) return;
  origins_[at] = at;
  visits.push_back({origin, true});
  for (const Item& item : parser_.waiting(origin)) visits.push_back({item.origin, false});
}

std::vector<Item> StandIns::of_items(std::span<const Item> items) {
  for (const Item& item : items) of_origin(item.origin);
  return with_less(items);
}

// The items without the texts, if the stand-ins of their origins are known.
std::vector<Item> StandIns::with_less(std::span<const Item> items) {
  std::vector<Item> result;
  for (const Item& item : items) {
    result.push_back({item.state, known_origin(item.origin), of_memory(grammar_.state(item.state).rule, item.memory)});
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

MemoryId StandIns::of_memory(uint32_t rule, MemoryId memory) {
  const std::vector<int32_t>& slots = grammar_.rules[rule].slots;
  if (std::ranges::none_of(slots, [](int32_t slot) { return slot == text_set || slot == value_set; })) return memory;
  const uint64_t key = paired(rule, memory);
  if (const uint32_t* found = memories_.find(key)) return MemoryId{*found};
  MemoryId result = memory;
  for (uint32_t slot = 0; slot < slots.size(); ++slot) {
    if (slots[slot] != text_set && slots[slot] != value_set) continue;
    const std::span<const uint32_t> view = memory_.list(memory_.values(memory)[slot]);
    std::vector<uint32_t> numbers(view.begin(), view.end());
    std::erase_if(numbers, [&](uint32_t number) { return !is_told_apart(rule, slot, number); });
    result = memory_.with(result, slot, memory_.intern_list(numbers));
  }
  memories_.insert(key, index(result));
  return result;
}

// Lexer states ------------------------------------------------------------------------------------------------------

// The lexer state before `set`, the stand-in of the place's set. Its expressions are those of the place, or wider ones.
std::optional<LexId> StandIns::of_lexer(const Place& place, SetId set) {
  std::vector<Lexer::Entry> entries = lexer_.copy_of_entries(place.lexer);
  if (std::ranges::none_of(entries, [this](const Lexer::Entry& entry) { return lexer_.is_derived(entry.terminal); })) return place.lexer;
  for (Lexer::Entry& entry : entries) {
    if (!lexer_.is_derived(entry.terminal)) continue;
    const std::optional<TermId> terminal = of_terminal(entry.terminal, set);
    if (!terminal) return std::nullopt;
    entry = {*terminal, wider(entry, *terminal, place.text)};
  }
  return lexer_.state(std::move(entries));
}

// What a terminal made from memory has become after the stand-in of a set, if that is one terminal.
std::optional<TermId> StandIns::of_terminal(TermId terminal, SetId set) {
  const uint64_t key = paired(terminal, set);
  if (const uint32_t* found = terminals_.find(key)) return *found == not_known ? std::nullopt : std::optional(TermId{*found});
  const TermId base = lexer_.base_terminal(terminal);
  std::optional<TermId> result;
  bool several = false;
  for (const Parser::Step& step : parser_.copy_of_steps(parser_.closure(set))) {
    if (lexer_.base_terminal(step.terminal) != base) continue;
    several |= result && *result != step.terminal;
    result = step.terminal;
  }
  if (several) result = std::nullopt;
  terminals_.insert(key, result ? index(*result) : not_known);
  return result;
}

// The rest of the lexeme `text` without regard to the texts left out, if no token tells the difference; otherwise the
// rest itself.
ExprId StandIns::wider(const Lexer::Entry& entry, TermId stand_in, TextId text) {
  if (text == TextId::unknown || lexer_.is_lazy(entry.terminal)) return entry.expression;
  const ExprId rest = rest_after(lexer_.expression(stand_in), text);
  if (rest == entry.expression) return rest;
  if (rest_after(lexer_.expression(entry.terminal), text) != entry.expression) return entry.expression;  // the text is shortened
  const Lexer::Excluded all = lexer_.excluded(entry.terminal), kept = lexer_.excluded(stand_in);
  std::vector<uint32_t> left_out;
  std::ranges::set_difference(memory_.list(all.list), memory_.list(kept.list), std::back_inserter(left_out));
  for (uint32_t number : left_out) {
    const std::optional<ExprId> texts = texts_of(number, all.are_values);
    if (!texts || begins_tokens(rest_after(*texts, text), rest)) return entry.expression;
  }
  return rest;
}

// The derivative of an expression by a text; that by its beginning is mostly known.
ExprId StandIns::rest_after(ExprId e, TextId text) {
  std::vector<TextId> further;
  ExprId rest = e;
  for (TextId at = text; at != TextId::empty; at = memory_.beginning(at)) {
    if (const uint32_t* found = rests_.find(paired(e, at))) {
      rest = ExprId{*found};
      break;
    }
    further.push_back(at);
  }
  for (size_t i = further.size(); i-- > 0;) {
    rest = lexer_.expressions().derivative(rest, memory_.last(further[i]));
    rests_.insert(paired(e, further[i]), index(rest));
  }
  return rest;
}

// Texts -------------------------------------------------------------------------------------------------------------

bool StandIns::is_told_apart(uint32_t rule, uint32_t slot, uint32_t number) {
  const bool is_value = grammar_.rules[rule].slots[slot] == value_set;
  for (const Excluding& edge : excluding(rule)) {
    if (edge.slot != slot) continue;
    const Hash key = mix(mix(seeded(0x746F6C64), paired(edge.terminal, number)), is_value ? 1u : 0u);
    const uint8_t* found = told_apart_.find(key);
    bool told_apart = found && *found != 0;
    if (!found) {
      const std::optional<ExprId> texts = texts_of(number, is_value);
      told_apart = !texts || within_tokens(*texts, lexer_.expression(TermId{edge.terminal}));
      told_apart_.insert(key, told_apart ? 1 : 0);
    }
    if (told_apart) return true;
  }
  return false;
}

std::optional<ExprId> StandIns::texts_of(uint32_t number, bool is_value) {
  const uint64_t key = paired(number, is_value ? 1u : 0u);
  if (const std::optional<ExprId>* found = texts_.find(key)) return *found;
  const std::optional<ExprId> texts = slots_.texts_of(number, is_value);
  texts_.insert(key, texts);
  return texts;
}

const std::vector<StandIns::Excluding>& StandIns::excluding(uint32_t rule) {
  if (excluding_.empty()) {
    excluding_.resize(grammar_.rules.size());
    for (const State& state : grammar_.states) {
      for (const Edge& edge : std::span(grammar_.edges).subspan(state.edges_begin, state.edges_count)) {
        if (edge.excluding < 0) continue;
        std::vector<Excluding>& known = excluding_[state.rule];
        const Excluding found{static_cast<uint32_t>(edge.excluding), edge.symbol};
        if (std::find(known.begin(), known.end(), found) == known.end()) known.push_back(found);
      }
    }
  }
  return excluding_[rule];
}

// Whether some token tells that a lexeme which may begin anywhere in it is not one of `texts`.
bool StandIns::within_tokens(ExprId texts, ExprId terminal) {
  struct Suffixes {  // ends of tokens that share their first `read` bytes; all ends if that is 0
    std::span<const std::string_view> all;
    size_t read = 0;
  };
  bool too_many = false;
  const bool found = meets_end(texts, terminal, Suffixes{}, [&](const Suffixes& from, uint8_t byte) -> std::optional<Suffixes> {
    if (from.read == 0) {
      const std::vector<std::string_view>* suffixes = vocabulary_.suffixes_from(byte);
      too_many |= !suffixes;
      if (!suffixes || suffixes->empty()) return std::nullopt;
      return Suffixes{*suffixes, 1};
    }
    auto at = [&](std::string_view suffix) { return suffix.size() == from.read ? -1 : static_cast<int>(static_cast<uint8_t>(suffix[from.read])); };
    const auto range = std::ranges::equal_range(from.all, static_cast<int>(byte), {}, at);
    if (range.empty()) return std::nullopt;
    return Suffixes{{range.begin(), range.end()}, from.read + 1};
  });
  return found || too_many;
}

// The same of the lexeme in which the token begins: `texts` and `terminal` are the rests of both.
bool StandIns::begins_tokens(ExprId texts, ExprId terminal) {
  if (texts == ExprId::nothing) return false;
  const uint64_t key = paired(texts, terminal);
  if (const uint8_t* found = begins_tokens_.find(key)) return *found != 0;
  const bool begins = meets_end(texts, terminal, uint32_t{Trie::root}, [&](uint32_t node, uint8_t byte) -> std::optional<uint32_t> {
    const uint32_t next = vocabulary_.node_after(node, byte);
    return next == Trie::root ? std::nullopt : std::optional(next);
  });
  begins_tokens_.insert(key, begins ? 1 : 0);
  return begins;
}

// Whether infinitely many texts match; false if deciding takes long.
bool StandIns::is_endless(ExprId e) {
  if (lexer_.expressions().infinite(e)) return true;
  if (const uint8_t* found = endless_.find(index(e))) return *found != 0;
  bool endless = false;
  try {
    endless = has_endless_matches(lexer_.expressions(), e, max_derivatives).value_or(false);
  } catch (const LimitError&) {  // then it takes long
  }
  endless_.insert(index(e), endless ? 1 : 0);
  return endless;
}

// Follows the beginnings of `texts` that tokens have. Returns whether one of them is a whole text of the terminal, or
// perhaps only finitely many texts of the terminal go on from it.
template <typename Position, typename F>
bool StandIns::meets_end(ExprId texts, ExprId terminal, Position start, F&& next) {
  ExpressionStore& expressions = lexer_.expressions();
  if (!expressions[texts].finite) return texts != ExprId::nothing;
  struct Front {
    ExprId texts, terminal;
    Position position;
  };
  std::vector<Front> fronts{{texts, terminal, start}};
  while (!fronts.empty()) {
    const Front front = fronts.back();
    fronts.pop_back();
    if (front.texts == ExprId::nothing || front.terminal == ExprId::nothing) continue;
    if (expressions.nullable(front.texts) && expressions.nullable(front.terminal)) return true;
    if (!is_endless(front.terminal)) {
      if (expressions.intersection({front.texts, front.terminal}) != ExprId::nothing) return true;
      continue;  // the terminal has none of the texts
    }
    expressions.first(front.texts).each([&](uint8_t byte) {
      if (const std::optional<Position> position = next(front.position, byte)) {
        fronts.push_back({expressions.derivative(front.texts, byte), expressions.derivative(front.terminal, byte), *position});
      }
    });
  }
  return false;
}

}  // namespace constrain
