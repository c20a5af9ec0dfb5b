"""Lark's own Earley parser as a judge: with its own lexer, and with lexers that differ from that in one thing each.

Lark's dynamic lexer that is called complete reads, for each terminal that the parser can use, the match which ``re``
prefers and then the beginnings of that match which match, too. Whatever is ignored may stand at the ends of a text. The
two judges beside it are the same parser with other lexemes:

- any division: all matches of each terminal, even those that are longer than the one which ``re`` prefers; ignored text
  between lexemes only.
- longest match: a lexeme goes on as long as any terminal that the parser can use, or ignored text, may go on; it must
  then be one of these. This is the language that a grammar has by our rules.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import lark

from tests.support.grammars.lexemes import Lexemes, Reading


class _Match(NamedTuple):
    """As much of an ``re.Match`` as Lark uses."""

    text: str
    begin: int
    stop: int

    def group(self, _index: int) -> str:
        return self.text[self.begin : self.stop]

    def end(self) -> int:
        return self.stop


class Earley:
    """The judges of one grammar; ``own`` may have another text, if that has the same language."""

    def __init__(self, text: str, start: str = "start", *, own: str = "") -> None:
        self._own = _parser(own or text, start, "dynamic_complete")
        self._any_division = _parser(text, start, "dynamic_complete")
        self._longest_match = _parser(text, start, "dynamic")
        terminals = self._any_division.terminals
        self._lexemes = {terminal.name: Lexemes(terminal.pattern.to_regexp()) for terminal in terminals}
        self._ignored = frozenset(terminal.name for terminal in _inner(self._any_division).ignore)
        self._readings: dict[tuple[str, int], Reading] = {}
        self._text = ""
        self._end = 0
        self._use_lexemes()

    def own(self, text: str) -> bool:
        return _accepts(self._own, text)

    def any_division(self, text: str) -> bool:
        self._begin(text)
        return _accepts(self._any_division, text)

    def longest_match(self, text: str) -> bool:
        self._begin(text)
        return _accepts(self._longest_match, text)

    def any_division_inside(self, text: str) -> bool:
        """Is there ignored text at the ends of which the rest is accepted?"""
        self._begin(text)
        firsts, lasts = {0}, {len(text)}
        for at in range(len(text)):
            if at in firsts:
                firsts |= self._ignored_ends(at)
        for at in reversed(range(len(text))):
            if lasts & self._ignored_ends(at):
                lasts.add(at)
        parts = {text[first:last] for first in firsts for last in lasts if first <= last} - {text}
        return any(map(self.any_division, sorted(parts)))

    def _ignored_ends(self, at: int) -> frozenset[int]:
        return frozenset().union(*(self._reading(name, at).ends for name in self._ignored))

    def _begin(self, text: str) -> None:
        if text != self._text:
            self._text = text
            self._readings.clear()

    def _reading(self, name: str, at: int) -> Reading:
        if (name, at) not in self._readings:
            self._readings[name, at] = self._lexemes[name].read(self._text, at)
        return self._readings[name, at]

    def _use_lexemes(self) -> None:
        """Puts our lexemes in the place of Lark's; its parser asks for one match at a time."""
        _inner(self._any_division).term_matcher = self._longest_of_terminal
        parser = _inner(self._longest_match)
        parser.term_matcher = self._longest_of_all
        predict_and_complete = parser.predict_and_complete

        def with_end(at: int, to_scan: Any, *others: Any) -> None:
            predict_and_complete(at, to_scan, *others)
            usable = {item.expect.name for item in to_scan}
            if usable and at:
                usable |= self._ignored
            self._end = max((self._reading(name, at).reach for name in usable), default=at)

        parser.predict_and_complete = with_end

    def _longest_of_terminal(self, terminal: Any, text: str, at: int = 0) -> _Match | None:
        """Lark tries the beginnings of the longest match by itself, cut out as texts of their own."""
        if text == self._text:
            ends = self._reading(terminal.name, at).ends
        else:
            ends = self._lexemes[terminal.name].read(text, at).ends
        end = max(ends, default=at)
        return self._match(terminal.name, at, end, text)

    def _longest_of_all(self, terminal: Any, text: str, at: int = 0) -> _Match | None:
        end = self._end if self._end in self._reading(terminal.name, at).ends else at
        return self._match(terminal.name, at, end, text)

    def _match(self, name: str, at: int, end: int, text: str) -> _Match | None:
        at_an_end = name in self._ignored and (at == 0 or end == len(text))
        return None if end == at or at_an_end else _Match(text, at, end)


def _parser(text: str, start: str, lexer: str) -> lark.Lark:
    return lark.Lark(text, start=start, parser="earley", lexer=lexer, ambiguity="forest")


def _inner(parser: lark.Lark) -> Any:
    return parser.parser.parser


def _accepts(parser: lark.Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except lark.exceptions.LarkError:
        return False
    return True
