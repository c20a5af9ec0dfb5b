"""Sources: languages that are not JSON Schemas; an answer's value is its text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from constrain.notebooks import one_line, preformatted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.language.grammar import Grammar
    from constrain.language.special import Tokens


class Source(ABC):
    """A language for answers: a ``Regex``, a ``Lark``, or a composition that ``sequence`` or the like returns.

    A frozen dataclass; sources with equal fields have the same grammar. Sources that refer to outside objects override
    ``may_be_cached``.
    """

    __slots__ = ()
    __repr__ = one_line

    def __deepcopy__(self, _: object) -> Source:
        """Returns the source itself, which is immutable."""
        return self

    @abstractmethod
    def grammar(self) -> Grammar:
        """Returns the grammar of the answers. Raises ``PatternError``, ``GrammarError`` and ``LimitError``."""

    @property
    def may_be_cached(self) -> bool:
        """Returns whether sources with equal fields have equal grammars, so that caches may share them."""
        return True

    @property
    def may_capture(self) -> bool:
        """Returns whether answers may have captures; if not, nobody looks for them."""
        return True

    def policies_in_force(self) -> Mapping[str, str | bool]:
        """Returns the policies of ``compile`` that are in force, for reports."""
        return {}

    def closed(self) -> Source:
        """Returns the source with closed objects in all its JSON Schemas, for generation."""
        return self

    def bound(self, tokens: Tokens) -> Source:  # noqa: ARG002
        """Returns the source for a vocabulary; only sources in which texts may name tokens depend on it."""
        return self

    @abstractmethod
    def render(self) -> str:
        """Returns a short text for the prompt."""

    @abstractmethod
    def describe(self) -> str:
        """Returns the instruction that is added to the prompt; it contains the short text."""

    def for_question(self, question: str) -> Source:  # noqa: ARG002
        """Returns a source of which the prompt shows what a question needs; by default, all."""
        return self


class GrammarSource(Source):
    """A grammar given as ``text``, with a ``description`` that prompts may show instead.

    ``kind``: the name of the syntax, as instructions to the model have it.
    """

    __slots__ = ()

    kind: ClassVar[str]
    text: str
    description: str

    def render(self) -> str:
        """Returns the description, or else the grammar's text."""
        return (self.description or self.text).strip("\n")

    def _repr_html_(self) -> str:
        """Returns the grammar's text for notebooks."""
        return preformatted(self.text)

    def describe(self) -> str:
        """Returns the instruction that is added to the prompt."""
        about = "of this kind" if self.description else f"that this {self.kind} grammar generates"
        return f"Answer with a text {about}, and nothing else:\n{self.render()}"
