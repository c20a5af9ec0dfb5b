"""Values of JSON answers. A recursive schema lets a model nest an answer as deeply as its context is long."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from constrain.errors import OutputValidationError

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_ANSWER_NESTING = 500
"""Levels of objects and arrays in an answer that becomes a value. Beyond: OutputValidationError, which has the text.

Python reads, writes, compares and prints about 990 levels, minus the calls in progress; the limit leaves room for a
program's own calls.
"""

_MARKS = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[{\]}]', re.DOTALL)


def read_answer(
    text: str,
    *,
    pairs: Callable[[list[tuple[str, Any]]], Any] | None = None,
    constant: Callable[[str], Any] | None = None,
    decimal: Callable[[str], Any] | None = None,
    integer: Callable[[str], Any] | None = None,
) -> Any:
    """Returns the value of a JSON text, at any depth of the caller's stack.

    ``pairs``, ``constant``, ``decimal`` and ``integer``: functions of ``json.loads`` for objects, for constants outside
    JSON, for numbers with a fraction or an exponent, and for all others. Raises ``OutputValidationError`` for more than
    ``MAX_ANSWER_NESTING`` levels, and the errors of ``json.loads``.
    """
    require_shallow(text)
    hooks: dict[str, Any] = {"parse_constant": constant, "parse_float": decimal, "parse_int": integer}
    read = partial(json.loads, text, object_pairs_hook=pairs, **hooks)
    try:
        return read()
    except RecursionError:  # the caller's stack leaves too little room; a new thread has an empty one
        with ThreadPoolExecutor(1, thread_name_prefix="constrain-read") as apart:
            return apart.submit(read).result()


def require_shallow(text: str) -> None:
    """Raises ``OutputValidationError`` for a JSON text of more than ``MAX_ANSWER_NESTING`` levels."""
    if text.count("[") + text.count("{") <= MAX_ANSWER_NESTING:
        return
    depth = 0
    for mark in _MARKS.finditer(text):
        if mark[0] in "[{":
            depth += 1
        elif mark[0] in "]}":
            depth -= 1
        if depth > MAX_ANSWER_NESTING:
            raise OutputValidationError(
                f"the answer is nested more than {MAX_ANSWER_NESTING} levels deep (MAX_ANSWER_NESTING), too deep to be "
                "read as a value; use a schema that does not refer to itself, or a smaller max_tokens",
                text=text,
            )
