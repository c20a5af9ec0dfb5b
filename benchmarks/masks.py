"""What masks cost: time to the first one, time between them, memory; beside the peers that are installed.

    pip install ".[bench]"
    python benchmarks/masks.py --vocabulary llama-bpe.gguf --schemas schemas.jsonl.xz --output masks.json
    python benchmarks/masks.py --vocabulary phi-3.gguf llama-bpe.gguf gemma-4.gguf --output vocabularies.json

``--schemas`` has one JSON object a line: ``{"id": ..., "schema": ..., "tests": [{"valid": true, "data": ...}, ...]}``;
``CONSTRAIN_DATA`` gives defaults for both. Every engine has a process of its own, on one core, and all of them take
schema after schema in turn, so that noise falls on all alike. Each instance is fed twice: *cold* times are of the
first walk, *warm* ones of the second. Of ``--repeat`` passes in fresh processes the least time of every step counts.
Time to first mask is compile, matcher and mask; time between masks is mask and accept of one token. Texts that the
schema refuses are fed, too, up to the token that the mask refuses: an engine that allows all of one is wrong. With
several vocabularies, the report is a list of one for each.

With a kernel that was configured with ``-DCONSTRAIN_ABLATION=ON``, ``--ways`` compares the kernel with itself without
each of its ways to a mask.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import importlib.util
import json
import lzma
import multiprocessing
import os
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from about import origin
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

    import constrain

PERCENTILES = (50, 90, 99, 99.9, 100)
SECONDS_PER_SCHEMA = 20


@dataclass(frozen=True)
class Tokens:
    """A vocabulary in the form that all engines can be given."""

    path: str
    texts: list[bytes]
    special: list[int]
    end: int

    @classmethod
    def of(cls, path: Path, vocabulary: constrain.Vocabulary) -> Tokens:
        texts = [vocabulary.token_bytes(token) for token in range(vocabulary.n_vocab)]
        return cls(str(path), texts, sorted(vocabulary.special), vocabulary.eos[0])


class Instance(NamedTuple):
    """A text that a schema allows, or does not."""

    token_ids: list[int]
    valid: bool


class Session(Protocol):
    """One matcher and its mask."""

    def mask(self) -> None: ...

    def accept(self, token: int) -> None: ...


class Engine(Protocol):
    """Compiles a schema; what it returns starts sessions, with the words of its mask."""

    def compile(self, schema: Any) -> Callable[[], tuple[Session, np.ndarray]]: ...


# The engines


class OurSession:
    def __init__(self, constraint: Any, max_tokens: int | None = None) -> None:
        self.words = constraint.allocate_bitmask()[0]
        self.matcher = constraint.matcher(max_tokens)

    def mask(self) -> None:
        self.matcher.fill_bitmask(self.words)

    def accept(self, token: int) -> None:
        if not self.matcher.accept(token):
            raise RuntimeError(f"token {token} is in the mask, but was not accepted")


class OurEngine:
    def __init__(self, tokens: Tokens, without: str = "") -> None:
        os.environ["CONSTRAIN_WITHOUT"] = without
        import constrain

        self.vocabulary = constrain.Vocabulary.from_gguf(tokens.path)
        self.constrain = constrain

    def compile(self, schema: Any) -> Callable[[], tuple[Session, np.ndarray]]:
        constraint = self.constrain.compile(json.dumps(schema), self.vocabulary, whitespace="any")

        def start() -> tuple[Session, np.ndarray]:
            session = OurSession(constraint)
            return session, session.words

        return start


class LlguidanceSession:
    def __init__(self, matcher: Any, n_vocab: int) -> None:
        from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

        self.fill = fill_next_token_bitmask
        self.words = allocate_token_bitmask(1, n_vocab)
        self.matcher = matcher

    def mask(self) -> None:
        self.fill(self.matcher, self.words, 0)

    def accept(self, token: int) -> None:
        if not self.matcher.consume_token(token):
            raise RuntimeError(self.matcher.get_error())


class LlguidanceTokens:
    """What llguidance asks of a tokenizer; it does not need to encode for masks."""

    def __init__(self, tokens: Tokens) -> None:
        special = set(tokens.special)
        self.tokens = [b"" if index in special else text for index, text in enumerate(tokens.texts)]
        self.special_token_ids = tokens.special
        self.eos_token_id = tokens.end
        self.bos_token_id = None
        self._split = longest_match(tokens)

    def __call__(self, text: bytes | str) -> list[int]:
        return list(self._split(text if isinstance(text, bytes) else text.encode()))


class LlguidanceEngine:
    def __init__(self, tokens: Tokens) -> None:
        import llguidance

        self.llguidance = llguidance
        self.n_vocab = len(tokens.texts)
        self.tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(LlguidanceTokens(tokens)))

    def compile(self, schema: Any) -> Callable[[], tuple[Session, np.ndarray]]:
        options = {"whitespace_flexible": True}
        text = json.dumps({"x-guidance": options, **schema} if isinstance(schema, dict) else schema)
        grammar = self.llguidance.LLMatcher.grammar_from_json_schema(text)
        matcher = self.llguidance.LLMatcher(self.tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise ValueError(matcher.get_error())

        def start() -> tuple[Session, np.ndarray]:
            session = LlguidanceSession(matcher.deep_copy(), self.n_vocab)
            return session, session.words[0]

        return start


class XgrammarSession:
    def __init__(self, matcher: Any, words: Any) -> None:
        self.matcher = matcher
        self.words = words

    def mask(self) -> None:
        self.matcher.fill_next_token_bitmask(self.words)

    def accept(self, token: int) -> None:
        if not self.matcher.accept_token(token):
            raise RuntimeError(f"token {token} is in the mask, but was not accepted")


class XgrammarEngine:
    def __init__(self, tokens: Tokens, *, dynamic: bool = False) -> None:
        import xgrammar

        self.xgrammar = xgrammar
        self.n_vocab = len(tokens.texts)
        info = xgrammar.TokenizerInfo(
            tokens.texts, xgrammar.VocabType.RAW, vocab_size=self.n_vocab, stop_token_ids=[tokens.end]
        )
        self.compiler = xgrammar.GrammarCompiler(
            info, max_threads=1, cache_enabled=False, enable_dynamic_compilation=dynamic
        )

    def compile(self, schema: Any) -> Callable[[], tuple[Session, np.ndarray]]:
        compiled = self.compiler.compile_json_schema(json.dumps(schema))

        def start() -> tuple[Session, np.ndarray]:
            words = self.xgrammar.allocate_token_bitmask(1, self.n_vocab)
            return XgrammarSession(self.xgrammar.GrammarMatcher(compiled), words), words[0].numpy()

        return start


class GlrmaskSession:
    def __init__(self, constraint: Any) -> None:
        self.words = np.zeros(constraint.mask_len(), dtype=np.int32)
        self.state = constraint.start()

    def mask(self) -> None:
        self.state.fill_mask(self.words)

    def accept(self, token: int) -> None:
        if not self.state.commit_token(token):
            raise RuntimeError(f"token {token} is in the mask, but was not accepted")


class GlrmaskEngine:
    def __init__(self, tokens: Tokens) -> None:
        import glrmask

        self.glrmask = glrmask
        special = {*tokens.special, tokens.end}
        self.vocabulary = glrmask.Vocab.from_id_to_bytes(
            {index: text for index, text in enumerate(tokens.texts) if text and index not in special}
        )
        self.end = glrmask.TokenSet([tokens.end])

    def compile(self, schema: Any) -> Callable[[], tuple[Session, np.ndarray]]:
        values = self.glrmask.Grammar.from_json_schema(schema)
        grammar = self.glrmask.Grammar.from_expr(self.glrmask.Expr.sequence(values, self.end))
        constraint = grammar.compile(self.vocabulary)

        def start() -> tuple[Session, np.ndarray]:
            session = GlrmaskSession(constraint)
            return session, session.words.view(np.uint32)

        return start


class Peer(NamedTuple):
    """Name of the module, name of the distribution, how it starts."""

    module: str
    distribution: str
    start: Callable[[Tokens], Engine]


ENGINES = {
    "constrain": Peer("constrain", "constrain-llm", OurEngine),
    "llguidance": Peer("llguidance", "llguidance", LlguidanceEngine),
    "xgrammar": Peer("xgrammar", "xgrammar", XgrammarEngine),
    "xgrammar, dynamic": Peer("xgrammar", "xgrammar", partial(XgrammarEngine, dynamic=True)),
    "glrmask": Peer("glrmask", "glrmask", GlrmaskEngine),
}
"""XGrammar's dynamic mode, off by default, computes masks when a state is first met."""

