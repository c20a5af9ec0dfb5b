"""The search for a prepared copy: in the formats that are fastest on this machine, as far as it answers alike.

    time products by format -> try each role in its fast formats, one at a time -> choose roles and formats
    -> write the copy -> compare and measure it -> keep it, or try the next choice

Rounding errors of several roles nearly add up. So after one trial for each role and format, the divergence of every
choice is predicted, and the fastest choice within the limit is written and measured itself.
"""

from __future__ import annotations

import contextlib
import math
import shutil
import tempfile
import time
from collections.abc import Mapping  # noqa: TC003 - pydantic reads the annotations of Prepared
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import llama_cpp

from constrain.llama.costs.measuring import measure_costs
from constrain.llama.loading import llama_log, load
from constrain.llama.weights.comparison import Comparison, compare
from constrain.llama.weights.evaluating import MAX_TEXT_TOKENS
from constrain.llama.weights.importance import measure_importance
from constrain.llama.weights.layouts import uses_extra_buffers
from constrain.llama.weights.plan import TOKENS, assign, time_formats
from constrain.llama.weights.quantizer import quantize
from constrain.llama.weights.tensors import MULTIPLIED, read_weights
from constrain.llama.weights.texts import sample_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from constrain.llama.costs.table import Costs
    from constrain.llama.weights.plan import Timing, Timings
    from constrain.llama.weights.tensors import Weights

ALLOWED_DIVERGENCE = 0.02
"""Nats per token by which a prepared copy may diverge from the original, if the caller gives no number: about as far as
a good 5-bit format is from 16 bits."""

WORTH_PREPARING = 1.1
"""Factor by which a copy must evaluate faster than the original to be kept."""

_TEMPORARY = ".prepare-"
"""Beginning of the names of temporary folders."""

_TRIED = 2
"""Formats of each role that are tried because they are the fastest; besides, the one with the most bits is tried."""

_NOT_FASTER = "no copy that is close enough evaluates clearly faster than the original"

_ABANDONED_SECONDS = 24 * 3600
"""Seconds after which the temporary folder of an interrupted search is removed."""

_TRIAL_TOKENS = 700
"""Tokens on which a trial is compared; the copy that is kept is compared on all texts."""

_WRITTEN = 3
"""Choices of roles and formats that are written and measured; the first within the limit is kept."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A prepared copy of a model, or the reason for none.

    Attributes:
        path: the copy; the original if no copy is both faster and close enough, and ``note`` says why.
        formats: the new format of the matrices of each role that was changed.
        comparison: the copy against the original, on texts that the quantizer did not see.
        speedup: how many times faster the copy evaluates each of ``plan.TOKENS`` tokens at once; measured.
        trials: divergence of copies in which one role has one format: what each change costs.
        note: why there is no copy; "" for a copy.
    """

    path: Path
    formats: Mapping[str, str]
    comparison: Comparison | None
    speedup: tuple[float, ...]
    trials: Mapping[str, float]
    note: str


@dataclass(frozen=True, slots=True)
class _Choice:
    """Formats by role, with the predicted logarithm of the time and the predicted divergence."""

    formats: Mapping[str, str]
    score: float
    divergence: float


