"""Grammars inside and beside a grammar text, which rules refer to by name (``@name``).

A named grammar is a grammar text or a JSON Schema, read when a rule refers to it. Its rules become rules of the whole
language, so grammars may refer to one another in circles.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from constrain.errors import GrammarError, LimitError, PatternError
from constrain.language.tree import inside
from constrain.lark.embedded import named_schema_grammar
from constrain.lark.reading.places import error_at
from constrain.lark.reading.reader import read
from constrain.lark.reading.syntax import Parametric, Reference, Symbol, Syntax
from constrain.lark.terminals import check_defined

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain.language.grammar import Grammar
    from constrain.lark.named import NamedGrammars


class Library:
    """Named grammars; errors in one of them name it."""

    def __init__(self, grammars: NamedGrammars) -> None:
        self._grammars = grammars

    def check(self, text: str, reference: Reference) -> None:
        """Raises GrammarError if there is no grammar of that name."""
        if reference.name not in self._grammars:
            known = ", ".join(f"@{name}" for name in self._grammars) or "none"
            message = f"there is no grammar @{reference.name}; the named grammars are: {known}"
            raise error_at(text, reference.at, message)

    def grammar(self, name: str) -> Syntax | Grammar:
        """Returns a named grammar: the content of a text, or the grammar of a JSON Schema's values.

        Raises GrammarError, PatternError and LimitError with the place in its text.
        """
        found = self._grammars[name]
        with errors_in(name):
            if found.is_schema:
                return named_schema_grammar(found.text)
            syntax = read(found)
            check_inner(syntax, 0)
            return syntax


@contextmanager
def errors_in(name: str) -> Iterator[None]:
    """Names a named grammar in the errors of a block; errors of the grammar without a name stay as they are."""
    try:
        yield
    except (GrammarError, PatternError, LimitError) as error:
        if not name:
            raise
        message = f"in the grammar @{name}: {error.message}"
        raise type(error)(message, line=error.line, column=error.column) from error


def check_inner(syntax: Syntax, at: int) -> None:
    """Raises GrammarError if a grammar inside another cannot be read there; ``at`` is its place."""
    if "start" not in syntax.rules:
        raise error_at(syntax.text, at, "this grammar has no rule start; rules outside it are not known inside")
    if syntax.rules["start"].parametric:
        message = "the rule start of a grammar has no value; begin with a rule such as start: first::0"
        raise error_at(syntax.text, syntax.rules["start"].at, message)
    if syntax.settings.allow_initial_skip:
        message = "allow_initial_skip is for the outermost grammar only; leave it out here"
        raise error_at(syntax.text, at, message)


def check_names(syntax: Syntax, library: Library) -> None:
    """Raises GrammarError for a rule, terminal or grammar that is named and not defined."""
    for definition in (*syntax.rules.values(), *syntax.ignored):
        ends = (end for end in (definition.options.suffix, definition.options.stop) if end is not None)
        for node in (*inside(definition.body), *ends):
            match node:
                case Symbol():
                    check_defined(syntax, node)
                case Parametric(name, _, at):
                    check_defined(syntax, Symbol(name, at))
                case Reference():
                    library.check(syntax.text, node)
