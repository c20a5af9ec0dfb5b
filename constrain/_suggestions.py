"""Names that do not exist, and those that were probably meant."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question about the name that is most like an unknown one; empty if none is.

    >>> did_you_mean("temprature", ["temperature", "top_p"])
    ' (did you mean temperature?)'
    """
    close = get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def unknown_names(what: str, names: Iterable[str], known: Iterable[str]) -> str:
    """A message about names that do not exist, with those that do."""
    there = sorted(known)
    listed = ", ".join(f"{name}{did_you_mean(name, there)}" for name in sorted(names))
    return f"unknown {what}: {listed}; there are {', '.join(there)}"
