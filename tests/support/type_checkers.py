"""Type checkers, as a user of the package runs them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import constrain

COMMANDS = {
    "mypy": [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir=cache", "typed.py"],
    "pyright": ["pyright", "--pythonpath", sys.executable],
}

CHECKERS = [pytest.param("mypy", marks=pytest.mark.long), pytest.param("pyright", marks=pytest.mark.slow)]
"""For parameters: mypy reads the whole package, which takes a minute."""


def check(checker: str, text: str, folder: Path) -> str:
    """What a checker says about a program."""
    command = COMMANDS[checker]
    if checker == "pyright" and not (shutil.which("pyright") and shutil.which("node")):
        pytest.skip("pyright or node is not installed")
    (folder / "typed.py").write_text(text, encoding="utf-8")
    config = {"extraPaths": [str(Path(constrain.__file__).parents[1])], "include": ["typed.py"]}
    (folder / "pyrightconfig.json").write_text(json.dumps(config), encoding="utf-8")
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout
