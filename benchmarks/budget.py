"""Token budgets: the share of complete and valid answers against ``max_tokens``; beside the peers that are installed.

    pip install ".[bench]"
    CONSTRAIN_DATA=data python benchmarks/budget.py --plot budget.svg

For each schema of a seeded sample of MaskBench that all engines compile, n runs from the minimum (the ``needed`` of our
``BudgetError`` for no tokens at all) to 20 more, and over 64 and 256 where they are no less than the minimum.

    walks    without a model: of each mask a token is drawn, half of the time from all that are allowed, half of the
             time from those of at most one byte, the end of generation among them (if there are any)
    model    the whole distribution of the model at temperature 1, after the prompt that ``complete`` makes: ours is
             ``complete`` itself, the others go through the loop of ``Llama.create_completion``, llama.cpp's own grammar
             as it makes it from the schema

The others know no budget: with less, they write the beginning of what they write with more. So each writes one answer,
which is cut after n tokens. All engines have their own defaults for what a schema leaves open. An answer counts if it
parses as JSON, if jsonschema finds it valid (``benchmarks/judge.py``), and if it has at most n tokens, the end of
generation not counted; if an engine fails on the way, its answers do not count. Below the minimum, ours must raise
``BudgetError``, and the number it names must do. The JSON file lists every answer that does not count, and why.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import multiprocessing
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

import llama_cpp
import numpy as np
from about import origin
from judge import flaw
from llama_cpp.llama_grammar import LlamaGrammar
from masks import LlguidanceEngine, OurSession, Session, Tokens, read_schemas
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import constrain
from constrain.json_schema.hint import describe
from constrain.llama.model import default_model_path

sys.path.append(str(Path(__file__).parent.parent))  # behind what is installed: the sources may have no kernel

from tests.support.llama.prompts import prompt_tokens

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

MORE = range(21)
"""Tokens above the minimum."""
SIZES = (64, 256)
"""Other budgets, whatever the minimum."""
SHOWN = (0, 1, 2, 5, 10, 20)
"""The part of ``MORE`` that the table shows."""

OURS = "constrain"
PROMPT = "Make something up that fits, as JSON."
PROMPT_TOKENS = 2048
"""Schemas with a longer prompt are left out."""
SAMPLING: dict[str, Any] = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}
SECONDS_PER_SCHEMA = 600


# The engines


class Engine(Protocol):
    """Writes answers for the schema that it was last given to compile.

    ``compile`` returns the minimum, if the engine has budgets, or None; also for what cannot be asked of a model.
    ``write`` returns the tokens of an answer. An engine without budgets cuts it after ``n``.
    """

    vocabulary: constrain.Vocabulary

    def compile(self, schema: Any) -> int | None: ...

    def write(self, n: int, seed: str) -> list[int]: ...


def needed(write: Callable[[int, str], list[int]], n: int) -> int | None:
    """What ``BudgetError`` says for n tokens; None if they are enough."""
    try:
        write(n, "")
    except constrain.BudgetError as error:
        return error.needed
    return None


def tokens_of(path: Path, vocabulary: constrain.Vocabulary) -> Tokens:
    """A vocabulary for the peers."""
    texts = [vocabulary.token_bytes(token) for token in range(vocabulary.n_vocab)]
    return Tokens(str(path), texts, sorted(vocabulary.special), vocabulary.eos[0])


def allowed_ids(words: np.ndarray, n_vocab: int) -> np.ndarray:
    """The bits of a mask that are set."""
    return np.flatnonzero(np.unpackbits(words.view(np.uint8), count=n_vocab, bitorder="little"))


class Walks:
    """Draws tokens from masks."""

    def __init__(self, path: Path, _: int) -> None:
        self.vocabulary = constrain.Vocabulary.from_gguf(path)
        lengths = [len(self.vocabulary.token_bytes(token)) for token in range(self.vocabulary.n_vocab)]
        self.short = np.array(lengths) <= 1

    def walk(self, session: Session, words: np.ndarray, n: int, seed: str) -> list[int]:
        generator = Random(seed)
        tokens: list[int] = []
        while len(tokens) < n:
            session.mask()
            ids = allowed_ids(words, self.vocabulary.n_vocab)
            if generator.random() < 0.5 and self.short[ids].any():
                ids = ids[self.short[ids]]
            token = int(ids[generator.randrange(len(ids))])
            if token in self.vocabulary.eos:
                break
            session.accept(token)
            tokens.append(token)
        return tokens


class OurWalks(Walks):
    def compile(self, schema: Any) -> int | None:
        self.constraint = constrain.compile(schema, self.vocabulary)
        return needed(self.write, 0)

    def write(self, n: int, seed: str) -> list[int]:
        session = OurSession(self.constraint, max_tokens=n)
        return self.walk(session, session.words, n, seed)


class LlguidanceWalks(Walks):
    def __init__(self, path: Path, threads: int) -> None:
        super().__init__(path, threads)
        self.engine = LlguidanceEngine(tokens_of(path, self.vocabulary))

    def compile(self, schema: Any) -> None:
        self.start = self.engine.compile(schema)

    def write(self, n: int, seed: str) -> list[int]:
        return self.walk(*self.start(), n, seed)


class Answers:
    """Has a model, at temperature 1."""

    def __init__(self, path: Path, threads: int) -> None:
        self.model = constrain.Model(path, n_ctx=2 * PROMPT_TOKENS, n_threads=threads)
        self.vocabulary = self.model.vocabulary

    def prompt(self, schema: Any) -> list[int]:
        return prompt_tokens(self.model, PROMPT, shown=describe(schema), constrained=True)

    def generate(
        self, prompt: list[int], n: int, seed: str, accept: Callable[[int], None], **options: Any
    ) -> list[int]:
        """The loop of ``Llama.create_completion``."""
        self.model.llama.set_seed(Random(seed).randrange(2**31))
        tokens: list[int] = []
        for token in self.model.llama.generate(prompt, temp=1.0, repeat_penalty=1.0, **SAMPLING, **options):
            if token in self.vocabulary.eos:
                break
            accept(token)
            tokens.append(token)
            if len(tokens) == n:
                break
        return tokens


class OurAnswers(Answers):
    def compile(self, schema: Any) -> int | None:
        self.schema = schema
        return needed(self.write, 0) if len(self.prompt(schema)) <= PROMPT_TOKENS else None

    def write(self, n: int, seed: str) -> list[int]:
        number = Random(seed).randrange(2**31)
        options: dict[str, Any] = {"schema": self.schema, "temperature": 1.0, "seed": number, **SAMPLING}
        return list(constrain.complete(self.model, PROMPT, max_tokens=n, **options).tokens)


class LlguidanceAnswers(Answers):
    def __init__(self, path: Path, threads: int) -> None:
        super().__init__(path, threads)
        self.engine = LlguidanceEngine(tokens_of(path, self.vocabulary))

    def compile(self, schema: Any) -> None:
        self.schema, self.start = schema, self.engine.compile(schema)

    def write(self, n: int, seed: str) -> list[int]:
        session, words = self.start()

        def masked(_: Any, scores: Any) -> Any:
            session.mask()
            ids = allowed_ids(words, self.vocabulary.n_vocab)
            only = np.full_like(scores, -np.inf)
            only[ids] = scores[ids]
            return only

        processors = llama_cpp.LogitsProcessorList([masked])
        return self.generate(self.prompt(self.schema), n, seed, session.accept, logits_processor=processors)


class GrammarAnswers(Answers):
    def compile(self, schema: Any) -> None:
        self.schema = schema
        self.grammar = LlamaGrammar.from_json_schema(json.dumps(schema), verbose=False)
        text = self.grammar._grammar.encode()
        vocabulary = llama_cpp.llama_model_get_vocab(self.model.llama.model)
        sampler = llama_cpp.llama_sampler_init_grammar(vocabulary, text, b"root")
        if not sampler:
            raise ValueError("llama.cpp cannot read the grammar made from the schema")
        llama_cpp.llama_sampler_free(sampler)

    def write(self, n: int, seed: str) -> list[int]:
        return self.generate(self.prompt(self.schema), n, seed, lambda _: None, grammar=self.grammar)


PARTS: dict[str, dict[str, Callable[[Path, int], Engine]]] = {
    "walks": {OURS: OurWalks, "llguidance": LlguidanceWalks},
    "model": {OURS: OurAnswers, "llguidance": LlguidanceAnswers, "llama.cpp grammar": GrammarAnswers},
}
MODULES = {"llguidance": "llguidance"}
"""What an engine needs besides our own dependencies."""


# One engine in its process


def judged(engine: Engine, schema: Any, n: int, tokens: list[int]) -> dict[str, Any]:
    """One answer. ``why`` is empty if it counts."""
    text = b"".join(map(engine.vocabulary.token_bytes, tokens))
    why = f"{len(tokens)} tokens" if len(tokens) > n else flaw(schema, text)
    return {"n": n, "tokens": len(tokens), "why": why, **({"text": text.decode(errors="replace")} if why else {})}


def answers(engine: Engine, schema: Any, sizes: list[int], seed: str, *, budgets: bool) -> list[dict[str, Any]]:
    """An answer for each number of tokens."""
    if budgets:
        return [judged(engine, schema, n, engine.write(n, f"{seed} {n}")) for n in sizes]
    longest = engine.write(max(sizes), seed)
    return [judged(engine, schema, n, longest[:n]) for n in sizes]


def below(engine: Engine, schema: Any, minimum: int, seed: str) -> list[dict[str, Any]]:
    """Budgets that are too small: whether there is an error, and its number of tokens is enough."""
    found = []
    for n in sorted({0, minimum // 2, minimum - 1}):
        number = needed(engine.write, n)
        if number is None or number <= n:
            found.append({"n": n, "needed": number, "why": "no BudgetError, or one that names no more tokens"})
        else:
            found.append(
                judged(engine, schema, number, engine.write(number, f"{seed} {n}")) | {"n": n, "needed": number}
            )
    return found


def serve(part: str, name: str, path: Path, threads: int, connection: Connection) -> None:
    """Answers calls until the pipe is closed."""
    engine = PARTS[part][name](path, threads)
    connection.send(None)
    while True:
        try:
            call, *arguments = connection.recv()
        except EOFError:
            return
        try:
            if call == "compile":
                result: Any = engine.compile(*arguments)
            elif call == "below":
                result = below(engine, *arguments)
            else:
                result = answers(engine, *arguments, budgets=name == OURS)
        except Exception as error:  # noqa: BLE001 - whatever an engine raises is a result
            result = Failure(f"{type(error).__name__}: {error}"[:300])
        connection.send(result)


@dataclass(frozen=True)
class Failure:
    """Why an engine has no result."""

    why: str


@dataclass
class Worker:
    """An engine's process, started again after a crash or a timeout."""

    part: str
    name: str
    path: Path
    threads: int

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        arguments = (self.part, self.name, self.path, self.threads, theirs)
        self.process = context.Process(target=serve, args=arguments, daemon=True)
        self.process.start()
        theirs.close()
        self.connection.recv()

    def call(self, *call: Any) -> Any:
        self.connection.send(call)
        failure = Failure(f"more than {SECONDS_PER_SCHEMA} s")
        try:
            if self.connection.poll(SECONDS_PER_SCHEMA):
                return self.connection.recv()
        except EOFError:
            failure = Failure("the process crashed")
        self.stop()
        self.start()
        return failure

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


