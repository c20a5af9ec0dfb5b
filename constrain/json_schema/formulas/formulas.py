"""Boolean formulas over shapes, and binary decision diagrams (Bryant 1986) for them.

A formula lists the shapes that a value must and must not have. Formulas share parts and compare by identity, so that
deeply nested ``oneOf`` stays small. Diagrams are ordered by variable number and canonical: equal conditions are equal
numbers.
"""

# ruff: noqa: FBT001  (truth values are the data here)

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from constrain.errors import LimitError
from constrain.json_schema.shapes.combined import TRUE_FORMULA, atoms
from constrain.json_schema.shapes.data import And, Atom, Formula, Not, Or
from constrain.work import MAX_CASES, spend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


CHOICE_STEPS = 1
"""Compilation steps for each case of a diagram operation; ``MEMORY_SHARE``: bytes of memory per step."""

MEMORY_SHARE = 100

VISITS_PER_STEP = 5
"""Nodes of a diagram that are looked at per compilation step."""


def negated(formula: Formula) -> Formula:
    """Returns the negation of the formula."""
    return formula.part if isinstance(formula, Not) else Not(formula)


FALSE_FORMULA = Or(())


def simplified(formula: Formula, known: dict[Formula, Formula]) -> Formula:
    """Returns the formula with its parts in ``known`` replaced, and then without constant parts."""
    found = known.get(formula)
    if found is None:
        match formula:
            case Not(part):
                inside = simplified(part, known)
                found = formula if inside is part else Not(inside)
                if inside in (TRUE_FORMULA, FALSE_FORMULA):
                    found = FALSE_FORMULA if inside is TRUE_FORMULA else TRUE_FORMULA
            case And(parts):
                found = _joined(formula, [simplified(part, known) for part in parts], TRUE_FORMULA, FALSE_FORMULA)
            case Or(parts):
                found = _joined(formula, [simplified(part, known) for part in parts], FALSE_FORMULA, TRUE_FORMULA)
            case _:
                found = formula
        known[formula] = found
    return found


def _joined(formula: And | Or, parts: list[Formula], neutral: Formula, decisive: Formula) -> Formula:
    if decisive in parts:
        return decisive
    kept = tuple(part for part in parts if part is not neutral)
    if kept == formula.parts and kept:
        return formula
    return neutral if not kept else kept[0] if len(kept) == 1 else type(formula)(kept)


def listed_atoms(formulas: tuple[Formula, ...], limit: int) -> list[Atom]:
    """Returns the atoms as a list. Raises LimitError at once if diagrams of ``limit`` nodes cannot hold them."""
    found = list(islice(atoms(formulas), limit + 1))
    if len(found) > limit:
        raise too_many(limit)
    return found


def too_many(limit: int = MAX_CASES) -> LimitError:
    """Returns the error for diagrams or automata above the limit."""
    return LimitError(f"schemas combine in one value to more cases than MAX_CASES = {limit}; leave some of them out")


def bits(variables: Iterable[int]) -> int:
    """Returns the variables as a bit set."""
    return sum(1 << variable for variable in variables)


NEVER, ALWAYS = 0, 1
"""The diagrams of the conditions that are never and always true."""

NO_VARIABLE = 1 << 60
"""A number above all variables: the variable of the two constant diagrams."""


