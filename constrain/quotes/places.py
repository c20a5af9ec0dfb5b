"""The quotes in a finished answer: where they stand in the answer and in their sources."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from constrain import kernel
from constrain.quotes.keyword import QUOTE, QuoteKeyword, read_keyword, sources_of
from constrain.quotes.texts import Folded, cuts, fold
from constrain.regex.parsing.parser import parse_pattern
from constrain.types.answer_text import read_answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


Path = tuple["str | int", ...]

COMPARED_DEPTH = 4
"""Levels of a value that are compared with the branches of an ``anyOf`` to find the one that it is of."""

_JSON_TOKEN = re.compile(r'[\[\]{},:]|"(?:[^"\\]|\\.)*(?:"|\\?$)|[^\s\[\]{},:"]+')


@dataclass(frozen=True, slots=True)
class QuotePlace:
    """The place of one quote of an answer.

    Attributes:
        path: keys and positions that lead to the quote in the answer's value; ``()`` if it is the whole value.
        source: name of the source; ``"prompt"`` for the texts of the user's messages.
        text: number of the source's text, from 0; for ``"prompt"``, of the user's message.
        start: number of characters of that text before the quote, as it is given. Of several occurrences it is the
            first.
        end: number of characters up to the end of the quote.
    """

    path: Path
    source: str
    text: int
    start: int
    end: int


class _Found(NamedTuple):
    """A quote: its place, and the span of its JSON string in the answer."""

    place: QuotePlace
    begin: int
    end: int
    folded: bool


def _integer(digits: str) -> int | Decimal:
    """Returns an integer of an answer; Python reads no ``int`` of more than about 4,300 digits."""
    try:
        return int(digits)
    except ValueError:
        return Decimal(digits)


class Quotes:
    """Finds the quotes of one request's answers.

    Args:
        schema: the JSON Schema of the answers, with its sources.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._sources = sources_of(schema)
        self._folded: dict[tuple[str, int], Folded] = {}
        self._cuts: dict[tuple[str, int, bool], bytes] = {}

    def places(self, text: str, above: Path = ()) -> tuple[QuotePlace, ...]:
        """Returns the places of all quotes in a finished text, in the order of the text.

        ``above``: path of the text in the answer's value. Raises ``OutputValidationError`` for a text that is nested
        too deeply to be read.
        """
        return tuple(replace(found.place, path=(*above, *found.place.path)) for found in self._find(text))

    def restored(self, text: str) -> str:
        """Returns a finished answer in which folded quotes have their source's spelling."""
        pieces, at = [], 0
        for found in self._find(text):
            if found.folded:
                place = found.place
                spelled = self._sources[place.source][place.text][place.start : place.end]
                pieces += [text[at : found.begin], json.dumps(spelled, ensure_ascii=False)]
                at = found.end
        return "".join([*pieces, text[at:]])

    def _find(self, text: str) -> Iterator[_Found]:
        value = read_answer(text, integer=_integer)
        for path, begin, end in _strings(text):
            written = json.loads(text[begin:end])
            for keyword in self._keywords(value, path):
                place = self._place(path, written, keyword)
                if place is not None:
                    yield _Found(place, begin, end, keyword.fold)
                    break

    def _place(self, path: Path, written: str, keyword: QuoteKeyword) -> QuotePlace | None:
        """Returns the first place of a quote as the model wrote it; ``None`` if it is none."""
        if len(written) < keyword.min_length or len(written) > (keyword.max_length or len(written)):
            return None
        for number, given in enumerate(self._sources.get(keyword.source, ())):
            searched = self._fold(keyword.source, number) if keyword.fold else None
            start = self._first(written, given if searched is None else searched.text, number, keyword)
            if start is not None:
                end = start + len(written)
                if searched is not None:
                    start, end = searched.positions[start], searched.positions[end]
                return QuotePlace(path, keyword.source, number, start, end)
            if searched is not None and written in given:  # restored before
                start = given.index(written)
                return QuotePlace(path, keyword.source, number, start, start + len(written))
        return None

    def _first(self, written: str, text: str, number: int, keyword: QuoteKeyword) -> int | None:
        start = text.find(written)
        if keyword.whole_words:
            between = self._boundaries((keyword.source, number, keyword.fold), text)
            while start >= 0 and not _is_whole(between, start, start + len(written)):
                start = text.find(written, start + 1)
        return None if start < 0 else start

    def _boundaries(self, key: tuple[str, int, bool], text: str) -> bytes:
        if key not in self._cuts:
            self._cuts[key] = cuts(text)
        return self._cuts[key]

    def _fold(self, source: str, number: int) -> Folded:
        key = source, number
        if key not in self._folded:
            self._folded[key] = fold(self._sources[source][number])
        return self._folded[key]

    # The schemas that apply to a part of a value.

    def _keywords(self, value: Any, path: Path) -> list[QuoteKeyword]:
        """Returns the values of ``x-quote`` in the schemas that apply to a string of the answer."""
        schemas = [self._schema]
        for step in path:
            inner: list[Any] = []
            for schema in self._in_place(schemas, value):
                inner += _children(schema, step)
            schemas, value = inner, value[step]
        return [read_keyword(schema[QUOTE]) for schema in self._in_place(schemas, value) if QUOTE in schema]

    def _in_place(self, schemas: list[Any], value: Any) -> list[Mapping[str, Any]]:
        """Returns the objects among some schemas, and those that they apply to the same value."""
        found: list[Mapping[str, Any]] = []
        seen: set[int] = set()
        waiting = list(schemas)
        while waiting:
            schema = waiting.pop(0)
            if not isinstance(schema, dict) or id(schema) in seen:
                continue
            seen.add(id(schema))
            found.append(schema)
            waiting += self._applied(schema, value)
        return found

    def _applied(self, schema: Mapping[str, Any], value: Any) -> Iterator[Any]:
        if isinstance(schema.get("$ref"), str):
            yield self._target(schema["$ref"])
        yield from schema.get("allOf", ())
        for keyword in ("anyOf", "oneOf"):
            yield from (branch for branch in schema.get(keyword, ()) if self._fits(branch, value))
        if "if" in schema:
            yield schema.get("then" if self._fits(schema["if"], value) else "else")
        for keyword in ("dependentSchemas", "dependencies"):
            if isinstance(value, dict):
                yield from (other for key, other in schema.get(keyword, {}).items() if key in value)

    def _target(self, reference: str) -> Any:
        """Returns the target of a reference within the document; ``None`` for others."""
        place: Any = self._schema
        for token in unquote(reference[1:]).split("/")[1:] if reference.startswith("#") else ():
            key = token.replace("~1", "/").replace("~0", "~")
            place = place.get(key) if isinstance(place, dict) else place[int(key)] if isinstance(place, list) else None
        return place if reference == "#" or reference.startswith("#/") else None

    def _fits(self, schema: Any, value: Any, depth: int = 0) -> bool:
        """Returns whether a value may be one of a schema, judged by types, constants, quotes and keys near its top."""
        if not isinstance(schema, dict) or depth > COMPARED_DEPTH:
            return schema is not False
        if isinstance(schema.get("$ref"), str) and not self._fits(self._target(schema["$ref"]), value, depth + 1):
            return False
        kinds = schema.get("type", [])
        kinds = kinds if isinstance(kinds, list) else [kinds]
        if kinds and not any(_is_of(kind, value) for kind in kinds):
            return False
        if ("const" in schema and schema["const"] != value) or ("enum" in schema and value not in schema["enum"]):
            return False
        if isinstance(value, str) and QUOTE in schema:
            return self._place((), value, read_keyword(schema[QUOTE])) is not None
        if isinstance(value, dict):
            if any(key not in value for key in schema.get("required", ())):
                return False
            declared = schema.get("properties", {})
            return all(self._fits(declared[key], value[key], depth + 1) for key in value if key in declared)
        if isinstance(value, list) and isinstance(schema.get("items"), dict):
            return all(self._fits(schema["items"], item, depth + 1) for item in value)
        return True