# The benchmark


@dataclass
class Report:
    """One part. ``answers``: by engine, of each schema; ``refused``: schemas an engine does not compile."""

    tried: int = 0
    left_out: int = 0
    refused: dict[str, dict[str, str]] = field(default_factory=dict)
    answers: dict[str, list[list[dict[str, Any]]]] = field(default_factory=dict)
    below: list[dict[str, Any]] = field(default_factory=list)

    def rows(self, engine: str) -> dict[str, tuple[int, int]]:
        """How many answers count, and of how many; by n - minimum, and by n."""
        rows: dict[str, list[bool]] = {label: [] for label in (*(f"+{more}" for more in MORE), *map(str, SIZES))}
        for found in self.answers[engine]:
            for answer in found:
                for label in (f"+{answer['n'] - found[0]['n']}", str(answer["n"])):
                    if label in rows:
                        rows[label].append(not answer["why"])
        return {label: (sum(counting), len(counting)) for label, counting in rows.items()}

    def failures(self, engine: str) -> list[dict[str, Any]]:
        return [answer for found in self.answers[engine] for answer in found if answer["why"]]


def measure(part: str, engines: list[str], path: Path, count: int, arguments: argparse.Namespace) -> Report:
    """One part: as many schemas as wanted, of those that all engines compile."""
    entries = read_schemas(arguments.schemas)
    Random(arguments.seed).shuffle(entries)
    report = Report(answers={name: [] for name in engines})
    workers = {name: Worker(part, name, path, arguments.threads) for name in engines}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task(part, total=count)
        for entry in entries:
            if len(report.answers[OURS]) == count:
                break
            if run(report, workers, entry):
                progress.advance(bar)
    for worker in workers.values():
        worker.stop()
    return report