WAYS = ("texts", "repetition", "far counts", "difference", "paths", "tokens after exits", "rows", "stand-ins")
"""Ways to a mask that the kernel can do without (`ways.h`)."""

ENGINES |= {f"without {way}": Peer("", "constrain-llm", partial(OurEngine, without=way)) for way in WAYS}


# One engine in its process


def resident() -> int:
    """Resident memory of this process, in bytes."""
    with Path("/proc/self/statm").open() as pages:
        return int(pages.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def serve(name: str, tokens: Tokens, core: int, connection: Connection) -> None:
    """Answers tasks until the pipe is closed."""
    os.sched_setaffinity(0, {core})
    before, started = resident(), time.perf_counter()
    engine = ENGINES[name].start(tokens)
    connection.send({"load_s": time.perf_counter() - started, "load_bytes": resident() - before})
    kept = []
    while True:
        try:
            schema, instances = connection.recv()
        except EOFError:
            return
        gc.collect()
        gc.disable()
        try:
            answer, start = measure(engine, schema, instances, tokens.end)
            kept.append(start)
        except Exception as error:  # noqa: BLE001 - whatever an engine raises is a result
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        gc.enable()
        connection.send({**answer, "bytes": resident() - before})


def measure(engine: Engine, schema: Any, instances: list[Instance], end: int) -> tuple[dict[str, Any], Any]:
    clock = time.perf_counter_ns
    begin = clock()
    start = engine.compile(schema)
    session, _ = start()
    session.mask()
    first = clock() - begin
    cold, warm, allowed = [], [], []
    for instance in instances:
        for times in (cold, warm):
            steps, accepted = walk(start, instance.token_ids, end)
            times.append(steps)
        allowed.append((instance.valid, accepted))
    return {"first": first, "cold": cold, "warm": warm, "allowed": allowed}, start


def walk(start: Callable[[], tuple[Session, np.ndarray]], token_ids: list[int], end: int) -> tuple[list[int], bool]:
    """Nanoseconds of each mask and accept, and whether the whole instance was allowed."""
    clock = time.perf_counter_ns
    session, words = start()
    steps = []
    for token in [*token_ids, end]:
        begin = clock()
        session.mask()
        masked = clock()
        if not int(words[token >> 5]) >> (token & 31) & 1:
            return [*steps, masked - begin], False
        checked = clock()
        if token != end:
            session.accept(token)
        steps.append(masked - begin + clock() - checked)
    return steps, True


# The benchmark


@dataclass
class Worker:
    """An engine's process, started again after a crash or a timeout."""

    name: str
    tokens: Tokens
    core: int
    load: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(self.name, self.tokens, self.core, theirs), daemon=True)
        self.process.start()
        theirs.close()
        if not self.connection.poll(300):
            raise RuntimeError(f"{self.name} does not start")
        self.load = self.connection.recv()

    def run(self, schema: Any, instances: list[Instance]) -> dict[str, Any]:
        self.connection.send((schema, instances))
        answer: dict[str, Any] = {"error": f"more than {SECONDS_PER_SCHEMA} s"}
        try:
            if self.connection.poll(SECONDS_PER_SCHEMA):
                return dict(self.connection.recv())
        except EOFError:
            answer = {"error": "the process crashed"}
        self.stop()
        self.start()
        return answer

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def longest_match(tokens: Tokens) -> Callable[[bytes], Iterator[int]]:
    """Splits text into tokens, always the longest that fits: every engine gets the same ones."""
    special = set(tokens.special)
    ids = {text: index for index, text in enumerate(tokens.texts) if text and index not in special}
    longest = max(map(len, ids))

    def split(text: bytes) -> Iterator[int]:
        start = 0
        while start < len(text):
            length = min(longest, len(text) - start)
            while text[start : start + length] not in ids:
                length -= 1
            yield ids[text[start : start + length]]
            start += length

    return split


