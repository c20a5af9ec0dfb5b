"""What guesses save: answers that repeat the prompt, and others, with and without ``Model(speculate=True)``.

    python benchmarks/speculation.py                               the default model
    python benchmarks/speculation.py --model m.gguf                another one

Whole answers at temperature 0, with and without guesses in turn. Only the tokens are timed: prompts are known, schemas
compiled.

Each answer is then repeated by a model that knows it and costs nothing, with the costs of other machines in place of
the measured ones: what would be guessed there, and what it would save, follows from what eight tokens cost at once.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import llama_cpp
import numpy as np
from about import origin
from rich.console import Console
from rich.table import Table

import constrain
from constrain.llama.binding import Candidates
from constrain.llama.costs.table import estimate
from constrain.llama.decoding.answer import Answer
from constrain.llama.decoding.decode import Decoding
from constrain.llama.decoding.sampler import Chain, Sampling
from constrain.llama.speculation.guesses import Speculation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

EIGHT = (1.1, 1.5, 2.0, 3.0, 4.0, 6.0)
"""Costs of eight tokens at once, in costs of one, of the machines that are predicted."""

TOKENS = 160
"""The most tokens of an answer."""

NAMES = ["Ottilie Brandvold", "Kwabena Asante", "Mireille Thibodeaux", "Zbigniew Sadowski", "Anneliese Kirchhoff"]
CODE = """def total(items):
    result = 0
    for item in items:
        if item.price is not None:
            result += item.price * item.count
    return result
"""
REPORT = (
    "On 14 March the ferry Sankt Olaf left Harstad at 06:40 with 212 passengers and 38 cars. Captain Ingrid Solheim "
    "reported ice near Senjahopen and reduced speed to nine knots. The ferry reached Tromso at 13:25."
)


@dataclass(frozen=True)
class Case:
    """A prompt and the schema of its answer."""

    name: str
    prompt: str
    schema: dict[str, Any]


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TEXT = {"type": "string", "maxLength": 400}
CASES = [
    Case(
        "list copied",
        f"Repeat this list of names as a JSON array, twice: {json.dumps(NAMES)}",
        {"type": "array", "items": {"type": "string", "maxLength": 30}, "minItems": 10, "maxItems": 10},
    ),
    Case(
        "code edited",
        f"Rename the variable result to amount in this Python code, and return all of it.\n\n{CODE}",
        _object(code={**TEXT, "minLength": 120}),
    ),
    Case(
        "facts extracted",
        f"{REPORT}\n\nExtract the facts as JSON.",
        _object(ship=TEXT, captain=TEXT, departure=TEXT, arrival=TEXT, summary={**TEXT, "minLength": 150}),
    ),
    Case(
        "rows made up",
        "Make up a list of people as JSON.",
        {
            "type": "array",
            "items": _object(name=TEXT, age={"type": "integer", "maximum": 120}, city=TEXT),
            "minItems": 6,
        },
    ),
    Case("story", "Write a short story about a lighthouse.", _object(story={**TEXT, "minLength": 300})),
]


@dataclass(frozen=True)
class Result:
    """One case: medians of tokens per second, and of every round how many times as fast guesses made it.

    ``default`` is the rate of a model without ``speculate``, and so without flash attention; ``plain`` that of the same
    model without guesses.
    ``speculation`` names the guesses. ``is_equal``: whether both ways gave the same tokens: with several threads,
    llama.cpp rounds one token and several differently after 256 tokens. ``predicted`` has the speedup for the costs
    measured here, without the time of masks and samplers; ``elsewhere`` for other costs of eight tokens.
    """

    model: str
    case: str
    speculation: str
    n_tokens: int
    n_guessed: int
    n_right: int
    default: float
    plain: float
    guessed: float
    speedups: list[float]
    is_equal: bool
    predicted: float
    elsewhere: dict[float, float]


class Replay:
    """A model that knows an answer, and adds up what its evaluations would cost.

    Args:
        n_vocab: number of tokens.
        tokens: the prompt and the answer.
        every: seconds of an evaluation by its number of tokens.
    """

    leaves_a_core = False
    one_state = False

    def __init__(self, n_vocab: int, tokens: Sequence[int], every: Mapping[int, float]) -> None:
        self.n_ctx = len(tokens) + TOKENS
        self.candidates = Candidates(n_vocab)
        self.seconds = 0.0
        self._tokens, self._every = list(tokens), every
        self._logits = np.zeros(n_vocab, np.float32)
        self._length = self._first = 0

    def prefill(self, tokens: Sequence[int], deadline: float | None = None, **_: Any) -> int:
        """Costs nothing."""
        del deadline
        self._length = len(tokens)
        self._first = self._length - 1
        return 0

    def decode(self, tokens: Sequence[int], read: object = None) -> None:
        """Adds the cost of so many tokens."""
        del read
        self.decode_with(tokens, ())

    def decode_with(self, tokens: Sequence[int], guesses: Sequence[int]) -> None:
        """Adds the cost of tokens and guesses."""
        count = len(tokens) + len(guesses)
        self.seconds += estimate(self._every, count)
        self._first = self._length
        self._length += count

    def remove(self, count: int) -> None:
        """Forgets the last tokens."""
        self._length -= count

    def replace(self, groups: Sequence[Sequence[int]]) -> bool:
        """Never asked for: the answer has no questions."""
        raise AssertionError(groups)

    def logits(self, row: int = -1) -> NDArray[np.float32]:
        """Logits with which the known answer goes on."""
        place = self._length if row < 0 else self._first + row + 1
        self._logits[:] = 0
        if place < len(self._tokens):
            self._logits[self._tokens[place]] = 1
        return self._logits

    def sample(self, chain: Chain, row: int = -1) -> int:
        """Never asked for: the answer has a constraint."""
        raise AssertionError(chain, row)


def main() -> None:
    """Runs the cases, prints a table and writes a JSON file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, help="GGUF file; the default model if none")
    parser.add_argument("--rounds", type=int, default=10, help="answers of each case, with and without guesses (10)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads (all cores)")
    parser.add_argument("--output", type=Path, default=Path("speculation.json"), help="where the numbers go")
    arguments = parser.parse_args()
    console = Console()
    results: list[Result] = []
    options = {"n_ctx": 1024, "n_threads": arguments.threads}
    usual = constrain.Model(arguments.model, **options)
    with constrain.Model(arguments.model, **options, speculate=True) as model, usual:
        for case in CASES:
            results.append(measure(model, usual, case, arguments.rounds))
            console.print(f"{case.name}: {statistics.median(results[-1].speedups):.2f}")
        assert model._every is not None
        every = model._every
    print_table(console, results)
    about = {
        "threads": arguments.threads,
        "rounds": arguments.rounds,
        **origin(),
        "llama_cpp": llama_cpp.__version__,
        "every": every,
    }
    arguments.output.write_text(json.dumps({**about, "results": [asdict(result) for result in results]}, indent=2))
    console.print(f"written to {arguments.output}")