def run(report: Report, workers: dict[str, Worker], entry: dict[str, Any]) -> bool:
    """One schema; False if it is left out."""
    schema, seed = entry["schema"], entry["id"]
    report.tried += 1
    compiled = {name: worker.call("compile", schema) for name, worker in workers.items()}
    refusing = {name: result.why for name, result in compiled.items() if isinstance(result, Failure)}
    for name, why in refusing.items():
        report.refused.setdefault(name, {})[entry["id"]] = why
    if refusing:
        return False
    minimum = compiled[OURS]
    if minimum is None or minimum > max(SIZES):
        report.left_out += 1
        return False
    sizes = sorted({minimum + more for more in MORE} | {size for size in SIZES if size >= minimum})
    for name, worker in workers.items():
        found = worker.call("answers", schema, sizes, seed)
        if isinstance(found, Failure):
            found = [{"n": n, "why": found.why} for n in sizes]
        report.answers[name].append([{"schema": entry["id"], **answer} for answer in found])
    smaller = workers[OURS].call("below", schema, minimum, seed)
    if isinstance(smaller, Failure):
        smaller = [{"n": minimum - 1, "why": smaller.why}]
    report.below += [{"schema": entry["id"], **answer} for answer in smaller]
    return True


def print_table(console: Console, part: str, report: Report) -> None:
    """The share of answers that count, by n."""
    schemas = len(report.answers[OURS])
    table = Table("max_tokens", "answers", *report.answers, title=f"{part}: complete and valid; {schemas} schemas")
    rows = {name: report.rows(name) for name in report.answers}
    for label in [*(f"+{more}" for more in SHOWN), *map(str, SIZES)]:
        cells = [rows[name][label] for name in report.answers]
        shares = [f"{100 * good / total:.1f} %" if total else "" for good, total in cells]
        table.add_row(label if label[0] != "+" else f"minimum {label}", str(cells[0][1]), *shares)
    console.print(table)
    refused = ", ".join(f"{len(report.refused.get(name, ()))} by {name}" for name in report.answers)
    attained = sum(not answer["why"] for answer in report.below)
    console.print(f"{report.tried} schemas tried; not compiled: {refused}; {report.left_out} too long")
    console.print(
        f"below the minimum: {attained} of {len(report.below)} times BudgetError with a number that is enough"
    )


