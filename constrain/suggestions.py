"""Suggestions for unknown names."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def closest(name: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """Returns the known name most similar to an unknown one; ``None`` if none is similar enough.

    Case, ``_`` and ``-`` make no difference. ``likeness``: the least similarity (``difflib``), from 0 to 1.

    >>> closest("any_of", ["allOf", "anyOf"], 0.8)
    'anyOf'
    """
    letters = _letters(name)
    by_letters = {_letters(each): each for each in known}
    # The lengths bound the similarity of two texts; difflib would take longer to find that out.
    possible = [each for each in by_letters if 2 * min(len(each), len(letters)) >= likeness * len(each + letters)]
    close = get_close_matches(letters, possible, n=1, cutoff=likeness)
    return by_letters[close[0]] if close else None


def _letters(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns a question with the most similar known name; empty if none is similar.

    >>> did_you_mean("temprature", ["temperature", "top_p"])
    ' (did you mean temperature?)'
    """
    close = closest(name, known)
    return "" if close is None else f" (did you mean {close}?)"


def unknown_names(what: str, names: Iterable[str], known: Iterable[str], instead: Mapping[str, str] = {}) -> str:
    """Returns a message about unknown names, with suggestions; and with the known names, if one has no suggestion.

    ``instead``: what to write in place of names that other programs have.

    >>> unknown_names("options", ["stream", "seeed"], ["seed"], {"stream": "call constrain.stream"})
    'unknown options: seeed (did you mean seed?), stream (call constrain.stream)'
    """
    there = sorted(known)
    hints = {name: f" ({instead[name]})" if name in instead else did_you_mean(name, there) for name in sorted(names)}
    listed = ", ".join(f"{name}{hint}" for name, hint in hints.items())
    return f"unknown {what}: {listed}" + ("" if all(hints.values()) else f"; there are {', '.join(there)}")