class Decisions:
    """Decision diagrams that share nodes. A node tests one variable: ``low`` if it is false, ``high`` if it is true.

    A path tests each variable at most once, and no node has two equal branches. Diagrams may be as deep as there are
    variables, so the methods use no recursion.
    """

    def __init__(self, limit: int = MAX_CASES) -> None:
        self._limit = limit
        self._nodes: list[tuple[int, int, int]] = [(NO_VARIABLE, 0, 0), (NO_VARIABLE, 1, 1)]
        self._supports: list[int] = [0, 0]
        self._ids: dict[tuple[int, int, int], int] = {}
        self._choices: dict[tuple[int, int, int], int] = {}
        self._settings: dict[tuple[int, bool], dict[int, int]] = {}  # by variable and value: node to remaining node
        self._possible: dict[tuple[int, bool], dict[int, bool]] = {}  # by variables and value

    def variable(self, number: int) -> int:
        """Returns the condition that this variable is true."""
        return self._node(number, NEVER, ALWAYS)

    def conjunction(self, literals: Iterable[tuple[int, bool]]) -> int:
        """Returns the condition that these variables have these values."""
        node = ALWAYS
        for variable, wanted in sorted(set(literals), reverse=True):
            asked = self.variable(variable)
            node = self.choose(asked, node, NEVER) if wanted else self.choose(asked, NEVER, node)
        return node

    def support(self, node: int) -> int:
        """Returns the variables of the condition, as a bit set."""
        return self._supports[node]

    def size(self, node: int) -> int:
        """Returns the number of nodes of the diagram."""
        seen: set[int] = set()
        stack = [node]
        while stack:
            top = stack.pop()
            if top > ALWAYS and top not in seen:
                seen.add(top)
                stack += self._nodes[top][1:]
        return len(seen)

    def question(self, node: int) -> tuple[int, int, int]:
        """Returns the variable of a node, and its branches for false and for true."""
        return self._nodes[node]

    def _node(self, variable: int, low: int, high: int) -> int:
        if low == high:
            return low
        key = variable, low, high
        found = self._ids.get(key)
        if found is None:
            if len(self._nodes) > self._limit:
                raise too_many(self._limit)
            found = self._ids[key] = len(self._nodes)
            self._nodes.append(key)
            support = self._supports[low] | self._supports[high] | 1 << variable
            spend(CHOICE_STEPS + support.bit_length() // (8 * MEMORY_SHARE))
            self._supports.append(support)
        return found

    def choose(self, condition: int, then: int, otherwise: int) -> int:  # noqa: C901  (the innermost loop: in one piece)
        """Returns the condition that equals ``then`` where ``condition`` holds, and ``otherwise`` elsewhere."""
        if condition <= ALWAYS:
            return then if condition else otherwise
        if then == otherwise:
            return then
        nodes, choices = self._nodes, self._choices
        known = len(choices)
        stack = [(condition, then, otherwise)]
        while True:
            key = stack[-1]
            found = choices.get(key)
            if found is None:
                condition, then, otherwise = key
                asked, low, high = nodes[condition]
                then_asked, then_low, then_high = nodes[then]
                other_asked, other_low, other_high = nodes[otherwise]
                variable = min(asked, then_asked, other_asked)
                if asked != variable:
                    low = high = condition
                if then_asked != variable:
                    then_low = then_high = then
                if other_asked != variable:
                    other_low = other_high = otherwise
                lower: int | None
                if low <= ALWAYS:
                    lower = then_low if low else other_low
                elif then_low == other_low:
                    lower = then_low
                else:
                    lower = choices.get((low, then_low, other_low))
                    if lower is None:
                        stack.append((low, then_low, other_low))
                higher: int | None
                if high <= ALWAYS:
                    higher = then_high if high else other_high
                elif then_high == other_high:
                    higher = then_high
                else:
                    higher = choices.get((high, then_high, other_high))
                    if higher is None:
                        stack.append((high, then_high, other_high))
                if lower is None or higher is None:
                    continue
                found = choices[key] = self._node(variable, lower, higher)
            stack.pop()
            if not stack:
                spend(CHOICE_STEPS * (len(choices) - known))
                return found

    def set(self, node: int, variable: int, value: bool) -> int:
        """Returns the condition with the variable set to ``value``."""
        bit = 1 << variable
        if not self._supports[node] & bit:
            return node
        known = self._settings.setdefault((variable, value), {})
        found = known.get(node)
        if found is not None:
            return found
        nodes, supports = self._nodes, self._supports
        stack = [node]
        while stack:
            top = stack[-1]
            asked, low, high = nodes[top]
            if asked == variable:
                known[top] = high if value else low
            else:
                low_waits = supports[low] & bit and low not in known
                high_waits = supports[high] & bit and high not in known
                if low_waits or high_waits:
                    if low_waits:
                        stack.append(low)
                    if high_waits:
                        stack.append(high)
                    continue
                known[top] = self._node(asked, known.get(low, low), known.get(high, high))
            stack.pop()
        return known[node]

    def set_all(self, node: int, variables: Iterable[int], *, value: bool) -> int:
        """Returns the condition with all these variables set to ``value``."""
        support = self._supports[node]
        asked = [variable for variable in variables if support >> variable & 1]
        if len(asked) < 2:
            return self.set(node, asked[0], value) if asked else node
        return self.cofactor(node, dict.fromkeys(asked, value))

    def may_hold(self, node: int, variables: int, *, value: bool) -> bool:
        """Returns whether the condition can hold with these variables, a bit set, set to ``value``; makes no node."""
        nodes, supports = self._nodes, self._supports
        if not supports[node] & variables:
            return node != NEVER
        known = self._possible.setdefault((variables, value), {})
        found = known.get(node)
        if found is not None:
            return found
        seen: set[int] = set()
        stack = [node]
        while stack and not found:
            top = stack.pop()
            if not supports[top] & variables:
                found = top != NEVER
            elif top not in seen:
                seen.add(top)
                asked, low, high = nodes[top]
                if not variables >> asked & 1:
                    stack += (low, high)
                else:
                    stack.append(high if value else low)
        spend(len(seen) // VISITS_PER_STEP)
        known[node] = bool(found)
        return known[node]

    def reach(self, node: int, thresholds: Mapping[int, int], number: int) -> int:
        """Returns the condition after a count is ``number``; ``thresholds``: variables "at least n", by n."""
        for threshold, variable in thresholds.items():
            if threshold <= number:
                node = self.set(node, variable, True)  # noqa: FBT003
        return node

    def cofactor(self, node: int, answers: Mapping[int, bool]) -> int:
        """Returns the condition with several variables set."""
        asked_for = bits(answers)
        nodes, supports = self._nodes, self._supports
        found: dict[int, int] = {}
        stack = [node]
        while stack:
            top = stack[-1]
            if top in found:
                stack.pop()
                continue
            asked, low, high = nodes[top]
            if not supports[top] & asked_for:
                found[top] = top
            elif asked in answers:
                branch = high if answers[asked] else low
                if branch in found:
                    found[top] = found[branch]
                else:
                    stack.append(branch)
            elif low in found and high in found:
                found[top] = self._node(asked, found[low], found[high])
            else:
                stack += (low, high)
        spend(len(found) // VISITS_PER_STEP)
        return found[node]

    def restrict(self, node: int, known: int, unset: int = -1) -> int:
        """Returns a condition that agrees with ``node`` where ``known`` holds (and ``unset`` is false), maybe smaller.

        Where one branch of ``known`` never holds, the result takes the other branch of ``node`` without a test (Coudert
        and Madre 1990). So the result is ALWAYS if ``known`` implies ``node``. ``node`` does not test ``unset``.
        """
        nodes = self._nodes
        found: dict[tuple[int, int], int] = {}
        stack = [(node, known)]
        while stack:
            key = stack[-1]
            node, known = key
            asked, low, high = nodes[node]
            known_asked, known_low, known_high = nodes[known]
            if node <= ALWAYS or known <= ALWAYS:
                found[key] = node
            elif known_asked < asked:
                either = known_low if known_asked == unset else self.choose(known_low, ALWAYS, known_high)
                if (node, either) not in found:
                    stack.append((node, either))
                    continue
                found[key] = found[node, either]
            else:
                if known_asked > asked:
                    known_low = known_high = known
                lower, higher = found.get((low, known_low)), found.get((high, known_high))
                if known_low == NEVER:
                    lower = higher
                elif lower is None:
                    stack.append((low, known_low))
                if known_high == NEVER:
                    higher = lower
                elif higher is None:
                    stack.append((high, known_high))
                if lower is None or higher is None:
                    continue
                found[key] = self._node(asked, lower, higher)
            stack.pop()
        return found[key]

    def follow(self, node: int, answers: Sequence[bool]) -> int:
        """Returns the value of a condition if each variable has the value at its index in ``answers``."""
        while node > ALWAYS:
            variable, low, high = self._nodes[node]
            node = high if answers[variable] else low
        return node

    def build(self, formula: Formula, of_atom: Callable[[Atom], int], known: dict[Formula, int]) -> int:
        """Returns the diagram of a formula; ``known`` holds the diagrams of its parts."""
        found = known.get(formula)
        if found is None:
            match formula:
                case Atom():
                    found = of_atom(formula)
                case Not(part):
                    found = self.choose(self.build(part, of_atom, known), NEVER, ALWAYS)
                case And(parts):
                    found = self.all_of(self.build(part, of_atom, known) for part in parts)
                case Or(parts):
                    found = NEVER
                    for node in self.from_below(self.build(part, of_atom, known) for part in parts):
                        found = self.choose(node, ALWAYS, found)
            known[formula] = found
        return found

    def build_all(self, node: int, formulas: Iterable[Formula], of_atom: Callable[[Atom], int]) -> int:
        """Returns the diagram of ``node`` and all the formulas, which share their parts."""
        known: dict[Formula, int] = {}
        return self.all_of((node, *(self.build(formula, of_atom, known) for formula in formulas)))

    def all_of(self, nodes: Iterable[int]) -> int:
        """Returns the condition that all of these hold."""
        found = ALWAYS
        for node in self.from_below(nodes):
            found = self.choose(node, found, NEVER)
        return found

    def from_below(self, nodes: Iterable[int]) -> list[int]:
        """Returns the conditions in an order in which joining keeps their diagrams, so that long lists stay linear."""
        return sorted(nodes, key=lambda node: self._nodes[node][0], reverse=True)
