"""The report of ``constrain check --model``: formats, layouts, memory, costs, and what would be faster."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import llama_cpp

from constrain.llama.costs.measuring import measure_costs
from constrain.llama.loading import llama_log, load
from constrain.llama.memory import memory_needed
from constrain.llama.weights.layouts import uses_extra_buffers
from constrain.llama.weights.plan import Timings, time_formats
from constrain.llama.weights.tensors import read_weights

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from constrain.llama.costs.table import Costs
    from constrain.llama.weights.plan import Timing
    from constrain.llama.weights.tensors import Weights

WORTH_SAYING = 1.1
"""Factor by which another format must be faster to be reported."""

_REPACKED = re.compile(r"repack tensor (\S+) with (\S+)")
"""llama.cpp's message about a tensor that it stores in a layout of its own."""


@dataclass(frozen=True, slots=True)
class Group:
    """The tensors of one role, format and layout.

    Attributes:
        role: role of the tensors.
        format: name of their format.
        layout: name of the layout in which llama.cpp stores them; "" for that of the file.
        count: number of tensors.
        n_bytes: their size.
    """

    role: str
    format: str
    layout: str
    count: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class WeightsReport:
    """What a model's weights are and what they cost on this machine.

    Attributes:
        weights: the tensors of the file.
        groups: the tensors by role, format and layout, as llama.cpp stored them when it loaded the model.
        system: llama.cpp's words about the instructions that it was built for.
        memory_bytes: memory for the weights and the contexts of calls that come one at a time.
        costs: measured seconds of evaluations.
        timings: measured seconds of products, by format; ``None`` if they run on a GPU.
    """

    weights: Weights
    groups: tuple[Group, ...]
    system: str
    memory_bytes: int
    costs: Costs
    timings: Timings | None

    @property
    def faster(self) -> tuple[tuple[Timing, Timing], ...]:
        """For each role for which another format is clearly faster: the present timing, and the fastest."""
        if self.timings is None:
            return ()
        found = ((present, self.timings.faster(role, WORTH_SAYING)) for role, present in self.timings.present.items())
        return tuple((present, faster[0]) for present, faster in found if faster)


def inspect_weights(
    path: Path,
    *,
    n_threads: int | None = None,
    n_gpu_layers: int = -1,
    report: Callable[[float], None] = lambda _: None,
) -> WeightsReport:
    """Loads a model and measures it. Takes some seconds, in which nothing else should use the processor.

    Args:
        path: the GGUF file, or the first of several.
        n_threads: threads as ``Model`` takes them.
        n_gpu_layers: layers on a GPU as ``Model`` takes them.
        report: called with the share that is done, 0 to 1.

    Raises ``ModelError`` if the file is no model or llama.cpp cannot load it.
    """
    weights = read_weights(path)
    layouts: dict[str, str] = {}

    def receive(text: str) -> None:
        if found := _REPACKED.search(text):
            layouts[found[1]] = found[2]

    llama = load(path, None, n_gpu_layers, n_threads, verbose=False, receive=receive)
    try:
        with llama_log():
            costs = measure_costs(llama)
            on_gpu = llama_cpp.llama_supports_gpu_offload() and n_gpu_layers != 0
            timings = None
            if not on_gpu:
                timings = time_formats(weights, max(costs.n_threads), extra_buffers=uses_extra_buffers(), report=report)
    finally:
        llama.close()
    report(1.0)
    system = llama_cpp.llama_print_system_info().decode("utf-8", "replace").strip()
    return WeightsReport(weights, _groups(weights, layouts), system, memory_needed(path, None, 0), costs, timings)


def _groups(weights: Weights, layouts: dict[str, str]) -> tuple[Group, ...]:
    found: dict[tuple[str, str, str], list[int]] = {}
    for role, tensors in weights.by_role().items():
        for each in tensors:
            found.setdefault((role, each.format, layouts.get(each.name, "")), []).append(each.n_bytes)
    return tuple(Group(*key, len(sizes), sum(sizes)) for key, sizes in found.items())
