"""The model of cost: what one answer costs an actor, and what a batch of answers takes.

An actor is one process with one model. It evaluates tokens in three ways:

- *prompts*: tokens that no earlier prompt began with, at ``prompt_rate`` tokens a second;
- *runs*: a chosen token and the forced tokens after it, in one evaluation, for one answer alone;
- *steps*: one chosen token for each of ``n`` answers in one evaluation, which takes cost(n) seconds.

So in steady state, with ``n`` answers in progress, an answer takes

    seconds = prompt tokens / prompt_rate + sum of its runs + steps * cost(n) / n

The last answers of a batch are written while other places are empty already: there, steps cost cost(n) / n with a
smaller n. ``batch_seconds`` plays that through, answer by answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Answer:
    """The tokens of one answer of the sample.

    Attributes:
        prompt: tokens of its prompt.
        evaluated: tokens of the prompt that had to be evaluated.
        completion: tokens of the answer.
        steps: evaluations of one chosen token.
        runs: numbers of tokens of its runs.
    """

    prompt: int
    evaluated: int
    completion: int
    steps: int
    runs: tuple[int, ...]


@dataclass(frozen=True)
class Costs:
    """What ``measure`` has found.

    Attributes:
        actors: processes that computed at once.
        threads: threads of each.
        parallel: the most answers at once.
        steps: seconds of one evaluation of one token each, by the number of answers.
        runs: seconds of one evaluation of several tokens of one answer, by the number of tokens.
        prompt_rate: tokens of prompts in a second.
        start: seconds from the start of a process until it answers.
        private_bytes: memory of a process that it does not share.
        shared_bytes: memory that the processes share: weights in the file, and libraries.
        answers: the answers of the sample.
    """

    actors: int
    threads: int
    parallel: int
    steps: dict[int, float]
    runs: dict[int, float]
    prompt_rate: float
    start: float
    private_bytes: float
    shared_bytes: float
    answers: tuple[Answer, ...]

    @staticmethod
    def read(written: Mapping[str, Any]) -> Costs:
        """Returns costs from JSON, whose keys are texts."""
        tables = {name: {int(size): each for size, each in written[name].items()} for name in ("steps", "runs")}
        answers = tuple(Answer(**{**each, "runs": tuple(each["runs"])}) for each in written["answers"])
        return Costs(**{**written, **tables, "answers": answers})

    def step(self, n: int) -> float:
        """Returns cost(n). Raises ``ValueError`` beyond the greatest number that was measured."""
        if n > max(self.steps):
            raise ValueError(f"{n} answers at once were not measured, only up to {max(self.steps)}: measure again")
        return float(np.interp(n, [*self.steps], [*self.steps.values()]))

    def run(self, count: int) -> float:
        """Returns the seconds of a run; beyond the longest that was measured, further tokens are those of a prompt."""
        longest = max(self.runs)
        known = float(np.interp(count, [*self.runs], [*self.runs.values()]))
        return known + max(0, count - longest) / self.prompt_rate

    def serial(self, answer: Answer) -> tuple[float, float]:
        """Returns the seconds of an answer's prompt and of its runs, which no other answer shares."""
        return answer.evaluated / self.prompt_rate, sum(map(self.run, answer.runs))

    def mean_work(self) -> tuple[float, float, float]:
        """Returns the mean seconds of prompts and of runs, and the mean number of steps."""
        prompts, runs = zip(*map(self.serial, self.answers), strict=True)
        return float(np.mean(prompts)), float(np.mean(runs)), float(np.mean([each.steps for each in self.answers]))

    def mean_evaluated(self) -> float:
        """Returns the mean number of a prompt's tokens that are evaluated."""
        return float(np.mean([each.evaluated for each in self.answers]))

    def mean_runs(self) -> float:
        """Returns the mean number of runs."""
        return float(np.mean([len(each.runs) for each in self.answers]))

    def node_bytes(self, actors: int) -> float:
        """Returns the memory of the actors of a node."""
        return self.shared_bytes + actors * self.private_bytes


def mean_seconds(costs: Costs, parallel: int) -> float:
    """Returns the seconds of one answer in steady state."""
    prompts, runs, steps = costs.mean_work()
    return prompts + runs + steps * costs.step(parallel) / parallel


def batch_seconds(costs: Costs, answers: Sequence[Answer], parallel: int) -> float:
    """Returns the seconds of a batch of answers, of which ``parallel`` are in progress as long as there are so many."""
    by_count = [0.0, *(costs.step(count) for count in range(1, parallel + 1))]
    waiting = list(reversed(answers))
    left: list[int] = []  # steps of the answers in progress
    seconds = 0.0
    while waiting or left:
        while waiting and len(left) < parallel:
            answer = waiting.pop()
            seconds += sum(costs.serial(answer))
            left.append(answer.steps)
        fewest = min(left)
        seconds += fewest * by_count[len(left)]
        left = [steps - fewest for steps in left if steps > fewest]
    return seconds