def read_schemas(path: Path) -> list[dict[str, Any]]:
    opener = lzma.open if path.suffix == ".xz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def least(old: dict[str, Any] | None, new: dict[str, Any]) -> dict[str, Any]:
    """Two passes over the same schema, of every step the faster."""
    if old is None or "error" in old or "error" in new:
        return new
    faster = {**new, "first": min(old["first"], new["first"])}
    for kind in ("cold", "warm"):
        pairs = zip(old[kind], new[kind], strict=True)
        faster[kind] = [[min(pair) for pair in zip(one, other, strict=True)] for one, other in pairs]
    return faster


def read_tasks(tokens: Tokens, entries: list[dict[str, Any]]) -> list[tuple[Any, list[Instance]]]:
    """Schemas with the tokens of their texts."""
    split, tasks = longest_match(tokens), []
    for entry in entries:
        texts = [(json.dumps(test["data"], ensure_ascii=False), test["valid"]) for test in entry["tests"]]
        instances = [Instance(list(split(text.encode("utf-8", "replace"))), valid) for text, valid in texts]
        tasks.append((entry["schema"], instances))
    return tasks


def measure_tasks(
    engines: list[str], repeat: int, tokens: Tokens, tasks: list[tuple[Any, list[Instance]]]
) -> dict[str, Any]:
    """Has each engine read all schemas and texts, in turns; returns the report."""
    cores = sorted(os.sched_getaffinity(0))
    results: dict[str, list[Any]] = {name: [None] * len(tasks) for name in engines}
    loads: dict[str, dict[str, Any]] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("masks", total=repeat * len(tasks))
        for _ in range(repeat):
            workers = {name: Worker(name, tokens, cores[-1]) for name in engines}
            for index, task in enumerate(tasks):
                for name, worker in workers.items():
                    results[name][index] = least(results[name][index], worker.run(*task))
                progress.advance(bar)
            for name, worker in workers.items():
                loads[name] = worker.load
                worker.stop()
    able = [name for name in engines if any("error" not in found for found in results[name])]
    common = [i for i in range(len(tasks)) if all("error" not in results[name][i] for name in able)]
    report = {name: summary(results[name], common if name in able else []) | loads[name] for name in engines}
    return {
        **origin(),
        "vocabulary": {"file": Path(tokens.path).name, "n_vocab": len(tokens.texts)},
        "schemas": len(tasks),
        "common": len(common),
        "repeat": repeat,
        "versions": {name: importlib.metadata.version(ENGINES[name].distribution) for name in engines},
        "engines": report,
    }


