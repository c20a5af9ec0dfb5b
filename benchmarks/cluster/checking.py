"""Has Ray answer documents on this machine, with one actor and with several; compares the rates with the prediction.

Each actor notes the moment in which it reads its first document, so that the start (of Ray's processes, of the model)
is told from answering. The rows of both runs are compared with what ``constrain batch`` writes, bit by bit.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sample import make_prompts, read_schema
from simulation import Cluster, simulate

from constrain.ray import answers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from measuring import Setting
    from work import Costs


@dataclass(frozen=True)
class _NotingPrompt:
    """A prompt that a row has as JSON. The first one of a process leaves a file with the time in a folder."""

    folder: str

    def __call__(self, row: Any) -> Any:
        path = Path(self.folder) / str(os.getpid())
        if not path.exists():
            path.write_text(repr(time.time()), encoding="utf-8")
        return json.loads(row["prompt"])


def check(costs: Costs, setting: Setting, documents: int, batch_size: int) -> dict[str, Any]:
    """Returns documents an hour of one actor and of several, the prediction, and how many rows are as they must be.

    Raises ``ValueError`` if there are too few documents for the actors.
    """
    if documents < 2 * setting.actors * batch_size:
        raise ValueError(
            f"{documents} documents are too few to tell a rate: {2 * setting.actors * batch_size} give each of "
            f"{setting.actors} actors two batches of {batch_size}"
        )
    prompts, schema = make_prompts(documents, setting.prompts), read_schema(setting.schema)
    expected = _batch_texts(setting, prompts, schema)
    found: dict[str, Any] = {"documents": documents, "batch_size": batch_size, "equal_rows": documents}
    for name, actors in (("one", 1), ("all", setting.actors)):
        found[name], texts = _answer(setting, prompts, schema, actors, batch_size)
        equal = sum(texts.get(number) == text for number, text in expected.items())
        found["equal_rows"] = min(found["equal_rows"], equal)
    measured = found["all"]
    found["times_one"] = measured["documents_per_hour"] / found["one"]["documents_per_hour"]
    node = Cluster(documents, 1, setting.actors, setting.parallel, batch_size, 0.0, 0.0, 0.0)
    hours = float(np.median([simulate(costs, node, seed).hours for seed in range(9)]))
    found["predicted_whole_per_hour"] = documents / hours
    found["predicted_per_hour"] = documents / (hours - costs.start / 3600)
    found["ratio"] = found["predicted_per_hour"] / measured["documents_per_hour"]
    found["whole_ratio"] = found["predicted_whole_per_hour"] / measured["whole_per_hour"]
    return found


def _answer(
    setting: Setting, prompts: Sequence[Any], schema: Any, actors: int, batch_size: int
) -> tuple[dict[str, Any], dict[int, str]]:
    """Returns what Ray takes, and the texts of the answers by the numbers of their documents."""
    import ray
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # actors do not have this file
    rows = [{"number": number, "prompt": json.dumps(prompt)} for number, prompt in enumerate(prompts)]
    ray.init(num_cpus=max(2, actors * setting.threads), include_dashboard=False, log_to_driver=False)
    try:
        with tempfile.TemporaryDirectory() as folder:
            dataset = ray.data.from_items(rows, override_num_blocks=math.ceil(len(rows) / batch_size)).materialize()
            begun = time.time()
            answered = answers(
                dataset,
                model=setting.model,
                schema=schema,
                prompt=_NotingPrompt(folder),
                id_column="number",
                concurrency=actors,
                cpus_per_actor=setting.threads,
                batch_size=batch_size,
                model_options=setting.model_options(),
                **setting.options(),
            )
            found = answered.take_all()
            seconds = time.time() - begun
            marks = sorted(float(path.read_text(encoding="utf-8")) for path in Path(folder).iterdir())
    finally:
        ray.shutdown()
    if len(marks) != actors:
        raise RuntimeError(f"{len(marks)} actors answered documents, not {actors}: give them smaller batches")
    start = marks[0] - begun
    times = {
        "actors": actors,
        "seconds": seconds,
        "start_seconds": start,
        "last_start_seconds": marks[-1] - begun,
        "documents_per_hour": 3600 * len(rows) / (seconds - start),
        "whole_per_hour": 3600 * len(rows) / seconds,
    }
    return times, {row["number"]: row["text"] for row in found}


def _batch_texts(setting: Setting, prompts: Sequence[Any], schema: Any) -> dict[int, str]:
    """Returns the texts that ``constrain batch`` writes, by the numbers of the documents."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = [json.dumps({"messages" if isinstance(each, list) else "prompt": each}) for each in prompts]
        (folder / "prompts.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        (folder / "schema.json").write_text(json.dumps(schema), encoding="utf-8")
        files = [folder / "prompts.jsonl", "--schema", folder / "schema.json", "-o", folder / "answers.jsonl"]
        sizes = ["--ctx", setting.context, "--threads", setting.threads, "--parallel", setting.parallel]
        options = ["--max-tokens", setting.max_tokens, "--temperature", 0, "--seed", 0]
        model = [] if setting.model is None else ["--model", setting.model]
        command = [sys.executable, "-m", "constrain", "batch", *files, *sizes, *options, *model]
        done = subprocess.run([*map(str, command)], stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"constrain batch ended with the status {done.returncode}: {done.stderr[-1000:]}")
        records = map(json.loads, (folder / "answers.jsonl").read_text(encoding="utf-8").splitlines())
        return {record["line"] - 1: record["text"] for record in records}
