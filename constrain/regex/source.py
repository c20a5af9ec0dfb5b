"""``Regex``: a regular expression for answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import get_args

from constrain import kernel
from constrain.errors import PatternError
from constrain.language.grammar import Capture, Grammar, GrammarBuilder
from constrain.language.source import Source
from constrain.language.tree import EMPTY_TEXT, Complement, Intersection
from constrain.regex.named_groups import has_named_groups
from constrain.regex.parsing.parser import parse_pattern
from constrain.regex.parsing.scanner import Dialect
from constrain.work import asked

_INSTRUCTION = "Answer with a text that matches this regular expression"


@dataclass(frozen=True, slots=True, repr=False)
class Regex(Source):
    r"""A regular expression that the whole answer matches; ``compile`` and ``generate`` take it instead of a schema.

    Args:
        pattern: the regular expression.
        dialect: its syntax: "rust" (the ``regex`` crate), "ecma" (ECMA-262 with the flag ``u``, as in JSON Schema) or
            "python" (``re``). All of them refuse constructs without a regular language, such as backreferences. Lazy
            quantifiers make no difference to whole texts; possessive ones are refused.

    Named groups are captures (``Constraint.captures``, ``Completion.captures``), with the texts that ``re`` and
    ``regex`` give them, and all of them in a repetition; a pattern with lookaround has none.

    Raises ``PatternError`` with a column for a pattern that cannot be read, ``ValueError`` for another dialect. A
    pattern that matches no text raises ``PatternError`` when it is compiled.

    >>> from constrain import Regex, Vocabulary, compile
    >>> vocabulary = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])
    >>> plate = compile(Regex(r"[A-Z]{1,3}-\d{4}"), vocabulary)
    >>> plate.accepts("AB-1234"), plate.accepts("AB-1234 ")
    (True, False)
    """

    pattern: str
    dialect: Dialect = "rust"

    def __post_init__(self) -> None:
        if not isinstance(self.pattern, str):
            raise TypeError(f"pattern must be a str, not {self.pattern!r}")
        if self.dialect not in get_args(Dialect):
            raise ValueError(f"dialect must be one of {', '.join(map(repr, get_args(Dialect)))}, not {self.dialect!r}")
        try:
            parse_pattern(self.pattern, self.dialect, all_rust=True)
        except PatternError as error:
            others = [
                repr(other) for other in get_args(Dialect) if other != self.dialect and _reads(other, self.pattern)
            ]
            if not others:
                raise
            known = f"the pattern is one of the dialect {' or '.join(others)}"
            raise PatternError(f"{error.message}; {known}", column=error.column) from error

    def grammar(self) -> Grammar:
        """Returns one terminal, optional if the pattern matches the empty text.

        Raises ``PatternError`` if the pattern matches no text.
        """
        expression = parse_pattern(self.pattern, self.dialect, all_rust=True)
        builder = GrammarBuilder()
        start = builder.rule("start")
        alternatives: list[list[int]] = []
        if asked(kernel.matches, expression, b""):
            alternatives.append([])
            expression = Intersection((expression, Complement(EMPTY_TEXT)))
        if not asked(kernel.is_empty, expression):
            alternatives.append([builder.terminal("pattern", expression)])
        if not alternatives:
            raise PatternError(f"the pattern {self.pattern!r} matches no text at all")
        builder.define(start, alternatives)
        grammar = builder.build()
        if not has_named_groups(self.pattern, self.dialect):
            return grammar
        named = replace(grammar.rules[0], capture=Capture(pattern=(self.pattern, self.dialect)))
        return replace(grammar, rules=(named,))

    @property
    def may_capture(self) -> bool:
        """Whether the pattern has named groups."""
        return has_named_groups(self.pattern, self.dialect)

    def render(self) -> str:
        """Returns the pattern."""
        return self.pattern

    def describe(self) -> str:
        """Returns the instruction that is added to the prompt."""
        return f"{_INSTRUCTION}: {self.pattern}"


def _reads(dialect: Dialect, pattern: str) -> bool:
    try:
        parse_pattern(pattern, dialect, all_rust=True)
    except PatternError:
        return False
    return True
