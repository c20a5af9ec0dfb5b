"""The number of values of a goal: endless, or few enough to list.

Counting comes after productivity. A value is a tuple of its JSON type and its content; equal values are equal tuples,
in every spelling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from constrain.errors import LimitError
from constrain.json_schema.formulas.closing import emitted, emitted_strings
from constrain.json_schema.formulas.independent_keys import IndependentKeys
from constrain.json_schema.formulas.shape_automaton import OPENED, ShapeAutomaton
from constrain.json_schema.numbers.cells import GREATEST_EXACT, doubles_between, nearest
from constrain.json_schema.numbers.shape import NumberShape, list_numbers, step_of
from constrain.json_schema.shapes.arrays import item_goal
from constrain.json_schema.shapes.data import FALSE, NULL, TRUE, ArrayShape, ObjectShape
from constrain.json_schema.shapes.keys import key_classes
from constrain.json_schema.shapes.objects import key_goals
from constrain.json_schema.shapes.strings import StringShape, content, list_strings
from constrain.json_schema.spelling.languages import has_endless_texts
from constrain.kernel import longest_length, unproductive_item

if TYPE_CHECKING:
    from collections.abc import Iterable, Sized

    from constrain.json_schema.formulas.remembered.members import RememberedMembers
    from constrain.json_schema.formulas.shape_automaton import Read
    from constrain.json_schema.numbers.shape import Number
    from constrain.json_schema.shapes.data import Combination, Goal
    from constrain.language.policies import Policies

Value = tuple[object, ...]

MAX_COUNTED_DEPTH = 200
"""Levels of goals whose values are counted; beyond it, the number of values counts as unknown."""

MAX_PARTIAL_VALUES = 100_000
"""Beginnings of arrays and objects that listing the values of one goal may build; beyond it, the goal is not listed."""

MIN_ENDLESS_DOUBLES = 2**40
"""Doubles in an interval from which on its values count as endless: more than any text can hold."""

MAX_LISTED_DOUBLES = 4_096
"""Numbers of one shape that are listed to count their doubles."""

_SIMPLE: dict[int, Value] = {NULL: ("null",), FALSE: ("boolean", False), TRUE: ("boolean", True)}


class _TooMany(Exception):  # noqa: N818  no error: an answer
    """The values exceed the limit, or (if not ``sure``) their number is unknown."""

    def __init__(self, *, sure: bool) -> None:
        self.sure = sure


class Supply:
    """The numbers of values of the goals of one compilation, counted on demand.

    Closed objects have fewer keys, and years narrow dates. Where ``precision`` is ``"double"``, numbers with the same
    double are one value. Integers of 64 bits count as endless.
    """

    def __init__(self, policies: Policies) -> None:
        self._policies = policies
        self._by_double = policies.precision == "double"
        self._of_double: dict[float, Number] = {}  # the one number for each double
        self._endless: dict[Goal, bool] = {}
        self._listed: dict[Goal, tuple[int, tuple[Value, ...] | None, bool]] = {}
        self._under_way: set[Goal] = set()

    def is_endless(self, goal: Goal) -> bool:
        """Returns whether the goal surely has more values than any text can hold."""
        known = self._endless.get(goal)
        if known is not None:
            return known
        if goal in self._under_way:  # a value contains another value of the goal, so values grow without end
            return True
        if not goal.productive or len(self._under_way) == MAX_COUNTED_DEPTH:
            return False
        shapes = goal.shapes
        assert shapes is not None
        self._under_way.add(goal)
        try:
            objects, combinations = emitted(goal, close_objects=self._policies.close_objects)
            strings = emitted_strings(goal, self._policies)
            found = (
                any(map(self._has_endless_numbers, shapes.numbers))
                or any(map(_has_endless_strings, strings))
                or any(map(self._has_endless_arrays, shapes.arrays))
                or any(map(self._has_endless_objects, objects))
                or any(map(self._has_endless_combinations, combinations))
            )
        finally:
            self._under_way.remove(goal)
        if not self._under_way:  # otherwise the answer may depend on goals under way
            self._endless[goal] = found
        return found

    def values(self, goal: Goal, limit: int) -> tuple[Value, ...] | None:
        """Returns all values of the goal, or ``None`` if there are more than ``limit`` or they are unknown."""
        if self.is_endless(goal):
            return None
        values = self._ask(goal, limit)[1]
        return values if values is not None and len(values) <= limit else None

    def has_more_than(self, goal: Goal, limit: int) -> bool:
        """Returns whether the goal surely has more than ``limit`` values."""
        if self.is_endless(goal):
            return True
        _, values, sure = self._ask(goal, limit)
        return sure if values is None else len(values) > limit

    def _ask(self, goal: Goal, limit: int) -> tuple[int, tuple[Value, ...] | None, bool]:
        known = self._listed.get(goal)
        if known is None or (known[1] is None and known[0] < limit):
            try:
                known = (limit, tuple(self._list(goal, limit)), True)
            except _TooMany as answer:
                known = (limit, None, answer.sure)
            self._listed[goal] = known
        return known

    # Endless supplies.

    def _has_endless_arrays(self, shape: ArrayShape) -> bool:
        if unproductive_item(shape) is not None:
            return False
        longest = longest_length(shape)
        if longest is None and not shape.unique:
            return True
        reached = shape.prefix if longest is None else shape.prefix[:longest]
        goals = reached if longest is not None and longest <= len(shape.prefix) else (*reached, shape.rest)
        return any(map(self.is_endless, goals))

    def _has_endless_objects(self, shape: ObjectShape) -> bool:
        room = shape.maximum is None or shape.maximum > len(shape.required)
        members = key_goals(shape, shape.properties if room else shape.required)
        if any(map(self.is_endless, members.values())):
            return True
        undeclared = [key_class for key_class in key_classes(shape) if room]
        return any(each.number == float("inf") or self.is_endless(each.goal) for each in undeclared)

    def _has_endless_combinations(self, shape: Combination) -> bool:
        automaton = shape.automaton
        if automaton is None:
            return False
        if not isinstance(automaton, ShapeAutomaton):
            other = cast("IndependentKeys | RememberedMembers", automaton)
            return other.has_endless_keys() or any(map(self.is_endless, other.useful_goals()))
        useful = automaton.useful()
        reads = [read for read in automaton.reads if {read.source, read.target} <= useful and read.goal.productive]
        for read in reads:
            if isinstance(read.label, int) and automaton.classes[read.label].number == float("inf"):
                return True
            if self.is_endless(read.goal):
                return True
        base = shape.base
        return isinstance(base, ArrayShape) and not base.unique and _has_cycle(automaton, useful)

    # Lists.

    def _list(self, goal: Goal, limit: int) -> dict[Value, None]:
        found: dict[Value, None] = {}
        if not goal.productive:
            return found
        known = self._listed.get(goal)
        if known is not None and known[1] is not None:  # values of parts would be listed again for each beginning
            if len(known[1]) > limit:
                raise _TooMany(sure=True)
            return dict.fromkeys(known[1])
        if goal in self._under_way or len(self._under_way) == MAX_COUNTED_DEPTH:
            raise _TooMany(sure=False)
        self._under_way.add(goal)
        try:
            shapes = goal.shapes
            assert shapes is not None
            objects, combinations = emitted(goal, close_objects=self._policies.close_objects)
            found.update((value, None) for bit, value in _SIMPLE.items() if shapes.simple & bit)
            for number in shapes.numbers:
                _add(found, "number", self._numbers(number, limit), limit)
            for string in emitted_strings(goal, self._policies):
                _add(found, "string", _all_strings(string, limit), limit)
            for array in shapes.arrays:
                if unproductive_item(array) is None:
                    _add(found, "array", self._arrays(array, limit), limit)
            for shape in objects:
                _add(found, "object", self._objects(shape, limit), limit)
            for combined in combinations:
                kind = "array" if isinstance(combined.base, ArrayShape) else "object"
                _add(found, kind, self._combinations(combined, limit), limit)
        finally:
            self._under_way.remove(goal)
        self._listed[goal] = limit, tuple(found), True
        return found

    def _arrays(self, shape: ArrayShape, limit: int) -> list[tuple[Value, ...]]:
        longest = longest_length(shape)
        begun: list[tuple[Value, ...]] = [()]
        whole = list(begun) if shape.minimum == 0 else []
        length = 0
        while begun and length != longest:
            items = self._list(item_goal(shape, length), limit)
            begun = [(*array, item) for array in begun for item in items if not shape.unique or item not in array]
            length += 1
            _check_partial(begun)
            if length >= shape.minimum:
                whole += begun
            if len(whole) > limit:
                raise _TooMany(sure=True)
        return whole

    def _objects(self, shape: ObjectShape, limit: int) -> list[frozenset[tuple[str, Value]]]:
        room = shape.maximum is None or shape.maximum > len(shape.required)
        if room and key_classes(shape):
            raise _TooMany(sure=False)
        goals = key_goals(shape, dict.fromkeys((*shape.required, *shape.properties)) if room else shape.required)
        begun: list[frozenset[tuple[str, Value]]] = [frozenset()]
        for key, goal in goals.items():
            longer = [members | {(key, value)} for members in begun for value in self._list(goal, limit)]
            begun = longer if key in shape.required else begun + longer
            _check_partial(begun)
        most = len(goals) if shape.maximum is None else shape.maximum
        return [members for members in begun if shape.minimum <= len(members) <= most]

    def _has_endless_numbers(self, shape: NumberShape) -> bool:
        if shape.values is not None:
            return False
        if shape.minimum is None or shape.maximum is None:
            return True
        if self._by_double and doubles_between(shape.minimum, shape.maximum) < MIN_ENDLESS_DOUBLES:
            return False
        return step_of(shape) is None and shape.minimum != shape.maximum

    def _numbers(self, shape: NumberShape, limit: int) -> Iterable[Number] | None:
        """Returns the values of a shape, one for each double with ``by_double``; ``None`` if there are more."""
        if shape.values is None and step_of(shape) is None and shape.minimum != shape.maximum:
            raise _TooMany(sure=False)  # an interval with few doubles
        listed = list_numbers(shape, max(limit, MAX_LISTED_DOUBLES) if self._by_double else limit)
        if not self._by_double:
            return listed
        if listed is not None:
            return [self._of_double.setdefault(nearest(value), value) for value in listed]
        ends = shape.values or [bound for bound in (shape.minimum, shape.maximum) if bound is not None]
        if any(not -GREATEST_EXACT <= bound <= GREATEST_EXACT for bound in ends):
            every = step_of(shape) == 1 and shape.minimum is not None and shape.maximum is not None
            if not (every and doubles_between(shape.minimum, shape.maximum) >= limit):  # type: ignore[arg-type]
                raise _TooMany(sure=False)  # many numbers, perhaps few doubles
        return None

    def _combinations(self, shape: Combination, limit: int) -> dict[object, None]:
        """Returns the values of an automaton, member by member along all its paths."""
        automaton = shape.automaton
        if automaton is None or isinstance(automaton, IndependentKeys):
            raise _TooMany(sure=False)
        if not isinstance(automaton, ShapeAutomaton):
            return self._remembered(cast("RememberedMembers", automaton), limit)
        useful = automaton.useful()
        reads: dict[int, list[Read]] = {}
        for read in automaton.reads:
            if read.source in useful and read.target in useful and read.goal.productive:
                if isinstance(read.label, int):
                    raise _TooMany(sure=False)
                reads.setdefault(read.source, []).append(read)
        is_array = isinstance(shape.base, ArrayShape)
        unique = isinstance(shape.base, ArrayShape) and shape.base.unique
        moves: dict[int, list[int]] = {}
        for source, target in (*automaton.skips, *automaton.go_on):
            moves.setdefault(source, []).append(target)
        found: dict[object, None] = {}
        seen: set[tuple[int, tuple[object, ...]]] = set()
        work: list[tuple[int, tuple[object, ...]]] = [(OPENED, ())]
        while work:
            state, members = work.pop()
            if (state, members) in seen or state not in useful:
                continue
            seen.add((state, members))
            _check_partial(seen)
            if state in automaton.closing:
                found[members if is_array else frozenset(members)] = None
                if len(found) > limit:
                    raise _TooMany(sure=True)
            work += ((target, members) for target in moves.get(state, ()))
            for read in reads.get(state, ()):
                for value in self._list(read.goal, limit):
                    member = value if is_array else (read.label, value)
                    repeated = (unique and value in members) if is_array else read.label in map(_label, members)
                    if not repeated:
                        work.append((read.target, (*members, member)))
        return found

    def _remembered(self, automaton: RememberedMembers, limit: int) -> dict[object, None]:
        """Returns the objects that satisfy the conditions."""
        if any(any(automaton.viability.first(each)) for each in automaton.classes):
            raise _TooMany(sure=False)
        begun: list[tuple[frozenset[tuple[str, Value]], dict[int, bool]]] = [(frozenset(), {})]
        for key in automaton.keys:
            useful = set(automaton.viability.first(key))  # no object has a value for any other
            cells = [cell for cell in key.cells if cell.goal in useful]
            begun += [
                (members | {(key.name, value)}, {**answers, key.present: True, **dict(cell.answers)})
                for members, answers in begun
                for cell in cells
                for value in self._list(cell.goal, limit)
            ]
            _check_partial(begun)
        return {members: None for members, answers in begun if automaton.holds(answers)}


def _label(member: object) -> object:
    assert isinstance(member, tuple)
    return member[0]


def _add(found: dict[Value, None], kind: str, values: Iterable[object] | None, limit: int) -> None:
    if values is None:
        raise _TooMany(sure=True)
    found.update(((kind, value), None) for value in values)
    if len(found) > limit:
        raise _TooMany(sure=True)


def _check_partial(begun: Sized) -> None:
    if len(begun) > MAX_PARTIAL_VALUES:
        raise _TooMany(sure=False)


def _has_endless_strings(shape: StringShape) -> bool:
    if shape.values is not None:
        return False
    if not shape.parts:
        return shape.maximum is None or shape.maximum > 1
    try:
        return shape.maximum is None and has_endless_texts(content(shape))
    except LimitError:
        return False


def _all_strings(shape: StringShape, limit: int) -> tuple[str, ...] | None:
    try:
        return list_strings(shape, limit)
    except LimitError as error:
        raise _TooMany(sure=False) from error


def _has_cycle(automaton: ShapeAutomaton, useful: set[int]) -> bool:
    """Returns whether the automaton reads arrays of any length."""
    after: dict[int, set[int]] = {state: set() for state in useful}
    for source, target in (*automaton.skips, *automaton.go_on):
        if source in useful and target in useful:
            after[source].add(target)
    for read in automaton.reads:
        if read.source in useful and read.target in useful and read.goal.productive:
            after[read.source].add(read.target)
    while ends := [state for state, targets in after.items() if not targets]:
        for state in ends:
            del after[state]
        for targets in after.values():
            targets.difference_update(ends)
    return bool(after)


def json_value(value: Value) -> object:
    """Returns the value as ``json`` would parse it; decimals stay exact."""
    kind, *rest = value
    if kind == "array":
        assert isinstance(rest[0], tuple)
        return [json_value(item) for item in rest[0]]
    if kind == "object":
        assert isinstance(rest[0], frozenset)
        return {key: json_value(member) for key, member in sorted(rest[0], key=lambda member: str(member[0]))}
    return rest[0] if rest else None
