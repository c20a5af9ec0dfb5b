// Finds examples of maximal-munch conflicts.
#include "matching/conflict_examples.h"

#include <algorithm>
#include <optional>

#include "base/errors.h"
#include "grammar/grammar.h"
#include "matching/automaton.h"

namespace constrain {

namespace {

constexpr size_t max_explored_steps = 200'000;  // of work on expressions
constexpr size_t max_explored_places = 2'000;
constexpr size_t max_explored_bytes = size_t{1} << 20;  // of tables
constexpr size_t max_explored_pairs = 5'000;   // pairs of states of two terminals

Vocabulary byte_vocabulary() {
  std::array<char, 256> bytes;
  std::vector<std::string_view> tokens;
  for (size_t b = 0; b < 256; ++b) {
    bytes[b] = static_cast<char>(b);
    tokens.emplace_back(&bytes[b], 1);
  }
  return {tokens, {}, {}};
}

size_t character_length(uint8_t lead) { return lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4; }

// In double quotes, as Python and JSON write a text; bytes that are not UTF-8 as \xNN.
std::string quoted(std::string_view text) {
  static const char* digits = "0123456789abcdef";
  std::string result = "\"";
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<uint8_t>(text[i]);
    const size_t length = character_length(byte);
    size_t whole = 1;
    while (whole < length && i + whole < text.size() && (static_cast<uint8_t>(text[i + whole]) & 0xC0) == 0x80) ++whole;
    if (byte == '\n' || byte == '\r' || byte == '\t') {
      result += byte == '\n' ? "\\n" : byte == '\r' ? "\\r" : "\\t";
    } else if (byte == '"' || byte == '\\') {
      result += {'\\', text[i]};
    } else if (byte < 0x20 || byte == 0x7F || (byte >= 0x80 && (length == 1 || whole != length))) {
      result += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
      whole = 1;
    } else {
      result += text.substr(i, whole);
    }
    i += whole;
  }
  return result + "\"";
}

// The first character of a text that `terminal` matches and that begins with `byte`.
std::string character(ExpressionStore& store, ExprId terminal, uint8_t byte) {
  const std::string text = static_cast<char>(byte) + ShortestTexts(store).of(store.derivative(terminal, byte));
  return text.substr(0, std::min(text.size(), character_length(byte)));
}

struct Example {
  std::string before;
  uint8_t byte;           // the first byte of the follower
  uint32_t onward;        // the terminal that reads the byte
  bool dead_end = false;  // no text completes the text so far
  bool all = false;       // no text of the follower can be read there
  auto rank() const { return std::pair(dead_end, all); }
};

class DeadEndSearch {
 public:
  DeadEndSearch(const Grammar& grammar, uint32_t terminal, uint32_t follower)
      : terminal_(terminal), follower_(follower), vocabulary_(byte_vocabulary()), automaton_(grammar, vocabulary_) {
    store().work().allow({max_explored_steps, &MAX_COMPILE_WORK});  // beyond it, the error has no example
    meet(automaton_.stepping().start(), 0, 0);
    bytes_ = automaton_.memory_bytes() + max_explored_bytes;
    for (size_t at = 0; at < nodes_.size(); ++at) explore(at);
    spread_life();
  }

  // The first example of the most informative kind.
  std::optional<Example> find() {
    std::optional<Example> best;
    for (size_t at = 0; at < nodes_.size(); ++at) {
      std::optional<Example> found;
      try {
        found = example_at(at);
      } catch (const LimitError&) {  // then there is no example
      }
      if (found && found->dead_end) return found;
      if (found && (!best || found->rank() > best->rank())) best = std::move(found);
    }
    return best;
  }

 private:
  struct Node {
    Place place;
    size_t parent;
    uint8_t byte;        // the byte that led here
    bool alive = false;  // the text may end here or later, as far as is known
    std::vector<size_t> before{};
  };

  ExpressionStore& store() { return automaton_.stepping().lexer().expressions(); }

  static Hash key_of(const Place& place) {
    const Hash key = mix(seeded(0x73776C77), paired(place.lexer, place.set));
    return mix(key, paired(place.text, place.track));
  }

