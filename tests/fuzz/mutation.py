"""Changes to inputs that keep their form, so that what is changed is read: JSON trees, and texts by their words."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    MutateBytes = Callable[[bytes], bytes]

BYTEWISE = 0.15
"""How likely an input is changed as bytes, whatever they mean."""

_KEPT = 256
"""Parts of earlier inputs that are put into later ones."""


class Trees:
    """Changes JSON trees.

    Args:
        keys: of objects, each with values that make sense below it; ``...`` stands for a part of a tree.
        values: that may stand anywhere.
        wraps: what a part of a tree may be put into: trees that hold ``...`` once.
    """

    def __init__(self, keys: dict[str, Sequence[Any]], values: Sequence[Any], wraps: Sequence[Any] = ()) -> None:
        self._keys, self._values, self._wraps = keys, values, wraps
        self._names = list(keys)
        self._parts: list[Any] = []

    def mutated(self, data: bytes, rng: Random, mutate_bytes: MutateBytes) -> bytes:
        """A changed input: JSON as UTF-8."""
        try:
            tree = json.loads(data)
        except (ValueError, RecursionError):
            tree = None
        if tree is None or rng.random() < BYTEWISE:
            return mutate_bytes(data)
        for _ in range(rng.choice((1, 1, 1, 2, 3, 5))):
            tree = self._changed(tree, rng)
        try:
            return json.dumps(tree, ensure_ascii=rng.random() < 0.3).encode("utf-8", "surrogatepass")
        except (ValueError, RecursionError):
            return mutate_bytes(data)

    def _changed(self, tree: Any, rng: Random) -> Any:
        holder = [tree]
        places: list[tuple[Any, Any]] = [(holder, 0)]
        for container, key in places:
            inner = container[key]
            if len(places) > 400:
                break
            keys = inner.keys() if isinstance(inner, dict) else range(len(inner)) if isinstance(inner, list) else ()
            places += [(inner, each) for each in keys]
        container, key = rng.choice(places)
        node = container[key]
        if isinstance(node, dict | list) and len(json.dumps(node)) < 400:
            self._parts.append(copy.deepcopy(node))
            if len(self._parts) > _KEPT:
                self._parts.pop(rng.randrange(_KEPT))
        kind = rng.random()
        if kind < 0.35 and isinstance(node, dict):
            self._add_member(node, rng)
        elif kind < 0.45 and isinstance(node, list):
            node.insert(rng.randint(0, len(node)), self._value(rng))
        elif kind < 0.55 and isinstance(node, dict | list) and node:
            self._drop(node, rng)
        elif kind < 0.65 and self._wraps:
            container[key] = _filled(rng.choice(self._wraps), lambda: node)
        elif kind < 0.75 and len(places) > 1:
            source, at = rng.choice(places)
            container[key] = copy.deepcopy(source[at])
        elif kind < 0.85 and isinstance(node, str | int | float):
            container[key] = _varied(node, rng)
        else:
            container[key] = self._value_for(key, rng)
        return holder[0]

    def _add_member(self, node: dict[str, Any], rng: Random) -> None:
        name = rng.choice(self._names)
        node[name] = self._value_for(name, rng)

    @staticmethod
    def _drop(node: Any, rng: Random) -> None:
        if isinstance(node, dict):
            node.pop(rng.choice(list(node)))
        else:
            node.pop(rng.randrange(len(node)))

    def _value_for(self, key: Any, rng: Random) -> Any:
        known = self._keys.get(key) if isinstance(key, str) else None
        return (
            _filled(rng.choice(known), lambda: self._value(rng)) if known and rng.random() < 0.9 else self._value(rng)
        )

    def _value(self, rng: Random) -> Any:
        if self._parts and rng.random() < 0.4:
            return copy.deepcopy(rng.choice(self._parts))
        return copy.deepcopy(rng.choice(self._values))


def _filled(shape: Any, make: Callable[[], Any]) -> Any:
    """A tree with what is made in place of each ``...``."""
    if shape is ...:
        return make()
    if isinstance(shape, dict):
        return {key: _filled(value, make) for key, value in shape.items()}
    if isinstance(shape, list):
        return [_filled(value, make) for value in shape]
    return shape


_NUMBERS = (0, 1, -1, 2, 3, 7, 255, 256, 2**31 - 1, 2**31, 2**53, 2**63, 2**64, 10**30, 0.5, 1e-7, 1e308, -0.0)
_TEXTS = ("", "a", "é", "😀", "\0", "\ud800", "\n", '"', "\\", "/", "~1", "#", "%25", "x" * 300, "\u2028", "\x7f")


def _varied(value: Any, rng: Random) -> Any:
    if isinstance(value, str):
        at = rng.randint(0, len(value))
        return rng.choice((
            value[:at] + rng.choice(_TEXTS) + value[at:], value[:at], value[at:], value + value, rng.choice(_TEXTS)
        ))  # fmt: skip
    return rng.choice((*_NUMBERS, value + 1, value - 1, -value, value * 10)) if abs(value) < 1e100 else 0


class Texts:
    """Changes texts by words of their language."""

    def __init__(self, words: Sequence[str], wraps: Sequence[tuple[str, str]] = ()) -> None:
        self._words, self._wraps = words, wraps

    def mutated(self, data: bytes, rng: Random, mutate_bytes: MutateBytes) -> bytes:
        """A changed input: UTF-8."""
        if rng.random() < BYTEWISE:
            return mutate_bytes(data)
        text = data.decode("utf-8", "replace")
        for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
            text = self._changed(text, rng)
        return text.encode("utf-8", "replace")

    def _changed(self, text: str, rng: Random) -> str:
        low, high = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
        if rng.random() < 0.6:
            high = min(high, low + rng.randint(0, 8))
        part = text[low:high]
        kind = rng.random()
        if kind < 0.45:
            return text[:low] + rng.choice(self._words) + text[low:]
        if kind < 0.6:
            return text[:low] + text[high:]
        if kind < 0.7:
            return text[:low] + rng.choice(self._words) + text[high:]
        if kind < 0.8 and self._wraps:
            begin, end = rng.choice(self._wraps)
            return text[:low] + begin + part + end + text[high:]
        if kind < 0.9:
            return text[:high] + part * rng.choice((1, 1, 2, 5, 20)) + text[high:]
        at = rng.randint(0, len(text))
        return text[:at] + part + text[at:]
