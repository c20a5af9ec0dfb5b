"""Rules that are one lexeme, which the options ``lazy``, ``suffix`` and ``stop`` end.

- ``[lazy]``: the lexeme ends where its expression matches first.
- ``[suffix=S]``: the same for the expression followed by S.
- ``[stop=S]``: the text up to S, which is no part of the rule. A token cannot be taken back here. So S either follows
  in the grammar, and both are read as with ``suffix``; or nothing follows, and the text has no S.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, NoReturn

from constrain import kernel
from constrain.errors import LimitError
from constrain.language.grammar import Capture
from constrain.language.tree import (
    ANY_BYTE,
    ANY_BYTES,
    ANY_CHAR,
    EMPTY_TEXT,
    Complement,
    Intersection,
    Literal,
    Repetition,
)
from constrain.lark.reading.places import error_at, placed
from constrain.lark.terminals import terminal_expression
from constrain.regex.anchors import sequence, union
from constrain.work import asked

if TYPE_CHECKING:
    from constrain.language.tree import Expression
    from constrain.lark.reading.syntax import Definition, Syntax

_SOME_BYTES = Repetition(ANY_BYTE, 1, None)


class Lexeme(NamedTuple):
    """The only lexeme of a rule: its texts, whether its first match ends it, and the names of its parts."""

    expression: Expression
    lazy: bool
    capture: Capture | None


def is_lexeme(definition: Definition) -> bool:
    """Returns whether options make a rule one lexeme."""
    options = definition.options
    of_lexemes = (options.lazy, options.suffix, options.stop, options.max_tokens, options.temperature)
    return any(option is not None for option in of_lexemes)


class Lexemes:
    """Makes the lexemes of rules; ``named``: the expressions of all terminals of the grammar."""

    def __init__(self, syntax: Syntax, named: dict[str, Expression]) -> None:
        self.syntax = syntax
        self.named = named

    def of(self, definition: Definition) -> Lexeme:
        """Returns the lexeme of a rule; of one with ``stop``, its text before the stop."""
        options = definition.options
        body = self._expression(definition.body)
        if options.stop is not None:
            if is_empty_text(stop := self._expression(options.stop)):
                return Lexeme(body, lazy=False, capture=_capture(definition, body, EMPTY_TEXT))
            name = "" if options.capture is None else options.capture.value
            return Lexeme(
                self._before_stop(definition, body, stop), lazy=False, capture=Capture(name) if name else None
            )
        if options.suffix is None and options.lazy is None:
            return Lexeme(body, lazy=False, capture=_capture(definition, body, EMPTY_TEXT))
        if options.suffix is None:
            return Lexeme(
                self._first_matches(definition, body), lazy=True, capture=_capture(definition, body, EMPTY_TEXT)
            )
        ending = self._expression(options.suffix)
        capture = _capture(definition, body, ending)
        if is_empty_text(ending):
            return Lexeme(body, lazy=False, capture=capture)
        return Lexeme(self._first_matches(definition, sequence(body, ending)), lazy=True, capture=capture)

    def with_stop(self, definition: Definition) -> Lexeme:
        """Returns the lexeme of a rule with ``stop`` together with the stop after it."""
        body, stop = self._expression(definition.body), self.stop(definition)
        whole = self._first_matches(definition, sequence(body, stop))
        return Lexeme(whole, lazy=True, capture=_capture(definition, body, stop))

    def has_stop(self, definition: Definition) -> bool:
        """Returns whether the option ``stop`` of a rule is there, and not the empty text."""
        return definition.options.stop is not None and not is_empty_text(self.stop(definition))

    def stop(self, definition: Definition) -> Expression:
        """Returns the expression of a rule's option ``stop``."""
        assert definition.options.stop is not None
        return self._expression(definition.options.stop)

    def is_stop(self, definition: Definition, follower: Expression) -> bool:
        """Returns whether a part of a rule, a string or pattern or terminal, has the same texts as a rule's stop."""
        stop, other = self.stop(definition), self._expression(follower)
        return not is_empty_text(stop) and equal(stop, other)

    def _expression(self, node: Expression) -> Expression:
        return terminal_expression(self.syntax, self.named, node)

    def _first_matches(self, definition: Definition, expression: Expression) -> Expression:
        """Returns the texts of an expression of which no beginning is one of its texts, too."""
        if asked(kernel.matches, expression, b""):
            return EMPTY_TEXT
        longer = sequence(expression, _SOME_BYTES)
        try:
            if asked(kernel.is_empty, Intersection((expression, longer))):
                return expression
        except LimitError as error:
            raise placed(LimitError, self.syntax.text, definition.at, error.message) from error
        return Intersection((expression, Complement(longer)))

    def _before_stop(self, definition: Definition, body: Expression, stop: Expression) -> Expression:
        """Returns the texts of a body after which a stop is read, and not before."""
        texts = asked(kernel.list_matches, stop, 1)
        onward = [sequence(body, stop, ANY_BYTES)]
        if texts:
            text = texts[0]
            if len(text) > 200:  # each way in which it overlaps with itself is an expression of its own
                raise placed(LimitError, self.syntax.text, definition.at, "a stop has at most 200 bytes")
            overlaps = [size for size in range(1, len(text)) if text.endswith(text[:size])]
            onward += [sequence(body, Literal(text[: len(text) - size])) for size in overlaps]
        elif not asked(kernel.is_empty, Intersection((stop, Complement(ANY_CHAR)))):
            self.refuse_stop(definition, "its stop has several texts, of more than one character")
        return Intersection((body, Complement(union(onward))))

    def refuse_stop(self, definition: Definition, why: str) -> NoReturn:
        """Raises GrammarError for a rule whose ``stop`` would have to take tokens back."""
        stop = definition.options.stop
        assert stop is not None
        message = f"{why}, so that tokens would have to be taken back; write suffix=... in place of stop=..."
        raise error_at(self.syntax.text, stop.at, message)


def is_empty_text(expression: Expression) -> bool:
    """Returns whether an expression matches the empty text alone."""
    return asked(kernel.list_matches, expression, 1) == [b""]


def equal(one: Expression, other: Expression) -> bool:
    """Returns whether two expressions have the same texts."""
    ways = ((one, other), (other, one))
    return all(asked(kernel.is_empty, Intersection((this, Complement(that)))) for this, that in ways)


def _capture(definition: Definition, body: Expression, ending: Expression) -> Capture | None:
    """Returns the names for a lexeme that is a body with an ending; ``None`` for no names."""
    options = definition.options
    name = "" if options.capture is None else options.capture.value
    ending_name = "" if options.stop_capture is None else options.stop_capture.value
    if not name and not ending_name:
        return None
    return Capture(name, ending_name, body, ending)
