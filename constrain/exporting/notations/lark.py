"""Lark, in the dialect that this package and llguidance read alike: every lexeme is a terminal."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from constrain.exporting.nodes import EMPTY, And, Choice, Name, Not, Repeat, Sequence, Text, Token
from constrain.exporting.notations.names import Names
from constrain.exporting.notations.spelling import has_pattern, only_character, pattern
from constrain.gbnf.spelling import count_text
from constrain.language.tree import CharClass

if TYPE_CHECKING:
    from constrain.exporting.draft import Draft
    from constrain.exporting.nodes import Key
    from constrain.exporting.plan import Plan
    from constrain.language.tree import Expression

_RULES = ("rule", "item", "state")
"""Kinds of definitions that are rules; the others are terminals."""

_SHORT = 24
"""Characters of a terminal that is written where it is needed."""

_LINE = 100
_TOKEN = re.compile(r"<[^<>\s]+>")
_CHOICE, _AND, _SEQUENCE, _ITEM, _ATOM = range(5)
"""How tightly the parts of an expression are bound."""


def lark_text(plan: Plan, draft: Draft) -> str:
    """Returns the text of a plan. Raises ExportError for special tokens."""
    return _Writer(plan, draft).text()


class _Writer:
    def __init__(self, plan: Plan, draft: Draft) -> None:
        self._plan = plan
        self._draft = draft
        self._given: dict[Key, str] = {}
        self._needed: set[Key] = set()

    def text(self) -> str:
        names = Names("_", ("start",), letter_first=True)
        start = self._plan.start
        self._given[start] = names.give("text", "text") if self._plan.nullable else "start"
        for key in self._plan.nodes:
            if key not in self._given:
                name = names.give(self._plan.hints[key], key[0])
                self._given[key] = name if key[0] in _RULES else name.upper()
        lines = [f"start: {self._given[start]}?"] if self._plan.nullable else []
        rules = [self._definition(key) for key in self._plan.nodes if key[0] in _RULES]
        terminals = []
        waiting = sorted(self._needed)
        for key in waiting:
            terminals.append(self._definition(key))
            waiting += sorted(self._needed.difference(waiting))
        return "\n".join([*lines, *rules, "", *terminals]) + "\n"

    def _definition(self, key: Key) -> str:
        node, name = self._plan.nodes[key], self._given[key]
        parts = node.parts if isinstance(node, Choice) and not has_pattern(node) else (node,)
        texts = [self._expression(part, _AND) for part in parts]
        whole = f"{name}: {' | '.join(texts)}"
        return whole if len(whole) <= _LINE else f"{name}: " + "\n  | ".join(texts)

    def _expression(self, node: Expression, tightness: int) -> str:
        """Returns a node; in parentheses, if its parts are bound less tightly than what stands around it."""
        if has_pattern(node) and node != EMPTY:
            return self._lexeme(node)
        match node:
            case Choice(parts):
                own, text = _CHOICE, " | ".join(self._expression(part, _AND) for part in parts)
            case And(parts):
                own, text = _AND, " & ".join(self._expression(part, _SEQUENCE) for part in parts)
            case Sequence(parts):
                own, text = _SEQUENCE, " ".join(self._expression(part, _ITEM) for part in parts) or '""'
            case Not(part):
                own, text = _ITEM, f"~{self._expression(part, _ATOM)}"
            case Repeat(part, minimum, maximum):
                own, text = _ITEM, self._expression(part, _ATOM) + count_text(minimum, maximum)
            case Token(name):
                return self._token(name)
            case _:
                assert isinstance(node, Name), node
                return self._name(node.key)
        return text if own >= tightness else f"({text})"

    def _lexeme(self, node: Expression) -> str:
        if isinstance(node, CharClass) and (character := only_character(node.ranges)) is not None:
            node = Text(character)
        if isinstance(node, Text):
            return json.dumps(node.text, ensure_ascii=False)
        return "/" + pattern(node).replace("/", "\\/") + "/"

    def _name(self, key: Key) -> str:
        node = self._plan.nodes[key]
        if key[0] not in _RULES and has_pattern(node) and len(text := self._lexeme(node)) <= _SHORT:
            return text
        if key[0] not in _RULES:
            self._needed.add(key)
        return self._given[key]

    def _token(self, name: str) -> str:
        if _TOKEN.fullmatch(name) is None:
            self._draft.refuse(f"the special token {name}", "Lark names special tokens only by <name> or <[id]>")
        return name
