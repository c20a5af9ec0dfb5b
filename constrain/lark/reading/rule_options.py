"""The options of a rule in a grammar text: ``name[lazy, capture="x"]: ...``."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, NoReturn

from constrain.language.tree import Expression, inside
from constrain.lark.reading.places import error_at
from constrain.lark.reading.strings import string_value
from constrain.lark.reading.syntax import (
    Given,
    Options,
    OtherGrammar,
    Parametric,
    Quoted,
    Special,
    Symbol,
    Text,
    beginning,
)
from constrain.suggestions import unknown_names
from constrain.work import MAX_COUNTER

if TYPE_CHECKING:
    from collections.abc import Callable


_NAMES = tuple(field.name for field in fields(Options))
_OF_LEXEMES = ("lazy", "suffix", "stop", "temperature")


def read_options(text: str, rule: str, tree: Any, body: Expression, node: Callable[[Any], Expression]) -> Options:
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
        is_grammar = name == "temperature" and isinstance(body, OtherGrammar)
        if name in reading.places and not is_grammar and (part := part_of_several(body)) is not None:
            message = f"the option {name} needs a rule of strings, patterns and terminals, without {part}"
            raise error_at(text, reading.places[name], message)
    return options


class _Reading:
    """The options of one rule that are read so far, and their places."""

    def __init__(self, text: str, rule: str, node: Callable[[Any], Expression]) -> None:
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
        if not isinstance(found, Quoted) or not found.written.endswith('"'):
            self.refuse(name.start_pos, f'the option {name} needs a name in quotes: write {name}="name"')
        if not (given := string_value(self.text, found)):
            self.refuse(found.at, f"the name of the option {name} is empty")
        return Given(given, found.at)

    def _suffix(self, name: Any, value: Any) -> Expression:
        return self._end(name, value)

    def _stop(self, name: Any, value: Any) -> Expression:
        return self._end(name, value)

    def _end(self, name: Any, value: Any) -> Expression:
        found = None if isinstance(value, str) else self.node(value)
        if not isinstance(found, Text) or (isinstance(found, Symbol) and not found.is_terminal):
            self.refuse(name.start_pos, f"the option {name} needs a string, a pattern or the name of a terminal")
        assert found is not None
        return found

    def _max_tokens(self, name: Any, value: Any) -> Given[int]:
        number = str(value) if isinstance(value, str) else ""
        if not number.removeprefix("+").isdecimal() or not 1 <= int(number[:20]) <= MAX_COUNTER:
            message = f"max_tokens is a whole number from 1 to {MAX_COUNTER} (MAX_COUNTER)"
            self.refuse(name.start_pos, message)
        return Given(int(number), value.start_pos)

    def _temperature(self, name: Any, value: Any) -> Given[float]:
        if not isinstance(value, str) or not 0 <= float(value) <= 2:
            self.refuse(name.start_pos, "temperature is a number from 0 to 2")
        return Given(float(value), value.start_pos)  # type: ignore[attr-defined]


def part_of_several(body: Expression) -> str | None:
    """Returns a part of a body that is no lexeme: a rule, a token or a grammar. None if the body is one lexeme."""
    for node in inside(body):
        match node:
            case Symbol(is_terminal=False) | Parametric():
                return f"the rule {node.name}"
            case Special():
                return f"the special token {node.name}"
            case _ if isinstance(node, OtherGrammar):
                return beginning(node)
    return None
