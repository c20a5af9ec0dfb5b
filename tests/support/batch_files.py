"""A batch in a folder, answered without a model, and the records it has written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from constrain.batch.files import BatchFiles
from constrain.batch.inputs import JsonLines
from constrain.batch.run import Progress, run
from constrain.generation.completion import Completion, Timings, Usage

if TYPE_CHECKING:
    from concurrent.futures import Future
    from pathlib import Path

    from constrain.batch.answering import Answerer
    from constrain.batch.lines import Task


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
