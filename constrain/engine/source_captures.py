"""Captures of a text of a source that was not compiled by itself, such as the input of a tool."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from constrain.engine.captures import Captures
from constrain.engine.constraint import _compile
from constrain.errors import LimitError
from constrain.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from constrain.language.source import Source


def source_captures(source: Source | None, text: str) -> Captures | None:
    """Returns the captures of a text of a source; none without a source. ``None`` if they take too long to find.

    Raises ValueError for a text that does not match.

    >>> from constrain import Regex
    >>> source_captures(Regex(r"(?P<day>[0-9]+)[.](?P<month>[0-9]+)"), "24.12")
    {'day': '24', 'month': '12'}
    """
    if source is None or not source.may_capture:
        return Captures()
    try:
        return _compile(source, _byte_vocabulary(), close_objects=True, cache=False).captures(text)
    except LimitError:
        return None


@cache
def _byte_vocabulary() -> Vocabulary:
    """Returns a vocabulary whose tokens are bytes: captures do not depend on tokens."""
    return Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])