def measure(model: constrain.Model, usual: constrain.Model, case: Case, rounds: int) -> Result:
    """One case, with and without guesses in turn, and with the usual model."""
    rates: tuple[list[float], list[float]] = ([], [])
    default = []
    first, _ = answer(model, case, guesses=False)  # from here on, the prompt and the masks are known
    for number in range(rounds):
        pair = {}
        for guesses in (False, True) if number % 2 else (True, False):
            pair[guesses], seconds = answer(model, case, guesses=guesses)
            rates[guesses].append(len(pair[guesses].answer.tokens) / seconds)
        other, seconds = answer(usual, case, guesses=False)
        default.append(len(other.answer.tokens) / seconds)
        last = pair[True]
    assert model._every is not None
    return Result(
        model=Path(model.llama.model_path).name,
        case=case.name,
        speculation="lookup",
        n_tokens=len(last.answer.tokens),
        n_guessed=last.n_guessed,
        n_right=last.n_right,
        default=statistics.median(default),
        plain=statistics.median(rates[False]),
        guessed=statistics.median(rates[True]),
        speedups=[after / before for before, after in zip(*rates, strict=True)],
        is_equal=last.answer.tokens == first.answer.tokens,
        predicted=predict(model, case, first.answer, model._every),
        elsewhere={eight: predict(model, case, first.answer, {1: 1.0, 8: eight}) for eight in EIGHT},
    )


def answer(model: constrain.Model, case: Case, *, guesses: bool) -> tuple[Decoding, float]:
    """Returns an answer and the seconds that its tokens took."""
    with model.turn() as context:
        new = begin(model, case)
        decoding = Decoding(context, new, speculation=model.speculation(new) if guesses else None)
        steps = decoding.steps()
        next(steps)
        started, known = time.perf_counter(), len(new.tokens)
        for _ in steps:
            pass
        seconds = time.perf_counter() - started
    return decoding, seconds * len(new.tokens) / max(1, len(new.tokens) - known)


def begin(model: constrain.Model, case: Case) -> Answer:
    """An answer that has not begun."""
    vocabulary = model.vocabulary
    return Answer(
        model.text_tokens(f"{case.prompt}\n\n"),
        Chain(Sampling(temperature=0), vocabulary.n_vocab, model.n_ctx),
        constrain.compile(case.schema, vocabulary).matcher,
        eos=frozenset(vocabulary.eos),
        encode=vocabulary.encode,
        token_bytes=vocabulary.token_bytes,
        max_tokens=TOKENS,
    )


def predict(model: constrain.Model, case: Case, known: Answer, every: Mapping[int, float]) -> float:
    """How many times as fast an answer is with guesses as without, if evaluations cost this much, and nothing else."""
    costs = []
    for guesses in (False, True):
        new = begin(model, case)
        replay = Replay(model.vocabulary.n_vocab, [*new.prompt, *known.tokens], every)
        speculation = Speculation(new.prompt, every, new.eos) if guesses else None
        decoding = Decoding(replay, new, speculation=speculation)
        for _ in decoding.steps():
            pass
        if new.tokens != known.tokens:
            raise SystemExit(f"{case.name}: the replayed answer is another one")
        costs.append(replay.seconds)
    return costs[0] / costs[1]


def print_table(console: Console, results: Sequence[Result]) -> None:
    """One row for each case."""
    table = Table(title="times as fast with guesses")
    for column in ("case", "guesses of", "right", "tokens/s without", "with", "measured", "predicted", "same"):
        table.add_column(column)
    for eight in EIGHT:
        table.add_column(f"8 cost {eight:g}")
    for each in results:
        numbers = [statistics.median(each.speedups), each.predicted, *each.elsewhere.values()]
        right = f"{each.n_right} of {each.n_guessed}"
        rates = (f"{each.plain:.1f}", f"{each.guessed:.1f}")
        shown = [f"{number:.2f}" for number in numbers]
        same = "yes" if each.is_equal else "no"
        table.add_row(each.case, each.speculation, right, *rates, *shown[:2], same, *shown[2:])
    console.print(table)


if __name__ == "__main__":
    main()
