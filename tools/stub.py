"""Writes the stub of the kernel, constrain/kernel/_kernel.pyi, from the docstrings and signatures of its binding.

    python -m tools.stub            writes it; needs nanobind, and a kernel built into the sources

A test compares it with what would be written.
"""

from __future__ import annotations

from pathlib import Path

from constrain.kernel import _kernel

PATH = Path(__file__).parents[1] / "constrain" / "kernel" / "_kernel.pyi"


def text() -> str:
    """Returns the stub."""
    from nanobind.stubgen import StubGen

    stub = StubGen(_kernel, include_private=True)
    for name in ("Iterable", "Iterator", "Sequence"):
        stub.bind("collections.abc", name)
    stub.bind("typing_extensions", "Buffer")  # signatures name these
    stub.put(_kernel)
    return stub.get()


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
