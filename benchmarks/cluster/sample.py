"""Prompts and schema of a job: those of files, or notes about people that are made up here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

SCHEMA = {
    "type": "object",
    "properties": {
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "mood": {"enum": ["good", "bad", "neutral"]},
        "topic": {"enum": ["delivery", "invoice", "repair", "noise", "lost property", "other"]},
    },
    "required": ["age", "mood", "topic"],
    "additionalProperties": False,
}

_NAMES = ("Ada", "Bo", "Chiara", "Dmitri", "Elif", "Farah", "Goran", "Hana", "Ines", "Jonas", "Kofi", "Lena")
_CITIES = ("Rome", "Oslo", "Lagos", "Lima", "Osaka", "Riga", "Accra", "Bogotá", "Graz", "Hobart")
_JOBS = ("baker", "nurse", "pilot", "teacher", "welder", "judge", "gardener", "chemist")
_EVENTS = (
    "came to the office in the morning and asked for the forms of last year",
    "wrote that the parcel had not arrived, although it was sent three weeks ago",
    "called twice because the invoice named another address",
    "was pleased with the repair and wanted to thank the workshop",
    "complained about the noise of the lift during the night",
    "asked whether the course in spring still has a free place",
    "returned a pair of shoes that were too small and took another pair along",
    "forgot an umbrella and came back for it an hour later",
    "reported that the street lamp in front of the house is broken",
    "brought a cake for the whole department",
)


def make_prompts(count: int, path: str | None) -> list[Any]:
    """Returns so many prompts: of a file, which must have as many, or made up; the first ones are always the same.

    Raises ``ValueError`` if the file has fewer, and ``TypeError`` for a line that is neither a text nor an object with
    a prompt.
    """
    if path is None:
        rng = np.random.default_rng(0)
        return [_note(rng) for _ in range(count)]
    lines = [line for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]
    if len(lines) < count:
        raise ValueError(f"{path} has {len(lines)} prompts, and {count} are needed")
    return [_prompt_of(json.loads(line), f"{path}:{number}") for number, line in enumerate(lines[:count], 1)]


def read_schema(path: str | None) -> Any:
    """Returns the schema of a file, or that of the notes."""
    return SCHEMA if path is None else json.loads(Path(path).read_text(encoding="utf-8"))


def _prompt_of(line: Any, place: str) -> Any:
    found = line.get("prompt", line.get("messages")) if isinstance(line, dict) else line
    if not isinstance(found, str | list):
        raise TypeError(f"{place}: a prompt is a text, or an object with prompt or messages")
    return found


def _note(rng: np.random.Generator) -> str:
    name, city, job = (str(rng.choice(each)) for each in (_NAMES, _CITIES, _JOBS))
    # One event of several that are drawn: the notes stay those of benchmarks/results/cluster.json.
    event = rng.choice(_EVENTS, size=rng.integers(1, 6), replace=False)[0]
    return f"Note {rng.integers(1000, 9999)}: {name}, {rng.integers(18, 90)}, a {job} of {city}, {event}. Who?"
