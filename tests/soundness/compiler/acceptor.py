"""``Acceptor``: whether a text is one of an exported grammar, by the JSON in a certificate alone.

An Earley recogniser over bytes (Earley 1970) whose items carry the memory of their rule. It shares the matching of
expressions with ``constrain.verify`` and nothing with the engine or the compilers. A text counts as accepted if it has
any derivation; longest matches are not required. Limits on tokens are not checked, and terminals that stand for single
tokens match no text.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Any, NamedTuple

from constrain.verify import Match, data

_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SCALAR, _LABEL, _ORDERED, _LABELLED, _CLOSE = 1, 2, 3, 4, 5  # roles of lexemes

_ANY_BYTE = (1 << 256) - 1
_BEYOND_ASCII = _ANY_BYTE & ~((1 << 128) - 1)
_NUMBER_BEGINS = sum(1 << byte for byte in b"-0123456789")
_BACKSLASH = 1 << ord("\\")

_Leaf = tuple[int, int, int]  # terminal, begin, end


class _Item(NamedTuple):
    rule: int
    state: int
    memory: tuple[Any, ...]
    origin: int
    leaves: tuple[_Leaf, ...]  # lexemes read, in rules whose values must differ


class Acceptor:
    """An exported grammar, ready to judge many texts.

    Attributes:
        furthest: bytes of the last text up to the last place that a derivation reached.
    """

    def __init__(self, grammar: dict[str, Any]) -> None:
        self.grammar = grammar
        self.furthest = 0
        self._terminals = grammar["terminals"]
        self._edges: list[dict[int, list[list[Any]]]] = []
        for rule in grammar["rules"]:
            by_source: dict[int, list[list[Any]]] = {}
            for edge in rule["edges"]:
                by_source.setdefault(edge[0], []).append(edge)
            self._edges.append(by_source)
        self._accepting = [frozenset(rule["accepting"]) for rule in grammar["rules"]]
        self._fresh: list[tuple[Any, ...]] = [
            tuple(0 if slot >= 0 else frozenset() for slot in rule["slots"]) for rule in grammar["rules"]
        ]
        self._valued = _valued_rules(grammar)
        begins = _begins(grammar["expressions"])
        self._match = Match(grammar["expressions"])
        self._begins = [0 if "tokens" in each else begins[each["expression"]] for each in self._terminals]

    def accepts(self, text: bytes) -> bool:
        """Returns whether a text has a derivation."""
        self._text = text
        self._found: dict[tuple[int, int], list[int]] = {}
        chart: list[set[_Item]] = [set() for _ in range(len(text) + 1)]
        self._waiting: list[dict[int, list[tuple[_Item, list[Any]]]]] = [{} for _ in chart]
        chart[0].add(_Item(0, 0, self._fresh[0], 0, ()))
        accepted = False
        for at, items in enumerate(chart):
            if items:
                self.furthest = at
                accepted = self._read_place(at, chart)
        return accepted and self.furthest == len(text)

    def _read_place(self, at: int, chart: list[set[_Item]]) -> bool:
        """Follows all items of one place; returns whether the whole text may end there."""
        items, work = chart[at], list(chart[at])
        empty: dict[int, set[tuple[_Leaf, ...]]] = {}
        ended: set[tuple[int, int, tuple[_Leaf, ...]]] = set()
        may_end = False
        while work:
            item = work.pop()
            made: list[_Item | None] = []
            if item.state in self._accepting[item.rule]:
                may_end |= item.rule == 0 and item.origin == 0
                key = item.rule, item.origin, item.leaves
                if key not in ended:
                    ended.add(key)
                    if item.origin == at:
                        empty.setdefault(item.rule, set()).add(item.leaves)
                    waiting = self._waiting[item.origin].get(item.rule, ())
                    made += [self._returned(parent, edge, item.leaves) for parent, edge in waiting]
            for edge in self._edges[item.rule].get(item.state, ()):
                symbol = edge[1]
                if not self._allows(edge, item.memory):
                    continue
                if symbol is None:
                    made.append(self._moved(item, edge, item.memory, b"", item.leaves))
                elif symbol >= 0:
                    for end in self._ends(symbol, at):
                        scanned = self._scanned(item, edge, at, end)
                        if scanned is not None:
                            chart[end].add(scanned)
                else:
                    self._waiting[at].setdefault(~symbol, []).append((item, edge))
                    made.append(_Item(~symbol, 0, self._fresh[~symbol], at, ()))
                    made += [self._returned(item, edge, leaves) for leaves in empty.get(~symbol, ())]
            for ignored in self.grammar["ignored"]:
                for end in self._ends(ignored, at):
                    chart[end].add(item)
            for each in made:
                if each is not None and each not in items:
                    items.add(each)
                    work.append(each)
        return may_end

    def _ends(self, terminal: int, at: int) -> list[int]:
        """Returns where lexemes of a terminal end that begin at a place."""
        if at == len(self._text) or not self._begins[terminal] >> self._text[at] & 1:
            return []
        found = self._found.get((terminal, at))
        if found is None:
            about = self._terminals[terminal]
            text, _, _ = self._text[at:].replace(b"\xff", b"\xfe").partition(b"\xfe")
            found = [at + length for length in self._match.ends(about["expression"], text)]
            found = found[:1] if about.get("lazy") else found
            self._found[terminal, at] = found
        return found

    @staticmethod
    def _allows(edge: list[Any], memory: tuple[Any, ...]) -> bool:
        return all(least <= memory[slot] and (most is None or memory[slot] <= most) for slot, least, most in edge[3])

    def _scanned(self, item: _Item, edge: list[Any], at: int, end: int) -> _Item | None:
        """Returns the item behind a lexeme; None if the lexeme stands there again and must not."""
        _, symbol, _, _, _, excluding, distinct = edge
        memory, text = item.memory, self._text[at:end]
        if excluding >= 0 and self._string(text) in memory[excluding]:
            return None
        if distinct >= 0:
            value = self._scalar(text)
            if value in memory[distinct]:
                return None
            memory = _with(memory, distinct, memory[distinct] | {value})
        leaves = (*item.leaves, (symbol, at, end)) if item.rule in self._valued else ()
        return self._moved(item, edge, memory, text, leaves)

    def _returned(self, parent: _Item, edge: list[Any], leaves: tuple[_Leaf, ...]) -> _Item | None:
        """Returns the item behind a rule; None if its value stands there again and must not."""
        memory, distinct = parent.memory, edge[6]
        if distinct >= 0:
            value = self._value(leaves)
            if value in memory[distinct]:
                return None
            memory = _with(memory, distinct, memory[distinct] | {value})
        read = (*parent.leaves, *leaves) if parent.rule in self._valued else ()
        return self._moved(parent, edge, memory, b"", read)

    def _moved(
        self, item: _Item, edge: list[Any], memory: tuple[Any, ...], text: bytes, leaves: tuple[_Leaf, ...]
    ) -> _Item:
        """Returns the item at the target of an edge, after the actions of the edge."""
        slots = self.grammar["rules"][item.rule]["slots"]
        for action, slot in edge[4]:
            if action == 0:
                memory = _with(memory, slot, min(memory[slot] + 1, slots[slot]))
            else:
                memory = _with(memory, slot, memory[slot] | {self._string(text)})
        return _Item(item.rule, edge[2], memory, item.origin, leaves)

    def _value(self, leaves: tuple[_Leaf, ...]) -> object:
        """Returns the value that lexemes write."""
        groups: list[tuple[int, list[Any]]] = [(_ORDERED, [])]
        labels: list[object] = [None]
        for index, begin, end in leaves:
            terminal, text = self._terminals[index], self._text[begin:end]
            role = terminal.get("role", _SCALAR)
            if role in (_ORDERED, _LABELLED):
                groups.append((role, []))
                labels.append(None)
            elif role == _LABEL:
                labels[-1] = self._string(data(terminal["label"]) if terminal.get("label") else text)
            elif role == _CLOSE and len(groups) > 1:
                kind, members = groups.pop()
                labels.pop()
                closed = tuple(members) if kind == _ORDERED else frozenset(members)
                groups[-1][1].append((labels[-1], (kind, closed)))
            elif role == _SCALAR:
                groups[-1][1].append((labels[-1], self._scalar(text)))
        return groups[-1][1][-1]

    def _string(self, text: bytes) -> object:
        """Returns a text as it is compared: a JSON string at its begin by what it spells."""
        string = _STRING.match(text) if self.grammar["strings_by_value"] else None
        return text if string is None else (json.loads(string[0], strict=False), text[string.end() :])

    def _scalar(self, text: bytes) -> object:
        """Returns a value without parts as it is compared: a number by its double, or as an exact decimal."""
        if _NUMBER.fullmatch(text) is None:
            return self._string(text)
        double = float(text)
        return double if self.grammar["numbers_by_double"] and math.isfinite(double) else Decimal(text.decode())


def _with(memory: tuple[Any, ...], slot: int, value: object) -> tuple[Any, ...]:
    return (*memory[:slot], value, *memory[slot + 1 :])


def _valued_rules(grammar: dict[str, Any]) -> frozenset[int]:
    """Returns the rules that are read within a group whose value must differ from others."""
    found: set[int] = set()
    work = [~edge[1] for rule in grammar["rules"] for edge in rule["edges"] if edge[6] >= 0 and (edge[1] or 0) < 0]
    while work:
        rule = work.pop()
        if rule not in found:
            found.add(rule)
            work += [~edge[1] for edge in grammar["rules"][rule]["edges"] if (edge[1] or 0) < 0]
    return frozenset(found)


def _begins(nodes: list[Any]) -> list[int]:
    """Returns a set of bytes, as bits, for each expression: all with which its texts may begin, perhaps more."""
    found: list[tuple[int, bool]] = []  # and whether the empty text may match
    for kind, *parts in nodes:
        if kind == "literal":
            texts = [each.encode() if isinstance(each, str) else bytes.fromhex(each["hex"]) for each in parts[0]]
            begins = 0
            for text in filter(None, texts):
                begins |= 1 << text[0]
            found.append((begins, b"" in texts))
        elif kind == "class":
            begins = _BACKSLASH if parts[1] == "json" else 0
            for low, high in parts[0]:
                begins |= (2 << min(high, 255)) - (1 << low) if low < 256 else 0
                begins |= _BEYOND_ASCII if high > 127 and parts[1] != "byte" else 0
            found.append((begins, False))
        elif kind == "all":
            begins, is_empty = 0, True
            for part in parts[0]:
                begins |= found[part][0] if is_empty else 0
                is_empty &= found[part][1]
            found.append((begins, is_empty))
        elif kind == "any":
            begins = 0
            for part in parts[0]:
                begins |= found[part][0]
            found.append((begins, any(found[part][1] for part in parts[0])))
        elif kind in ("repeat", "window"):
            found.append((found[parts[0]][0], True))
        elif kind == "multiple":
            found.append((_NUMBER_BEGINS, False))
        else:
            found.append((_ANY_BYTE, True))
    return [begins for begins, _ in found]