def summary(results: list[dict[str, Any]], common: list[int]) -> dict[str, Any]:
    """Percentiles in microseconds over the schemas that all engines compile."""
    chosen = [results[index] for index in common]
    instances = [each for result in results if "error" not in result for each in result["allowed"]]

    def percentiles(values: list[float]) -> dict[str, float] | None:
        if not values:
            return None
        return {f"p{p:g}": round(float(np.percentile(values, p)) / 1000, 2) for p in PERCENTILES}

    return {
        "compiled": sum("error" not in result for result in results),
        "valid": sum(valid for valid, _ in instances),
        "valid_allowed": sum(valid and allowed for valid, allowed in instances),
        "invalid": sum(not valid for valid, _ in instances),
        "invalid_allowed": sum(allowed and not valid for valid, allowed in instances),
        "first_us": percentiles([result["first"] for result in chosen]),
        "cold_us": percentiles([step for result in chosen for steps in result["cold"] for step in steps]),
        "warm_us": percentiles([step for result in chosen for steps in result["warm"] for step in steps]),
        "bytes": max((result["bytes"] for result in results if "bytes" in result), default=0),
        "errors": [result["error"] for result in results if "error" in result],
    }


def print_tables(report: dict[str, Any]) -> None:
    console = Console()
    console.print(
        f"{report['schemas']} schemas, {report['common']} compiled by all; {report['vocabulary']['file']}, "
        f"{report['vocabulary']['n_vocab']:,} tokens; microseconds"
    )
    titles = {"first_us": "Time to first mask", "cold_us": "Time between masks, cold", "warm_us": "The same, warm"}
    for key, title in titles.items():
        table = Table("engine", *(f"p{p:g}" if p < 100 else "max" for p in PERCENTILES), title=title)
        for name, engine in report["engines"].items():
            values = engine[key] or {}
            table.add_row(name, *(f"{value:,.1f}" for value in values.values()))
        console.print(table)
    columns = ("engine", "version", "compiled", "valid allowed", "invalid allowed", "load", "vocabulary", "all")
    table = Table(*columns, title="Size")
    for name, engine in report["engines"].items():
        table.add_row(
            name,
            report["versions"][name],
            str(engine["compiled"]),
            f"{engine['valid_allowed']} of {engine['valid']}",
            f"{engine['invalid_allowed']} of {engine['invalid']}",
            f"{engine['load_s']:.2f} s",
            f"{engine['load_bytes'] / 1e6:.0f} MB",
            f"{engine['bytes'] / 1e6:.0f} MB",
        )
    console.print(table)


