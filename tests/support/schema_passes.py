"""How often the JSON Schemas of a request are written out as JSON text, and how often they are parsed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest

_numbers = count()

MARK = "counted_"
"""What the names of properties in counted schemas begin with."""


def new_schema() -> dict[str, Any]:
    """A strict schema that no cache knows."""
    name = f"{MARK}{next(_numbers)}"
    properties = {name: {"type": "string"}, "size": {"type": "number", "minimum": 0.1}}
    return {"type": "object", "properties": properties, "required": [name, "size"], "additionalProperties": False}


def new_tools(number: int, *, strict: bool) -> list[dict[str, Any]]:
    """Tools in the shape of chat completions, with schemas that no cache knows."""
    return [
        {"type": "function", "function": {"name": f"f_{index}", "parameters": new_schema(), "strict": strict}}
        for index in range(number)
    ]


class Passes:
    """The counts, and the texts that were counted.

    Only texts with marked schemas count. Prompts and keys of caches have other texts of a schema, made with options of
    ``json.dumps``; they do not count.
    """

    def __init__(self) -> None:
        self.written: list[str] = []
        self.parsed: list[str] = []

    @property
    def counts(self) -> tuple[int, int]:
        """How many schemas were written, and how many texts were parsed."""
        return len(self.written), len(self.parsed)


@contextmanager
def counted_passes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Passes]:
    """Counts within the block."""
    passes = Passes()
    dumps, loads = json.dumps, json.loads

    def counting_dumps(value: Any, **options: Any) -> str:
        text = dumps(value, **options)
        if MARK in text and not options:
            passes.written.append(text)
        return text

    def counting_loads(text: Any, **options: Any) -> Any:
        if MARK in str(text):
            passes.parsed.append(str(text))
        return loads(text, **options)

    with monkeypatch.context() as patched:
        patched.setattr(json, "dumps", counting_dumps)
        patched.setattr(json, "loads", counting_loads)
        yield passes
