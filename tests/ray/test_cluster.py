"""A Ray cluster of this machine: rows of a dataset, lines of a batch, and the endpoint.

With ``CONSTRAIN_LONG``, a job goes on from its checkpoint, and 16 clients ask for streams while replicas are lost.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import pyarrow as pa
import pytest

ray = pytest.importorskip("ray")

import constrain.ray  # noqa: E402
from constrain.batch.lines import Task  # noqa: E402
from constrain.ray import Answers, answers  # noqa: E402
from constrain.ray.pool import Pool  # noqa: E402
from tests.support.batch_files import batch_status, records  # noqa: E402
from tests.support.ports import free_port  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning", "ignore::UserWarning"
    ),
]
"""Warnings of Ray about itself."""

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "old": {"type": "boolean"}},
    "required": ["name", "old"],
}
OPTIONS: dict[str, Any] = {
    "id_column": "id",
    "schema": PERSON,
    "max_tokens": 40,
    "temperature": 1.0,
    "model_options": {"n_ctx": 512, "n_threads": 1, "parallel": 2},
}


@pytest.fixture(scope="module", autouse=True)
def cluster(_only_tests: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(_only_tests)  # actors import from the current folder of the program that starts Ray
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


# Rows of a dataset


def people(count: int) -> list[dict[str, Any]]:
    return [{"id": number, "prompt": f"Person {number} is {number} years old. Who is it?"} for number in range(count)]


def by_id(dataset: Any) -> dict[int, dict[str, Any]]:
    rows = dataset.take_all()
    found = {row["id"]: row for row in rows}
    assert len(found) == len(rows)
    return found


def expected(rows: list[dict[str, Any]], **changes: Any) -> dict[int, dict[str, Any]]:
    """The rows that one process answers."""
    return {row["id"]: row for row in Answers(**{**OPTIONS, **changes})(pa.Table.from_pylist(rows)).to_pylist()}


class KilledOnce:
    """A prompt that kills its process when it is read for the first time."""

    def __init__(self, mark: str) -> None:
        self._mark = mark

    def __call__(self, row: Any) -> Any:
        if row["id"] == 4 and not Path(self._mark).exists():
            Path(self._mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return row["prompt"]


def test_rows_are_those_of_one_process_though_an_actor_is_killed(tmp_path: Path) -> None:
    rows = [*people(6), {"id": 6, "prompt": None}]
    asked = {**OPTIONS, "prompt": KilledOnce(str(tmp_path / "mark"))}
    found = by_id(answers(ray.data.from_items(rows), concurrency=1, cpus_per_actor=1, batch_size=3, **asked))
    assert (tmp_path / "mark").exists()
    assert found[6]["error"]["error"] == "LineError"
    assert found == expected(rows, **asked)


def write_people(folder: Path, rows: list[dict[str, Any]]) -> Any:
    ray.data.from_items(rows).write_parquet(str(folder), mode="overwrite")
    return ray.data.read_parquet(str(folder))


@pytest.mark.long
def test_a_checkpoint_leaves_out_what_is_written_by_its_job(tmp_path: Path) -> None:
    rows = people(6)
    asked = {**OPTIONS, "checkpoint": str(tmp_path / "checkpoint")}
    for count in (4, 6):
        dataset = write_people(tmp_path / "in", rows[:count])
        found = answers(dataset, concurrency=1, cpus_per_actor=1, **asked)
        assert found.context.checkpoint_config.checkpoint_path == asked["checkpoint"]
        assert dataset.context.checkpoint_config is None
        found.write_parquet(str(tmp_path / "out"), mode="append")
    assert by_id(ray.data.read_parquet(str(tmp_path / "out"))) == expected(rows)
    in_memory = ray.data.from_items(rows)
    for mixed in (in_memory, in_memory.union(dataset).repartition(1), dataset.materialize()):
        with pytest.raises(ValueError, match="write them with write_parquet"):
            answers(mixed, **asked)


# Lines of a batch


@pytest.fixture
def _of_this_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pools use the cluster of this module, in place of one that they start and end."""
    for name in ("init", "shutdown"):
        monkeypatch.setattr(ray, name, lambda *_, **__: None)


class Fatal:
    """A prompt that ends the process that reads it."""

    def __reduce__(self) -> tuple[Callable[[int], Any], tuple[int]]:
        return os._exit, (1,)


