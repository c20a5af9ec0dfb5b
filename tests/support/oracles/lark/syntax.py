"""Lark grammars as data, and how they are written: nothing here reads a text.

The same data are read by the reference (``reference.py``), so that what a text means is said twice, independently.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Text:
    """A string; with ``any_case``, its letters in upper and lower case alike."""

    value: str
    any_case: bool = False


@dataclass(frozen=True)
class Chars:
    """One of some characters, as a range of Lark's or, in a pattern, a class spelled as ``written``."""

    members: str
    written: str


@dataclass(frozen=True)
class Pattern:
    """An expression in the syntax of patterns, between slashes."""

    body: Node
    any_case: bool = False


@dataclass(frozen=True)
class Name:
    """A rule or a terminal, by its name."""

    name: str

    @property
    def is_terminal(self) -> bool:
        return self.name.lstrip("_").isupper()


@dataclass(frozen=True)
class Seq:
    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Alt:
    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Rep:
    """``part``, ``low`` to ``high`` times (``None``: without limit); ``written``: its operator, or ``[]`` around it."""

    part: Node
    low: int
    high: int | None
    written: str


@dataclass(frozen=True)
class Alias:
    part: Node
    name: str


@dataclass(frozen=True)
class Valued:
    """A parametric rule, and its value as a function of the value around it."""

    name: str
    written: str
    change: Callable[[int], int] = field(compare=False)


@dataclass(frozen=True)
class If:
    """``part``, if the value of the rule around it meets a condition: as it is written, and as a function."""

    part: Node
    written: str
    test: Callable[[int], bool] = field(compare=False)


@dataclass(frozen=True)
class Lexeme:
    """The body of a rule that is one lexeme, which ends where it first matches; ``suffix``: what it ends with."""

    body: Node
    suffix: Node | None


Node = Text | Chars | Pattern | Name | Seq | Alt | Rep | Alias | Valued | If | Lexeme


@dataclass(frozen=True)
class LarkGrammar:
    """Definitions by name (without the modifiers ``?`` and ``!``), in the order in which they are written.

    ``parametric``: names of the rules that have a value.
    """

    rules: dict[str, Node]
    modifiers: dict[str, str]
    terminals: dict[str, Node]
    ignored: tuple[Node, ...]
    parametric: frozenset[str] = frozenset()

    def write(self, nested: str = "") -> str:
        """The text; the rule ``nested`` is a grammar of its own, with the rules that it needs and all terminals."""
        inner = self.needed(nested) if nested else set()
        outer = [name for name in self.rules if name not in inner or self._is_used_outside(name, inner)]
        lines = [self._rule(name) for name in outer if name != nested]
        if nested:
            rules = [f"start: {nested}", *(self._rule(name) for name in self.rules if name in inner)]
            lines.append("\n  ".join([f"{nested}: %lark {{", *rules, *self._terminals()]) + "\n}")
        return "\n".join([*lines, *self._terminals()]) + "\n"

    def needed(self, rule: str) -> set[str]:
        """A rule, and all rules in its body, and in theirs."""
        found, waiting = {rule}, [rule]
        while waiting:
            more = names(self.rules[waiting.pop()]) - found
            found |= more
            waiting += more
        return found

    def _is_used_outside(self, name: str, inner: set[str]) -> bool:
        return name == "start" or any(name in self.needed(rule) for rule in self.rules if rule not in inner)

    def _rule(self, name: str) -> str:
        value = "::_" if name in self.parametric else ""
        return f"{self.modifiers[name]}{name}{value}{_options(self.rules[name])}: {_alternatives(self.rules[name])}"

    def _terminals(self) -> list[str]:
        lines = [f"{name}: {_alternatives(body)}" for name, body in self.terminals.items()]
        return lines + [f"%ignore {write(body)}" for body in self.ignored]


def names(node: Node) -> set[str]:
    """The rules that a body names."""
    match node:
        case Name(name):
            return set() if node.is_terminal else {name}
        case Valued(name, _, _):
            return {name}
        case Seq(parts) | Alt(parts):
            return set().union(*map(names, parts))
        case Rep() | Alias() | If():
            return names(node.part)
    return set()  # a lexeme has no rules in it


def _options(node: Node) -> str:
    """What stands before the colon, behind the name."""
    if not isinstance(node, Lexeme):
        return ""
    return "[lazy]" if node.suffix is None else f"[suffix={write(node.suffix)}]"


def _alternatives(node: Node) -> str:
    """What stands behind the colon."""
    if isinstance(node, Lexeme):
        return _alternatives(node.body)
    if isinstance(node, Alt):
        return "\n    | ".join(_alternatives(part) for part in node.parts)
    if isinstance(node, Alias):
        return f"{_alternatives(node.part)} -> {node.name}"
    if isinstance(node, If):
        guarded = write(node.part) if isinstance(node.part, Alt) else _alternatives(node.part)
        return f"{guarded} %if {node.written}"
    if isinstance(node, Seq):
        return " ".join(map(write, node.parts))
    return write(node)


def write(node: Node) -> str:
    """A part of a rule or terminal."""
    match node:
        case Text(value, any_case):
            return f'"{value}"{"i" * any_case}'
        case Chars(_, written):
            return written
        case Pattern(body, any_case):
            return f"/{write_pattern(body)}/{'i' * any_case}"
        case Name(name):
            return name
        case Valued(name, value, _):
            return f"{name}::{value}"
        case If():
            return f"({_alternatives(node)})"
        case Seq(parts):
            return f"({' '.join(map(write, parts))})"
        case Alt(parts):
            return f"({' | '.join(map(_alternatives, parts))})"
        case Rep(part, _, _, "[]"):
            return f"[{write(part)}]"
        case Rep(part, _, _, operator):
            inner = write(part)
            return f"({inner}){operator}" if isinstance(part, Rep) else f"{inner}{operator}"
    raise TypeError(node)


def write_pattern(node: Node) -> str:
    """A part of a pattern: its characters need no escapes but those of ``_ESCAPED``."""
    match node:
        case Text(value):
            return "".join(f"\\{char}" if char in _ESCAPED else char for char in value)
        case Chars(_, written):
            return written
        case Seq(parts):
            return "".join(map(write_pattern, parts))
        case Alt(parts):
            return f"(?:{'|'.join(map(write_pattern, parts))})"
        case Rep(part, _, _, operator):
            return f"(?:{write_pattern(part)}){operator}"
    raise TypeError(node)


_ESCAPED = ".+*?()[]{}|^$/-&~#"
