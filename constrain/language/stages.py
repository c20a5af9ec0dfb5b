"""Languages whose later part depends on values that were written before: a grammar for each stage of a text.

    text       {"start": 17, "end": 2
    stages     |  worst case  | start is 17

A text begins in the grammar of the worst case: each field that depends on another one has the values that are left
whatever the other one becomes. When the other one is complete, the grammar with its value takes over. So a text that
can be completed within a number of tokens can still be completed within it after every stage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from constrain import kernel
    from constrain.language.grammar import Grammar


DATA = "$data"
"""The only key of a reference to another value of the answer, in place of a JSON Schema keyword's value."""

GIVEN = "given"
"""The member of ``x-one-of`` with such references: values of other columns in the same row of a table."""

UNIQUE_BY = "x-unique-by"
"""The keyword of an array with the pointer to a member of its items that has another value in each of them."""

REFERS = "x-refers"
"""The keyword of a value that is one of those in an array written before, with their pointer; ``*``: any item."""


def may_mention_data(text: str) -> bool:
    """Returns whether ``mentions_data`` may be true of a JSON text, whose keys may be spelled with escapes."""
    return any(f'"{key}"' in text for key in (DATA, GIVEN, UNIQUE_BY, REFERS)) or "\\u" in text


def mentions_data(document: object) -> bool:
    """Returns whether a JSON value has ``$data``, ``given``, ``x-unique-by`` or ``x-refers``; few schemas have it."""
    return any(DATA in part or UNIQUE_BY in part or REFERS in part or has_given(part) for part in objects_in(document))


def has_given(part: dict[str, Any]) -> bool:
    """Returns whether an object, if it is a schema, has ``x-one-of`` with ``given``."""
    keyword = part.get("x-one-of")
    return isinstance(keyword, dict) and GIVEN in keyword


def objects_in(document: object) -> Iterator[dict[str, Any]]:
    """Yields all objects in a JSON value, once each."""
    waiting = [document]
    seen: set[int] = set()
    while waiting:
        part = waiting.pop()
        if isinstance(part, (dict, list)) and id(part) not in seen:
            seen.add(id(part))
            if isinstance(part, list):
                waiting.extend(part)
            else:
                yield part
                waiting.extend(part.values())


class Stage(Protocol):
    """What is known of one text, read up to a byte. Immutable."""

    @property
    def key(self) -> Hashable:
        """Identifies the grammar in force: stages of one language with equal keys have the same one."""

    @property
    def may_refuse(self) -> bool:
        """Whether a later grammar may refuse what the one in force allows behind the value that is being written."""

    @property
    def repeats(self) -> int:
        """How often the string that is being written will have to be written again."""

    @property
    def begun(self) -> int:
        """The number of strings that have to be written again and have begun; each gets its share of the tokens."""

    @property
    def is_partly_written(self) -> bool:
        """Whether some of the string that has to be written again is there."""

    def fixed(self, rest: bytes) -> Stage | None:
        """Returns the stage in which the string that has to be written again is that of a text with this rest.

        ``None`` if the value does not end in the rest.
        """

    def read(self, data: bytes) -> Stage:
        """Returns the stage after further bytes of the text, which the grammar in force allows."""

    def emitted(self) -> Grammar | kernel.Draft:
        """Returns the grammar in force: that of the whole text, from its beginning."""


class Stages(Protocol):
    """The stages of one language."""

    def begin(self) -> Stage:
        """Returns the stage at the beginning of a text."""

    def settled(self, text: bytes) -> Grammar:
        """Returns a grammar without stages, in which a finished text is judged: all of its values are known.

        A text with the same values in the places that others depend on is one of this language if the grammar has it.
        """
