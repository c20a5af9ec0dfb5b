"""The scheduler keeps and restores evaluated prompts, on a scripted model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from constrain.llama.scheduling.scheduler import Scheduler
from tests.support.llama.kept import prompts_in
from tests.support.llama.scripted import Scripted, expected, request, run

SHARED = [(7 * place * place + place) % 29 for place in range(300)]


def ask(directory: Path, *prompts: list[int], model: Scripted | None = None, **options: Any) -> list[Any]:
    """Answers of a new process; requests with the tokens that each had in its slot."""
    model = model or Scripted()
    cache, kept = prompts_in(directory, one_state=model.one_state)
    scheduler = Scheduler(model, prompts=kept)
    requests = [request(prompt, **{"shared": lambda: len(SHARED), **options}) for prompt in prompts]
    run(scheduler, *requests)
    assert [each.answer.tokens for each in requests] == list(map(expected, prompts))
    scheduler.close()
    cache.close()
    return requests


@pytest.mark.parametrize("one_state", [False, True])
def test_a_later_process_begins_where_an_earlier_one_was(one_state: bool, tmp_path: Path) -> None:
    (first,) = ask(tmp_path, [*SHARED, 1, 2, 3], model=Scripted(one_state=one_state))
    assert first.cached_tokens == 0
    (second,) = ask(tmp_path, [*SHARED, 4, 5, 6, 7], model=(model := Scripted(one_state=one_state)))
    assert second.cached_tokens == 300
    assert model.evaluated < 30


def test_the_evaluation_stops_where_the_state_is_kept(tmp_path: Path) -> None:
    ask(tmp_path, [*SHARED, 1, 2, 3], model=(model := Scripted()))
    assert (0, 300, 3) in [piece for batch in model.batches for piece in batch]
    assert model.evaluated == 303 + 19


def test_requests_at_once_restore_once_and_keep_once(tmp_path: Path) -> None:
    prompts = [[*SHARED, number, 2, 3] for number in range(4)]
    ask(tmp_path, *prompts)
    assert len([path for path in tmp_path.rglob("*-*-*") if path.is_file()]) == 1
    requests = ask(tmp_path, *prompts, model=(model := Scripted()))
    assert [each.cached_tokens for each in requests] == [300] * 4
    assert model.evaluated < 4 * 25


def test_a_state_that_the_model_does_not_take_is_evaluated_again(tmp_path: Path) -> None:
    ask(tmp_path, [*SHARED, 1, 2, 3])
    model = Scripted()
    model.forgets = True
    with pytest.warns(RuntimeWarning, match="does not fit"):
        (again,) = ask(tmp_path, [*SHARED, 1, 2, 3], model=model)
    assert again.cached_tokens == 0


def test_no_token_is_evaluated_alone_within_a_prompt(tmp_path: Path) -> None:
    for length in range(254, 262):
        model = Scripted(n_batch=128)
        ask(tmp_path / str(length), SHARED[:length], model=model, shared=lambda: 0)
        pieces = [piece for batch in model.batches for piece in batch if piece[1] < length]
        assert min(count for _, _, count in pieces) > 1


def test_memory_comes_before_the_disk(tmp_path: Path) -> None:
    model = Scripted()
    cache, kept = prompts_in(tmp_path)
    scheduler = Scheduler(model, prompts=kept)
    restored: list[int] = []
    take = model.restore

    def restore(sequence: int, state: np.ndarray[Any, np.dtype[np.uint8]]) -> bool:
        restored.append(len(state))
        return take(sequence, state)

    model.restore = restore  # type: ignore[method-assign]
    for number in range(3):
        run(scheduler, request([*SHARED, number, 2, 3], shared=lambda: 300))
    scheduler.close()
    cache.close()
    assert restored == []
