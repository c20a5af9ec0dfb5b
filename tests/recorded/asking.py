"""How a row of the tables is asked, and how its answer is written.

A row is a call (``call``: a Python expression over ``NAMES``) or a request (``to``: method and path; ``body``: JSON, or
a text that is sent as it is; ``headers``; ``settings`` of the server) or a list of requests to one server (``asks``).
``got`` has the answer, without what differs from run to run: times are 0 or empty, ids are numbered, numbers with a
fraction have five digits.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import enum
import inspect
import json
import math
import re
import struct
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal

import httpx
from pydantic import BaseModel, Field, field_validator

import constrain
from constrain import Gbnf, Lark, Model, Quote, Regex, parts, prompts, tool, tools
from constrain.engine.report import Report
from constrain.generation.completion import Completion
from constrain.server.app import Application
from constrain.server.serving.models import Models, ModelSource
from constrain.server.settings import Settings
from tests.support.llama.babbler import babbler_file
from tests.support.server.asking import JSON, ask
from tests.support.server.ollama import ALWAYS_THINKING, THINKING

FOLDER = Path(__file__).parents[1] / "data" / "recorded"

Row = dict[str, Any]


def tables() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.jsonl"))


def rows(table: str) -> list[Row]:
    return [json.loads(line) for line in (FOLDER / f"{table}.jsonl").read_text("utf-8").splitlines()]


def write(table: str, found: list[Row]) -> None:
    text = "".join(compact(row) + "\n" for row in found)
    (FOLDER / f"{table}.jsonl").write_text(text, "utf-8")


def compact(value: object, *, ascii_only: bool = True) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=ascii_only)


# Models.


def load(name: str) -> Model:
    """A model whose answers depend on nothing but prompt, options and seed; ``keeper`` keeps prompts."""
    template = {"thinker": THINKING, "always": ALWAYS_THINKING}.get(name)
    options: Any = {"n_ctx": 1024, "n_threads": 1, "parallel": 1, "keep_prompts": name == "keeper"}
    return Model(babbler_file(), chat_template=template, **options)


model = cache(load)


BRIEF: dict[str, Any] = {"seed": 7, "max_tokens": 8}
"""Options of the model ``small`` for requests that leave them out."""


@cache
def application(settings: str) -> Application:
    """The application of settings, written as JSON."""
    options = json.loads(settings)
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
    return Application(
        Models([_source(name, alias) for name, alias in _SERVED.items()]),
        Settings(**{"compile_seconds": 60.0, **given}),
    )


_SERVED = {"small": "other-name", "plain": "gpt-*", "thinker": "thinks", "always": "reasons", "keeper": "keeps"}


def _source(name: str, alias: str) -> ModelSource:
    defaults: Any = {} if name == "plain" else BRIEF
    return ModelSource((name, alias), 1_700_000_000, 1, 1000, partial(load, name), defaults, babbler_file())


# What calls are about.


class Person(BaseModel):
    """A person."""

    name: str = Field(max_length=12)
    age: int = Field(ge=0, le=150)


class Even(BaseModel):
    number: int = Field(ge=0, le=99)

    @field_validator("number")
    @classmethod
    def check(cls, number: int) -> int:
        if number % 2:
            raise ValueError("it must be even")
        return number


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.5


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Cited(BaseModel):
    words: Annotated[str, Quote()]


@tool
def weather(city: Literal["Rome", "Oslo"], days: int = 1) -> str:
    """Weather of a city."""
    return f"{city}: sunny, {days} days"


@tool
def broken(reason: Literal["a", "b"]) -> str:
    """Fails."""
    raise RuntimeError(reason)


NAMES: dict[str, Any] = {
    **{name: getattr(module, name) for module in (constrain, parts, prompts, tools) for name in module.__all__},
    **{each.__name__: each for each in (Person, Even, Point, Colour, Cited, Gbnf, Lark, Regex)},
    "Literal": Literal,
    "weather": weather,
    "broken": broken,
    "inf": math.inf,
    "nan": math.nan,
    "PERSON": {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer"}},
        "required": ["name", "age"],
    },
    "NOTE": constrain.tools.CustomTool("note", "Takes a note.", Regex("[a-z]{3,9}")),
    "HELLO": "Say hello.",
    "TALK": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Where is Ada?"}],
}

MODELS = {"M": "small", "THINKER": "thinker", "ALWAYS": "always", "KEEPER": "keeper"}


def answer(row: Row) -> Any:
    """The answer of a row, as it is read from its table."""
    return json.loads(compact(_call(row["call"]) if "call" in row else _asked(row)))


def _asked(row: Row) -> Any:
    labels = Labels()
    settings = compact(row.get("settings", {}))
    found = [_request(each, settings, labels) for each in row.get("asks", (row,))]
    return found if "asks" in row else found[0]


def _call(call: str) -> Any:
    names = {name: model(served) for name, served in MODELS.items() if re.search(rf"\b{name}\b", call)}
    labels = Labels()
    events: list[Any] = []
    try:
        found = eval(call, {**NAMES, **names})
        if inspect.isawaitable(found):
            found = asyncio.run(_awaited(found))
        if isinstance(found, AsyncIterator):
            found = asyncio.run(_collected(found))
        if isinstance(found, Iterator):
            events.extend(found)
            found = events
    except Exception as error:  # noqa: BLE001 - errors are answers
        return labels.on([*map(plain, events), {"raises": f"{type(error).__name__}: {error}"}])
    return labels.on(plain(found))


async def _awaited(found: Any) -> Any:
    return await found


async def _collected(found: AsyncIterator[Any]) -> list[Any]:
    return [event async for event in found]


def _request(request: Row, settings: str, labels: Labels) -> Any:
    method, path = request["to"].split(" ", 1)
    options: dict[str, Any] = {"headers": dict(request.get("headers", {}))}
    if "body" in request:
        body = request["body"]
        text = body if isinstance(body, str) else compact(body, ascii_only=False)
        options["content"] = labels.undo(text).encode()
        options["headers"] = {**JSON, **options["headers"]}
    response = ask(application(settings), method, labels.undo(path), **options)
    headers = {name: value for name, value in response.headers.items() if name not in _UNRECORDED}
    if headers.get("content-type") == "application/json":
        del headers["content-type"]
    if "\\u" in response.text:
        headers["(escapes)"] = "yes"
    return labels.on([response.status_code, headers, _cut(path, body_of(response))])


_UNRECORDED = ("content-length", "x-request-id", "request-id", "etag", "last-modified", "date")


def body_of(response: httpx.Response) -> Any:
    """The objects of a body, so that equal objects mean equal texts; the text where it is written otherwise.

    Events are a list, each with its name if it has one that is not its ``type``.
    """
    text, kind = response.text, response.headers.get("content-type", "")
    if kind == "application/json":
        return _object_of(text)
    if kind.startswith("application/x-ndjson"):
        return [_object_of(line) for line in text.splitlines()]
    if kind.startswith("text/event-stream"):
        return [_event_of(event) for event in text.split("\n\n")]
    return [line for line in text.splitlines() if line.startswith("# HELP")]  # of measurements; of pages nothing


def _object_of(text: str) -> Any:
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return found if text in (compact(found), compact(found, ascii_only=False)) else text


def _event_of(text: str) -> Any:
    name, separator, data = text.rpartition("\n")
    found = _object_of(data.removeprefix("data: "))
    if not data.startswith("data: ") or isinstance(found, str):
        return text
    return [name.removeprefix("event: "), found] if separator else found


def _cut(path: str, body: Any) -> Any:
    """The names alone of the long description of the API."""
    if path != "/openapi.json" or "paths" not in body:
        return body
    methods = {path: list(methods) for path, methods in body["paths"].items()}
    return {
        "paths": methods,
        "schemas": {name: list(each.get("properties", ())) for name, each in body["components"]["schemas"].items()},
    }


def plain(value: Any) -> Any:
    """An answer of the library as JSON: of records, the members without their defaults."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return repr(value)
    if isinstance(value, Report):
        return [" ".join(map(str, value.policies.values())), value.warnings, value.split, value.min_tokens]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        left_out = _TIMES_OF_COMPLETIONS if isinstance(value, Completion) else ()
        members = {
            each.name: plain(member)
            for each in dataclasses.fields(value)
            if each.name not in left_out and (member := getattr(value, each.name)) != each.default
        }
        return {type(value).__name__: members}
    if isinstance(value, BaseModel):
        return {type(value).__name__: plain(value.model_dump())}
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else repr(key): plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, Exception):
        return {"error": f"{type(value).__name__}: {value}"}
    return repr(value)


