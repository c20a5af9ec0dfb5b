"""``uniqueItems``: arrays of different items never run out of values, so scarce values are counted.

``emission.arrays`` makes items differ (``distinct`` edges with a ``VALUE_SET`` slot; for formulas
``emission.combined``), and the kernel enforces it (kernel/README.md, "Distinct values"). This module bounds arrays
by the number of values of their items' goals. If positions compete for the same few values (``prefixItems`` of the
enums {1, 2, 3} and {1}), the array becomes an automaton that counts used values. Values that satisfy the same goals
form a class; a state is a position and the number of used values of each class. A state goes on if and only if the
remaining positions have distinct values left (Hall 1935); all other states are dropped.
"""

from __future__ import annotations

from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from constrain.errors import LimitError, UnsupportedSchemaError, describe_pointer
from constrain.json_schema.formulas.arrays import array_automaton
from constrain.json_schema.formulas.shape_automaton import OPENED, Read, ShapeAutomaton
from constrain.json_schema.numbers.shape import NumberShape, admits_number, lcm, step_of, to_decimal
from constrain.json_schema.shapes.combined import is_array
from constrain.json_schema.shapes.data import ANY, FALSE, NULL, TRUE, ArrayShape, Combination, Goal, Shapes
from constrain.json_schema.shapes.strings import admitted
from constrain.json_schema.spelling.languages import MANY
from constrain.json_schema.values.counting import Supply, json_value
from constrain.json_schema.values.productivity import children, expand_all, mark_productive
from constrain.kernel import longest_length, unproductive_item
from constrain.work import MAX_CASES, MAX_DISTINCT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from constrain.json_schema.shapes.goals import Goals
    from constrain.json_schema.values.counting import Value

MAX_COMPARED_PERIOD = 500
"""Least common multiple of the divisors that numbers must not be multiples of, in items that must differ. Beyond:
LimitError.

At twice this value, the kernel exceeds ``MAX_INTERSECTION_STATES`` when it proves that numbers differ.
"""

MAX_SCARCE_VALUES = 2_000
"""Listed values that the items of one array of different items may take, all together. Beyond: LimitError, or
UnsupportedSchemaError if the values of a single item are more."""


def settle_unique_items(goals: Goals, root: Goal, order: list[Goal]) -> list[Goal]:
    """Bounds all arrays of different items by their numbers of values; returns the goals that stay reachable.

    An array that loses its last value may take values from other goals, so rounds repeat until nothing changes.
    """
    settled: set[int] = set()
    kept: list[object] = []  # so that an id stays that of the settled shape
    while True:
        settlement = _Settlement(goals, settled, kept)
        changed = [goal for goal in order if goal.productive and settlement.settle(goal)]
        if not changed:
            _check_divisors(goals, order)
            return order
        for goal in order:
            if not goal.is_fixed:
                goal.productive = False
        order = expand_all(goals, root)
        mark_productive(order, close_objects=goals.policies.close_objects)


def _check_divisors(goals: Goals, order: list[Goal]) -> None:
    """Raises LimitError for excluded multiples in different items that exceed ``MAX_COMPARED_PERIOD``."""
    queue = [item for goal in order for item in _different_items(goal)]
    found = set(queue)
    for goal in queue:
        shapes = goal.shapes
        assert shapes is not None
        for number in shapes.numbers:
            if number.not_multiples and _period(number) > MAX_COMPARED_PERIOD:
                raise LimitError(
                    "under uniqueItems, the divisors that not excludes have a least common "
                    f"multiple of more than MAX_COMPARED_PERIOD = {MAX_COMPARED_PERIOD} (in units of the last digit)",
                    pointer=goals.pointer_of(goal),
                )
        for child in children(goal):
            if child not in found:
                found.add(child)
                queue.append(child)


def _different_items(goal: Goal) -> Iterator[Goal]:
    """Yields the goals of items of arrays whose items differ."""
    assert goal.shapes is not None
    for array in goal.shapes.arrays:
        if array.unique:
            yield from (*array.prefix, array.rest)
    for combined in goal.shapes.combined:
        if is_array(combined) and _is_unique(combined.base):
            assert combined.automaton is not None
            yield from combined.automaton.goals()


def _period(shape: NumberShape) -> int:
    """Returns the least common multiple of all divisors, as a number without a point."""
    step = step_of(shape)
    divisors = [*shape.not_multiples, *([] if step is None else [step])]
    period = reduce(lcm, divisors)
    places = max(max(0, -int(Decimal(to_decimal(each)).as_tuple().exponent)) for each in divisors)
    return int(period * 10**places)


