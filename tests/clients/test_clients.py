"""Real clients against a real server: every folder beside this file holds the tests of one of them.

Only at full length (``CONSTRAIN_LONG``), since packages are installed. A client's folder has either a
``requirements.txt`` and tests for pytest or a ``package.json`` and tests for Node's own runner. Each gets an
environment of its own, under ``CONSTRAIN_CLIENT_ENVIRONMENTS`` if it shall be there the next time, too. Its tests find
in theirs: ``OPENAI_BASE_URL``, ``OPENAI_API_KEY``, ``CONSTRAIN_OTHER_KEY``, which the server takes, too, and
``CONSTRAIN_MODEL``, the model's name. ``pytest -s`` shows them as they run.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import xml.etree.ElementTree as ET
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import LONG

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HERE = Path(__file__).parent
PYTHON, NODE = "requirements.txt", "package.json"
CLIENTS = sorted(folder.name for folder in HERE.iterdir() if (folder / PYTHON).exists() or (folder / NODE).exists())

MODEL = "small"
KEYS = ("any", "another")
TOKENS = 4096
SEQUENCES = 4

SECONDS = 3600.0
"""Longer than the tests of one client take, on however slow a machine."""

pytestmark = pytest.mark.skipif(not LONG, reason="installs the clients; CONSTRAIN_LONG=1")


@dataclass(frozen=True)
class Outcome:
    """How the tests of a client went, and the names of those that failed."""

    passed: int
    skipped: int
    failed: tuple[str, ...]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server, a process of its own."""
    folder = tmp_path_factory.mktemp("server")
    keys = folder / "keys"
    keys.write_text("\n".join(KEYS))
    options = ["--port", "0", "--alias", MODEL, "--ctx", str(TOKENS), "--parallel", str(SEQUENCES), "--threads", "1"]
    options += ["--api-key-file", str(keys), "--cors-origin", "*"]
    command = [sys.executable, "-m", "constrain", "serve", *options]
    environment = {**os.environ, "NO_COLOR": "1", "CONSTRAIN_CACHE": str(folder / "cache")}
    said: list[str] = []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, cwd=folder) as program:
        url: Future[str] = Future()
        listener = threading.Thread(target=_listen, args=(program, said, url))
        listener.start()
        try:
            yield url.result(SECONDS)
        finally:
            program.send_signal(signal.SIGTERM)
            listener.join()
    log = "".join(said)
    assert "Traceback" not in log, log


def _listen(program: subprocess.Popen[str], said: list[str], url: Future[str]) -> None:
    """Notes what a server says, and where it is as soon as that is said."""
    assert program.stderr is not None
    for line in program.stderr:
        said.append(line)
        if (found := re.search(rf"{MODEL} at (http://127\.0\.0\.1:\d+/v1)$", line)) and not url.done():
            url.set_result(found[1])
    if not url.done():
        url.set_exception(RuntimeError("The server ended: " + "".join(said)))


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which clients are installed."""
    kept = os.environ.get("CONSTRAIN_CLIENT_ENVIRONMENTS")
    return Path(kept).resolve() if kept else tmp_path_factory.mktemp("environments")


@pytest.mark.parametrize("client", CLIENTS)
def test_it_works_unchanged(
    client: str, server: str, environments: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, environment, report = HERE / client, environments / client, tmp_path / "report.xml"
    prepare = _python if (folder / PYTHON).exists() else _node
    command = prepare(folder, environment, report)
    told = {"OPENAI_BASE_URL": server, "OPENAI_API_KEY": KEYS[0], "CONSTRAIN_OTHER_KEY": KEYS[1]}
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    variables = {**inherited, **told, "CONSTRAIN_MODEL": MODEL}
    done = subprocess.run(command, env=variables, cwd=environment, timeout=SECONDS, check=False)
    assert report.exists(), f"{client}: nothing was run; status {done.returncode}"
    outcome = _read(report)
    with capsys.disabled():
        print(f"\n{client}: {outcome.passed} passed, {len(outcome.failed)} failed, {outcome.skipped} skipped")
    assert not outcome.failed
    assert outcome.passed
    assert done.returncode == 0


def _python(folder: Path, environment: Path, report: Path) -> Sequence[str]:
    """Installs what a client needs from the package index, unless it is there; how to run its tests."""
    python = environment / "bin" / "python"
    if not _is_current(folder, environment, [PYTHON]):
        subprocess.run([sys.executable, "-m", "venv", "--clear", environment], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "-r", folder / PYTHON], check=True)
        _note(folder, environment, [PYTHON])
    options = ["-c", str(HERE / "pytest.ini"), f"--confcutdir={folder}", f"--junitxml={report}"]
    return [str(python), "-m", "pytest", *options, str(folder)]


def _node(folder: Path, environment: Path, report: Path) -> Sequence[str]:
    """The same for a client in JavaScript, whose tests stand beside its packages."""
    names = [NODE, "package-lock.json"]
    if not _is_current(folder, environment, names):
        shutil.rmtree(environment, ignore_errors=True)
        shutil.copytree(folder, environment)
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=environment, check=True)
        _note(folder, environment, names)
    shutil.copytree(folder, environment, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules"))
    reporters = ["--test-reporter=spec", "--test-reporter-destination=stdout"]
    reporters += ["--test-reporter=junit", f"--test-reporter-destination={report}"]
    return ["node", "--test", *reporters]


def _is_current(folder: Path, environment: Path, names: Sequence[str]) -> bool:
    """Whether an environment was made of what these files of a client say now."""
    kept = environment / "made-of"
    return kept.exists() and kept.read_text() == _texts(folder, names)


def _note(folder: Path, environment: Path, names: Sequence[str]) -> None:
    (environment / "made-of").write_text(_texts(folder, names))


def _texts(folder: Path, names: Sequence[str]) -> str:
    return "\n".join((folder / name).read_text() for name in names)


def _read(report: Path) -> Outcome:
    """Counts the tests in a report, whose format both runners write."""
    passed, skipped, failed = 0, 0, []
    for case in ET.parse(report).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(case.get("name", ""))
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
    return Outcome(passed, skipped, tuple(failed))
