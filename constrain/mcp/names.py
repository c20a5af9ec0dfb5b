"""Names of tools: those of the servers, made different from each other, and such as models may call."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_LENGTH = 128
"""Characters of a tool's name, as in the Model Context Protocol."""

_NOT_ALLOWED = re.compile(r"[^a-zA-Z0-9_./-]")


def different_names(tools: Sequence[tuple[str, str]]) -> list[str]:
    """Returns a name for each tool, given as the name of its server and its own name.

    A name that several tools have gets the server's name in front; characters that names cannot have become ``_``; and
    what is still equal is numbered. The same tools always get the same names.

    >>> different_names([("files", "read"), ("mail", "read"), ("mail", "send/now")])
    ['files_read', 'mail_read', 'send/now']
    """
    wished = [_allowed(name) for _, name in tools]
    counts = Counter(wished)
    pairs = zip(tools, wished, strict=True)
    longer = [name if counts[name] == 1 else _allowed(f"{server}_{name}") for (server, _), name in pairs]
    return _numbered(longer)


def _allowed(name: str) -> str:
    return _NOT_ALLOWED.sub("_", name)[:MAX_LENGTH] or "_"


def _numbered(names: Iterable[str]) -> list[str]:
    names = list(names)
    taken = set(names)
    seen: set[str] = set()
    result = []
    for name in names:
        new, number = name, 1
        while new in seen or (number > 1 and new in taken):
            number += 1
            ending = f"_{number}"
            new = name[: MAX_LENGTH - len(ending)] + ending
        seen.add(new)
        result.append(new)
    return result
