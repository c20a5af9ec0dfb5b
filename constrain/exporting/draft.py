"""From a ``Grammar`` to automata that a target can say: without memory, ignored text and halves of characters."""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003 - a field's type
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from constrain import kernel
from constrain.errors import ExportError, LimitError
from constrain.exporting.arcs import Arc, Automaton, rule_automaton, terminal_label
from constrain.exporting.characters import ByteArc, NotCharactersError, whole_characters
from constrain.exporting.loops import write_counted_loops
from constrain.exporting.memory import DifferenceError, write_memory_out
from constrain.exporting.nodes import Name, names_in
from constrain.language.tree import ByteClass
from constrain.work import asked

if TYPE_CHECKING:
    from constrain.exporting.nodes import Key
    from constrain.language.grammar import Grammar, Terminal

TITLES = {"gbnf": "GBNF", "lark": "Lark", "regex": "a regular expression"}
"""The targets, and how messages call them."""


@dataclass
class Draft:
    """The rules below the first one, by key, and the terminals that their edges name."""

    grammar: Grammar
    target: str
    repeated_keys: bool = False
    rules: dict[Key, Automaton] = field(default_factory=dict)
    terminals: list[Terminal] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The target, as messages call it."""
        return TITLES[self.target]

    def refuse(self, rule: str, message: str) -> NoReturn:
        """Raises ExportError with the place of a rule, given by its name."""
        pointer = pointer_of(rule)
        raise ExportError(
            message if pointer is not None else f"{message} (in {rule})", target=self.target, pointer=pointer
        )

    def limits(self, rule: str, work: Callable[[], object]) -> None:
        """Does something; gives the place of a rule to a LimitError."""
        try:
            work()
        except LimitError as error:
            if error.pointer is not None:
                raise
            pointer = pointer_of(rule)
            message = error.message if pointer is not None else f"{error.message} (in {rule})"
            raise LimitError(message, pointer=pointer) from error


class _Place(NamedTuple):
    """The nearest rule with a pointer, and the key whose value is meant, if the value's own rule has no pointer."""

    rule: str
    within: str = ""


def pointer_of(name: str) -> str | None:
    """Returns the JSON Pointer that the name of a rule is; None for other names."""
    name = name.removesuffix("/item")
    if name == "/":
        return ""
    return name if name.startswith("/") else None


def draft(grammar: Grammar, target: str, *, repeated_keys: bool = False) -> Draft:
    """Returns the automata of a grammar. Raises ExportError and LimitError."""
    found = Draft(grammar, target, repeated_keys, terminals=list(grammar.terminals))
    if target != "lark":
        _require_lossless(found)
    items = 0

    def define(item: Automaton) -> Key:
        nonlocal items
        items += 1
        found.rules["item", items] = item
        return "item", items

    waiting = {0: _Place(grammar.rules[0].name)}
    while waiting:
        index, place = waiting.popitem()
        if pointer_of(grammar.rules[index].name) is not None:
            place = _Place(grammar.rules[index].name)
        automaton = rule_automaton(grammar.rules[index], grammar)
        before = items
        write_counted_loops(automaton, define)
        found.limits(place.rule, lambda: _write_memory(found, ("rule", index), automaton, place))  # noqa: B023 - called at once
        for key in [("rule", index), *(("item", number) for number in range(before + 1, items + 1))]:
            _join_bytes(found, found.rules[key])
            for rule, within in _rules_in(found, found.rules[key]):
                if ("rule", rule) not in found.rules:
                    inner = _Place(place.rule, within or place.within)
                    waiting.setdefault(
                        rule, inner if pointer_of(place.rule) is not None else _Place(grammar.rules[rule].name)
                    )
    if grammar.ignored:
        _add_ignored(found)
    return found


