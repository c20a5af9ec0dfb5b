"""A normal client beside 200 hostile requests: what became of them, and how much slower it was.

``python -m tests.support.server.attack`` starts a server of its own and prints the numbers;
``benchmarks/attack.py`` keeps them.
"""

from __future__ import annotations

import contextlib
import re
import socket
import statistics
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing import get_context
from typing import Any

import httpx
import psutil  # type: ignore[import-untyped]

from tests.support.server.hostile import CHAT, MODEL, Hostile, hostile_requests
from tests.support.server.process import program

PATIENCE = 60.0

ATTACKERS = 4
"""Hostile requests that are under way at once."""

NORMAL_REQUESTS = 30
"""Of the client alone, before the attack."""

FEWEST_ANSWERS = 2
"""Of the normal client, alone and beside the attack: quantiles need as many."""

_SCHEMA = {
    "type": "object",
    "properties": {"city": {"enum": ["Rome", "Oslo"]}, "note": {"type": "string", "minLength": 40, "maxLength": 60}},
    "required": ["city", "note"],
}
_NORMAL: dict[str, Any] = {
    "model": MODEL,
    "messages": [{"role": "user", "content": "Name a city."}],
    "temperature": 0,
    "response_format": {"type": "json_schema", "json_schema": {"name": "city", "schema": _SCHEMA}},
}


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a hostile request: its status (0 for none) after some seconds."""

    name: str
    status: int
    seconds: float

    @property
    def is_well(self) -> bool:
        return 400 <= self.status < 500 and self.seconds < 5


@dataclass(frozen=True, slots=True)
class Report:
    """``alone`` and ``attacked``: seconds that the normal client's requests took; ``memory``: MiB before and after."""

    fates: list[Fate]
    alone: list[float]
    attacked: list[float]
    memory: tuple[float, float]

    def ratio(self, part: float) -> float:
        """How much longer they took at a quantile."""
        return _quantile(self.attacked, part) / _quantile(self.alone, part)

    def numbers(self) -> dict[str, Any]:
        """What a file keeps: seconds, and MiB of the server's memory."""
        return {
            "hostile": len(self.fates),
            "refused_in_5_seconds": sum(fate.is_well for fate in self.fates),
            "slowest_seconds": max(fate.seconds for fate in self.fates),
            "alone": _summary(self.alone),
            "attacked": _summary(self.attacked),
            "memory_mib": dict(zip(("before", "after"), self.memory, strict=True)),
        }

    def __str__(self) -> str:
        slowest = max(self.fates, key=lambda fate: fate.seconds)
        lines = [f"{fate.name}: {fate.status} after {fate.seconds:.2f} s" for fate in self.fates if not fate.is_well]
        lines.append(f"{len(self.fates)} hostile requests, {sum(fate.is_well for fate in self.fates)} refused in 5 s")
        lines.append(f"slowest refusal: {slowest.seconds:.2f} s ({slowest.name})")
        for part in (0.5, 0.95):
            alone, attacked = _quantile(self.alone, part), _quantile(self.attacked, part)
            lines.append(
                f"normal client p{part * 100:.0f}: {alone:.3f} s, {attacked:.3f} s, {self.ratio(part):.2f} times"
            )
        lines.append(f"its requests: {len(self.alone)} alone, {len(self.attacked)} beside the attack")
        lines.append("memory: {:.0f} MiB before, {:.0f} MiB after".format(*self.memory))
        return "\n".join(lines)


def _quantile(values: list[float], part: float) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[round(part * 100) - 1]


def _summary(seconds: list[float]) -> dict[str, float]:
    return {"requests": len(seconds), "p50": _quantile(seconds, 0.5), "p95": _quantile(seconds, 0.95)}


def attack(url: str, process: int, *, requests: int | None = None, alone: int = NORMAL_REQUESTS) -> Report:
    """Attacks a server with the first of the hostile requests, or with all of them.

    Raises ``ValueError`` if the normal client has too few answers to tell its times.
    """
    if alone < FEWEST_ANSWERS:
        raise ValueError(f"{alone} requests before the attack tell no quantiles: {FEWEST_ANSWERS} are needed")
    if requests is not None and requests < 1:
        raise ValueError(f"{requests} hostile requests are no attack: one is needed")
    with ProcessPoolExecutor(1, get_context("spawn")) as attacker, http(url) as client:
        attacker.submit(_prepare).result()
        for _ in range(3):
            _ask(client)
        before_it = [_ask(client) for _ in range(alone)]
        before = _memory(process)
        attacking = attacker.submit(_send_all, url, requests)
        attacked = []
        while not attacking.done():
            attacked.append(_ask(client))
        fates = attacking.result()
        if len(attacked) < FEWEST_ANSWERS:
            raise ValueError(
                f"the attack of {len(fates)} hostile requests was over when the normal client had had {len(attacked)} "
                f"answers beside it: {FEWEST_ANSWERS} are needed, so send more hostile requests"
            )
        return Report(fates, before_it, attacked, (before, _memory(process)))


@cache
def _make_requests() -> list[Hostile]:
    """All of them: making them takes a while, which is no part of the attack."""
    return list(hostile_requests())


def _prepare() -> None:
    _make_requests()


def _send_all(url: str, count: int | None) -> list[Fate]:
    # One context of TLS for all: making one takes more time than most requests, of the processor that the server is on.
    with http(url) as client, ThreadPoolExecutor(ATTACKERS) as threads:
        return list(threads.map(partial(send, client), _make_requests()[:count]))


def http(url: str) -> httpx.Client:
    """A patient client of a server."""
    return httpx.Client(base_url=url, timeout=PATIENCE)


def _ask(client: httpx.Client) -> float:
    begun = time.monotonic()
    response = client.post(CHAT, json=_NORMAL)
    assert response.status_code == 200, response.text
    return time.monotonic() - begun


def _memory(process: int) -> float:
    return float(psutil.Process(process).memory_info().rss) / 2**20


def send(client: httpx.Client, request: Hostile) -> Fate:
    """Sends one request, and waits for its answer."""
    begun = time.monotonic()
    try:
        status = _send_pieces(client.base_url, request) if request.pieces else _send_body(client, request)
    except (OSError, httpx.TransportError):
        status = 0
    return Fate(request.name, status, time.monotonic() - begun)


def _send_body(client: httpx.Client, request: Hostile) -> int:
    def pieces() -> Iterator[bytes]:
        for at in range(0, len(request.body), 1 << 16):
            yield request.body[at : at + (1 << 16)]

    headers = {"Content-Type": "application/json", **request.headers}
    content = pieces() if request.is_chunked else request.body
    return client.post(request.path, content=content, headers=headers).status_code


def _send_pieces(url: httpx.URL, request: Hostile) -> int:
    with socket.create_connection((url.host, url.port or 80), timeout=PATIENCE) as connection:
        answer = b""
        for piece in request.pieces:
            with contextlib.suppress(ConnectionError):  # it was refused before all was sent; the answer is there
                connection.sendall(piece)
            if request.pause:
                connection.settimeout(request.pause)
                with contextlib.suppress(TimeoutError):
                    answer = connection.recv(1 << 16)
                    break
        connection.settimeout(PATIENCE)
        answer = answer or connection.recv(1 << 16)
    found = re.match(rb"HTTP/1\.1 ([0-9]{3})", answer)
    return 0 if found is None else int(found[1])


if __name__ == "__main__":
    with program(*sys.argv[1:]) as served:
        print(attack(served.url, served.process.pid))
