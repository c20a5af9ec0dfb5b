"""Shapes to grammar: one rule per goal that has arrays or objects; scalars are terminals on the edges around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain._errors import LimitError
from constrain.grammar import Edge, Grammar, Kind, Role, Rule, Terminal
from constrain.json_schema.array_automata import add_array
from constrain.json_schema.arrays import unproductive_item
from constrain.json_schema.closing import emitted, has_value, is_productive
from constrain.json_schema.combined_automata import add_combined
from constrain.json_schema.goal import NOTHING, Goal, place
from constrain.json_schema.object_automata import add_object
from constrain.json_schema.objects import ObjectShape
from constrain.json_schema.productivity import children
from constrain.json_schema.punctuation import PUNCTUATION
from constrain.json_schema.rule_automaton import END, START, RuleAutomaton
from constrain.json_schema.scalars import number_spellings, scalar_terminals
from constrain.json_schema.spelling import spell_string
from constrain.regex.tree import Concatenation, Expression, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from constrain.json_schema.policies import Policies
    from constrain.json_schema.shapes import Shapes
    from constrain.json_schema.strings import StringShape

MAX_EDGES = 2_000_000
"""Edges of one grammar: the largest real schemas make about 100,000."""


class Emitter:
    """Terminals and rules of one grammar while they are collected."""

    def __init__(self, policies: Policies, *, plain_integers: bool = False, keys_apart: bool = False) -> None:
        self.punctuation = PUNCTUATION[policies.whitespace]
        self.policies = policies
        self._number_spellings = number_spellings(policies.numbers, plain_integers=plain_integers)
        self.terminals: list[Terminal] = []
        self.rules: list[Rule | None] = []
        self._ids: dict[int, int] = {}
        self._keys: dict[str, int] = {}
        self._bare_keys: dict[str, int] = {}
        self._undeclared: dict[int, Terminal] = {}
        self._symbols: dict[Goal, tuple[int, ...]] = {}
        self._scalars: dict[object, list[Terminal]] = {}
        self._queue: list[tuple[Goal, int]] = []
        self._ambiguous: set[Goal] = set()
        self._always_apart = keys_apart
        self.keys_apart = keys_apart
        """Whether declared keys are read apart from their colons in the rule that is being made."""
        self._edges = 0

    def emit(self, root: Goal, reachable: Iterable[Goal]) -> Grammar:
        """The grammar of a productive goal; ``reachable``: itself and all goals it leads to."""
        self._ambiguous = ambiguous_goals(reachable)
        around = self.punctuation.around
        if around is None and root.shapes is not None and not _has_scalars(root.shapes):
            self.symbols(root)
        else:
            self._emit_start(root, around)
        goal = root
        try:
            for goal, rule in self._queue:
                self._emit_rule(goal, rule)
        except LimitError as error:
            place(error, goal)
            raise
        rules = tuple(rule for rule in self.rules if rule is not None)
        return Grammar(tuple(self.terminals), rules, self_delimiting=True)

    def _emit_start(self, root: Goal, around: Terminal | None) -> None:
        self.rules.append(None)
        edges = [Edge(START, symbol, END) for symbol in self.symbols(root)]
        accepting: tuple[int, ...] = (END,)
        if around is not None:
            white = self.add(around)
            edges += [Edge(2, symbol, END) for symbol in self.symbols(root)]
            edges += [Edge(START, white, 2), Edge(END, white, 3)]
            accepting = (END, 3)
        self.rules[0] = Rule("text", tuple(edges), accepting)

    def add(self, terminal: Terminal) -> int:
        """The symbol of a terminal; the same object is added once."""
        symbol = self._ids.get(id(terminal))
        if symbol is None:
            symbol = self._ids[id(terminal)] = len(self.terminals)
            self.terminals.append(terminal)
        return symbol

    def key(self, name: str) -> int:
        """The symbol of a declared key, its colon included unless ``keys_apart``."""
        keys = self._bare_keys if self.keys_apart else self._keys
        symbol = keys.get(name)
        if symbol is None:
            spelled = spell_string(name)
            tail = self.punctuation.colon_tail
            if self.keys_apart:
                expression: Expression = Literal(spelled)
            elif isinstance(tail, Literal):
                expression = Literal(spelled + tail.text)
            else:
                expression = Concatenation((Literal(spelled), tail))
            symbol = keys[name] = len(self.terminals)
            self.terminals.append(Terminal(f"key {name}", expression, "", Role.LABEL, spelled))
        return symbol

    def undeclared_key(self, expression: Expression) -> int:
        """The symbol of a class of undeclared keys, without the colon; the same expression is added once."""
        terminal = self._undeclared.get(id(expression))
        if terminal is None:
            terminal = self._undeclared[id(expression)] = Terminal("key", expression, "", Role.LABEL, kind=Kind.STRING)
        return self.add(terminal)

    def symbols(self, goal: Goal) -> tuple[int, ...]:
        """The symbols that read a value of a productive goal; reserves its rule if it needs one."""
        symbols = self._symbols.get(goal)
        if symbols is None:
            shapes = goal.shapes
            assert shapes is not None
            key = (shapes.simple, shapes.numbers, tuple(map(_identity, shapes.strings)))
            terminals = self._scalars.get(key)
            if terminals is None:
                try:
                    terminals = scalar_terminals(shapes, goal.location, self._number_spellings)
                except LimitError as error:
                    place(error, goal)
                    raise
                self._scalars[key] = terminals
            found = [self.add(terminal) for terminal in terminals]
            if (
                any(unproductive_item(array) is None for array in shapes.arrays)
                or any(map(is_productive, shapes.objects))
                or any(map(has_value, shapes.combined))
            ):
                found.append(~len(self.rules))
                self._queue.append((goal, len(self.rules)))
                self.rules.append(None)
            symbols = self._symbols[goal] = tuple(found)
        return symbols

    def _emit_rule(self, goal: Goal, rule: int) -> None:
        automaton = RuleAutomaton()
        self.keys_apart = self._always_apart or goal in self._ambiguous
        assert goal.shapes is not None
        for array in goal.shapes.arrays:
            if unproductive_item(array) is None:
                automaton.begin_alternative()
                add_array(self, automaton, array)
        objects, combinations = emitted(goal, close_objects=self.policies.close_objects)
        for shape in objects:
            automaton.begin_alternative()
            add_object(self, automaton, shape)
        for combined in combinations:
            automaton.begin_alternative()
            add_combined(self, automaton, combined)
        self._edges += len(automaton.edges)
        if self._edges > MAX_EDGES:
            raise LimitError(f"the grammar has more edges than MAX_EDGES = {MAX_EDGES}")
        name = "value" if goal.location is None else goal.location.pointer() or "/"
        self.rules[rule] = Rule(name, tuple(automaton.edges), (END,), tuple(automaton.slots))


def ambiguous_goals(goals: Iterable[Goal]) -> set[Goal]:
    """The goals that may be read side by side with others of a different kind, some with undeclared keys.

    There, one and the same key may be a declared one and an undeclared one. Both must end at the closing quote then:
    a lexeme that goes on to the colon would be preferred to one that ends before it.
    """
    found = {
        goal
        for goal in goals
        if (shapes := goal.shapes) and (len(shapes.arrays) > 1 or len(shapes.objects) > 1 or shapes.combined)
    }
    stack = list(found)
    while stack:
        for child in children(stack.pop()):
            if child not in found:
                found.add(child)
                stack.append(child)
    takes_any_key = any(
        shape.patterns or shape.additional is not NOTHING
        for goal in found
        if goal.shapes
        for shape in (*goal.shapes.objects, *(combined.base for combined in goal.shapes.combined))
        if isinstance(shape, ObjectShape)
    )
    return found if takes_any_key else set()


def _identity(shape: StringShape) -> tuple[object, ...]:
    """Equal for equal shapes whose patterns are the same objects; patterns are not hashed, which takes long."""
    return tuple(map(id, shape.parts)), shape.minimum, shape.maximum, shape.values


def _has_scalars(shapes: Shapes) -> bool:
    return bool(shapes.simple or shapes.numbers or shapes.strings)
