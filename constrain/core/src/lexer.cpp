// Making and stepping lexer states.
#include "lexer.h"

#include <algorithm>

namespace constrain {

Lexer::Lexer(const ExpressionStore& expressions, std::vector<ExprId> terminals, const std::vector<bool>& remembered)
    : expressions_(expressions) {
  for (uint32_t i = 0; i < terminals.size(); ++i) terminals_.push_back({terminals[i], TermId{i}, remembered[i], false});
  none_ = TermId{static_cast<uint32_t>(terminals_.size())};
  terminals_.push_back({ExprId::nothing, none_, false, false});
  match({});
  states_.push_back({0, 0, MatchId::none, false, false});
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
  State made{static_cast<uint32_t>(entries_.size()), static_cast<uint32_t>(entries.size()), MatchId::none, false, false};
  std::vector<TermId> matched;
  for (const Entry& entry : entries) {
    const Terminal& terminal = terminals_[index(entry.terminal)];
    if (expressions_.nullable(entry.expression)) matched.push_back(entry.terminal);
    made.remembers |= terminal.remembered;
    made.tentative |= terminal.tentative;
  }
  made.matched = match(std::move(matched));
  entries_.insert(entries_.end(), entries.begin(), entries.end());
  auto id = static_cast<uint32_t>(states_.size());
  states_.push_back(made);
  ids_.insert(key, id);
  return LexId{id};
}

LexId Lexer::step(LexId state_id, uint8_t byte) {
  uint64_t key = (uint64_t{index(state_id)} << 8) | byte;
  if (const uint32_t* found = steps_.find(key)) return LexId{*found};
  std::vector<Entry> next;
  const State now = states_[index(state_id)];
  for (uint32_t i = 0; i < now.count; ++i) {
    Entry entry = entries_[now.begin + i];
    ExprId d = expressions_.derivative(entry.expression, byte);
    if (d != ExprId::nothing) next.push_back({entry.terminal, d});
  }
  LexId result = state(std::move(next));
  steps_.insert(key, index(result));
  return result;
}

MatchId Lexer::match(std::vector<TermId> terminals) {
  std::sort(terminals.begin(), terminals.end());
  Hash key = seeded(terminals.size());
  for (TermId t : terminals) key = mix(key, index(t));
  if (const uint32_t* found = match_ids_.find(key)) return MatchId{*found};
  auto id = static_cast<uint32_t>(match_runs_.size());
  match_runs_.emplace_back(static_cast<uint32_t>(match_pool_.size()), static_cast<uint32_t>(terminals.size()));
  match_pool_.insert(match_pool_.end(), terminals.begin(), terminals.end());
  match_ids_.insert(key, id);
  return MatchId{id};
}

TermId Lexer::without(TermId t, TextSetId set, const Memory& memory) {
  if (set == TextSetId::empty) return t;
  uint64_t key = (uint64_t{index(t)} << 32) | index(set);
  if (const uint32_t* found = without_.find(key)) return TermId{*found};
  std::vector<std::string> texts;
  bool tentative = false;
  for (uint32_t text : memory.text_set(set)) {
    if (TextId{text} == TextId::unknown) {
      tentative = true;
    } else {
      texts.push_back(memory.text(TextId{text}));
    }
  }
  TermId result = derived(t, expressions_.literal_set(std::move(texts)), tentative);
  without_.insert(key, index(result));
  return result;
}

TermId Lexer::derived(TermId t, ExprId used, bool tentative) {
  ExprId rest = expressions_.intersection({terminals_[index(t)].expression, expressions_.complement(used)});
  auto id = static_cast<uint32_t>(terminals_.size());
  const Terminal& from = terminals_[index(t)];
  terminals_.push_back({rest, from.base, from.remembered, tentative || from.tentative});
  return TermId{id};
}

TermId Lexer::without_values(TermId t, uint32_t list, const Memory& memory, const Values& values) {
  if (list == 0) return t;
  uint64_t key = (uint64_t{index(t)} << 32) | list;
  if (const uint32_t* found = without_values_.find(key)) return TermId{*found};
  std::vector<ValueId> scalars;
  bool tentative = false;
  for (uint32_t number : memory.list(list)) {
    ValueId value{number};
    if (value == ValueId::unknown_scalar) {
      tentative = true;
    } else if (!values.is_group(value)) {
      scalars.push_back(value);
    }
  }
  TermId result = scalars.empty() && !tentative ? t : derived(t, spelled(scalars, values), tentative);
  without_values_.insert(key, index(result));
  return result;
}

// All texts of the scalars: a number's normal form may go on with zeros after the point, zero may be negative.
ExprId Lexer::spelled(const std::vector<ValueId>& scalars, const Values& values) {
  std::vector<std::string> texts, wholes, fractions;
  for (ValueId value : scalars) {
    const std::string& text = values.text(value);
    if (!values.is_decimal(value)) {
      texts.push_back(text);
    } else if (text.find('.') != std::string::npos) {
      fractions.push_back(text);
    } else {
      wholes.push_back(text);
      if (text == "0") wholes.push_back("-0");
    }
  }
  ExpressionStore& e = expressions_;
  std::vector<ExprId> parts{e.literal_set(std::move(texts))};
  if (!fractions.empty()) {
    parts.push_back(e.concatenation(e.literal_set(std::move(fractions)), e.repetition(e.literal("0"), 0, unbounded)));
  }
  if (!wholes.empty()) {
    ExprId zeros = e.concatenation(e.literal("."), e.repetition(e.literal("0"), 1, unbounded));
    parts.push_back(e.concatenation(e.literal_set(std::move(wholes)), e.repetition(zeros, 0, 1)));
  }
  return e.alternation(std::move(parts));
}

bool Lexer::matches(TermId t, ValueId scalar, const Values& values) {
  uint64_t key = (uint64_t{index(t)} << 32) | index(scalar);
  if (const uint8_t* found = matches_.find(key)) return *found;
  ExprId expression = terminals_[index(t)].expression;
  bool result = values.is_decimal(scalar)
                    ? expressions_.intersection({expression, spelled({scalar}, values)}) != ExprId::nothing
                    : expressions_.nullable(expressions_.derivative(expression, values.text(scalar)));
  matches_.insert(key, result);
  return result;
}

}  // namespace constrain
