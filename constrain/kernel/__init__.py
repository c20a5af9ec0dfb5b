"""The native kernel: regular expressions, lexing, parsing and token masks, below all other packages.

Front ends ask it about expressions and about lexing, ``vocabulary`` and ``engine`` hold its tables, ``llama`` and
``server`` its seed and its stop time. Of the package it needs only ``constrain.errors``, and the classes of
``constrain.language.tree``, which it reads by name. README.md explains it. Its folders, from the ground up: base,
vocabulary, expressions, values, grammar, lexing, parsing, completions, masks, budget, matching, binding; each includes
only those before it.
"""

from __future__ import annotations

from constrain.kernel._kernel import (
    Allowance,
    CompiledGrammar,
    Matcher,
    StopTime,
    StorageError,
    Vocabulary,
    automaton,
    checksum,
    conflicting_terminals,
    has_endless_matches,
    is_empty,
    lexing_claims,
    lexing_conflict,
    list_matches,
    mask_logits,
    matches,
    offer_seed,
    seed,
    steps_taken,
)

__all__ = [
    "Allowance",
    "CompiledGrammar",
    "Matcher",
    "StopTime",
    "StorageError",
    "Vocabulary",
    "automaton",
    "checksum",
    "conflicting_terminals",
    "has_endless_matches",
    "is_empty",
    "lexing_claims",
    "lexing_conflict",
    "list_matches",
    "mask_logits",
    "matches",
    "offer_seed",
    "seed",
    "steps_taken",
]
