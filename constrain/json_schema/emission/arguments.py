"""Forms of the arguments of a call: a JSON object, an outermost object in another form, or ``elements``.

Where only the outermost object differs, and perhaps the spelling of ``true``, ``false`` and ``null``, all inner values
are JSON. In every form, the automata of objects stay unchanged, and their lexemes are replaced.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from constrain.errors import UnsupportedSchemaError
from constrain.json_schema.emission.scalars import string_kind
from constrain.json_schema.shapes.strings import content
from constrain.json_schema.spelling.punctuation import Punctuation
from constrain.language.grammar import Role, Terminal
from constrain.language.tree import (
    ANY_BYTE,
    ANY_BYTES,
    EMPTY_TEXT,
    Complement,
    Expression,
    Intersection,
    Literal,
    LiteralSet,
    Repetition,
)
from constrain.regex.anchors import sequence, union
from constrain.regex.spelling import out_of_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.json_schema.emission.elements import Elements
    from constrain.json_schema.shapes.strings import StringShape


@dataclass(frozen=True, slots=True)
class Outermost:
    """An object without brackets: ``before_key key after_key value behind_value``, with ``between`` two members.

    ``identifiers``: keys must be names of variables. ``raw_strings``: string members are written without quotes and
    escapes, and do not contain ``behind_value``.
    """

    before_key: str = ""
    after_key: str = ""
    behind_value: str = ""
    between: str = ""
    identifiers: bool = False
    raw_strings: bool = False

    def punctuation(self) -> Punctuation:
        """Returns the lexemes of the form; empty ones are left out of the grammar."""
        nothing = Terminal("", EMPTY_TEXT)
        between = Terminal(self.between, Literal(self.between.encode()), role=Role.NONE) if self.between else nothing
        return Punctuation(nothing, nothing, nothing, nothing, nothing, nothing, between, nothing, EMPTY_TEXT, None)

    def key(self, name: str) -> bytes:
        """Returns the spelling of a key. Raises UnsupportedSchemaError."""
        if self.identifiers and not (name.isidentifier() and name.isascii()):
            raise UnsupportedSchemaError(
                f"{name!r:.80} is not an identifier, so it cannot be an argument of a call written as in Python",
                pointer="",
            )
        if not name or (self.after_key and (self.after_key[0] in name)) or "\n" in name or not name.isprintable():
            raise UnsupportedSchemaError(
                f"{name!r:.80} cannot be an argument name, which is written between "
                f"{self.before_key!r} and {self.after_key!r}",
                pointer="",
            )
        return f"{self.before_key}{name}{self.after_key}".encode()

    def key_terminal(self, name: str) -> Terminal:
        """Returns the terminal of a key. Raises UnsupportedSchemaError."""
        return Terminal(f"argument {name}", Literal(self.key(name)), "", Role.LABEL, name.encode())

    def behind_terminal(self) -> Terminal:
        """Returns the terminal of the end of a value that is written as JSON."""
        return Terminal(self.behind_value, Literal(self.behind_value.encode()))

    def raw(self, shapes: tuple[StringShape, ...]) -> Terminal:
        """Returns the terminal of raw strings and the end of the value. Raises UnsupportedSchemaError if none fits."""
        from constrain.json_schema.spelling.languages import has_text

        end = self.behind_value.encode()
        texts: list[Expression] = []
        for shape in shapes:
            if shape.values is None:
                texts.append(out_of_json(content(shape)))
            else:
                texts.append(LiteralSet(tuple(value.encode("utf-8", "surrogatepass") for value in shape.values)))
        early = sequence(ANY_BYTES, Literal(end), Repetition(ANY_BYTE, 1, None))
        expression = Intersection((sequence(union(texts), Literal(end)), Complement(early)))
        if not has_text((expression,), 0, None):
            raise UnsupportedSchemaError(
                f"every string allowed here contains {self.behind_value!r}, which ends a value in this form",
                pointer="",
            )
        return Terminal("string", expression, kind=string_kind(shapes, raw=True))


@dataclass(frozen=True, slots=True)
class ArgumentForm:
    """The form in which the arguments of a call are written, as JSON by default.

    ``outermost``: the form of the outermost object. ``elements``: the notation, if the arguments are elements.
    ``constants``: other spellings of ``true``, ``false`` and ``null``. ``any_escapes``: strings may have all escapes of
    JSON; otherwise they have canonical escapes, whatever the policy.
    """

    outermost: Outermost | None = None
    constants: Mapping[bytes, bytes] = field(default_factory=dict)
    any_escapes: bool = True
    elements: Elements | None = None

    def of_scalar(self, terminal: Terminal) -> Terminal:
        """Returns the terminal with the form's own constants; strings in quotes stay unchanged."""
        match terminal.expression:
            case Literal(text) if text in self.constants:
                return replace(terminal, expression=Literal(self.constants[text]))
            case LiteralSet(texts) if not self.constants.keys().isdisjoint(texts):
                return replace(terminal, expression=LiteralSet(tuple(self.constants.get(text, text) for text in texts)))
        return terminal


JSON_ARGUMENTS = ArgumentForm()

PYTHON_ARGUMENTS = ArgumentForm(
    Outermost(after_key="=", between=", ", identifiers=True),
    {b"true": b"True", b"false": b"False", b"null": b"None"},
    any_escapes=False,
)
"""Keyword arguments. A string is spelled as in JSON, with escapes that mean the same in Python."""


def xml_arguments(before_key: str, after_key: str, behind_value: str) -> ArgumentForm:
    """Returns the form with an element for each argument: strings without quotes and escapes, other values as JSON."""
    return ArgumentForm(
        Outermost(before_key=before_key, after_key=after_key, behind_value=behind_value, raw_strings=True)
    )
