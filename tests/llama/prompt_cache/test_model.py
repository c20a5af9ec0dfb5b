"""Evaluated prompts of the real model: later processes profit, and answers stay the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import constrain

if TYPE_CHECKING:
    from numpy.typing import NDArray

SYSTEM = {"role": "system", "content": "You know all the books of the world, and what they say. " * 30}
LONG = "The keeper of the lighthouse wrote every evening into a thick book. " * 30

pytestmark = pytest.mark.slow


def talk(text: str) -> list[dict[str, str]]:
    return [SYSTEM, {"role": "user", "content": text}]


def ask(prompt: Any, *, together: bool = False, model: dict[str, Any] | None = None, **options: Any) -> Any:
    """The answer of a model that was just loaded."""
    options = {"max_tokens": 8, "temperature": 0, "logprobs": True, **options}
    with constrain.Model(**{"n_ctx": 1024, "n_threads": 1, "parallel": 2, **(model or {})}) as loaded:
        if together:
            return constrain.complete_batch(loaded, [prompt], **options)[0]
        return constrain.complete(loaded, prompt, **options)


def cached(completion: constrain.Completion) -> int:
    return completion.usage.cached_tokens


PROGRAM = """
import json, sys
import constrain
answer = constrain.complete(None, json.loads(sys.argv[1]), max_tokens=8, temperature=0)
print(json.dumps([answer.usage.cached_tokens, answer.text]))
"""


def test_a_second_process_reads_only_the_question() -> None:
    root = str(Path(__file__).parents[3])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, root])}
    answers = []
    for text in ("Hello.", "Hello.", "What is a novel?"):
        command = [sys.executable, "-c", PROGRAM, json.dumps(talk(text))]
        answers.append(json.loads(subprocess.check_output(command, env=environment, text=True)))
    assert answers[0][0] == 0
    assert min(answers[1][0], answers[2][0]) > 300
    assert answers[0][1] == answers[1][1]


@pytest.mark.parametrize("together", [False, True])
def test_answers_are_equal_to_the_last_bit(together: bool) -> None:
    alone = ask(talk("Hello."), together=together, model={"prompt_cache": False})
    first = ask(talk("Hello."), together=together)
    second = ask(talk("Hello."), together=together)
    assert (cached(alone), cached(first)) == (0, 0)
    assert cached(second) > 300
    assert alone.tokens == first.tokens == second.tokens
    assert alone.logprobs == first.logprobs == second.logprobs


def test_a_context_of_another_size_uses_the_state() -> None:
    ask(talk("Hello."))
    other = ask(talk("Hello."), model={"n_ctx": 700})
    assert cached(other) > 300
    assert other.logprobs == ask(talk("Hello."), model={"n_ctx": 700, "prompt_cache": False}).logprobs


@pytest.mark.long
def test_what_the_single_context_keeps_is_not_taken_for_several_sequences() -> None:
    ask(talk("Hello."))
    assert cached(ask(talk("Hello."), together=True)) == 0
    assert cached(ask(talk("Hello."), together=True)) > 300
    assert cached(ask(talk("Hello."), together=True, model={"parallel": 3})) == 0


def test_a_schema_and_tools_are_shared() -> None:
    schema = {
        "type": "object",
        "properties": {f"number_{index}": {"type": "integer", "description": "a number " * 5} for index in range(20)},
    }
    ask("Hello.", schema=schema, max_tokens=40)
    assert cached(ask("Good morning.", schema=schema, max_tokens=40)) > 300


@pytest.mark.long
def test_a_long_text_is_kept_only_if_asked() -> None:
    ask(LONG + "One?")
    assert cached(ask(LONG + "One?")) == 0
    assert cached(ask(LONG + "One?", cache_prompt="whole")) == 0
    assert cached(ask(LONG + "Another end?")) > 300


def test_private_requests_leave_and_read_nothing(tmp_path: Path) -> None:
    ask(talk("Hello."), cache_prompt=False)
    assert not (tmp_path / "cache" / "prompts-v1").exists()
    ask(talk("Hello."))
    assert cached(ask(talk("Hello."), cache_prompt=False)) == 0


@pytest.mark.long
@pytest.mark.parametrize(
    "off", [{"prompt_cache": False}, {"keep_prompts": False}, {"prompt_cache_bytes": 0}, {"prompt_cache_bytes": 1000}]
)
def test_it_can_be_turned_off(off: dict[str, Any], tmp_path: Path) -> None:
    ask(talk("Hello."), model=off)
    assert not (tmp_path / "cache" / "prompts-v1").exists()


@pytest.mark.long
def test_the_environment_turns_it_off_and_an_argument_names_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONSTRAIN_CACHE", "")
    ask(talk("Hello."))
    assert not list(tmp_path.iterdir())
    ask(talk("Hello."), model={"prompt_cache": tmp_path / "own"})
    assert (tmp_path / "own" / "prompts-v1").is_dir()


def test_a_damaged_file_costs_only_the_evaluation(tmp_path: Path) -> None:
    first = ask(talk("Hello."))
    (path,) = (path for path in (tmp_path / "cache" / "prompts-v1").rglob("*-*-*") if path.is_file())
    content = bytearray(path.read_bytes())
    content[-1000] ^= 255
    path.write_bytes(content)
    with pytest.warns(RuntimeWarning, match="is damaged"):
        again = ask(talk("Hello."))
    assert cached(again) == 0
    assert again.logprobs == first.logprobs


def test_a_given_llama_and_a_closed_model_work(tmp_path: Path) -> None:
    model = constrain.Model(n_ctx=1024, n_threads=1)
    with constrain.Model(model.llama) as other:
        constrain.complete(other, talk("Hello."), max_tokens=2)
    assert (tmp_path / "cache" / "prompts-v1").is_dir()
    model.close()


@pytest.mark.long
def test_splitting_an_evaluation_does_not_change_the_logits() -> None:
    with constrain.Model(n_ctx=1024, n_threads=1, keep_prompts=False) as model:
        tokens = model.text_tokens(LONG * 3)
        for count, ends in ((513, (256, 511)), (600, (512, 597))):
            logits = [_logits(model, tokens[:count], end) for end in (0, *ends)]
            assert all(np.array_equal(logits[0], other) for other in logits[1:])


def _logits(model: constrain.Model, tokens: list[int], end: int) -> NDArray[np.float32]:
    context = model.context
    context.prefill(tokens[:end] if end else tokens)
    if end:
        context._evaluate(np.asarray(tokens[end:], np.intc), len(tokens) - 1 - end)
    return context.logits().copy()
