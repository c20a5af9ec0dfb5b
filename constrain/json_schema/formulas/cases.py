"""Cases of a member's value: the questions of the formulas that the value answers with yes, and with no."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from constrain.json_schema.formulas.disjoint import are_disjoint, listed_scalars, satisfying_both
from constrain.json_schema.formulas.formulas import NEVER, Decisions, bits
from constrain.json_schema.shapes.data import ANY, NOTHING, Goal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from constrain.json_schema.shapes.goals import Goals

Counters = tuple[int, ...]
"""Numbers of members so far: all members first, then each counted kind."""


class Case(NamedTuple):
    """Values that satisfy ``goal``; they leave the diagram ``node`` to decide, with these counters."""

    goal: Goal
    node: int
    counters: Counters


class Question:
    """A question about a value: does it satisfy ``goal``? If not, ``variables`` become false.

    If it does, the variables in ``decided`` become true, and the others stay open.
    """

    def __init__(self, decisions: Decisions, goal: Goal, variables: Sequence[int], decided: Sequence[int] = ()) -> None:
        self.decisions = decisions
        self.goal = goal
        self.variables = bits(variables)
        self.violated = variables
        self._decided = decided
        self._changed = bits(variables), bits(decided)  # by answer

    def answer(self, node: int, counters: Counters, *, yes: bool) -> tuple[int, Counters]:
        """Returns the diagram and the counters after the answer."""
        return self.decisions.set_all(node, self._decided if yes else self.violated, value=yes), counters

    def may_be(self, node: int, counters: Counters, *, yes: bool) -> bool:  # noqa: ARG002  (counting needs it)
        """Returns whether the condition can hold after the answer."""
        return self.decisions.may_hold(node, self._changed[yes], value=yes)


class Cases:
    """Splits the values of one member into cases, one for each combination of answers."""

    def __init__(self, goals: Goals, decisions: Decisions) -> None:
        self.goals = goals
        self.decisions = decisions

    def split(self, case: Case, questions: Iterable[Question]) -> list[Case]:
        """Returns the cases of ``case`` in which the formulas can still hold."""
        support = self.decisions.support
        if case.node == NEVER or case.goal is NOTHING:
            return []
        pending = [question for question in questions if question.variables & support(case.node)]
        if not pending:
            return [case]
        self.goals.count_cases(len(pending))
        chosen = next((q for q in pending if self._demands(case, q)), pending[0])
        rest = [question for question in pending if question is not chosen]
        if chosen.goal is ANY:
            return self.split(Case(case.goal, *chosen.answer(case.node, case.counters, yes=True)), rest)
        if chosen.goal is NOTHING:
            return self.split(Case(case.goal, *chosen.answer(case.node, case.counters, yes=False)), rest)
        yes = self._satisfied(case, chosen, rest)
        no = self._violated(case, chosen, rest)
        return self._merged(case, chosen.goal, yes, no)

    def _demands(self, case: Case, question: Question) -> bool:
        return not all(question.may_be(case.node, case.counters, yes=answer) for answer in (False, True))

    def _satisfied(self, case: Case, question: Question, rest: list[Question]) -> list[Case]:
        """Returns the cases in which the value satisfies the question's goal, and then not those that exclude it."""
        if not question.may_be(case.node, case.counters, yes=True):
            return []
        goal = satisfying_both(self.goals, case.goal, question.goal)
        if goal is NOTHING or not any(self.goals.shapes(goal)):
            return []
        node, counters = question.answer(case.node, case.counters, yes=True)
        support = self.decisions.support(node)
        left: list[Question] = []
        violated: list[int] = []
        for other in rest:
            if other.variables & support and self._excluded(goal, other):
                violated += other.violated
            else:
                left.append(other)
        return self.split(Case(goal, self.decisions.set_all(node, violated, value=False), counters), left)

    def _violated(self, case: Case, question: Question, rest: list[Question]) -> list[Case]:
        if not question.may_be(case.node, case.counters, yes=False):
            return []
        goal = case.goal
        if not self._excluded(goal, question):
            goal = self.goals.conjunction(goal, self.goals.negation(question.goal))
            if goal is NOTHING or not any(self.goals.shapes(goal)):
                return []
        return self.split(Case(goal, *question.answer(case.node, case.counters, yes=False)), rest)

    def _excluded(self, goal: Goal, question: Question) -> bool:
        """Returns whether the listed values of the goal surely violate the question's goal, which then adds nothing."""
        shapes = self.goals.shapes(goal)
        return listed_scalars(shapes) is not None and are_disjoint(
            self.goals, shapes, self.goals.shapes(question.goal), 0
        )

    def _merged(self, case: Case, goal: Goal, yes: list[Case], no: list[Case]) -> list[Case]:
        """Returns both lists; or one case, if the answer makes no difference."""
        if len(yes) == len(no) == 1 and yes[0][1:] == no[0][1:]:
            satisfied = satisfying_both(self.goals, case.goal, goal)
            violated = self.goals.conjunction(case.goal, self.goals.negation(goal))
            if yes[0].goal is satisfied and no[0].goal is violated:
                return [case._replace(node=yes[0].node, counters=yes[0].counters)]
        return yes + no
