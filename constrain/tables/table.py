"""``Table``: the values of a table, which all grammars share, by the digest of their content."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from constrain import kernel
from constrain.language.tree import LiteralTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class _Content:
    """The values of equal tables; tables in use keep it."""

    def __init__(self, expression: LiteralTable) -> None:
        self.expression = expression


_contents: WeakValueDictionary[str, _Content] = WeakValueDictionary()
"""By digest. Schemas name tables by their digests, so that a schema's text says all that its grammar depends on."""


class Table:
    """Different strings, in no order. Tables with equal values share their memory.

    Args:
        values: the strings, or dates; equal ones count once.

    Raises TypeError, ValueError and LimitError for values that cannot be.
    """

    def __init__(self, values: Iterable[str] | Iterable[date]) -> None:
        if isinstance(values, str | bytes):
            raise TypeError(f"the values of a table are an iterable of strings, not {type(values).__name__}")
        try:
            expression = LiteralTable.of(kernel.Texts(_spelled(values)))
        except UnicodeEncodeError as error:
            raise ValueError(
                f"the value {error.object!a:.80} has a lone surrogate, which no answer can contain"
            ) from None
        self._content = _contents.setdefault(expression.digest, _Content(expression))

    @property
    def digest(self) -> str:
        """SHA-256 of the values."""
        return self._content.expression.digest

    def __len__(self) -> int:
        """Returns the number of different values."""
        return len(self._content.expression.texts)


def _spelled(values: Iterable[object]) -> Iterator[str]:
    for value in values:
        yield value.isoformat() if isinstance(value, date) else value  # type: ignore[misc]  # the kernel refuses others


def find_table(digest: str) -> LiteralTable | None:
    """Returns the values with a digest, as contents of JSON strings; ``None`` if no table in use has it."""
    content = _contents.get(digest)
    return None if content is None else content.expression
