// Completions: a real text that finishes what has been begun.
//
// Where the rules tell the whole way, it is put together from ways through single rules (rule_paths.h); where values must be
// distinct, lexeme by lexeme; where the longest match might take what should follow, by a search over places. Invariant:
// what is returned can be read from its place to an end. It is shortest, unless that takes too long to find.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hashing.h"
#include "rule_paths.h"
#include "stepping.h"

namespace constrain {

class Completions {
 public:
  struct Effort {
    bool thorough = false;  // also where searches have taken so long that some short text would do
    size_t searched_places = MAX_SEARCHED_PLACES.value;
  };

  Completions(Stepping& stepping, RulePaths& paths)
      : stepping_(stepping), paths_(paths), grammar_(stepping.grammar()), lexer_(stepping.lexer()), parser_(stepping.parser()) {}

  std::string shortest(const Place& place, const Effort& effort);
  std::string shortest(const Place& place) { return shortest(place, Effort{}); }
  std::string by_rules(const Place& place, bool thorough = false);  // which know nothing of the longest match, nor of values
  void check_finish(bool steps);  // `steps`: also whether the shortest text can be followed within the limits
  const Item* next_waiting(const std::vector<Item>& waiting);  // the one from which the end is nearest

  size_t memory_bytes() const { return origin_costs_.bytes(); }

 private:
  struct Ending;
  uint64_t item_cost(const Item& item);
  uint64_t origin_cost(OriginId origin);
  void expand(const RulePath& path, std::string& out);
  void complete_item(Item item, std::string& out);
  void offer_entry(Ending& best, const Lexer::Entry& entry, const Place& place, bool thorough);
  bool is_enough(const Ending& best, bool thorough) const;
  std::string by_search(const Place& place, const Effort& effort);
  std::string by_steps(Place place);
  ExprId next_lexeme(const Place& place);

  Stepping& stepping_;
  RulePaths& paths_;
  const Grammar& grammar_;
  Lexer& lexer_;
  Parser& parser_;
  FlatMap<uint32_t, uint64_t> origin_costs_;
};

}  // namespace constrain
