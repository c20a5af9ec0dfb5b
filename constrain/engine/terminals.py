"""Terminals as users see them: by name, and by the place in the schema that they come from."""

from __future__ import annotations

from typing import NamedTuple


class ExpectedTerminal(NamedTuple):
    """A terminal that could continue or begin where a text stops matching.

    Attributes:
        name: name of the terminal; in a Lark grammar, with line and column.
        pointer: JSON Pointer of its origin in the schema; ``""`` if unknown.
    """

    name: str
    pointer: str


def name_terminal(name: str, pointer: str) -> str:
    """A terminal as messages show it, with its place in the schema if that is known."""
    return f"{name} (from {pointer})" if pointer else name
