"""Caches for results of functions, limited by the number of results and by their bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")

MANY = 1 << 16
"""Results of a cache that is limited by their bytes alone."""

_MISSING = object()


class Memory:
    """The cache of one function: at most ``entries`` results, and ``max_bytes`` bytes together."""

    def __init__(self, entries: int, max_bytes: int) -> None:
        self.entries = entries
        self.max_bytes = max_bytes
        self.bytes = 0
        self._known: OrderedDict[object, tuple[Any, int]] = OrderedDict()  # results and their bytes, oldest first
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._known)

    def find(self, key: object) -> Any:
        """Returns the result for a key, or ``_MISSING``."""
        found = self._known.get(key)
        if found is None:
            return _MISSING
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
        return found[0]

    def add(self, key: object, result: Any, size: int) -> Any:
        """Remembers a result of ``size`` bytes; returns the remembered one, which another thread may have stored first.

        Least recently used results make room for it. A result larger than ``max_bytes`` is not remembered.
        """
        if size > self.max_bytes:
            return result
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                return known[0]
            while self.bytes + size > self.max_bytes or len(self._known) >= self.entries:
                self.bytes -= self._known.popitem(last=False)[1][1]
            self._known[key] = result, size
            self.bytes += size
        return result

    def clear(self) -> None:
        """Frees all remembered results."""
        with self._lock:
            self._known.clear()
            self.bytes = 0


def remembered(
    entries: int, max_bytes: int, size: Callable[..., int], of_result: Callable[[Any], int] | None = None
) -> Callable[[F], F]:
    """Returns a decorator that caches results, as ``functools.lru_cache`` does, with a limit on bytes as well.

    Equal arguments of different types, such as ``1`` and ``True``, have results of their own. Inside of an argument,
    equal values must mean the same.

    ``size``: function from the arguments to the approximate bytes of arguments and result. With ``of_result``, ``size``
    counts the arguments alone and ``of_result`` the result. A result larger than ``max_bytes`` is not stored. The
    function gets its ``Memory`` as ``memory``.
    """

    def decorate(function: F) -> F:
        memory = Memory(entries, max_bytes)

        @wraps(function)
        def call(*args: Any, **named: Any) -> Any:
            key = (args, *map(type, args), *((name, type(value), value) for name, value in sorted(named.items())))
            found = memory.find(key)
            if found is not _MISSING:
                return found
            result = function(*args, **named)
            taken = size(*args, **named)
            return memory.add(key, result, taken if of_result is None else taken + of_result(result))

        call.memory = memory  # type: ignore[attr-defined]
        return cast("F", call)

    return decorate
