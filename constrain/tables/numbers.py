"""Numbers of a table: exact, each with one spelling."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from constrain import kernel
from constrain.language.tree import LiteralTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MAX_TABLE_DIGITS = 4000
"""Digits of a number in a table, those before and those after the point. Beyond: SchemaError."""


class NumberTable(Sequence["int | Decimal"]):
    """Different numbers, in no order; equal by content. ``expression``: their spellings, without exponents."""

    __slots__ = ("expression",)

    def __init__(self, expression: LiteralTable) -> None:
        self.expression = expression

    @classmethod
    def of(cls, spelled: Iterable[str]) -> NumberTable:
        """Returns the numbers with these spellings, made by ``spell_number``."""
        return cls(LiteralTable.of(kernel.Texts(spelled)))

    def where(self, *tests: Callable[[int | Decimal], bool]) -> NumberTable:
        """Returns the numbers for which all functions are true."""
        pairs = list(zip(self, self.expression.texts.lines().decode().split(), strict=True))
        for admits in tests:
            pairs = [pair for pair in pairs if admits(pair[0])]
        return self if len(pairs) == len(self) else NumberTable.of(text for _, text in pairs)

    def in_both(self, other: NumberTable) -> NumberTable:
        """Returns the numbers that both have."""
        return NumberTable(LiteralTable.of(self.expression.texts.in_both(other.expression.texts)))

    @property
    def are_whole(self) -> bool:
        """Whether all numbers are integers."""
        return b"." not in self.expression.texts.lines()

    def __len__(self) -> int:
        """Returns how many numbers there are."""
        return len(self.expression.texts)

    def __getitem__(self, number: Any) -> Any:
        """Returns one number, by its place among the spellings."""
        text = self.expression.texts[number]
        return Decimal(text.decode()) if b"." in text else int(text)

    def __iter__(self) -> Iterator[int | Decimal]:
        """Yields all numbers."""
        texts = self.expression.texts.lines().decode().split()
        return map(int, texts) if self.are_whole else (Decimal(text) if "." in text else int(text) for text in texts)

    def __contains__(self, value: object) -> bool:
        """Returns whether a number is in the table."""
        assert isinstance(value, int | Decimal)
        return self.expression.texts.find(spell_number(value).encode()) is not None

    def __eq__(self, other: object) -> bool:
        """Returns whether both are tables of the same numbers."""
        return isinstance(other, NumberTable) and self.expression == other.expression

    def __hash__(self) -> int:
        """Returns a hash of the content."""
        return hash(self.expression)


def spell_number(value: float | Decimal) -> str:
    """Returns the one spelling of a finite number. Raises ValueError for others, and for too many digits."""
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float) and "e" not in (text := float.__repr__(value)) and "n" not in text:  # 1e-07, inf, nan
        return "0" if value == 0 else text.removesuffix(".0")
    exact = Decimal(text) if isinstance(value, float) else value
    if not exact.is_finite():
        raise ValueError(f"{value} is no number that JSON has")
    exponent = exact.as_tuple().exponent
    assert isinstance(exponent, int)
    if max(exact.adjusted(), -exponent) >= MAX_TABLE_DIGITS:
        raise ValueError(f"a number has more digits than MAX_TABLE_DIGITS = {MAX_TABLE_DIGITS}; round it")
    text = format(exact, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
