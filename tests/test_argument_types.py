"""Arguments of the wrong type: each public method says which argument is wrong, and what it must be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import constrain
from tests.support import byte_vocabulary, for_each

VOCABULARY = byte_vocabulary()
CONSTRAINT = constrain.compile({"type": "boolean"}, VOCABULARY, cache=False)
LOGITS = np.zeros(VOCABULARY.n_vocab, np.float32)
CANDIDATES = np.zeros(VOCABULARY.n_vocab, [("id", np.int32), ("logit", np.float32), ("p", np.float32)])

OBJECTS: dict[str, Any] = {
    "Constraint": CONSTRAINT,
    "Matcher": CONSTRAINT.matcher(),
    "Vocabulary": VOCABULARY,
    "LogitsProcessor": CONSTRAINT.logits_processor(),
}

NOT_INTEGERS: list[Any] = [None, "1", 1.0, [1], b"1", object()]
LIMITS: list[Any] = NOT_INTEGERS[1:]  # None is no limit

CASES: dict[tuple[str, str], list[tuple[dict[str, list[Any]], str]]] = {
    ("Constraint", "accepts"): [({"text": [None, 1, bytearray(b"true"), ["true"]]}, "text must be bytes or str")],
    ("Constraint", "captures"): [({"text": [None, 1, bytearray(b"true"), ["true"]]}, "text must be bytes or str")],
    ("Constraint", "allocate_bitmask"): [({"batch_size": [*NOT_INTEGERS, (1, 2)]}, "batch_size must be an integer")],
    ("Constraint", "export"): [({"to": [None, 1, b"gbnf", ["gbnf"]]}, "to must be a str")],
    ("Constraint", "matcher"): [
        ({name: LIMITS}, f"{name} must be an integer")
        for name in ("max_tokens", "max_string_tokens", "max_number_tokens", "max_reasoning_tokens")
    ],
    ("Constraint", "precompute"): [
        ({name: NOT_INTEGERS}, f"{name} must be an integer") for name in ("max_masks", "max_bytes")
    ],
    ("Matcher", "accept"): [({"token_id": NOT_INTEGERS}, "a token id must be an integer")],
    ("Matcher", "accept_many"): [
        ({"token_ids": [None, 1, 1.0, object()]}, "token_ids must be a list of token ids"),
        ({"token_ids": [[each] for each in NOT_INTEGERS]}, "a token id must be an integer"),
        ({"token_ids": ["true"]}, "a token id must be an integer"),
    ],
    ("Matcher", "diagnose"): [({"token_id": NOT_INTEGERS}, "a token id must be an integer")],
    ("Matcher", "explain"): [({"token_id": NOT_INTEGERS}, "a token id must be an integer")],
    ("Matcher", "fill_bitmask"): [
        ({"bitmask": [None, 1, "1", [0] * 9, object()]}, "bitmask must be a contiguous, writable array")
    ],
    ("Matcher", "fill_candidates"): [
        ({"logits": [None, 1, [0.0]], "candidates": [CANDIDATES]}, "logits must be a contiguous array"),
        ({"logits": [LOGITS], "candidates": [None, 1, [], b""]}, "candidates must be a contiguous, writable array"),
    ],
    ("Matcher", "forced_after"): [({"before": [None, 1, "true", ["a"]]}, "before must be bytes")],
    ("Matcher", "rollback"): [({"count": NOT_INTEGERS}, "count must be an integer")],
    ("Vocabulary", "marked_bytes"): [({"token_id": NOT_INTEGERS}, "token_id must be an integer")],
    ("Vocabulary", "token_bytes"): [({"token_id": NOT_INTEGERS}, "token_id must be an integer")],
    ("LogitsProcessor", "__call__"): [
        ({"input_ids": [[1]], "scores": [[1] * 300, [True] * 300]}, "scores are [a-z0-9]+; they must be floats")
    ],
}

WITHOUT_ARGUMENTS = {
    "Constraint": {"logits_processor"},
    "Matcher": {
        *("completion_tokens", "compute_mask", "forced_bytes", "forced_tokens", "expected", "expected_terminals"),
        *("fork", "reset", "shortest_completion"),
    },
    "LogitsProcessor": set(),
}


READINGS = constrain.compile(constrain.Lark("start: <[97]>"), VOCABULARY, cache=False).matcher()
"""A matcher for tokens by id."""


@for_each("place", CASES)
@for_each("matcher", [OBJECTS["Matcher"], READINGS])
def test_a_wrong_type_is_told_with_its_argument(place: tuple[str, str], matcher: constrain.Matcher) -> None:
    method = getattr({**OBJECTS, "Matcher": matcher}[place[0]], place[1])
    for arguments, says in CASES[place]:
        name, values = max(arguments.items(), key=lambda each: len(each[1]))
        for value in values:
            given = {**{other: others[0] for other, others in arguments.items()}, name: value}
            with pytest.raises(TypeError, match=says) as caught:
                method(**given)
            assert "incompatible" not in str(caught.value), value


@pytest.mark.parametrize("name", WITHOUT_ARGUMENTS)
def test_all_public_methods_are_in_the_table(name: str) -> None:
    kind = type(OBJECTS[name])
    methods = {each for each in dir(kind) if each[0] != "_" and callable(getattr(kind, each))}
    listed = {method for owner, method in CASES if owner == name and method[0] != "_"}
    assert methods == listed | WITHOUT_ARGUMENTS[name]


def test_numbers_of_any_size_and_of_numpy_are_integers() -> None:
    assert CONSTRAINT.matcher(2**70).min_tokens_left == CONSTRAINT.matcher(np.int64(9)).min_tokens_left
    assert CONSTRAINT.precompute(max_masks=2**70, max_bytes=2**70).masks > 0
    assert CONSTRAINT.allocate_bitmask(np.int64(2)).shape == (2, (VOCABULARY.n_vocab + 31) // 32)
    matcher = CONSTRAINT.matcher()
    assert matcher.accept_many(np.array(list(b"true"), np.int32)) == 4
    with pytest.raises(ValueError, match="cannot roll back"):
        matcher.rollback(2**70)
    matcher.rollback(np.int8(4))
    assert matcher.n_accepted == 0
    assert matcher.accept(np.uint8(ord("t")))


@pytest.mark.parametrize("tokens", [[1.5], ["a"], [None]])
def test_tokens_of_a_generation_are_integers(tokens: list[Any]) -> None:
    processor = CONSTRAINT.logits_processor()
    processor([1], LOGITS)
    with pytest.raises(TypeError, match="a token of input_ids must be an integer"):
        processor([1, *tokens], LOGITS)
