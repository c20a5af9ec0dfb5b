// Reads on with earlier values, and excludes the lexemes after which only they could be read.
//
// Each set of them is kept with the track of the text since its group began.
#include "parsing/earlier_values.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/errors.h"

namespace constrain {

namespace {

void check_nesting(uint32_t depth) {
  if (depth <= MAX_NESTED_GROUPS.value) return;
  throw LimitError(limit_message("values that must be distinct are nested too deeply", MAX_NESTED_GROUPS), Limit::nested_groups);
}

}  // namespace

MemoryId EarlierValues::with(uint32_t rule, MemoryId memory, EarlierId earlier) {
  return grammar_.reads_groups ? memory_.with(memory, slots_.earlier_slot(rule), earlier) : memory;
}

// Leaves out pairs at the end that have no earlier value.
EarlierId EarlierValues::trimmed(std::vector<uint32_t> pairs) {
  while (!pairs.empty() && pairs.back() == 0) pairs.resize(pairs.size() - 2);
  return memory_.intern_list(pairs);
}

EarlierId EarlierValues::begun(uint32_t rule, MemoryId memory, const Edge& edge) {
  if (!grammar_.reads_groups) return no_earlier;
  const EarlierId around = of(rule, memory);
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

bool EarlierValues::are_uncertain(EarlierId earlier) const {
  std::span<const uint32_t> pairs = memory_.list(earlier);
  for (size_t i = 1; i < pairs.size(); i += 2) {
    std::span<const uint32_t> values = memory_.list(pairs[i]);
    if (std::find(values.begin(), values.end(), index(ValueId::unknown_group)) != values.end()) return true;
  }
  return false;
}

EarlierId EarlierValues::read(EarlierId earlier, Token token) {
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
std::vector<EarlierValues::Choice> EarlierValues::choices(EarlierId earlier) {
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

bool EarlierValues::leave(EarlierId left, Item& waiting, ValueId value) {
  const uint32_t rule = grammar_.state(waiting.state).rule;
  const std::span<const uint32_t> pairs = memory_.list(left);
  if (pairs.size() > memory_.list(of(waiting)).size()) return false;
  if (left != no_earlier) value = values_.last(TrackId{pairs[pairs.size() - 2]});  // known even if a mask is made for all earlier texts
  waiting.memory = with(rule, waiting.memory, left);
  const uint32_t slot = slots_.pending_slot(rule);
  if (const uint32_t pending = memory_.values(waiting.memory)[slot]) {
    waiting.memory = memory_.remember(memory_.with(waiting.memory, slot, 0), pending - 1, value);
  }
  return true;
}

// The search for the outlook of a state of a rule.
class EarlierValues::OutlookSearch {
 public:
  OutlookSearch(EarlierValues& earlier, StateId state, MemoryId memory, uint32_t depth)
      : earlier_(earlier), grammar_(earlier.grammar_), slots_(earlier.slots_), lexer_(earlier.lexer_), rule_(grammar_.state(state).rule),
        depth_(depth), work_{{state, memory}} {}

  Outlook run();

 private:
  void reach(StateId target, MemoryId after) {
    if (earlier_.of(rule_, after) == no_earlier) result_.escapes = true;
    work_.emplace_back(target, after);
  }
  void follow_all(StateId state, MemoryId memory);
  void read_rule(const Edge& edge, MemoryId memory, MemoryId after);
  void read_terminal(const Edge& edge, MemoryId memory, MemoryId after, int32_t remember);
  void read_own_text(const Edge& edge, TermId terminal, Role role, MemoryId after, int32_t remember);

  EarlierValues& earlier_;
  const Grammar& grammar_;
  RuleSlots& slots_;
  Lexer& lexer_;
  const uint32_t rule_;
  const uint32_t depth_;
  std::vector<std::pair<StateId, MemoryId>> work_;
  FlatMap<uint64_t, uint8_t> seen_;
  Outlook result_;
  EarlierId now_ = no_earlier;   // at the current state
  std::vector<Choice> next_;   // the choices of `now_`, once `chosen_`
  bool chosen_ = false;
};

EarlierValues::Outlook EarlierValues::OutlookSearch::run() {
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

void EarlierValues::OutlookSearch::follow_all(StateId state, MemoryId memory) {
  now_ = earlier_.of(rule_, memory);
  if (grammar_.state(state).accepting) result_.ends.push_back(now_);
  chosen_ = false;
  std::vector<Edge> edges(grammar_.edges_of(state).begin(), grammar_.edges_of(state).end());
  std::stable_partition(edges.begin(), edges.end(), [](const Edge& edge) { return edge.kind != EdgeKind::rule; });  // the cheap edges first
  for (const Edge& edge : edges) {
    if (result_.escapes) return;
    if (!slots_.holds(edge, memory)) continue;
    int32_t remember;
    const MemoryId after = slots_.updated(edge, rule_, memory, remember);
    if (edge.kind == EdgeKind::epsilon) {
      reach(edge.target, after);
    } else if (edge.kind == EdgeKind::rule) {
      read_rule(edge, memory, after);
    } else {
      read_terminal(edge, memory, after, remember);
    }
  }
}

void EarlierValues::OutlookSearch::read_rule(const Edge& edge, MemoryId memory, MemoryId after) {
  if (grammar_.rules[edge.symbol].nullable) reach(edge.target, after);
  const MemoryId begin = earlier_.with(edge.symbol, slots_.fresh(edge.symbol), earlier_.begun(rule_, memory, edge));
  const Outlook inner = earlier_.outlook(grammar_.rules[edge.symbol].start, begin, depth_ + 1);
  result_.escapes |= inner.escapes;
  for (EarlierId left : inner.ends) {
    Item waiting{edge.target, OriginId::end, after};
    if (earlier_.leave(left, waiting, ValueId::unknown_group)) reach(waiting.state, waiting.memory);
  }
}

void EarlierValues::OutlookSearch::read_terminal(const Edge& edge, MemoryId memory, MemoryId after, int32_t remember) {
  const TermId terminal = edge.excluding >= 0 ? slots_.excluding(edge, rule_, memory) : TermId{edge.symbol};
  if (lexer_.expression(terminal) == ExprId::nothing) return;
  if (!chosen_) next_ = earlier_.choices(now_);
  chosen_ = true;
  const Token token = slots_.token_of(terminal, TextId::unknown);
  if (token.role == Role::none) {
    reach(edge.target, after);
  } else if (!slots_.reads_own_text(terminal)) {
    auto same = std::find_if(next_.begin(), next_.end(), [&](const Choice& each) { return each.token == token; });
    reach(edge.target, earlier_.with(rule_, after, same == next_.end() ? no_earlier : same->after));
  } else {
    read_own_text(edge, terminal, token.role, after, remember);
  }
}

// A text of the terminal that no earlier value has next escapes; otherwise the texts of earlier values are followed.
void EarlierValues::OutlookSearch::read_own_text(const Edge& edge, TermId terminal, Role role, MemoryId after, int32_t remember) {
  std::vector<uint32_t> taken;
  for (const Choice& each : next_) {
    if (each.token.role == role) taken.push_back(index(each.token.value));
  }
  std::sort(taken.begin(), taken.end());
  const TermId others = lexer_.without_values(terminal, earlier_.memory_.intern_list(taken), earlier_.memory_, earlier_.values_);
  if (lexer_.expression(others) != ExprId::nothing) {
    result_.escapes = true;
    return;
  }
  for (const Choice& each : next_) {
    if (each.token.role != role || !lexer_.matches(terminal, each.token.value, earlier_.values_)) continue;
    MemoryId read = earlier_.with(rule_, after, each.after);
    if (remember >= 0) read = slots_.remembering(rule_, read, remember, each.token.value);
    reach(edge.target, read);
  }
}

// The outlook from (state, memory) to the end of the rule, with earlier values. A rule that begins with itself reads its
// own outlook before that is whole: then all are drafts, and found again until none changes.
EarlierValues::Outlook EarlierValues::outlook(StateId state, MemoryId memory, uint32_t depth) {
  const uint64_t key = paired(state, memory);
  if (const uint32_t* found = outlook_ids_.find(key)) return outlooks_[*found];
  if (depth == 0) drafts_.clear();
  Draft& draft = drafts_[key];
  if (depth > 0 && draft.pass == pass_) {
    reads_open_ |= draft.open;
    return draft.outlook;
  }
  check_nesting(depth);
  do {
    if (depth == 0) {
      ++pass_;
      changed_ = reads_open_ = false;
    }
    draft.pass = pass_;
    draft.open = true;
    Outlook found = OutlookSearch(*this, state, memory, depth).run();
    draft.open = false;
    changed_ |= found != draft.outlook;
    draft.outlook = std::move(found);
  } while (depth == 0 && changed_ && reads_open_);
  if (depth > 0) return draft.outlook;
  for (const auto& [each, whole] : drafts_) {
    outlook_ids_.insert(each, static_cast<uint32_t>(outlooks_.size()));
    outlooks_.push_back(whole.outlook);
  }
  return draft.outlook;
}

// Whether the text can be completed from an item (after a lexeme) without reading an earlier value.
bool EarlierValues::alive(const Item& start, const InternedLists<Item>& origins) {
  std::set<Item> met{start};  // a rule that begins with itself waits for itself
  std::vector<Item> work{start};
  while (!work.empty()) {
    const Item item = work.back();
    work.pop_back();
    lexer_.expressions().work().count_items(1);
    if (of(item) == no_earlier) return true;
    const Outlook outlook = this->outlook(item.state, item.memory);
    if (outlook.escapes) return true;
    for (EarlierId left : outlook.ends) {
      for (Item each : origins[index(item.origin)]) {
        if (leave(left, each, ValueId::unknown_group) && met.insert(each).second) work.push_back(each);
      }
    }
  }
  return false;
}

void EarlierValues::exclude(std::vector<Step>& steps, const InternedLists<Item>& origins) {
  EarlierId known = no_earlier;  // the values of these choices: mostly the same for all steps
  std::vector<Choice> next;
  for (Step& step : steps) {
    const uint32_t rule = grammar_.state(step.next.state).rule;
    const EarlierId here = of(step.next);
    if (here == no_earlier) continue;
    if (here != known) next = choices(here);
    known = here;
    const Token token = slots_.token_of(step.terminal, TextId::unknown);
    const bool own_text = slots_.reads_own_text(step.terminal);
    if (token.role == Role::none) {
      if (!alive(step.next, origins)) step.terminal = lexer_.none();
      continue;
    }
    std::vector<uint32_t> excluded;
    for (const Choice& each : next) {
      if (own_text ? each.token.role != token.role : each.token != token) continue;
      Item after = step.next;
      after.memory = with(rule, after.memory, each.after);
      if (own_text && !lexer_.matches(step.terminal, each.token.value, values_)) continue;
      if (step.remember >= 0) after.memory = slots_.remembering(rule, after.memory, step.remember, each.token.value);
      if (alive(after, origins)) continue;
      if (!own_text) step.terminal = lexer_.none();
      excluded.push_back(index(each.token.value));
    }
    if (!own_text) continue;
    std::sort(excluded.begin(), excluded.end());
    step.terminal = lexer_.without_values(step.terminal, memory_.intern_list(excluded), memory_, values_);
  }
  std::erase_if(steps, [this](const Step& step) { return lexer_.expression(step.terminal) == ExprId::nothing; });
}

size_t EarlierValues::memory_bytes() const {
  size_t total = outlook_ids_.bytes();
  for (const Outlook& each : outlooks_) total += sizeof(Outlook) + each.ends.size() * sizeof(EarlierId);
  return total;
}

}  // namespace constrain
