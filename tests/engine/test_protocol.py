"""Matchers of every kind of language, with and without a budget, keep the protocol that ``support.matching`` has."""

from __future__ import annotations

from random import Random
from typing import Any

import constrain
from tests.support import for_each, small_vocabulary
from tests.support.matching import accepted_by_forks, require_protocol

VOCABULARY = small_vocabulary(3, more=120)

LANGUAGES: dict[str, Any] = {
    "an object": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "yes"]}}},
    "unique items": {"type": "array", "items": {"type": "string", "maxLength": 4}, "uniqueItems": True},
    "a number": {"type": "number", "minimum": -2, "multipleOf": 0.5},
    "a pattern": constrain.Regex("(ab|[0-9]{2,4})+!?"),
    "a Lark grammar": constrain.Lark('start: "a" NAME ("," NAME)* ";"?\nNAME: /[b-e]+/\n%ignore " "'),
    "a composition": constrain.parts.sequence(
        "so: ", constrain.parts.choice({"type": "boolean"}, constrain.Regex("[ab]+"))
    ),
}


@for_each("more", [None, 0, 4])
@for_each("name", LANGUAGES)
def test_matchers_of_every_language_keep_the_protocol(name: str, more: int | None) -> None:
    constraint, rng = constrain.compile(LANGUAGES[name], VOCABULARY, cache=False), Random(f"{name} {more}")
    matcher = constraint.matcher(None if more is None else constraint.matcher().min_tokens_left + more)
    for _ in range(6):
        require_protocol(matcher, rng)
        going_on = [token for token, fits in enumerate(accepted_by_forks(matcher)) if fits]
        going_on = [token for token in going_on if token not in VOCABULARY.eos]
        if not going_on:
            break
        assert matcher.accept(rng.choice(going_on))
