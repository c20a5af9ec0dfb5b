"""Grammars with names beside a grammar text, which rules refer to as ``@name``; and llguidance's JSON lists of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from constrain.arguments import without_mark
from constrain.language.schema_text import schema_text
from constrain.lark.reading.places import error_at

_BLANKS = re.compile(r"\s*")
_KINDS = ("lark_grammar", "json_schema")
_DECODER = json.JSONDecoder()


class NamedGrammar(NamedTuple):
    """A grammar text, or the JSON text of a JSON Schema."""

    text: str
    is_schema: bool


class NamedGrammars(Mapping[str, NamedGrammar]):
    """Grammars by name, immutable and hashable; made of grammar texts (``str``), and of JSON Schemas or types."""

    __slots__ = ("_grammars",)

    def __init__(self, given: Mapping[str, object] | None = None) -> None:
        made: dict[str, NamedGrammar] = {}
        for name, grammar in (given or {}).items():
            if not isinstance(name, str):
                raise TypeError(f"the name of a grammar must be a str, not {name!r}")
            if isinstance(grammar, NamedGrammar):
                made[name] = grammar
            elif isinstance(grammar, str):
                made[name] = NamedGrammar(without_mark(grammar), is_schema=False)
            else:
                made[name] = NamedGrammar(schema_text(grammar), is_schema=True)
        self._grammars = made

    def __getitem__(self, name: str) -> NamedGrammar:
        return self._grammars[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._grammars)

    def __len__(self) -> int:
        return len(self._grammars)

    def __hash__(self) -> int:
        return hash(frozenset(self._grammars.items()))

    def __repr__(self) -> str:
        return repr(self._grammars)


class LarkSource(Protocol):
    """The attributes of a ``Lark`` that its front end needs."""

    @property
    def text(self) -> str:
        """Returns the grammar."""

    @property
    def start(self) -> str:
        """Returns the rule that the whole text must match."""

    @property
    def grammars(self) -> Mapping[str, Any]:
        """Returns the grammars that rules may refer to by name."""


class Listed(NamedTuple):
    """The first grammar of a list, as a grammar text, and all that have names."""

    text: str
    start: str
    grammars: NamedGrammars


def read_list(source: LarkSource) -> Listed:
    """Returns a grammar text and its named grammars; from llguidance's JSON, if the text is that.

    Raises GrammarError with the place in the JSON, also for members that mean nothing here.
    """
    text = source.text
    brace = _skip(text, 0)
    if text[brace : brace + 1] != "{":
        return Listed(text, source.start, NamedGrammars(source.grammars))
    _check_json(text)
    lists = [(key, at, end) for key, at, end in _members(text, brace) if _is_list(text, key, at, end)]
    if not lists:
        raise error_at(text, brace, 'JSON here is a list of grammars: {"grammars": [{"lark_grammar": "..."}]}')
    found = [_entry(text, at) for at in _elements(text, lists[-1][1])]
    if not found:
        raise error_at(text, lists[-1][1], "there is no grammar in this list; the first is the one for the answer")
    named: dict[str, object] = dict(source.grammars)
    for name, grammar, at in found:
        if name in named:
            raise error_at(text, at, f"two grammars have the name {name}")
        if name is not None:
            named[name] = grammar
    first = found[0][1]
    return Listed(f"start: %json {first.text}" if first.is_schema else first.text, source.start, NamedGrammars(named))


def _is_list(text: str, key: str, at: int, end: int) -> bool:
    """Returns whether a member is the list of grammars; other members must ask for nothing."""
    if key == "grammars" and text[at] == "[":
        return True
    if key == "grammars":
        raise error_at(text, at, "grammars is a list of objects")
    if key == "max_tokens" and text[at:end] != "null":
        raise error_at(text, at, "max_tokens is not read here; give it to generate, or in the request")
    if key == "test_trace" and text[at:end] == "true":
        raise error_at(text, at, "test_trace is not supported; leave it out")
    if key not in ("max_tokens", "test_trace"):
        raise error_at(text, at, f"a list of grammars has no member {json.dumps(key)}; it has grammars")
    return False


def _entry(text: str, at: int) -> tuple[str | None, NamedGrammar, int]:
    """Returns the name of a grammar in a list, the grammar, and its place."""
    if text[at] != "{":
        raise error_at(text, at, 'a grammar here is an object: {"name": "...", "lark_grammar": "..."}')
    name: str | None = None
    grammars: list[NamedGrammar] = []
    for key, begin, end in _members(text, at):
        value: Any = None if key == "json_schema" else json.loads(text[begin:end])
        if key not in ("name", *_KINDS):
            raise error_at(
                text, begin, f"a grammar has no member {json.dumps(key)}; it has name, {' or '.join(_KINDS)}"
            )
        if text[begin:end] == "null":
            continue
        if key != "json_schema" and not isinstance(value, str):
            raise error_at(text, begin, f"{key} is a string")
        if key == "name":
            name = value
        else:
            grammars.append(NamedGrammar(text[begin:end] if value is None else value, is_schema=value is None))
    if len(grammars) != 1:
        raise error_at(text, at, f"a grammar has exactly one of {' and '.join(_KINDS)}, not {len(grammars)}")
    return name, grammars[0], at


def _check_json(text: str) -> None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise error_at(text, error.pos, f"not JSON: {error.msg}") from error
    except (RecursionError, ValueError) as error:
        raise error_at(text, 0, f"this JSON cannot be read: {error}") from error


def _skip(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    assert blanks
    return blanks.end()


def _members(text: str, at: int) -> Iterator[tuple[str, int, int]]:
    """Yields the members of the JSON object at a place: key, begin and end of the value. The text is valid JSON."""
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        begin = _skip(text, _skip(text, at) + 1)
        end = _DECODER.raw_decode(text, begin)[1]
        yield key, begin, end
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at


def _elements(text: str, at: int) -> Iterator[int]:
    """Yields where the elements of the JSON array at a place begin. The text is valid JSON."""
    at = _skip(text, at + 1)
    while text[at] != "]":
        yield at
        at = _skip(text, _DECODER.raw_decode(text, at)[1])
        at = _skip(text, at + 1) if text[at] == "," else at
