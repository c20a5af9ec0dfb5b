"""``Captures``: the parts of a text that a grammar or a pattern gives names to."""

from __future__ import annotations

from codecs import getincrementaldecoder
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from constrain.engine import core, derivation
from constrain.engine.derivation import Derivation
from constrain.errors import LimitError
from constrain.language.special import BEGIN, END, without_special

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from constrain.engine.earley import Lexemes
    from constrain.language.grammar import Capture, Grammar
    from constrain.language.tree import Expression
    from constrain.regex.parsing.scanner import Dialect


_SPECIAL_BEGIN, _SPECIAL_END = BEGIN[0], END[0]


class Captures(dict[str, "str | list[str]"]):
    """The parts of a text that a grammar gives names to: a dict from names to texts.

    A name that was read once has its text; a name that was read several times has a list of texts, in the order in
    which they begin. A name that was not read is missing.

    Attributes:
        spans: by name, where its texts are: pairs of a start and an end, as for slices of the text.
    """

    __slots__ = ("spans",)

    def __init__(
        self,
        texts: Mapping[str, str | list[str]] | None = None,
        spans: Mapping[str, list[tuple[int, int]]] | None = None,
    ) -> None:
        super().__init__(texts or {})
        self.spans: dict[str, list[tuple[int, int]]] = dict(spans or {})

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles and copies the spans, too."""
        return Captures, (dict(self), self.spans)


class Named(NamedTuple):
    """A part of a text: its name, its start and its end, in bytes or characters."""

    name: str
    start: int
    end: int


def captures_of(text: str, parts: Iterable[Named]) -> Captures:
    """Returns the captures for parts of a text, in characters, in the order in which they were read."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for part in parts:
        spans.setdefault(part.name, []).append((part.start, part.end))
    texts = {name: [text[start:end] for start, end in each] for name, each in spans.items()}
    return Captures({name: each[0] if len(each) == 1 else each for name, each in texts.items()}, spans)


def captures_object(captures: Captures | None) -> dict[str, Any]:
    """Returns the members of an answer as JSON: ``captures`` and ``capture_spans``; none if nothing was captured."""
    if not captures:
        return {}
    spans = {name: each[0] if len(each) == 1 else each for name, each in captures.spans.items()}
    return {"captures": dict(captures), "capture_spans": spans}


def has_captures(grammar: Grammar) -> bool:
    """Returns whether some rule of a grammar has a name for captures."""
    return any(rule.capture is not None for rule in grammar.rules)


def read_captures(grammar: Grammar, text: bytes, lexemes: Lexemes) -> Captures:
    """Returns the captures of a text, from its lexemes; ``text`` has special tokens as the kernel reads them.

    Raises LimitError (MAX_CAPTURE_WORK).
    """
    reading = _Reading(grammar, text, lexemes)
    shown = without_special(text).decode("utf-8", "replace")
    characters = _characters_before(text)
    parts = reading.parts()
    return captures_of(shown, (Named(name, characters[start], characters[end]) for name, start, end in parts))


class _Reading:
    """A text, its lexemes, and where their own texts begin: behind ignored text in front of them."""

    def __init__(self, grammar: Grammar, text: bytes, lexemes: Lexemes) -> None:
        self._grammar = grammar
        self._text = text
        self._lexemes = lexemes
        self._borders = lexemes.offsets
        self._work = 0

    def parts(self) -> list[Named]:
        """Returns the named parts in the order of their starts, outer ones first."""
        captured: list[tuple[Capture, int, int]] = []
        starts: dict[int, int] = {}
        for symbol, first, last in Derivation(self._grammar, self._lexemes).readings():
            end = self._borders[last]
            if symbol >= 0:
                starts.setdefault(first, self._own_start(self._grammar.terminals[symbol].bare, first, end))
                continue
            rule = self._grammar.rules[~symbol]
            if rule.bare is not None:
                starts.setdefault(first, self._own_start(rule.bare, first, end))
            if rule.capture is not None:
                captured.append((rule.capture, first, end))
        found = [
            part
            for capture, first, end in captured
            for part in self._named(capture, min(starts.get(first, end), end), end)
        ]
        return sorted(found, key=lambda part: part.start)

    def _own_start(self, bare: Expression | None, first: int, end: int) -> int:
        """Returns where a lexeme's own text, which may be empty, begins: as early as its expression allows."""
        start = self._borders[first]
        if bare is None:
            return start
        return next((at for at in range(start, end + 1) if self._matches(bare, at, end)), start)

    def _matches(self, expression: Expression, start: int, end: int) -> bool:
        """Returns whether an expression matches a part of the text; each byte is a step."""
        self._work += end - start
        if self._work > derivation.MAX_CAPTURE_WORK:
            raise LimitError(derivation.TOO_MUCH_WORK)
        return core.matches(expression, self._text[start:end])

    def _named(self, capture: Capture, start: int, end: int) -> list[Named]:
        """Returns the parts of a rule's text that have names."""
        if capture.pattern is not None:
            return self._groups(*capture.pattern, start, end)
        border = end
        if capture.ending is not None and capture.body is not None:
            border = self._ending(capture.body, capture.ending, start, end)
        parts = [Named(capture.name, start, border), Named(capture.ending_name, border, end)]
        return [part for part in parts if part.name]

    def _groups(self, pattern: str, dialect: str, start: int, end: int) -> list[Named]:
        """Returns the named groups of a pattern in a rule's text."""
        from constrain.regex.named_groups import named_groups  # takes long to import

        text = self._text[start:end].decode()
        places = list(accumulate((len(char.encode()) for char in text), initial=start))
        groups = named_groups(pattern, cast("Dialect", dialect), text)
        return [Named(group.name, places[group.start], places[group.end]) for group in groups]

    def _ending(self, body: Expression, ending: Expression, start: int, end: int) -> int:
        """Returns where the ending of a text begins: as late as the expressions allow."""
        for at in range(end, start - 1, -1):
            if self._matches(ending, at, end) and self._matches(body, start, at):
                return at
        raise AssertionError("a body and its ending have the text")


def _characters_before(text: bytes) -> list[int]:
    """Returns the number of characters before each offset, without special tokens; half a character is one, too."""
    decoder = getincrementaldecoder("utf-8")("replace")
    found, count, special = [0], 0, False
    for at, byte in enumerate(text):
        if byte in (_SPECIAL_BEGIN, _SPECIAL_END):
            special = byte == _SPECIAL_BEGIN
        elif not special:
            count += len(decoder.decode(text[at : at + 1]))
        found.append(count + bool(decoder.getstate()[0]))
    return found