@pytest.mark.long
@pytest.mark.usefixtures("_of_this_cluster")
def test_a_line_that_ends_its_process_fails_alone() -> None:
    schema = '{"enum": ["yes", "no"]}'
    with Pool("local", 1, 1, {"model": None, "n_ctx": 512, "parallel": 2}, schema, {}) as made:
        with pytest.raises(constrain.ModelError, match="3 processes"):
            made.answer(Task(1, None, Fatal(), None, {}), Future())  # type: ignore[arg-type]
        found = made.answer(Task(2, None, "Hello?", schema, {"max_tokens": 5}), Future())
        assert found.value in ("yes", "no")


@pytest.mark.usefixtures("_of_this_cluster")
def test_the_command_writes_the_files_of_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [json.dumps(f"Person {number}. Who is it?") for number in range(2)]
    (tmp_path / "in.jsonl").write_text("\n".join([*lines, "{", '{"prompt": "x", "max_tokens": 1}']) + "\n")
    common = ["--schema", "name, old bool", "--seed", "3", "--temperature", "1", "--max-tokens", "40", "--ctx", "512"]
    for output, more in (("alone.jsonl", ["--threads", "1"]), ("ray.jsonl", ["--ray", "local"])):
        assert batch_status(monkeypatch, "in.jsonl", "-o", output, *common, "--parallel", "2", *more) == 3
    alone, on_ray = (
        {each["line"]: (each["text"], each["finish_reason"]) for each in records(tmp_path / f"{name}.jsonl")}
        for name in ("alone", "ray")
    )
    assert on_ray == alone
    assert {*on_ray} == {1, 2}
    errors = {each["line"]: each["error"] for each in records(tmp_path / "ray.errors.jsonl")}
    assert errors == {3: "LineError", 4: "BudgetError"}


# The endpoint

SCHEMA = {
    "type": "object",
    "properties": {"names": {"type": "array", "items": {"type": "string"}, "minItems": 3, "maxItems": 12}},
    "required": ["names"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "names", "schema": SCHEMA, "strict": True}}
KEY = {"Authorization": "Bearer secret"}
CLIENTS, TOKENS = (16, 120) if os.environ.get("CONSTRAIN_LONG") else (8, 40)


