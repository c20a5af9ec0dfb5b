"""Automata of arrays and objects that satisfy Boolean formulas: states say what is left of the formulas.

A state is a decision diagram (``constrain.json_schema.formulas.formulas``) over questions that the members still to
come will answer ("is the key a there?", "do all items satisfy G?"), with as many counters as questions ask for. Reading
a member answers some; where that depends on the member's value, the value is split into cases, each a goal of its own.

An *offer* state reads a member, a state *after* one may close the value or go on to an offer, as may START, where
nothing has been read yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from constrain.errors import LimitError
from constrain.json_schema.formulas.formulas import FALSE, Decisions
from constrain.json_schema.shapes.data import ANY, NOTHING, Goal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from constrain.json_schema.shapes.goals import Goals
    from constrain.json_schema.shapes.keys import KeyClass

    Change = Callable[[int, tuple[int, ...]], tuple[int, tuple[int, ...]]]

MAX_READS = 50_000
"""Ways to read a member, over all states of one automaton."""


START = -1
"""The state after the opening bracket."""


class Read(NamedTuple):
    """A member that takes an offer to a state after it. ``label``: a key, the number of a key class, or None (item)."""

    source: int
    label: str | int | None
    goal: Goal
    target: int


class Case(NamedTuple):
    """Values that satisfy ``goal`` leave ``node`` to be decided, with these counters."""

    goal: Goal
    node: int
    counters: tuple[int, ...]


class Question(NamedTuple):
    """Something that depends on whether a value satisfies ``goal``; ``variables``: bits of those it matters to."""

    goal: Goal
    variables: int
    yes: Change
    no: Change


class ShapeAutomaton:
    """States are numbers. ``go_on`` leads from states after a member to offers, ``skips`` from offers to offers."""

    def __init__(self) -> None:
        self.reads: list[Read] = []
        self.skips: list[tuple[int, int]] = []
        self.go_on: list[tuple[int, int]] = []
        self.closing: set[int] = set()
        self.classes: list[KeyClass] = []
        self.any_order = False

    def add_read(self, read: Read) -> None:
        """Adds a way to read a member."""
        if len(self.reads) >= MAX_READS:
            raise LimitError(f"schemas combine to an automaton with more edges than MAX_READS = {MAX_READS}")
        self.reads.append(read)

    def goals(self) -> Iterator[Goal]:
        """The goals of all members."""
        return (read.goal for read in self.reads)

    def live(self) -> set[int]:
        """The states from which the value can be closed, by goals that are known to be productive."""
        before: dict[int, list[int]] = {}
        for source, target in (*self.skips, *self.go_on):
            before.setdefault(target, []).append(source)
        for read in self.reads:
            if read.goal.productive:
                before.setdefault(read.target, []).append(read.source)
        found = set(self.closing)
        stack = list(found)
        while stack:
            for source in before.get(stack.pop(), ()):
                if source not in found:
                    found.add(source)
                    stack.append(source)
        return found

    def useful(self) -> set[int]:
        """The states that some value passes through."""
        live = self.live()
        after: dict[int, list[int]] = {}
        for source, target in (*self.skips, *self.go_on):
            after.setdefault(source, []).append(target)
        for read in self.reads:
            if read.goal.productive:
                after.setdefault(read.source, []).append(read.target)
        found = {START} & live
        stack = list(found)
        while stack:
            for target in after.get(stack.pop(), ()):
                if target in live and target not in found:
                    found.add(target)
                    stack.append(target)
        return found

    def is_productive(self) -> bool:
        """Whether some value is known to be read by it."""
        return START in self.live()

    def blockers(self) -> list[Goal] | None:
        """Goals of which one at least must turn out productive before any value can be; ``None`` if some value is."""
        live = self.live()
        if START in live:
            return None
        return [read.goal for read in self.reads if read.target in live and not read.goal.productive]


class Cases:
    """Splits the values of one member into cases, by the questions that matter."""

    def __init__(self, goals: Goals, decisions: Decisions) -> None:
        self.goals = goals
        self.decisions = decisions

    def split(self, case: Case, questions: Iterable[Question]) -> list[Case]:
        """The cases of ``case`` in which the formulas can still hold."""
        support = self.decisions.support
        if case.node == FALSE or case.goal is NOTHING:
            return []
        pending = [question for question in questions if question.variables & support(case.node)]
        if not pending:
            return [case]
        self.goals.count_cases(len(pending))
        chosen = next((q for q in pending if self._demands(case, q)), pending[0])
        rest = [question for question in pending if question is not chosen]
        if chosen.goal is ANY:
            return self.split(Case(case.goal, *chosen.yes(case.node, case.counters)), rest)
        if chosen.goal is NOTHING:
            return self.split(Case(case.goal, *chosen.no(case.node, case.counters)), rest)
        yes = self._branch(case, chosen.goal, chosen.yes, rest)
        no = self._branch(case, self.goals.negation(chosen.goal), chosen.no, rest)
        return self._merged(case, chosen.goal, yes, no)

    def _demands(self, case: Case, question: Question) -> bool:
        return question.no(case.node, case.counters)[0] == FALSE or question.yes(case.node, case.counters)[0] == FALSE

    def _branch(self, case: Case, goal: Goal, change: Change, rest: list[Question]) -> list[Case]:
        node, counters = change(case.node, case.counters)
        if node == FALSE:
            return []
        goal = self.goals.conjunction(case.goal, goal)
        if goal is NOTHING or not any(self.goals.shapes(goal)):
            return []
        return self.split(Case(goal, node, counters), rest)

    def _merged(self, case: Case, goal: Goal, yes: list[Case], no: list[Case]) -> list[Case]:
        """Both lists; as one case if it makes no difference what the goal is."""
        if len(yes) == len(no) == 1 and yes[0][1:] == no[0][1:]:
            satisfied = self.goals.conjunction(case.goal, goal)
            violated = self.goals.conjunction(case.goal, self.goals.negation(goal))
            if yes[0].goal is satisfied and no[0].goal is violated:
                return [case._replace(node=yes[0].node, counters=yes[0].counters)]
        return yes + no
