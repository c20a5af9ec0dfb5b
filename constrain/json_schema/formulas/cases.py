"""Cases of a member's value: the questions of the formulas that the value answers with yes, and with no."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from constrain.json_schema.formulas.formulas import NEVER, Decisions, bits
from constrain.json_schema.shapes.data import ANY, NOTHING, Goal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from constrain.json_schema.shapes.goals import Goals

    Effect = Callable[[int, "Counters"], tuple[int, "Counters"]]
    """A function from a diagram and counters to the diagram and counters after one answer."""

Counters = tuple[int, ...]
"""Numbers of members so far: all members first, then each counted kind."""


class Case(NamedTuple):
    """Values that satisfy ``goal``; they leave the diagram ``node`` to decide, with these counters."""

    goal: Goal
    node: int
    counters: Counters


class Question(NamedTuple):
    """A question about a value: does it satisfy ``goal``? ``variables``: bits of the variables that the answer sets."""

    goal: Goal
    variables: int
    yes: Effect
    no: Effect


def question_about(decisions: Decisions, goal: Goal, variables: Sequence[int], *, if_satisfied: bool) -> Question:
    """Returns the question that sets the variables to false if the value violates the goal.

    If the value satisfies the goal, the variables become true, or stay open without ``if_satisfied``.
    """
    return Question(
        goal,
        bits(variables),
        (lambda node, counters: (decisions.set_all(node, variables, value=True), counters))
        if if_satisfied
        else (lambda node, counters: (node, counters)),
        lambda node, counters: (decisions.set_all(node, variables, value=False), counters),
    )


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
            return self.split(Case(case.goal, *chosen.yes(case.node, case.counters)), rest)
        if chosen.goal is NOTHING:
            return self.split(Case(case.goal, *chosen.no(case.node, case.counters)), rest)
        yes = self._branch(case, chosen.goal, chosen.yes, rest)
        no = self._branch(case, self.goals.negation(chosen.goal), chosen.no, rest)
        return self._merged(case, chosen.goal, yes, no)

    def _demands(self, case: Case, question: Question) -> bool:
        return question.no(case.node, case.counters)[0] == NEVER or question.yes(case.node, case.counters)[0] == NEVER

    def _branch(self, case: Case, goal: Goal, change: Effect, rest: list[Question]) -> list[Case]:
        node, counters = change(case.node, case.counters)
        if node == NEVER:
            return []
        goal = self.goals.conjunction(case.goal, goal)
        if goal is NOTHING or not any(self.goals.shapes(goal)):
            return []
        return self.split(Case(goal, node, counters), rest)

    def _merged(self, case: Case, goal: Goal, yes: list[Case], no: list[Case]) -> list[Case]:
        """Returns both lists; or one case, if the answer makes no difference."""
        if len(yes) == len(no) == 1 and yes[0][1:] == no[0][1:]:
            satisfied = self.goals.conjunction(case.goal, goal)
            violated = self.goals.conjunction(case.goal, self.goals.negation(goal))
            if yes[0].goal is satisfied and no[0].goal is violated:
                return [case._replace(node=yes[0].node, counters=yes[0].counters)]
        return yes + no
