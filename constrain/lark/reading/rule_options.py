"""The options of a rule in a grammar text: ``name[lazy, capture="x"]: ...``."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, NoReturn

from constrain.lark.reading.places import error_at
from constrain.lark.reading.strings import string_value
from constrain.lark.reading.syntax import (
    Alias,
    Both,
    Choice,
    Complement,
    Embedded,
    Given,
    Guarded,
    Literal,
    Nested,
    Options,
    Parametric,
    Range,
    Reference,
    Repeat,
    Sequence,
    Special,
    Substring,
    Symbol,
)
from constrain.suggestions import unknown_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.lark.reading.syntax import Node

MAX_TOKENS_OF_A_RULE = 2**31 - 1
"""Tokens in the option ``max_tokens`` of a rule in a Lark grammar. Beyond: GrammarError."""

MAX_TEMPERATURE = 2.0
"""Temperature in the option ``temperature`` of a rule in a Lark grammar. Beyond: GrammarError."""

_NAMES = tuple(field.name for field in fields(Options))
_OF_LEXEMES = ("lazy", "suffix", "stop", "max_tokens", "temperature")


def read_options(text: str, rule: str, tree: Any, body: Node, node: Callable[[Any], Node]) -> Options:
    """Returns the options of a rule in the grammar ``text``; ``node`` reads a value that is a part of a grammar.

    Raises GrammarError with the place of an option that is unknown, twice there or wrong, alone or for this body.
    """
    reading = _Reading(text, rule, node)
    for option in tree.children:
        if option is not None:
            reading.add(*option.children)
    options = Options(**reading.values)
    reading.check_together(options)
    for name in _OF_LEXEMES:
        if name in reading.places and not (name == "temperature" and isinstance(body, Embedded | Nested | Reference)):
            _refuse_rules(text, name, reading.places[name], body)
    return options


class _Reading:
    """The options of one rule that are read so far, and their places."""

    def __init__(self, text: str, rule: str, node: Callable[[Any], Node]) -> None:
        self.text = text
        self.rule = rule
        self.node = node
        self.values: dict[str, Any] = {}
        self.places: dict[str, int] = {}

    def add(self, name: Any, value: Any = None) -> None:
        """Adds one option."""
        if name not in _NAMES:
            self.refuse(name.start_pos, unknown_names("option", [str(name)], _NAMES))
        if name in self.places:
            self.refuse(name.start_pos, f"the option {name} is there twice")
        self.places[str(name)] = name.start_pos
        if value is None and name not in ("lazy", "capture"):
            self.refuse(name.start_pos, f"the option {name} needs a value: write {name}=...")
        self.values[str(name)] = getattr(self, f"_{name}")(name, value)

    def check_together(self, options: Options) -> None:
        """Raises GrammarError for options that do not fit together."""
        if options.suffix is not None and options.stop is not None:
            self.refuse(self.places["stop"], "suffix and stop exclude each other: give one of them")
        ends = options.lazy or options.suffix or options.stop
        if options.stop_capture is not None and not ends:
            self.refuse(self.places["stop_capture"], "stop_capture needs suffix or stop, whose text it names")
        if options.stop_capture and options.capture and options.stop_capture.value == options.capture.value:
            message = f"capture and stop_capture have the same name, {options.capture.value}; give each its own"
            self.refuse(options.stop_capture.at, message)

    def refuse(self, at: int, message: str) -> NoReturn:
        raise error_at(self.text, at, message)

    def _lazy(self, name: Any, value: Any) -> int:
        if value is not None:
            self.refuse(name.start_pos, "the option lazy has no value: write [lazy]")
        return int(name.start_pos)

    def _capture(self, name: Any, value: Any) -> Given[str]:
        return Given(self.rule, name.start_pos) if value is None else self._name(name, value)

    def _stop_capture(self, name: Any, value: Any) -> Given[str]:
        return self._name(name, value)

    def _name(self, name: Any, value: Any) -> Given[str]:
        found = None if isinstance(value, str) else self.node(value)
        if not isinstance(found, Literal) or not found.written.endswith('"'):
            self.refuse(name.start_pos, f'the option {name} needs a name in quotes: write {name}="name"')
        if not (given := string_value(self.text, found)):
            self.refuse(found.at, f"the name of the option {name} is empty")
        return Given(given, found.at)

    def _suffix(self, name: Any, value: Any) -> Node:
        return self._end(name, value)

    def _stop(self, name: Any, value: Any) -> Node:
        return self._end(name, value)

    def _end(self, name: Any, value: Any) -> Node:
        found = None if isinstance(value, str) else self.node(value)
        is_terminal = isinstance(found, Symbol) and found.is_terminal
        if not is_terminal and not isinstance(found, Literal | Range | Substring):
            self.refuse(name.start_pos, f"the option {name} needs a string, a pattern or the name of a terminal")
        assert found is not None
        return found

    def _max_tokens(self, name: Any, value: Any) -> Given[int]:
        number = str(value) if isinstance(value, str) else ""
        if not number.removeprefix("+").isdecimal() or not 1 <= int(number[:20]) <= MAX_TOKENS_OF_A_RULE:
            message = f"max_tokens is a whole number from 1 to {MAX_TOKENS_OF_A_RULE} (MAX_TOKENS_OF_A_RULE)"
            self.refuse(name.start_pos, message)
        return Given(int(number), value.start_pos)

    def _temperature(self, name: Any, value: Any) -> Given[float]:
        if not isinstance(value, str) or not 0 <= float(value) <= MAX_TEMPERATURE:
            self.refuse(name.start_pos, f"temperature is a number from 0 to {MAX_TEMPERATURE:g} (MAX_TEMPERATURE)")
        return Given(float(value), value.start_pos)  # type: ignore[attr-defined]


def _refuse_rules(text: str, option: str, at: int, body: Node) -> None:
    """Raises GrammarError if a body is more than one lexeme: it contains a rule, a special token or %json."""
    match body:
        case Symbol(name, _) if not body.is_terminal:
            part = f"the rule {name}"
        case Special(name, _):
            part = f"the special token {name}"
        case Embedded():
            part = "%json"
        case Nested():
            part = "%lark"
        case Reference(name, _):
            part = f"@{name}"
        case Parametric(name):
            part = f"the rule {name}"
        case Sequence(parts) | Choice(parts) | Both(parts, _):
            for each in parts:
                _refuse_rules(text, option, at, each)
            return
        case Repeat(each, _, _) | Complement(each, _) | Alias(each, _) | Guarded(each, _, _):
            _refuse_rules(text, option, at, each)
            return
        case _:
            return
    raise error_at(text, at, f"the option {option} needs a rule of strings, patterns and terminals, without {part}")