class _Settlement:
    """One round over all goals, with the results so far."""

    def __init__(self, goals: Goals, settled: set[int], kept: list[object]) -> None:
        self.goals = goals
        self.supply = Supply(goals.policies)
        self.settled = settled
        self.kept = kept

    def settle(self, goal: Goal) -> bool:
        """Replaces shapes of the goal; returns whether any changed."""
        shapes = goal.shapes
        assert shapes is not None
        arrays: list[ArrayShape] = []
        combined = [each for each in shapes.combined if not (is_array(each) and _is_unique(each.base))]
        for shape in shapes.arrays:
            if not shape.unique or unproductive_item(shape) is not None:
                arrays.append(shape)
                continue
            bounded = self.bounded(goal, shape)
            if isinstance(bounded, ArrayShape):
                arrays.append(bounded)
            elif bounded is not None:
                combined.append(bounded)
        combined += (self.counted(goal, each) for each in shapes.combined if is_array(each) and _is_unique(each.base))
        new = Shapes(shapes.simple, shapes.numbers, shapes.strings, tuple(arrays), shapes.objects, tuple(combined))
        if all(map(_same, new, shapes)):
            return False
        goal.shapes = new
        return True

    def bounded(self, goal: Goal, shape: ArrayShape) -> ArrayShape | Combination | None:
        """Returns the same arrays, bounded so that items cannot run out; ``None`` if none are left."""
        longest = longest_length(shape)
        if shape.minimum > MAX_DISTINCT:
            raise LimitError(
                f"uniqueItems requires more items than MAX_DISTINCT = {MAX_DISTINCT}; lower minItems",
                pointer=self.goals.pointer_of(goal),
            )
        if longest is not None and longest <= 1:
            return shape._replace(unique=False)
        length = len(shape.prefix)
        reached = shape.prefix if longest is None else shape.prefix[:longest]
        scarce = any(not self.has_more_than(goal, each, index) for index, each in enumerate(reached))
        endless = (longest is not None and longest <= length) or self.supply.is_endless(shape.rest)
        if not endless:
            wanted = MANY if longest is None else min(longest - 1, MANY)
            if not self.has_more_than(goal, shape.rest, wanted):
                if not length:
                    return self.at_most(goal, shape, len(self.supply.values(shape.rest, wanted) or ()))
                scarce = True
            elif longest is None or longest > MANY:
                place = describe_pointer(self.goals.pointer_of(goal))
                message = f"arrays of different items at {place} have at most {MANY} items"
                self.goals.warnings[message] = None
                shape = shape._replace(maximum=MANY)
        return self.counted(goal, Combination(shape, ())) if scarce else shape

    def has_more_than(self, goal: Goal, item: Goal, number: int) -> bool:
        """Returns whether an item has more than ``number`` values. Raises an error if that is unknown."""
        if self.supply.has_more_than(item, number):
            return True
        if self.supply.values(item, number) is None:
            raise UnsupportedSchemaError(
                "uniqueItems cannot be enforced: it is unknown how many different items there are; list the items in "
                "an enum, or remove uniqueItems",
                pointer=self.goals.pointer_of(goal),
            )
        return False

    def at_most(self, goal: Goal, shape: ArrayShape, number: int) -> ArrayShape | None:
        """Returns the arrays of at most ``number`` items."""
        if shape.minimum > number:
            self.goals.shortages[goal] = (
                f"there must be {shape.minimum} different items, but only {number} different values are allowed"
            )
            return None
        return shape._replace(maximum=number)

    def counted(self, goal: Goal, shape: Combination) -> Combination:
        """Returns the combination with an automaton that counts scarce values."""
        if id(shape) in self.settled:
            return shape
        pointer = self.goals.pointer_of(goal)
        if shape.automaton is None:
            shape.automaton = automaton = array_automaton(self.goals, shape, pointer)
            for read in automaton.reads:
                self.expand(read.goal)
        assert isinstance(shape.base, ArrayShape)
        assert isinstance(shape.automaton, ShapeAutomaton)
        product = _Product(self.goals, self.supply, shape.automaton, longest_length(shape.base), pointer)
        if product.values:
            shape = Combination(shape.base, shape.formulas)
            shape.automaton = product.build()
            self.goals.shortages[goal] = "the items must all be different, and there are not enough different values"
        self.settled.add(id(shape))
        self.kept.append(shape)
        return shape

    def expand(self, goal: Goal) -> None:
        """Marks the parts of a new goal that have values."""
        mark_productive(expand_all(self.goals, goal))


def _is_unique(base: object) -> bool:
    return isinstance(base, ArrayShape) and base.unique


def _same(new: object, old: object) -> bool:
    if isinstance(new, tuple) and isinstance(old, tuple):
        return len(new) == len(old) and all(a == b for a, b in zip(new, old, strict=True))
    return new == old


class _Class(NamedTuple):
    """Values that satisfy the same goals, ``number`` of them."""

    goal: Goal
    admitting: frozenset[Goal]
    number: int


Used = tuple[int, ...]
Target = TypeVar("Target")


