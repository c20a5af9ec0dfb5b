"""Requests with ten sets of tools in every mode, at temperature 1: each call is valid, and the mode is kept.

All 200 requests at full length (``CONSTRAIN_LONG``); ``PYTHONPATH=. python -m tests.generation.test_tool_requests``
prints what came of them.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import lark
import pytest

import constrain
from constrain.chat.prompt.messages import check_messages
from tests.support import LONG

if TYPE_CHECKING:
    from collections.abc import Iterator

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

SETS = tomllib.loads((Path(__file__).parents[1] / "data" / "tool_sets.toml").read_text(encoding="utf-8"))["set"]
MODES = ("auto", "required", "none", "named", "list", "allowed", "one")
REQUESTS = 20
"""For each set."""

MAX_TOKENS = 100 if LONG else 60


@dataclass(frozen=True)
class Asked:
    """A request: ``tools`` in OpenAI's shape, by name; ``allowed``: those that may be called."""

    mode: str
    question: str
    tools: dict[str, dict[str, Any]]
    allowed: tuple[str, ...]
    seed: int

    def options(self) -> dict[str, Any]:
        choice: Any = {
            "auto": "auto",
            "required": "required",
            "none": "none",
            "named": self.allowed[0],
            "list": list(self.allowed),
            "allowed": {"type": "allowed_tools", "mode": "auto", "tools": [{"name": name} for name in self.allowed]},
            "one": "required",
        }[self.mode]
        return {
            "tools": list(self.tools.values()),
            "tool_choice": choice,
            "parallel_tool_calls": self.mode != "one",
            "seed": self.seed,
            "temperature": 1,
            "max_tokens": MAX_TOKENS,
        }


def requests(index: int) -> list[Asked]:
    """The requests with one set."""
    described = SETS[index]
    tools = {each["name"]: declared(each) for each in described["tool"]}
    names, asked = list(tools), []
    for number in range(REQUESTS):
        mode = MODES[(REQUESTS * index + number) % len(MODES)]
        turn = number % len(names)
        allowed = {"named": (names[turn],), "list": tuple(names[turn:]), "allowed": tuple(names[: turn + 1])}
        question = described["questions"][number % len(described["questions"])]
        asked.append(Asked(mode, question, tools, allowed.get(mode, tuple(names)), number))
    return asked


def declared(described: dict[str, Any]) -> dict[str, Any]:
    if "parameters" not in described:
        return described
    return {**described, "parameters": json.loads(described["parameters"])}


def assert_valid(call: Any, document: dict[str, Any]) -> None:
    """By validators that are not ours."""
    assert call.id
    if document["type"] == "function":
        schema = document.get("parameters", {"type": "object", "maxProperties": 0})
        validator = jsonschema.Draft202012Validator
        value = json.loads(call.text)
        validator(schema, format_checker=validator.FORMAT_CHECKER).validate(value)
        assert call.arguments == value
    elif document.get("format", {}).get("syntax") == "lark":
        lark.Lark(document["format"]["definition"]).parse(call.text)
    elif document.get("format", {}).get("syntax") == "regex":
        assert re.fullmatch(document["format"]["definition"], call.text)
    else:
        call.text.encode()


def check(asked: Asked, completion: constrain.Completion) -> None:
    reply = completion.value
    assert isinstance(reply, constrain.Reply)
    for call in reply:
        assert call.name in asked.allowed
        assert_valid(call, asked.tools[call.name])
    assert len({call.id for call in reply}) == len(reply)
    assert completion.usage.completion_tokens <= MAX_TOKENS
    if asked.mode == "none":
        assert not reply.calls
    if asked.mode in ("required", "named", "list", "one"):
        assert reply.calls
        assert reply.content is None
    if asked.mode in ("named", "one"):
        assert len(reply) == 1
    if not reply.calls:
        assert reply.content == completion.text
    message = reply.message()
    results = [{"role": "tool", "tool_call_id": call.id, "content": "x"} for call in reply]
    assert check_messages([message, *results])[0].content == completion.text


def answered(model: constrain.Model, index: int, count: int) -> Iterator[tuple[Asked, constrain.Completion]]:
    """The first requests with a set, and what came of them.

    Where the model may choose, it has called two tools before and may go on with that.
    """
    asked = requests(index)[:count]
    before: list[dict[str, Any]] = [{"role": "user", "content": asked[0].question}]
    for name in list(asked[0].tools)[:2]:
        options = {**asked[0].options(), "tool_choice": name, "temperature": 0}
        reply = constrain.generate(model, before, **options)
        before += [reply.message(), {"role": "tool", "tool_call_id": reply[0].id, "content": "Done."}]
    for one in asked:
        chooses = one.mode in ("auto", "allowed")
        yield one, constrain.complete(model, before if chooses else one.question, **one.options())


@pytest.mark.slow
@pytest.mark.parametrize("index", range(len(SETS)) if LONG else [0, 5], ids=lambda index: SETS[index]["name"])
def test_calls_are_valid_and_modes_are_kept(model: constrain.Model, index: int) -> None:
    for asked, completion in answered(model, index, REQUESTS if LONG else 5):
        check(asked, completion)


def main() -> None:
    """Prints what came of all requests."""
    used = constrain.Model(n_ctx=1024, n_threads=1)
    counts: Counter[str] = Counter()
    for index in range(len(SETS)):
        for asked, completion in answered(used, index, REQUESTS):
            check(asked, completion)
            counts[f"{asked.mode}: requests"] += 1
            counts[f"{asked.mode}: with calls"] += bool(completion.value.calls)
            counts[f"{asked.mode}: calls"] += len(completion.value)
            counts[f"finished by {completion.finish_reason}"] += 1
            print(SETS[index]["name"], asked.mode, completion.usage, repr(completion.value)[:150], flush=True)
    print(json.dumps(counts, indent=1))


if __name__ == "__main__":
    main()
