"""A server under load: many streaming clients against one, with answers of all kinds, and clients that leave.

    python benchmarks/serving.py                           16 clients for five minutes, and one for one minute
    python benchmarks/serving.py --clients 8 --seconds 60  fewer, and shorter
    python benchmarks/serving.py --model a.gguf b.gguf     with other models, one after the other
    python benchmarks/serving.py --peer venv/bin/python    and the same for llama-cpp-python's server, installed there
    python benchmarks/serving.py --batched server.py       and for its example server (examples/server/server.py)

Every answer that a client waited for is judged when the measurement is over: objects and arguments by jsonschema, texts
of grammars by ``re`` and lark. Tokens are those of the text that came in time, as the model's tokenizer splits it: the
same count for every server, however many tokens it sends at once. Each number of clients is measured on the same
process, after one answer of each kind; half of the single client's time comes before that of the many and half behind
it, because machines get slower and faster. The memory is that of the process, once a second; of the first fifth it is
not said how much it grew: until then caches fill.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING, Any, Literal

import llama_cpp
import psutil
from about import origin
from load import KINDS, Answer, ask, request_body
from rich.console import Console
from rich.table import Table

from constrain.llama.model import default_model_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MODEL = "measured"
LEAVES_WITHIN = 80
"""Events after which a client that leaves has left, at the latest."""


@dataclass(frozen=True)
class Server:
    """A server that runs. ``asked``: the members of a kind of request that it gets; those for peers have no metrics."""

    name: str
    port: int
    process: psutil.Process
    asked: Literal["body", "peer", "batched"] = "body"


@dataclass
class Load:
    """What one number of clients met.

    Attributes:
        model: name of the file.
        server: which server.
        clients: how many asked at once.
        seconds: for how long.
        answers, left: answers that were waited for, and those that were not.
        wrong: what was wrong with answers.
        tokens: that came in time; ``all_tokens``: and those that came when the measurement had ended.
        first_seconds: p50 and p99 of the times to the first piece of an answer.
        server_seconds, client_seconds: processor time of both.
        memory: bytes, once a second.
        leaked: answers that the server still waits for at the end; ``None`` where it does not tell.
    """

    model: str
    server: str
    clients: int
    seconds: float
    answers: int = 0
    left: int = 0
    wrong: list[str] = field(default_factory=list)
    tokens: int = 0
    all_tokens: int = 0
    first_seconds: tuple[float, float] = (0.0, 0.0)
    server_seconds: float = 0.0
    client_seconds: float = 0.0
    memory: list[int] = field(default_factory=list)
    leaked: float | None = None

    @property
    def rate(self) -> float:
        """Tokens a second, of all clients together."""
        return self.tokens / self.seconds

    @property
    def growth(self) -> float:
        """MiB a minute, by least squares, after the first fifth."""
        settled = self.memory[len(self.memory) // 5 :]
        if len(settled) < 2:
            return 0.0
        middle, mean = (len(settled) - 1) / 2, sum(settled) / len(settled)
        above = sum((second - middle) * (size - mean) for second, size in enumerate(settled))
        return 60 * above / sum((second - middle) ** 2 for second in range(len(settled))) / 2**20


def main() -> None:
    """Measures, prints a table and writes a JSON file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--model", nargs="*", type=Path, default=[default_model_path()], help="GGUF files; the default model if none"
    )
    parser.add_argument("--clients", type=int, default=16, help="clients at once (16)")
    parser.add_argument("--seconds", type=float, default=300, help="how long they ask (300)")
    parser.add_argument("--alone", type=float, default=60, help="and one, half of it before them (60)")
    parser.add_argument("--leave", type=float, default=0.05, help="part of the requests whose client leaves (0.05)")
    parser.add_argument("--parallel", type=int, help="answers that our server writes at once (as many as clients)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads of llama.cpp (all cores)")
    parser.add_argument("--context", type=int, default=1536, help="tokens of context of each sequence (1536)")
    parser.add_argument("--peer", type=Path, help="a Python with llama-cpp-python[server]: measure that, too")
    parser.add_argument("--batched", type=Path, help="llama-cpp-python's examples/server/server.py: measure that, too")
    parser.add_argument("--output", type=Path, default=Path("serving.json"), help="where the numbers go")
    arguments = parser.parse_args()
    arguments.parallel = arguments.parallel or arguments.clients
    console = Console()
    loads = []
    about = {
        "threads": arguments.threads,
        "parallel": arguments.parallel,
        **origin(),
        "llama_cpp": llama_cpp.__version__,
    }
    starts = [ours, *([peer] if arguments.peer else []), *([batched] if arguments.batched else [])]
    for path, start in itertools.product(arguments.model, starts):
        one = argparse.Namespace(**{**vars(arguments), "model": path})
        with start(one) as server:
            asyncio.run(warm_up(server))
            alone = Measurement(server, Load(path.name, server.name, 1, one.alone), one)
            many = Measurement(server, Load(path.name, server.name, one.clients, one.seconds), one)
            for measurement, part in ((alone, 0.5), (many, 1.0), (alone, 0.5)):
                seconds = part * measurement.load.seconds
                console.print(f"{path.name}, {server.name}: {measurement.load.clients} at once, {seconds:.0f} seconds")
                asyncio.run(measurement.run(seconds))
            loads += [alone.judged(), many.judged()]
        found = {**about, "loads": [asdict(load) | {"growth": load.growth} for load in loads]}
        arguments.output.write_text(json.dumps(found, indent=2))  # kept if a later server fails
    print_table(console, loads)
    console.print(f"written to {arguments.output}")


