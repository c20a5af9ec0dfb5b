// Regular expressions over bytes, hash-consed, stepped by Brzozowski derivatives (Brzozowski 1964).
//
// Invariant: a node is interned under its structural hash, so equal structure means equal id; and a node denotes a
// non-empty language unless it is ExprId::nothing. Intersections, windows and multiples are decided when they are
// made; all other nodes are non-empty by construction. So a lexer state with a live expression can be completed.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/byte_set.h"
#include "base/hashing.h"
#include "base/ids.h"
#include "base/limits.h"
#include "base/stop_time.h"
#include "expressions/suffix_automaton.h"

namespace constrain {

using CodePointRange = std::pair<uint32_t, uint32_t>;

class ExpressionStore {
 public:
  enum class Kind : uint8_t {
    nothing, epsilon, anything, bytes, literal, concatenation, alternation, intersection, complement, repetition,
    literal_set, multiple, window, substring
  };

  struct Node {
    Hash hash;
    std::array<uint32_t, 6> arg{};  // operands; their meaning depends on the kind, see the accessors below
    Kind kind = Kind::nothing;
    bool nullable = false;
    bool finite = false;    // certainly a finite language
    bool infinite = false;  // certainly an infinite language
    bool has_substring = false;  // it, or one of its parts, is a substring of given texts
    bool has_count = false;      // it, or a part outside intersections and complements, is a window or counts to 2 or more
    int16_t lead = -1;      // the only byte a match may begin with, if there is just one and it is cheap to find
    uint16_t height = 0;    // levels of parts below; a chain of concatenations is one level, however long

    // A class of bytes: its number in the store.
    uint32_t byte_set() const { return arg[0]; }
    // A literal: its position in the text of all literals, in bytes.
    uint32_t offset() const { return arg[0]; }
    uint32_t length() const { return arg[1]; }
    // A concatenation, which leans to the right: the tail may be another concatenation.
    ExprId head() const { return ExprId{arg[0]}; }
    ExprId rest() const { return ExprId{arg[1]}; }
    // An alternation or intersection: the position of its parts in the array of all parts (see `parts`).
    uint32_t first_part() const { return arg[0]; }
    uint32_t part_count() const { return arg[1]; }
    // A complement.
    ExprId excluded() const { return ExprId{arg[0]}; }
    // A repetition or window: the unit, and how often it occurs; the maximum may be `unbounded`.
    ExprId unit() const { return ExprId{arg[0]}; }
    uint32_t minimum() const { return arg[1]; }
    uint32_t maximum() const { return arg[2]; }
    // A window: the pattern, and the rest of the current unit (a whole unit at a boundary).
    ExprId part() const { return ExprId{arg[3]}; }
    ExprId unit_state() const { return ExprId{arg[4]}; }
    // A set of literals: its number, the range of its texts that are still possible, and how many bytes of them have
    // been read.
    uint32_t literal_set() const { return arg[0]; }
    uint32_t low() const { return arg[1]; }
    uint32_t high() const { return arg[2]; }
    uint32_t depth() const { return arg[3]; }
    // A substring: the number of its suffix automaton. Its range of transitions and depth are those of a set of literals.
    // Then the characters needed and allowed from the beginning of the current chunk on; the maximum may be `unbounded`.
    uint32_t automaton() const { return arg[0]; }
    uint32_t least() const { return arg[4]; }
    uint32_t most() const { return arg[5]; }
    // A multiple: the number of its divisor, how much of the number has been read (phase_...), and the remainder.
    uint32_t machine() const { return arg[0]; }
    uint32_t phase() const { return arg[1]; }
    uint64_t residue() const { return arg[2] | (uint64_t{arg[3]} << 32); }
  };

  static constexpr uint32_t phase_start = 0;  // of a multiple: nothing read, '-' read, integer digits, then 3 + fraction digits
  static constexpr uint32_t phase_sign = 1;
  static constexpr uint32_t phase_integer = 2;
  static constexpr uint32_t phase_fraction = 3;

  static constexpr size_t max_residues_searched = 2'000;  // states; beyond that, arithmetic decides

  ExpressionStore();

