"""What the playground's page costs those who ask the server meanwhile: their latency with and without a person on it.

    python benchmarks/playground.py --clients 8 --seconds 40 --turns 3

Clients ask as in ``serving.py``. Turns alternate between three cases, and each has the same requests:

    nobody      only the clients
    typing      a person types a schema, which is checked once a second, and moves the budget five times a second
    answering   a person has answers written, one after the other; a further client of the API does so for comparison

Latency is from a request to the end of its answer, divided by its tokens: answers are of many lengths.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import time
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Any

import httpx
import llama_cpp
from about import origin
from load import MEDIUM, Answer, ask, request_body
from rich.console import Console
from rich.table import Table
from serving import MODEL, ours, warm_up

from constrain.llama.model import default_model_path

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from serving import Server

    Person = Callable[[httpx.AsyncClient, float], Awaitable[None]]

API = "/playground/api/v1"

MESSAGES = [{"role": "user", "content": "Describe a book."}]

LANGUAGE = {"kind": "json_schema", "text": json.dumps(MEDIUM)}


async def nobody(_: httpx.AsyncClient, __: float) -> None:
    """Does nothing."""


async def typing(client: httpx.AsyncClient, end: float) -> None:
    """Checks a schema that changes, and asks for the end of an answer within budgets."""
    for number in itertools.count():
        if time.perf_counter() > end:
            return
        changed = {**LANGUAGE, "text": json.dumps({**MEDIUM, "title": f"version {number}"})}
        await client.post(f"{API}/check", json={"model": MODEL, "language": changed})
        for budget in range(5):
            body = {"model": MODEL, "messages": MESSAGES, "language": LANGUAGE, "tokens": [], "max_tokens": 60 + budget}
            await client.post(f"{API}/budget", json=body)
            await asyncio.sleep(0.2)


async def answering(client: httpx.AsyncClient, end: float) -> None:
    """Has answers written on the page."""
    while time.perf_counter() < end:
        body = {"model": MODEL, "messages": MESSAGES, "language": LANGUAGE, "max_tokens": 150, "temperature": 1}
        await _read(client, f"{API}/generate", body)


async def asking(client: httpx.AsyncClient, end: float) -> None:
    """Has the same answers written as a client of the API."""
    form = {"type": "json_schema", "json_schema": {"name": "book", "schema": MEDIUM}}
    while time.perf_counter() < end:
        body = {"model": MODEL, "messages": MESSAGES, "response_format": form, "max_tokens": 150, "temperature": 1}
        await _read(client, "/v1/chat/completions", {**body, "stream": True})


async def _read(client: httpx.AsyncClient, path: str, body: dict[str, Any]) -> None:
    async with client.stream("POST", path, json=body) as response:
        async for _ in response.aiter_bytes():
            pass


CASES: dict[str, Person] = {"nobody": nobody, "typing": typing, "answering": answering, "one more client": asking}


async def measure(server: Server, person: Person, clients: int, seconds: float) -> list[tuple[float, str]]:
    """Returns the seconds and the text of each answer that clients got while a person was there."""
    end = time.perf_counter() + seconds
    numbers = itertools.count()
    found: list[tuple[float, str]] = []

    async def client() -> None:
        while time.perf_counter() < end:
            kind, body = request_body(next(numbers), MODEL, server.asked)
            answer, begun = Answer(kind, None), time.perf_counter()
            await ask(server.port, body, answer, end)
            found.append((time.perf_counter() - begun, "".join(answer.texts.values())))

    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", timeout=600) as page:
        there = asyncio.create_task(person(page, end))
        await asyncio.gather(*(client() for _ in range(clients)))
        there.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await there
    return found


def main() -> None:
    """Measures, prints a table and writes a JSON file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, default=default_model_path(), help="a GGUF file (the default model)")
    parser.add_argument("--clients", type=int, default=8, help="clients at once (8)")
    parser.add_argument("--seconds", type=float, default=40, help="of each turn (40)")
    parser.add_argument("--turns", type=int, default=3, help="turns of each case (3)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads of llama.cpp (all cores)")
    parser.add_argument("--output", type=Path, default=Path("playground.json"), help="where the numbers go")
    arguments = parser.parse_args()
    asked = argparse.Namespace(**{**vars(arguments), "parallel": arguments.clients + 1, "context": 1536})
    vocabulary = llama_cpp.Llama(str(arguments.model), vocab_only=True, verbose=False)
    latencies: dict[str, list[float]] = {name: [] for name in CASES}
    with ours(asked) as server:
        asyncio.run(warm_up(server))
        for _ in range(arguments.turns):
            for name, person in CASES.items():
                answers = asyncio.run(measure(server, person, arguments.clients, arguments.seconds))
                for seconds, text in answers:
                    tokens = len(vocabulary.tokenize(text.encode(), add_bos=False))
                    latencies[name].append(seconds / max(tokens, 1))
    rows = {
        name: {"answers": len(each), "mean": mean(each), "median": median(each)} for name, each in latencies.items()
    }
    table = Table("", "answers", "mean ms/token", "median ms/token", "mean, times nobody", title="latency of clients")
    for name, row in rows.items():
        shown = (f"{row['answers']}", f"{1e3 * row['mean']:.1f}", f"{1e3 * row['median']:.1f}")
        table.add_row(name, *shown, f"{row['mean'] / rows['nobody']['mean']:.3f}")
    Console().print(table)
    arguments.output.write_text(json.dumps({"clients": arguments.clients, **origin(), "cases": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