@contextlib.contextmanager
def ours(arguments: argparse.Namespace) -> Iterator[Server]:
    options = ("--parallel", arguments.parallel, "--ctx", arguments.context, "--queue", 4 * arguments.clients)
    command = [sys.executable, "-m", "constrain", "serve", "--model", arguments.model, "--alias", MODEL, *options]
    port = free_port()
    with running([*command, "--port", port, "--threads", arguments.threads], port) as process:
        yield Server("constrain", port, process)


@contextlib.contextmanager
def peer(arguments: argparse.Namespace) -> Iterator[Server]:
    options = ("--n_ctx", arguments.context, "--n_threads", arguments.threads, "--interrupt_requests", "false")
    command = [arguments.peer, "-m", "llama_cpp.server", "--model", arguments.model, "--model_alias", MODEL, *options]
    port = free_port()
    with running([*command, "--port", port], port) as process:
        yield Server("llama-cpp-python", port, process, asked="peer")


@contextlib.contextmanager
def batched(arguments: argparse.Namespace) -> Iterator[Server]:
    """The example server, which has one cache for all sequences."""
    port = free_port()
    model = {
        "path": str(arguments.model),
        "alias": MODEL,
        "n_ctx": arguments.context * arguments.parallel,
        "n_seq_max": arguments.parallel,
        "max_seq_len": arguments.context,
        "threads": arguments.threads,
        "threads_batch": arguments.threads,
        "store_logits": False,
    }
    with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
        json.dump({"server": {"port": port}, "model": model}, config)
        config.flush()
        command = [arguments.peer or sys.executable, arguments.batched, "-C", config.name]
        with running(command, port) as process:
            yield Server("llama-cpp-python's example", port, process, asked="batched")


