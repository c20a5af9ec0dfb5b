// Computes closures of sets, and advances sets over lexemes.
//
// Items count as work of the expressions (`count_items`), so that a limit on work also ends long steps of ambiguous
// grammars: before anything is interned, because a closure or an origin is kept whole or not at all.
#include "parsing/parser.h"

#include <algorithm>

#include "values/strings.h"

namespace constrain {

namespace {

// Numbers of origins that do not exist yet, while a set is closed, by predicted rule.
constexpr uint32_t local_origin = 0x80000000u;

bool is_local(OriginId origin) { return index(origin) >= local_origin; }

// The first bit distinguishes a memory from the item after an item without memory.
Hash item_hash(Hash h, const Item& item) {
  h = mix(h, paired(item.state, item.origin));
  return item.memory == MemoryId::empty ? h : mix(h, (uint64_t{1} << 63) | index(item.memory));
}

void sort_unique(std::vector<Item>& items, ExpressionStore& work) {
  if (!std::is_sorted(items.begin(), items.end())) {
    work.count_items(items.size() / 2);  // sorting items is quicker than following them
    std::sort(items.begin(), items.end());
  }
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

}  // namespace

// A rule predicted by the current closure: the items that wait for it, and the origin they become.
struct Parser::Predicted {
  uint32_t rule;
  EarlierId earlier;
  std::vector<Item> waiting;  // origins may be local
  bool ends_text = false;
  OriginId origin{};
  uint32_t order = 0, low = 0;  // Tarjan (1972)
  bool on_stack = false;
};

Parser::Parser(const Grammar& grammar, Lexer& lexer, Memory& memory) : grammar_(grammar), lexer_(lexer), memory_(memory) {
  values_.compare_by_double(grammar.numbers_by_double);
  values_.compare_strings(grammar.strings_by_value);
  const size_t more = grammar.reads_groups ? 2 : 0;
  for (const Rule& rule : grammar.rules) {
    fresh_.push_back(rule.slots.size() + more == 0 ? MemoryId::empty : memory.fresh(rule.slots.size() + more));
  }
  for (const std::string& label : grammar.labels) labels_.push_back(label.empty() ? ValueId::none : values_.text(label));
  intern_set({}, false);  // SetId::none
  intern_origin({}, true, nullptr);
  std::vector<Item> items;
  bool ends_text = false;
  add(items, ends_text, {grammar.rules[0].start, OriginId::end, fresh_[0]});
  start_ = intern_set(std::move(items), ends_text);
}

// Adds an item, or the items that wait for it if it only accepts.
void Parser::add(std::vector<Item>& items, bool& ends_text, const Item& item) const {
  if (!grammar_.state(item.state).only_accepting()) {
    items.push_back(item);
    return;
  }
  std::span<const Item> waiting = this->waiting(item.origin);
  items.insert(items.end(), waiting.begin(), waiting.end());
  ends_text |= origin_ends_[index(item.origin)];
}

// Adds an item after a lexeme. At the end of its rule, `value` is the group that the lexeme completed.
void Parser::complete(std::vector<Item>& items, bool& ends_text, const Item& item, ValueId value) {
  if (grammar_.state(item.state).only_accepting()) {
    finish(items, ends_text, item, value);
  } else {
    items.push_back(item);
  }
}

// Adds the items that wait for the rule of an item that may end here.
void Parser::finish(std::vector<Item>& items, bool& ends_text, const Item& item, ValueId value) {
  const std::vector<Item> waiting = copy_of_waiting(item.origin);
  lexer_.expressions().count_items(waiting.size());
  const EarlierId left = grammar_.reads_groups ? earlier_values(grammar_.state(item.state).rule, item.memory) : no_earlier;
  for (Item each : waiting) {
    if (!grammar_.reads_groups || leave(left, each, value)) items.push_back(each);
  }
  ends_text |= origin_ends_[index(item.origin)] && left == no_earlier;
}

SetId Parser::intern_set(std::vector<Item> items, bool ends_text) {
  sort_unique(items, lexer_.expressions());
  Hash key = seeded(items.size() * 2 + ends_text);
  for (const Item& item : items) key = item_hash(key, item);
  if (const uint32_t* found = sets_.ids.find(key)) return SetId{*found};
  auto id = static_cast<uint32_t>(sets_.runs.size());
  sets_.runs.emplace_back(static_cast<uint32_t>(sets_.pool.size()), static_cast<uint32_t>(items.size()));
  sets_.pool.insert(sets_.pool.end(), items.begin(), items.end());
  sets_.ids.insert(key, id);
  set_ends_.push_back(ends_text);
  closures_.emplace_back();
  closed_.push_back(0);
  return SetId{id};
}

// `items` are sorted. `given`: a key in place of their hash.
OriginId Parser::intern_origin(std::span<const Item> items, bool ends_text, const Hash* given) {
  Hash key = given ? *given : seeded(items.size() * 2 + ends_text);
  if (!given) {
    for (const Item& item : items) key = item_hash(key, item);
  }
  if (const uint32_t* found = origins_.ids.find(key)) return OriginId{*found};
  auto id = static_cast<uint32_t>(origins_.runs.size());
  origins_.runs.emplace_back(static_cast<uint32_t>(origins_.pool.size()), static_cast<uint32_t>(items.size()));
  origins_.pool.insert(origins_.pool.end(), items.begin(), items.end());
  origins_.ids.insert(key, id);
  origin_ends_.push_back(ends_text);
  return OriginId{id};
}

bool Parser::holds(const Edge& edge, MemoryId memory) const {
  for (const Condition& c : grammar_.conditions_of(edge)) {
    uint32_t value = memory_.values(memory)[c.slot];
    if (value < c.minimum || (c.maximum != unbounded && value > c.maximum)) return false;
  }
  return true;
}

MemoryId Parser::updated(const Edge& edge, uint32_t rule, MemoryId memory, int32_t& remember) {
  remember = -1;
  for (const Action& action : grammar_.actions_of(edge)) {
    if (action.kind == ActionKind::increment) {
      memory = memory_.increment(memory, action.slot, static_cast<uint32_t>(grammar_.rules[rule].slots[action.slot]));
    } else {
      remember = static_cast<int32_t>(action.slot);
    }
  }
  if (edge.distinct >= 0) memory = memory_.with(memory, earlier_slot(rule) + 1, static_cast<uint32_t>(edge.distinct) + 1);
  return memory;
}

const Parser::Closure& Parser::closure(SetId set) {
  if (!closed_[index(set)]) compute_closure(set);
  return closures_[index(set)];
}

// A closure in progress: items still to be followed, and the steps found.
class Parser::Closing {
 public:
  Closing(Parser& parser, SetId set) : parser_(parser), grammar_(parser.grammar_) {
    const std::span<const Item> kernel = parser_.items(set);
    work_.assign(kernel.begin(), kernel.end());
    result_.accepting = parser_.set_ends_[index(set)];
  }

