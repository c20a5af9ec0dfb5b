"""Measures the costs of a model on this machine, in as many processes at once as a node has actors.

The processes of a node share caches and the bandwidth of its memory, so that a step takes longer in company. Each
process therefore measures the same thing at the same moment as the others, and the means of all are kept. All
measurements ask the engine for answers, so that they include templates, masks and sampling:

- cost(n): ``n`` answers at once of 40 tokens and of 8, any tokens; the difference is that of 32 steps. Masks and
  sampling take part, since any token is allowed, but none can be left out.
- runs: texts of a letter that is chosen and some words that are forced, 8 times and twice; the difference is that of 6
  runs, and of some steps.
- prompts: made-up texts, as long as the part of the sample's prompts that had to be evaluated, with answers of a token,
  which is chosen from the logits of the prompt and costs no step.
- the sample: prompts of the job with their schema. A trace tells which tokens were forced.
"""

from __future__ import annotations

import importlib
import multiprocessing
import statistics
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import llama_cpp
import numpy as np
import psutil
from sample import make_prompts, read_schema
from work import Answer, Costs, batch_seconds

import constrain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from multiprocessing.synchronize import Barrier

SHORT, LONG = 8, 40
"""Tokens of the answers whose difference is the cost of steps."""

FORCED = (2, 4, 8, 16)
"""Words that are forced after a chosen letter, in the runs that are measured."""

FEW, MANY = 2, 8
"""Runs of the answers whose difference is the cost of runs."""

PATIENCE = 600
"""Seconds that a process waits for the others."""


@dataclass(frozen=True)
class Setting:
    """How actors work.

    Attributes:
        model: path of the GGUF file; ``None`` for the default model.
        actors: processes at once.
        threads: threads of each.
        parallel: the most answers that each writes at once.
        context: tokens of context of each answer.
        prompts, schema: paths of the files of a job; ``None`` for the made-up ones.
        max_tokens: the most tokens of an answer.
    """

    model: str | None
    actors: int
    threads: int
    parallel: int
    context: int
    prompts: str | None
    schema: str | None
    max_tokens: int

    def model_options(self) -> dict[str, Any]:
        """Returns arguments of ``Model``."""
        return {"n_ctx": self.context, "n_threads": self.threads, "parallel": self.parallel}

    def options(self) -> dict[str, Any]:
        """Returns options of the answers."""
        return {"max_tokens": self.max_tokens, "temperature": 0}


def measure(setting: Setting, sample: int, rounds: int) -> tuple[Costs, dict[str, Any]]:
    """Returns the costs, and facts about the measurement. Raises ``RuntimeError`` if a process ends early."""
    context = multiprocessing.get_context("spawn")
    together, found = context.Barrier(setting.actors), context.SimpleQueue()
    processes = [
        context.Process(target=_work, args=(setting, sample, rounds, time.time(), together, found, number), daemon=True)
        for number in range(setting.actors)
    ]
    for process in processes:
        process.start()
    parts = []
    while len(parts) < len(processes):
        while found.empty():
            if failed := [process.exitcode for process in processes if process.exitcode]:
                raise RuntimeError(f"a process that measures has ended with the status {failed[0]}")
            time.sleep(0.1)
        parts.append(found.get())
    for process in processes:
        process.join()
    means = {
        name: {size: statistics.mean(part[name][size] for part in parts) for size in parts[0][name]}
        for name in ("steps", "runs")
    }
    numbers = {
        name: statistics.mean(part[name] for part in parts) for name in ("prompt_rate", "start", "private", "shared")
    }
    costs = Costs(
        setting.actors,
        setting.threads,
        setting.parallel,
        means["steps"],
        means["runs"],
        numbers["prompt_rate"],
        numbers["start"],
        numbers["private"],
        numbers["shared"],
        parts[0]["answers"],
    )
    about = {
        "model": parts[0]["model"],
        "llama_cpp": llama_cpp.__version__,
        "rounds": rounds,
        "noise": max(part["noise"] for part in parts),
        "sample_seconds": statistics.mean(part["sample_seconds"] for part in parts),
        "sample_predicted_seconds": batch_seconds(costs, costs.answers, setting.parallel),
    }
    return costs, about


def _work(setting: Setting, sample: int, rounds: int, asked: float, together: Barrier, found: Any, number: int) -> None:
    """Measures in one of several processes, and puts the costs into a queue.

    ``number``: 0 for the process that prints what is measured, which takes minutes.
    """

    def tell(what: str) -> None:
        if not number:
            print(f"{time.time() - asked:4.0f} s: {what}", file=sys.stderr, flush=True)

    importlib.import_module("constrain.ray")  # an actor imports it, so it belongs to the start
    first, *prompts = make_prompts(1 + sample, setting.prompts)  # the first one warms up; the sample is as others are
    schema = read_schema(setting.schema)
    with constrain.Model(setting.model, **setting.model_options()) as model:
        _answer(model, [first], _any_tokens(1))
        start = time.time() - asked
        together.wait(PATIENCE)
        timer = _Timer(model, together, rounds)
        tell(f"{sample} answers to prompts of the job")
        constrain.complete_batch(model, [first], schema=schema, **setting.options())
        traced = constrain.complete_batch(model, prompts, schema=schema, trace=True, **setting.options())
        answers = tuple(map(_read_answer, traced))
        tell(f"steps of 1 to {setting.parallel} answers at once")
        steps = {n: timer.steps(n, prompts) for n in _counts(setting.parallel)}
        tell("forced text")
        runs = {1: steps[1], **dict(timer.runs(words, prompts[:1], steps[1]) for words in FORCED)}
        tell("prompts")
        length = round(statistics.mean(each.evaluated for each in answers))
        rate = timer.prompt_rate(max(16, length), 2 * setting.parallel)
        tell(f"twice {sample} answers to prompts of the job, for the time")
        seconds = timer.median(lambda: constrain.complete_batch(model, prompts, schema=schema, **setting.options()), 2)
        together.wait(PATIENCE)
        memory = psutil.Process().memory_full_info()
        together.wait(PATIENCE)
        part = {"answers": answers, "steps": steps, "runs": runs, "prompt_rate": rate, "start": start}
        part |= {"private": memory.uss, "shared": memory.rss - memory.uss, "noise": timer.noise}
        found.put({**part, "sample_seconds": seconds, "model": model.llama.model_path.rpartition("/")[2]})