class Preparation:
    """The search for a faster copy of one model.

    Args:
        source: the model, or the first of its files.
        n_threads: threads as ``Model`` takes them.
        max_divergence: nats per token that the copy may diverge; ``math.inf`` for the fastest copy.
        texts: sample texts of prompts and answers, half for the quantizer and half to compare; ``None`` for built-in
            ones.
        report: called with a step in words and the share of it that is done, 0 to 1.

    Raises ``ModelError`` if the file is no model.
    """

    def __init__(
        self,
        source: Path,
        *,
        n_threads: int | None,
        max_divergence: float,
        texts: Sequence[str] | None,
        report: Callable[[str, float], None],
    ) -> None:
        self._source = source
        self._weights: Weights = read_weights(source)
        self._n_threads = n_threads
        self._max_divergence = max_divergence
        self._calibration = sample_texts(0) if texts is None else list(texts[::2])
        self._held_out = sample_texts(1) if texts is None else list(texts[1::2])
        self._report = report

    def write(self, target: Path) -> Prepared:
        """Searches and writes the copy to ``target``, which appears only when it is complete and good.

        Raises ``ModelError`` if llama.cpp fails, and ``OSError`` if the copy cannot be written.
        """
        original = self._load(self._source)
        try:
            with llama_log():
                threads = max(llama_cpp.llama_n_threads_batch(original.ctx), llama_cpp.llama_n_threads(original.ctx))
                timings = time_formats(
                    self._weights,
                    threads,
                    extra_buffers=uses_extra_buffers(),
                    report=lambda share: self._report("Timing formats", share),
                )
                candidates = {role: _promising(timings.faster(role, 1.0)) for role in timings.present}
                if not any(candidates.values()):
                    return self._none("the formats of the file are the fastest on this machine")
                self._report("Reading texts", 0.0)
                importance = measure_importance(original, self._calibration)
            target.parent.mkdir(parents=True, exist_ok=True)
            _remove_abandoned(target.parent)
            with tempfile.TemporaryDirectory(prefix=_TEMPORARY, dir=target.parent) as folder:
                trials = self._try_each(original, candidates, importance, threads, Path(folder))
                choices = self._choices(timings, candidates, trials)
                return self._write_best(original, choices, importance, threads, trials, Path(folder), target)
        finally:
            original.close()

    def _load(self, path: Path) -> llama_cpp.Llama:
        return load(path, MAX_TEXT_TOKENS, 0, self._n_threads, verbose=False)

    def _none(self, note: str, trials: Mapping[str, float] | None = None) -> Prepared:
        return Prepared(self._source, {}, None, tuple(1.0 for _ in TOKENS), trials or {}, note)

    def _try_each(
        self,
        original: llama_cpp.Llama,
        candidates: Mapping[str, tuple[Timing, ...]],
        importance: Mapping[str, NDArray[np.float32]],
        threads: int,
        folder: Path,
    ) -> dict[tuple[str, str], float]:
        """Returns the divergence of copies in which one role has one format."""
        wanted = [(role, each.format) for role, timings in candidates.items() for each in timings]
        found: dict[tuple[str, str], float] = {}
        for number, (role, form) in enumerate(wanted):
            step = f"Trying {form} for {role} ({number + 1} of {len(wanted)})"
            copy = folder / "trial.gguf"
            self._quantize({role: form}, importance, threads, copy, step)
            found[role, form] = self._compare(original, copy, _TRIAL_TOKENS).divergence
        return found

    def _choices(
        self, timings: Timings, candidates: Mapping[str, tuple[Timing, ...]], trials: Mapping[tuple[str, str], float]
    ) -> list[_Choice]:
        """All choices of roles and formats that are predicted to be faster and close enough, fastest first."""
        roles = list(timings.present)
        options = [[timings.present[role], *candidates[role]] for role in roles]
        before = _score(timings.present.values())
        found = []
        for chosen in product(*options):
            changed = [each for each in chosen if each is not timings.present[each.role]]
            formats = {each.role: each.format for each in changed}
            divergence = sum(trials[item] for item in formats.items())
            if formats and divergence <= self._max_divergence:
                found.append(_Choice(formats, _score(chosen) - before, divergence))
        worth = [each for each in found if each.score <= -math.log(WORTH_PREPARING) / 2]
        return sorted(worth, key=lambda each: each.score)

    def _write_best(
        self,
        original: llama_cpp.Llama,
        choices: Sequence[_Choice],
        importance: Mapping[str, NDArray[np.float32]],
        threads: int,
        trials: Mapping[tuple[str, str], float],
        folder: Path,
        target: Path,
    ) -> Prepared:
        shown = {f"{role} {form}": divergence for (role, form), divergence in trials.items()}
        if not choices:
            is_close = min(trials.values()) <= self._max_divergence
            return self._none(_NOT_FASTER if is_close else self._too_far(trials), shown)
        why = ""
        for choice in choices[:_WRITTEN]:
            copy = folder / "copy.gguf"
            self._quantize(choice.formats, importance, threads, copy, "Writing the copy")
            self._report("Comparing the copy", 0.0)
            comparison = self._compare(original, copy)
            if comparison.divergence > self._max_divergence:
                why = f"the closest fast copy diverges by {comparison.divergence:.3f} nats a token"
                continue
            speedup = self._measure(original, copy)
            if math.prod(speedup) ** (1 / len(speedup)) < WORTH_PREPARING:
                why = _NOT_FASTER
                continue
            copy.replace(target)
            return Prepared(target, choice.formats, comparison, speedup, shown, "")
        return self._none(why, shown)

    def _too_far(self, trials: Mapping[tuple[str, str], float]) -> str:
        least = min(trials.values())
        return (
            f"each faster format changes what the model says: by {least:.3f} nats a token at least, and "
            f"{self._max_divergence:g} are allowed. The weights of this file are rounded already; a file that was "
            "quantized from 16 bits straight to a fast format answers better"
        )

    def _quantize(
        self,
        formats: Mapping[str, str],
        importance: Mapping[str, NDArray[np.float32]],
        threads: int,
        target: Path,
        step: str,
    ) -> None:
        assigned: dict[str, str] = {}
        for role, tensors in self._weights.by_role().items():
            if role in MULTIPLIED:
                form = formats.get(role)
                assigned |= {each.name: each.format for each in tensors} if form is None else assign(tensors, form)
        quantize(
            self._source,
            target,
            assigned,
            importance=importance,
            n_threads=threads,
            report=lambda share: self._report(step, share),
        )

    def _compare(self, original: llama_cpp.Llama, copy: Path, max_tokens: int | None = None) -> Comparison:
        with self._opened(copy) as llama, llama_log():
            return compare(original, llama, self._held_out, max_tokens)

    def _measure(self, original: llama_cpp.Llama, copy: Path) -> tuple[float, ...]:
        """Returns how many times faster the copy is, for each of ``TOKENS``; measured in turns."""
        self._report("Measuring the copy", 0.0)
        with self._opened(copy) as llama, llama_log():
            rounds = [(measure_costs(original), measure_costs(llama)) for _ in range(2)]
        return tuple(min(_ratio(before, after, n) for before, after in rounds) for n in TOKENS)

    @contextlib.contextmanager
    def _opened(self, path: Path) -> Iterator[llama_cpp.Llama]:
        llama = self._load(path)
        try:
            yield llama
        finally:
            llama.close()


def _remove_abandoned(parent: Path) -> None:
    """Removes the temporary folders of searches that were killed, each as large as a model."""
    for folder in parent.glob(f"{_TEMPORARY}*"):
        if time.time() - folder.stat().st_mtime > _ABANDONED_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)  # another process may remove it, too


def _promising(faster: Sequence[Timing]) -> tuple[Timing, ...]:
    """The formats to try: the fastest ones, fastest first, then the one with the most bits of the others."""
    others = faster[_TRIED:]
    return (*faster[:_TRIED], *([max(others, key=lambda each: each.n_bytes)] if others else []))


def _score(timings: Iterable[Timing]) -> float:
    """Mean logarithm of the time of all products together."""
    sums = [sum(seconds) for seconds in zip(*(each.seconds for each in timings), strict=True)]
    return sum(map(math.log, sums)) / len(sums)


def _ratio(before: Costs, after: Costs, n: int) -> float:
    return before.every[n] / after.every[n]
