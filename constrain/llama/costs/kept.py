"""Measured costs are kept: in the process, and on disk in the cache directory.

    CACHE/costs-v1/NAME.json     the costs of one kind of context

NAME is a digest of everything that costs depend on: the model's file, the settings of the context, the build of
llama.cpp, the processor and the number of threads. Measurements that something else disturbed are not written.
"""

from __future__ import annotations

import hashlib
import json
import threading
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from constrain.llama.costs.table import Costs
from constrain.llama.processor import processor_name
from constrain.private_folders import make_private, replace_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.llama.costs.measuring import Measured

_FORMAT = 1
"""Version of the measurement; costs of another version are measured again."""

_COSTS = TypeAdapter(Costs)

_known: dict[str, Costs] = {}
"""Costs by the names of their files."""

_lock = threading.Lock()


def costs_of(
    identity: bytes,
    n_threads: tuple[int, int],
    n_sequences: int,
    directory: str | None,
    measure: Callable[[], Measured],
) -> Costs:
    """Returns the costs of a context, measured at most once in a process.

    Args:
        identity: bytes that depend on the model, the settings of the context and the build (``ModelFacts.identity``).
        n_threads: threads for one token, and for several.
        n_sequences: number of sequences.
        directory: the cache directory; ``None`` to keep nothing on disk.
        measure: measures them; its errors pass through.
    """
    facts = json.dumps([_FORMAT, identity.hex(), processor_name(), n_threads, n_sequences])
    name = hashlib.sha256(facts.encode()).hexdigest()[:32]
    with _lock:
        if (known := _known.get(name)) is not None:
            return known
        path = None if directory is None else Path(directory) / f"costs-v{_FORMAT}" / f"{name}.json"
        costs = None if path is None else _read(path)
        if costs is None:
            found = measure()
            costs = found.costs
            if path is not None and found.is_steady:
                _write(path, costs)
        _known[name] = costs
        return costs


def _read(path: Path) -> Costs | None:
    """The costs in a file; ``None`` if there is none, or one that cannot be used."""
    try:
        return _COSTS.validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def _write(path: Path, costs: Costs) -> None:
    """Keeps costs, or warns that the next process has to measure again."""
    try:
        make_private(path.parent)
        replace_file(path, json.dumps(asdict(costs)).encode())
    except OSError as error:
        warnings.warn(f"measured costs are not kept in {path.parent}: {error}", RuntimeWarning, stacklevel=2)