  ExprId bytes(const ByteSet& set);
  ExprId literal(std::string_view text);
  ExprId char_class(std::span<const CodePointRange> ranges, bool json);
  ExprId concatenation(ExprId first, ExprId second);
  ExprId alternation(std::vector<ExprId> parts);
  ExprId intersection(std::vector<ExprId> parts);
  ExprId complement(ExprId part);
  ExprId repetition(ExprId part, uint32_t minimum, uint32_t maximum);
  ExprId literal_set(std::vector<std::string> texts);
  ExprId multiple(uint64_t divisor, uint32_t scale);
  ExprId window(ExprId part, ExprId unit, uint32_t minimum, uint32_t maximum);
  ExprId substring(const SuffixAutomaton::Source& source, uint32_t minimum, uint32_t maximum);  // lengths in characters

  // An expression that matches all texts of `e` and perhaps more, without long counts except in complements.
  ExprId without_counts(ExprId e);

  // An expression without the counts that no short text uses up. Texts of at most `short_text` bytes begin a match, or are
  // one, of both expressions or of neither; so do longer texts that keep the conditions.
  static constexpr uint32_t short_text = 16;  // bytes
  struct Uncounted {
    struct Count {
      ExprId unit;
      uint32_t most;  // a text keeps the condition if it begins at most so many units in a row
    };
    ExprId expression;
    uint64_t most_bytes = ~uint64_t{0};  // a text keeps the condition if it is not longer
    std::vector<Count> counts = {};
  };
  const Uncounted& without_far_counts(ExprId e);
  // What bounds the number of units in a text: the bytes with which one may begin and end, its bytes, and its least length.
  struct UnitBounds {
    ByteSet first, last, alphabet;
    uint32_t least;
    uint32_t most_begun(std::string_view text) const;  // an upper bound, wherever in the text the first unit begins
  };
  UnitBounds unit_bounds(ExprId unit);

  ExprId derivative(ExprId e, uint8_t byte);
  ExprId derivative(ExprId e, std::string_view text);

  const Node& operator[](ExprId e) const { return nodes_[index(e)]; }
  bool nullable(ExprId e) const { return nodes_[index(e)].nullable; }
  bool infinite(ExprId e) const { return nodes_[index(e)].infinite; }
  const Hash& hash(ExprId e) const { return nodes_[index(e)].hash; }
  ExprId head_of(ExprId e) const { return nodes_[index(e)].head(); }  // of a concatenation
  ExprId rest_of(ExprId e) const { return nodes_[index(e)].rest(); }
  std::span<const ExprId> parts(ExprId e) const;  // of an alternation or intersection

  ByteSet first(ExprId e);               // bytes that a match may begin with; perhaps a few too many
  ByteSet alphabet(ExprId e);            // bytes that a match may contain; perhaps a few too many
  // One byte of each class of bytes that no derivative of these expressions distinguishes.
  std::vector<uint8_t> representatives(std::span<const ExprId> expressions);
  std::vector<uint8_t> representatives(std::initializer_list<ExprId> expressions) {
    return representatives(std::span<const ExprId>(expressions.begin(), expressions.size()));
  }
  uint32_t distance(ExprId e);     // about how many bytes a match needs; found without a search
  std::string shortest(ExprId e);  // a shortest match, or some short match if that takes too long
  void prefer(ExprId e, std::string match) { preferred_.insert_or_assign(e, std::move(match)); }  // in place of the shortest

  bool shortest_takes_search(ExprId e) const { return is_searched(nodes_[index(e)].kind); }  // at the first call

  // Upper bounds on the length of matches, in bytes, from the structure alone.
  struct Lengths {
    uint64_t least;      // of a shortest match
    uint64_t rest;       // of a shortest match of the rest, after any beginning of a match
    uint64_t longest;    // of any match
    uint64_t positions;  // states of a nondeterministic automaton
    uint64_t settled;    // a match of the rest that is longer than this has a piece that can be left out,
    uint64_t circle;     // of at most this many bytes
  };
  static constexpr uint64_t no_limit = uint64_t{1} << 40;
  Lengths lengths(ExprId e);
  // From the derivatives: `rest`, and the number of derivatives; no_limit if there are more than `max_states`.
  struct Explored {
    uint64_t rest, states;
  };
  Explored explore(ExprId e, size_t max_states);

