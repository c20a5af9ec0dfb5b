// The limits that errors of the kernel name, in one list; some of them may also be met while a text is generated.
//
// Each constant has the name that users see in `LimitError`, or in `limits_met` of a matcher. Its comment gives quantity
// and unit, and after "Beyond:" the consequence. A constant is one line, with its one-line comment right above it:
// docs/reference/limits.md is generated from this list (python -m tools.pages).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace constrain {

// The limits that may be met while a text is generated; `compile_work` stands for all others.
enum class Limit : uint8_t {
  compile_work,
  mask_work,
  call_work,
  intersection_states,
  nested_decisions,
  expression_depth,
  shortest_match,
  nested_groups,
  path_states,
  searched_places,
  budget_questions,
  readings,
};

struct NamedLimit {
  std::string_view name;
  uint64_t value;
  std::string_view unit;
  Limit met = Limit::compile_work;

  std::string shown() const { return std::string(name) + " = " + std::to_string(value); }
  std::string with_unit() const { return shown() + " " + std::string(unit); }
};

// Steps, of about a microsecond, of one compilation: for its front end, for its expressions, for all questions about patterns, for a proof of lexing (ten of its steps count as one), and for one question about an expression. Beyond: LimitError.
inline constexpr NamedLimit MAX_COMPILE_WORK{"MAX_COMPILE_WORK", 2'000'000, "steps", Limit::compile_work};