_TIMES_OF_COMPLETIONS = ("timings", "mask_seconds")
_TIMES = re.compile(
    r"created|(created|completed|modified)_at|.*(_duration|_ms|_per_second|_microseconds|_seconds)|seconds"
)
_HASHES = ("sha256", "grammar", "grammar_sha256")
_ID = re.compile(r"\b([a-z]+[-_])([0-9a-f]{48}|[0-9a-f]{24})(?=i?\d{4}\b|\b)")
_ADDRESS = re.compile(" at 0x[0-9a-f]+")


class Labels:
    """Ids of one row, numbered in the order in which they come."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def on(self, value: Any) -> Any:
        """A value without what differs from run to run."""
        if isinstance(value, float):
            return float(f"{value:.5g}") if math.isfinite(value) else repr(value)
        if isinstance(value, str):
            text = _ADDRESS.sub("", value.replace(str(babbler_file().parent), "<folder>"))
            return _ID.sub(lambda found: found[1] + self._known.setdefault(found[2], f"#{len(self._known)}."), text)
        if isinstance(value, list | tuple):
            return [self.on(each) for each in value]
        if isinstance(value, dict):
            return {key: self._member(key, each) for key, each in value.items()}
        return value

    def undo(self, text: str) -> str:
        """A text of a request with the ids of the answers before it."""
        for known, label in reversed(self._known.items()):
            text = text.replace(label, known)
        return text

    def _member(self, key: str, value: Any) -> Any:
        if _TIMES.fullmatch(key) and isinstance(value, int | float | str):
            return "" if isinstance(value, str) else 0
        if key in _HASHES:
            return None
        if key == "timings" and isinstance(value, dict):
            return {name: 0 if isinstance(each, float) else each for name, each in value.items()}
        if key == "embedding":
            numbers = (
                struct.unpack(f"<{len(value) * 3 // 16}f", base64.b64decode(value)) if isinstance(value, str) else value
            )
            return [type(value).__name__, len(numbers), *map(self.on, numbers[:5])]
        return self.on(value)


def difference(found: Any, recorded: Any, place: str = "") -> str:
    """Where and how an answer differs from the recorded one; empty if it does not."""
    if isinstance(found, float) and isinstance(recorded, float):
        return "" if math.isclose(found, recorded, rel_tol=1e-3, abs_tol=1e-4) else f"{place}: {found} was {recorded}"
    if type(found) is not type(recorded):
        return f"{place}: {found!r:.400} was {recorded!r:.400}"
    if isinstance(found, dict):
        if list(found) != list(recorded):
            return f"{place}: members {list(found)} were {list(recorded)}"
        return next(filter(None, (difference(found[key], recorded[key], f"{place}.{key}") for key in found)), "")
    if isinstance(found, list):
        pairs = zip(found, recorded, strict=False)
        within = (difference(*pair, f"{place}[{index}]") for index, pair in enumerate(pairs))
        longer = f"{place}: {len(found)} items were {len(recorded)}" if len(found) != len(recorded) else ""
        return next(filter(None, within), longer)
    return "" if found == recorded else f"{place}: {found!r:.400} was {recorded!r:.400}"
