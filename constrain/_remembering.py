"""Results that functions remember, limited by their number and by the bytes of what they were made from."""

from __future__ import annotations

import threading
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")


def remembered(entries: int, max_bytes: int, size: Callable[..., int]) -> Callable[[F], F]:
    """A decorator: remembers results, as ``functools.lru_cache`` does, and forgets all once they take too much.

    ``size``: bytes that the result for some arguments takes with these, roughly; called with the arguments. What is
    larger than ``max_bytes`` by itself is not remembered.
    """

    def decorate(function: F) -> F:
        lock = threading.Lock()
        total = 0

        @wraps(function)
        def compute(*args: Any, **named: Any) -> Any:
            nonlocal total
            result = function(*args, **named)
            with lock:
                total += size(*args, **named)
                if total > max_bytes:
                    known.cache_clear()
                    total = size(*args, **named)
            return result

        known = lru_cache(maxsize=entries)(compute)

        @wraps(function)
        def call(*args: Any, **named: Any) -> Any:
            if size(*args, **named) > max_bytes:
                return function(*args, **named)
            return known(*args, **named)

        return cast("F", call)

    return decorate
