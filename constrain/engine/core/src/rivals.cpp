// Values that must be distinct, where they are groups of lexemes: what is read must not become one of its rivals.
//
// A rule read through an edge that is `distinct` begins with the values of that edge's slot as rivals. Every lexeme
// leaves those that go on with just this lexeme; when none is left, nothing is asked of the rest. What is inside carries
// the rivals of all groups around it, outer ones first, each set with the track of what has been read since its group
// began. A lexeme after which *every* way to go on would end in a rival is excluded where it begins, from the expression
// of its terminal, so that a live state can still always be completed. That is decided here: a way that is not among
// those of the rivals escapes, since items without rivals can be completed; the others are followed, and there are no
// more of them than the rivals have.
#include <algorithm>

#include "errors.h"
#include "parser.h"

namespace constrain {

namespace {

constexpr uint32_t max_nested_groups = 1'000;

}  // namespace

Parser::RivalsId Parser::rivals(uint32_t rule, MemoryId memory) const { return memory_.values(memory)[rivals_slot(rule)]; }

MemoryId Parser::with_rivals(uint32_t rule, MemoryId memory, RivalsId rivals) {
  return grammar_.reads_groups ? memory_.with(memory, rivals_slot(rule), rivals) : memory;
}

// Pairs at the end without a rival are left out.
Parser::RivalsId Parser::trimmed(std::vector<uint32_t> pairs) {
  while (!pairs.empty() && pairs.back() == 0) pairs.resize(pairs.size() - 2);
  return memory_.intern_list(pairs);
}

Parser::RivalsId Parser::outermost(RivalsId rivals, size_t pairs) {
  std::span<const uint32_t> all = memory_.list(rivals);
  return 2 * pairs >= all.size() ? rivals : trimmed({all.begin(), all.begin() + static_cast<std::ptrdiff_t>(2 * pairs)});
}

// The rivals with which an edge of a rule begins to read another rule.
Parser::RivalsId Parser::begun(uint32_t rule, MemoryId memory, const Edge& edge) {
  if (!grammar_.reads_groups) return no_rivals;
  const RivalsId around = rivals(rule, memory);
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

bool Parser::uncertain(RivalsId rivals) const {
  std::span<const uint32_t> pairs = memory_.list(rivals);
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

// The rivals that agree with one more lexeme.
Parser::RivalsId Parser::read_rivals(RivalsId rivals, Token token) {
  if (token.role == Role::none) return rivals;
  std::vector<uint32_t> pairs(memory_.list(rivals).begin(), memory_.list(rivals).end());
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

// All lexemes with which some rival goes on, sorted, each with the rivals that agree with it.
std::vector<Parser::Choice> Parser::choices(RivalsId rivals) {
  const std::vector<uint32_t> pairs(memory_.list(rivals).begin(), memory_.list(rivals).end());
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

// The group that has just been completed, according to the innermost rivals.
ValueId Parser::last_value(RivalsId rivals) const {
  std::span<const uint32_t> pairs = memory_.list(rivals);
  return values_.last(TrackId{pairs[pairs.size() - 2]});
}

// Goes from the end of a rule, with the rivals left there, to a waiting item; false if the value read is a rival.
bool Parser::leave(RivalsId left, Item& waiting, ValueId value) {
  const uint32_t rule = grammar_.state(waiting.state).rule;
  const size_t count = memory_.list(rivals(rule, waiting.memory)).size() / 2;
  if (memory_.list(left).size() > 2 * count) return false;
  if (left != no_rivals) value = last_value(left);  // known even while a mask is made for all texts before
  waiting.memory = with_rivals(rule, waiting.memory, left);
  if (const uint32_t pending = memory_.values(waiting.memory)[rivals_slot(rule) + 1]) {
    waiting.memory = memory_.remember(memory_.with(waiting.memory, rivals_slot(rule) + 1, 0), pending - 1, value);
  }
  return true;
}

// What reading on from (state, memory) to the end of the rule may come to, where there are rivals.
const Parser::Outlook& Parser::outlook(StateId state, MemoryId memory, uint32_t depth) {
  const uint64_t key = (uint64_t{index(state)} << 32) | index(memory);
  if (const uint32_t* found = outlook_ids_.find(key)) return outlooks_[*found];
  static const Outlook nowhere;
  if (std::find(under_way_.begin(), under_way_.end(), key) != under_way_.end()) return nowhere;  // left recursion adds nothing
  if (depth > max_nested_groups) {
    throw LimitError("values that must be distinct are nested too deeply (MAX_NESTED_GROUPS = " + std::to_string(max_nested_groups) + ")", Limit::nested_groups);
  }
  under_way_.push_back(key);
  struct Leaving {
    std::vector<uint64_t>& stack;
    ~Leaving() { stack.pop_back(); }
  } leaving{under_way_};

  Outlook result;
  const uint32_t rule = grammar_.state(state).rule;
  FlatMap<uint64_t, uint8_t> seen;
  std::vector<std::pair<StateId, MemoryId>> work{{state, memory}};
  auto reach = [&](StateId target, MemoryId after) {
    if (rivals(rule, after) == no_rivals) result.escapes = true;
    work.emplace_back(target, after);
  };
  while (!work.empty() && !result.escapes) {
    auto [q, m] = work.back();
    work.pop_back();
    const uint64_t here = (uint64_t{index(q)} << 32) | index(m);
    if (seen.find(here)) continue;
    seen.insert(here, 1);
    const RivalsId now = rivals(rule, m);
    if (grammar_.state(q).accepting) result.ends.push_back(now);
    std::vector<Choice> next;
    bool chosen = false;
    std::vector<Edge> edges(grammar_.edges_of(q).begin(), grammar_.edges_of(q).end());
    std::stable_partition(edges.begin(), edges.end(), [](const Edge& edge) { return edge.kind != EdgeKind::rule; });  // the quick ones first
    for (const Edge& edge : edges) {
      if (result.escapes) break;
      if (!holds(edge, m)) continue;
      int32_t remember;
      const MemoryId after = updated(edge, rule, m, remember);
      if (edge.kind == EdgeKind::epsilon) {
        reach(edge.target, after);
      } else if (edge.kind == EdgeKind::rule) {
        if (grammar_.rules[edge.symbol].nullable) reach(edge.target, after);
        const MemoryId begin = with_rivals(edge.symbol, fresh_[edge.symbol], begun(rule, m, edge));
        const Outlook inner = outlook(grammar_.rules[edge.symbol].start, begin, depth + 1);
        result.escapes |= inner.escapes;
        for (RivalsId left : inner.ends) {
          Item waiting{edge.target, OriginId::end, after};
          if (leave(left, waiting, ValueId::unknown_group)) reach(waiting.state, waiting.memory);
        }
      } else {
        const TermId terminal = edge.excluding >= 0 ? excluding(edge, rule, m) : TermId{edge.symbol};
        if (lexer_.expression(terminal) == ExprId::nothing) continue;
        if (!chosen) next = choices(now);
        chosen = true;
        const Token token = token_of(terminal, TextId::unknown);
        if (token.role == Role::none) {
          reach(edge.target, after);
        } else if (!reads_own_text(terminal)) {
          auto same = std::find_if(next.begin(), next.end(), [&](const Choice& each) { return each.token == token; });
          reach(edge.target, with_rivals(rule, after, same == next.end() ? no_rivals : same->after));
        } else {
          std::vector<uint32_t> taken;
          for (const Choice& each : next) {
            if (each.token.role == token.role) taken.push_back(index(each.token.value));
          }
          std::sort(taken.begin(), taken.end());
          const TermId others = lexer_.without_values(terminal, memory_.intern_list(taken), memory_, values_);
          if (lexer_.expression(others) != ExprId::nothing) {
            result.escapes = true;
            break;
          }
          for (const Choice& each : next) {
            if (each.token.role != token.role || !lexer_.matches(terminal, each.token.value, values_)) continue;
            MemoryId read = with_rivals(rule, after, each.after);
            if (remember >= 0) read = remembering_value(rule, read, remember, each.token.value);
            reach(edge.target, read);
          }
        }
      }
    }
  }
  if (result.escapes) result.ends.clear();
  std::sort(result.ends.begin(), result.ends.end());
  result.ends.erase(std::unique(result.ends.begin(), result.ends.end()), result.ends.end());
  outlook_ids_.insert(key, static_cast<uint32_t>(outlooks_.size()));
  outlooks_.push_back(std::move(result));
  return outlooks_.back();
}

// Whether the text can be completed from an item (after a lexeme) without reading a rival.
bool Parser::alive(const Item& item, uint32_t depth) {
  const uint32_t rule = grammar_.state(item.state).rule;
  if (rivals(rule, item.memory) == no_rivals) return true;
  if (depth > max_nested_groups) {
    throw LimitError("values that must be distinct are nested too deeply (MAX_NESTED_GROUPS = " + std::to_string(max_nested_groups) + ")", Limit::nested_groups);
  }
  const Outlook outlook = this->outlook(item.state, item.memory, 0);
  if (outlook.escapes) return true;
  const std::vector<Item> waiting = copy_of_waiting(item.origin);
  for (RivalsId left : outlook.ends) {
    for (Item each : waiting) {
      if (leave(left, each, ValueId::unknown_group) && alive(each, depth + 1)) return true;
    }
  }
  return false;
}

// Takes the lexemes after which only rivals could be read out of the steps of a closure.
void Parser::exclude_rivals(std::vector<Step>& steps, Closure& closure) {
  for (const Step& step : steps) {
    const RivalsId here = rivals(grammar_.state(step.next.state).rule, step.next.memory);
    closure.has_rivals |= here != no_rivals;
    closure.uncertain |= uncertain(here);
  }
  if (closure.uncertain || !closure.has_rivals) return;
  RivalsId known = no_rivals;  // whose choices these are: mostly the same for all steps
  std::vector<Choice> next;
  for (Step& step : steps) {
    const uint32_t rule = grammar_.state(step.next.state).rule;
    const RivalsId here = rivals(rule, step.next.memory);
    if (here == no_rivals) continue;
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
      after.memory = with_rivals(rule, after.memory, each.after);
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
