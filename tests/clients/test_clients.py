"""Real clients against a real server: every folder beside this file holds the tests of one of them.

Only at full length (``CONSTRAIN_LONG``), since packages are installed: for each client into an environment of its own,
under ``CONSTRAIN_CLIENT_ENVIRONMENTS`` if it shall be there the next time, too. Its tests find in theirs:
``OPENAI_BASE_URL``, ``OPENAI_API_KEY``, ``CONSTRAIN_OTHER_KEY``, which the server takes, too, ``ANTHROPIC_BASE_URL``,
``ANTHROPIC_API_KEY``, ``CONSTRAIN_MODEL``, the model's name, and ``CONSTRAIN_DOCS``, the folder of the documentation.
Clients of Ollama find ``OLLAMA_HOST``, ``OLLAMA_API_KEY`` and ``CONSTRAIN_THINKER_URL``, where the model ``thinker``
reasons. ``pytest -s`` shows them as they run. Clients in Python share the scenarios of ``common/scenarios.py``.
"""

from __future__ import annotations

import subprocess
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.clients.environments import CLIENTS, SECONDS, asks_ollama, command_for, install, variables_of

pytestmark = pytest.mark.long  # installs the clients


@dataclass(frozen=True)
class Outcome:
    """How the tests of a client went, and the names of those that failed."""

    passed: int
    skipped: int
    failed: tuple[str, ...]


@pytest.mark.parametrize("client", CLIENTS)
def test_it_works_unchanged(
    client: str,
    server: str,
    environments: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    thinker = request.getfixturevalue("thinker") if asks_ollama(client) else ""
    environment, report = install(client, environments), tmp_path / "report.xml"
    command = command_for(client, environment, report)
    done = subprocess.run(
        command, env=variables_of(client, server, thinker), cwd=environment, timeout=SECONDS, check=False
    )
    assert report.exists(), f"{client}: nothing was run; status {done.returncode}"
    outcome = _read(report)
    with capsys.disabled():
        print(f"\n{client}: {outcome.passed} passed, {len(outcome.failed)} failed, {outcome.skipped} skipped")
    assert not outcome.failed
    assert outcome.passed
    assert done.returncode == 0


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
