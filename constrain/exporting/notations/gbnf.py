"""GBNF, the grammars of llama.cpp, within what its parser takes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from constrain.exporting.nodes import Choice, Name, Repeat, Sequence, Text, Token, repeat, sequence
from constrain.exporting.notations.names import Names
from constrain.exporting.notations.spelling import class_text, escaped, only_character
from constrain.gbnf.spelling import count_text
from constrain.language.tree import CharClass, parts_of

if TYPE_CHECKING:
    from constrain.exporting.draft import Draft
    from constrain.exporting.nodes import Key
    from constrain.exporting.plan import Plan
    from constrain.language.tree import Expression

_MOST_REPEATS = 2_000
"""Rules that one repetition makes in llama.cpp, whose parser refuses so many (``MAX_REPETITION_THRESHOLD``). A longer
repetition is written as repetitions of repetitions."""

_CHUNK = 1_000
"""Repetitions in one part of a longer one."""

_LAST_OF_ASCII = 0x7F
"""The last character that a class with ^ lacks: llama.cpp takes no first half of a character for such a class if that
half may become a character which the class lacks."""

_DEEPEST = 20
"""Parentheses inside one another in one rule; what is deeper becomes a rule of its own."""

_LINE = 100
"""Characters of a rule that stands on one line."""

_IN_TEXT = {'"': '\\"', "\\": "\\\\"}
_IN_CLASS = {"\\": "\\\\", "]": "\\]", "[": "\\[", "^": "\\x5E", "-": "\\x2D"}
_TOKEN = re.compile(r"<[^<>\s]+>")


def gbnf_text(plan: Plan, draft: Draft) -> str:
    """Returns the text of a plan whose definitions have no left recursion. Raises ExportError for special tokens."""
    return _Writer(plan, draft).text()


class _Writer:
    def __init__(self, plan: Plan, draft: Draft) -> None:
        self._plan = plan
        self._draft = draft
        self._names = Names("-", ("root",))
        self._given: dict[Key, str] = {}
        self._pending: list[tuple[str, Expression]] = []
        self._hoisted: dict[tuple[Expression, int], Name] = {}
        self._level = 0

    def text(self) -> str:
        nodes = self._plan.nodes
        start = self._plan.start
        if self._plan.nullable:
            self._given[start] = self._names.give("text", "text")
            rules = [f"root ::= {self._given[start]}?"]
        else:
            self._given[start] = "root"
            rules = []
        for key in nodes:
            if key not in self._given:
                self._given[key] = self._names.give(self._plan.hints[key], key[0])
        for key, node in nodes.items():
            rules.append(self._rule(self._given[key], node))
            while self._pending:
                rules.append(self._rule(*self._pending.pop()))
        return "\n".join(rules) + "\n"

    def _rule(self, name: str, node: Expression) -> str:
        parts = [self._sequence(part, name) for part in (node.parts if isinstance(node, Choice) else (node,))]
        whole = " | ".join(parts)
        if len(whole) + len(name) <= _LINE or len(parts) == 1:
            return f"{name} ::= {whole}"
        return f"{name} ::=\n  " + " |\n  ".join(parts)

    def _sequence(self, node: Expression, rule: str) -> str:
        parts = node.parts if isinstance(node, Sequence) else (node,)
        return " ".join(self._item(part, rule) for part in parts) or '""'

    def _item(self, node: Expression, rule: str) -> str:
        match node:
            case Text(text):
                return _quoted(text)
            case CharClass(ranges):
                character = only_character(ranges)
                return class_text(ranges, _IN_CLASS, _LAST_OF_ASCII) or "." if character is None else _quoted(character)
            case Name(key):
                return self._given[key]
            case Token(name):
                if _TOKEN.fullmatch(name) is None:
                    self._draft.refuse(
                        f"the special token {name}", "GBNF names special tokens only by <name> or <[id]>"
                    )
                return name
            case Repeat(part, minimum, maximum):
                return self._repeat(part, minimum, maximum, rule)
        if self._level == _DEEPEST:
            return self._given[self._hoist(node, 1, rule).key]
        self._level += 1
        parts = node.parts if isinstance(node, Choice) else (node,)
        text = "(" + " | ".join(self._sequence(part, rule) for part in parts) + ")"
        self._level -= 1
        return text

    def _repeat(self, part: Expression, minimum: int, maximum: int | None, rule: str) -> str:
        if (minimum, maximum) not in ((0, 1), (0, None), (1, None)):
            most = minimum if maximum is None else maximum
            if most * _symbols(part) >= _MOST_REPEATS and not isinstance(part, (CharClass, Name)):
                part = self._hoist(part, 1, rule)
            if most >= _MOST_REPEATS:
                return self._sequence(self._long(part, minimum, maximum, rule), rule)
        text = self._item(part, rule)
        if isinstance(part, Repeat):
            text = f"({text})"
        return text + count_text(minimum, maximum)

    def _hoist(self, part: Expression, count: int, rule: str) -> Name:
        """Returns the name of a rule for a part, or for a number of parts."""
        if (part, count) not in self._hoisted:
            key: Key = ("hoisted", len(self._hoisted))
            self._given[key] = self._names.give(f"{rule} {'item' if count == 1 else count}", "item")
            self._hoisted[part, count] = Name(key)
            self._pending.append((self._given[key], repeat(part, count, count)))
        return self._hoisted[part, count]

    def _long(self, part: Expression, minimum: int, maximum: int | None, rule: str) -> Expression:
        """Returns a repetition as one of chunks and a rest."""
        exact = self._exactly(part, minimum, rule)
        if maximum is None:
            return sequence(exact, repeat(part, 0, None))
        return sequence(exact, self._up_to(part, maximum - minimum, rule))

    def _exactly(self, part: Expression, count: int, rule: str) -> Expression:
        if count < _MOST_REPEATS:
            return repeat(part, count, count)
        chunks, rest = divmod(count, _CHUNK)
        chunk = self._hoist(part, _CHUNK, rule)
        return sequence(self._exactly(chunk, chunks, rule), repeat(part, rest, rest))

    def _up_to(self, part: Expression, count: int, rule: str) -> Expression:
        if count < _MOST_REPEATS:
            return repeat(part, 0, count)
        chunks, rest = divmod(count, _CHUNK)
        chunk = self._hoist(part, _CHUNK, rule)
        return sequence(self._up_to(chunk, chunks - 1, rule), repeat(part, 0, _CHUNK + rest))


def _quoted(text: str) -> str:
    return '"' + "".join(escaped(character, _IN_TEXT) for character in text) + '"'


def _symbols(node: Expression) -> int:
    """Returns the most names that llama.cpp's parser makes up or meets in a node."""
    more = node.maximum - node.minimum if isinstance(node, Repeat) and node.maximum is not None else 1
    return more + sum(map(_symbols, parts_of(node)))
