"""A batch in a folder, answered without a model, and the records it has written."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from constrain.__main__ import main
from constrain.batch.answering import Answerer
from constrain.batch.files import BatchFiles
from constrain.batch.inputs import JsonLines
from constrain.batch.lines import Task
from constrain.batch.run import Progress, run
from constrain.generation.completion import Completion, Timings, Usage
from tests.support import tomllib


def cases(name: str) -> list[dict[str, Any]]:
    """The cases of ``batch/data/NAME.toml``."""
    text = (Path(__file__).parents[1] / "batch" / "data" / f"{name}.toml").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = tomllib.loads(text)["case"]
    return found


SETTINGS: dict[str, object] = {"input": {"sha256": "00"}, "seed": 1}


def records(path: Path) -> list[dict[str, Any]]:
    """The records of a file whose lines are all whole."""
    content = path.read_bytes()
    assert content.endswith(b"\n")
    return [json.loads(line) for line in content[:-1].split(b"\n")]


def completion(value: object) -> Completion:
    return Completion(value, json.dumps(value), (), Usage(3, 1, 2), Timings(0, 0, 0, 0), "stop", None)


def echo(task: Task, _: Future[None]) -> Completion:
    return completion(task.prompt)


class Batch:
    """A batch in a folder, with an answerer in place of a model."""

    def __init__(self, folder: Path, content: bytes) -> None:
        self.prompts, self.output, self.errors = folder / "in.jsonl", folder / "out.jsonl", folder / "errors.jsonl"
        self.prompts.write_bytes(content)

    def run(
        self,
        answer: Answerer = echo,
        *,
        threads: int = 3,
        settings: dict[str, object] = SETTINGS,
        restart: bool = False,
        seed: int | None = None,
    ) -> list[Progress]:
        with BatchFiles(self.output, self.errors, settings, restart=restart) as files:
            return list(run(JsonLines(self.prompts), files, answer, None, {"seed": seed}, threads=threads))

    def values(self) -> dict[int, object]:
        """The answers by line, each of which has one."""
        found = records(self.output)
        assert len({each["line"] for each in found}) == len(found)
        return {each["line"]: each["value"] for each in found}


def prompts(count: int) -> bytes:
    return b"".join(json.dumps({"prompt": f"p{number}"}).encode() + b"\n" for number in range(1, count + 1))


def batch_status(patch: pytest.MonkeyPatch, *arguments: object) -> int:
    """The exit status of ``constrain batch``, run in this process."""
    patch.setattr(sys, "argv", ["constrain", "batch", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


_FORKING = """
import json, os, sys

statuses = []
for arguments in json.loads(sys.argv[1]):
    process = os.fork()
    if not process:
        work(*arguments)
        os._exit(0)
    statuses.append(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
print(json.dumps(statuses))
"""


def statuses_of(program: str, runs: Sequence[Sequence[str]]) -> list[int]:
    """The exit statuses of the function ``work`` of a program, called with each list of arguments.

    Each call has a process of its own, one after the other; all share the imports of the program.
    """
    command = [sys.executable, "-c", program + _FORKING, json.dumps(runs)]
    statuses: list[int] = json.loads(subprocess.run(command, check=True, timeout=120, stdout=subprocess.PIPE).stdout)
    return statuses
