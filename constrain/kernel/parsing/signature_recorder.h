// Records what the mask of a place is computed from, while it is computed: which lexemes end, and where the tokens end.
//
// Invariant: sets are numbered in the order of their discovery, and the mask's own set is 0; a lexeme is recorded once.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "parsing/parser.h"

namespace constrain {

// The properties of a set that a mask depends on.
struct SetLook {
  LexId start = LexId::dead;
  bool exists = false, accepting = false, uses_text = false;
  bool operator==(const SetLook&) const = default;
};

SetLook look_at(Parser& parser, SetId set);

// Sets by number.
struct EndedLexeme {
  uint32_t from, to;
  MatchId matched;
  TextId text;
  SetLook look;  // of the set that the lexeme leads to
};

class SignatureRecorder {
 public:
  static constexpr size_t max_lexemes = 64;  // lexemes recorded for one mask; beyond them its tokens are not shared
  // `own`: the set of the mask. Lexemes are recorded only if `notes_lexemes`.
  SignatureRecorder(Parser& parser, SetId own, bool notes_lexemes) : parser_(parser), notes_lexemes_(notes_lexemes), sets_{own} {}

  void record(SetId set, MatchId matched, TextId text, SetId next);
  void record_end(SetId set) { ends_.push_back(set); }  // a token may end in this set

  const std::vector<SetId>& sets() const { return sets_; }
  const std::vector<EndedLexeme>& lexemes() const { return lexemes_; }
  const std::vector<SetId>& ends() const { return ends_; }

 private:
  uint32_t number_of(SetId set);

  Parser& parser_;
  const bool notes_lexemes_;
  std::vector<SetId> sets_;  // by number
  std::vector<EndedLexeme> lexemes_;
  std::vector<SetId> ends_;
};

}  // namespace constrain
