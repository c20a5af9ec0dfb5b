// Making and stepping lexer states.
#include "lexing/lexer.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "values/doubles.h"
#include "values/strings.h"

namespace constrain {

namespace {

constexpr size_t least_block = 32;  // texts or values; the rest is combined anew each time

// Digits of a mantissa before and after its point, where a number has an exponent.
constexpr long long max_mantissa_digits = 32;
constexpr size_t max_exact_form = 15;     // bytes: every integer of at most this length is a double
constexpr size_t zeros_of_nothing = 323;  // zeros after the point: a smaller number reads as 0

ByteSet bytes_of(std::string_view any) {
  ByteSet result;
  for (char c : any) result.add(static_cast<uint8_t>(c));
  return result;
}

}  // namespace

Lexer::Lexer(const ExpressionStore& expressions, std::vector<ExprId> terminals, const std::vector<bool>& remembered, const std::vector<bool>& lazy)
    : expressions_(expressions) {
  for (uint32_t i = 0; i < terminals.size(); ++i) terminals_.push_back({terminals[i], TermId{i}, remembered[i], false, lazy[i]});
  none_ = TermId{static_cast<uint32_t>(terminals_.size())};
  for (bool is_lazy : {false, true}) terminals_.push_back({ExprId::nothing, none_, false, false, is_lazy});
  match({});
  states_.push_back({0, 0, MatchId::none, false, false, false});
}

std::vector<Lexer::Entry> Lexer::copy_of_entries(LexId s) const {
  const std::span<const Entry> all = entries(s);
  return {all.begin(), all.end()};
}

LexId Lexer::state(std::vector<Entry> entries) {
  if (entries.empty()) return LexId::dead;
  std::sort(entries.begin(), entries.end(), [this](const Entry& a, const Entry& b) {
    if (a.expression == b.expression) return a.terminal < b.terminal;
    return expressions_.hash(a.expression) < expressions_.hash(b.expression);
  });
  Hash key = seeded(entries.size());
  for (const Entry& entry : entries) key = mix(mix(key, index(entry.terminal)), index(entry.expression));
  if (const uint32_t* found = ids_.find(key)) return LexId{*found};
  State made{static_cast<uint32_t>(entries_.size()), static_cast<uint32_t>(entries.size()), MatchId::none, false, false, false};
  std::vector<TermId> matched;
  for (const Entry& entry : entries) {
    const Terminal& terminal = terminals_[index(entry.terminal)];
    if (expressions_.nullable(entry.expression)) matched.push_back(entry.terminal);
    made.remembers |= terminal.remembered;
    made.context_dependent |= terminal.context_dependent;
    made.lazy |= terminal.lazy;
  }
  made.matched = match(std::move(matched));
  entries_.insert(entries_.end(), entries.begin(), entries.end());
  auto id = static_cast<uint32_t>(states_.size());
  states_.push_back(made);
  ids_.insert(key, id);
  return LexId{id};
}

LexId Lexer::step(LexId state_id, uint8_t byte) {
  if (const std::optional<LexId> found = known_step(state_id, byte)) return *found;
  std::vector<Entry> next;
  const State now = states_[index(state_id)];
  for (uint32_t i = 0; i < now.count; ++i) {
    Entry entry = entries_[now.begin + i];
    ExprId d = expressions_.derivative(entry.expression, byte);
    if (d != ExprId::nothing) next.push_back({entry.terminal, d});
  }
  if (now.lazy) end_at_lazy(next);
  LexId result = state(std::move(next));
  keep_step(state_id, byte, result);
  return result;
}

std::optional<LexId> Lexer::known_step(LexId state, uint8_t byte) const {
  const uint32_t* found = steps_.find((uint64_t{index(state)} << 8) | byte);
  return found ? std::optional(LexId{*found}) : stored_step(state, byte);
}

const ByteSet& Lexer::possible(LexId state) {
  if (const ByteSet* found = possible_.find(index(state))) return *found;
  ByteSet bytes;
  for (const Entry& entry : entries(state)) {
    const int16_t lead = expressions_[entry.expression].lead;
    if (lead >= 0) {
      bytes.add(static_cast<uint8_t>(lead));
    } else {
      bytes = bytes | expressions_.first(entry.expression);
    }
  }
  possible_.insert(index(state), bytes);
  return *possible_.find(index(state));
}

// If lazy terminals match, leaves these alone, at their ends.
void Lexer::end_at_lazy(std::vector<Entry>& entries) const {
  std::vector<Entry> ended;
  for (const Entry& entry : entries) {
    if (is_lazy(entry.terminal) && expressions_.nullable(entry.expression)) ended.push_back({entry.terminal, ExprId::epsilon});
  }
  if (!ended.empty()) entries = std::move(ended);
}

std::optional<LexId> Lexer::stored_step(LexId state, uint8_t byte) const {
  if (index(state) >= stored_steps_.ends.size()) return std::nullopt;
  const uint32_t end = stored_steps_.ends[index(state)];
  for (uint32_t run = index(state) == 0 ? 0 : stored_steps_.ends[index(state) - 1]; run < end; ++run) {
    const auto [first, last] = stored_steps_.bytes[run];
    if (byte <= last) return byte < first ? std::nullopt : std::optional(stored_steps_.targets[run]);
  }
  return std::nullopt;
}

Lexer::StepRuns Lexer::all_steps() const {
  std::vector<std::pair<uint64_t, LexId>> steps;
  steps_.each([&steps](uint64_t key, uint32_t target) { steps.emplace_back(key, LexId{target}); });
  for (uint32_t state = 0; state < stored_steps_.ends.size(); ++state) {
    for (unsigned byte = 0; byte < 256; ++byte) {
      const std::optional<LexId> target = stored_step(LexId{state}, static_cast<uint8_t>(byte));
      if (target) steps.emplace_back((uint64_t{state} << 8) | byte, *target);
    }
  }
  std::sort(steps.begin(), steps.end());
  StepRuns runs;
  runs.ends.resize(states_.size());
  uint64_t last = ~uint64_t{0};
  for (const auto& [key, target] : steps) {
    const auto byte = static_cast<uint8_t>(key & 255);
    if (byte != 0 && key == last + 1 && runs.targets.back() == target) {
      runs.bytes.back().second = byte;
    } else {
      runs.bytes.emplace_back(byte, byte);
      runs.targets.push_back(target);
    }
    runs.ends[key >> 8] = static_cast<uint32_t>(runs.bytes.size());
    last = key;
  }
  for (size_t state = 1; state < runs.ends.size(); ++state) runs.ends[state] = std::max(runs.ends[state], runs.ends[state - 1]);
  return runs;
}

MatchId Lexer::match(std::vector<TermId> terminals) {
  std::erase_if(terminals, [this](TermId t) { return is_none(t); });
  std::sort(terminals.begin(), terminals.end());
  Hash key = seeded(terminals.size());
  for (TermId t : terminals) key = mix(key, index(t));
  return MatchId{matched_.intern(key, terminals)};
}

TermId Lexer::without(TermId t, TextSetId set, const Memory& memory, const Values& values) {
  if (set == TextSetId::empty) return t;
  uint64_t key = paired(t, set);
  if (const uint32_t* found = without_.find(key)) return TermId{*found};
  const std::span<const uint32_t> all = memory.text_set(set);
  std::vector<uint32_t> known;
  std::copy_if(all.begin(), all.end(), std::back_inserter(known), [](uint32_t text) { return TextId{text} != TextId::unknown; });
  const ExprId used = in_blocks(0x74657874, known, [&](std::span<const uint32_t> block) {
    std::vector<std::string> texts;
    for (uint32_t text : block) texts.push_back(memory.text(TextId{text}));
    return spelled_texts(std::move(texts), values);
  });
  TermId result = derived(t, used, {index(set), false}, known.size() < all.size());
  without_.insert(key, index(result));
  return result;
}

// The result of `expression_of` for all numbers, combined from blocks. A new text or value gets the next number, and
// most blocks stay the same when a number is added at the end; so a set that grows by one is not combined anew.
template <typename F>
ExprId Lexer::in_blocks(uint64_t tag, std::span<const uint32_t> numbers, F&& expression_of) {
  std::vector<ExprId> parts;
  while (numbers.size() >= least_block) {
    const std::span<const uint32_t> block = numbers.first(std::bit_floor(numbers.size()));
    numbers = numbers.subspan(block.size());
    Hash key = mix(seeded(tag), block.size());
    for (uint32_t number : block) key = mix(key, number);
    const uint32_t* found = blocks_.find(key);
    parts.push_back(found ? ExprId{*found} : expression_of(block));
    if (!found) blocks_.insert(key, index(parts.back()));
  }
  if (!numbers.empty() || parts.empty()) parts.push_back(expression_of(numbers));
  return expressions_.alternation(std::move(parts));
}

TermId Lexer::derived(TermId t, ExprId used, Excluded excluded, bool context_dependent) {
  ExprId rest = expressions_.intersection({terminals_[index(t)].expression, expressions_.complement(used)});
  auto id = static_cast<uint32_t>(terminals_.size());
  const Terminal& from = terminals_[index(t)];
  terminals_.push_back({rest, from.base, from.remembered, context_dependent || from.context_dependent, from.lazy, excluded});
  return TermId{id};
}

TermId Lexer::without_values(TermId t, uint32_t list, const Memory& memory, const Values& values) {
  if (list == 0) return t;
  uint64_t key = paired(t, list);
  if (const uint32_t* found = without_values_.find(key)) return TermId{*found};
  std::vector<ValueId> scalars;
  bool context_dependent = false;
  for (uint32_t number : memory.list(list)) {
    ValueId value{number};
    if (value == ValueId::unknown_scalar) {
      context_dependent = true;
    } else if (!values.is_group(value)) {
      scalars.push_back(value);
    }
  }
  TermId result = scalars.empty() && !context_dependent ? t : derived(t, all_spelled(scalars, values, notation_of(t)), {list, true}, context_dependent);
  without_values_.insert(key, index(result));
  return result;
}

// With exponents a number has so many texts that they are combined only once.
ExprId Lexer::all_spelled(const std::vector<ValueId>& scalars, const Values& values, Notation notation) {
  if (notation != Notation::scientific) {
    std::vector<uint32_t> numbers;
    for (ValueId scalar : scalars) numbers.push_back(index(scalar));
    return in_blocks(0x7370656C + static_cast<uint64_t>(notation), numbers, [&](std::span<const uint32_t> block) {
      std::vector<ValueId> some;
      for (uint32_t number : block) some.push_back(ValueId{number});
      return spelled(some, values, notation);
    });
  }
  std::vector<ExprId> parts;
  for (ValueId scalar : scalars) {
    const uint32_t* found = spelled_.find(index(scalar));
    parts.push_back(found ? ExprId{*found} : spelled({scalar}, values, notation));
    if (!found) spelled_.insert(index(scalar), index(parts.back()));
  }
  return expressions_.alternation(std::move(parts));
}

ExprId Lexer::spelled_texts(std::vector<std::string> texts, const Values& values) {
  if (!values.strings_by_value()) return expressions_.literal_set(std::move(texts));
  const auto others = std::partition(texts.begin(), texts.end(), [](const std::string& text) { return is_string(text); });
  const ExprId rest = expressions_.literal_set({others, texts.end()});
  texts.erase(others, texts.end());
  return expressions_.alternation({string_spellings(expressions_, texts), rest});
}

// All texts of the scalars: a number's normal form may have zeros added after the point, zero may be negative. If
// numbers are compared by double, the texts of all numbers with the same double.
ExprId Lexer::spelled(const std::vector<ValueId>& scalars, const Values& values, Notation notation) {
  std::vector<std::string> texts, wholes, fractions;
  std::vector<ValueId> decimals;
  std::vector<ExprId> parts;
  for (ValueId value : scalars) {
    const std::string& text = values.text(value);
    if (!values.is_decimal(value)) {
      texts.push_back(text);
      continue;
    }
    if (values.by_double() && (notation != Notation::whole || text.size() > max_exact_form) && spell_double(text, notation, parts)) continue;
    decimals.push_back(value);
    if (text.find('e') != std::string::npos) continue;  // too long to be spelled in full
    if (text.find('.') != std::string::npos) {
      fractions.push_back(text);
    } else {
      wholes.push_back(text);
      if (text == "0") wholes.push_back("-0");
    }
  }
  ExpressionStore& e = expressions_;
  parts.push_back(spelled_texts(std::move(texts), values));
  if (!fractions.empty()) {
    parts.push_back(e.concatenation(e.literal_set(std::move(fractions)), e.repetition(e.literal("0"), 0, unbounded)));
  }
  if (!wholes.empty()) {
    ExprId zeros = e.concatenation(e.literal("."), e.repetition(e.literal("0"), 1, unbounded));
    parts.push_back(e.concatenation(e.literal_set(std::move(wholes)), e.repetition(zeros, 0, 1)));
  }
  if (notation == Notation::scientific && !decimals.empty()) spell_scientific(decimals, values, parts);
  return e.alternation(std::move(parts));
}

ExprId Lexer::exponent(long long number) {
  ExpressionStore& e = expressions_;
  std::vector<ExprId> parts;
  const ExprId zeros = e.repetition(e.literal("0"), 0, unbounded);
  const ExprId magnitude = e.concatenation(zeros, e.literal(std::to_string(number < 0 ? -number : number)));
  if (number >= 0) parts.push_back(e.concatenation(e.repetition(e.literal("+"), 0, 1), magnitude));
  if (number <= 0) parts.push_back(e.concatenation(e.literal("-"), magnitude));
  return e.concatenation(e.bytes(bytes_of("eE")), e.alternation(std::move(parts)));
}

// The texts of all numbers with the same double as `form`. False for infinity, and for 0, which has its own texts.
bool Lexer::spell_double(const std::string& form, Notation notation, std::vector<ExprId>& parts) {
  ExpressionStore& e = expressions_;
  const bool negative = form[0] == '-';
  double number = 0;
  if (!read_double(std::string_view(form).substr(negative), number) || number == 0) {
    if (form == "0" && notation != Notation::whole) {
      const ExprId any = e.repetition(e.bytes(ByteSet::range('0', '9')), 0, unbounded);
      const ExprId tiny = e.concatenation(e.literal("0." + std::string(zeros_of_nothing, '0')), any);
      parts.push_back(e.concatenation(e.repetition(e.literal("-"), 0, 1), tiny));
    }
    return false;
  }
  const Cell cell = cell_of(number);
  std::vector<ExprId> texts;
  for (long long position = cell.low.point; position <= cell.high.point; ++position) {
    texts.push_back(cell_texts(e, cell, position, position));
    if (notation != Notation::scientific) continue;
    for (long long whole = -max_mantissa_digits; whole <= max_mantissa_digits; ++whole) {
      texts.push_back(e.concatenation(cell_texts(e, cell, position, whole), exponent(position - whole)));
    }
  }
  parts.push_back(e.concatenation(e.literal(negative ? "-" : ""), e.alternation(std::move(texts))));
  return true;
}

// Texts with an exponent: one mantissa, up to zeros at its end, for each position of the point.
void Lexer::spell_scientific(const std::vector<ValueId>& decimals, const Values& values, std::vector<ExprId>& parts) {
  ExpressionStore& e = expressions_;
  const ExprId zeros = e.repetition(e.literal("0"), 0, unbounded);
  const ExprId zero_fraction = e.repetition(e.concatenation(e.literal("."), e.repetition(e.literal("0"), 1, unbounded)), 0, 1);
  const ByteSet digits = ByteSet::range('0', '9');
  std::vector<std::pair<long long, std::vector<std::string>>> whole, broken;  // by exponent: mantissas
  auto put = [](auto& groups, long long number, std::string mantissa) {
    auto same = std::find_if(groups.begin(), groups.end(), [=](const auto& group) { return group.first == number; });
    if (same == groups.end()) same = groups.insert(same, {number, {}});
    same->second.push_back(std::move(mantissa));
  };
  for (ValueId value : decimals) {
    const Magnitude number = magnitude_of(values.text(value));
    if (number.digits.empty()) {
      const ExprId any = e.concatenation(e.repetition(e.bytes(bytes_of("+-")), 0, 1), e.repetition(e.bytes(digits), 1, unbounded));
      const ExprId zero = e.concatenation(e.repetition(e.literal("-"), 0, 1), e.literal("0"));
      parts.push_back(e.concatenation(zero, e.concatenation(zero_fraction, e.concatenation(e.bytes(bytes_of("eE")), any))));
      continue;
    }
    const std::string sign = number.negative ? "-" : "";
    const auto length = static_cast<long long>(number.digits.size());
    for (long long point = -max_mantissa_digits; point <= max_mantissa_digits; ++point) {
      if (point >= length) {
        put(whole, number.point - point, sign + number.digits + std::string(static_cast<size_t>(point - length), '0'));
      } else if (point > 0) {
        put(broken, number.point - point, sign + number.digits.substr(0, static_cast<size_t>(point)) + "." + number.digits.substr(static_cast<size_t>(point)));
      } else {
        put(broken, number.point - point, sign + "0." + std::string(static_cast<size_t>(-point), '0') + number.digits);
      }
    }
  }
  for (auto& [number, mantissas] : whole) {
    parts.push_back(e.concatenation(e.literal_set(std::move(mantissas)), e.concatenation(zero_fraction, exponent(number))));
  }
  for (auto& [number, mantissas] : broken) {
    parts.push_back(e.concatenation(e.literal_set(std::move(mantissas)), e.concatenation(zeros, exponent(number))));
  }
}

// The widest notation in which the terminal writes numbers.
Lexer::Notation Lexer::notation_of(TermId t) {
  const TermId base = terminals_[index(t)].base;
  if (!terminals_[index(base)].notation) {
    ExpressionStore& e = expressions_;
    const ExprId mantissa = e.repetition(e.bytes(bytes_of("-.0123456789")), 1, unbounded);
    auto reads_behind_digits = [&](std::string_view any) {
      const ExprId numbers = e.concatenation(mantissa, e.concatenation(e.bytes(bytes_of(any)), ExprId::anything));
      return e.intersection({terminals_[index(base)].expression, numbers}) != ExprId::nothing;
    };
    Notation notation = Notation::whole;
    if (reads_behind_digits("eE")) {
      notation = Notation::scientific;
    } else if (reads_behind_digits(".")) {
      notation = Notation::fraction;
    }
    terminals_[index(base)].notation = notation;
  }
  return *terminals_[index(base)].notation;
}

bool Lexer::matches(TermId t, ValueId scalar, const Values& values) {
  uint64_t key = paired(t, scalar);
  if (const uint8_t* found = matches_.find(key)) return *found;
  ExprId expression = terminals_[index(t)].expression;
  bool result = values.is_decimal(scalar)
                    ? expressions_.intersection({expression, all_spelled({scalar}, values, notation_of(t))}) != ExprId::nothing
                    : expressions_.nullable(expressions_.derivative(expression, values.text(scalar)));
  matches_.insert(key, result);
  return result;
}

}  // namespace constrain
