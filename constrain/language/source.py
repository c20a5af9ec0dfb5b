"""What says what an answer is without JSON: the answer's value is its text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.language.grammar import Grammar


class Source(ABC):
    """Immutable and hashable; equal sources have the same grammar, and ``repr`` tells all others apart.

    Those that refer to what they do not hold say so by ``is_known_by_repr``.
    """

    __slots__ = ()

    def __deepcopy__(self, _: object) -> Source:
        """The source itself, which is immutable."""
        return self

    @abstractmethod
    def grammar(self) -> Grammar:
        """The language of the answer. Raises ``PatternError``, ``GrammarError`` and ``LimitError``."""

    @property
    def is_known_by_repr(self) -> bool:
        """Whether equal sources have equal grammars, so that what is compiled from one may be kept for the other."""
        return True

    def policies_in_force(self) -> Mapping[str, str | bool]:
        """The policies of ``compile`` that are in force in it, for reports."""
        return {}

    def closed(self) -> Source:
        """The same, with objects closed in all JSON Schemas that it is made of; for generation."""
        return self

    @abstractmethod
    def render(self) -> str:
        """A short text of it for the prompt."""

    @abstractmethod
    def describe(self) -> str:
        """The instruction that is added to the prompt, with that text."""