  void predict_all();
  void settle_steps();
  LexId start(SetId set);
  const std::vector<Step>& steps() const { return found_; }
  const Closure& result() const { return result_; }

 private:
  bool is_known(const Item& item);
  void follow(const Edge& edge, uint32_t rule, const Item& item);
  void predict(uint32_t rule, EarlierId earlier, const Item& waiter);

  Parser& parser_;
  const Grammar& grammar_;
  std::vector<Item> work_;
  std::vector<Item> seen_few_;
  FlatMap<Hash, uint8_t> seen_;
  std::vector<Step> found_;
  std::vector<Predicted> predicted_;
  Closure result_;
};

void Parser::compute_closure(SetId set) {
  Closing closing(*this, set);
  closing.predict_all();
  closing.settle_steps();
  Closure result = closing.result();
  result.start = closing.start(set);
  result.begin = static_cast<uint32_t>(steps_.size());
  result.count = static_cast<uint32_t>(closing.steps().size());
  steps_.insert(steps_.end(), closing.steps().begin(), closing.steps().end());
  closures_[index(set)] = result;
  closed_[index(set)] = 1;
}

// Few items: a scan; many: a hash table.
bool Parser::Closing::is_known(const Item& item) {
  constexpr size_t few = 32;
  if (seen_few_.size() < few) {
    if (std::find(seen_few_.begin(), seen_few_.end(), item) != seen_few_.end()) return true;
    seen_few_.push_back(item);
    if (seen_few_.size() == few) {
      for (const Item& each : seen_few_) seen_.insert(item_hash(seeded(0), each), 1);
    }
    return false;
  }
  const Hash key = item_hash(seeded(0), item);
  if (seen_.find(key)) return true;
  seen_.insert(key, 1);
  return false;
}

void Parser::Closing::predict(uint32_t rule, EarlierId earlier, const Item& waiter) {
  auto place = std::find_if(predicted_.begin(), predicted_.end(), [=](const Predicted& p) { return p.rule == rule && p.earlier == earlier; });
  if (place != predicted_.end()) {
    place->waiting.push_back(waiter);
    return;
  }
  predicted_.push_back({.rule = rule, .earlier = earlier, .waiting = {}});
  const OriginId origin{local_origin + static_cast<uint32_t>(predicted_.size() - 1)};
  predicted_.back().waiting.push_back(waiter);
  work_.push_back({grammar_.rules[rule].start, origin, parser_.with_earlier(rule, parser_.fresh_[rule], earlier)});
}

void Parser::Closing::predict_all() {
  while (!work_.empty()) {
    const Item item = work_.back();
    work_.pop_back();
    parser_.lexer_.expressions().count_items(1);
    if (is_known(item)) continue;
    const State& state = grammar_.state(item.state);
    if (state.accepting && !is_local(item.origin)) {  // ends of rules that begin here: nullable rules, see `follow`
      parser_.finish(work_, result_.accepting, item, ValueId::unknown_group);
    }
    for (const Edge& edge : grammar_.edges_of(item.state)) {
      if (parser_.holds(edge, item.memory)) follow(edge, state.rule, item);
    }
  }
}

void Parser::Closing::follow(const Edge& edge, uint32_t rule, const Item& item) {
  int32_t remember;
  const Item next{edge.target, item.origin, parser_.updated(edge, rule, item.memory, remember)};
  switch (edge.kind) {
    case EdgeKind::epsilon:
      work_.push_back(next);
      break;
    case EdgeKind::terminal: {
      TermId terminal{edge.symbol};
      if (edge.excluding >= 0) {
        terminal = parser_.excluding(edge, rule, item.memory);
        if (parser_.lexer_.expression(terminal) == ExprId::nothing) break;
      }
      found_.push_back({terminal, next, remember});
      break;
    }
    case EdgeKind::rule:
      predict(edge.symbol, parser_.begun(rule, item.memory, edge), next);
      if (grammar_.rules[edge.symbol].nullable) work_.push_back(next);
      break;
  }
}

// Gives the steps their origins, removes steps that only lead to forbidden values, and sorts them.
void Parser::Closing::settle_steps() {
  parser_.resolve(predicted_);
  for (Step& step : found_) {
    OriginId& origin = step.next.origin;
    if (is_local(origin)) origin = predicted_[index(origin) - local_origin].origin;
  }
  if (grammar_.reads_groups) parser_.exclude_earlier(found_, result_);
  for (const Step& step : found_) result_.uses_text |= step.remember >= 0;
  result_.uses_text |= result_.has_earlier;
  std::sort(found_.begin(), found_.end(), [](const Step& a, const Step& b) {
    return a.terminal == b.terminal ? (a.next == b.next ? a.remember < b.remember : a.next < b.next) : a.terminal < b.terminal;
  });
  auto same = [](const Step& a, const Step& b) { return a.terminal == b.terminal && a.next == b.next && a.remember == b.remember; };
  found_.erase(std::unique(found_.begin(), found_.end(), same), found_.end());
}

// The lexer state at the beginning of the next lexeme: all terminals that may come, and the ignored ones.
LexId Parser::Closing::start(SetId set) {
  Lexer& lexer = parser_.lexer_;
  std::vector<Lexer::Entry> entries;
  for (const Step& step : found_) {
    if (entries.empty() || entries.back().terminal != step.terminal) entries.push_back({step.terminal, lexer.expression(step.terminal)});
  }
  for (uint32_t ignored : grammar_.ignored) {
    TermId t{ignored};
    auto listed = [t](const Lexer::Entry& entry) { return entry.terminal == t; };
    if (set != SetId::none && std::none_of(entries.begin(), entries.end(), listed)) entries.push_back({t, lexer.expression(t)});
  }
  return lexer.state(std::move(entries));
}

// Turns local origins into interned ones: waiters that only accept are replaced by their own waiters, then origins that
// wait for one another are interned together, in dependency order.
void Parser::resolve(std::vector<Predicted>& predicted) {
  replace_tail_calls(predicted);
  intern_components(predicted);
}

void Parser::replace_tail_calls(std::vector<Predicted>& predicted) {
  auto local = [](OriginId origin) { return index(origin) - local_origin; };
  auto is_tail_call = [this](const Item& item) { return grammar_.state(item.state).only_accepting(); };
  std::vector<Item> kept;
  std::vector<uint32_t> merged;
  for (uint32_t p = 0; p < predicted.size(); ++p) {
    if (std::ranges::none_of(predicted[p].waiting, is_tail_call)) {
      sort_unique(predicted[p].waiting, lexer_.expressions());
      continue;
    }
    kept.clear();
    merged.assign(1, p);
    for (size_t i = 0; i < merged.size(); ++i) {
      lexer_.expressions().count_items(predicted[merged[i]].waiting.size());
      for (const Item& item : predicted[merged[i]].waiting) {
        if (!is_tail_call(item)) {
          kept.push_back(item);
        } else if (!is_local(item.origin)) {
          add(kept, predicted[p].ends_text, item);
        } else if (std::find(merged.begin(), merged.end(), local(item.origin)) == merged.end()) {
          merged.push_back(local(item.origin));
          predicted[p].ends_text |= predicted[local(item.origin)].ends_text;
        }
      }
    }
    sort_unique(kept, lexer_.expressions());
    predicted[p].waiting.assign(kept.begin(), kept.end());
  }
}

// Strongly connected components (Tarjan 1972), children first. The graph is as deep as the grammar's left corners.
void Parser::intern_components(std::vector<Predicted>& predicted) {
  uint32_t counter = 0;
  std::vector<uint32_t> stack, group;
  auto intern = [&](uint32_t head) {
    group.clear();
    for (;;) {
      uint32_t p = stack.back();
      stack.pop_back();
      predicted[p].on_stack = false;
      group.push_back(p);
      if (p == head) break;
    }
    intern_component(predicted, group, head);
  };
  struct Frame {
    uint32_t node;
    size_t next;
  };
  std::vector<Frame> frames;
  for (uint32_t rooted = 0; rooted < predicted.size(); ++rooted) {
    if (predicted[rooted].order) continue;
    frames.push_back({rooted, 0});
    while (!frames.empty()) {
      Frame& frame = frames.back();
      Predicted& p = predicted[frame.node];
      if (frame.next == 0) {
        p.order = p.low = ++counter;
        p.on_stack = true;
        stack.push_back(frame.node);
      }
      bool descended = false;
      while (frame.next < p.waiting.size()) {
        OriginId origin = p.waiting[frame.next++].origin;
        if (!is_local(origin)) continue;
        Predicted& child = predicted[index(origin) - local_origin];
        if (!child.order) {
          frames.push_back({index(origin) - local_origin, 0});
          descended = true;
          break;
        }
        if (child.on_stack) p.low = std::min(p.low, child.order);
      }
      if (descended) continue;
      if (p.low == p.order) intern(frame.node);
      uint32_t low = p.low;
      frames.pop_back();
      if (!frames.empty()) predicted[frames.back().node].low = std::min(predicted[frames.back().node].low, low);
    }
  }
}

// Gives a component its origins, after the origins it depends on. Within a group that waits for itself, an origin is
// named by its rule; once the group has ids, its items get them.
void Parser::intern_component(std::vector<Predicted>& predicted, std::vector<uint32_t>& group, uint32_t head) {
  auto local = [](OriginId origin) { return index(origin) - local_origin; };
  std::sort(group.begin(), group.end(), [&](uint32_t a, uint32_t b) { return predicted[a].rule < predicted[b].rule; });
  auto in_group = [&](OriginId o) { return is_local(o) && std::find(group.begin(), group.end(), local(o)) != group.end(); };
  bool recursive = false;
  for (uint32_t p : group) {
    for (Item& item : predicted[p].waiting) {
      if (in_group(item.origin)) {
        recursive = true;
      } else if (is_local(item.origin)) {
        item.origin = predicted[local(item.origin)].origin;
      }
    }
    sort_unique(predicted[p].waiting, lexer_.expressions());
  }
  if (!recursive) {
    predicted[head].origin = intern_origin(predicted[head].waiting, predicted[head].ends_text, nullptr);
    return;
  }
  Hash group_key = seeded(0x67726F7570);
  std::vector<Item> named;
  for (uint32_t p : group) {
    named.assign(predicted[p].waiting.begin(), predicted[p].waiting.end());
    for (Item& item : named) {
      if (in_group(item.origin)) item.origin = OriginId{local_origin + predicted[local(item.origin)].rule};
    }
    sort_unique(named, lexer_.expressions());
    group_key = mix(mix(group_key, predicted[p].rule), named.size() * 2 + predicted[p].ends_text);
    for (const Item& item : named) group_key = item_hash(group_key, item);
  }
  bool known = false;
  for (uint32_t p : group) {
    Hash key = mix(group_key, predicted[p].rule);
    known = origins_.ids.find(key) != nullptr;
    predicted[p].origin = intern_origin(predicted[p].waiting, predicted[p].ends_text, &key);
  }
  if (known) return;
  for (uint32_t p : group) {
    auto [begin, count] = origins_.runs[index(predicted[p].origin)];
    for (uint32_t i = begin; i < begin + count; ++i) {
      OriginId& origin = origins_.pool[i].origin;
      if (is_local(origin)) origin = predicted[local(origin)].origin;
    }
    std::sort(origins_.pool.begin() + begin, origins_.pool.begin() + begin + count);
  }
}

SetId Parser::advance(SetId set, MatchId matched, TextId text, TrackId track) {
  if (!closure(set).uses_text) text = TextId::empty;
  Hash key = mix(mix(seeded(0x616476), paired(set, matched)), index(text));
  ValueId value = ValueId::unknown_group;  // the group completed by the lexeme
  if (grammar_.reads_groups) {
    auto closes = [this](TermId t) { return grammar_.roles[index(lexer_.base_terminal(t))] == Role::close; };
    std::span<const TermId> terminals = lexer_.terminals_of(matched);
    if (std::any_of(terminals.begin(), terminals.end(), closes) && track != TrackId::unknown) value = values_.last(track);
    key = mix(key, index(value));
  }
  if (const uint32_t* found = advances_.find(key)) return SetId{*found};
  std::vector<Item> items;
  bool ends_text = false;
  bool ignored = false;
  const Closure now = closures_[index(set)];
  const std::vector<TermId> terminals(lexer_.terminals_of(matched).begin(), lexer_.terminals_of(matched).end());
  for (TermId t : terminals) {
    ignored |= grammar_.is_ignored(t);
    auto begin = steps_.begin() + now.begin, end = begin + now.count;
    auto step = std::lower_bound(begin, end, t, [](const Step& s, TermId wanted) { return s.terminal < wanted; });
    for (; step != end && step->terminal == t; ++step) {
      Item next = step->next;
      const uint32_t rule = grammar_.state(next.state).rule;
      if (now.has_earlier) {
        if (EarlierId here = earlier_values(rule, next.memory)) next.memory = with_earlier(rule, next.memory, read_earlier(here, token_of(t, text)));
      }
      if (step->remember >= 0) next.memory = remembering(rule, next.memory, step->remember, text);
      complete(items, ends_text, next, value);
    }
  }
  if (ignored) {  // the lexeme stands between others and changes nothing
    std::span<const Item> same = this->items(set);
    items.insert(items.end(), same.begin(), same.end());
    ends_text |= set_ends_[index(set)];
  }
  SetId result = items.empty() && !ends_text ? SetId::none : intern_set(std::move(items), ends_text);
  advances_.insert(key, index(result));
  return result;
}

std::vector<Item> Parser::copy_of_items(SetId set) const { return {items(set).begin(), items(set).end()}; }

std::vector<Item> Parser::copy_of_waiting(OriginId origin) const { return {waiting(origin).begin(), waiting(origin).end()}; }

std::vector<Parser::Step> Parser::copy_of_steps(const Closure& closure) const {
  return {steps(closure).begin(), steps(closure).end()};
}

TrackId Parser::read(TrackId track, MatchId matched, TextId text) {
  for (TermId t : lexer_.terminals_of(matched)) {
    if (grammar_.roles[index(lexer_.base_terminal(t))] != Role::none) return values_.read(track, token_of(t, text));
  }
  return track;
}

// The terminal of an edge without the texts that the edge excludes here.
TermId Parser::excluding(const Edge& edge, uint32_t rule, MemoryId memory) {
  const auto slot = static_cast<size_t>(edge.excluding);
  const uint32_t used = memory_.values(memory)[slot];
  if (grammar_.rules[rule].slots[slot] == value_set) return lexer_.without_values(TermId{edge.symbol}, used, memory_, values_);
  return lexer_.without(TermId{edge.symbol}, TextSetId{used}, memory_, values_);
}

MemoryId Parser::remembering(uint32_t rule, MemoryId memory, int32_t slot, TextId text) {
  const auto at = static_cast<uint32_t>(slot);
  if (grammar_.rules[rule].slots[at] != value_set) {
    if (values_.strings_by_value() && text != TextId::unknown) return remembering_value(rule, memory, slot, values_.text(memory_.text(text)));
    return memory_.remember(memory, at, text);
  }
  return memory_.remember(memory, at, text == TextId::unknown ? ValueId::unknown_scalar : values_.scalar(memory_.text(text)));
}

// The same for a lexeme of this value; in a text set, the value of a lexeme is its text, a label.
MemoryId Parser::remembering_value(uint32_t rule, MemoryId memory, int32_t slot, ValueId value) {
  const auto at = static_cast<uint32_t>(slot);
  if (grammar_.rules[rule].slots[at] == value_set) return memory_.remember(memory, at, value);
  TextId text = TextId::empty;
  for (char c : values_.text(value)) text = memory_.extend(text, static_cast<uint8_t>(c));
  return memory_.remember(memory, at, text);
}

std::optional<ExprId> Parser::texts_of(uint32_t number, bool is_value) {
  if (!is_value && TextId{number} == TextId::unknown) return std::nullopt;
  if (!is_value) return lexer_.spelled_texts({memory_.text(TextId{number})}, values_);
  const ValueId value{number};
  if (value == ValueId::unknown_scalar || values_.is_group(value)) return std::nullopt;
  const std::string& text = values_.text(value);
  if (begins_number(text)) return std::nullopt;
  return lexer_.spelled_texts({text}, values_);
}

MemoryId Parser::without_values(uint32_t rule, MemoryId memory) {
  if (!grammar_.has_values) return memory;
  const std::vector<int32_t>& slots = grammar_.rules[rule].slots;
  for (uint32_t slot = 0; slot < slots.size(); ++slot) {
    if (slots[slot] == value_set) memory = memory_.with(memory, slot, 0);
  }
  if (!grammar_.reads_groups) return memory;
  return memory_.with(memory_.with(memory, earlier_slot(rule), no_earlier), earlier_slot(rule) + 1, 0);
}

MemoryId Parser::without_texts(uint32_t rule, MemoryId memory) {
  const std::vector<int32_t>& slots = grammar_.rules[rule].slots;
  for (uint32_t slot = 0; slot < slots.size(); ++slot) {
    if (slots[slot] == text_set) memory = memory_.with(memory, slot, 0);
  }
  return memory;
}

size_t Parser::memory_bytes() const {
  size_t total = (sets_.pool.size() + origins_.pool.size()) * sizeof(Item) + sets_.ids.bytes() + origins_.ids.bytes();
  total += (sets_.runs.size() + origins_.runs.size()) * 8 + closures_.size() * (sizeof(Closure) + 1);
  for (const Outlook& each : outlooks_) total += sizeof(Outlook) + each.ends.size() * sizeof(EarlierId);
  return total + steps_.size() * sizeof(Step) + advances_.bytes() + outlook_ids_.bytes() + values_.memory_bytes();
}

}  // namespace constrain
