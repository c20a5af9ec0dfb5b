"""The endpoint on a Ray cluster of this machine: answers, keys, stored responses, and streams through faults.

With ``CONSTRAIN_LONG``, 16 clients ask for long answers.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
import psutil
import pytest

ray = pytest.importorskip("ray")

import constrain.ray  # noqa: E402
from tests.support.ports import free_port  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning", "ignore::UserWarning"
    ),
]
"""Warnings of Ray about itself."""

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
        patch.chdir(_only_tests)  # actors import from the current folder of the program that starts Ray
        ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
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
    ray.shutdown()


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


def test_keys_and_hosts_are_those_of_a_server(base: str) -> None:
    assert httpx.get(f"{base}/health").json() == {"status": "ok"}
    assert httpx.get(f"{base}/v1/models").status_code == 401
    foreign = httpx.get(f"{base}/v1/models", headers={**KEY, "Host": "evil.example"})
    assert (foreign.status_code, foreign.json()["error"]["code"]) == (403, "host_not_allowed")
    ids = httpx.get(f"{base}/v1/models", headers=KEY).headers.get_list("x-request-id")
    assert len(ids) == 1


def test_errors_have_the_forms_of_their_protocols(base: str) -> None:
    assert httpx.post(f"{base}/v1/messages", headers=KEY, json={}).json()["type"] == "error"
    assert isinstance(httpx.post(f"{base}/api/chat", headers=KEY, json={"model": "nothing"}).json()["error"], str)
    assert httpx.post(f"{base}/v1/chat/completions", headers=KEY, content=b"x" * (9 << 20)).status_code == 413
    assert "Ray" in httpx.get(f"{base}/metrics", headers=KEY).json()["error"]["message"]
    assert httpx.get(f"{base}/v1/files", headers=KEY).status_code == 404


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
            body = {
                "model": self.model,
                "messages": [{"role": "user", "content": f"Name some towns, list {number} of {turn}."}],
                "response_format": FORMAT,
                "max_tokens": TOKENS,
                "temperature": 1,
                "stream": True,
            }
            try:
                self.ask(body)
            except httpx.HTTPError as error:
                self.wrong.append(repr(error))

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


def test_responses_are_found_from_every_replica(base: str) -> None:
    body = {"model": model_of(base), "input": "Say yes.", "max_output_tokens": 8}
    with ThreadPoolExecutor(8) as pool:
        made = list(
            pool.map(lambda _: httpx.post(f"{base}/v1/responses", headers=KEY, json=body, timeout=60), range(8))
        )
        found = list(
            pool.map(lambda each: httpx.get(f"{base}/v1/responses/{each.json()['id']}", headers=KEY), made * 4)
        )
    assert [each.json() for each in found] == [each.json() for each in made * 4]
    first = made[0].json()["id"]
    more = httpx.post(f"{base}/v1/responses", headers=KEY, json={**body, "previous_response_id": first}, timeout=60)
    assert more.json()["usage"]["input_tokens"] > made[0].json()["usage"]["input_tokens"]
    others = {"Authorization": "Bearer other"}
    assert httpx.get(f"{base}/v1/responses/{first}", headers=others).status_code == 404


def test_the_numbers_of_replicas_are_with_those_of_ray(base: str) -> None:
    (node,) = ray.nodes()
    address = f"http://{node['NodeManagerAddress']}:{node['MetricsExportPort']}/metrics"
    for name in ("requests", "tokens"):
        until(lambda name=name: f"ray_constrain_{name}_total{{" in httpx.get(address).text)
    assert httpx.get(f"{base}/health").status_code == 200


def test_a_client_that_leaves_frees_the_model(base: str) -> None:
    body = {
        "model": model_of(base),
        "messages": [{"role": "user", "content": "Count."}],
        "max_tokens": 900,
        "stream": True,
    }
    for _ in range(6):
        with httpx.stream("POST", f"{base}/v1/chat/completions", headers=KEY, json=body, timeout=60) as response:
            next(response.iter_lines())
    begun = time.monotonic()
    answer = httpx.post(
        f"{base}/v1/chat/completions", headers=KEY, json={**body, "stream": False, "max_tokens": 2}, timeout=60
    )
    assert answer.status_code == 200
    assert time.monotonic() - begun < 5
