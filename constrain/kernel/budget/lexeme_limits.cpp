// Finds the tokens that bring the end of a lexeme nearer.
#include "budget/lexeme_limits.h"

#include <algorithm>

#include "base/errors.h"

namespace constrain {

bool LexemeLimits::stays(LexId lexer, std::string_view bytes) {
  for (char c : bytes) {
    lexer = lexer_.step(lexer, static_cast<uint8_t>(c));
    if (lexer == LexId::dead) return false;
  }
  return true;
}

uint64_t LexemeLimits::limit_of(LexId lexer, std::span<const uint64_t> limits) const {
  uint64_t limit = none;
  for (const Lexer::Entry& entry : lexer_.entries(lexer)) {
    if (entry.expression == ExprId::epsilon || lexer_.is_none(entry.terminal)) continue;
    const size_t kind = grammar_.kinds[index(lexer_.base_terminal(entry.terminal))];
    if (kind < limits.size()) limit = std::min(limit, limits[kind]);
  }
  return limit;
}

uint64_t LexemeLimits::rest_of(LexId lexer) {
  if (const uint64_t* found = rests_.find(index(lexer))) return *found;
  uint64_t rest = endless;
  for (const Lexer::Entry& entry : lexer_.copy_of_entries(lexer)) {
    rest = std::min<uint64_t>(rest, lexer_.shortest_texts().of(entry.expression).size());
  }
  rests_.insert(index(lexer), rest);
  return rest;
}

void LexemeLimits::keep_nearer(LexId lexer, std::span<uint32_t> words) {
  const Stepping::Scope scope = stepping_.for_mask();
  const uint64_t rest = rest_of(lexer);
  const size_t enough = lexer_.expressions().steps() + stepping_.limits().mask_work;
  const auto is_nearer = [&](LexId end) {
    if (lexer_.expressions().steps() > enough) return false;  // searches take too long
    try {
      return rest_of(end) < rest;
    } catch (const LimitError&) {  // not verified
      return false;
    }
  };
  Bitmask farther(words.size());
  for (const LexemeEnd& end : ends_.of(lexer)) {
    if (!is_nearer(end.lexer)) end.tokens->add_to(farther);
  }
  for (size_t i = 0; i < words.size(); ++i) words[i] &= ~farther[i];
}

}  // namespace constrain
