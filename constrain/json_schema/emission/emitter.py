"""Grammars from shapes: one rule per goal with arrays or objects; scalars are terminals on the edges.

``kernel.Emission`` makes the rules of arrays, and of objects with keys in schema order. It calls this
module for the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain import kernel
from constrain.errors import LimitError, UnsatisfiableSchemaError, UnsupportedSchemaError
from constrain.json_schema.emission.combined import add_combined
from constrain.json_schema.emission.element_emission import ElementEmission
from constrain.json_schema.emission.emitted import EmittedGrammar
from constrain.json_schema.emission.emitting import EDGE_STEPS, RULE_STEPS, TERMINAL_STEPS, UndeclaredKey
from constrain.json_schema.emission.outermost_emission import OutermostEmission
from constrain.json_schema.emission.scalars import scalar_steps, scalar_terminals
from constrain.json_schema.emission.unordered_objects import Member, add_unordered, check_new_keys
from constrain.json_schema.formulas.closing import emitted, emitted_strings, has_value, is_productive
from constrain.json_schema.numbers.shape import plainly_whole, within_64_bits
from constrain.json_schema.numbers.spellings import NumberPolicy
from constrain.json_schema.shapes.data import NOTHING, ObjectShape
from constrain.json_schema.shapes.goal import place
from constrain.json_schema.shapes.keys import JSON_STRING, KeyClass
from constrain.json_schema.shapes.strings import identity
from constrain.json_schema.spelling.punctuation import PUNCTUATION
from constrain.json_schema.values.productivity import children
from constrain.language.grammar import EPSILON, Edge, Kind, Role, Terminal
from constrain.language.tree import Expression, Literal
from constrain.work import MAX_LEAST_COUNT, spend

if TYPE_CHECKING:
    from collections.abc import Iterable

    from constrain.json_schema.emission.arguments import ArgumentForm
    from constrain.json_schema.emission.string_spellings import StringSpellings
    from constrain.json_schema.shapes.data import Combination, Goal, Shapes
    from constrain.json_schema.shapes.strings import StringShape
    from constrain.language.policies import Policies


_ANY_KIND = "array or object"
"""The kind of a rule for both arrays and objects; ``array`` and ``object`` are those of one of them."""


class Emitter(kernel.Emission):
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
        any_escapes = policies.escapes == "any" and (arguments is None or arguments.any_escapes)
        punctuation = PUNCTUATION[policies.whitespace]
        self._made = EmittedGrammar(
            JSON_STRING,
            punctuation,
            numbers_by_double=policies.precision == "double",
            strings_by_value=any_escapes,
        )
        super().__init__(
            self._made,
            punctuation,
            any_order=policies.property_order == "any",
            close_objects=policies.close_objects,
            keys_apart=keys_apart,
            any_spelling=any_escapes,
        )
        self.policies = policies
        self._arguments = arguments
        self._outermost: OutermostEmission | None = None
        self._plainly_whole = plainly_whole
        self._string_spellings = _string_spellings() if any_escapes else None
        self._number_policy = NumberPolicy(
            canonical=policies.numbers == "canonical",
            by_double=policies.precision == "double",
            zeros=policies.close_objects,
            plain_integers=plain_integers,
        )
        self._scalars: dict[object, list[Terminal]] = {}

    def emit(self, root: Goal, reachable: Iterable[Goal]) -> EmittedGrammar:
        """Returns the grammar of a goal that admits a value; ``reachable``: the goal and all goals that it leads to."""
        self.set_ambiguous(ambiguous_goals(reachable))
        assert root.shapes is not None
        try:
            if self._arguments is not None:
                self._emit_arguments(root, self._arguments)
            elif self.punctuation.around is None and not _has_scalars(root.shapes):
                self.symbols(root)
            else:
                self.make_start(root)
            self._make_rules()
        finally:
            self.notation = None  # which refers to the emitter: Python sees no circle that leads through the kernel
        return self._made

    def _make_rules(self) -> None:
        try:
            self.make_rules()
        except LimitError as error:
            assert self.goal is not None
            place(error, self.goal)
            raise

    def _emit_arguments(self, root: Goal, form: ArgumentForm) -> None:
        """Adds the objects of a goal, and no other values, as the first rule."""
        assert root.shapes is not None
        combined = [each for each in root.shapes.combined if isinstance(each.base, ObjectShape)]
        if not any(map(is_productive, root.shapes.objects)) and not any(map(has_value, combined)):
            raise UnsatisfiableSchemaError("arguments are an object, but no object satisfies their schema", pointer="")
        json_punctuation = self.punctuation
        rule = self.reserve()
        if form.outermost is not None:
            self._outermost = OutermostEmission(self, form.outermost)
            self.notation, self.punctuation = self._outermost, form.outermost.punctuation()
        elif form.elements is not None:
            elements = ElementEmission(self, form.elements)
            self.notation, self.punctuation = elements, elements.punctuation
        self.make_rule(root, rule, "object")
        if form.elements is None or form.elements.item is None:
            self.notation, self.punctuation = None, json_punctuation

    def raw_arguments(self) -> frozenset[str]:
        """Returns the arguments that are strings written raw. Raises UnsupportedSchemaError for a mixed one."""
        if self._outermost is None or not self._outermost.raw:
            return frozenset()
        edges = self._made.grammar.rules[0].edges
        onward: dict[int, list[Edge]] = {}
        for edge in edges:
            onward.setdefault(edge.source, []).append(edge)
        keys = {symbol: name for name, symbol in self._outermost.keys.items()}
        ways: dict[str, set[bool]] = {}
        for edge in edges:
            if edge.symbol is not EPSILON and edge.symbol in keys:
                places = [edge.target]
                for place in places:  # a key, also without a colon
                    places += [each.target for each in onward.get(place, ()) if each.symbol is EPSILON]
                read = (each.symbol for place in places for each in onward.get(place, ()))
                found = {symbol in self._outermost.raw for symbol in read if symbol is not EPSILON}
                ways.setdefault(keys[edge.symbol], set()).update(found)
        for name, found in ways.items():
            if len(found) > 1:
                raise UnsupportedSchemaError(
                    f"the argument {name!r:.80} is a string in some calls and another value in others: "
                    "this form cannot express the difference",
                    pointer="",
                )
        return frozenset(name for name, found in ways.items() if True in found)

    def undeclared_key(self, expression: Expression) -> UndeclaredKey:
        """Returns the symbols of a class of undeclared keys; adds the same expression once."""
        return UndeclaredKey(*super().undeclared_key(expression))

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

    def strings(self, goal: Goal) -> tuple[StringShape, ...]:
        """Returns the strings of a goal that the grammar contains."""
        try:
            return emitted_strings(goal, self.policies)
        except LimitError as error:
            place(error, goal)
            raise

    # The kernel calls these.

    def scalars_of(self, goal: Goal) -> list[Terminal]:
        """Returns the terminals of the scalars of a goal."""
        shapes, strings = goal.shapes, self.strings(goal)
        assert shapes is not None
        return self.scalars(goal, shapes if strings is shapes.strings else shapes._replace(strings=strings))

    def widened(self, spelled: bytes) -> Expression:
        """Returns all spellings of a key."""
        assert self._string_spellings is not None
        return self._string_spellings.of(Literal(spelled))

    def undeclared_terminal(self, expression: Expression) -> Terminal:
        """Returns the terminal of all spellings of undeclared keys."""
        assert self._string_spellings is not None
        return self._string_spellings.of_terminal(Terminal("key", expression, "", Role.LABEL, kind=Kind.STRING))

    def emitted(self, goal: Goal) -> tuple[list[ObjectShape], list[Combination]]:
        """Returns the objects and combinations that the grammar contains for a goal."""
        return emitted(goal, close_objects=self.policies.close_objects)

    def add_combined(self, rule: kernel.RuleAutomaton, shape: Combination) -> None:
        """Adds the values of a combination."""
        add_combined(self, rule, shape)

    def add_unordered(
        self,
        rule: kernel.RuleAutomaton,
        shape: ObjectShape,
        opened: int,
        members: list[tuple[int, Goal, bool]],
        classes: list[tuple[Expression, Goal, float]],
    ) -> None:
        """Adds the objects of a shape with keys in any order."""
        add_unordered(
            self, rule, shape, opened, [Member(*each) for each in members], [KeyClass(*each) for each in classes]
        )

    def check_new_keys(self, shape: ObjectShape, members: int) -> None:
        """Raises LimitError if an object must have too many undeclared keys."""
        check_new_keys(shape, members)

    def check_least(self, minimum: int) -> None:
        """Raises LimitError if an array must have too many items."""
        if minimum > MAX_LEAST_COUNT:
            raise LimitError(f"an array must have more items than MAX_LEAST_COUNT = {MAX_LEAST_COUNT}; lower minItems")

    def count(self, rules: int, edges: int, terminals: int, steps: int) -> None:
        """Counts rules, edges, terminals and other steps. Raises LimitError."""
        spend(RULE_STEPS * rules + EDGE_STEPS * edges + TERMINAL_STEPS * terminals + steps)


def ambiguous_goals(goals: Iterable[Goal]) -> set[Goal]:
    """Returns the goals that may be read side by side with goals of another kind, one with undeclared keys.

    There, the same key may be declared and undeclared. Both lexemes must then end at the closing quote: a lexeme with
    the colon would be longer and always win.
    """
    stack = kernel.goals_with_alternatives(goals)
    found = set(stack)
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
