// Identifiers of interned values: distinct types, so that one kind cannot be passed for another.
#pragma once

#include <cstdint>

namespace constrain {

enum class ExprId : uint32_t { nothing = 0, epsilon = 1, anything = 2 };  // ExpressionStore
enum class StateId : uint32_t {};                                        // state of a rule automaton, all rules numbered through
enum class TermId : uint32_t {};                                         // terminal; ids past the grammar's are built from memory
enum class LexId : uint32_t { dead = 0 };                                // lexer state
enum class SetId : uint32_t { none = 0 };                                // Earley set
enum class OriginId : uint32_t { end = 0 };                              // set of waiting items
enum class MemoryId : uint32_t { empty = 0 };                            // values of a rule's slots
enum class TextSetId : uint32_t { empty = 0 };                           // set of remembered texts
enum class TextId : uint32_t { empty = 0, unknown = 1 };                 // text of an unfinished remembered lexeme
enum class ValueId : uint32_t { none = 0, unknown_scalar = 1, unknown_group = 2 };  // value of a text
enum class TrackId : uint32_t { unknown = 0, start = 1 };                // unfinished values
enum class MatchId : uint32_t { none = 0 };                              // set of terminals that one lexeme matches

template <typename Id>
constexpr uint32_t index(Id id) {
  return static_cast<uint32_t>(id);
}

// The key of a pair in tables: two ids, or two numbers below 2^32.
template <typename One, typename Other>
constexpr uint64_t paired(One one, Other other) {
  return (uint64_t{static_cast<uint32_t>(one)} << 32) | static_cast<uint32_t>(other);
}

constexpr uint32_t unbounded = 0xFFFFFFFFu;  // "no maximum" of a repetition, a window or a condition

}  // namespace constrain