class _Product:
    """The product of an array's automaton and the numbers of used scarce values."""

    def __init__(self, goals: Goals, supply: Supply, automaton: ShapeAutomaton, most: int | None, pointer: str) -> None:
        """``most``: the greatest number of items, if it is bounded."""
        self.goals = goals
        self.automaton = automaton
        self.pointer = pointer
        useful = automaton.useful()
        self.reads = [
            read for read in automaton.reads if read.source in useful and read.target in useful and read.goal.productive
        ]
        listed: dict[Goal, frozenset[Value]] = {}
        self.ample: list[Goal] = []
        for goal in dict.fromkeys(read.goal for read in self.reads):
            values = supply.values(goal, MAX_SCARCE_VALUES)
            if values is not None:
                listed[goal] = frozenset(values)
            elif supply.is_endless(goal) or (most is not None and supply.has_more_than(goal, most + MAX_SCARCE_VALUES)):
                self.ample.append(goal)
            else:
                raise UnsupportedSchemaError(
                    "uniqueItems cannot be enforced: the values of some items may run out, and there are more than "
                    f"{MAX_SCARCE_VALUES:,} of them (MAX_SCARCE_VALUES) or an unknown number; list the items in an "
                    "enum, or remove uniqueItems",
                    pointer=pointer,
                )
        self.values = dict.fromkeys(value for values in listed.values() for value in values)
        if len(self.values) > MAX_SCARCE_VALUES:
            raise LimitError(
                f"uniqueItems: the items may take more than {MAX_SCARCE_VALUES:,} different listed values in all "
                f"(MAX_SCARCE_VALUES = {MAX_SCARCE_VALUES}), too many to keep count of; list fewer values, or remove "
                "uniqueItems",
                pointer=pointer,
            )
        self.classes = self._classes(listed) if self.values else []

    def _classes(self, listed: dict[Goal, frozenset[Value]]) -> list[_Class]:
        members: dict[frozenset[Goal], list[Value]] = {}
        for value in self.values:
            admitting = [goal for goal, values in listed.items() if value in values]
            admitting += [goal for goal in self.ample if self._admits(goal, value)]
            members.setdefault(frozenset(admitting), []).append(value)
        return [_Class(self._enumeration(values), goals, len(values)) for goals, values in members.items()]

    def _enumeration(self, values: list[Value]) -> Goal:
        """Returns the goal of the listed values."""
        key = frozenset(values)
        goal = self.goals.enumerations.get(key)
        if goal is None:  # one goal for equal lists: recurring arrays have recurring goals
            at = self.goals.references.root
            goal = Goal(self.goals.references.inside(at, {"enum": list(map(json_value, values))}))
            self.goals.shapes(goal)
            self.goals.enumerations[key] = goal
        return goal

    def _admits(self, goal: Goal, value: Value) -> bool:
        if goal is ANY:
            return True
        shapes = goal.shapes
        assert shapes is not None
        kind, *rest = value
        what = rest[0] if rest else None
        if kind in ("array", "object"):
            if shapes.combined or (shapes.arrays if kind == "array" else shapes.objects):
                raise UnsupportedSchemaError(
                    f"uniqueItems cannot be enforced: some items are listed {kind}s, and others may equal one of them; "
                    "list all of these items in enums, or remove uniqueItems",
                    pointer=self.pointer,
                )
            return False
        if isinstance(what, str):
            return any(
                what in shape.values if shape.values is not None else bool(admitted(shape, (what,)))
                for shape in shapes.strings
            )
        if kind == "number":
            return any(admits_number(shape, what) for shape in shapes.numbers)  # type: ignore[arg-type]
        return bool(shapes.simple & (NULL if kind == "null" else TRUE if what else FALSE))

    def build(self) -> ShapeAutomaton:
        """Returns the automaton, after exploring its states."""
        made = ShapeAutomaton()
        start = (OPENED, (0,) * len(self.classes))
        ids: dict[tuple[int, Used], int] = {start: OPENED}
        queue = [start]

        def number(state: int, used: Used) -> int:
            found = ids.get((state, used))
            if found is None:
                found = ids[state, used] = len(ids)
                queue.append((state, used))
                if len(queue) > MAX_CASES:
                    raise LimitError(
                        f"uniqueItems needs more states than MAX_CASES = {MAX_CASES}; list fewer values, or remove it",
                        pointer=self.pointer,
                    )
            return found

        go_on, reads = _by_source(self.automaton.go_on), _by_source((read.source, read) for read in self.reads)
        all_values = self._enumeration(list(self.values))
        for state, used in queue:
            here = ids[state, used]
            if state in self.automaton.closing:
                made.closing.add(here)
            for target in go_on.get(state, ()):
                made.go_on.append((here, number(target, used)))
            for read in reads.get(state, ()):
                for index, each in enumerate(self.classes):
                    if read.goal in each.admitting and used[index] < each.number:
                        goal = self.goals.conjunction(read.goal, each.goal)
                        more = (*used[:index], used[index] + 1, *used[index + 1 :])
                        made.add_read(Read(here, None, goal, number(read.target, more)))
                if read.goal in self.ample:
                    goal = self.goals.conjunction(read.goal, self.goals.negation(all_values))
                    made.add_read(Read(here, None, goal, number(read.target, used)))
        return made


def _by_source(pairs: Iterable[tuple[int, Target]]) -> dict[int, list[Target]]:
    found: dict[int, list[Target]] = {}
    for source, target in pairs:
        found.setdefault(source, []).append(target)
    return found
