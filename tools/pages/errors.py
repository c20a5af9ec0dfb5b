"""Writes docs/reference/errors.md: the tree of errors, when each is raised and what to do, from their docstrings."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

from constrain import errors
from tools.pages.markdown import NOTE, paragraphs

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADER = f"""# Errors

Every error that this package raises on purpose is a `ConstrainError`. Wrong arguments raise `TypeError` or
`ValueError`, as anywhere in Python; four of them raise a `ValueError` of their own. Files that cannot be read raise
`OSError`. The [server](http.md) answers with a status and a code in their place.

{NOTE}
"""


def page() -> str:
    """Returns the text of the page."""
    tree = inspect.cleandoc(errors.__doc__ or "").partition("\n\n")[2]
    parts = [_HEADER, f"```text\n{tree}\n```\n"]
    wrong = (kind for kind in ValueError.__subclasses__() if kind.__module__ == errors.__name__)
    for depth, error in (*_below(errors.ConstrainError, 2), *((2, kind) for kind in wrong)):
        parts.append(f"\n{'#' * depth} {error.__name__}\n\n" + "\n\n".join(_told(error)) + "\n")
    return "".join(parts)


def _below(error: type[Exception], depth: int) -> Iterator[tuple[int, type[Exception]]]:
    yield depth, error
    for kind in error.__subclasses__():
        if kind.__module__ == errors.__name__:
            yield from _below(kind, depth if error is errors.ConstrainError else depth + 1)


def _told(error: type[Exception]) -> Iterator[str]:
    """Yields what a docstring says; its attributes as a list."""
    text, _, attributes = inspect.cleandoc(error.__doc__ or "").partition("\nAttributes:\n")
    for paragraph in paragraphs(text):
        yield re.sub(r"(^| )What to do:", "\n\n**What to do:**", paragraph).strip()
    if attributes:
        yield "\n".join(_attributes(attributes))


def _attributes(text: str) -> Iterator[str]:
    """Yields a list item for each attribute; lines that are indented more go on with the one above them."""
    joined = inspect.cleandoc(text).replace("\n    ", " ")
    for line in joined.splitlines():
        name, _, meaning = line.partition(": ")
        yield f"- `{name}`: {' '.join(meaning.split())}".replace("``", "`")
