"""A value that is being written: what is complete in it, and the one part that is not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from constrain.types.answer_text import read_answer

if TYPE_CHECKING:
    from constrain.partial.scanner import Step

Kind = Literal["object", "array", "string", "other", "unseen"]

KINDS: dict[str, Kind] = {"{": "object", "[": "array", '"': "string"}
"""What begins with a character; numbers, ``true``, ``false`` and ``null`` are ``other``, and what is nested too deeply
to be looked into is ``unseen``."""


class Whole(NamedTuple):
    """A complete value in an object or array: its key or position, and its JSON text."""

    step: Step
    text: str


@dataclass(slots=True, eq=False)
class Written:
    """A value that is not complete.

    Attributes:
        kind: what it is.
        text: the string so far, if it is one.
        complete: its complete parts, in the order of the text.
        step: key or position of the part that is being written; None if there is none.
        part: that part.
        values: values of complete parts that readers have made, by reader and number of the part.
    """

    kind: Kind
    text: str = ""
    complete: list[Whole] = field(default_factory=list)
    step: Step | None = None
    part: Written | None = None
    values: dict[tuple[int, int], Any] = field(default_factory=dict)

    def plain(self) -> Any:
        """Returns the value so far as JSON has it: complete items of arrays, and members of objects that have begun.

        A number or constant that is not complete, and with it a member that has nothing else, is left out.
        """
        if self.kind == "string":
            return self.text
        values = [self._plain_value(number) for number in range(len(self.complete))]
        if self.kind == "array":
            return values
        found = {str(each.step): value for each, value in zip(self.complete, values, strict=True)}
        if self.part is not None and self.part.kind not in ("other", "unseen"):
            found[str(self.step)] = self.part.plain()
        return found

    def _plain_value(self, number: int) -> Any:
        key = (0, number)
        if key not in self.values:
            self.values[key] = read_answer(self.complete[number].text)
        return self.values[key]
