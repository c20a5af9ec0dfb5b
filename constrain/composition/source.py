"""``sequence``, ``choice``, ``repeat`` and ``text``: compositions of parts, allowed wherever a schema is.

A part is a ``str``, which stands for itself; a ``Regex`` or a ``Lark``; a ``Grammar``, such as that of a constraint
with policies of its own; a JSON Schema (dict or bool), or a type that ``pydantic.TypeAdapter`` takes; or the result of
these functions. Schemas have the default policies; ``generate`` and the functions like it close objects, ``compile``
does not.

Regular parts (texts, ``Regex``, ``text`` and compositions of these) become one expression: the language is exactly
their concatenation, alternation and repetition. Next to a schema or a grammar, the longest match decides, as in a Lark
grammar, and a composition whose longest match may lead into a dead end is refused. Text that a part ignores
(``%ignore``) is ignored inside the part only.

The value of an answer is its text. Errors in a part are raised when the composition is compiled; only values of a wrong
type raise at once.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from constrain.composition.labels import label
from constrain.composition.nodes import Composed, InSequence, OneOf, Repeated
from constrain.composition.parts import FreeText, Part, Schema, as_part, check_number
from constrain.notebooks import shorten
from constrain.regex.source import Regex

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from constrain.language.grammar import Grammar
    from constrain.language.source import Source
    from constrain.language.special import Tokens


_INSTRUCTION = "Answer with a text of this form and nothing else; what is in brackets says what stands there"


@dataclass(frozen=True, slots=True, repr=False)
class Composition(Composed):
    """The result of ``sequence``, ``choice``, ``repeat`` and ``text``."""

    def __repr__(self) -> str:
        """Returns the call that makes it, without its end if it is long."""
        return shorten(label(self))

    def grammar(self) -> Grammar:
        """Returns the grammar. Raises the errors of its parts, ``GrammarError`` and ``LimitError``."""
        from constrain.composition.grammar import composition_grammar

        return composition_grammar(self)

    def policies_in_force(self) -> Mapping[str, str | bool]:
        """Returns the policies of its schemas, if it has any."""
        parts = [part for part in self.inner().values() if not isinstance(part, str)]
        return {name: value for part in parts for name, value in part.policies_in_force().items()}

    def closed(self) -> Composition:
        """Returns the composition with closed objects in all its schemas."""
        return self._changed(lambda part: part.closed())

    def bound(self, tokens: Tokens) -> Composition:
        """Returns the composition with all its parts for a vocabulary."""
        return self._changed(lambda part: part.bound(tokens))

    def _changed(self, change: Callable[[Source], Source]) -> Composition:
        """Returns the composition with other parts; literals stay."""

        def changed(part: Part) -> Part:
            return part if isinstance(part, str) else change(part)

        match self.node:
            case InSequence(parts) | OneOf(parts):
                return replace(self, node=replace(self.node, parts=tuple(map(changed, parts))))
            case Repeated(part, _, _, separator):
                return replace(self, node=replace(self.node, part=changed(part), separator=changed(separator)))
        return self

    def render(self) -> str:
        """Returns the parts one after the other; all but literals are in brackets."""
        match self.node:
            case InSequence(parts):
                return "".join(map(_rendered, parts))
            case OneOf(parts):
                return "\n".join(["[one of these:", *(f"- {_rendered(part)}" for part in parts), "]"])
            case Repeated(part, minimum, maximum, separator):
                most = "or more" if maximum is None else f"to {maximum}"
                written = json.dumps(separator) if isinstance(separator, str) else _rendered(separator)
                between = f", with {written} between" if separator else ""
                return f"[{minimum} {most} times{between}: {_rendered(part)}]"
            case FreeText(until, max_length):
                length = "" if max_length is None else f" of at most {max_length} characters"
                return f"[any text{length}{'' if until is None else f' without {json.dumps(until)}'}]"

    def describe(self) -> str:
        """Returns the instruction that is added to the prompt."""
        return f"{_INSTRUCTION}:\n{self.render()}"


def sequence(*parts: object) -> Source:
    r"""Returns a composition of the parts one after the other, with nothing between them.

    >>> from constrain import Vocabulary, compile
    >>> from constrain.parts import sequence, text
    >>> vocabulary = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])
    >>> reasoned = compile(sequence(text(until="\n"), "\n", {"type": "integer"}), vocabulary)
    >>> reasoned.accepts("six times seven\n42"), reasoned.accepts("42")
    (True, False)

    Raises TypeError for a value that cannot be a part, SchemaError, GrammarError, LimitError.
    """
    return Composition(InSequence(_parts("sequence", parts)))


def choice(*parts: object) -> Source:
    """Returns a composition of any one of the parts; at least one part is required.

    >>> from constrain import Regex, Vocabulary, compile
    >>> from constrain.parts import choice
    >>> vocabulary = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])
    >>> compile(choice(Regex("[0-9]+"), "none"), vocabulary).accepts("none")
    True

    Raises ValueError for no parts, TypeError for a value that cannot be a part, SchemaError, GrammarError, LimitError.
    """
    if not parts:
        raise ValueError("choice needs at least one part")
    return Composition(OneOf(_parts("choice", parts)))


def repeat(part: object, min: int = 0, max: int | None = None, *, separator: object = "") -> Source:  # noqa: A002
    r"""Returns a composition of a part repeated ``min`` to ``max`` times, with ``separator``, a part, in between.

    >>> from constrain import Vocabulary, compile
    >>> from constrain.parts import repeat
    >>> vocabulary = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])
    >>> lines = compile(repeat({"type": "object"}, 1, separator="\n"), vocabulary)
    >>> lines.accepts('{}\n{"a": 1}'), lines.accepts("")
    (True, False)

    Raises ValueError for negative numbers and for ``max`` below ``min``, TypeError for a value that cannot be a part,
    SchemaError, GrammarError, LimitError.
    """
    check_number("min", min)
    if max is not None:
        check_number("max", max)
        if min > max:
            raise ValueError(f"max must be at least min: {max} is less than {min}")
    return Composition(Repeated(as_part(part, "repeat: part"), min, max, as_part(separator, "repeat: separator")))


def text(*, until: str | None = None, max_length: int | None = None) -> Source:
    """Returns free text of at most ``max_length`` characters, up to the delimiter ``until``, which is not part of it.

    The text and the delimiter after it contain the delimiter only at the end. The text may be empty.

    >>> from constrain import Vocabulary, compile
    >>> from constrain.parts import sequence, text
    >>> vocabulary = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])
    >>> quoted = compile(sequence("<<", text(until=">>", max_length=80), ">>"), vocabulary)
    >>> quoted.accepts("<<a > b>>"), quoted.accepts("<<a>>>"), quoted.accepts("<<a>>b>>")
    (True, False, False)

    Raises ValueError for an empty delimiter or a negative length, TypeError for arguments of another type.
    """
    return Composition(FreeText(until, max_length))


def _parts(name: str, given: tuple[object, ...]) -> tuple[Part, ...]:
    return tuple(as_part(part, f"part {index} of the {name}") for index, part in enumerate(given, start=1))


def _rendered(part: Part) -> str:
    """Returns the text of a part inside another one."""
    if isinstance(part, str):
        return part
    if isinstance(part, Composition):
        return part.render()
    kind = "text matching" if isinstance(part, Regex) else "JSON:" if isinstance(part, Schema) else "text of this kind:"
    return f"[{kind} {part.render()}]"
