// Upper bounds on the length of a way to finish: from sets, items and lexemes.
//
// Bounds are in bytes or in tokens. Bytes are cheap (a token has at least one); for tokens, each shortest text on the
// way is spelled by itself, short ways as a whole, and patterns are followed state by state. Invariant: the shortest way
// to finish is never longer than its bound. Texts that must be new are counted apart (`fresh`), since their length
// depends on the texts already read.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/hashing.h"
#include "budget/budget_questions.h"
#include "completions/completions.h"
#include "completions/rule_paths.h"
#include "masks/mask.h"
#include "parsing/stepping.h"
#include "vocabulary/vocabulary.h"

namespace constrain {

class Bounds {
 public:
  Bounds(Stepping& stepping, const Vocabulary& vocabulary, RulePaths& paths, Completions& completions)
      : vocabulary_(vocabulary), paths_(paths), completions_(completions), grammar_(stepping.grammar()), lexer_(stepping.lexer()),
        slots_(stepping.slots()), parser_(stepping.parser()) {}

  void prepare();  // computes the tables for all bounds; otherwise the first bound does

  const Bound& of_set(SetId set, Unit unit, BudgetQuestions& questions);  // from any state of the lexeme after the set
  Bound of_mask(const Mask& mask, const Place& place, Unit unit);         // after any token of the mask
  // From the current state of the lexeme: in bytes, the way with fewest fresh texts and bytes; in tokens, any way,
  // since that one may not have fewest tokens.
  Bound of_place(const Place& place, Unit unit);
  Bound inside(const Place& place, Unit unit, BudgetQuestions& questions);  // from any later state of the lexeme

  // A sufficient number of tokens. `read`: at most the bytes of the longest remembered text or value.
  uint64_t tokens_of(const Bound& bound, size_t read);
  template <typename F>
  bool within(size_t read, uint64_t tokens, F&& bound_in) {  // asks for the bound in bytes first
    return tokens_of(bound_in(Unit::bytes), read) <= tokens || tokens_of(bound_in(Unit::tokens), read) <= tokens;
  }

  size_t memory_bytes() const {
    return units * set_bounds_[0].size() * sizeof(std::optional<Bound>) + units * path_ways_[0].size() * sizeof(std::optional<Way>) +
           origin_ways_.bytes() + shortest_tokens_.bytes() + spelled_tokens_.bytes() + ways_out_.bytes();
  }

 private:
  static constexpr uint32_t many = 0xFFFFu;            // fresh texts: this many or more
  static constexpr uint32_t many_tokens = 0x3FFFFFFFu;  // this many or more
  struct WayOut {  // from an item to the end of its rule, or from an origin to the end of the text
    uint64_t cost;
    uint32_t fresh;
    void add(const WayOut& other) {
      cost = cost == RulePath::endless || other.cost == RulePath::endless ? RulePath::endless : cost + other.cost;
      fresh = std::min(many, fresh + other.fresh);
    }
  };
  struct Way {  // the texts on a way
    uint32_t fresh, tokens;
    void add(const Way& other) {
      fresh = std::min(many, fresh + other.fresh);
      tokens = std::min(many_tokens, tokens + other.tokens);
    }
  };

  // Whether a way counted in tokens is the way of the completion: the rules alone decide it, and each text on it may be
  // its shortest match.
  bool counts_tokens() const { return grammar_.self_delimiting && !grammar_.has_values; }
  Bound find_set(SetId set, Unit unit);
  Bound of_item(const Item& item, Unit unit);
  Bound of_lexeme(TermId terminal, Unit unit);
  uint64_t longest_lexeme();
  bool surely_endless(TermId terminal);
  bool excludes_few(uint32_t rule);
  MemoryId memory_of(const Item& item);
  bool is_plain(StateId start, unsigned depth = 0);
  WayOut own_way(const Item& item);
  WayOut way_out(OriginId origin);
  template <typename W, typename F>
  W along_waiting(OriginId origin, FlatMap<uint32_t, W>& known, F&& way_of);
  Way way_of_path(uint32_t path, Unit unit, unsigned depth = 0);
  Way way_of_origin(OriginId origin);
  uint32_t spelled_tokens(const Item& item);
  uint32_t tokens_of_shortest(ExprId e);
  uint64_t fresh_slack();

  const Vocabulary& vocabulary_;
  RulePaths& paths_;
  Completions& completions_;
  const Grammar& grammar_;
  Lexer& lexer_;
  RuleSlots& slots_;
  Parser& parser_;
  Lengths lengths_{lexer_.expressions().nodes()};

  std::array<std::vector<std::optional<Bound>>, units> set_bounds_;     // by set
  std::array<std::vector<std::optional<Bound>>, units> lexeme_bounds_;  // by terminal, own and derived
  std::vector<std::optional<bool>> plain_;                              // by state
  std::vector<std::optional<bool>> surely_endless_;                     // by terminal of the grammar
  std::vector<std::optional<bool>> excludes_few_;                       // by rule
  FlatMap<uint32_t, WayOut> ways_out_;                                  // by origin
  // The last question: steps of one set mostly share rule, memory and origin.
  struct BoundMemory {
    uint32_t rule = ~uint32_t{0};
    MemoryId memory{}, without{};
  };
  BoundMemory last_memory_;
  std::pair<OriginId, WayOut> last_way_out_{OriginId{~uint32_t{0}}, {0, 0}};
  std::array<std::vector<std::optional<Way>>, units> path_ways_;  // by path
  FlatMap<uint32_t, Way> origin_ways_;
  FlatMap<uint32_t, uint32_t> shortest_tokens_;  // by expression
  FlatMap<Hash, uint32_t> spelled_tokens_;       // by item
  uint64_t fresh_slack_ = 0;     // bytes by which a fresh text may be longer than all texts read; 0: not computed yet
  uint64_t longest_lexeme_ = 0;  // result of longest_lexeme(); 0: not computed yet
};

}  // namespace constrain
