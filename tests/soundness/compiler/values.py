"""JSON values near a JSON Schema: those on both sides of each of its borders, smallest first.

The generator reads the raw document and asks nothing of ``constrain.json_schema``. It draws constants, bounds and their
neighbours, lengths, samples of patterns, keys with and without, one key more, items twice, and wrong types. A value
need not be valid: validators decide. The order is the same in each run.

A *place* is all subschemas that may say something about one value: ``$ref`` and the combinators lead to further ones.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain
from typing import Any, TypeGuard
from urllib.parse import unquote

from tests.soundness.compiler import patterns
from tests.soundness.compiler.spelling import spell

LONGEST_STRING = 80
"""Characters of a string that is drawn for its length; greater lengths are left out."""

MOST_CONSTANTS = 16
"""Members of one ``enum`` that are drawn."""

MOST_ITEMS = 6
"""Items of an array that is drawn for its length; greater lengths are left out."""

DEEPEST = 12
"""Levels of a likely value; recursive schemas may ask for more, and get null there."""

EXTRA_KEY = "zz extra"
"""A key that no schema names."""

_SAME_VALUE = ("allOf", "anyOf", "oneOf", "if", "then", "else", "not")
_ITEMS = ("items", "additionalItems", "contains", "unevaluatedItems")
_WRONG: tuple[Any, ...] = (None, True, False, 0, 1, -1, Decimal("0.5"), "", "x", [], {})
_FORMATS: dict[str, tuple[str, ...]] = {
    "date": ("2024-02-29", "2023-02-29", "2024-13-01", "2024-1-1"),
    "time": ("10:20:30Z", "10:20:30+01:00", "24:00:00Z", "10:20"),
    "date-time": ("2024-02-29T10:20:30Z", "2024-02-30T10:20:30Z", "2024-02-29 10:20"),
    "duration": ("P1D", "PT1H2M", "P", "1D"),
    "email": ("a@b.org", "a@b", "a.b.org", "@b.org"),
    "hostname": ("a.org", "-a.org", "a_b"),
    "ipv4": ("127.0.0.1", "127.0.0.256", "127.0.0", "01.0.0.1"),
    "ipv6": ("::1", "1:2:3:4:5:6:7:8", "1::2::3", ":1"),
    "uri": ("http://a.org/b?c#d", "a/b", "http://a b"),
    "uri-reference": ("a/b", "#d", "a b"),
    "uuid": ("12345678-1234-1234-1234-123456789abc", "12345678123412341234123456789abc"),
    "regex": ("a+", "("),
    "json-pointer": ("/a/b", "a", "/~2"),
}
_Place = tuple[Any, ...]


@dataclass
class Values:
    """Draws values of a document.

    Attributes:
        left_out: what is not drawn, and how often it was met.
    """

    document: Any
    left_out: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._places: dict[tuple[int, ...], _Place] = {}
        self._known: dict[tuple[object, ...], Any] = {}
        self._named: dict[str, Any] = {}
        for node in _nodes(self.document):
            for keyword in ("$anchor", "$dynamicAnchor", "$id", "id"):
                name = node.get(keyword)
                if isinstance(name, str):
                    self._named.setdefault(f"#{name}" if keyword.endswith("nchor") else name, node)
        self.root = self.place([self.document])

    # Places

    def place(self, nodes: Iterable[Any]) -> _Place:
        """Returns the place of some subschemas: with all that they lead to for the same value."""
        found: dict[int, Any] = {}
        work = list(nodes)[::-1]
        while work:
            node = work.pop()
            if not isinstance(node, dict) or id(node) in found:
                continue
            found[id(node)] = node
            work += self._beside(node)[::-1]
        key = tuple(found)
        return self._places.setdefault(key, tuple(found.values()))

    def _beside(self, node: dict[str, Any]) -> list[Any]:
        """Returns the subschemas that apply to the same value as a schema."""
        found = []
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if isinstance(node.get(keyword), str):
                found += self._target(node[keyword])
        for keyword in _SAME_VALUE:
            inner = node.get(keyword)
            found += inner if isinstance(inner, list) else [inner]
        for keyword in ("dependentSchemas", "dependencies"):
            found += list(node.get(keyword, {}).values())
        return found

    def _target(self, reference: str) -> list[Any]:
        base, _, fragment = reference.partition("#")
        target = self._named.get(base, self.document if not base else None)
        if reference in self._named:
            return [self._named[reference]]
        for part in unquote(fragment).split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(target, list) and name.isdecimal() and int(name) < len(target):
                target = target[int(name)]
            else:
                target = target.get(name) if isinstance(target, dict) else None
        if target is None or (fragment and not fragment.startswith("/")):
            self.left_out[f"what {reference} refers to, which is not found by its name"] += 1
            return []
        return [target]

    def _kept(self, what: str, place: _Place, *more: object) -> Any:
        return self._known.get((what, id(place), *more))

    def _keep(self, value: Any, what: str, place: _Place, *more: object) -> Any:
        key = (what, id(place), *more)
        self._known[key] = value
        return value

    def keys(self, place: _Place) -> list[str]:
        """Returns the keys to draw: those of ``properties`` first, one that is not named last."""
        known = self._kept("keys", place)
        if known is not None:
            return list(known)
        found: dict[str, None] = {}
        for node in place:
            found.update(dict.fromkeys(node.get("properties", {})))
        for node in place:
            found.update(dict.fromkeys(each for each in _list(node.get("required")) if isinstance(each, str)))
            for keyword in ("dependentRequired", "dependencies"):
                for name, others in node.get(keyword, {}).items():
                    found.update(dict.fromkeys([name, *_list(others)]))
            for pattern in node.get("patternProperties", {}):
                found.update(dict.fromkeys(self._samples(pattern)[:4]))
            if "propertyNames" in node:
                texts = self.atoms(self.place([node["propertyNames"]]))
                found.update(dict.fromkeys(text for text in texts[:40] if isinstance(text, str)))
        found[EXTRA_KEY] = None
        return list(self._keep(list(found), "keys", place))

    def member(self, place: _Place, key: str) -> _Place:
        """Returns the place of the value of a key."""
        known = self._kept("member", place, key)
        if known is not None:
            return tuple(known)
        inner = []
        for node in place:
            named = node.get("properties", {})
            if key in named:
                inner.append(named[key])
            fits = [each for pattern, each in node.get("patternProperties", {}).items() if self._finds(pattern, key)]
            inner += fits
            if key not in named and not fits:
                inner += [node.get("additionalProperties")]
            inner += [node.get("unevaluatedProperties")]
        return tuple(self._keep(self.place(inner), "member", place, key))

    def item(self, place: _Place, index: int) -> _Place:
        """Returns the place of an item."""
        known = self._kept("item", place, index)
        if known is not None:
            return tuple(known)
        inner = []
        for node in place:
            for keyword in ("prefixItems", "items"):
                listed = node.get(keyword)
                if isinstance(listed, list) and index < len(listed):
                    inner.append(listed[index])
            inner += [node[keyword] for keyword in _ITEMS if isinstance(node.get(keyword), dict)]
        return tuple(self._keep(self.place(inner), "item", place, index))

    def _finds(self, pattern: str, key: str) -> bool:
        return not patterns.can_read(pattern) or re.search(pattern, key) is not None

    def _samples(self, pattern: str) -> list[str]:
        try:
            return patterns.samples(pattern)
        except re.error:
            self.left_out["samples of patterns that Python cannot read"] += 1
            return []

    # Values of one place

    def atoms(self, place: _Place) -> list[Any]:
        """Returns the values without parts to draw for a place, and all constants."""
        known = self._kept("atoms", place)
        if known is not None:
            return list(known)
        self._keep([], "atoms", place)
        found: dict[str, Any] = {}
        for node in place:
            for value in self._constants(node):
                found.setdefault(spell(value), value)
        for value in chain(*(chain(self._numbers(node), self._strings(node)) for node in place), _WRONG):
            found.setdefault(spell(value), value)
        return list(self._keep(list(found.values()), "atoms", place))

    def _constants(self, node: dict[str, Any]) -> Iterator[Any]:
        if "const" in node:
            yield node["const"]
        members = _list(node.get("enum"))
        if len(members) > MOST_CONSTANTS:
            self.left_out["members of long enumerations"] += len(members) - MOST_CONSTANTS
        yield from members[: MOST_CONSTANTS - 1]
        yield from members[MOST_CONSTANTS - 1 :][-1:]
        yield from _list(node.get("examples"))[:3]
        if "default" in node:
            yield node["default"]

    @staticmethod
    def _numbers(node: dict[str, Any]) -> Iterator[Any]:
        steps = [Decimal(1), Decimal("0.1")]
        if _is_number(node.get("multipleOf")):
            steps.append(Decimal(node["multipleOf"]))
            for factor in ("1", "-1", "2", "0.5", "7", "1.5"):
                yield _number(Decimal(node["multipleOf"]) * Decimal(factor))
        for keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            if _is_number(node.get(keyword)):
                bound = Decimal(node[keyword])
                yield _number(bound)
                for step in steps:
                    yield from (_number(bound - step), _number(bound + step))

    def _strings(self, node: dict[str, Any]) -> Iterator[str]:
        for keyword in ("minLength", "maxLength"):
            length = node.get(keyword)
            if not _is_number(length):
                continue
            if length > LONGEST_STRING:
                self.left_out["strings of great lengths"] += 1
            else:
                for near in range(max(0, int(length) - 1), int(length) + 2):
                    yield from ("a" * near, "\U0001f600" * near)
        if isinstance(node.get("pattern"), str):
            yield from self._samples(node["pattern"])
        if isinstance(node.get("format"), str):
            yield from _FORMATS.get(node["format"], ())
        if node.get("type") == "string" or "string" in _list(node.get("type")):
            yield from ("a", 'a"\\\n\u00e9\u0001')

    # All values up to a size

    def of_size(self, place: _Place, size: int) -> Iterator[Any]:
        """Yields all values of so many parts: each scalar, constant, array and object counts one."""
        if size == 1:
            yield from self.atoms(place)
            return
        yield from self._arrays(place, 0, size - 1)
        yield from self._objects(place, self.keys(place), size - 1)

    def _arrays(self, place: _Place, index: int, size: int) -> Iterator[list[Any]]:
        if size == 0:
            yield []
            return
        for first in range(1, size + 1):
            for value in self.of_size(self.item(place, index), first):
                for rest in self._arrays(place, index + 1, size - first):
                    yield [value, *rest]

    def _objects(self, place: _Place, keys: list[str], size: int) -> Iterator[dict[str, Any]]:
        if size == 0:
            yield {}
            return
        for index, key in enumerate(keys):
            for first in range(1, size + 1):
                for value in self.of_size(self.member(place, key), first):
                    for rest in self._objects(place, keys[index + 1 :], size - first):
                        yield {key: value, **rest}

    # Values near others

    def seeds(self) -> Iterator[Any]:
        """Yields values that may be valid: with the required keys only, and with all."""
        for every_key in (False, True):
            for choice in range(4):
                yield self._likely(self.root, choice, 0, every_key=every_key)

    def _likely(self, place: _Place, choice: int, depth: int, *, every_key: bool) -> Any:
        """Returns a value that is likely to be valid."""
        if depth > DEEPEST:
            return None
        nodes = _certain(place)
        constants = list(chain(*(self._constants(node) for node in nodes if "const" in node or "enum" in node)))
        if constants:
            return constants[choice % len(constants)]
        types = [each for node in nodes for each in _types(node)]
        kind = types[choice % len(types)] if types else "null"
        if kind == "object":
            required = {key for node in nodes for key in _list(node.get("required"))}
            wanted = [key for key in self.keys(place) if key in required or (every_key and depth < 3)]
            wanted = [key for key in wanted if key != EXTRA_KEY]
            return {
                key: self._likely(self.member(place, key), choice, depth + 1, every_key=every_key) for key in wanted
            }
        if kind == "array":
            counts = [node.get("minItems") for node in nodes]
            least = max((int(count) for count in counts if _is_number(count)), default=0)
            if least > MOST_ITEMS:
                self.left_out["arrays of great lengths"] += 1
            count = min(max(least, int(every_key)), MOST_ITEMS)
            return [
                self._likely(self.item(place, index), choice + index, depth + 1, every_key=every_key)
                for index in range(count)
            ]
        atoms = [value for value in self.atoms(place) if _type_of(value) in _KINDS.get(kind, (kind,))]
        return atoms[choice % len(atoms)] if atoms else None

    def near(self, value: Any, place: _Place | None = None) -> Iterator[Any]:
        """Yields all values that differ from one in a single part: another, one less, one more."""
        place = self.root if place is None else place
        yield from self.atoms(place)
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield [*value[:index], *value[index + 1 :]]
                yield [*value[: index + 1], item, *value[index + 1 :]]
                for other in self.near(item, self.item(place, index)):
                    yield [*value[:index], other, *value[index + 1 :]]
            for item in self.atoms(self.item(place, len(value))):
                yield [*value, item]
            yield value[::-1]
        elif isinstance(value, dict):
            for key, member in value.items():
                yield {name: each for name, each in value.items() if name != key}
                for other in self.near(member, self.member(place, key)):
                    yield {**value, key: other}
            keys = self.keys(place)
            for key in keys:
                if key not in value:
                    for member in self.atoms(self.member(place, key)):
                        yield _in_order({**value, key: member}, keys)


_KINDS = {"number": ("integer", "number"), "boolean": ("boolean",)}


def _in_order(value: dict[str, Any], keys: list[str]) -> dict[str, Any]:
    """Returns an object with its keys in the order of a list of the keys that are drawn."""
    found = {key: value[key] for key in keys if key in value and key != EXTRA_KEY}
    return {**found, **{key: each for key, each in value.items() if key not in found}}


def _certain(place: _Place) -> list[dict[str, Any]]:
    """Returns the schemas of a place that are no denials."""
    denied = {id(node["not"]) for node in place if "not" in node}
    return [node for node in place if id(node) not in denied]


def _types(node: dict[str, Any]) -> list[str]:
    """Returns the types that a schema names, or that its keywords are about."""
    named = node.get("type")
    if named is not None:
        return [named] if isinstance(named, str) else _list(named)
    found = {"object": ("properties", "required"), "array": ("items", "prefixItems"), "string": ("pattern", "format")}
    return [kind for kind, keywords in found.items() if any(keyword in node for keyword in keywords)]


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    names = {int: "integer", Decimal: "number", str: "string", list: "array", dict: "object"}
    return names[type(value)]


def _nodes(document: Any) -> Iterator[dict[str, Any]]:
    """Yields all objects of a document."""
    work = [document]
    while work:
        node = work.pop()
        if isinstance(node, dict):
            yield node
            work += node.values()
        elif isinstance(node, list):
            work += node


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_number(value: Any) -> TypeGuard[int | Decimal]:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _number(value: Decimal) -> int | Decimal:
    return int(value) if value == value.to_integral_value() and abs(value) < 10**40 else value
