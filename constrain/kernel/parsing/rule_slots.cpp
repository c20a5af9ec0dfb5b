// Reads and writes the slots of rules.
#include "parsing/rule_slots.h"

#include "values/strings.h"

namespace constrain {

void RuleSlots::begin() {
  values_.compare_by_double(grammar_.numbers_by_double);
  values_.compare_strings(grammar_.strings_by_value);
  const size_t more = grammar_.reads_groups ? 2 : 0;
  for (const Rule& rule : grammar_.rules) {
    fresh_.push_back(rule.slots.size() + more == 0 ? MemoryId::empty : memory_.fresh(rule.slots.size() + more));
  }
  for (const std::string& label : grammar_.labels) labels_.push_back(label.empty() ? ValueId::none : values_.text(label));
}

bool RuleSlots::holds(const Edge& edge, MemoryId memory) const {
  for (const Condition& c : grammar_.conditions_of(edge)) {
    uint32_t value = memory_.values(memory)[c.slot];
    if (value < c.minimum || (c.maximum != unbounded && value > c.maximum)) return false;
  }
  return true;
}

MemoryId RuleSlots::updated(const Edge& edge, uint32_t rule, MemoryId memory, int32_t& remember) {
  remember = -1;
  for (const Action& action : grammar_.actions_of(edge)) {
    if (action.kind == ActionKind::increment) {
      memory = memory_.increment(memory, action.slot, static_cast<uint32_t>(grammar_.rules[rule].slots[action.slot]));
    } else {
      remember = static_cast<int32_t>(action.slot);
    }
  }
  if (edge.distinct >= 0) memory = memory_.with(memory, pending_slot(rule), static_cast<uint32_t>(edge.distinct) + 1);
  return memory;
}

// The terminal of an edge without the texts that the edge excludes here.
TermId RuleSlots::excluding(const Edge& edge, uint32_t rule, MemoryId memory) {
  const auto slot = static_cast<size_t>(edge.excluding);
  const uint32_t used = memory_.values(memory)[slot];
  if (grammar_.rules[rule].slots[slot] == value_set) return lexer_.without_values(TermId{edge.symbol}, used, memory_, values_);
  return lexer_.without(TermId{edge.symbol}, TextSetId{used}, memory_, values_);
}

MemoryId RuleSlots::remembering(uint32_t rule, MemoryId memory, int32_t slot, TextId text) {
  const auto at = static_cast<uint32_t>(slot);
  if (grammar_.rules[rule].slots[at] != value_set) {
    if (values_.strings_by_value() && text != TextId::unknown) return remembering(rule, memory, slot, values_.text(memory_.text(text)));
    return memory_.remember(memory, at, text);
  }
  return memory_.remember(memory, at, text == TextId::unknown ? ValueId::unknown_scalar : values_.scalar(memory_.text(text)));
}

// In a text set, the value of a lexeme is its text, a label.
MemoryId RuleSlots::remembering(uint32_t rule, MemoryId memory, int32_t slot, ValueId value) {
  const auto at = static_cast<uint32_t>(slot);
  if (grammar_.rules[rule].slots[at] == value_set) return memory_.remember(memory, at, value);
  TextId text = TextId::empty;
  for (char c : values_.text(value)) text = memory_.extend(text, static_cast<uint8_t>(c));
  return memory_.remember(memory, at, text);
}

std::optional<ExprId> RuleSlots::texts_of(uint32_t number, bool is_value) {
  if (!is_value && TextId{number} == TextId::unknown) return std::nullopt;
  if (!is_value) return lexer_.spelled_texts({memory_.text(TextId{number})}, values_);
  const ValueId value{number};
  if (value == ValueId::unknown_scalar || values_.is_group(value)) return std::nullopt;
  const std::string& text = values_.text(value);
  if (begins_number(text)) return std::nullopt;
  return lexer_.spelled_texts({text}, values_);
}

MemoryId RuleSlots::without_values(uint32_t rule, MemoryId memory) {
  if (!grammar_.has_values) return memory;
  const std::vector<int32_t>& slots = grammar_.rules[rule].slots;
  for (uint32_t slot = 0; slot < slots.size(); ++slot) {
    if (slots[slot] == value_set) memory = memory_.with(memory, slot, 0);
  }
  if (!grammar_.reads_groups) return memory;
  return memory_.with(memory_.with(memory, earlier_slot(rule), 0), pending_slot(rule), 0);
}

MemoryId RuleSlots::without_texts(uint32_t rule, MemoryId memory) {
  const std::vector<int32_t>& slots = grammar_.rules[rule].slots;
  for (uint32_t slot = 0; slot < slots.size(); ++slot) {
    if (slots[slot] == text_set) memory = memory_.with(memory, slot, 0);
  }
  return memory;
}

bool RuleSlots::reads_own_text(TermId terminal) const {
  const uint32_t base = index(lexer_.base_terminal(terminal));
  return grammar_.roles[base] == Role::scalar || (grammar_.roles[base] == Role::label && labels_[base] == ValueId::none);
}

Token RuleSlots::token_of(TermId terminal, TextId text) {
  const uint32_t base = index(lexer_.base_terminal(terminal));
  Token token{grammar_.roles[base], labels_[base]};
  if (!reads_own_text(terminal)) return token;
  if (text == TextId::unknown) {
    token.value = ValueId::unknown_scalar;
  } else {
    token.value = token.role == Role::label ? values_.text(memory_.text(text)) : values_.scalar(memory_.text(text));
  }
  return token;
}

}  // namespace constrain
