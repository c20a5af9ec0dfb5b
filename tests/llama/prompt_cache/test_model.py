"""Evaluated prompts of a model: later processes profit, and answers stay the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import constrain

SYSTEM = {"role": "system", "content": "You know all the books of the world, and what they say. " * 8}
LONG = "The keeper of the lighthouse wrote every evening into a thick book. " * 8
HELLO = [SYSTEM, {"role": "user", "content": "Hello."}]
PROGRAM = """
import json, sys
import constrain
with constrain.Model(sys.argv[1], n_ctx=1024, n_threads=1) as model:
    answer = constrain.complete(model, json.loads(sys.argv[2]), max_tokens=8, temperature=0)
print(json.dumps([answer.usage.cached_tokens, answer.tokens]))
"""


@pytest.fixture
def ask(tiny: Path) -> Callable[..., constrain.Completion]:
    """Asks a model that was just loaded."""

    def asked(prompt: Any, *, together: bool = False, model: dict[str, Any] | None = None, **options: Any) -> Any:
        options = {"max_tokens": 8, "temperature": 0, "logprobs": True, **options}
        with constrain.Model(tiny, **{"n_ctx": 1024, "n_threads": 1, "parallel": 2, **(model or {})}) as loaded:
            if together:
                return constrain.complete_batch(loaded, [prompt], **options)[0]
            return constrain.complete(loaded, prompt, **options)

    return asked


def cached(completion: constrain.Completion) -> int:
    return completion.usage.cached_tokens


@pytest.mark.slow
def test_a_second_process_reads_only_the_question(ask: Any, tiny: Path) -> None:
    first = ask(HELLO)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parents[3])])}
    command = [sys.executable, "-c", PROGRAM, str(tiny), json.dumps(HELLO)]
    n_cached, tokens = json.loads(subprocess.check_output(command, env=environment, text=True))
    assert (cached(first), n_cached > 300, tokens) == (0, True, list(first.tokens))
    assert cached(ask([SYSTEM, {"role": "user", "content": "What is a novel?"}])) > 300


@pytest.mark.slow
@pytest.mark.parametrize("together", [False, True])
def test_answers_are_equal_to_the_last_bit(ask: Any, together: bool) -> None:
    alone = ask(HELLO, together=together, model={"prompt_cache": False})
    first, second = (ask(HELLO, together=together) for _ in range(2))
    assert (cached(alone), cached(first)) == (0, 0)
    assert cached(second) > 300
    assert alone.tokens == first.tokens == second.tokens
    assert alone.logprobs == first.logprobs == second.logprobs


@pytest.mark.slow
def test_a_context_of_another_size_uses_the_state(ask: Any) -> None:
    ask(HELLO)
    other = ask(HELLO, model={"n_ctx": 700})
    assert cached(other) > 300
    assert other.logprobs == ask(HELLO, model={"n_ctx": 700, "prompt_cache": False}).logprobs


@pytest.mark.slow
def test_what_the_single_context_keeps_is_not_taken_for_several_sequences(ask: Any) -> None:
    ask(HELLO)
    assert cached(ask(HELLO, together=True)) == 0
    assert cached(ask(HELLO, together=True)) > 300
    assert cached(ask(HELLO, together=True, model={"parallel": 3})) == 0


def test_a_schema_is_shared(ask: Any) -> None:
    numbers = {f"number_{index}": {"type": "integer", "description": "a number " * 3} for index in range(8)}
    options = {"schema": {"type": "object", "properties": numbers}, "max_tokens": 40}
    ask("Hello.", **options)
    assert cached(ask("Good morning.", **options)) > 256


@pytest.mark.slow
def test_a_long_text_is_kept_only_if_asked(ask: Any) -> None:
    ask(LONG + "One?")
    assert cached(ask(LONG + "One?")) == 0
    assert cached(ask(LONG + "One?", cache_prompt="whole")) == 0
    assert cached(ask(LONG + "Another end?")) > 300


@pytest.mark.slow
def test_private_requests_leave_and_read_nothing(ask: Any, tmp_path: Path) -> None:
    ask(HELLO, cache_prompt=False)
    assert not (tmp_path / "cache" / "prompts-v1").exists()
    ask(HELLO)
    assert cached(ask(HELLO, cache_prompt=False)) == 0


@pytest.mark.parametrize(
    "off", [{"prompt_cache": False}, {"keep_prompts": False}, {"prompt_cache_bytes": 0}, {"prompt_cache_bytes": 1000}]
)
def test_it_can_be_turned_off(ask: Any, off: dict[str, Any], tmp_path: Path) -> None:
    ask(HELLO, model=off)
    assert not (tmp_path / "cache" / "prompts-v1").exists()


def test_the_environment_turns_it_off_and_an_argument_names_the_directory(
    ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONSTRAIN_CACHE", "")
    ask(HELLO)
    assert not list(tmp_path.iterdir())
    ask(HELLO, model={"prompt_cache": tmp_path / "own"})
    assert (tmp_path / "own" / "prompts-v1").is_dir()


def test_a_damaged_file_costs_only_the_evaluation(ask: Any, tmp_path: Path) -> None:
    first = ask(HELLO)
    (path,) = (path for path in (tmp_path / "cache" / "prompts-v1").rglob("*-*-*") if path.is_file())
    content = bytearray(path.read_bytes())
    content[-1000] ^= 255
    path.write_bytes(content)
    with pytest.warns(RuntimeWarning, match="is damaged"):
        again = ask(HELLO)
    assert cached(again) == 0
    assert again.logprobs == first.logprobs


def test_a_given_llama_keeps_its_prompts(model: constrain.Model, tmp_path: Path) -> None:
    with constrain.Model(model.llama) as other:
        constrain.complete(other, HELLO, max_tokens=2)
    assert (tmp_path / "cache" / "prompts-v1").is_dir()
