// Shortest matches of expressions; or some short match, if a shortest one takes too long to find.
#include <algorithm>
#include <functional>
#include <limits>
#include <queue>

#include "base/errors.h"
#include "expressions/nesting.h"

namespace constrain {

namespace {

using Kind = ExpressionStore::Kind;

constexpr size_t max_undecided = 10;              // derivatives that one search may leave out
constexpr size_t max_shortest_work = 200'000;     // of one search for a shortest match; beyond it, some match is enough
constexpr size_t max_finishing_work = 2'000'000;  // of one search for some match
constexpr uint32_t max_units_followed = 4'000;    // units of a window

}  // namespace

// Whether a shortest match takes a search; otherwise it is composed from parts.
bool ExpressionStore::is_searched(Kind kind) {
  return kind == Kind::intersection || kind == Kind::complement || kind == Kind::multiple || kind == Kind::window;
}

std::string ExpressionStore::shortest(ExprId e) {
  if (!preferred_.empty()) {
    if (const auto found = preferred_.find(e); found != preferred_.end()) return found->second;
  }
  const Kind kind = nodes_[index(e)].kind;
  if (kind != Kind::alternation && kind != Kind::substring && !is_searched(kind) && !is_tall(e)) return build_shortest(e);
  auto known = [this](ExprId each) { return shortest_ids_.find(index(each)); };
  if (const uint32_t* found = known(e)) return shortest_texts_[*found];
  auto parts_of = [this](ExprId each, auto&& f) {  // the parts that the text is composed of
    if (!nullable(each) && !is_searched(nodes_[index(each)].kind)) each_part(each, f);
  };
  for (ExprId each : tall_parts(e, known, parts_of)) {
    std::string text = build_shortest(each);
    shortest_ids_.insert(index(each), static_cast<uint32_t>(shortest_texts_.size()));
    shortest_texts_.push_back(std::move(text));
  }
  return shortest_texts_[*known(e)];
}

std::string ExpressionStore::build_shortest(ExprId e) {
  const Node node = nodes_[index(e)];
  if (node.nullable) return {};
  switch (node.kind) {
    case Kind::nothing:
      throw GrammarError("an expression that matches nothing has no shortest match");
    case Kind::epsilon:
    case Kind::anything:
      return {};
    case Kind::bytes: {
      const ByteSet set = byte_sets_[node.byte_set()];
      for (uint8_t byte : representatives({e})) {
        if (set.contains(byte)) return std::string(1, static_cast<char>(byte));
      }
      return std::string(1, static_cast<char>(set.first()));
    }
    case Kind::literal:
      return literals_.substr(node.offset(), node.length());
    case Kind::concatenation: {
      std::string text;
      for (ExprId rest = e;; rest = rest_of(rest)) {
        bool last = nodes_[index(rest)].kind != Kind::concatenation;
        text += shortest(last ? rest : head_of(rest));
        if (last) return text;
      }
    }
    case Kind::alternation: {
      std::optional<std::string> best;
      for (uint32_t i = 0; i < node.part_count(); ++i) {
        std::string text = shortest(children_[node.first_part() + i]);
        // Among equals the first alphabetically, because the order of parts differs between processes.
        if (!best || std::pair(text.size(), std::string_view(text)) < std::pair(best->size(), std::string_view(*best))) best = std::move(text);
      }
      return *best;
    }
    case Kind::repetition: {
      const std::string unit = shortest(node.unit());
      if (uint64_t{node.minimum()} * unit.size() > MAX_SHORTEST_MATCH.value) {
        throw LimitError(limit_message("a repetition's shortest match is too long", MAX_SHORTEST_MATCH), Limit::shortest_match);
      }
      std::string text;
      for (uint32_t i = 0; i < node.minimum(); ++i) text += unit;
      return text;
    }
    case Kind::literal_set: {
      const std::vector<std::string>& texts = literal_sets_[node.literal_set()].texts;
      auto shorter = [](const std::string& a, const std::string& b) { return a.size() < b.size(); };
      return std::min_element(texts.begin() + node.low(), texts.begin() + node.high(), shorter)->substr(node.depth());
    }
    case Kind::substring:
      return shortest_substring(node);
    case Kind::intersection:
    case Kind::complement:
    case Kind::multiple:
    case Kind::window:
      return search_shortest(e);
  }
  return {};
}

// The digits that make a multiple of the number read so far, if any digits may follow: by arithmetic.
std::optional<std::string> ExpressionStore::digits_to_multiple(ExprId start) {
  uint64_t divisor = 0, residue = 0;
  const bool alone = nodes_[index(start)].kind == Kind::multiple;
  if (!alone && nodes_[index(start)].kind != Kind::intersection) return std::nullopt;
  for (ExprId part : alone ? std::span<const ExprId>(&start, 1) : parts(start)) {
    const Node node = nodes_[index(part)];
    if (node.kind != Kind::multiple) continue;
    if (node.phase() > phase_integer || divisor != 0) return std::nullopt;
    divisor = multiples_[node.machine()].divisor;
    residue = node.residue();
  }
  if (divisor == 0 || divisor > std::numeric_limits<uint64_t>::max() / 20) return std::nullopt;
  uint64_t power = 1, shifted = residue % divisor;
  for (size_t count = 0; count <= 20; ++count) {
    const uint64_t wanted = (divisor - shifted) % divisor;
    if (wanted < power) {
      std::string digits = std::to_string(wanted);
      digits = count == 0 ? std::string() : std::string(count - std::min(count, digits.size()), '0') + digits;
      ExprId e = start;
      for (char digit : digits) e = derivative(e, static_cast<uint8_t>(digit));
      if (nullable(e)) return digits;
    }
    shifted = shifted * 10 % divisor;
    power = power >= divisor ? power : power * 10;
  }
  return std::nullopt;
}

std::string ExpressionStore::search_shortest(ExprId start) {
  const Deciding deciding(*this);
  std::optional<std::string> text = search_exact(start);
  return text ? *std::move(text) : some_match(start);
}

// Breadth first, without expressions not known to match anything. For multiples of a large number, with too many
// residues, some short match. No answer if it takes too long.
std::optional<std::string> ExpressionStore::search_exact(ExprId start) {
  std::vector<Visit> queue{{start, 0, 0}};
  size_t undecided = 0;
  const size_t end = std::min(spent_ + max_shortest_work, search_end_);
  FlatMap<uint32_t, uint8_t> seen;
  seen.insert(index(start), 1);
  for (size_t at = 0; at < queue.size(); ++at) {
    ExprId e = queue[at].e;
    if (nullable(e)) return text_to(queue, at);
    if (queue.size() > max_residues_searched) {
      if (std::optional<std::string> digits = digits_to_multiple(e)) return text_to(queue, at) + *digits;
    }
    ByteSet possible = first(e);
    for (uint8_t byte : representatives({e})) {
      if (!possible.contains(byte)) continue;
      if (spent_ > end || queue.size() > 10 * MAX_INTERSECTION_STATES.value || undecided > max_undecided) return std::nullopt;
      ExprId d = ExprId::nothing;
      try {
        d = derivative(e, byte);
      } catch (const LimitError&) {
        ++undecided;
      }
      if (d == ExprId::nothing || seen.find(index(d))) continue;
      seen.insert(index(d), 1);
      queue.push_back({d, at, byte});
    }
  }
  if (undecided > 0) return std::nullopt;
  throw GrammarError("an expression that matches nothing has no shortest match");
}

// A match that is found soon and is mostly short: along the bytes that proved intersections live, otherwise towards the
// nearest end. Has its own allowance, so that there is a way to finish even if other allowances are used up.
std::string ExpressionStore::some_match(ExprId start) {
  struct Lease {
    size_t& allowance;
    const size_t before;
    ~Lease() { allowance = before; }
  } lease{allowance_, allowance_};
  allowance_ = std::max(allowance_, spent_ + max_finishing_work);
  std::vector<Visit> visits{{start, 0, 0}};
  FlatMap<uint32_t, uint8_t> seen;
  seen.insert(index(start), 1);
  using Entry = std::pair<uint32_t, size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  queue.emplace(0, 0);
  while (!queue.empty()) {
    size_t at = queue.top().second;
    queue.pop();
    ExprId e = visits[at].e;
    while (!nullable(e) && onward_[index(e)] >= 0) {
      const auto byte = static_cast<uint8_t>(onward_[index(e)]);
      e = derivative(e, byte);
      seen.insert(index(e), 1);
      visits.push_back({e, at, byte});
      at = visits.size() - 1;
    }
    if (nullable(e)) return text_to(visits, at);
    if (!is_searched(nodes_[index(e)].kind)) return text_to(visits, at) + shortest(e);
    if (std::optional<std::string> rest = match_of_window(e)) return text_to(visits, at) + *rest;
    if (std::optional<std::string> rest = match_of_a_part(e)) return text_to(visits, at) + *rest;
    if (std::optional<std::string> digits = digits_to_multiple(e)) return text_to(visits, at) + *digits;
    ByteSet possible = first(e);
    for (uint8_t byte : representatives({e})) {
      if (!possible.contains(byte)) continue;
      ExprId d = ExprId::nothing;
      try {
        d = derivative(e, byte);
      } catch (const UndecidedError&) {  // not known to match anything, so another way is taken
        continue;
      }
      if (d == ExprId::nothing || seen.find(index(d))) continue;
      seen.insert(index(d), 1);
      visits.push_back({d, at, byte});
      queue.emplace(distance(d), visits.size() - 1);
    }
    if (visits.size() > 10 * MAX_INTERSECTION_STATES.value) break;
  }
  throw LimitError(limit_message("finding a match of an expression takes too many states", MAX_INTERSECTION_STATES,
                                 10 * MAX_INTERSECTION_STATES.value, "10 * "), Limit::intersection_states);
}

std::string ExpressionStore::text_to(const std::vector<Visit>& visits, size_t at) {
  std::string text;
  for (size_t i = at; i != 0; i = visits[i].parent) text.push_back(static_cast<char>(visits[i].byte));
  std::reverse(text.begin(), text.end());
  return text;
}

// A match of a window with fewest units, from the sets of parts that can be left after each number of units.
std::optional<std::string> ExpressionStore::match_of_window(ExprId e) {
  const Node node = nodes_[index(e)];
  if (node.kind != Kind::window) return std::nullopt;
  const ExprId part = node.part(), unit = node.unit(), state = node.unit_state();
  const bool begun = state != unit;
  std::vector<std::vector<ExprId>> levels{begun ? after_unit(part, unit, state) : std::vector<ExprId>{part}};
  if (const ExprId from = levels[0][0]; std::optional<std::string> text = repeats_to_end(from, unit, node.minimum(), node.maximum())) {
    const std::string before = begun ? text_of_unit(part, state, from) : std::string();
    return before + *text + text_of_end(derivative(from, *text), unit);
  }
  for (;;) {
    const std::vector<ExprId>& last = levels.back();
    const size_t count = levels.size() - 1;
    if (count >= node.minimum()) {
      auto end = std::find_if(last.begin(), last.end(), [&](ExprId each) { return ends_units(each, unit); });
      if (end != last.end()) return text_through(levels, *end, part, unit, state);
    }
    if (last.empty() || count == node.maximum() || count == max_units_followed) return std::nullopt;
    std::vector<ExprId> next;
    for (ExprId each : last) {
      const std::vector<ExprId> targets = after_unit(each, unit, unit);
      spend(1 + targets.size() / 8);
      next.insert(next.end(), targets.begin(), targets.end());
    }
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    levels.push_back(std::move(next));
  }
}

// The text of a way through the levels to `end`, and a shortest text from there on.
std::string ExpressionStore::text_through(const std::vector<std::vector<ExprId>>& levels, ExprId end, ExprId part, ExprId unit,
                                          ExprId state) {
  std::vector<std::string> units;
  ExprId to = end;
  for (size_t level = levels.size(); level-- > 1;) {
    const ExprId from = *std::find_if(levels[level - 1].begin(), levels[level - 1].end(), [&](ExprId each) {
      const std::vector<ExprId> targets = after_unit(each, unit, unit);
      return std::binary_search(targets.begin(), targets.end(), to);
    });
    units.push_back(text_of_unit(from, unit, to));
    to = from;
  }
  if (state != unit) units.push_back(text_of_unit(part, state, to));
  std::string text;
  for (size_t i = units.size(); i-- > 0;) text += units[i];
  return text + text_of_end(end, unit);
}

// Between units: a byte that begins no unit, and a shortest match from there on.
std::string ExpressionStore::text_of_end(ExprId end, ExprId unit) {
  if (nullable(end)) return {};
  ByteSet possible = first(end);
  for (uint8_t byte : representatives({end, unit})) {
    if (!possible.contains(byte) || derivative(unit, byte) != ExprId::nothing) continue;
    const ExprId rest = derivative(end, byte);
    if (rest != ExprId::nothing) return static_cast<char>(byte) + shortest(rest);
  }
  throw GrammarError("an expression that matches nothing has no shortest match");
}

// The bytes that finish the current unit and leave `wanted` of the part.
std::string ExpressionStore::text_of_unit(ExprId part, ExprId unit, ExprId wanted) {
  struct Step {
    ExprId part, unit;
    std::string text;
  };
  std::vector<Step> steps{{part, unit, {}}};
  FlatMap<uint64_t, uint8_t> seen;
  for (size_t at = 0; at < steps.size(); ++at) {
    const Step step = steps[at];
    ByteSet possible = first(step.part) & first(step.unit);
    for (uint8_t byte : representatives({step.part, step.unit})) {
      if (!possible.contains(byte)) continue;
      const ExprId next_part = derivative(step.part, byte), next_unit = derivative(step.unit, byte);
      if (next_part == ExprId::nothing || next_unit == ExprId::nothing) continue;
      if (nullable(next_unit)) {
        if (next_part == wanted) return step.text + static_cast<char>(byte);
        continue;
      }
      const uint64_t pair = paired(next_part, next_unit);
      if (seen.find(pair)) continue;
      seen.insert(pair, 1);
      steps.push_back({next_part, next_unit, step.text + static_cast<char>(byte)});
    }
  }
  throw GrammarError("an expression that matches nothing has no shortest match");
}

// A shortest match of some part of an intersection that all parts match.
std::optional<std::string> ExpressionStore::match_of_a_part(ExprId e) {
  if (nodes_[index(e)].kind != Kind::intersection) return std::nullopt;
  const std::span<const ExprId> span = parts(e);
  const std::vector<ExprId> all(span.begin(), span.end());
  for (ExprId part : all) {
    if (is_searched(nodes_[index(part)].kind)) continue;
    std::string text = shortest(part);
    if (std::all_of(all.begin(), all.end(), [&](ExprId each) { return nullable(derivative(each, text)); })) return text;
  }
  return std::nullopt;
}

// About how many bytes a match needs; found without a search.
uint32_t ExpressionStore::distance(ExprId e) {
  const Node node = nodes_[index(e)];
  if (node.nullable) return 0;
  if (node.kind == Kind::literal) return node.length();
  auto known = [this](ExprId each) { return distances_.find(index(each)); };
  if (const uint32_t* found = known(e)) return *found;
  auto parts_of = [this](ExprId each, auto&& f) { each_part(each, f); };
  for (ExprId each : tall_parts(e, known, parts_of)) distances_.insert(index(each), find_distance(each));
  return *known(e);
}

uint32_t ExpressionStore::find_distance(ExprId e) {
  const Node node = nodes_[index(e)];
  uint64_t bytes = 1;
  switch (node.kind) {
    case Kind::concatenation: {
      const std::vector<ExprId> links = new_links(e, [this](ExprId link) { return distances_.find(index(link)); });
      bytes = distance(rest_of(links.back()));
      for (size_t i = links.size(); i-- > 0;) {
        bytes = std::min(bytes + distance(head_of(links[i])), MAX_SHORTEST_MATCH.value);
        if (i > 0) distances_.insert(index(links[i]), static_cast<uint32_t>(bytes));
      }
      break;
    }
    case Kind::alternation:
      bytes = MAX_SHORTEST_MATCH.value;
      for (uint32_t i = 0; i < node.part_count(); ++i) bytes = std::min<uint64_t>(bytes, distance(children_[node.first_part() + i]));
      break;
    case Kind::intersection:  // mostly too much, but a good guide to texts that suit all parts
      bytes = 0;
      for (uint32_t i = 0; i < node.part_count(); ++i) bytes += distance(children_[node.first_part() + i]);
      break;
    case Kind::repetition:
      bytes = uint64_t{node.minimum()} * distance(node.unit());
      break;
    case Kind::window:
      bytes = std::max<uint64_t>(distance(node.part()), uint64_t{node.minimum()} * distance(node.unit()));
      if (node.unit_state() != node.unit()) bytes += distance(node.unit_state());
      break;
    case Kind::substring:
      bytes = std::max(node.least(), 1u);
      break;
    default:
      break;
  }
  return static_cast<uint32_t>(std::min(bytes, MAX_SHORTEST_MATCH.value));
}

}  // namespace constrain
