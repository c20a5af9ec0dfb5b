"""An environment of its own for every client: its packages, and how its tests and examples are run there.

A client's folder has either a ``requirements.txt``, an ``adapter.py`` for the scenarios in ``common`` and tests for
pytest, or a ``package.json`` and tests for Node's own runner, which stand beside its packages.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
COMMON = HERE / "common"
PYTHON, NODE = "requirements.txt", "package.json"
CLIENTS = sorted(folder.name for folder in HERE.iterdir() if (folder / PYTHON).exists() or (folder / NODE).exists())

MODEL = "small"
THINKER = "thinker"
"""The model of a second server, whose template has a section for reasoning; only clients of Ollama ask it."""

KEYS = ("any", "another", "ollama")
"""The last is what instructor sends to a provider of local models, whatever key it is given."""

SECONDS = 3600.0
"""Longer than the tests of one client take, on however slow a machine."""


def install(client: str, environments: Path) -> Path:
    """Installs what a client needs; where. Skips where Node is missing."""
    return install_folder(HERE / client, environments / client)


def install_folder(folder: Path, environment: Path) -> Path:
    """Installs what a folder names from the package index, unless it is there; where. Skips where Node is missing."""
    if (folder / PYTHON).exists():
        _install_python(folder, environment)
    else:
        _install_node(folder, environment)
    return environment


def command_for(client: str, environment: Path, report: Path) -> Sequence[str]:
    """What runs the tests of a client that is installed, and writes a report."""
    folder = HERE / client
    if (folder / PYTHON).exists():
        options = ["-c", str(HERE / "clients.ini"), f"--confcutdir={folder}", f"--junitxml={report}"]
        shared = [str(COMMON / "scenarios.py")] if (folder / "adapter.py").exists() else []
        return [str(_interpreter(environment)), "-m", "pytest", *options, *shared, str(folder)]
    for old in environment.glob("*.mjs"):
        old.unlink()
    shutil.copytree(folder, environment, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules"))
    reporters = ["--test-reporter=spec", "--test-reporter-destination=stdout"]
    reporters += ["--test-reporter=junit", f"--test-reporter-destination={report}"]
    return ["node", "--test", *reporters]


def program_of(client: str, environment: Path, code: str) -> Sequence[str]:
    """What runs a program of a client that is installed."""
    if (HERE / client / PYTHON).exists():
        return [str(_interpreter(environment)), "-c", code]
    return ["node", "--input-type=module", "--eval", code]


def asks_ollama(client: str) -> bool:
    """Whether a client speaks Ollama's protocol."""
    return client.startswith("ollama")


def root_of(server: str) -> str:
    """The URL of a server without the path of OpenAI's API."""
    return server.removesuffix("/v1")


def variables_of(client: str, server: str, thinker: str = "") -> dict[str, str]:
    """The environment variables of a client's tests. ``thinker``: URL of the server with the model that reasons."""
    told = {"OPENAI_BASE_URL": server, "OPENAI_API_KEY": KEYS[0], "CONSTRAIN_OTHER_KEY": KEYS[1]}
    told |= {"ANTHROPIC_BASE_URL": root_of(server), "ANTHROPIC_API_KEY": KEYS[0]}
    told |= {"OLLAMA_HOST": root_of(server), "OLLAMA_API_KEY": KEYS[0], "CONSTRAIN_THINKER_URL": root_of(thinker)}
    told |= {"CONSTRAIN_MODEL": MODEL, "CONSTRAIN_DOCS": str(DOCS)}
    told |= {"PYTHONPATH": os.pathsep.join(map(str, (COMMON, HERE / client)))}
    inherited = {name: value for name, value in os.environ.items() if name != "ANTHROPIC_AUTH_TOKEN"}
    return {**inherited, **told}


def _interpreter(environment: Path) -> Path:
    return environment / "bin" / "python"


def _install_python(folder: Path, environment: Path) -> None:
    if _is_current(folder, environment, [PYTHON]):
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", environment], check=True)
    subprocess.run([_interpreter(environment), "-m", "pip", "install", "-q", "-r", folder / PYTHON], check=True)
    _note(folder, environment, [PYTHON])


def _install_node(folder: Path, environment: Path) -> None:
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is missing: install Node.js to run the tests of {folder.name}")
    names = [NODE, "package-lock.json"]
    if _is_current(folder, environment, names):
        return
    shutil.rmtree(environment, ignore_errors=True)
    shutil.copytree(folder, environment)
    subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=environment, check=True)
    _note(folder, environment, names)


def _is_current(folder: Path, environment: Path, names: Sequence[str]) -> bool:
    """Whether an environment was made of what these files of a client say now."""
    kept = environment / "made-of"
    return kept.exists() and kept.read_text() == _texts(folder, names)


def _note(folder: Path, environment: Path, names: Sequence[str]) -> None:
    (environment / "made-of").write_text(_texts(folder, names))


def _texts(folder: Path, names: Sequence[str]) -> str:
    return "\n".join((folder / name).read_text() for name in names)
