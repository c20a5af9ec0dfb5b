"""Answers of engines in which a bug is planted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import constrain
from constrain.engine import constraint as engine
from tests.support.matching import allowed_tokens

END, ONE, TWO = 256, 257, 258
VOCABULARY = constrain.Vocabulary.from_tokens(
    [bytes([byte]) for byte in range(256)] + [b""] * 3, eos=[END], special={ONE: "<|one|>", TWO: "<|two|>"}, encode=list
)


def decode(constraint: constrain.Constraint, tokens: Sequence[int], max_tokens: int | None = None) -> None:
    """Decodes as a loop does for a model that wants these tokens: each must be in the mask, and the end must be."""
    matcher = constraint.matcher(max_tokens)
    for token in tokens:
        assert token in allowed_tokens(matcher)
        assert matcher.accept(token)
    assert matcher.is_accepting


def compile_one(source: Any, policies: Sequence[tuple[str, str]] = ()) -> constrain.Constraint:
    """A constraint of its own: that of ``compile`` is remembered, and other tests would meet the bug."""
    made = constrain.compile(source, VOCABULARY, cache=False, **dict(policies))
    return engine.Constraint(made.grammar, VOCABULARY, made.policies, made.warnings)


def refuses(constraint: constrain.Constraint, tokens: Sequence[int]) -> bool:
    """Whether the correct engine refuses an answer."""
    matcher = constraint.matcher()
    return not all(token in allowed_tokens(matcher) and matcher.accept(token) for token in tokens) or not (
        matcher.is_accepting
    )
