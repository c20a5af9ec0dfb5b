"""A line of the log about what evaluations cost, for those who wonder how fast a model is on their machine."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from constrain.llama.costs.table import Costs

_log = logging.getLogger("constrain.llama")

_EXPENSIVE = 0.75
"""Share of the cost of answers one after the other from which answers at once are called expensive."""


def log_costs(path: str, costs: Costs) -> None:
    """Logs what one answer costs, and several at once; and what to do where several at once save little."""
    one, (count, several) = costs.together[1], max(costs.together.items())
    line = f"{path}: {one * 1000:.1f} ms a token for one answer"
    if count > 1:
        line += f", {several * 1000:.1f} ms for {count} at once"
        if several > _EXPENSIVE * count * one:
            line += "; a file in another format may cost less, such as Q4_0"
    _log.info("%s", line, extra={"event": "costs", "costs": dict(costs.together)})
