"""Parts of compositions, apart from literals, ``Regex`` and ``Lark``: schemas, grammars and free text."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from constrain.errors import GrammarError, SchemaError
from constrain.language.digest import grammar_digest
from constrain.language.emptiness import productive_rules
from constrain.language.grammar import Grammar
from constrain.language.policies import policy_defaults
from constrain.language.schema_text import parse_schema, plain_schema, schema_text
from constrain.language.source import Source
from constrain.language.tree import ANY_BYTES, ANY_CHAR, Complement, Intersection, Literal, Repetition, Window
from constrain.regex.anchors import sequence, union

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.language.tree import Expression

_ANY_TEXT = Repetition(ANY_CHAR, 0, None)


@dataclass(frozen=True, slots=True)
class FreeText:
    """A part: any text that, with the delimiter after it, contains the delimiter only at its end."""

    until: str | None
    max_length: int | None

    def __post_init__(self) -> None:
        if self.until is not None and not isinstance(self.until, str):
            raise TypeError(f"until must be a str, not {self.until!r}")
        if self.until is not None:
            _check_encodable(self.until)
        if self.until == "":
            raise ValueError("until must not be empty; leave it out for any text")
        if self.max_length is not None:
            check_number("max_length", self.max_length)

    def expression(self) -> Expression:
        """Returns the texts after which the delimiter occurs for the first time."""
        expression: Expression = _ANY_TEXT
        if self.until is not None:
            # The delimiter occurs early if the text contains it, or if the text ends in the first k characters of a
            # delimiter whose other characters are also its first ones.
            until = self.until
            ends = [until[:k] for k in range(1, len(until)) if until.startswith(until[k:])]
            early = [sequence(ANY_BYTES, Literal(until.encode()), ANY_BYTES)]
            early += [sequence(ANY_BYTES, Literal(end.encode())) for end in ends]
            expression = Intersection((_ANY_TEXT, Complement(union(early))))
        return expression if self.max_length is None else Window(expression, ANY_CHAR, 0, self.max_length)


@dataclass(frozen=True, slots=True, repr=False)
class Schema(Source):
    """The JSON texts of a schema's values.

    ``text``: the schema as JSON; ``shown``: the schema as the prompt shows it; ``written``: the caller's schema.
    """

    text: str
    shown: str
    written: str
    close_objects: bool = False

    def grammar(self) -> Grammar:
        """Returns the grammar under the default policies, with keys apart from colons."""
        from constrain.json_schema.compiler import compile_schema

        return compile_schema(parse_schema(self.text), close_objects=self.close_objects, keys_apart=True).part

    def policies_in_force(self) -> Mapping[str, str | bool]:
        """Returns the default policies."""
        return policy_defaults(close_objects=self.close_objects) | {"close_objects": self.close_objects}

    def closed(self) -> Schema:
        """Returns the schema without undeclared keys."""
        return replace(self, close_objects=True)

    def render(self) -> str:
        """Returns the schema as a short text."""
        from constrain.json_schema.hint import render

        return render(plain_schema(parse_schema(self.shown)))

    def describe(self) -> str:
        """Returns the instruction that is added to the prompt."""
        return f"Answer with JSON in this format:\n{self.render()}"


@dataclass(frozen=True, slots=True, repr=False)
class Given(Source):
    """A ``Grammar`` of the caller; ``digest`` identifies it."""

    given: Grammar = field(repr=False, compare=False)
    digest: str

    def grammar(self) -> Grammar:
        """Returns the caller's grammar."""
        return self.given

    def render(self) -> str:
        """Returns the name of the grammar; its rules do not help a model."""
        return self.given.rules[0].name

    def describe(self) -> str:
        """Returns the instruction that is added to the prompt."""
        return f"Answer with a text of this kind, and nothing else: {self.render()}"


Part = str | Source
"""A literal, or an object with a language."""


def as_part(given: object, place: str) -> Part:
    """Returns a caller's part. Raises TypeError, SchemaError, GrammarError; ``place`` is its place, for messages."""
    if isinstance(given, str):
        _check_encodable(given)
    if isinstance(given, str | Source):
        return given
    if isinstance(given, Grammar):
        return _given_grammar(given, place)
    if isinstance(given, dict | bool):
        text = schema_text(given)
        parse_schema(text)
        return Schema(text, text, text)
    if given is None:
        raise _no_part(given, place, "for the value null, use type(None)")
    try:
        return Schema(schema_text(given, tightened=True), schema_text(given), _type_name(given))
    except SchemaError as error:
        raise _no_part(given, place, error.message) from error


def check_number(name: str, value: object) -> None:
    """Raises TypeError for a value that is not an int, ValueError for a negative one."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an int, not {value!r}")
    if value < 0:
        raise ValueError(f"{name} must be 0 or more, not {value}")


def _check_encodable(text: str) -> None:
    """Raises ValueError for a text with surrogates."""
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise ValueError(f"{text!r} contains a surrogate, which UTF-8 cannot encode")


def _given_grammar(grammar: Grammar, place: str) -> Given:
    if grammar.ignored:
        raise GrammarError(
            f"{place} is a Grammar with ignored terminals, which would be ignored in all parts; "
            "let its rules read them instead"
        )
    if 0 not in productive_rules(grammar.rules):
        raise GrammarError(f"{place} is a Grammar whose language is empty")
    return Given(grammar, grammar_digest(grammar).hex())


def _no_part(given: object, place: str, why: str) -> TypeError:
    return TypeError(
        f"{place} is {given!r}, which cannot be composed: a part is a text, a Regex, a Lark, a Gbnf, a "
        f"StructuralTag, a Grammar, a JSON Schema as a dict, a type, or a composition ({why})"
    )


def _type_name(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else repr(kind)
