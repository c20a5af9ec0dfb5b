// Completions: a real text that finishes from a place.
//
// Where rules alone decide, the text is composed from ways through single rules (rule_paths.h). Where values must be
// distinct, it is found lexeme by lexeme. Where the longest match may take bytes of the next lexeme, a search over
// places finds it. Invariant: the text can be read from the place to an end. It is shortest, unless finding that takes
// too long; a lexeme with a limit on its tokens has a text of fewest tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/hashing.h"
#include "completions/rule_paths.h"
#include "completions/token_limits.h"
#include "parsing/stepping.h"

namespace constrain {

class Completions {
 public:
  struct Effort {
    bool thorough = false;  // keeps searching even after long searches; otherwise some short text is enough then
    size_t searched_places = MAX_SEARCHED_PLACES.value;
  };

  Completions(Stepping& stepping, RulePaths& paths, TokenLimits& limits)
      : stepping_(stepping), paths_(paths), limits_(limits), grammar_(stepping.grammar()), lexer_(stepping.lexer()), parser_(stepping.parser()) {}

  std::string shortest(const Place& place, const Effort& effort);
  std::string shortest(const Place& place) { return shortest(place, Effort{}); }
  std::string by_rules(const Place& place, bool thorough = false);  // by rules that ignore the longest match and values
  void check_finish(bool steps);  // `steps`: also checks that the shortest text can be followed within the limits.
  void complete_item(Item item, std::string& out);  // appends the way of an item by rules, to the end of the text
  const Item* next_waiting(const std::vector<Item>& waiting);  // the item nearest to the end

  size_t memory_bytes() const { return origin_costs_.bytes(); }

 private:
  static constexpr uint64_t endless = RulePath::endless;
  struct Ending;
  uint64_t item_cost(const Item& item);
  uint64_t origin_cost(OriginId origin);
  void expand(const RulePath& path, std::string& out);
  void offer_entry(Ending& best, const Lexer::Entry& entry, const Place& place, bool thorough);
  bool is_enough(const Ending& best, bool thorough) const;
  std::string compose(const Place& place, bool thorough);
  std::string by_search(const Place& place, const Effort& effort);
  bool reads_unlimited(LexId lexer) const;
  std::vector<std::string> limited_rests(const Place& place, const Place& before, std::string_view read);
  std::string by_steps(Place place);
  ExprId next_lexeme(const Place& place);

  Stepping& stepping_;
  RulePaths& paths_;
  TokenLimits& limits_;
  const Grammar& grammar_;
  Lexer& lexer_;
  Parser& parser_;
  FlatMap<uint32_t, uint64_t> origin_costs_;
};

}  // namespace constrain
