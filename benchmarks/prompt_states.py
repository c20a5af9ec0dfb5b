"""Time to the first token of a process that finds the evaluated beginning of its prompt on disk.

    python benchmarks/prompt_states.py                     a system prompt of some 1,500 tokens, 3 rounds
    python benchmarks/prompt_states.py --tokens 400 3000   other lengths

Each round has a cache directory of its own. A process that finds nothing there answers a question; a second process
answers another question after the same system prompt. Then a server does the same, is stopped, and is started again.
The time is that from the call, or the request, to the first text of the answer; loading the model does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import llama_cpp
from about import origin
from rich.console import Console
from rich.table import Table

import constrain

sys.path.append(str(Path(__file__).parent.parent))  # behind what is installed: the sources may have no kernel

from tests.support.llama.prompts import prompt_tokens
from tests.support.server.process import program

SENTENCE = "You are a librarian who knows every book of the world, its author, and what happens in it. "
QUESTIONS = ("Who wrote Emma?", "What is a sonnet?")
ANSWER_TOKENS = 4
PATIENCE = 240.0


def main() -> None:
    """Measures, prints a table and writes a JSON file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--tokens", type=int, nargs="*", default=[1500], help="tokens of the system prompt (1500)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds (3)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads (all cores)")
    parser.add_argument("--output", type=Path, default=Path("prompt_states.json"), help="where the numbers go")
    arguments = parser.parse_args()
    if arguments.worker is not None:
        print(json.dumps(answer(json.loads(arguments.worker), arguments.threads)))
        return
    console = Console()
    with constrain.Model() as model:
        per_sentence = len(prompt_tokens(model, [_system(20)])) - len(prompt_tokens(model, [_system(19)]))
        lengths = {tokens: -(-tokens // per_sentence) for tokens in arguments.tokens}
    runs = []
    for tokens, sentences in lengths.items():
        for what, measure in (("generate", in_processes), ("server", in_servers)):
            pairs = [measure(sentences, arguments.threads) for _ in range(arguments.rounds)]
            runs.append(summary(what, pairs))
            console.print(f"{what}, {tokens} tokens: measured")
    console.print(table_of(runs))
    report = {"rounds": arguments.rounds, "threads": arguments.threads, **origin(), "llama_cpp": llama_cpp.__version__}
    arguments.output.write_text(json.dumps({**report, "runs": runs}, indent=2))
    console.print(f"written to {arguments.output}")


def _system(sentences: int) -> dict[str, str]:
    return {"role": "system", "content": SENTENCE * sentences}


def _messages(sentences: int, question: str) -> list[dict[str, str]]:
    return [_system(sentences), {"role": "user", "content": question}]


def answer(messages: list[dict[str, str]], threads: int) -> dict[str, Any]:
    """One answer of this process: seconds to its first text, and the tokens of its prompt."""
    with constrain.Model(n_threads=threads) as model:
        begun = time.perf_counter()
        events = constrain.stream(model, messages, max_tokens=ANSWER_TOKENS, temperature=0)
        next(iter(events))
        seconds = time.perf_counter() - begun
        usage = list(events)[-1].completion.usage
    return {"seconds": seconds, "prompt_tokens": usage.prompt_tokens, "cached_tokens": usage.cached_tokens}


def in_processes(sentences: int, threads: int) -> list[dict[str, Any]]:
    """Two processes that answer one after the other."""
    found = []
    with tempfile.TemporaryDirectory() as directory:
        environment = {**os.environ, "CONSTRAIN_CACHE": directory}
        for question in QUESTIONS:
            worker = json.dumps(_messages(sentences, question))
            command = [sys.executable, __file__, "--worker", worker, "--threads", str(threads)]
            found.append(json.loads(subprocess.check_output(command, env=environment, text=True)))
        found[-1]["file_bytes"] = _bytes_in(directory)
    return found


def in_servers(sentences: int, threads: int) -> list[dict[str, Any]]:
    """A server that answers, and the same one started again."""
    found = []
    with tempfile.TemporaryDirectory() as directory:
        os.environ["CONSTRAIN_CACHE"] = directory
        for question in QUESTIONS:
            with program("--threads", str(threads)) as server:
                found.append(_ask(server.url, _messages(sentences, question)))
                server.process.send_signal(signal.SIGINT)
                server.process.wait(PATIENCE)
        found[-1]["file_bytes"] = _bytes_in(directory)
    return found


def _ask(url: str, messages: list[dict[str, str]]) -> dict[str, Any]:
    """One streamed answer of a server."""
    body = {
        "model": "small",
        "messages": messages,
        "max_tokens": ANSWER_TOKENS,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    seconds, usage = None, {}
    begun = time.perf_counter()
    with httpx.stream("POST", f"{url}/v1/chat/completions", json=body, timeout=PATIENCE) as response:
        for line in response.iter_lines():
            if not line.startswith("data: {"):
                continue
            chunk = json.loads(line.removeprefix("data: "))
            if seconds is None and any(choice["delta"].get("content") for choice in chunk["choices"]):
                seconds = time.perf_counter() - begun
            usage = chunk.get("usage") or usage
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    return {"seconds": seconds, "prompt_tokens": usage["prompt_tokens"], "cached_tokens": cached}


def _bytes_in(directory: str) -> int:
    return sum(path.stat().st_size for path in Path(directory).glob("prompts-*/*/*") if path.is_file())


def summary(what: str, pairs: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """The seconds of all rounds, and the numbers of tokens, which are those of each."""
    last = pairs[-1]
    return {
        "what": what,
        "prompt_tokens": last[0]["prompt_tokens"],
        "cached_tokens": last[1]["cached_tokens"],
        "file_bytes": last[1]["file_bytes"],
        "first_seconds": [pair[0]["seconds"] for pair in pairs],
        "second_seconds": [pair[1]["seconds"] for pair in pairs],
    }


def table_of(runs: list[dict[str, Any]]) -> Table:
    """Medians, and their ratio."""
    table = Table(title="time to the first text")
    for column in ("", "tokens", "on disk", "bytes", "first", "second", "ratio"):
        table.add_column(column, justify="right")
    for run in runs:
        first, second = (statistics.median(run[name]) for name in ("first_seconds", "second_seconds"))
        counts = (f"{run['prompt_tokens']:,}", f"{run['cached_tokens']:,}", f"{run['file_bytes']:,}")
        table.add_row(run["what"], *counts, f"{first:.2f} s", f"{second:.3f} s", f"{second / first:.3f}")
    return table


if __name__ == "__main__":
    main()
