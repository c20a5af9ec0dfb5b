// Decides whether intersections, windows and multiples match anything.
#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>

#include "base/errors.h"
#include "expressions/nesting.h"

namespace constrain {

namespace {

using Kind = ExpressionStore::Kind;


constexpr size_t states_in_breadth = 64;   // states of a search before it goes where an end seems nearest
constexpr uint32_t max_repeated = 1'000;   // repetitions of one byte that are tried to reach an end
constexpr uint32_t after_minimum = 4;      // repetitions beyond the needed minimum
constexpr unsigned bytes_repeated = 2;     // different bytes tried
constexpr unsigned max_digits_tried = 2'000;  // beginnings of numbers, for one multiple; beyond them there is no answer

}  // namespace

// Searches for a nullable derivative, breadth first, later where an end seems nearest. All on the way to one is live; a
// finished search without one proves everything it met empty.
bool ExpressionStore::decide_intersection(ExprId start) {
  if (nullable(start) || infinite(start)) return true;
  if (verdicts_[index(start)] != Verdict::unknown) return verdicts_[index(start)] == Verdict::live;
  const Deciding deciding(*this);
  if (std::optional<bool> answer = decide_multiple(start)) {
    verdicts_[index(start)] = *answer ? Verdict::live : Verdict::empty;
    return *answer;
  }
  std::vector<Visit> queue{{start, 0, 0}};
  FlatMap<uint32_t, uint8_t> seen;
  seen.insert(index(start), 1);
  using Entry = std::pair<uint32_t, size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> nearest;
  for (size_t count = 0; count < queue.size(); ++count) {
    const uint32_t* undecided = undecided_.find(index(start));
    const bool too_many = queue.size() > states_allowed_;
    if (too_many && !undecided) undecided_.insert(index(start), states_allowed_);
    if (too_many || (undecided && *undecided >= states_allowed_)) {
      throw UndecidedError(limit_message("deciding whether an intersection of expressions matches anything takes too many states",
                                     MAX_INTERSECTION_STATES, states_allowed_), Limit::intersection_states);
    }
    size_t at = count;
    if (count >= states_in_breadth) {
      if (count == states_in_breadth) {
        for (size_t i = count; i < queue.size(); ++i) nearest.emplace(distance(queue[i].e), i);
      }
      at = nearest.top().second;
      nearest.pop();
    }
    ExprId e = queue[at].e;
    ByteSet possible = first(e);
    for (uint8_t byte : representatives({e})) {
      if (!possible.contains(byte)) continue;
      Node node = nodes_[index(e)];
      std::vector<ExprId> next;
      spend(1 + node.part_count() / 8);
      for (uint32_t i = 0; i < node.part_count(); ++i) next.push_back(derivative(children_[node.first_part() + i], byte));
      ExprId d = intersection_undecided(std::move(next));
      if (d == ExprId::nothing || verdicts_[index(d)] == Verdict::empty) continue;
      bool live = nullable(d) || infinite(d) || nodes_[index(d)].kind != Kind::intersection || verdicts_[index(d)] == Verdict::live;
      if (live) {
        uint8_t onward = byte;
        for (size_t i = at;; i = queue[i].parent) {
          verdicts_[index(queue[i].e)] = Verdict::live;
          onward_[index(queue[i].e)] = onward;
          if (i == 0) return true;
          onward = queue[i].byte;
        }
      }
      if (!seen.find(index(d))) {
        seen.insert(index(d), 1);
        if (count >= states_in_breadth) nearest.emplace(distance(d), queue.size());
        queue.push_back({d, at, byte});
      }
    }
  }
  for (const Visit& visit : queue) verdicts_[index(visit.e)] = Verdict::empty;
  return false;
}

// An intersection with a multiple, while integer digits are read: decided by arithmetic, so that large divisors cost
// nothing. No answer if this test does not apply.
std::optional<bool> ExpressionStore::decide_multiple(ExprId e) {
  std::optional<ExprId> multiple;
  std::vector<ExprId> others;
  for (ExprId part : parts(e)) {
    if (nodes_[index(part)].kind == Kind::multiple && !multiple) {
      multiple = part;
    } else {
      others.push_back(part);
    }
  }
  if (!multiple) return std::nullopt;
  Node node = nodes_[index(*multiple)];
  if (node.phase() > phase_integer) return std::nullopt;  // in the fraction few digits are left
  ExprId digits = intersection(std::move(others));
  if (digits == ExprId::nothing) return false;
  Multiple machine = multiples_[node.machine()];
  for (uint32_t i = 0; i < machine.scale; ++i) {  // for the integer part alone: the divisor without 10^scale
    uint64_t common = std::gcd(machine.divisor, uint64_t{10});
    if (common == 1) break;
    machine.divisor /= common;
  }
  return multiple_completes(digits, machine, node.residue(), node.phase() == phase_integer);
}

std::optional<bool> ExpressionStore::multiple_completes(ExprId digits, const Multiple& machine, uint64_t residue, bool begun) {
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
      if (nullable(run) && wanted < power && begun) return true;
      const ByteSet possible = first(run);
      complete &= (possible & ByteSet::range('0', '9')) == possible;
      const ExprId next = derivative(run, '0');
      for (uint8_t d = '1'; d <= '9' && free; ++d) free = derivative(run, d) == next;
      if (!free || next == ExprId::nothing) break;
      if (next == run && power >= divisor && begun) {
        if (nullable(run)) return true;
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
      const ExprId next = derivative(run, d);
      if (next != ExprId::nothing) waiting.push_back({next, (residue * 10 + (d - '0')) % divisor, true});
    }
  }
  return complete ? std::optional<bool>(false) : std::nullopt;
}

