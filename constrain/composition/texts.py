"""Regular parts, joined into one expression, with the text that errors show of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from constrain.language.grammar import Kind
from constrain.language.tree import EMPTY_TEXT, Expression, Literal, LiteralSet
from constrain.regex.anchors import repetition, sequence, union

if TYPE_CHECKING:
    from collections.abc import Callable

_LABEL_WIDTH = 80
"""Characters that an error shows of a part, or of several joined parts; longer ones are shortened."""


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """An expression, with its label and place for messages. ``Texts`` makes each only once."""

    expression: Expression
    label: str
    place: str
    kind: Kind = Kind.OTHER


NO_TEXT = Text(EMPTY_TEXT, "''", "")
"""The empty text."""


class Texts:
    """Texts made of texts, each made once: a text that repeats becomes one terminal."""

    def __init__(self) -> None:
        self._made: dict[tuple[object, ...], Text] = {}

    def joined(self, *parts: Text) -> Text:
        """Returns the texts one after the other."""
        some = [part for part in parts if part is not NO_TEXT]
        if len(some) < 2:
            return some[0] if some else NO_TEXT
        return self._once(
            ("joined", *some),
            lambda: Text(
                sequence(*(part.expression for part in some)),
                shortened(", ".join(part.label for part in some)),
                some[0].place,
                _kind(some),
            ),
        )

    def either(self, *parts: Text) -> Text:
        """Returns any one of several texts."""
        different = list(dict.fromkeys(parts))
        if len(different) == 1:
            return different[0]
        return self._once(
            ("either", *different),
            lambda: Text(
                _alternation([part.expression for part in different]),
                shortened(f"choice({', '.join(part.label for part in different)})"),
                different[0].place,
                _kind(different),
            ),
        )

    def repeated(self, part: Text, minimum: int, maximum: int | None) -> Text:
        """Returns a text ``minimum`` to ``maximum`` times."""
        if part is NO_TEXT or maximum == 0:
            return NO_TEXT
        if minimum == maximum == 1:
            return part
        return self._once(
            ("repeated", part, minimum, maximum),
            lambda: Text(
                repetition(part.expression, minimum, maximum),
                shortened(f"repeat({part.label}, {minimum}, {maximum})"),
                part.place,
                part.kind,
            ),
        )

    def _once(self, key: tuple[object, ...], make: Callable[[], Text]) -> Text:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


def _kind(parts: list[Text]) -> Kind:
    """Returns the kind of a terminal that joins some texts: an answer cuts it if there is free text in it."""
    return Kind.PROSE if any(part.kind == Kind.PROSE for part in parts) else Kind.OTHER


def shortened(label: str) -> str:
    """Returns a label of limited length: the two ends, which meet other parts."""
    half = _LABEL_WIDTH // 2
    return label if len(label) <= _LABEL_WIDTH else f"{label[:half]}...{label[-half:]}"


def _alternation(parts: list[Expression]) -> Expression:
    """Returns any one of the parts; literals, perhaps thousands, become one leaf."""
    literals = [part.text for part in parts if isinstance(part, Literal)]
    if len(literals) < 2:
        return union(parts)
    others = [part for part in parts if not isinstance(part, Literal)]
    return union([LiteralSet(tuple(dict.fromkeys(literals))), *others])
