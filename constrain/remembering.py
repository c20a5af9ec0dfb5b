"""Results that functions remember, limited by their number and by the bytes that they take."""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")

_MISSING = object()


class Memory:
    """What one function remembers: never more than ``entries`` results, and ``max_bytes`` together."""

    def __init__(self, entries: int, max_bytes: int) -> None:
        self.entries = entries
        self.max_bytes = max_bytes
        self.bytes = 0
        self._known: OrderedDict[object, tuple[Any, int]] = OrderedDict()  # results and their bytes, oldest first
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._known)

    def find(self, key: object) -> Any:
        """The result for a key, or ``_MISSING``."""
        found = self._known.get(key)
        if found is None:
            return _MISSING
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
        return found[0]

    def add(self, key: object, result: Any, size: int) -> Any:
        """Remembers a result, unless it is too large by itself; forgets what was used least recently.

        Returns the result that is remembered: another thread may have been first.
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
        """Forgets all."""
        with self._lock:
            self._known.clear()
            self.bytes = 0


def remembered(
    entries: int, max_bytes: int, size: Callable[..., int], of_result: Callable[[Any], int] | None = None
) -> Callable[[F], F]:
    """A decorator: remembers results, as ``functools.lru_cache`` does, in a limited number of bytes as well.

    ``size``: bytes that the result for some arguments takes with these, roughly; called with the arguments. With
    ``of_result``, ``size`` tells those of the arguments alone, and this those of the result. What is larger than
    ``max_bytes`` by itself is not remembered. The function has its ``Memory`` as ``memory``.
    """

    def decorate(function: F) -> F:
        memory = Memory(entries, max_bytes)

        @wraps(function)
        def call(*args: Any, **named: Any) -> Any:
            key = (args, *sorted(named.items())) if named else args
            found = memory.find(key)
            if found is not _MISSING:
                return found
            result = function(*args, **named)
            taken = size(*args, **named)
            return memory.add(key, result, taken if of_result is None else taken + of_result(result))

        call.memory = memory  # type: ignore[attr-defined]
        return cast("F", call)

    return decorate
