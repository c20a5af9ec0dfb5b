"""Sequences, choices and repetitions of parts, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Union

from constrain.errors import LimitError
from constrain.language.source import Source
from constrain.work import MAX_NESTING

if TYPE_CHECKING:
    from constrain.composition.parts import FreeText, Part


MAX_PARTS = 20_000
"""Parts of a composition, inner ones included. Beyond: LimitError."""


@dataclass(frozen=True, slots=True)
class InSequence:
    """Parts one after the other."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class OneOf:
    """Any one of the parts."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Repeated:
    """A part ``minimum`` to ``maximum`` times (``None``: without limit)."""

    part: Part
    minimum: int
    maximum: int | None
    separator: Part


Node = Union[InSequence, OneOf, Repeated, "FreeText"]


@dataclass(frozen=True, slots=True, repr=False)
class Composed(Source):
    """A composition as written by the caller. ``size`` and ``depth``: of all parts within it."""

    node: Node
    size: int = field(init=False, repr=False, compare=False)
    depth: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        inner = [part for part in self.inner().values() if isinstance(part, Composed)]
        object.__setattr__(self, "size", 1 + len(self.inner()) + sum(part.size for part in inner))
        object.__setattr__(self, "depth", 1 + max((part.depth for part in inner), default=0))
        if self.depth > MAX_NESTING:
            raise LimitError(
                f"compositions are nested more than {MAX_NESTING} deep (MAX_NESTING); make it "
                "flatter: put the inner parts into one sequence, or write a Lark grammar"
            )
        if self.size > MAX_PARTS:
            raise LimitError(
                f"a composition has more than {MAX_PARTS} parts (MAX_PARTS); use fewer, or write a Lark grammar"
            )

    def inner(self) -> dict[str, Part]:
        """Returns the parts, by their place."""
        match self.node:
            case InSequence(parts) | OneOf(parts):
                return {str(index): part for index, part in enumerate(parts)}
            case Repeated(part, _, _, separator):
                return {"part": part, "separator": separator}
        return {}
