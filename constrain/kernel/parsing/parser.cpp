// Computes closures of sets, and advances sets over lexemes.
//
// Items count as work of the expressions (`count_items`), so that a limit on work also ends long steps of ambiguous
// grammars: before anything is interned, because a closure or an origin is kept whole or not at all.
#include "parsing/parser.h"

#include <algorithm>

#include "base/components.h"

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

Hash key_of(std::span<const Item> items, bool ends) {
  Hash key = seeded(items.size() * 2 + ends);
  for (const Item& item : items) key = item_hash(key, item);
  return key;
}

void sort_unique(std::vector<Item>& items, Work& work) {
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
};

void Parser::begin() {
  set_of({}, false);  // SetId::none
  origin_of({}, true);
  std::vector<Item> items;
  bool ends_text = false;
  add(items, ends_text, {grammar_.rules[0].start, OriginId::end, slots_.fresh(0)});
  start_ = set_of(std::move(items), ends_text);
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

// Adds the items that wait for the rule of an item that may end here. `value`: the group that the last lexeme completed.
void Parser::finish(std::vector<Item>& items, bool& ends_text, const Item& item, ValueId value) {
  const std::vector<Item> waiting = copy_of_waiting(item.origin);
  lexer_.expressions().work().count_items(waiting.size());
  const EarlierId left = grammar_.reads_groups ? earlier_.of(item) : no_earlier;
  for (Item each : waiting) {
    if (!grammar_.reads_groups || earlier_.leave(left, each, value)) items.push_back(each);
  }
  ends_text |= origin_ends_[index(item.origin)] && left == no_earlier;
}

SetId Parser::set_of(std::vector<Item> items, bool ends) {
  sort_unique(items, lexer_.expressions().work());
  const uint32_t id = sets_.intern(key_of(items, ends), items);
  if (id == set_ends_.size()) {
    set_ends_.push_back(ends);
    closures_.emplace_back();
    closed_.push_back(0);
  }
  return SetId{id};
}

OriginId Parser::origin_of(std::span<const Item> items, bool ends, const Hash* given) {
  const uint32_t id = origins_.intern(given ? *given : key_of(items, ends), items);
  if (id == origin_ends_.size()) origin_ends_.push_back(ends);
  return OriginId{id};
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
    result_.accepting = parser_.ends(set);
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
  work_.push_back({grammar_.rules[rule].start, origin, parser_.earlier_.with(rule, parser_.slots_.fresh(rule), earlier)});
}

void Parser::Closing::predict_all() {
  while (!work_.empty()) {
    const Item item = work_.back();
    work_.pop_back();
    parser_.lexer_.expressions().work().count_items(1);
    if (is_known(item)) continue;
    const State& state = grammar_.state(item.state);
    if (state.accepting && !is_local(item.origin)) {  // ends of rules that begin here: nullable rules, see `follow`
      parser_.finish(work_, result_.accepting, item, ValueId::unknown_group);
    }
    for (const Edge& edge : grammar_.edges_of(item.state)) {
      if (parser_.slots_.holds(edge, item.memory)) follow(edge, state.rule, item);
    }
  }
}

void Parser::Closing::follow(const Edge& edge, uint32_t rule, const Item& item) {
  int32_t remember;
  const Item next{edge.target, item.origin, parser_.slots_.updated(edge, rule, item.memory, remember)};
  switch (edge.kind) {
    case EdgeKind::epsilon:
      work_.push_back(next);
      break;
    case EdgeKind::terminal: {
      TermId terminal{edge.symbol};
      if (edge.excluding >= 0) {
        terminal = parser_.slots_.excluding(edge, rule, item.memory);
        if (parser_.lexer_.expression(terminal) == ExprId::nothing) break;
      }
      found_.push_back({terminal, next, remember});
      break;
    }
    case EdgeKind::rule:
      predict(edge.symbol, parser_.earlier_.begun(rule, item.memory, edge), next);
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
  if (grammar_.reads_groups) {
    for (const Step& step : found_) {
      const EarlierId here = parser_.earlier_.of(step.next);
      result_.has_earlier |= here != no_earlier;
      result_.uncertain |= parser_.earlier_.are_uncertain(here);
    }
    if (result_.has_earlier && !result_.uncertain) parser_.earlier_.exclude(found_, parser_.origins_);
  }
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
  const auto append_origins = [&](uint32_t p, std::vector<uint32_t>& list) {
    for (const Item& item : predicted[p].waiting) {
      if (is_local(item.origin)) list.push_back(index(item.origin) - local_origin);
    }
  };
  find_components(predicted.size(), append_origins, [&](std::vector<uint32_t>& group) { intern_component(predicted, group); });
}

void Parser::replace_tail_calls(std::vector<Predicted>& predicted) {
  auto local = [](OriginId origin) { return index(origin) - local_origin; };
  auto is_tail_call = [this](const Item& item) { return grammar_.state(item.state).only_accepting(); };
  std::vector<Item> kept;
  std::vector<uint32_t> merged;
  for (uint32_t p = 0; p < predicted.size(); ++p) {
    if (std::ranges::none_of(predicted[p].waiting, is_tail_call)) {
      sort_unique(predicted[p].waiting, lexer_.expressions().work());
      continue;
    }
    kept.clear();
    merged.assign(1, p);
    for (size_t i = 0; i < merged.size(); ++i) {
      lexer_.expressions().work().count_items(predicted[merged[i]].waiting.size());
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
    sort_unique(kept, lexer_.expressions().work());
    predicted[p].waiting.assign(kept.begin(), kept.end());
  }
}

// Gives a component its origins, after the origins it depends on. Within a group that waits for itself, an origin is
// named by its rule; once the group has ids, its items get them. A rule is there once: nothing has been read since the
// first of the group began, so no value was added, and all began with the same earlier values.
void Parser::intern_component(std::vector<Predicted>& predicted, std::vector<uint32_t>& group) {
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
    sort_unique(predicted[p].waiting, lexer_.expressions().work());
  }
  if (!recursive) {
    Predicted& alone = predicted[group[0]];
    alone.origin = origin_of(alone.waiting, alone.ends_text);
    return;
  }
  Hash group_key = seeded(0x67726F7570);
  std::vector<Item> named;
  for (uint32_t p : group) {
    named.assign(predicted[p].waiting.begin(), predicted[p].waiting.end());
    for (Item& item : named) {
      if (in_group(item.origin)) item.origin = OriginId{local_origin + predicted[local(item.origin)].rule};
    }
    sort_unique(named, lexer_.expressions().work());
    group_key = mix(mix(group_key, predicted[p].rule), named.size() * 2 + predicted[p].ends_text);
    for (const Item& item : named) group_key = item_hash(group_key, item);
  }
  bool known = false;
  for (uint32_t p : group) {
    Hash key = mix(group_key, predicted[p].rule);
    known = origins_.find(key) != nullptr;
    predicted[p].origin = origin_of(predicted[p].waiting, predicted[p].ends_text, &key);
  }
  if (known) return;
  for (uint32_t p : group) {
    const std::span<Item> items = origins_.change(index(predicted[p].origin));
    for (Item& item : items) {
      if (is_local(item.origin)) item.origin = predicted[local(item.origin)].origin;
    }
    std::sort(items.begin(), items.end());
  }
}

SetId Parser::advance(SetId set, MatchId matched, TextId text, TrackId track) {
  if (!closure(set).uses_text) text = TextId::empty;
  Hash key = mix(mix(seeded(0x616476), paired(set, matched)), index(text));
  ValueId value = ValueId::unknown_group;  // the group completed by the lexeme
  if (grammar_.reads_groups) {
    auto closes = [this](TermId t) { return grammar_.roles[index(lexer_.base_terminal(t))] == Role::close; };
    std::span<const TermId> terminals = lexer_.terminals_of(matched);
    if (std::any_of(terminals.begin(), terminals.end(), closes) && track != TrackId::unknown) value = slots_.values().last(track);
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
        if (EarlierId here = earlier_.of(next)) next.memory = earlier_.with(rule, next.memory, earlier_.read(here, slots_.token_of(t, text)));
      }
      if (step->remember >= 0) next.memory = slots_.remembering(rule, next.memory, step->remember, text);
      if (grammar_.state(next.state).only_accepting()) {
        finish(items, ends_text, next, value);
      } else {
        items.push_back(next);
      }
    }
  }
  if (ignored) {  // the lexeme stands between others and changes nothing
    std::span<const Item> same = this->items(set);
    items.insert(items.end(), same.begin(), same.end());
    ends_text |= ends(set);
  }
  SetId result = items.empty() && !ends_text ? SetId::none : set_of(std::move(items), ends_text);
  advances_.insert(key, index(result));
  return result;
}

std::vector<Item> Parser::copy_of_items(SetId set) const { return {items(set).begin(), items(set).end()}; }

std::vector<Item> Parser::copy_of_waiting(OriginId origin) const { return {waiting(origin).begin(), waiting(origin).end()}; }

std::vector<Step> Parser::copy_of_steps(const Closure& closure) const { return {steps(closure).begin(), steps(closure).end()}; }

TrackId Parser::read(TrackId track, MatchId matched, TextId text) {
  for (TermId t : lexer_.terminals_of(matched)) {
    if (grammar_.roles[index(lexer_.base_terminal(t))] != Role::none) return slots_.values().read(track, slots_.token_of(t, text));
  }
  return track;
}

size_t Parser::memory_bytes() const {
  return sets_.memory_bytes() + origins_.memory_bytes() + closures_.size() * (sizeof(Closure) + 1) + steps_.size() * sizeof(Step) +
         advances_.bytes() + earlier_.memory_bytes();
}

}  // namespace constrain