def _counts(parallel: int) -> list[int]:
    """Returns the numbers of answers at once that are measured: powers of two, and the greatest."""
    return sorted({2**power for power in range(parallel.bit_length()) if 2**power <= parallel} | {parallel})


def _read_answer(completion: constrain.Completion) -> Answer:
    """Returns the evaluations that an answer took; the last tokens are not evaluated, the first go with the prompt."""
    assert completion.trace is not None
    evaluations: list[int] = []
    for token in completion.trace:
        if token.origin == "forced" and evaluations:
            evaluations[-1] += 1
        elif token.origin != "forced":
            evaluations.append(1)
    usage, made = completion.usage, evaluations[:-1]
    return Answer(
        usage.prompt_tokens,
        usage.prompt_tokens - usage.cached_tokens,
        usage.completion_tokens,
        made.count(1),
        tuple(each for each in made if each > 1),
    )


def _any_tokens(count: int) -> constrain.Lark:
    return constrain.Lark(f"start: <[*]>~{count}")


def _answer(
    model: constrain.Model, prompts: Sequence[Any], grammar: constrain.Lark, *, trace: bool = False
) -> list[constrain.Completion]:
    options = {"temperature": 0, "show_schema": False, "cache_prompt": False, "trace": trace}
    return constrain.complete_batch(model, prompts, schema=grammar, **options)


class _Timer:
    """Takes times in company: all processes begin each measurement at the same moment.

    Attributes:
        noise: median, over all measurements, of the median of the rounds next to the least.
    """

    def __init__(self, model: constrain.Model, together: Barrier, rounds: int) -> None:
        self._model, self._together, self._rounds = model, together, rounds
        self._ratios: list[float] = []

    @property
    def noise(self) -> float:
        return statistics.median(self._ratios)

    def median(self, work: Callable[[], object], rounds: int | None = None) -> float:
        """Returns the median of the seconds that some work takes."""
        seconds = []
        for _ in range(rounds or self._rounds):
            self._together.wait(PATIENCE)
            begun = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - begun)
        self._ratios.append(statistics.median(seconds) / min(seconds))
        return statistics.median(seconds)

    def steps(self, n: int, prompts: Sequence[Any]) -> float:
        """Returns cost(n)."""
        asked = [prompts[number % len(prompts)] for number in range(n)]
        return self._difference(asked, _any_tokens(SHORT), _any_tokens(LONG)) / (LONG - SHORT)

    def runs(self, words: int, prompts: Sequence[Any], step: float) -> tuple[int, float]:
        """Returns the tokens of a run, and its seconds: about a letter that is chosen, and so many words behind it.

        The time of steps in between, ``step`` seconds each, is subtracted.
        """
        few, many = (constrain.Lark(f'start: run~{times}\nrun: /[a-z]/ "{" the" * words}"') for times in (FEW, MANY))
        short, long = (_read_answer(_answer(self._model, prompts, each, trace=True)[0]) for each in (few, many))
        more_runs, more_steps = len(long.runs) - len(short.runs), long.steps - short.steps
        if more_runs < 1:
            raise RuntimeError(f"{words} words after a letter were not forced: this tokenizer writes them otherwise")
        seconds = self._difference(prompts, few, many) - more_steps * step
        return round((sum(long.runs) - sum(short.runs)) / more_runs), seconds / more_runs

    def _difference(self, prompts: Sequence[Any], less: constrain.Lark, more: constrain.Lark) -> float:
        for grammar in (less, more):
            _answer(self._model, prompts, grammar)
        short, long = (
            self.median(lambda grammar=grammar: _answer(self._model, prompts, grammar)) for grammar in (less, more)
        )
        return long - short

    def prompt_rate(self, length: int, count: int) -> float:
        """Returns tokens of prompts in a second, for so many prompts of about such a length."""
        rates = []
        for seed in range(self._rounds):
            prompts = [_words(length, number) for number in np.random.default_rng(seed).integers(1 << 30, size=count)]
            self._together.wait(PATIENCE)
            begun = time.perf_counter()
            completions = _answer(self._model, prompts, _any_tokens(1))
            seconds = time.perf_counter() - begun
            rates.append(_evaluated(completions) / seconds)
        return statistics.median(rates)


def _evaluated(completions: Iterable[constrain.Completion]) -> int:
    return sum(each.usage.prompt_tokens - each.usage.cached_tokens for each in completions)


def _words(length: int, seed: int) -> str:
    words = ("the", "old", "river", "town", "has", "red", "bridge", "and", "many", "small", "boats", "dawn", "sea")
    rng = np.random.default_rng(seed)
    return " ".join([str(seed), *(str(rng.choice(words)) for _ in range(max(1, length - 12)))])
