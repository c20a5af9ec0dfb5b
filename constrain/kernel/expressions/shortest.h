// Shortest matches of expressions; or some short match, if a shortest one takes too long to find.
//
// Remembers texts that took a search, or a choice between alternatives. Invariant: a text is a match, and never changes.
#pragma once

#include <deque>
#include <unordered_map>

#include "expressions/expressions.h"

namespace constrain {

class ShortestTexts {
 public:
  explicit ShortestTexts(ExpressionStore& store) : store_(store) {}
  ShortestTexts(const ShortestTexts&) = delete;

  std::string of(ExprId e);
  void prefer(ExprId e, std::string match) { preferred_.insert_or_assign(e, std::move(match)); }  // in place of the shortest
  bool takes_search(ExprId e) const {  // at the first call; otherwise the text is composed from parts
    using Kind = ExpressionNodes::Kind;
    const Kind kind = store_[e].kind;
    return kind == Kind::intersection || kind == Kind::complement || kind == Kind::multiple || kind == Kind::window;
  }

 private:
  struct Visit {
    ExprId e;
    size_t parent;
    uint8_t byte;  // the byte that led here
  };
  static std::string text_to(const std::vector<Visit>& visits, size_t at);
  std::string build_shortest(ExprId e);
  std::string search_shortest(ExprId e);
  std::optional<std::string> search_exact(ExprId e);
  std::string some_match(ExprId e);
  std::string shortest_substring(const ExpressionNodes::Node& start);
  std::optional<std::string> match_of_a_part(ExprId e);
  std::optional<std::string> match_of_window(ExprId e);
  std::string text_through(const std::vector<std::vector<ExprId>>& levels, ExprId end, ExprId part, ExprId unit, ExprId state);
  std::string text_of_end(ExprId end, ExprId unit);
  std::string text_of_unit(ExprId part, ExprId unit, ExprId wanted);
  std::optional<std::string> digits_to_multiple(ExprId e);

  ExpressionStore& store_;
  FlatMap<uint32_t, uint32_t> ids_;
  std::deque<std::string> texts_;
  std::unordered_map<ExprId, std::string> preferred_;
  Distances distances_;
};

}  // namespace constrain