// Steps, of about a microsecond, for one mask; as many again to verify its tokens beyond that, and to judge tokens against a budget. Beyond: the mask has only tokens of one byte, each verified, and the next token of a way to finish.
inline constexpr NamedLimit MAX_MASK_WORK{"MAX_MASK_WORK", 300'000, "steps", Limit::mask_work};

// Steps, of about a microsecond, for one call of a matcher. Beyond: tokens not yet verified are neither allowed nor forced; a completion is short, but perhaps not shortest; `accepts` and `explain` raise LimitError.
inline constexpr NamedLimit MAX_CALL_WORK{"MAX_CALL_WORK", 2'000'000, "steps", Limit::call_work};

// States of one search that decides whether an intersection or complement matches anything, or whether a pattern has a match of a permitted length. Beyond: LimitError when compiling; later the token is not allowed.
inline constexpr NamedLimit MAX_INTERSECTION_STATES{"MAX_INTERSECTION_STATES", 20'000, "states", Limit::intersection_states};

// Nested questions whether an expression matches anything. Beyond: LimitError when compiling; later the token is not allowed.
inline constexpr NamedLimit MAX_NESTED_DECISIONS{"MAX_NESTED_DECISIONS", 100, "questions", Limit::nested_decisions};

// Levels of nesting of an imported expression; a chain of concatenations is one level. Beyond: LimitError when compiling.
inline constexpr NamedLimit MAX_EXPRESSION_DEPTH{"MAX_EXPRESSION_DEPTH", 4'000, "levels", Limit::expression_depth};

// Bytes of a shortest text: of one lexeme, or of the whole rest. Beyond: LimitError when compiling, if lexemes alone are longer; otherwise from a shortest completion.
inline constexpr NamedLimit MAX_SHORTEST_MATCH{"MAX_SHORTEST_MATCH", 16'777'216, "bytes", Limit::shortest_match};

// Nested groups that must be distinct values. Beyond: the lexeme is not allowed.
inline constexpr NamedLimit MAX_NESTED_GROUPS{"MAX_NESTED_GROUPS", 1'000, "groups", Limit::nested_groups};

// States visited by one search for a way through a rule. Beyond: LimitError when compiling, if a rule counts this far; otherwise from a shortest completion.
inline constexpr NamedLimit MAX_PATH_STATES{"MAX_PATH_STATES", 400'000, "states", Limit::path_states};

// Places visited by one search for a shortest text that the longest match reads as intended. Beyond: LimitError from a shortest completion.
inline constexpr NamedLimit MAX_SEARCHED_PLACES{"MAX_SEARCHED_PLACES", 100'000, "places", Limit::searched_places};

// Questions about sets and ways to finish, for one mask near the end of a token budget; 256 if each takes a search. Beyond: tokens not yet verified are left out of the mask.
inline constexpr NamedLimit MAX_BUDGET_QUESTIONS{"MAX_BUDGET_QUESTIONS", 4'000, "questions", Limit::budget_questions};

// Ways to read one text that a matcher follows at once: a token may count as itself, where the grammar names it, or as its text, and may end a rule with `max_tokens` or not. Beyond: the further ways are dropped, and masks lack the tokens that only those allow.
inline constexpr NamedLimit MAX_READINGS{"MAX_READINGS", 64, "readings", Limit::readings};

// Ways to read the beginning of a text up to one byte, in grammars that name tokens. Beyond: LimitError from `accepts`.
inline constexpr NamedLimit MAX_READINGS_OF_TEXT{"MAX_READINGS_OF_TEXT", 1'000, "readings"};

// States, at the ends of tokens, of one lexeme with a limit on its tokens (`max_tokens`). Beyond: LimitError when compiling.
inline constexpr NamedLimit MAX_LIMITED_STATES{"MAX_LIMITED_STATES", 5'000, "states"};

// The greatest `multipleOf`, after its decimal point is removed. Beyond: LimitError when compiling.
inline constexpr NamedLimit MAX_DIVISOR{"MAX_DIVISOR", 576'460'752'303'423'488, "the divisor"};

// Characters of all texts of one source of quotes, or of one `Substring`. Beyond: LimitError when compiling.
inline constexpr NamedLimit MAX_QUOTE_CHARACTERS{"MAX_QUOTE_CHARACTERS", 1'000'000, "characters"};

// Bytes of all values of one table, as JSON writes them. Beyond: LimitError when the table is read.
inline constexpr NamedLimit MAX_TABLE_BYTES{"MAX_TABLE_BYTES", 1'073'741'824, "bytes"};

// States, with their counters, that one rule can reach without reading. Beyond: LimitError when compiling.
inline constexpr NamedLimit MAX_SILENT_STATES{"MAX_SILENT_STATES", 100'000, "states"};

// States of one rule. Beyond: LimitError when compiling.
inline constexpr NamedLimit MAX_RULE_STATES{"MAX_RULE_STATES", 10'000'000, "states"};

// States of two terminals read in parallel by the proof of lexing. Beyond: LimitError when compiling.
inline constexpr NamedLimit MAX_PAIR_STATES{"MAX_PAIR_STATES", 5'000, "states"};

inline constexpr std::array<std::string_view, 12> limit_names{  // indexed by Limit
    MAX_COMPILE_WORK.name,     MAX_MASK_WORK.name,        MAX_CALL_WORK.name,      MAX_INTERSECTION_STATES.name,
    MAX_NESTED_DECISIONS.name, MAX_EXPRESSION_DEPTH.name, MAX_SHORTEST_MATCH.name, MAX_NESTED_GROUPS.name,
    MAX_PATH_STATES.name,      MAX_SEARCHED_PLACES.name,  MAX_BUDGET_QUESTIONS.name, MAX_READINGS.name,
};

class LimitSet {
 public:
  LimitSet() = default;
  explicit LimitSet(Limit limit) { add(limit); }
  void add(Limit limit) { bits_ |= static_cast<uint16_t>(1u << static_cast<unsigned>(limit)); }
  void add(LimitSet other) { bits_ |= other.bits_; }
  bool empty() const { return bits_ == 0; }
  bool operator==(const LimitSet&) const = default;

  template <typename F>
  void each(F&& visit) const {  // in ascending order
    for (unsigned bits = bits_; bits != 0; bits &= bits - 1) visit(static_cast<Limit>(std::countr_zero(bits)));
  }
  template <typename Archive>
  void visit(Archive& archive) {
    archive(bits_);
  }

 private:
  uint16_t bits_ = 0;
};

// The limits of a grammar's tables. Only tests use other values than these.
struct Limits {
  size_t mask_work = MAX_MASK_WORK.value;
  size_t call_work = MAX_CALL_WORK.value;
  uint32_t intersection_states = static_cast<uint32_t>(MAX_INTERSECTION_STATES.value);
  uint32_t nested_decisions = static_cast<uint32_t>(MAX_NESTED_DECISIONS.value);
  size_t budget_questions = MAX_BUDGET_QUESTIONS.value;
  size_t budget_searches = 256;  // questions, if each may take a search
};

}  // namespace constrain
