"""One context with several sequences: changing one of them leaves the others as they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import constrain
from constrain.llama.contexts.batch import Piece
from constrain.llama.contexts.sequences import Sequences


@pytest.fixture
def sequences(model: constrain.Model) -> Iterator[Sequences]:
    made = Sequences(model.llama, 3, 256)
    yield made
    made.close()


def evaluate(sequences: Sequences, sequence: int, tokens: np.ndarray) -> np.ndarray:
    [row] = sequences.evaluate([Piece(sequence, sequences.length(sequence), tokens, 1)])
    return sequences.logits(row).copy()


def test_a_copy_does_not_depend_on_what_becomes_of_its_source(model: constrain.Model, sequences: Sequences) -> None:
    assert model.vocabulary.encode is not None
    ada, tom = (
        np.asarray(model.vocabulary.encode(text), np.intc)
        for text in (b"Ada is 36 years old. Her name is", b"Tom is 23 years old. His name is")
    )
    evaluate(sequences, 0, tom)
    state = sequences.save(0)
    assert state is not None
    sequences.clear(0)
    expected = evaluate(sequences, 0, ada)
    assert sequences.copy(0, 1, len(ada) - 1)
    sequences.clear(0)
    assert sequences.restore(0, state)  # before anything is evaluated
    saved = sequences.save(1)
    assert evaluate(sequences, 1, ada[-1:]) == pytest.approx(expected, abs=0.5)
    assert saved is not None
    sequences.clear(2)
    assert sequences.restore(2, saved)
    assert evaluate(sequences, 2, ada[-1:]) == pytest.approx(expected, abs=0.5)
    assert np.abs(evaluate(sequences, 0, ada[-1:]) - expected).max() > 2


def test_a_copy_that_fails_leaves_nothing(
    model: constrain.Model, sequences: Sequences, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert model.vocabulary.encode is not None
    evaluate(sequences, 0, np.asarray(model.vocabulary.encode(b"Ada is 36 years old."), np.intc))
    restore = Sequences.restore
    monkeypatch.setattr(Sequences, "restore", lambda self, *given: restore(self, *given) and False)
    assert not sequences.copy(0, 1, 3)
    assert sequences.length(1) == 0


@pytest.mark.slow
def test_a_batch_is_answered_as_before_when_it_is_asked_again(tiny: Path) -> None:
    prompts = [f"{name} Lovelace, a happy mathematician from the north." for name in ("Ada", "Eve", "Ina", "Bob")]
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 30}, "age": {"type": "integer"}},
        "required": ["name", "age"],
    }
    with constrain.Model(tiny, n_ctx=512, n_threads=1, parallel=4) as model:
        first, *others = (
            [answer.text for answer in constrain.complete_batch(model, prompts, schema=schema, max_tokens=80)]
            for _ in range(3)
        )
    assert others == [first, first]
