"""Which formats are fastest for the matrices of a model on this machine, by measured products."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from constrain.llama.ggml import ggml
from constrain.llama.weights.products import Products
from constrain.llama.weights.quantizer import FORMATS
from constrain.llama.weights.tensors import EXPERTS, MULTIPLIED, bytes_of, fits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from constrain.llama.weights.tensors import Weight, Weights

TOKENS = (1, 8)
"""Numbers of tokens at once by which formats are judged: a single answer, and a batch."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The products of one decode with the matrices of one role in one format.

    Attributes:
        role: role of the matrices.
        format: name of the format. Matrices whose columns it does not fit keep the format of the file.
        seconds: of all these products, for each number of tokens in ``TOKENS``; the output layer for every token.
        n_bytes: size of the matrices.
        repacked: share of these bytes that llama.cpp stores in a layout of its own.
    """

    role: str
    format: str
    seconds: tuple[float, ...]
    n_bytes: int
    repacked: float

    @property
    def score(self) -> float:
        """Mean logarithm of the seconds: how a format compares for single answers and batches alike."""
        return sum(map(math.log, self.seconds)) / len(self.seconds)


@dataclass(frozen=True, slots=True)
class Timings:
    """The timings of a model's matrices by role: ``present`` as in the file, ``others`` in other formats."""

    present: Mapping[str, Timing]
    others: Mapping[str, tuple[Timing, ...]]

    def faster(self, role: str, gain: float) -> tuple[Timing, ...]:
        """The formats of a role that are faster than the present one by a factor ``gain``, fastest first."""
        least = self.present[role].score - math.log(gain)
        return tuple(sorted((each for each in self.others[role] if each.score <= least), key=lambda each: each.score))


def time_formats(
    weights: Weights,
    n_threads: int,
    *,
    extra_buffers: bool,
    formats: Iterable[str] = FORMATS,
    report: Callable[[float], None] = lambda _: None,
) -> Timings:
    """Times the products of a model in its formats and in others. Takes a few seconds.

    Args:
        weights: the tensors of the model.
        n_threads: threads to compute with.
        extra_buffers: whether llama.cpp may use layouts of its own.
        formats: names of the other formats.
        report: called with the share that is done, 0 to 1.

    Raises ``ModelError`` if ggml cannot compute.
    """
    roles = {role: found for role, found in weights.by_role().items() if role in MULTIPLIED}
    candidates = list(formats)
    with Products(n_threads, extra_buffers=extra_buffers) as products:
        timer = _Timer(products, weights)
        present, others = {}, {}
        for number, (role, tensors) in enumerate(roles.items()):
            most = max({each.format for each in tensors}, key=lambda form: sum(each.format == form for each in tensors))
            present[role] = timer.time(role, tensors, most, {each.name: each.format for each in tensors})
            others[role] = tuple(
                timer.time(role, tensors, form, assign(tensors, form))
                for form in candidates
                if any(each.format != form and fits(form, each.shape[0]) for each in tensors)
            )
            report((number + 1) / len(roles))
    return Timings(present, others)


def assign(tensors: Iterable[Weight], form: str) -> dict[str, str]:
    """The format of each tensor by name: ``form`` where its blocks fit the columns, otherwise the present one."""
    return {each.name: form if fits(form, each.shape[0]) else each.format for each in tensors}


class _Timer:
    """Times each matrix once for all tensors of its extents and format."""

    def __init__(self, products: Products, weights: Weights) -> None:
        self._products = products
        self._weights = weights
        self._known: dict[tuple[str, int, int], list[float]] = {}

    def time(self, role: str, tensors: Iterable[Weight], form: str, assigned: Mapping[str, str]) -> Timing:
        seconds = [0.0] * len(TOKENS)
        n_bytes = repacked = 0
        uses = self._weights.uses if role == EXPERTS else 1
        for each in tensors:
            given = assigned[each.name]
            for index, one in enumerate(self._seconds(given, *each.matrix)):
                seconds[index] += uses * one
            size = bytes_of(given, each.shape)
            n_bytes += size
            repacked += size * self._products.is_repacked(ggml().kinds[given], *each.matrix)
        return Timing(role, form, tuple(seconds), n_bytes, repacked / n_bytes)

    def _seconds(self, form: str, columns: int, rows: int) -> list[float]:
        key = form, columns, rows
        if key not in self._known:
            kind = ggml().kinds[form]
            self._known[key] = self._products.seconds(kind, columns, rows, TOKENS, self._weights.n_bytes)
        return self._known[key]