@contextlib.contextmanager
def running(command: list[Any], port: int) -> Iterator[psutil.Process]:
    """The process of a server, once it answers at a port; it ends with the block."""
    log = Path("serving.log").open("w")  # noqa: SIM115 - closed with the process
    with log, subprocess.Popen(list(map(str, command)), stdout=log, stderr=log) as process:
        try:
            while True:
                with contextlib.suppress(urllib.error.URLError):
                    get(port, "/v1/models")
                    break
                if process.poll() is not None:
                    raise SystemExit(f"the server has ended; see {log.name}: {' '.join(map(str, command))}")
                time.sleep(0.2)
            yield psutil.Process(process.pid)
        finally:
            process.terminate()
            process.wait()


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def get(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as response:
        return response.read().decode()


async def warm_up(server: Server) -> None:
    """One answer of each kind."""
    for number in range(len(KINDS)):
        kind, body = request_body(number, MODEL, server.asked)
        await ask(server.port, body, Answer(kind, None), 0)  # what goes wrong is met again when it counts


class Measurement:
    """What a number of clients ask a server, in one part or several."""

    def __init__(self, server: Server, load: Load, arguments: argparse.Namespace) -> None:
        self.load = load
        self._server = server
        self._arguments = arguments
        self._answers: list[Answer] = []
        self._numbers = itertools.count()
        self._chance = random.Random(0)

    async def run(self, seconds: float) -> None:
        """Lets the clients ask, until the last of the answers has come that they asked for within so many seconds."""
        load, server = self.load, self._server
        end = time.perf_counter() + seconds
        spent = processor_seconds(server.process), processor_seconds(psutil.Process())
        watching = asyncio.create_task(self._watch(end))
        await asyncio.gather(*(self._client(end) for _ in range(load.clients)), watching)
        load.server_seconds += processor_seconds(server.process) - spent[0]
        load.client_seconds += processor_seconds(psutil.Process()) - spent[1]
        load.leaked = None if server.asked != "body" else await admitted(server)

    async def _client(self, end: float) -> None:
        while time.perf_counter() < end:
            kind, body = request_body(next(self._numbers), MODEL, self._server.asked)
            is_to_leave = self._chance.random() < self._arguments.leave
            answer = Answer(kind, self._chance.randrange(LEAVES_WITHIN) if is_to_leave else None)
            self._answers.append(answer)
            await ask(self._server.port, body, answer, end)

    async def _watch(self, end: float) -> None:
        while time.perf_counter() < end:
            self.load.memory.append(self._server.process.memory_info().rss)
            await asyncio.sleep(1)

    def judged(self) -> Load:
        """What they met, once all is measured."""
        judge_answers(self.load, self._answers, self._arguments.model)
        return self.load


def processor_seconds(process: psutil.Process) -> float:
    return sum(process.cpu_times()[:2])


async def admitted(server: Server, patience: float = 10) -> float:
    """Answers that the server still writes or waits for, once there are none or no more time to wait for that."""
    end = time.perf_counter() + patience
    while True:
        found = re.search(r"^constrain_answers_admitted (\S+)$", get(server.port, "/metrics"), re.MULTILINE)
        assert found is not None
        if not (count := float(found[1])) or time.perf_counter() > end:
            return count
        await asyncio.sleep(0.1)


def judge_answers(load: Load, answers: list[Answer], model: Path) -> None:
    vocabulary = llama_cpp.Llama(str(model), vocab_only=True, verbose=False)
    first = [answer.seconds_to_first for answer in answers if answer.seconds_to_first is not None]
    percentiles = quantiles(first, n=100, method="inclusive") if len(first) > 1 else (first or [0.0]) * 99
    load.first_seconds = percentiles[49], percentiles[98]
    for answer in answers:
        load.left += answer.has_left
        load.answers += not answer.has_left
        text = "".join(answer.texts.values())
        whole, in_time = (vocabulary.tokenize(part.encode(), add_bos=False) for part in (text, text[: answer.in_time]))
        load.tokens += len(in_time)
        load.all_tokens += len(whole)
        if answer.wrong:
            load.wrong.append(f"{answer.kind.name}: {answer.wrong}")


def print_table(console: Console, loads: list[Load]) -> None:
    alone = {(load.model, load.server): load.rate for load in loads if load.clients == 1}
    rows = [(name, [show(load, alone) for load in loads]) for name, show in ROWS.items()]
    table = Table(title="servers under load")
    table.add_column("")
    for load in loads:
        table.add_column(f"{load.model}, {load.server}, {load.clients} at once", justify="right")
    for name, numbers in rows:
        table.add_row(name, *numbers)
    console.print(table)
    for load in loads:
        for wrong in load.wrong[:5]:
            console.print(f"{load.model}, {load.server}, {load.clients} at once: {wrong}", markup=False)


ROWS: dict[str, Callable[[Load, dict[tuple[str, str], float]], str]] = {
    "answers": lambda load, _: str(load.answers),
    "of clients that left": lambda load, _: str(load.left),
    "wrong answers": lambda load, _: str(len(load.wrong)),
    "places still taken at the end": lambda load, _: "unknown" if load.leaked is None else f"{load.leaked:.0f}",
    "tokens a second": lambda load, _: f"{load.rate:.1f}",
    "times those of a single client": lambda load, alone: (
        f"{load.rate / max(alone[load.model, load.server], 0.01):.2f}"
    ),
    "seconds to the first piece, p50": lambda load, _: f"{load.first_seconds[0]:.2f}",
    "p99": lambda load, _: f"{load.first_seconds[1]:.2f}",
    "MiB of memory at the end": lambda load, _: f"{load.memory[-1] / 2**20:.0f}",
    "more each minute": lambda load, _: f"{load.growth:.2f}",
    "processor, ms a token": lambda load, _: f"{1000 * load.server_seconds / max(1, load.all_tokens):.2f}",
    "of the clients": lambda load, _: f"{1000 * load.client_seconds / max(1, load.all_tokens):.2f}",
}


if __name__ == "__main__":
    main()
