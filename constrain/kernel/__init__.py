"""The native kernel: regular expressions, lexing, parsing and token masks, below all other packages.

Front ends ask it about expressions and about lexing, ``vocabulary`` and ``engine`` hold its tables, ``llama`` and
``server`` its seed and its stop time. Of the package it needs only ``constrain.errors``, and by name the classes of
``constrain.language.tree`` and, for JSON Schemas, what ``binding/emission.cpp`` lists. README.md explains it. Its
folders, from the ground up: base, vocabulary, expressions, values, grammar, lexing, parsing, completions, masks,
budget, matching, binding; each includes only those before it.
"""

from __future__ import annotations

from constrain.kernel._kernel import (
    Allowance,
    CompiledGrammar,
    Draft,
    Emission,
    Matcher,
    RuleAutomaton,
    StopTime,
    StorageError,
    Texts,
    Vocabulary,
    automaton,
    checksum,
    conflicting_terminals,
    goals_with_alternatives,
    has_endless_matches,
    is_empty,
    lexing_claims,
    lexing_conflict,
    list_matches,
    longest_length,
    mask_logits,
    matches,
    offer_seed,
    seed,
    steps_taken,
    unproductive_item,
    unproductive_member,
)

__all__ = [
    "Allowance",
    "CompiledGrammar",
    "Draft",
    "Emission",
    "Matcher",
    "RuleAutomaton",
    "StopTime",
    "StorageError",
    "Texts",
    "Vocabulary",
    "automaton",
    "checksum",
    "conflicting_terminals",
    "goals_with_alternatives",
    "has_endless_matches",
    "is_empty",
    "lexing_claims",
    "lexing_conflict",
    "list_matches",
    "longest_length",
    "mask_logits",
    "matches",
    "offer_seed",
    "seed",
    "steps_taken",
    "unproductive_item",
    "unproductive_member",
]