@pytest.fixture(scope="module")
def base(_only_tests: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an endpoint with one to three replicas."""
    from ray import serve  # warns when it is imported

    folder = tmp_path_factory.mktemp("endpoint")
    (folder / "keys").write_text("secret\nother\n")
    (folder / "server.toml").write_text(
        f'api_key_file = "keys"\nresponse_store = "sqlite:///{folder}/responses.db"\nctx = 1024\nparallel = 2\n'
    )
    port = free_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(_only_tests)
        serve.start(http_options={"port": port})
        autoscaling = {"upscale_delay_s": 1, "downscale_delay_s": 3, "look_back_period_s": 3}
        app = constrain.ray.serve_app(
            folder / "server.toml",
            replicas=(1, 3),
            cpus_per_replica=0.5,
            replica_options={"autoscaling_config": autoscaling},
        )
        serve.run(app)
    yield f"http://127.0.0.1:{port}"
    serve.shutdown()


def replicas() -> list[psutil.Process]:
    """The processes of the replicas."""
    return [
        each
        for each in psutil.process_iter(["cmdline"])
        if any("constrain-replica" in part for part in (each.info["cmdline"] or [])[:1])
    ]


def model_of(base: str) -> str:
    name: str = httpx.get(f"{base}/v1/models", headers=KEY).json()["data"][0]["id"]
    return name


@dataclass
class Clients:
    """Clients that ask for one stream after the other, and note how each ended."""

    base: str
    model: str
    stop: threading.Event = field(default_factory=threading.Event)
    complete: int = 0
    told: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)

    def run(self, number: int) -> None:
        turn = 0
        while not self.stop.is_set():
            turn += 1
            try:
                self.ask(self.body(f"Name some towns, list {number} of {turn}."))
            except httpx.HTTPError as error:
                self.wrong.append(repr(error))

    def body(self, prompt: str) -> dict[str, Any]:
        return {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}],
            "response_format": FORMAT,
            "max_tokens": TOKENS,
            "temperature": 1,
            "stream": True,
        }

    def ask(self, body: dict[str, Any]) -> None:
        with httpx.stream("POST", f"{self.base}/v1/chat/completions", headers=KEY, json=body, timeout=60) as response:
            if response.status_code != 200:
                response.read()
                assert response.json()["error"]["message"]
                self.refused += response.status_code in (429, 503)
                if response.status_code not in (429, 503):
                    self.wrong.append(response.text)
                return
            events = [line.removeprefix("data: ") for line in response.iter_lines() if line]
        if events[-1] == "[DONE]":
            pieces = [json.loads(each) for each in events[:-1]]
            text = "".join(piece["choices"][0]["delta"].get("content") or "" for piece in pieces)
            found = json.loads(text)
            assert [*found] == ["names"]
            assert 3 <= len(found["names"]) <= 12
            assert all(isinstance(name, str) for name in found["names"])
            self.complete += 1
        elif "error" in (last := json.loads(events[-1])):
            assert last["error"]["code"] == "service_unavailable", last
            self.told += 1
        else:
            self.wrong.append(events[-1])


def until(condition: Any, seconds: float = 60) -> None:
    """Waits until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_the_endpoint_answers_as_a_server_does(base: str) -> None:
    assert httpx.get(f"{base}/health").json() == {"status": "ok"}
    assert httpx.get(f"{base}/v1/models").status_code == 401
    foreign = httpx.get(f"{base}/v1/models", headers={**KEY, "Host": "evil.example"})
    assert (foreign.status_code, foreign.json()["error"]["code"]) == (403, "host_not_allowed")
    assert len(httpx.get(f"{base}/v1/models", headers=KEY).headers.get_list("x-request-id")) == 1
    clients = Clients(base, model_of(base))
    clients.ask(clients.body("Name some towns."))
    assert (clients.complete, clients.wrong) == (1, [])
    body = {"model": clients.model, "input": "Say yes.", "max_output_tokens": 4}
    made = httpx.post(f"{base}/v1/responses", headers=KEY, json=body, timeout=60).json()
    more = {**body, "previous_response_id": made["id"]}
    second = httpx.post(f"{base}/v1/responses", headers=KEY, json=more, timeout=60).json()
    assert second["usage"]["input_tokens"] > made["usage"]["input_tokens"]
    assert httpx.get(f"{base}/v1/responses/{made['id']}", headers=KEY).json() == made
    others = {"Authorization": "Bearer other"}
    assert httpx.get(f"{base}/v1/responses/{made['id']}", headers=others).status_code == 404
    (node,) = ray.nodes()
    address = f"http://{node['NodeManagerAddress']}:{node['MetricsExportPort']}/metrics"
    for name in ("requests", "tokens"):
        until(lambda name=name: f"ray_constrain_{name}_total{{" in httpx.get(address).text)


@pytest.mark.long
def test_streams_end_complete_or_with_an_error_through_faults(base: str) -> None:
    clients = Clients(base, model_of(base))
    assert len(replicas()) == 1
    with ThreadPoolExecutor(CLIENTS) as pool:
        asked = [pool.submit(clients.run, number) for number in range(CLIENTS)]
        try:
            until(lambda: clients.complete >= 8)
            until(lambda: len(replicas()) >= 2)  # scaled up, during streams
            before = clients.complete
            until(lambda: clients.complete >= before + 8)
            lost = replicas()[0]
            os.kill(lost.pid, signal.SIGKILL)
            before = clients.complete
            until(lambda: clients.complete >= before + CLIENTS)
        finally:
            clients.stop.set()
        for each in asked:
            each.result(timeout=120)
    assert not clients.wrong
    assert clients.told + clients.refused <= CLIENTS
    last = Clients(base, clients.model)  # scaled down, during the streams of one client
    with ThreadPoolExecutor(1) as pool:
        asked = [pool.submit(last.run, 0)]
        try:
            until(lambda: len(replicas()) == 1, 120)
        finally:
            last.stop.set()
        asked[0].result(timeout=120)
    assert not last.wrong
    assert (last.told, last.refused) == (0, 0)
    print(
        f"\n{clients.complete} complete, {clients.told} told, {clients.refused} refused; then {last.complete} complete"
    )