  // All matches, shortest first, if there are at most `limit`.
  std::optional<std::vector<std::string>> matches(ExprId e, size_t limit);

  // The deterministic automaton of an expression, the start first; no answer if it has more than `max_states` states.
  struct AutomatonEdge {
    uint32_t target;
    std::vector<std::pair<unsigned, unsigned>> ranges;  // of bytes, inclusive and ascending
  };
  struct AutomatonState {
    bool accepting;
    std::vector<AutomatonEdge> edges;  // by target, in the order of their first bytes
  };
  std::optional<std::vector<AutomatonState>> automaton(ExprId e, size_t max_states);

  // Whether there are infinitely many matches; no answer if that takes more than `max_states` derivatives.
  std::optional<bool> has_endless_matches(ExprId e, size_t max_states);

  // Work is counted in steps of about a microsecond: a derivative is one, and more by the size of what is made or
  // visited. Beyond the allowance, LimitError is thrown; after the thread's StopTime, Stopped.
  // `limit`: the limit it names; null for the rest of a caller's allowance.
  void allow(size_t work, const NamedLimit* limit);
  size_t work() const { return spent_ + nodes_.size(); }  // so far; each new node counts as a step, too
  // Counts work of a parser, whose items share the allowance: so many count as one step.
  static constexpr size_t items_per_step = 4;
  void count_items(size_t items) {
    items_ += items;
    if (items_ < items_per_step) return;
    spend(std::exchange(items_, items_ % items_per_step) / items_per_step);
  }
  void allow_all() {  // and searches without limits, until the next `allow`
    allowance_ = search_end_ = ~size_t{0};
    allow_searches(~uint32_t{0}, ~uint32_t{0});
  }
  void allow_searches(uint32_t intersection_states, uint32_t length_sets) {
    states_allowed_ = intersection_states;
    length_sets_allowed_ = length_sets;
  }
  void limit_searches(const Limits& limits) {
    max_states_ = limits.intersection_states;
    max_sets_ = limits.length_sets;
    max_decisions_ = limits.nested_decisions;
  }
  // Sets a function that is called once, after about `work` further steps; null for none.
  void notify_after(size_t work, void (*function)(void*), void* argument) {
    if (function) notice_at_ = spent_ + work;
    notice_ = function;
    notice_argument_ = argument;
  }
  size_t memory_bytes() const;

  template <typename Archive>
  void visit(Archive& archive) {  // without derivatives and shortest matches, which are found again
    archive(nodes_, children_, byte_sets_, literals_, literal_hashes_, literal_sets_, literal_set_bytes_, multiples_, substrings_, interned_,
            universal_, undecided_, alphabets_, firsts_, verdicts_, onward_, within_, unit_ids_, unit_targets_);
  }

 private:
  static constexpr size_t parts_per_step = 8;        // made, sorted or visited
  static constexpr size_t links_per_step = 1;        // found, derived and joined again: several look-ups each
  static constexpr size_t steps_between_looks = 4'096;  // at the time
  void spend(size_t work) {
    spent_ += work;
    if (spent_ > notice_at_) notice();
    if (spent_ > allowance_) overspent();
  }
  void count_parts(size_t parts) { spent_ += parts / parts_per_step; }  // without a check: the next `spend` makes it
  void notice();
  [[noreturn]] void overspent() const;

  struct LiteralSet {
    std::vector<std::string> texts;  // sorted, unique
    Hash hash;

    template <typename Archive>
    void visit(Archive& archive) {
      archive(texts, hash);
    }
  };
  struct Multiple {
    uint64_t divisor;
    uint32_t scale;
  };

