"""The kinds of input that are fuzzed: a module for each.

Each has ``run(data, meter)``, which reads an input and raises what it raises, or returns what became of it;
``DECLARED``, the errors that may be; ``mutate(data, rng, mutate_bytes)``, which changes an input; ``MAX_SIZE`` of an
input in bytes; and ``seeds()``, inputs to begin with that are made, in place of kept as files.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

NAMES = ("schemas", "patterns", "lark", "gguf", "cache", "requests")

_SEEDS = Path(__file__).parent.parent / "seeds"


def load(name: str) -> ModuleType:
    """The module of a target."""
    return import_module(f"{__name__}.{name}")


def seed_files(name: str) -> list[Path]:
    """The inputs that are kept for a target: to begin with, and those that once broke something."""
    return sorted(path for path in (_SEEDS / name).glob("*") if path.is_file())


def seeds_of(name: str) -> list[bytes]:
    """All inputs to begin with."""
    return [*(path.read_bytes() for path in seed_files(name)), *load(name).seeds()]