  size_t meet(const Place& place, size_t parent, uint8_t byte) {
    const Hash key = key_of(place);
    if (const uint32_t* found = ids_.find(key)) return *found;
    ids_.insert(key, static_cast<uint32_t>(nodes_.size()));
    nodes_.push_back({place, parent, byte});
    return nodes_.size() - 1;
  }

  void explore(size_t at) {
    const Place place = nodes_[at].place;
    try {
      nodes_[at].alive = automaton_.stepping().accepting(place);
      for (uint8_t byte : bytes_after(place)) {
        Place next = place;
        if (!automaton_.stepping().step(next, byte)) continue;
        if (nodes_.size() >= max_explored_places || automaton_.memory_bytes() > bytes_) {
          nodes_[at].alive = true;
          return;
        }
        const size_t reached = meet(next, at, byte);
        nodes_[reached].before.push_back(at);
      }
    } catch (const LimitError&) {
      nodes_[at].alive = true;
    }
  }

  // One byte of each class that leads to the same places.
  std::vector<uint8_t> bytes_after(const Place& place) {
    std::vector<ExprId> expressions;
    auto add = [&](LexId lexer) {
      for (const Lexer::Entry& entry : automaton_.stepping().lexer().entries(lexer)) expressions.push_back(entry.expression);
    };
    add(place.lexer);
    if (const Place after = automaton_.stepping().finished(place); after.set != SetId::none) add(after.lexer);
    return store().representatives(expressions);
  }

  void spread_life() {
    std::vector<size_t> work;
    for (size_t at = 0; at < nodes_.size(); ++at) {
      if (nodes_[at].alive) work.push_back(at);
    }
    while (!work.empty()) {
      const size_t at = work.back();
      work.pop_back();
      for (size_t before : nodes_[at].before) {
        if (nodes_[before].alive) continue;
        nodes_[before].alive = true;
        work.push_back(before);
      }
    }
  }

  // The text so far matches the terminal, and the follower may be next, but its first byte continues the lexeme.
  std::optional<Example> example_at(size_t at) {
    const Place& place = nodes_[at].place;
    Lexer& lexer = automaton_.stepping().lexer();
    Parser& parser = automaton_.stepping().parser();
    const std::span<const TermId> span = lexer.terminals_of(lexer.matched(place.lexer));
    const std::vector<TermId> matched(span.begin(), span.end());
    std::optional<Example> best;
    for (TermId each : matched) {
      if (index(lexer.base_terminal(each)) != terminal_) continue;
      const MatchId match = lexer.match({each});
      const TextId text = lexer.remembers(place.lexer) ? place.text : TextId::empty;
      const TrackId track = parser.grammar().reads_groups ? parser.read(place.track, match, text) : place.track;
      const SetId set = parser.advance(place.set, match, text, track);
      if (set == SetId::none) continue;
      for (const Parser::Step& step : parser.copy_of_steps(parser.closure(set))) {
        if (index(lexer.base_terminal(step.terminal)) != follower_) continue;
        std::optional<Example> found = example_of(at, lexer.expression(step.terminal));
        if (found && (!best || found->rank() > best->rank())) best = std::move(found);
      }
    }
    return best;
  }

  std::optional<Example> example_of(size_t at, ExprId follower) {
    Lexer& lexer = automaton_.stepping().lexer();
    const Place& place = nodes_[at].place;
    std::vector<ExprId> expressions{follower};
    for (const Lexer::Entry& entry : lexer.entries(place.lexer)) expressions.push_back(entry.expression);
    std::optional<Example> found;
    bool all = true;
    for (uint8_t byte : store().representatives(expressions)) {
      if (store().derivative(follower, byte) == ExprId::nothing) continue;
      const LexId next = lexer.step(place.lexer, byte);
      if (next == LexId::dead) {
        all = false;
        continue;
      }
      const bool dead_end = is_dead_end(place, byte);
      if (!found || (dead_end && !found->dead_end)) found = Example{text_to(at), byte, reader(next), dead_end};
    }
    if (found) found->all = all;
    return found;
  }

  bool is_dead_end(Place place, uint8_t byte) {
    if (!automaton_.stepping().step(place, byte)) return true;
    const uint32_t* node = ids_.find(key_of(place));
    return node && !nodes_[*node].alive;
  }

