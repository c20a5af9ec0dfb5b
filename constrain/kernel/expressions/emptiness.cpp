// Decides whether intersections, windows and multiples match anything.
#include "expressions/emptiness.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>

#include "base/errors.h"
#include "expressions/expressions.h"

namespace constrain {

namespace {

using Kind = ExpressionNodes::Kind;
using Multiple = ExpressionNodes::Multiple;

constexpr size_t states_in_breadth = 64;   // states of a search before it goes where an end seems nearest
constexpr uint32_t max_repeated = 1'000;   // repetitions of one byte that are tried to reach an end
constexpr uint32_t after_minimum = 4;      // repetitions beyond the needed minimum
constexpr unsigned bytes_repeated = 2;     // different bytes tried
constexpr unsigned max_digits_tried = 2'000;  // beginnings of numbers, for one multiple; beyond them there is no answer

}  // namespace

void Emptiness::set_verdict(ExprId e, int16_t verdict) {
  if (verdicts_.size() <= index(e)) verdicts_.resize(index(e) + 1, unknown);
  verdicts_[index(e)] = verdict;
}

// Searches for a nullable derivative, breadth first, later where an end seems nearest. All on the way to one is live; a
// finished search without one proves everything it met empty.
bool Emptiness::decide_intersection(ExpressionStore& store, ExprId start) {
  if (store.nullable(start) || store.infinite(start)) return true;
  if (const int16_t known = verdict(start); known != unknown) return known != empty;
  const Work::Deciding deciding(store.work());
  if (std::optional<bool> answer = decide_multiple(store, start)) {
    set_verdict(start, *answer ? live : empty);
    return *answer;
  }
  struct Visit {
    ExprId e;
    size_t parent;
    uint8_t byte;  // the byte that led here
  };
  std::vector<Visit> queue{{start, 0, 0}};
  FlatMap<uint32_t, uint8_t> seen;
  seen.insert(index(start), 1);
  using Entry = std::pair<uint32_t, size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> nearest;
  for (size_t count = 0; count < queue.size(); ++count) {
    const uint32_t* undecided = undecided_.find(index(start));
    const bool too_many = queue.size() > store.work().intersection_states();
    if (too_many && !undecided) undecided_.insert(index(start), store.work().intersection_states());
    if (too_many || (undecided && *undecided >= store.work().intersection_states())) {
      throw UndecidedError(limit_message("deciding whether an intersection of expressions matches anything takes too many states",
                                     MAX_INTERSECTION_STATES, store.work().intersection_states()), Limit::intersection_states);
    }
    size_t at = count;
    if (count >= states_in_breadth) {
      if (count == states_in_breadth) {
        for (size_t i = count; i < queue.size(); ++i) nearest.emplace(distances_.of(store.nodes(), queue[i].e), i);
      }
      at = nearest.top().second;
      nearest.pop();
    }
    ExprId e = queue[at].e;
    ByteSet possible = store.first(e);
    for (uint8_t byte : store.representatives({e})) {
      if (!possible.contains(byte)) continue;
      std::vector<ExprId> next = store.nodes().copy_of_parts(store[e]);
      store.work().spend(1 + next.size() / 8);
      for (ExprId& part : next) part = store.derivative(part, byte);
      ExprId d = store.intersection_undecided(std::move(next));
      if (d == ExprId::nothing || verdict(d) == empty) continue;
      if (store.nullable(d) || store.infinite(d) || store[d].kind != Kind::intersection || verdict(d) != unknown) {
        uint8_t onward = byte;
        for (size_t i = at;; i = queue[i].parent) {
          set_verdict(queue[i].e, onward);
          if (i == 0) return true;
          onward = queue[i].byte;
        }
      }
      if (!seen.find(index(d))) {
        seen.insert(index(d), 1);
        if (count >= states_in_breadth) nearest.emplace(distances_.of(store.nodes(), d), queue.size());
        queue.push_back({d, at, byte});
      }
    }
  }
  for (const Visit& visit : queue) set_verdict(visit.e, empty);
  return false;
}

// An intersection with a multiple, while integer digits are read: decided by arithmetic, so that large divisors cost
// nothing. No answer if this test does not apply.
std::optional<bool> Emptiness::decide_multiple(ExpressionStore& store, ExprId e) {
  std::optional<ExprId> multiple;
  std::vector<ExprId> others;
  for (ExprId part : store.parts(e)) {
    if (store[part].kind == Kind::multiple && !multiple) {
      multiple = part;
    } else {
      others.push_back(part);
    }
  }
  if (!multiple) return std::nullopt;
  const ExpressionNodes::Node node = store[*multiple];
  if (node.phase() > ExpressionNodes::phase_integer) return std::nullopt;  // in the fraction few digits are left
  ExprId digits = store.intersection(std::move(others));
  if (digits == ExprId::nothing) return false;
  Multiple machine = store.nodes().multiple(node);
  for (uint32_t i = 0; i < machine.scale; ++i) {  // for the integer part alone: the divisor without 10^scale
    uint64_t common = std::gcd(machine.divisor, uint64_t{10});
    if (common == 1) break;
    machine.divisor /= common;
  }
  return multiple_completes(store, digits, machine, node.residue(), node.phase() == ExpressionNodes::phase_integer);
}

std::optional<bool> Emptiness::multiple_completes(ExpressionStore& store, ExprId digits, const Multiple& machine, uint64_t residue, bool begun) {
  const uint64_t divisor = machine.divisor;
  struct Beginning {
    ExprId digits;  // the digits that may follow
    uint64_t residue;
    bool begun;
  };
  std::vector<Beginning> waiting{{digits, residue, begun}};
  bool complete = true;  // only digits were possible so far, and all were followed
  for (unsigned tried = 0; !waiting.empty(); ++tried) {
    if (tried == max_digits_tried) return std::nullopt;
    const Beginning at = waiting.back();
    waiting.pop_back();
    begun = at.begun;
    residue = at.residue % divisor;
    ExprId run = at.digits;
    uint64_t power = 1;  // number of digit strings of the length reached, capped
    bool free = true;    // every next digit leads to the same state
    for (uint64_t shifted = residue;;) {
      const uint64_t wanted = (divisor - shifted) % divisor;  // the least number that the digits must spell
      if (store.nullable(run) && wanted < power && begun) return true;
      const ByteSet possible = store.first(run);
      complete &= (possible & ByteSet::range('0', '9')) == possible;
      const ExprId next = store.derivative(run, '0');
      for (uint8_t d = '1'; d <= '9' && free; ++d) free = store.derivative(run, d) == next;
      if (!free || next == ExprId::nothing) break;
      if (next == run && power >= divisor && begun) {
        if (store.nullable(run)) return true;
        complete = false;
        break;
      }
      run = next;
      begun = true;
      shifted = shifted * 10 % divisor;
      power = power >= divisor ? power : power * 10;
    }
    if (free) continue;
    if (run != at.digits) {
      complete = false;
      continue;
    }
    for (uint8_t d = '9'; d >= '0'; --d) {  // the next digit matters: one branch for each, that of 0 first
      const ExprId next = store.derivative(run, d);
      if (next != ExprId::nothing) waiting.push_back({next, (residue * 10 + (d - '0')) % divisor, true});
    }
  }
  return complete ? std::optional<bool>(false) : std::nullopt;
}

// The parts that remain after the current unit.
std::vector<ExprId> Emptiness::after_unit(ExpressionStore& store, ExprId part, ExprId unit, ExprId unit_state) {
  Hash key = mix(mix(store.hash(part), store.hash(unit)), store.hash(unit_state));
  if (const uint32_t* found = unit_ids_.find(key)) return unit_targets_[*found];
  std::vector<ExprId> targets;
  std::vector<std::pair<ExprId, ExprId>> stack{{part, unit_state}};
  FlatMap<uint64_t, uint8_t> seen;
  while (!stack.empty()) {
    auto [p, u] = stack.back();
    stack.pop_back();
    ByteSet possible = store.first(p) & store.first(u);
    for (uint8_t byte : store.representatives({p, u})) {
      if (!possible.contains(byte)) continue;
      ExprId next_unit = store.derivative(u, byte), next_part = store.derivative(p, byte);
      if (next_unit == ExprId::nothing || next_part == ExprId::nothing) continue;
      if (store.nullable(next_unit)) {
        targets.push_back(next_part);
      } else if (uint64_t pair = paired(next_part, next_unit); !seen.find(pair)) {
        seen.insert(pair, 1);
        stack.emplace_back(next_part, next_unit);
      }
    }
  }
  std::sort(targets.begin(), targets.end());
  targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
  unit_ids_.insert(key, static_cast<uint32_t>(unit_targets_.size()));
  unit_targets_.push_back(targets);
  return targets;
}

// The parts that remain after one more unit of each.
std::vector<ExprId> Emptiness::after_units(ExpressionStore& store, const std::vector<ExprId>& parts, ExprId unit) {
  std::vector<ExprId> next;
  for (ExprId part : parts) {
    const std::vector<ExprId> targets = after_unit(store, part, unit, unit);
    store.work().spend(1 + targets.size() / 8);
    next.insert(next.end(), targets.begin(), targets.end());
  }
  std::sort(next.begin(), next.end());
  next.erase(std::unique(next.begin(), next.end()), next.end());
  return next;
}

// Whether the part may end at a boundary between units, or continue with a byte that begins no unit.
bool Emptiness::ends_units(ExpressionStore& store, ExprId part, ExprId unit) {
  if (store.nullable(part)) return true;
  ByteSet possible = store.first(part);
  for (uint8_t byte : store.representatives({part, unit})) {
    if (possible.contains(byte) && store.derivative(unit, byte) == ExprId::nothing && store.derivative(part, byte) != ExprId::nothing) {
      return true;
    }
  }
  return false;
}

// A byte that is a unit by itself, and how often it leads to an end; quick for most expressions that have an end.
std::optional<std::string> Emptiness::repeats_to_end(ExpressionStore& store, ExprId part, ExprId unit, uint32_t minimum, uint32_t maximum) {
  if (minimum > max_repeated) return std::nullopt;
  ByteSet possible = store.first(part);
  unsigned tried = 0;
  const std::vector<uint8_t> bytes = store.representatives({part, unit});
  for (size_t i = bytes.size(); i-- > 0 && tried < bytes_repeated;) {  // the last byte mostly stands for all unnamed ones
    if (!possible.contains(bytes[i]) || !store.nullable(store.derivative(unit, bytes[i]))) continue;
    ++tried;
    ExprId e = part;
    for (uint32_t k = 0; e != ExprId::nothing && k <= maximum && k <= minimum + after_minimum; ++k) {
      if (k >= minimum && ends_units(store, e, unit)) return std::string(k, static_cast<char>(bytes[i]));
      e = store.derivative(e, bytes[i]);
    }
  }
  return std::nullopt;
}

// Whether the part may end after a number of units in [minimum, maximum]. The parts possible after k units form a
// sequence of sets that is periodic in the end; the first repetition decides all larger k.
bool Emptiness::decide_window(ExpressionStore& store, ExprId part, ExprId unit, ExprId state, uint32_t minimum, uint32_t maximum) {
  const Work::Deciding deciding(store.work());
  if (state == unit && repeats_to_end(store, part, unit, minimum, maximum)) return true;
  std::vector<ExprId> current = state == unit ? std::vector<ExprId>{part} : after_unit(store, part, unit, state);
  if (state != unit && !current.empty() && repeats_to_end(store, current[0], unit, minimum, maximum)) return true;
  FlatMap<Hash, uint32_t> seen;
  std::vector<bool> may_end;
  for (uint32_t k = 0;; ++k) {
    if (current.empty()) return false;
    store.work().spend(current.size());
    Hash key = seeded(current.size());
    bool ends = false;
    for (ExprId e : current) {
      key = mix(key, store.hash(e));
      ends = ends || ends_units(store, e, unit);
    }
    if (ends && k >= minimum) return true;
    if (k == maximum) return false;
    if (const uint32_t* found = seen.find(key)) {
      uint32_t period = k - *found;
      for (uint32_t i = *found; i < k; ++i) {
        if (!may_end[i]) continue;
        uint64_t n = i >= minimum ? i : i + (uint64_t{minimum - i} + period - 1) / period * period;
        if (maximum == unbounded || n <= maximum) return true;
      }
      return false;
    }
    if (k >= store.work().intersection_states()) {
      throw LimitError(limit_message("the lengths of an expression's matches take too many steps to find",
                                     MAX_INTERSECTION_STATES, store.work().intersection_states()), Limit::intersection_states);
    }
    seen.insert(key, k);
    may_end.push_back(ends);
    current = after_units(store, current, unit);
  }
}

// Whether every text is matched: a search for a derivative that is not nullable.
bool Emptiness::is_universal(ExpressionStore& store, ExprId start) {
  if (const uint8_t* known = universal_.find(index(start))) return *known != 0;
  const Work::Deciding deciding(store.work());
  std::vector<ExprId> queue{start};
  FlatMap<uint32_t, uint8_t> seen;
  seen.insert(index(start), 1);
  bool universal = true;
  for (size_t at = 0; at < queue.size() && universal; ++at) {
    if (queue.size() > store.work().intersection_states()) {
      throw LimitError(limit_message("deciding whether a complement matches anything takes too many states",
                                     MAX_INTERSECTION_STATES, store.work().intersection_states()), Limit::intersection_states);
    }
    universal = store.nullable(queue[at]);
    for (uint8_t byte : store.representatives({queue[at]})) {
      ExprId next = store.derivative(queue[at], byte);
      universal = universal && store.nullable(next);
      if (!universal) break;
      if (seen.find(index(next))) continue;
      seen.insert(index(next), 1);
      queue.push_back(next);
    }
  }
  universal_.insert(index(start), universal);
  return universal;
}

}  // namespace constrain
