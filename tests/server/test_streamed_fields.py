"""Streams of the endpoint, read by the ``openai`` package and by ``FieldReader``: values while they are written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

import pytest
from pydantic import BaseModel, Field

from constrain import FieldReader
from tests.support.guide import DOCS, SERVER

if TYPE_CHECKING:
    from collections.abc import Iterable

    import openai


class Address(BaseModel):
    street: str = Field(max_length=12)
    number: int | None


class Person(BaseModel):
    name: str = Field(max_length=20)
    mood: Literal["good", "bad"]
    homes: list[Address] = Field(min_length=1, max_length=2)


MESSAGES: Any = [{"role": "user", "content": "Tell me of Emma."}]
SCHEMA = Person.model_json_schema()


def part(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        value = value[step] if isinstance(step, int) else getattr(value, step)
    return value


def is_shown(path: tuple[str | int, ...], complete: dict[tuple[str | int, ...], Any]) -> bool:
    """Whether a complete part can be seen: items of arrays appear when they are complete."""
    first = next((number for number, step in enumerate(path) if isinstance(step, int)), None)
    return first is None or path[: first + 1] in complete


def require_final(pieces: Iterable[str]) -> str:
    """Reads a text; what is complete stays as it is, strings only grow, and the last value is the whole one."""
    reader, text = FieldReader(Person), ""
    complete: dict[tuple[str | int, ...], Any] = {}
    name = ""
    for piece in pieces:
        text += piece
        for event in reader.feed(piece):
            if event.kind == "complete":
                assert event.path not in complete
                complete[event.path] = event.value
            for path, value in complete.items():
                if is_shown(path, complete):
                    assert part(event.partial, path) == value
            shown = event.partial.name or ""
            assert shown.startswith(name)
            name = shown
    reader.finish()
    assert reader.value == complete[()] == Person.model_validate_json(text)
    assert {("name",), ("mood",), ("homes",), ("homes", 0), ("homes", 0, "street")} <= complete.keys()
    return text


@pytest.mark.slow
def test_the_example_of_the_guide_runs(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    page = (DOCS / "guides" / "streaming.md").read_text(encoding="utf-8")
    (code,) = (each for each in re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE) if SERVER in each)
    exec(compile(code.replace(SERVER, f"{url}/v1"), "guide", "exec"), {"__name__": "guide"})
    assert "complete () name=" in capsys.readouterr().out


@pytest.mark.slow
def test_content_of_a_chat_completion(client: openai.OpenAI) -> None:
    wanted: Any = {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA}}
    chunks = client.chat.completions.create(
        model="small", messages=MESSAGES, response_format=wanted, seed=1, max_tokens=150, stream=True
    )
    pieces = [choice.delta.content or "" for chunk in chunks for choice in chunk.choices]
    assert len(pieces) > 10
    require_final(pieces)


@pytest.mark.slow
def test_arguments_of_a_call_in_a_response(client: openai.OpenAI) -> None:
    tool: Any = {"type": "function", "name": "save", "parameters": SCHEMA, "strict": False}
    events: Any = client.responses.create(
        model="small",
        input=MESSAGES,
        tools=[tool],
        tool_choice="required",
        parallel_tool_calls=False,
        max_output_tokens=200,
        stream=True,
        extra_body={"seed": 1},
    )
    pieces, done = [], ""
    for event in events:
        if event.type == "response.function_call_arguments.delta":
            pieces.append(event.delta)
        elif event.type == "response.function_call_arguments.done":
            done = event.arguments
    assert require_final(pieces) == done