def _rules_in(found: Draft, automaton: Automaton) -> list[tuple[int, str]]:
    """Returns the rules that a rule names, each with the key whose value it is; "" if it is of no named key."""
    keys: dict[int, str] = {}
    for arc in automaton.arcs:
        if isinstance(arc.label, Name) and arc.label.key[0] == "terminal":
            name = found.terminals[arc.label.key[1]].name
            keys[arc.target] = name.removeprefix("key ") if name.startswith("key ") else ""
    rules: dict[int, str] = {}
    for arc in automaton.arcs:
        for key in [] if arc.label is None else names_in(arc.label):
            if key[0] == "rule":
                rules.setdefault(key[1], keys.get(arc.source, ""))
    return list(rules.items())


def _write_memory(found: Draft, key: Key, automaton: Automaton, place: _Place) -> None:
    try:
        found.rules[key] = write_memory_out(
            automaton, found.grammar, found.terminals, repeated_keys=found.repeated_keys
        )
    except DifferenceError as error:
        within = f" in the value of {place.within!r}" if place.within else ""
        which = "items" if error.are_items else "keys"
        remedy = (
            ""
            if error.are_items
            else ("; exclude undeclared keys in the schema, or allow that they repeat (repeated_keys)")
        )
        found.refuse(
            place.rule,
            f"{found.title} cannot say that {which} differ from all earlier ones, as those here{within} must{remedy}",
        )


def _require_lossless(found: Draft) -> None:
    """Raises ExportError if the longest match leaves out texts that a grammar without lexemes has."""
    grammar = found.grammar
    if grammar.self_delimiting:
        return
    try:
        conflict = asked(kernel.lexing_conflict, grammar, lossless=True)
    except LimitError as error:
        raise ExportError(
            f"{found.title} has no longest match, and whether it makes a difference here takes too long to decide",
            target=found.target,
        ) from error
    if conflict is not None:
        first, second = (grammar.terminals[index].name for index in conflict[:2])
        raise ExportError(
            f"{found.title} has no longest match: where {second} follows {first}, it could take away some of the text",
            target=found.target,
        )


def _join_bytes(found: Draft, automaton: Automaton) -> None:
    """Replaces terminals of one byte by characters, where some of these bytes are parts of characters."""
    classes = {
        ("terminal", index): terminal.expression.ranges
        for index, terminal in enumerate(found.terminals)
        if isinstance(terminal.expression, ByteClass)
    }
    read = {arc.label.key for arc in automaton.arcs if isinstance(arc.label, Name)}
    if not any(high > 0x7F for key in read & classes.keys() for _, high in classes[key]):
        return
    arcs = []
    for arc in automaton.arcs:
        label = classes.get(arc.label.key, arc.label) if isinstance(arc.label, Name) else arc.label
        arcs.append(ByteArc(arc.source, label, arc.target))
    try:
        automaton.arcs = [Arc(*arc) for arc in whole_characters(arcs, automaton.accepting)]
    except NotCharactersError:
        found.refuse(automaton.name, f"{found.title} consists of characters, but the text here may have parts of them")


def _add_ignored(found: Draft) -> None:
    """Allows ignored terminals before the first lexeme, and after each."""
    ignored = [terminal_label(found.grammar, index) for index in found.grammar.ignored]
    for automaton in found.rules.values():
        arcs: list[Arc] = []
        after = automaton.states
        for arc in automaton.arcs:
            if arc.label is None or any(key[0] != "terminal" for key in names_in(arc.label)):
                arcs.append(arc)
                continue
            arcs += [arc._replace(target=after), Arc(after, None, arc.target)]
            arcs += [Arc(after, label, after) for label in ignored]
            after += 1
        automaton.arcs = arcs
    start = found.rules["rule", 0]
    first = start.states
    moved = [arc._replace(source=arc.source or first, target=arc.target or first) for arc in start.arcs]
    start.arcs = [*(Arc(0, label, 0) for label in ignored), Arc(0, None, first), *moved]
    start.accepting = {state or first for state in start.accepting}