  // Nesting (nesting.cpp): no function recurses as often as an expression is high.
  static constexpr uint16_t max_recursed_height = 16;  // levels; parts of higher expressions go first
  template <typename F>
  void each_part(ExprId e, F&& f) const;
  template <typename Known>
  std::vector<ExprId> new_links(ExprId e, Known&& known) const;
  template <typename Known, typename EachPart>
  std::vector<ExprId> tall_parts(ExprId e, Known&& known, EachPart&& each_part) const;
  bool is_tall(ExprId e) const { return nodes_[index(e)].height > max_recursed_height; }
  void set_height(Node& node) const;
  void derive_tall_parts(ExprId e, uint8_t byte);
  std::vector<std::pair<ExprId, ExprId>> leading_parts(ExprId e);
  class Deciding;

  ExprId intern(Node node);
  ExprId literal_at(uint32_t offset, uint32_t length);
  ExprId literal_set_at(uint32_t set, uint32_t low, uint32_t high, uint32_t depth);
  ExprId multiple_at(uint32_t machine, uint32_t phase, uint64_t residue);
  ExprId window_at(ExprId part, ExprId unit, ExprId unit_state, uint32_t minimum, uint32_t maximum);
  ExprId substring_from(uint32_t automaton, uint32_t state, uint32_t minimum, uint32_t maximum);
  ExprId substring_at(uint32_t automaton, uint32_t low, uint32_t high, uint32_t depth, uint32_t minimum, uint32_t maximum);
  ExprId intern_complement(ExprId part);
  bool is_universal(ExprId e);
  ByteSet find_first(ExprId e);
  ByteSet first_of(ExprId e);
  ByteSet find_alphabet(ExprId e);
  ExprId find_without_counts(ExprId e);
  Uncounted find_without_far_counts(ExprId e);
  Uncounted uncounted_chain(ExprId e);
  Uncounted uncounted_repetition(ExprId e);
  Uncounted uncounted_window(ExprId e);
  bool keeps_units(ExprId part, ExprId unit);
  ExprId intersection_undecided(std::vector<ExprId> parts);
  bool is_star(ExprId e) const;
  bool within(ExprId e, ExprId star);
  bool is_part_within(ExprId e, ExprId star);
  bool units_within(ExprId e, ExprId star);
  void absorb(std::vector<ExprId>& alternatives);
  bool is_among(ExprId e, ExprId alternation) const;
  bool excludes_itself(const std::vector<ExprId>& parts);
  ExprId derive(ExprId e, uint8_t byte);
  ExprId derive_multiple(const Node& node, uint8_t byte);
  ExprId derive_window(const Node& node, uint8_t byte);
  ExprId derive_substring(const Node& node, uint8_t byte);
  bool substring_completes(const Node& node);
  bool substring_completes(const Node& node, uint32_t transition);
  bool reaches_length(const SuffixAutomaton& runs, uint32_t from, uint32_t minimum, uint32_t maximum);
  std::pair<uint32_t, uint32_t> transitions_by(const Node& node, uint8_t byte) const;
  ByteSet first_of_substring(const Node& node) const;
  std::string shortest_substring(const Node& start);
  Lengths lengths_of_substring(const Node& node) const;
  ExprId utf8(const std::vector<CodePointRange>& ranges, unsigned continuation_bytes, uint32_t lead);
  void collect_byte_sets(ExprId e, std::vector<ByteSet>& out);

  enum class Verdict : uint8_t { unknown, live, empty };
  bool decide_intersection(ExprId e);
  std::optional<bool> decide_multiple(ExprId e);
  std::optional<bool> multiple_completes(ExprId digits, const Multiple& machine, uint64_t residue, bool begun);
  bool decide_window(ExprId part, ExprId unit, ExprId unit_state, uint32_t minimum, uint32_t maximum);
  std::optional<std::string> repeats_to_end(ExprId part, ExprId unit, uint32_t minimum, uint32_t maximum);
  std::vector<ExprId> after_unit(ExprId part, ExprId unit, ExprId unit_state);
  bool ends_units(ExprId part, ExprId unit);
  std::string build_shortest(ExprId e);
  std::string search_shortest(ExprId e);
  std::optional<std::string> search_exact(ExprId e);
  std::string some_match(ExprId e);
  std::optional<std::string> match_of_a_part(ExprId e);
  std::optional<std::string> match_of_window(ExprId e);
  std::string text_through(const std::vector<std::vector<ExprId>>& levels, ExprId end, ExprId part, ExprId unit, ExprId state);
  std::string text_of_end(ExprId end, ExprId unit);
  std::string text_of_unit(ExprId part, ExprId unit, ExprId wanted);
  uint32_t find_distance(ExprId e);
  static bool is_searched(Kind kind);
  struct Visit {
    ExprId e;
    size_t parent;
    uint8_t byte;  // the byte that led here
  };
  static std::string text_to(const std::vector<Visit>& visits, size_t at);
  std::optional<std::string> digits_to_multiple(ExprId e);
  Lengths find_lengths(ExprId e);
  Lengths lengths_of_set(const Node& node);
  Lengths lengths_of_chain(ExprId e);
  Lengths lengths_of_alternation(const Node& node);
  Lengths lengths_of_repetition(const Node& node);
  Lengths lengths_of_window(const Node& node);
  Lengths lengths_of_intersection(ExprId e);
  void keep_lengths(ExprId e, const Lengths& lengths);
  uint64_t digits_of(const Node& multiple) const;

