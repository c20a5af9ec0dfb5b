"""Members that may still be read, so that formulas over the memory can be made to hold.

Objects only gain members. So a condition is *viable* if it holds of the memory, or of the memory with further members.
A member may be read if the condition is viable afterwards. Both are decision diagrams over the variables of the
condition (``members``). The diagram of viability gives one member after the other the choice to come; members are
independent, so their order does not matter.

Conditions are divided into components without common keys; each component is viable or not by itself. If all possible
members together always make a component hold, nothing is tested. This is so for keys that require other keys, however
many there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from constrain.json_schema.formulas.formulas import ALWAYS, NEVER, Decisions
from constrain.json_schema.formulas.remembered.questions import PRESENT, Key, UndeclaredKeys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from constrain.json_schema.formulas.remembered.questions import ValueCell, Variable
    from constrain.json_schema.shapes.data import Goal

MAX_CLUSTER = 20_000
"""Product of the sizes of two conditions up to which they are tried as one."""


def clusters(decisions: Decisions, parts: Iterable[int]) -> list[int]:
    """Returns equivalent conditions, some of them joined if the result is no larger; conditions on top come last."""
    found: list[int] = []
    for part in decisions.from_below(part for part in dict.fromkeys(parts) if part != ALWAYS):
        size = decisions.size(part)
        if found and size > 1 and decisions.support(part) & decisions.support(found[-1]):
            before = decisions.size(found[-1])
            if before > 1 and before * size <= MAX_CLUSTER:
                both = decisions.choose(part, found[-1], NEVER)
                if decisions.size(both) <= before + size:
                    found[-1] = both
                    continue
        found.append(part)
    return found


class Members(Protocol):
    """The part of ``RememberedMembers`` that this module uses."""

    keys: list[Key]
    classes: list[UndeclaredKeys]
    variables: list[Variable]
    decisions: Decisions
    parts: list[int]

    def owners(self) -> Iterable[Key | UndeclaredKeys]:
        """Yields the keys and classes of keys that variables are about."""


class Component:
    """Conditions about the same members. ``viable``: the condition on memory under which they can hold later."""

    def __init__(self, parts: list[int]) -> None:
        self.parts = parts
        self.keys: list[Key] = []
        self.classes: list[UndeclaredKeys] = []
        self.viable = NEVER


class Viability:
    """The components, and the conditions under which each member may be read."""

    def __init__(self, members: Members, may_come: Callable[[ValueCell], bool]) -> None:
        self._decisions = members.decisions
        self._members = members
        self._cells: dict[Key | UndeclaredKeys, list[ValueCell]] = {
            owner: [cell for cell in owner.cells if may_come(cell)] for owner in members.owners()
        }
        self.components: list[Component] = []
        self._component_of: dict[Key | UndeclaredKeys, Component] = {}
        self._ways: dict[Key | UndeclaredKeys, list[tuple[int, ValueCell]]] = {}
        self._divide()
        for component in self.components:
            component.viable = self._viable(component)

    def _divide(self) -> None:
        """Divides the conditions into components: two with a common member, directly or through others, share one."""
        owners = [variable.owner for variable in self._members.variables]
        of_owner: dict[Key | UndeclaredKeys, int] = {}
        groups: dict[int, tuple[list[int], set[Key | UndeclaredKeys]]] = {}
        for number, part in enumerate(self._members.parts):
            support = self._decisions.support(part)
            about = {owner for variable, owner in enumerate(owners) if support >> variable & 1}
            parts = [part]
            for other in sorted({of_owner[owner] for owner in about if owner in of_owner}):
                theirs, more = groups.pop(other)
                parts = theirs + parts
                about |= more
            groups[number] = parts, about
            of_owner.update(dict.fromkeys(about, number))
        for parts, about in groups.values():
            component = Component(parts)
            component.keys = [key for key in self._members.keys if key in about]
            component.classes = [each for each in self._members.classes if each in about]
            self._component_of.update(dict.fromkeys(about, component))
            self.components.append(component)

    # Conditions for viability.

    def _viable(self, component: Component) -> int:
        if all(self._with_everything(component, part) == ALWAYS for part in component.parts):
            return ALWAYS
        node = self._decisions.all_of(map(self._possible, component.keys))
        for part in self._decisions.from_below(component.parts):
            node = self._decisions.choose(part, node, NEVER)
        viable = self._may_come(node)
        for each in component.classes:
            viable = self._may_grow(viable, each)
        component.parts = [self._decisions.restrict(node, viable)]
        return viable

    def _possible(self, key: Key) -> int:
        """Returns the condition that the answers of a key are those of one of its cells, as they always are.

        Without it, a diagram of a key with many values, of which one at most is there, would have all their subsets.
        """
        decisions = self._decisions
        nodes = {tuple(answer for _, answer in cell.answers): ALWAYS for cell in self._cells[key]}
        for variable in reversed(key.valued.values()):
            branches: dict[tuple[bool, ...], list[int]] = {}
            for (*answers, last), node in nodes.items():
                branches.setdefault(tuple(answers), [NEVER, NEVER])[last] = node
            asked = decisions.variable(variable)
            nodes = {answers: decisions.choose(asked, high, low) for answers, (low, high) in branches.items()}
        return decisions.choose(decisions.variable(key.present), nodes.get((), NEVER), ALWAYS)

    def _with_everything(self, component: Component, node: int) -> int:
        """Returns the condition with all possible members present."""
        answers = {key.present: True for key in component.keys if self._cells[key]}
        for each in component.classes:
            if any(all(answer for _, answer in cell.answers) for cell in self._cells[each]):
                answers.update(dict.fromkeys(each.levels, True))
        return self._decisions.cofactor(node, answers)

    def _may_come(self, node: int) -> int:
        """Returns the condition that ``node`` holds of memory, or of memory with more of the named keys."""
        decisions = self._decisions
        found = {NEVER: NEVER, ALWAYS: ALWAYS}
        stack = [node]
        while stack:
            top = stack[-1]
            if top in found:
                stack.pop()
                continue
            variable, low, high = decisions.question(top)
            waiting = [branch for branch in (low, high) if branch not in found]
            if waiting:
                stack += waiting
                continue
            stack.pop()
            absent, present = found[low], found[high]
            kind, owner, _ = self._members.variables[variable]
            if kind == PRESENT:
                for cell in self._cells[owner]:
                    absent = self._or(absent, self._answered(present, cell))
            found[top] = decisions.choose(decisions.variable(variable), present, absent)
        return found[node]

    def _answered(self, node: int, cell: ValueCell) -> int:
        """Returns the condition with the value of its first key in the cell."""
        answers = dict(cell.answers)
        while node > ALWAYS:
            variable, low, high = self._decisions.question(node)
            if variable not in answers:
                break
            node = high if answers[variable] else low
        return node

    def _may_grow(self, node: int, each: UndeclaredKeys) -> int:
        levels = each.levels
        at = self._at_level(node, levels, len(levels))
        if not each.runs_out:
            for cell in self._cells[each]:
                at = self._or(at, self._broken(at, cell))
        result = at
        for number in range(len(levels) - 1, -1, -1):
            before = self._at_level(node, levels, number)
            for cell in self._cells[each]:
                before = self._or(before, self._broken(at, cell))
            result = self._decisions.choose(self._decisions.variable(levels[number]), result, before)
            at = before
        return result

    def _with_key(self, node: int, key: Key, cell: ValueCell) -> int:
        return self._decisions.cofactor(node, {key.present: True, **dict(cell.answers)})

    def _with_another(self, node: int, each: UndeclaredKeys, cell: ValueCell) -> int:
        """Returns the condition that ``node`` holds after one more member of this class, which has keys left."""
        levels = each.levels
        result = self._broken(self._at_level(node, levels, len(levels)), cell)
        for number in range(len(levels) - 1, -1, -1):
            grown = self._broken(self._at_level(node, levels, number + 1), cell)
            result = self._decisions.choose(self._decisions.variable(levels[number]), result, grown)
        return result

    def _at_level(self, node: int, levels: list[int], number: int) -> int:
        return self._decisions.cofactor(node, {level: place < number for place, level in enumerate(levels)})

    def _broken(self, node: int, cell: ValueCell) -> int:
        return self._decisions.cofactor(node, {variable: False for variable, answer in cell.answers if not answer})

    def _or(self, one: int, two: int) -> int:
        return self._decisions.choose(one, ALWAYS, two)

    # Conditions for reading a member, and for the end.

    def ways(self, owner: Key | UndeclaredKeys) -> list[tuple[int, ValueCell]]:
        """Returns the cells of the next member's value, each with its condition on memory.

        The condition assumes that the key is unread, that the class has keys left, and that all is viable so far.
        """
        found = self._ways.get(owner)
        if found is None:
            component = self._component_of.get(owner)
            viable = ALWAYS if component is None else component.viable
            conditions = ((self._condition(viable, owner, cell), cell) for cell in self._cells[owner])
            found = self._ways[owner] = [(condition, cell) for condition, cell in conditions if condition != NEVER]
        return found

    def _condition(self, viable: int, owner: Key | UndeclaredKeys, cell: ValueCell) -> int:
        if viable == ALWAYS:
            return ALWAYS
        if isinstance(owner, Key):
            return self._decisions.restrict(self._with_key(viable, owner, cell), viable, owner.present)
        return self._decisions.restrict(self._with_another(viable, owner, cell), viable)

    def enough(self) -> list[int]:
        """Returns the conditions that must all hold at the end of the object, given that all is viable."""
        return [part for component in self.components for part in component.parts if part != ALWAYS]

    def tests(self) -> Iterator[int]:
        """Yields all conditions that are tested."""
        yield from self.enough()
        for owner in self._cells:
            yield from (condition for condition, _ in self.ways(owner))

    # The empty object.

    def _holds_of_none(self, node: int) -> bool:
        answers = [variable.true_of_none for variable in self._members.variables]
        return self._decisions.follow(node, answers) == ALWAYS

    def is_satisfiable(self) -> bool:
        """Returns whether an object satisfies all conditions."""
        return all(self._holds_of_none(component.viable) for component in self.components)

    def may_be_empty(self) -> bool:
        """Returns whether the empty object satisfies all conditions."""
        return self.is_satisfiable() and all(map(self._holds_of_none, self.enough()))

    def first(self, owner: Key | UndeclaredKeys) -> Iterator[Goal]:
        """Yields the goals of values with which the first member may come; any member of an object may be first."""
        if self.is_satisfiable():
            yield from (cell.goal for condition, cell in self.ways(owner) if self._holds_of_none(condition))
