"""Grammars from shapes: one rule per goal with arrays or objects; scalars are terminals on the edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.errors import LimitError, UnsatisfiableSchemaError, UnsupportedSchemaError
from constrain.json_schema.emission.arrays import add_array
from constrain.json_schema.emission.combined import add_combined
from constrain.json_schema.emission.element_emission import ElementEmission
from constrain.json_schema.emission.emitting import EDGE_STEPS, RULE_STEPS, TERMINAL_STEPS, Emitting, UndeclaredKey
from constrain.json_schema.emission.objects import add_object
from constrain.json_schema.emission.scalars import BYTES_PER_STEP, scalar_steps, scalar_terminals
from constrain.json_schema.formulas.closing import emitted, emitted_strings, has_value, is_productive
from constrain.json_schema.numbers.shape import plainly_whole, within_64_bits
from constrain.json_schema.numbers.spellings import NumberPolicy
from constrain.json_schema.shapes.arrays import unproductive_item
from constrain.json_schema.shapes.data import NO_SHAPES, NOTHING, ArrayShape, Goal, ObjectShape
from constrain.json_schema.shapes.goal import place
from constrain.json_schema.shapes.strings import identity
from constrain.json_schema.spelling.canonical import spell_string
from constrain.json_schema.spelling.punctuation import PUNCTUATION
from constrain.json_schema.values.productivity import children
from constrain.language.grammar import EPSILON, Edge, Grammar, Kind, Role, Rule, Terminal
from constrain.language.rule_automaton import END, START, RuleAutomaton
from constrain.language.tree import EMPTY_TEXT, Concatenation, Expression, Literal
from constrain.work import spend

if TYPE_CHECKING:
    from collections.abc import Iterable

    from constrain.json_schema.emission.arguments import ArgumentForm, Outermost
    from constrain.json_schema.emission.string_spellings import StringSpellings
    from constrain.json_schema.shapes.data import Combination, Shapes
    from constrain.json_schema.shapes.strings import StringShape
    from constrain.language.policies import Policies


_ANY_KIND = "array or object"
"""The kind of a rule for both arrays and objects; ``array`` and ``object`` are those of one of them."""


class Emitter(Emitting):
    """Terminals and rules of one grammar while they are collected."""

    def __init__(
        self,
        policies: Policies,
        *,
        plain_integers: bool = False,
        plainly_whole: bool = False,
        keys_apart: bool = False,
        arguments: ArgumentForm | None = None,
    ) -> None:
        self.punctuation = PUNCTUATION[policies.whitespace]
        self.policies = policies
        self._arguments = arguments
        self._outermost: Outermost | None = None
        """The form of the object whose rule is being made, if it is not JSON."""
        self._outermost_symbols: dict[str, int] = {}
        self._outermost_values: dict[Goal, tuple[int, ...]] = {}
        self._raw: set[int] = set()
        self._plainly_whole = plainly_whole
        any_escapes = policies.escapes == "any" and (arguments is None or arguments.any_escapes)
        self._string_spellings = _string_spellings() if any_escapes else None
        self._number_policy = NumberPolicy(
            canonical=policies.numbers == "canonical",
            by_double=policies.precision == "double",
            zeros=policies.close_objects,
            plain_integers=plain_integers,
        )
        self.terminals: list[Terminal] = []
        self.rules: list[Rule | None] = []
        self._ids: dict[int, int] = {}
        self._keys: dict[str, int] = {}
        self._bare_keys: dict[str, int] = {}
        self._undeclared: dict[int, Terminal] = {}
        self._symbols: dict[Goal, tuple[int, ...]] = {}
        self._scalars: dict[object, list[Terminal]] = {}
        self._elements = ElementEmission(self, arguments.elements) if arguments and arguments.elements else None
        self._in_elements: ElementEmission | None = None
        """The notation of the object or array whose rule is being made, if it consists of elements."""
        self._inner: dict[tuple[Goal, str], int | None] = {}
        self._queue: list[tuple[Goal, int, str]] = []
        self._ambiguous: set[Goal] = set()
        self._always_apart = keys_apart
        self.keys_apart = keys_apart
        """Whether keys and colons are separate lexemes in the rule that is being made."""

    def emit(self, root: Goal, reachable: Iterable[Goal]) -> Grammar:
        """Returns the grammar of a goal that admits a value; ``reachable``: the goal and all goals that it leads to."""
        self._ambiguous = ambiguous_goals(reachable)
        around = self.punctuation.around
        if self._arguments is not None:
            self.rules.append(None)
            self._emit_arguments(root, self._arguments)
        elif around is None and root.shapes is not None and not _has_scalars(root.shapes):
            self.symbols(root)
        else:
            self._emit_start(root, around)
        goal = root
        try:
            for goal, rule, kind in self._queue:
                self._emit_rule(goal, rule, kind)
        except LimitError as error:
            place(error, goal)
            raise
        rules = tuple(rule for rule in self.rules if rule is not None)
        return Grammar(
            tuple(self.terminals),
            rules,
            self_delimiting=True,
            numbers_by_double=self.policies.precision == "double",
            strings_by_value=self._string_spellings is not None,
        )

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

    def _emit_arguments(self, root: Goal, form: ArgumentForm) -> None:
        """Adds the objects of a goal, and no other values, as the first rule."""
        assert root.shapes is not None
        objects = root.shapes._replace(
            simple=0,
            numbers=(),
            strings=(),
            arrays=(),
            combined=tuple(each for each in root.shapes.combined if isinstance(each.base, ObjectShape)),
        )
        if not any(map(is_productive, objects.objects)) and not any(map(has_value, objects.combined)):
            raise UnsatisfiableSchemaError("arguments are an object, but no object satisfies their schema", pointer="")
        json_punctuation = self.punctuation
        if form.outermost is not None:
            self._outermost, self.punctuation = form.outermost, form.outermost.punctuation()
        elif self._elements is not None:
            self._in_elements, self.punctuation = self._elements, self._elements.punctuation
        try:
            self._emit_rule(root, 0, "object")
        finally:
            self._outermost = None
            if self._elements is None or self._elements.form.item is None:
                self._in_elements, self.punctuation = None, json_punctuation

    def raw_arguments(self) -> frozenset[str]:
        """Returns the arguments that are strings written raw. Raises UnsupportedSchemaError for a mixed one."""
        assert self.rules[0] is not None
        onward: dict[int, list[Edge]] = {}
        for edge in self.rules[0].edges:
            onward.setdefault(edge.source, []).append(edge)
        keys = {symbol: name for name, symbol in self._outermost_symbols.items()}
        ways: dict[str, set[bool]] = {}
        for edge in self.rules[0].edges:
            if edge.symbol is not EPSILON and edge.symbol in keys:
                places = [edge.target]
                for place in places:  # a key, also without a colon
                    places += [each.target for each in onward.get(place, ()) if each.symbol is EPSILON]
                read = (each.symbol for place in places for each in onward.get(place, ()))
                found = {symbol in self._raw for symbol in read if symbol is not EPSILON}
                ways.setdefault(keys[edge.symbol], set()).update(found)
        for name, found in ways.items():
            if len(found) > 1:
                raise UnsupportedSchemaError(
                    f"the argument {name!r:.80} is a string in some calls and another value in others: "
                    "this form cannot express the difference",
                    pointer="",
                )
        return frozenset(name for name, found in ways.items() if True in found)

    def add(self, terminal: Terminal) -> int | None:
        """Adds a terminal to the grammar, each object once; returns its symbol, ``EPSILON`` for the empty text."""
        return EPSILON if terminal.expression is EMPTY_TEXT else self._symbol(terminal)

    def _symbol(self, terminal: Terminal) -> int:
        symbol = self._ids.get(id(terminal))
        if symbol is None:
            symbol = self._ids[id(terminal)] = len(self.terminals)
            self.terminals.append(terminal)
        return symbol

    def _argument(self, name: str, outermost: Outermost) -> int:
        symbol = self._outermost_symbols.get(name)
        if symbol is None:
            symbol = self._outermost_symbols[name] = self._symbol(outermost.key_terminal(name))
        return symbol

    def key(self, name: str) -> int:
        """Returns the symbol of a declared key, with its colon unless ``keys_apart``."""
        if self._in_elements is not None:
            return self._in_elements.key(name)
        if self._outermost is not None:
            return self._argument(name, self._outermost)
        keys = self._bare_keys if self.keys_apart else self._keys
        symbol = keys.get(name)
        if symbol is None:
            spend(TERMINAL_STEPS + len(name) // BYTES_PER_STEP)
            spelled = spell_string(name)
            tail = self.punctuation.colon_tail
            key: Expression = Literal(spelled)
            if self._string_spellings is not None:
                key = self._string_spellings.of(key)
            if self.keys_apart:
                expression = key
            elif isinstance(key, Literal) and isinstance(tail, Literal):
                expression = Literal(spelled + tail.text)
            else:
                expression = Concatenation((key, tail))
            symbol = keys[name] = len(self.terminals)
            self.terminals.append(Terminal(f"key {name}", expression, "", Role.LABEL, spelled))
        return symbol

    def undeclared_key(self, expression: Expression) -> UndeclaredKey:
        """Returns the symbols of a class of undeclared keys; adds the same expression once."""
        if self._in_elements is not None:
            return self._in_elements.undeclared_key(expression)
        if self._outermost is not None:
            raise UnsupportedSchemaError(
                "this form cannot express arguments that the schema does not declare by name", pointer=""
            )
        terminal = self._undeclared.get(id(expression))
        if terminal is None:
            terminal = Terminal("key", expression, "", Role.LABEL, kind=Kind.STRING)
            if self._string_spellings is not None:
                terminal = self._string_spellings.of_terminal(terminal)
            self._undeclared[id(expression)] = terminal
        colon = self.add(self.punctuation.colon)
        return UndeclaredKey(EPSILON, self._symbol(terminal), colon)

    def member(self, key: int, goal: Goal) -> tuple[int, ...]:
        """Returns the symbols that read a member's value, and what stands behind it, after a key."""
        return self.symbols(goal) if self._in_elements is None else self._in_elements.member(key, goal)

    def item(self, goal: Goal) -> tuple[int, ...]:
        """Returns the symbols that read an item of an array, and what stands around it."""
        return self.symbols(goal) if self._in_elements is None else self._in_elements.item(goal)

    def symbols(self, goal: Goal) -> tuple[int, ...]:
        """Returns the symbols that read a value of a goal, which must admit one; reserves a rule if one is needed."""
        if self._outermost is not None:
            return self._argument_symbols(goal, self._outermost)
        return self._json_symbols(goal)

    def _argument_symbols(self, goal: Goal, outermost: Outermost) -> tuple[int, ...]:
        """Returns the symbols that read a value of the outermost object and its end."""
        symbols = self._outermost_values.get(goal)
        if symbols is None:
            shapes = goal.shapes
            assert shapes is not None
            if outermost.raw_strings and shapes.strings and shapes == NO_SHAPES._replace(strings=shapes.strings):
                symbols = (self._symbol(outermost.raw(self.strings(goal))),)
                self._raw.update(symbols)
            else:
                symbols = self._json_symbols(goal)
                if outermost.behind_value:
                    behind = self._symbol(outermost.behind_terminal())
                    edges = [Edge(START, symbol, 2) for symbol in symbols]
                    symbols = (~len(self.rules),)
                    self.rules.append(Rule("argument", (*edges, Edge(2, behind, END)), (END,)))
            self._outermost_values[goal] = symbols
        return symbols

    def _json_symbols(self, goal: Goal) -> tuple[int, ...]:
        symbols = self._symbols.get(goal)
        if symbols is None:
            shapes = goal.shapes
            assert shapes is not None
            strings = self.strings(goal)
            terminals = self.scalars(goal, shapes if strings is shapes.strings else shapes._replace(strings=strings))
            inner = self.inner(goal, _ANY_KIND)
            symbols = (*map(self._symbol, terminals), *([] if inner is None else [inner]))
            self._symbols[goal] = symbols
        return symbols

    def scalars(self, goal: Goal, shapes: Shapes) -> list[Terminal]:
        """Returns the terminals of the scalars of some shapes of a goal."""
        key = (shapes.simple, shapes.numbers, tuple(map(identity, shapes.strings)))
        terminals = self._scalars.get(key)
        if terminals is None:
            try:
                scalars = shapes
                if self.policies.integers == "64-bit" and any(number.integer for number in shapes.numbers):
                    scalars = shapes._replace(numbers=tuple(map(within_64_bits, shapes.numbers)))
                spend(TERMINAL_STEPS + scalar_steps(scalars, self.policies.numbers, self.policies.precision))
                if self._plainly_whole:
                    scalars = scalars._replace(numbers=plainly_whole(scalars.numbers))
                terminals = scalar_terminals(scalars, goal.location, self._number_policy)
                if self._arguments is not None and self._arguments.constants:
                    terminals = [self._arguments.of_scalar(terminal) for terminal in terminals]
                if self._string_spellings is not None:
                    terminals = list(map(self._string_spellings.of_terminal, terminals))
            except LimitError as error:
                place(error, goal)
                raise
            self._scalars[key] = terminals
        return terminals

    def inner(self, goal: Goal, kind: str) -> int | None:
        """Returns the symbol that reads arrays or objects of a goal, or both; reserves a rule, ``None`` without any."""
        if (goal, kind) not in self._inner:
            symbol = None
            if _has_inner(goal, kind):
                symbol = ~len(self.rules)
                self._queue.append((goal, len(self.rules), kind))
                self.rules.append(None)
            self._inner[goal, kind] = symbol
        return self._inner[goal, kind]

    def strings(self, goal: Goal) -> tuple[StringShape, ...]:
        """Returns the strings of a goal that the grammar contains."""
        try:
            return emitted_strings(goal, self.policies)
        except LimitError as error:
            place(error, goal)
            raise

    def _emit_rule(self, goal: Goal, rule: int, kind: str) -> None:
        automaton = RuleAutomaton()
        self.keys_apart = self._always_apart or goal in self._ambiguous
        if self._in_elements is not None:
            self._in_elements.begin_rule()
        assert goal.shapes is not None
        for array in goal.shapes.arrays:
            if kind in (_ANY_KIND, "array") and unproductive_item(array) is None:
                automaton.begin_alternative()
                add_array(self, automaton, array)
        objects, combinations = emitted(goal, close_objects=self.policies.close_objects)
        for shape in objects if kind in (_ANY_KIND, "object") else ():
            automaton.begin_alternative()
            add_object(self, automaton, shape)
        for combined in combinations:
            if _is_of_kind(combined, kind):
                automaton.begin_alternative()
                add_combined(self, automaton, combined)
        edges = tuple(automaton.edges)
        if self._in_elements is not None:
            edges = self._in_elements.with_optional_breaks(automaton.edges)
        self.count_rule(len(edges))
        name = "value" if goal.location is None else goal.location.pointer() or "/"
        self.rules[rule] = Rule(name, edges, (END,), tuple(automaton.slots))

    def count_rule(self, edges: int) -> None:
        """Counts a rule with so many edges. Raises LimitError."""
        spend(RULE_STEPS + EDGE_STEPS * edges)


def _is_of_kind(combined: Combination, kind: str) -> bool:
    return kind in (_ANY_KIND, "array" if isinstance(combined.base, ArrayShape) else "object")


def _has_inner(goal: Goal, kind: str) -> bool:
    """Returns whether a goal has arrays or objects of this kind with a value."""
    shapes = goal.shapes
    assert shapes is not None
    return (
        (kind != "object" and any(unproductive_item(array) is None for array in shapes.arrays))
        or (kind != "array" and any(map(is_productive, shapes.objects)))
        or any(_is_of_kind(each, kind) and has_value(each) for each in shapes.combined)
    )


def ambiguous_goals(goals: Iterable[Goal]) -> set[Goal]:
    """Returns the goals that may be read side by side with goals of another kind, one with undeclared keys.

    There, the same key may be declared and undeclared. Both lexemes must then end at the closing quote: a lexeme with
    the colon would be longer and always win.
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


def _string_spellings() -> StringSpellings:
    from constrain.json_schema.emission.string_spellings import StringSpellings  # few ask for it

    return StringSpellings()


def _has_scalars(shapes: Shapes) -> bool:
    return bool(shapes.simple or shapes.numbers or shapes.strings)