def _is_whole(between: bytes, start: int, end: int) -> bool:
    return all(position == len(between) or between[position] for position in (start, end))


def _children(schema: Mapping[str, Any], step: str | int) -> Iterator[Any]:
    """Returns the schemas that apply to a member of an object or array."""
    if isinstance(step, int):
        prefix = schema.get("prefixItems", ())
        items = schema.get("items")
        if isinstance(items, list):
            prefix, items = items, schema.get("additionalItems")
        yield prefix[step] if step < len(prefix) else items
        yield schema.get("unevaluatedItems")
        return
    named = [schema["properties"][step]] if step in schema.get("properties", {}) else []
    named += [other for pattern, other in schema.get("patternProperties", {}).items() if _holds(pattern, step)]
    yield from named or [schema.get("additionalProperties"), schema.get("unevaluatedProperties")]


def _holds(pattern: str, key: str) -> bool:
    """Returns whether an ECMA-262 pattern is found in a key."""
    return kernel.matches(parse_pattern(pattern, "ecma", anchored=False), key.encode())


_TYPES: dict[str, type | tuple[type, ...]] = {
    "null": type(None), "boolean": bool, "integer": int, "number": (int, float), "string": str, "array": list,
    "object": dict,
}  # fmt: skip


def _is_of(kind: object, value: Any) -> bool:
    wanted = _TYPES.get(kind) if isinstance(kind, str) else None
    return wanted is not None and isinstance(value, wanted) and (isinstance(value, bool) == (kind == "boolean"))


def _strings(text: str) -> Iterator[tuple[Path, int, int]]:
    """Returns the paths of all strings of a JSON text that are no keys, with their spans."""
    path: list[str | int] = []
    is_key = False
    for token in _JSON_TOKEN.finditer(text):
        begin, end = token.span()
        piece = token[0]
        if piece in ("{", "["):
            path.append("" if piece == "{" else 0)
            is_key = piece == "{"
        elif piece in ("}", "]"):
            path.pop()
        elif piece == ",":
            is_key = isinstance(path[-1], str)
            if not is_key:
                path[-1] += 1  # type: ignore[operator]
        elif piece == ":":
            is_key = False
        elif piece.startswith('"') and is_key:
            path[-1] = json.loads(piece)
        elif piece.startswith('"'):
            yield tuple(path), begin, end
