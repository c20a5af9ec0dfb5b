"""The native kernel: regular expressions, lexing, parsing and token masks (see README.md in this folder)."""

from __future__ import annotations

from constrain.engine.core._kernel import (
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