// The parts that remain after the current unit.
std::vector<ExprId> ExpressionStore::after_unit(ExprId part, ExprId unit, ExprId unit_state) {
  Hash key = mix(mix(hash(part), hash(unit)), hash(unit_state));
  if (const uint32_t* found = unit_ids_.find(key)) return unit_targets_[*found];
  std::vector<ExprId> targets;
  std::vector<std::pair<ExprId, ExprId>> stack{{part, unit_state}};
  FlatMap<uint64_t, uint8_t> seen;
  while (!stack.empty()) {
    auto [p, u] = stack.back();
    stack.pop_back();
    ByteSet possible = first(p) & first(u);
    for (uint8_t byte : representatives({p, u})) {
      if (!possible.contains(byte)) continue;
      ExprId next_unit = derivative(u, byte), next_part = derivative(p, byte);
      if (next_unit == ExprId::nothing || next_part == ExprId::nothing) continue;
      if (nullable(next_unit)) {
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

// Whether the part may end at a boundary between units, or continue with a byte that begins no unit.
bool ExpressionStore::ends_units(ExprId part, ExprId unit) {
  if (nullable(part)) return true;
  ByteSet possible = first(part);
  for (uint8_t byte : representatives({part, unit})) {
    if (possible.contains(byte) && derivative(unit, byte) == ExprId::nothing && derivative(part, byte) != ExprId::nothing) {
      return true;
    }
  }
  return false;
}

// A byte that is a unit by itself, and how often it leads to an end; quick for most expressions that have an end.
std::optional<std::string> ExpressionStore::repeats_to_end(ExprId part, ExprId unit, uint32_t minimum, uint32_t maximum) {
  if (minimum > max_repeated) return std::nullopt;
  ByteSet possible = first(part);
  unsigned tried = 0;
  const std::vector<uint8_t> bytes = representatives({part, unit});
  for (size_t i = bytes.size(); i-- > 0 && tried < bytes_repeated;) {  // the last byte mostly stands for all unnamed ones
    if (!possible.contains(bytes[i]) || !nullable(derivative(unit, bytes[i]))) continue;
    ++tried;
    ExprId e = part;
    for (uint32_t k = 0; e != ExprId::nothing && k <= maximum && k <= minimum + after_minimum; ++k) {
      if (k >= minimum && ends_units(e, unit)) return std::string(k, static_cast<char>(bytes[i]));
      e = derivative(e, bytes[i]);
    }
  }
  return std::nullopt;
}

// Whether the part may end after a number of units in [minimum, maximum]. The parts possible after k units form a
// sequence of sets that is periodic in the end; the first repetition decides all larger k.
bool ExpressionStore::decide_window(ExprId part, ExprId unit, ExprId state, uint32_t minimum, uint32_t maximum) {
  const Deciding deciding(*this);
  if (state == unit && repeats_to_end(part, unit, minimum, maximum)) return true;
  std::vector<ExprId> current = state == unit ? std::vector<ExprId>{part} : after_unit(part, unit, state);
  if (state != unit && !current.empty() && repeats_to_end(current[0], unit, minimum, maximum)) return true;
  FlatMap<Hash, uint32_t> seen;
  std::vector<bool> may_end;
  for (uint32_t k = 0;; ++k) {
    if (current.empty()) return false;
    spend(current.size());
    Hash key = seeded(current.size());
    bool ends = false;
    for (ExprId e : current) {
      key = mix(key, hash(e));
      ends = ends || ends_units(e, unit);
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
    if (k >= length_sets_allowed_) {
      throw LimitError(limit_message("the lengths of an expression's matches take too many steps to find",
                                     MAX_LENGTH_SETS, length_sets_allowed_), Limit::length_sets);
    }
    seen.insert(key, k);
    may_end.push_back(ends);
    std::vector<ExprId> next;
    for (ExprId e : current) {
      const std::vector<ExprId> targets = after_unit(e, unit, unit);
      spend(1 + targets.size() / 8);
      next.insert(next.end(), targets.begin(), targets.end());
    }
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    current = std::move(next);
  }
}

std::optional<std::vector<std::string>> ExpressionStore::matches(ExprId start, size_t limit) {
  std::vector<std::string> found;
  if (start == ExprId::nothing) return found;
  if (infinite(start)) return std::nullopt;
  // every expression in the queue is live, so each stands for a match not listed yet
  std::deque<std::pair<ExprId, std::string>> queue{{start, {}}};
  while (!queue.empty()) {
    if (found.size() + queue.size() > limit) return std::nullopt;
    spend(1 + queue.front().second.size() / 64);
    auto [e, text] = std::move(queue.front());
    queue.pop_front();
    if (nullable(e)) found.push_back(text);
    if (text.size() > MAX_SHORTEST_MATCH.value) return std::nullopt;
    first(e).each([&, &from = e, &so_far = text](uint8_t byte) {
      ExprId next = derivative(from, byte);
      if (next != ExprId::nothing) queue.emplace_back(next, so_far + static_cast<char>(byte));
    });
  }
  return found;
}

// Every derivative other than `nothing` leads to a match. So there are infinitely many matches if and only if some
// derivative can be reached from itself: a depth-first search for such a cycle.
std::optional<bool> ExpressionStore::has_endless_matches(ExprId start, size_t max_states) {
  struct Visit {
    ExprId e;
    std::vector<uint8_t> bytes;
  };
  FlatMap<uint32_t, uint8_t> seen, finished;  // seen but not finished: on the current path
  std::vector<Visit> path;
  auto enter = [&](ExprId e) {
    seen.insert(index(e), 1);
    ByteSet possible = first(e);
    std::vector<uint8_t> bytes = representatives({e});
    std::erase_if(bytes, [&](uint8_t byte) { return !possible.contains(byte); });
    path.push_back({e, std::move(bytes)});
  };
  if (start == ExprId::nothing) return false;
  if (infinite(start)) return true;
  enter(start);
  size_t states = 1;
  while (!path.empty()) {
    if (path.back().bytes.empty()) {
      finished.insert(index(path.back().e), 1);
      path.pop_back();
      continue;
    }
    uint8_t byte = path.back().bytes.back();
    path.back().bytes.pop_back();
    ExprId next = derivative(path.back().e, byte);
    if (next == ExprId::nothing || nodes_[index(next)].finite) continue;
    if (infinite(next)) return true;
    if (finished.find(index(next))) continue;
    if (seen.find(index(next))) return true;
    if (++states > max_states) return std::nullopt;
    spend(1);
    enter(next);
  }
  return false;
}

// Whether every text is matched: a search for a derivative that is not nullable.
bool ExpressionStore::is_universal(ExprId start) {
  if (const uint8_t* known = universal_.find(index(start))) return *known != 0;
  const Deciding deciding(*this);
  std::vector<ExprId> queue{start};
  FlatMap<uint32_t, uint8_t> seen;
  seen.insert(index(start), 1);
  bool universal = true;
  for (size_t at = 0; at < queue.size() && universal; ++at) {
    if (queue.size() > states_allowed_) {
      throw LimitError(limit_message("deciding whether a complement matches anything takes too many states",
                                     MAX_INTERSECTION_STATES, states_allowed_), Limit::intersection_states);
    }
    universal = nullable(queue[at]);
    for (uint8_t byte : representatives({queue[at]})) {
      ExprId next = derivative(queue[at], byte);
      universal = universal && nullable(next);
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