def plot(path: Path, reports: dict[str, Report]) -> None:
    """The share of answers that count, against n."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5 * len(reports), 3.5), layout="constrained")
    places = [*MORE, *(max(MORE) + 3 * number for number in range(1, len(SIZES) + 1))]
    for axes, (part, report) in zip(figure.subplots(1, len(reports), squeeze=False)[0], reports.items(), strict=True):
        for name in report.answers:
            cells = report.rows(name).values()
            shares = [100 * good / total if total else float("nan") for good, total in cells]
            (line,) = axes.plot(places[: len(MORE)], shares[: len(MORE)], marker=".", label=name)
            axes.plot(places[len(MORE) :], shares[len(MORE) :], "o", color=line.get_color())
        axes.set(title=part, ylim=(-3, 103), xlabel="max_tokens above the minimum; 64 and 256 in all")
        axes.set_xticks([*range(0, len(MORE), 5), *places[len(MORE) :]], [*range(0, len(MORE), 5), *SIZES])
        axes.set_ylabel("complete and valid, %")
        axes.legend()
    figure.savefig(path)


def parse_arguments() -> argparse.Namespace:
    data = Path(os.environ.get("CONSTRAIN_DATA", "."))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schemas", type=Path, default=data / "maskbench-dev.jsonl.xz")
    parser.add_argument("--vocabulary", type=Path, help="a GGUF file, for the walks (that of the default model)")
    parser.add_argument("--model", type=Path, help="a GGUF file (the default model)")
    parser.add_argument("--count", type=int, default=300, help="schemas of the walks (default: %(default)s)")
    parser.add_argument("--model-count", type=int, default=100, help="schemas for the model (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="threads of llama.cpp (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("budget.json"), help="where the numbers go")
    parser.add_argument("--plot", type=Path, help="where a plot goes: .svg, .png or .pdf")
    arguments = parser.parse_args()
    if not arguments.schemas.is_file():
        parser.error(f"{arguments.schemas} is no file; set CONSTRAIN_DATA, or give --schemas")
    return arguments


def main() -> None:
    """Runs both parts, prints their tables and writes a JSON file."""
    arguments = parse_arguments()
    console = Console()
    missing = {name for name, module in MODULES.items() if not importlib.util.find_spec(module)}
    for name in sorted(missing):
        console.print(f"{name} is not installed and left out")
    model = arguments.model or default_model_path()
    wanted = {"walks": (arguments.vocabulary or model, arguments.count), "model": (model, arguments.model_count)}
    reports: dict[str, Report] = {}
    written: dict[str, Any] = {}
    for part, (path, count) in wanted.items():
        if not count:
            continue
        engines = [name for name in PARTS[part] if name not in missing]
        report = reports[part] = measure(part, engines, path, count, arguments)
        print_table(console, part, report)
        written[part] = {
            "file": path.name,
            "schemas": len(report.answers[OURS]),
            "tried": report.tried,
            "refused": report.refused,
            "left_out": report.left_out,
            "valid": {name: report.rows(name) for name in engines},
            "failures": {name: report.failures(name) for name in engines},
            "below": report.below,
        }
    packages = ["constrain-llm", "llama-cpp-python", *sorted(MODULES.keys() - missing)]
    versions = {package: importlib.metadata.version(package) for package in packages}
    arguments.output.write_text(
        json.dumps({**origin(), "versions": versions, "seed": arguments.seed, **written}, indent=1)
    )
    console.print(f"written to {arguments.output}")
    if arguments.plot:
        plot(arguments.plot, reports)


if __name__ == "__main__":
    main()
