// Examples of maximal-munch conflicts: lexemes that take bytes of the lexeme that should follow.
//
// The automaton of the grammar is explored from the beginning, within limits. It reads by the longest match, proved
// safe or not. A place is a dead end if everything after it was explored without finding an end: no text completes it.
// If the explored places have no example, the expressions alone give one.
#pragma once

#include "grammar/grammar.h"

namespace constrain {

// Throws GrammarError with the names of both terminals if there is a conflict.
void prove_lexing(Grammar& grammar);

}  // namespace constrain
