// Shortest matches of expressions; or some short match, if a shortest one takes too long to find.
#include "expressions/shortest.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <string_view>
#include <tuple>

#include "base/errors.h"
#include "expressions/nesting.h"

namespace constrain {

namespace {

using Kind = ExpressionNodes::Kind;

constexpr size_t max_undecided = 10;              // derivatives that one search may leave out
constexpr size_t max_residues_searched = 2'000;   // states; beyond that, arithmetic decides
constexpr size_t max_shortest_work = 200'000;     // of one search for a shortest match; beyond it, some match is enough
constexpr size_t max_finishing_work = 2'000'000;  // of one search for some match
constexpr uint32_t max_units_followed = 4'000;    // units of a window
constexpr size_t max_run_steps = 20'000;          // of the search for a shortest run of given texts; beyond it, some short run is enough

}  // namespace

std::string ShortestTexts::of(ExprId e) {
  if (!preferred_.empty()) {
    if (const auto found = preferred_.find(e); found != preferred_.end()) return found->second;
  }
  const Kind kind = store_[e].kind;
  if (kind != Kind::alternation && kind != Kind::substring && !takes_search(e) && !store_.nodes().is_tall(e)) return build_shortest(e);
  auto known = [this](ExprId each) { return ids_.find(index(each)); };
  if (const uint32_t* found = known(e)) return texts_[*found];
  auto parts_of = [this](ExprId each, auto&& f) {  // the parts that the text is composed of
    if (!store_.nullable(each) && !takes_search(each)) store_.nodes().each_part(each, f);
  };
  for (ExprId each : store_.nodes().tall_parts(e, known, parts_of)) {
    std::string text = build_shortest(each);
    ids_.insert(index(each), static_cast<uint32_t>(texts_.size()));
    texts_.push_back(std::move(text));
  }
  return texts_[*known(e)];
}

std::string ShortestTexts::build_shortest(ExprId e) {
  const ExpressionNodes::Node node = store_[e];
  if (node.nullable) return {};
  switch (node.kind) {
    case Kind::nothing:
      throw GrammarError("an expression that matches nothing has no shortest match");
    case Kind::epsilon:
    case Kind::anything:
      return {};
    case Kind::bytes: {
      const ByteSet set = store_.nodes().byte_set(node);
      for (uint8_t byte : store_.representatives({e})) {
        if (set.contains(byte)) return std::string(1, static_cast<char>(byte));
      }
      return std::string(1, static_cast<char>(set.first()));
    }
    case Kind::literal:
      return std::string(store_.nodes().literal(node));
    case Kind::concatenation: {
      std::string text;
      for (ExprId rest = e;; rest = store_.nodes().rest_of(rest)) {
        bool last = store_[rest].kind != Kind::concatenation;
        text += of(last ? rest : store_.nodes().head_of(rest));
        if (last) return text;
      }
    }
    case Kind::alternation: {
      std::optional<std::string> best;
      for (ExprId part : store_.nodes().copy_of_parts(node)) {
        std::string text = of(part);
        // Among equals the first alphabetically, because the order of parts differs between processes.
        if (!best || std::pair(text.size(), std::string_view(text)) < std::pair(best->size(), std::string_view(*best))) best = std::move(text);
      }
      return *best;
    }
    case Kind::repetition: {
      const std::string unit = of(node.unit());
      if (uint64_t{node.minimum()} * unit.size() > MAX_SHORTEST_MATCH.value) {
        throw LimitError(limit_message("a repetition's shortest match is too long", MAX_SHORTEST_MATCH), Limit::shortest_match);
      }
      std::string text;
      for (uint32_t i = 0; i < node.minimum(); ++i) text += unit;
      return text;
    }
    case Kind::literal_set: {
      const SortedTexts& texts = store_.nodes().texts(node);
      return std::string(texts[texts.shortest(node.low(), node.high())].substr(node.depth()));
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
std::optional<std::string> ShortestTexts::digits_to_multiple(ExprId start) {
  uint64_t divisor = 0, residue = 0;
  const bool alone = store_[start].kind == Kind::multiple;
  if (!alone && store_[start].kind != Kind::intersection) return std::nullopt;
  for (ExprId part : alone ? std::span<const ExprId>(&start, 1) : store_.parts(start)) {
    const ExpressionNodes::Node node = store_[part];
    if (node.kind != Kind::multiple) continue;
    if (node.phase() > ExpressionNodes::phase_integer || divisor != 0) return std::nullopt;
    divisor = store_.nodes().multiple(node).divisor;
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
      for (char digit : digits) e = store_.derivative(e, static_cast<uint8_t>(digit));
      if (store_.nullable(e)) return digits;
    }
    shifted = shifted * 10 % divisor;
    power = power >= divisor ? power : power * 10;
  }
  return std::nullopt;
}

std::string ShortestTexts::search_shortest(ExprId start) {
  const Work::Deciding deciding(store_.work());
  std::optional<std::string> text = search_exact(start);
  return text ? *std::move(text) : some_match(start);
}

// Breadth first, without expressions not known to match anything. For multiples of a large number, with too many
// residues, some short match. No answer if it takes too long.
std::optional<std::string> ShortestTexts::search_exact(ExprId start) {
  std::vector<Visit> queue{{start, 0, 0}};
  size_t undecided = 0;
  const size_t end = store_.work().search_end(max_shortest_work);
  FlatMap<uint32_t, uint8_t> seen;
  seen.insert(index(start), 1);
  for (size_t at = 0; at < queue.size(); ++at) {
    ExprId e = queue[at].e;
    if (store_.nullable(e)) return text_to(queue, at);
    if (queue.size() > max_residues_searched) {
      if (std::optional<std::string> digits = digits_to_multiple(e)) return text_to(queue, at) + *digits;
    }
    ByteSet possible = store_.first(e);
    for (uint8_t byte : store_.representatives({e})) {
      if (!possible.contains(byte)) continue;
      if (store_.work().spent() > end || queue.size() > 10 * MAX_INTERSECTION_STATES.value || undecided > max_undecided) return std::nullopt;
      ExprId d = ExprId::nothing;
      try {
        d = store_.derivative(e, byte);
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
std::string ShortestTexts::some_match(ExprId start) {
  const Work::AtLeast enough(store_.work(), max_finishing_work);
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
    for (std::optional<uint8_t> byte; !store_.nullable(e) && (byte = store_.emptiness().onward(e));) {
      e = store_.derivative(e, *byte);
      seen.insert(index(e), 1);
      visits.push_back({e, at, *byte});
      at = visits.size() - 1;
    }
    if (store_.nullable(e)) return text_to(visits, at);
    if (!takes_search(e)) return text_to(visits, at) + of(e);
    if (std::optional<std::string> rest = match_of_window(e)) return text_to(visits, at) + *rest;
    if (std::optional<std::string> rest = match_of_a_part(e)) return text_to(visits, at) + *rest;
    if (std::optional<std::string> digits = digits_to_multiple(e)) return text_to(visits, at) + *digits;
    ByteSet possible = store_.first(e);
    for (uint8_t byte : store_.representatives({e})) {
      if (!possible.contains(byte)) continue;
      ExprId d = ExprId::nothing;
      try {
        d = store_.derivative(e, byte);
      } catch (const UndecidedError&) {  // not known to match anything, so another way is taken
        continue;
      }
      if (d == ExprId::nothing || seen.find(index(d))) continue;
      seen.insert(index(d), 1);
      visits.push_back({d, at, byte});
      queue.emplace(distances_.of(store_.nodes(), d), visits.size() - 1);
    }
    if (visits.size() > 10 * MAX_INTERSECTION_STATES.value) break;
  }
  throw LimitError(limit_message("finding a match of an expression takes too many states", MAX_INTERSECTION_STATES,
                                 10 * MAX_INTERSECTION_STATES.value, "10 * "), Limit::intersection_states);
}

std::string ShortestTexts::text_to(const std::vector<Visit>& visits, size_t at) {
  std::string text;
  for (size_t i = at; i != 0; i = visits[i].parent) text.push_back(static_cast<char>(visits[i].byte));
  std::reverse(text.begin(), text.end());
  return text;
}

// A match of a window with fewest units, from the sets of parts that can be left after each number of units.
std::optional<std::string> ShortestTexts::match_of_window(ExprId e) {
  const ExpressionNodes::Node node = store_[e];
  if (node.kind != Kind::window) return std::nullopt;
  const ExprId part = node.part(), unit = node.unit(), state = node.unit_state();
  const bool begun = state != unit;
  std::vector<std::vector<ExprId>> levels{begun ? store_.emptiness().after_unit(store_, part, unit, state) : std::vector<ExprId>{part}};
  if (const ExprId from = levels[0][0]; std::optional<std::string> text = store_.emptiness().repeats_to_end(store_, from, unit, node.minimum(), node.maximum())) {
    const std::string before = begun ? text_of_unit(part, state, from) : std::string();
    return before + *text + text_of_end(store_.derivative(from, *text), unit);
  }
  for (;;) {
    const std::vector<ExprId>& last = levels.back();
    const size_t count = levels.size() - 1;
    if (count >= node.minimum()) {
      auto end = std::find_if(last.begin(), last.end(), [&](ExprId each) { return store_.emptiness().ends_units(store_, each, unit); });
      if (end != last.end()) return text_through(levels, *end, part, unit, state);
    }
    if (last.empty() || count == node.maximum() || count == max_units_followed) return std::nullopt;
    levels.push_back(store_.emptiness().after_units(store_, last, unit));
  }
}

// The text of a way through the levels to `end`, and a shortest text from there on.
std::string ShortestTexts::text_through(const std::vector<std::vector<ExprId>>& levels, ExprId end, ExprId part, ExprId unit,
                                          ExprId state) {
  std::vector<std::string> units;
  ExprId to = end;
  for (size_t level = levels.size(); level-- > 1;) {
    const ExprId from = *std::find_if(levels[level - 1].begin(), levels[level - 1].end(), [&](ExprId each) {
      const std::vector<ExprId> targets = store_.emptiness().after_unit(store_, each, unit, unit);
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
std::string ShortestTexts::text_of_end(ExprId end, ExprId unit) {
  if (store_.nullable(end)) return {};
  ByteSet possible = store_.first(end);
  for (uint8_t byte : store_.representatives({end, unit})) {
    if (!possible.contains(byte) || store_.derivative(unit, byte) != ExprId::nothing) continue;
    const ExprId rest = store_.derivative(end, byte);
    if (rest != ExprId::nothing) return static_cast<char>(byte) + of(rest);
  }
  throw GrammarError("an expression that matches nothing has no shortest match");
}

// The bytes that finish the current unit and leave `wanted` of the part.
std::string ShortestTexts::text_of_unit(ExprId part, ExprId unit, ExprId wanted) {
  struct Step {
    ExprId part, unit;
    std::string text;
  };
  std::vector<Step> steps{{part, unit, {}}};
  FlatMap<uint64_t, uint8_t> seen;
  for (size_t at = 0; at < steps.size(); ++at) {
    const Step step = steps[at];
    ByteSet possible = store_.first(step.part) & store_.first(step.unit);
    for (uint8_t byte : store_.representatives({step.part, step.unit})) {
      if (!possible.contains(byte)) continue;
      const ExprId next_part = store_.derivative(step.part, byte), next_unit = store_.derivative(step.unit, byte);
      if (next_part == ExprId::nothing || next_unit == ExprId::nothing) continue;
      if (store_.nullable(next_unit)) {
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

// A run with fewest bytes: best first, where each needed character takes at least one byte. After many steps some short
// run, of the chunks that seem shortest. Each run is met once: one way leads to it.
std::string ShortestTexts::shortest_substring(const ExpressionNodes::Node& start) {
  if (start.nullable) return {};
  struct Step {
    ExpressionNodes::Node at;
    size_t parent, bytes;
    uint32_t transition;  // that led here
  };
  std::vector<Step> steps{{start, 0, 0, 0}};
  using Entry = std::tuple<size_t, uint32_t, size_t>;  // bytes at least, characters needed, step
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  queue.emplace(start.least(), start.least(), 0);
  while (!queue.empty()) {
    const auto [total, needed, number] = queue.top();
    queue.pop();
    const ExpressionNodes::Node at = steps[number].at;
    if (at.depth() == 0 && at.least() == 0) {
      std::vector<uint32_t> way;
      for (size_t i = number; i != 0; i = steps[i].parent) way.push_back(steps[i].transition);
      std::string text;
      for (size_t i = way.size(); i-- > 0;) text += store_.nodes().runs(start).chunk(way[i]);
      return text.substr(start.depth());
    }
    if (steps.size() > max_run_steps) queue = {};  // goes on from the best step alone
    const SuffixAutomaton& runs = store_.nodes().runs(at);
    for (uint32_t i = at.low(); i < at.high(); ++i) {
      const uint32_t read = runs.characters(i), state = runs.target(i), least = decreased(at.least(), read);
      if (!store_.nodes().completes(at, i)) continue;
      ExpressionNodes::Node next = at;
      next.arg = {at.automaton(), runs.begin(state), runs.end(state), 0, least, decreased(at.most(), read)};
      const size_t bytes = steps[number].bytes + runs.chunk(i).size();
      queue.emplace(bytes + least, least, steps.size());
      steps.push_back({next, number, bytes, i});
    }
  }
  throw GrammarError("an expression that matches nothing has no shortest match");
}

// A shortest match of some part of an intersection that all parts match.
std::optional<std::string> ShortestTexts::match_of_a_part(ExprId e) {
  if (store_[e].kind != Kind::intersection) return std::nullopt;
  const std::vector<ExprId> all = store_.nodes().copy_of_parts(store_[e]);
  for (ExprId part : all) {
    if (takes_search(part)) continue;
    std::string text = of(part);
    if (std::all_of(all.begin(), all.end(), [&](ExprId each) { return store_.nullable(store_.derivative(each, text)); })) return text;
  }
  return std::nullopt;
}

}  // namespace constrain
