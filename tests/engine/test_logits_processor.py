"""A logits processor masks what the decode loops of llama-cpp-python and transformers pass, or says what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import constrain
from tests.support import byte_vocabulary, for_each

PROMPT = [104, 105]
YES = list(b'"yes"')


@pytest.fixture(scope="module")
def constraint() -> constrain.Constraint:
    return constrain.compile({"const": "yes"}, byte_vocabulary(), cache=False)


def follow(constraint: constrain.Constraint, scores: Any, wrap: Any) -> list[int]:
    """The tokens of a greedy generation; ``wrap`` makes the loop's own kind of ``input_ids``."""
    processor, tokens, dtype, shape = constraint.logits_processor(), list(PROMPT), scores.dtype, tuple(scores.shape)
    while tokens[-1] != 256:
        masked = processor(wrap(tokens), scores)
        assert type(masked) is type(scores)
        assert (masked.dtype, tuple(masked.shape)) == (dtype, shape)
        tokens.append(int(masked.argmax()))
    return tokens[len(PROMPT) : -1]


@for_each("dtype", [np.float16, np.float32, np.float64])
@for_each("width", [257, 288, 300])
def test_numpy_arrays_of_one_sequence(constraint: constrain.Constraint, dtype: type, width: int) -> None:
    scores = np.arange(width).astype(dtype)  # what is most likely is never allowed
    before = scores.copy()
    assert follow(constraint, scores, lambda tokens: np.array(tokens, np.intc)) == YES
    assert follow(constraint, scores[None], lambda tokens: np.array([tokens])) == YES
    assert follow(constraint, scores, list) == YES
    assert follow(constraint, scores[None], lambda tokens: [tokens]) == YES
    assert np.array_equal(scores, before)


WRONG = {
    "a batch": (PROMPT, np.zeros((2, 257), np.float32), ValueError, r"shape \(2, 257\).* one sequence"),
    "no sequence": (PROMPT, np.zeros((0, 257), np.float32), ValueError, r"shape \(0, 257\)"),
    "all positions": (PROMPT, np.zeros((1, 2, 257), np.float32), ValueError, r"shape \(1, 2, 257\)"),
    "a number": (PROMPT, np.float32(0), ValueError, r"shape \(\)"),
    "too narrow": (PROMPT, np.zeros(256, np.float32), ValueError, r"256 logits.* 257 tokens"),
    "integers": (PROMPT, np.zeros(257, np.int64), TypeError, "int64; they must be floats"),
    "tokens of a batch": ([PROMPT, PROMPT], np.zeros(257, np.float32), ValueError, r"input_ids .*\(2, 2\)"),
}


@for_each("name", WRONG)
def test_other_shapes_and_types_are_named(constraint: constrain.Constraint, name: str) -> None:
    tokens, scores, error, message = WRONG[name]
    with pytest.raises(error, match=message):
        constraint.logits_processor()(tokens, scores)


SCORES = np.zeros(257, np.float32)


def test_a_processor_is_not_taken_for_a_second_generation(constraint: constrain.Constraint) -> None:
    processor = constraint.logits_processor()
    processor(PROMPT, SCORES)
    processor([*PROMPT, YES[0]], SCORES)
    with pytest.raises(constrain.ConstrainError, match="follows one generation"):
        processor(PROMPT, SCORES)


def test_a_token_that_was_not_allowed_is_named(constraint: constrain.Constraint) -> None:
    processor = constraint.logits_processor()
    processor(PROMPT, SCORES)
    with pytest.raises(constrain.ConstrainError, match="left the language"):
        processor([*PROMPT, 0], SCORES)


def test_a_loop_that_does_not_stop_is_told_where_to(constraint: constrain.Constraint) -> None:
    processor = constraint.logits_processor()
    processor(PROMPT, SCORES)
    with pytest.raises(constrain.ConstrainError, match=r"\[256\] ended the text.* must stop"):
        processor([*PROMPT, *YES, 256], SCORES)
