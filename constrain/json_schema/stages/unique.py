"""``x-unique-by``: a member that differs in all items of an array."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from constrain.json_schema.stages.bounds import read_value

if TYPE_CHECKING:
    from constrain.json_schema.stages.bounds import Known
    from constrain.json_schema.stages.places import Place

MAX_REQUIRED = 256
"""Greatest `minItems` of an array whose items differ in a member (`x-unique-by`). Beyond: `UnsupportedSchemaError`."""


@dataclass(eq=False)
class Unique:
    """The rule that ``target``, a member of the items of ``array``, differs in all of them.

    ``pointer``: of the keyword in the schema. ``number``: that of the member as a source. ``items``: arrays around it.
    ``least``: items that are required; of them, ``stand_ins`` has the member of each one whose value has to wait for
    those of earlier items. It costs at least as many tokens as the member will: as many bytes as the longest one of the
    shortest values, one of which is left.
    """

    pointer: str
    array: Place
    target: Place
    items: int
    least: int
    number: int = 0
    stand_ins: list[dict[str, Any]] = field(default_factory=list)

    def others(self, known: Known, items: tuple[int | None, ...]) -> list[bytes]:
        """Returns the JSON texts of the member in earlier items, or in all; ``items``: those around the member."""
        depth = self.items - 1
        own = items[depth]
        return [
            text
            for number, indices, text in known
            if number == self.number and len(indices) == self.items and indices[:depth] == items[:depth]
            if own is None or indices[depth] < own
        ]

    def is_repeated(self, known: Known, items: tuple[int | None, ...]) -> bool:
        """Returns whether two of the earlier items are equal."""
        texts = self.others(known, items)
        return len({read_value(text) for text in texts}) < len(texts)

    def stand_in(self, known: Known, items: tuple[int | None, ...]) -> dict[str, Any] | None:
        """Returns the schema of the member in an item before which other items have to come; ``None`` for others."""
        own = items[self.items - 1]
        return self.stand_ins[own] if own is not None and own > len(self.others(known, items)) else None
