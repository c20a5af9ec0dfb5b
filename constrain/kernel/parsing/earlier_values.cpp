// Values that must be distinct, as groups of lexemes: the current group must not become a value read before.
//
// A rule read through a `distinct` edge begins with the values of that edge's slot: the earlier values still possible.
// Each lexeme leaves those that continue with this very lexeme; once none is left, the rest is unrestricted. The items
// inside carry the earlier values of all groups around them, outer ones first, each set with the track of the text
// since its group began. A lexeme after which *every* way on would end in an earlier value is excluded at its
// beginning, from the expression of its terminal, so that a live state can always be completed. This is decided here: a
// way that no earlier value takes escapes, because items without earlier values can be completed; the other ways are
// followed, and they are as finite as the earlier values.
#include <algorithm>

#include "base/errors.h"
#include "parsing/parser.h"

namespace constrain {

namespace {

void check_nesting(uint32_t depth) {
  if (depth <= MAX_NESTED_GROUPS.value) return;
  throw LimitError(limit_message("values that must be distinct are nested too deeply", MAX_NESTED_GROUPS), Limit::nested_groups);
}

}  // namespace

Parser::EarlierId Parser::earlier_values(uint32_t rule, MemoryId memory) const { return memory_.values(memory)[earlier_slot(rule)]; }

MemoryId Parser::with_earlier(uint32_t rule, MemoryId memory, EarlierId earlier) {
  return grammar_.reads_groups ? memory_.with(memory, earlier_slot(rule), earlier) : memory;
}

// Leaves out pairs at the end that have no earlier value.
Parser::EarlierId Parser::trimmed(std::vector<uint32_t> pairs) {
  while (!pairs.empty() && pairs.back() == 0) pairs.resize(pairs.size() - 2);
  return memory_.intern_list(pairs);
}

Parser::EarlierId Parser::outermost(EarlierId earlier, size_t pairs) {
  std::span<const uint32_t> all = memory_.list(earlier);
  return 2 * pairs >= all.size() ? earlier : trimmed({all.begin(), all.begin() + static_cast<std::ptrdiff_t>(2 * pairs)});
}

// The earlier values with which an edge of a rule begins to read another rule.
Parser::EarlierId Parser::begun(uint32_t rule, MemoryId memory, const Edge& edge) {
  if (!grammar_.reads_groups) return no_earlier;
  const EarlierId around = earlier_values(rule, memory);
  if (edge.distinct < 0) return around;
  std::vector<uint32_t> groups;
  for (uint32_t value : memory_.list(memory_.values(memory)[static_cast<size_t>(edge.distinct)])) {
    if (values_.is_group(ValueId{value})) groups.push_back(value);
  }
  if (groups.empty()) return around;
  std::vector<uint32_t> pairs(memory_.list(around).begin(), memory_.list(around).end());
  pairs.push_back(index(TrackId::start));
  pairs.push_back(memory_.intern_list(groups));
  return memory_.intern_list(pairs);
}

bool Parser::uncertain(EarlierId earlier) const {
  std::span<const uint32_t> pairs = memory_.list(earlier);
  for (size_t i = 1; i < pairs.size(); i += 2) {
    std::span<const uint32_t> values = memory_.list(pairs[i]);
    if (std::find(values.begin(), values.end(), index(ValueId::unknown_group)) != values.end()) return true;
  }
  return false;
}

bool Parser::reads_own_text(TermId terminal) const {
  const uint32_t base = index(lexer_.base_terminal(terminal));
  return grammar_.roles[base] == Role::scalar || (grammar_.roles[base] == Role::label && labels_[base] == ValueId::none);
}

Token Parser::token_of(TermId terminal, TextId text) {
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

// The earlier values that agree with one more lexeme.
Parser::EarlierId Parser::read_earlier(EarlierId earlier, Token token) {
  if (token.role == Role::none) return earlier;
  std::vector<uint32_t> pairs(memory_.list(earlier).begin(), memory_.list(earlier).end());
  std::vector<Token> next;
  for (size_t i = 0; i < pairs.size(); i += 2) {
    const TrackId track{pairs[i]};
    std::vector<uint32_t> agreeing;
    for (uint32_t value : memory_.list(pairs[i + 1])) {
      next.clear();
      values_.next_tokens(track, ValueId{value}, next);
      if (std::find(next.begin(), next.end(), token) != next.end()) agreeing.push_back(value);
    }
    pairs[i + 1] = memory_.intern_list(agreeing);
    pairs[i] = agreeing.empty() ? 0 : index(values_.read(track, token));
  }
  return trimmed(std::move(pairs));
}

// All lexemes with which an earlier value continues, sorted, each with the earlier values that agree with it.
std::vector<Parser::Choice> Parser::choices(EarlierId earlier) {
  const std::vector<uint32_t> pairs(memory_.list(earlier).begin(), memory_.list(earlier).end());
  struct Way {
    Token token;
    size_t pair;
    uint32_t value;
    auto operator<=>(const Way&) const = default;
  };
  std::vector<Way> ways;
  std::vector<Token> next;
  for (size_t i = 0; i < pairs.size(); i += 2) {
    for (uint32_t value : memory_.list(pairs[i + 1])) {
      next.clear();
      values_.next_tokens(TrackId{pairs[i]}, ValueId{value}, next);
      for (const Token& token : next) ways.push_back({token, i, value});
    }
  }
  std::sort(ways.begin(), ways.end());
  std::vector<Choice> result;
  for (size_t begin = 0; begin < ways.size();) {
    const Token token = ways[begin].token;
    std::vector<uint32_t> after(pairs.size(), 0);
    while (begin < ways.size() && ways[begin].token == token) {
      const size_t pair = ways[begin].pair;
      std::vector<uint32_t> agreeing;
      for (; begin < ways.size() && ways[begin].token == token && ways[begin].pair == pair; ++begin) agreeing.push_back(ways[begin].value);
      after[pair] = index(values_.read(TrackId{pairs[pair]}, token));
      after[pair + 1] = memory_.intern_list(agreeing);
    }
    result.push_back({token, trimmed(std::move(after))});
  }
  return result;
}

// The group completed last, from the innermost earlier values.
ValueId Parser::last_value(EarlierId earlier) const {
  std::span<const uint32_t> pairs = memory_.list(earlier);
  return values_.last(TrackId{pairs[pairs.size() - 2]});
}

// Goes from the end of a rule, with its remaining earlier values, to a waiting item; false if the value is an earlier
// one.
bool Parser::leave(EarlierId left, Item& waiting, ValueId value) {
  const uint32_t rule = grammar_.state(waiting.state).rule;
  const size_t count = memory_.list(earlier_values(rule, waiting.memory)).size() / 2;
  if (memory_.list(left).size() > 2 * count) return false;
  if (left != no_earlier) value = last_value(left);  // known even if a mask is made for all earlier texts
  waiting.memory = with_earlier(rule, waiting.memory, left);
  if (const uint32_t pending = memory_.values(waiting.memory)[earlier_slot(rule) + 1]) {
    waiting.memory = memory_.remember(memory_.with(waiting.memory, earlier_slot(rule) + 1, 0), pending - 1, value);
  }
  return true;
}

// The search for the outlook of a state of a rule.
class Parser::OutlookSearch {
 public:
  OutlookSearch(Parser& parser, StateId state, MemoryId memory, uint32_t depth)
      : parser_(parser), grammar_(parser.grammar_), rule_(grammar_.state(state).rule), depth_(depth), work_{{state, memory}} {}

  Outlook run();

 private:
  void reach(StateId target, MemoryId after) {
    if (parser_.earlier_values(rule_, after) == no_earlier) result_.escapes = true;
    work_.emplace_back(target, after);
  }
  void follow_all(StateId state, MemoryId memory);
  void read_rule(const Edge& edge, MemoryId memory, MemoryId after);
  void read_terminal(const Edge& edge, MemoryId memory, MemoryId after, int32_t remember);
  void read_own_text(const Edge& edge, TermId terminal, Role role, MemoryId after, int32_t remember);

  Parser& parser_;
  const Grammar& grammar_;
  const uint32_t rule_;
  const uint32_t depth_;
  std::vector<std::pair<StateId, MemoryId>> work_;
  FlatMap<uint64_t, uint8_t> seen_;
  Outlook result_;
  EarlierId now_ = no_earlier;   // at the current state
  std::vector<Choice> next_;   // the choices of `now_`, once `chosen_`
  bool chosen_ = false;
};

Parser::Outlook Parser::OutlookSearch::run() {
  while (!work_.empty() && !result_.escapes) {
    const auto [state, memory] = work_.back();
    work_.pop_back();
    const uint64_t here = paired(state, memory);
    if (seen_.find(here)) continue;
    seen_.insert(here, 1);
    follow_all(state, memory);
  }
  if (result_.escapes) result_.ends.clear();
  std::sort(result_.ends.begin(), result_.ends.end());
  result_.ends.erase(std::unique(result_.ends.begin(), result_.ends.end()), result_.ends.end());
  return std::move(result_);
}

void Parser::OutlookSearch::follow_all(StateId state, MemoryId memory) {
  now_ = parser_.earlier_values(rule_, memory);
  if (grammar_.state(state).accepting) result_.ends.push_back(now_);
  chosen_ = false;
  std::vector<Edge> edges(grammar_.edges_of(state).begin(), grammar_.edges_of(state).end());
  std::stable_partition(edges.begin(), edges.end(), [](const Edge& edge) { return edge.kind != EdgeKind::rule; });  // the cheap edges first
  for (const Edge& edge : edges) {
    if (result_.escapes) return;
    if (!parser_.holds(edge, memory)) continue;
    int32_t remember;
    const MemoryId after = parser_.updated(edge, rule_, memory, remember);
    if (edge.kind == EdgeKind::epsilon) {
      reach(edge.target, after);
    } else if (edge.kind == EdgeKind::rule) {
      read_rule(edge, memory, after);
    } else {
      read_terminal(edge, memory, after, remember);
    }
  }
}

void Parser::OutlookSearch::read_rule(const Edge& edge, MemoryId memory, MemoryId after) {
  if (grammar_.rules[edge.symbol].nullable) reach(edge.target, after);
  const MemoryId begin = parser_.with_earlier(edge.symbol, parser_.fresh_[edge.symbol], parser_.begun(rule_, memory, edge));
  const Outlook inner = parser_.outlook(grammar_.rules[edge.symbol].start, begin, depth_ + 1);
  result_.escapes |= inner.escapes;
  for (EarlierId left : inner.ends) {
    Item waiting{edge.target, OriginId::end, after};
    if (parser_.leave(left, waiting, ValueId::unknown_group)) reach(waiting.state, waiting.memory);
  }
}

void Parser::OutlookSearch::read_terminal(const Edge& edge, MemoryId memory, MemoryId after, int32_t remember) {
  const TermId terminal = edge.excluding >= 0 ? parser_.excluding(edge, rule_, memory) : TermId{edge.symbol};
  if (parser_.lexer_.expression(terminal) == ExprId::nothing) return;
  if (!chosen_) next_ = parser_.choices(now_);
  chosen_ = true;
  const Token token = parser_.token_of(terminal, TextId::unknown);
  if (token.role == Role::none) {
    reach(edge.target, after);
  } else if (!parser_.reads_own_text(terminal)) {
    auto same = std::find_if(next_.begin(), next_.end(), [&](const Choice& each) { return each.token == token; });
    reach(edge.target, parser_.with_earlier(rule_, after, same == next_.end() ? no_earlier : same->after));
  } else {
    read_own_text(edge, terminal, token.role, after, remember);
  }
}

// A text of the terminal that no earlier value has next escapes; otherwise the texts of earlier values are followed.
void Parser::OutlookSearch::read_own_text(const Edge& edge, TermId terminal, Role role, MemoryId after, int32_t remember) {
  std::vector<uint32_t> taken;
  for (const Choice& each : next_) {
    if (each.token.role == role) taken.push_back(index(each.token.value));
  }
  std::sort(taken.begin(), taken.end());
  const TermId others = parser_.lexer_.without_values(terminal, parser_.memory_.intern_list(taken), parser_.memory_, parser_.values_);
  if (parser_.lexer_.expression(others) != ExprId::nothing) {
    result_.escapes = true;
    return;
  }
  for (const Choice& each : next_) {
    if (each.token.role != role || !parser_.lexer_.matches(terminal, each.token.value, parser_.values_)) continue;
    MemoryId read = parser_.with_earlier(rule_, after, each.after);
    if (remember >= 0) read = parser_.remembering_value(rule_, read, remember, each.token.value);
    reach(edge.target, read);
  }
}

// The outlook from (state, memory) to the end of the rule, with earlier values.
const Parser::Outlook& Parser::outlook(StateId state, MemoryId memory, uint32_t depth) {
  const uint64_t key = paired(state, memory);
  if (const uint32_t* found = outlook_ids_.find(key)) return outlooks_[*found];
  static const Outlook nowhere;
  if (std::find(under_way_.begin(), under_way_.end(), key) != under_way_.end()) return nowhere;  // left recursion adds no way
  check_nesting(depth);
  under_way_.push_back(key);
  struct Leaving {
    std::vector<uint64_t>& stack;
    ~Leaving() { stack.pop_back(); }
  } leaving{under_way_};
  Outlook result = OutlookSearch(*this, state, memory, depth).run();
  outlook_ids_.insert(key, static_cast<uint32_t>(outlooks_.size()));
  outlooks_.push_back(std::move(result));
  return outlooks_.back();
}

// Whether the text can be completed from an item (after a lexeme) without reading an earlier value.
bool Parser::alive(const Item& item, uint32_t depth) {
  const uint32_t rule = grammar_.state(item.state).rule;
  if (earlier_values(rule, item.memory) == no_earlier) return true;
  check_nesting(depth);
  const Outlook outlook = this->outlook(item.state, item.memory, 0);
  if (outlook.escapes) return true;
  const std::vector<Item> waiting = copy_of_waiting(item.origin);
  for (EarlierId left : outlook.ends) {
    for (Item each : waiting) {
      if (leave(left, each, ValueId::unknown_group) && alive(each, depth + 1)) return true;
    }
  }
  return false;
}

// Removes from the steps of a closure the lexemes after which only earlier values could be read.
void Parser::exclude_earlier(std::vector<Step>& steps, Closure& closure) {
  for (const Step& step : steps) {
    const EarlierId here = earlier_values(grammar_.state(step.next.state).rule, step.next.memory);
    closure.has_earlier |= here != no_earlier;
    closure.uncertain |= uncertain(here);
  }
  if (closure.uncertain || !closure.has_earlier) return;
  EarlierId known = no_earlier;  // the values of these choices: mostly the same for all steps
  std::vector<Choice> next;
  for (Step& step : steps) {
    const uint32_t rule = grammar_.state(step.next.state).rule;
    const EarlierId here = earlier_values(rule, step.next.memory);
    if (here == no_earlier) continue;
    if (here != known) next = choices(here);
    known = here;
    const Token token = token_of(step.terminal, TextId::unknown);
    const bool own_text = reads_own_text(step.terminal);
    if (token.role == Role::none) {
      if (!alive(step.next, 0)) step.terminal = lexer_.none();
      continue;
    }
    std::vector<uint32_t> excluded;
    for (const Choice& each : next) {
      if (own_text ? each.token.role != token.role : each.token != token) continue;
      Item after = step.next;
      after.memory = with_earlier(rule, after.memory, each.after);
      if (own_text && !lexer_.matches(step.terminal, each.token.value, values_)) continue;
      if (step.remember >= 0) after.memory = remembering_value(rule, after.memory, step.remember, each.token.value);
      if (alive(after, 0)) continue;
      if (!own_text) step.terminal = lexer_.none();
      excluded.push_back(index(each.token.value));
    }
    if (!own_text) continue;
    std::sort(excluded.begin(), excluded.end());
    step.terminal = lexer_.without_values(step.terminal, memory_.intern_list(excluded), memory_, values_);
  }
  std::erase_if(steps, [this](const Step& step) { return lexer_.expression(step.terminal) == ExprId::nothing; });
}

}  // namespace constrain