  uint32_t reader(LexId lexer) {
    uint32_t least = ~uint32_t{0};
    for (const Lexer::Entry& entry : automaton_.stepping().lexer().entries(lexer)) {
      const uint32_t base = index(automaton_.stepping().lexer().base_terminal(entry.terminal));
      if (base == terminal_) return base;
      least = std::min(least, base);
    }
    return least;
  }

  std::string text_to(size_t at) const {
    std::string text;
    for (; at != 0; at = nodes_[at].parent) text.push_back(static_cast<char>(nodes_[at].byte));
    std::reverse(text.begin(), text.end());
    return text;
  }

  uint32_t terminal_, follower_;
  Vocabulary vocabulary_;
  Automaton automaton_;
  std::vector<Node> nodes_;
  FlatMap<Hash, uint32_t> ids_;
  size_t bytes_;  // bytes of the automaton's tables
};

// A text of one expression that, followed by a byte of `bytes`, begins a text of the other.
std::optional<std::pair<std::string, uint8_t>> text_read_on(ExpressionStore& store, ExprId one, ExprId other, ExprId follower) {
  struct Step {
    ExprId one, other;
    size_t parent;
    uint8_t byte;
  };
  std::vector<Step> steps{{one, other, 0, 0}};
  FlatMap<uint64_t, uint8_t> seen;
  for (size_t at = 0; at < steps.size() && at < max_explored_pairs; ++at) {
    const Step step = steps[at];
    for (uint8_t byte : store.representatives({step.one, step.other, follower})) {
      const ExprId next = store.derivative(step.other, byte);
      if (next == ExprId::nothing) continue;
      if (store.nullable(step.one) && store.derivative(follower, byte) != ExprId::nothing) {
        std::string text;
        for (size_t i = at; i != 0; i = steps[i].parent) text.push_back(static_cast<char>(steps[i].byte));
        std::reverse(text.begin(), text.end());
        return std::pair(text, byte);
      }
      const ExprId rest = store.derivative(step.one, byte);
      const uint64_t pair = paired(rest, next);
      if (rest == ExprId::nothing || seen.find(pair)) continue;
      seen.insert(pair, 1);
      steps.push_back({rest, next, at, byte});
    }
  }
  return std::nullopt;
}

// A sentence with an example: a text of `terminal` after which a byte that begins `follower` is read as something else,
// and whether the text is then a dead end. `parallel`: terminals that may read the byte. Empty if no example was found.
std::string example_of_conflict(Grammar& grammar, uint32_t terminal, uint32_t follower, const std::vector<uint32_t>& parallel) {
  const std::vector<std::string>& names = grammar.terminal_names;
  ExpressionStore& store = grammar.expressions;
  const ExprId following = grammar.terminals[follower];
  static const std::string unproved = "; whether every text can still be completed is not proved";
  if (const std::optional<Example> found = DeadEndSearch(grammar, terminal, follower).find()) {
    const std::string next = character(store, following, found->byte);
    return "For example, after " + quoted(found->before) + " the " + quoted(next) + " of " + names[follower] + " is read as more of " +
           names[found->onward] +
           (found->dead_end ? ", and no text that begins with " + quoted(found->before + next) + " can be completed" : unproved);
  }
  for (uint32_t other : parallel) {
    const auto found = text_read_on(store, grammar.terminals[terminal], grammar.terminals[other], following);
    if (!found) continue;
    const auto& [text, byte] = *found;
    return "For example, " + quoted(text) + " is a text of " + names[terminal] + ", and together with the " + quoted(character(store, following, byte)) +
           " of " + names[follower] + " after it, it may begin a text of " + names[other] + unproved;
  }
  return {};
}

}  // namespace

void prove_lexing(Grammar& grammar) {
  const std::optional<LexingConflict> found = find_lexing_conflict(grammar);
  if (!found) return;
  const std::string& name = grammar.terminal_names[found->terminal];
  const std::string& follower = grammar.terminal_names[found->follower];
  const std::string example = example_of_conflict(grammar, found->terminal, found->follower, found->parallel);
  throw GrammarError("terminal " + follower + " may follow terminal " + name + ", but every first byte of " + follower +
                     " may also continue the lexeme before it, so the longest match could take it "
                     "(maximal-munch conflict). " + (example.empty() ? "" : example + ". ") +
                     "Separate them, or exclude from " + name + " the characters that " + follower + " begins with");
}

}  // namespace constrain
