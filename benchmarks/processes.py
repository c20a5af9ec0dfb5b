"""Several processes that run a model at once, and one beside programs that compute: how much longer each one takes.

    python benchmarks/processes.py --output processes.json            ours and llama-cpp-python, 1 to 4 processes
    python benchmarks/processes.py --runs ours --threads 2 --only 1 2 "1 + 2 busy"

A run starts processes at the same moment. Each loads the model, reads a prompt and writes tokens, and its time is that
from its start to its end. Ours writes through ``constrain.complete``, llama-cpp-python through
``Llama.create_completion`` with its defaults; both write equally many tokens of plain text. Busy programs run
``while True: pass``. An ``--output`` that is there gets further rounds, so that the rounds may be spread over a day.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from about import origin
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

sys.path.append(str(Path(__file__).parent.parent))  # behind what is installed: the sources may have no kernel

PROMPT = (
    "The keeper of the lighthouse wrote every evening into a thick book what had happened during the day: which ships "
    "had passed, how the wind had turned, who had come over from the village with bread and letters, and what the sea "
    "had left on the rocks. Once, in a long winter, nothing at all happened for three weeks, and he began to make "
    "things up. First it was a whale, then a ship with red sails, and then"
)
SCENES = ("1", "2", "3", "4", "1 + 1 busy", "1 + 2 busy", "2 + 1 busy")
RUNS = ("ours", "llama-cpp-python")


def main() -> None:
    """Measures, prints a table and writes a JSON file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--worker", choices=RUNS, help=argparse.SUPPRESS)
    parser.add_argument("--runs", nargs="*", choices=RUNS, default=RUNS, help="which programs (both)")
    parser.add_argument("--only", nargs="*", choices=SCENES, default=SCENES, help="how many at once (all of them)")
    parser.add_argument("--threads", type=int, help="threads of each process (what each program chooses)")
    parser.add_argument("--tokens", type=int, default=64, help="tokens that each process writes (64)")
    parser.add_argument("--rounds", type=int, default=1, help="rounds, each with all runs (1)")
    parser.add_argument("--patience", type=float, default=25, help="seconds after which processes are ended (25)")
    parser.add_argument("--output", type=Path, default=Path("processes.json"), help="where the numbers go")
    arguments = parser.parse_args()
    if arguments.worker:
        write(arguments.worker, arguments.threads, arguments.tokens)
        return
    report = read(arguments)
    for _ in range(arguments.rounds):
        for scene in arguments.only:
            for run in arguments.runs:
                seconds = measure(run, scene, arguments)
                key = {"run": run, "threads": arguments.threads, "scene": scene}
                result = next((one for one in report["results"] if key.items() <= one.items()), None)
                if result is None:
                    report["results"].append(result := {**key, "rounds": []})
                result["rounds"].append(seconds)
                arguments.output.write_text(json.dumps(report, indent=2) + "\n")
    print_table(Console(), report)


def write(run: str, threads: int | None, tokens: int) -> None:
    """Loads the model and writes; in a process of its own."""
    from constrain.llama.model import default_model_path

    if run == "ours":
        import constrain

        model = constrain.Model(n_threads=threads, chat_template="")
        written = constrain.complete(model, PROMPT, max_tokens=tokens, temperature=0).usage.completion_tokens
    else:
        import llama_cpp

        llama = llama_cpp.Llama(str(default_model_path()), n_ctx=4096, n_threads=threads, verbose=False)
        answer: Any = llama.create_completion(PROMPT, max_tokens=tokens, temperature=0)
        written = answer["usage"]["completion_tokens"]
    if written != tokens:
        raise SystemExit(f"{written} tokens were written; there must be {tokens}")


def read(arguments: argparse.Namespace) -> dict[str, Any]:
    """The report that further rounds go to."""
    import llama_cpp

    about = {
        **origin(),
        "llama_cpp": llama_cpp.__version__,
        "tokens": arguments.tokens,
        "patience": arguments.patience,
    }
    if not arguments.output.exists():
        return {**about, "results": []}
    report: dict[str, Any] = json.loads(arguments.output.read_text())
    for name in ("processor", "cores", "llama_cpp", "tokens", "patience"):
        if report[name] != about[name]:
            raise SystemExit(f"{arguments.output} was measured with {name} {report[name]}, this is {about[name]}")
    return {**report, **about}


@contextlib.contextmanager
def busy_programs(count: int) -> Iterator[None]:
    """Has so many programs compute; begins when all of them do."""
    command = [sys.executable, "-c", "print(flush=True)\nwhile True: pass"]
    with contextlib.ExitStack() as stack:
        programs = [stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE)) for _ in range(count)]
        for program in programs:
            stack.callback(program.kill)
        for program in programs:
            assert program.stdout is not None
            program.stdout.readline()
        yield


def measure(run: str, scene: str, arguments: argparse.Namespace) -> list[float | None]:
    """Seconds that each process took; ``None`` for one that took more than the patience."""
    count, _, busy = scene.partition(" + ")
    command = [sys.executable, __file__, "--worker", run, "--tokens", str(arguments.tokens)]
    command += [] if arguments.threads is None else ["--threads", str(arguments.threads)]
    with busy_programs(int(busy.split()[0]) if busy else 0):
        begun = time.monotonic()
        processes = [subprocess.Popen(command) for _ in range(int(count))]
        ended: dict[int, float | None] = {}
        while len(ended) < len(processes):
            now = time.monotonic() - begun
            for number, process in enumerate(processes):
                if number not in ended and process.poll() is not None:
                    if process.returncode:
                        raise SystemExit(f"{run} ended with {process.returncode}")
                    ended[number] = now
                elif number not in ended and now > arguments.patience:
                    process.kill()
                    process.wait()
                    ended[number] = None
            time.sleep(0.005)
    return [ended[number] for number in range(len(processes))]


def longest(result: dict[str, Any]) -> float | None:
    """Seconds of the slowest process, the median of the rounds; ``None`` where they were more than the patience."""
    rounds = [float("inf") if None in seconds else max(seconds) for seconds in result["rounds"]]
    median = statistics.median_high(rounds)
    return None if median == float("inf") else median


def print_table(console: Console, report: dict[str, Any]) -> None:
    """One row for each program and number of threads."""
    table = Table(title="seconds of the slowest process")
    for column in ("program", "threads", *SCENES):
        table.add_column(column)
    rows = dict.fromkeys((result["run"], result["threads"]) for result in report["results"])
    for run, threads in rows:
        cells = []
        for scene in SCENES:
            key = {"run": run, "threads": threads, "scene": scene}
            result = next((one for one in report["results"] if key.items() <= one.items()), None)
            cells.append("" if result is None else cell(longest(result), report["patience"], None))
        table.add_row(run, str(threads or "its choice"), *cells)
    console.print(table)


def cell(seconds: float | None, patience: float, alone: float | None) -> str:
    """A time in words, and how many times another one it is."""
    if seconds is None:
        return f"> {patience:.0f}"
    return f"{seconds:.1f}" if alone is None else f"{seconds:.1f} ({seconds / alone:.1f})"


if __name__ == "__main__":
    main()
