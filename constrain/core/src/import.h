// From Python's data (constrain/grammar.py, constrain/regex/tree.py) to the kernel's own.
#pragma once

#include <nanobind/nanobind.h>

#include "grammar.h"

namespace constrain {

// Throws GrammarError or LimitError; checks what the Python types do not.
Grammar import_grammar(nanobind::handle grammar);

// Work on the store is limited to MAX_COMPILE_WORK, and to `allowance` derivatives.
ExprId import_expression(ExpressionStore& store, nanobind::handle expression, size_t allowance);

}  // namespace constrain