  size_t spent_ = 0;
  size_t allowance_ = ~size_t{0};
  size_t items_ = 0;  // not yet spent
  size_t search_end_ = ~size_t{0};  // work at which searches for shortest matches stop and leave the rest to decisions
  const NamedLimit* limit_ = nullptr;
  // The limits of one search: as requested, and as allowed now.
  uint32_t max_states_ = Limits{}.intersection_states, max_sets_ = Limits{}.length_sets;
  uint32_t states_allowed_ = Limits{}.intersection_states, length_sets_allowed_ = Limits{}.length_sets;
  size_t notice_at_ = steps_between_looks;
  void (*notice_)(void*) = nullptr;
  void* notice_argument_ = nullptr;
  std::vector<Node> nodes_;
  std::vector<ExprId> children_;
  std::vector<ByteSet> byte_sets_;
  std::string literals_;             // all literal texts, one after the other
  std::vector<Hash> literal_hashes_;  // from each offset on: the hash of the rest of its literal
  std::vector<LiteralSet> literal_sets_;
  size_t literal_set_bytes_ = 0;
  std::vector<Multiple> multiples_;
  std::vector<std::shared_ptr<const SuffixAutomaton>> substrings_;
  FlatMap<Hash, uint32_t> interned_;
  FlatMap<uint64_t, uint32_t> derivatives_;
  FlatMap<uint32_t, uint8_t> universal_;
  FlatMap<uint32_t, uint32_t> shortest_ids_;  // shortest matches that take a search or a choice
  FlatMap<uint32_t, uint32_t> undecided_;  // intersections whose emptiness takes more states to decide
  std::deque<std::string> shortest_texts_;
  std::unordered_map<ExprId, std::string> preferred_;
  FlatMap<uint32_t, ByteSet> alphabets_;
  FlatMap<uint32_t, ByteSet> firsts_;  // of alternations, intersections, tall expressions, and chains with nullable heads
  FlatMap<uint32_t, uint32_t> without_counts_;
  FlatMap<uint32_t, uint32_t> uncounted_ids_;
  std::deque<Uncounted> uncounted_;
  FlatMap<uint64_t, uint8_t> keeps_units_;  // by expression and unit
  std::vector<uint32_t> collected_;    // by node: the last call of representatives that visited it
  std::vector<ExprId> uncollected_;    // nodes that this call has still to visit
  uint32_t collection_ = 0;            // the number of the last call
  std::vector<Verdict> verdicts_;  // of intersections
  std::vector<int16_t> onward_;    // the first byte of the match that proved an intersection live; or -1
  FlatMap<uint32_t, uint32_t> distances_;
  FlatMap<uint32_t, uint32_t> length_ids_;
  std::deque<Lengths> lengths_;
  FlatMap<uint64_t, uint8_t> within_;
  uint32_t decisions_ = 0;   // nested questions in progress
  uint32_t max_decisions_ = Limits{}.nested_decisions;  // bounds the depth of the stack
  uint32_t inclusions_ = 0;  // nested questions of units_within in progress
  FlatMap<Hash, uint32_t> unit_ids_;
  std::vector<std::vector<ExprId>> unit_targets_;
};

}  // namespace constrain