def parse_arguments() -> argparse.Namespace:
    data = Path(os.environ.get("CONSTRAIN_DATA", "."))
    installed = [name for name, peer in ENGINES.items() if peer.module and importlib.util.find_spec(peer.module)]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    vocabulary = data / "vocabs" / "ggml-vocab-llama-bpe.gguf"
    parser.add_argument("--vocabulary", type=Path, nargs="+", default=[vocabulary])
    parser.add_argument("--schemas", type=Path, default=data / "maskbench-dev.jsonl.xz")
    parser.add_argument("--count", type=int, default=200, help="schemas, a seeded sample (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3, help="passes in fresh processes (default: %(default)s)")
    parser.add_argument("--engines", nargs="+", choices=list(ENGINES), default=installed)
    engines = ["constrain", *(f"without {way}" for way in WAYS)]
    parser.add_argument("--ways", dest="engines", action="store_const", const=engines, help="see above")
    parser.add_argument("--output", type=Path, default=Path("masks.json"))
    arguments = parser.parse_args()
    for path in (*arguments.vocabulary, arguments.schemas):
        if not path.is_file():
            parser.error(f"{path} is no file; set CONSTRAIN_DATA, or give --vocabulary and --schemas")
    return arguments


def main() -> None:
    os.environ["CONSTRAIN_CACHE"] = ""  # cold is cold
    import constrain

    arguments = parse_arguments()
    entries = read_schemas(arguments.schemas)
    entries = Random(arguments.seed).sample(entries, min(arguments.count, len(entries)))
    reports = []
    for path in arguments.vocabulary:
        tokens = Tokens.of(path, constrain.Vocabulary.from_gguf(path))
        reports.append(measure_tasks(arguments.engines, arguments.repeat, tokens, read_tasks(tokens, entries)))
        print_tables(reports[-1])
    report: Any = reports[0] if len(reports) == 1 else {**origin(), "vocabularies": reports}
    arguments.output.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    sys.exit(main())
