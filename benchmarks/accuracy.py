"""How many answers are right: function calls by BFCL's rules, documents leaf by leaf, in several ways of asking.

    CONSTRAIN_DATA=data python benchmarks/accuracy.py --output benchmarks/results/accuracy.json
    CONSTRAIN_DATA=data python benchmarks/accuracy.py --calls 60 --documents 20 --ways prompt,constrained

    way            how the model is asked: see ``WAYS`` in asking.py
    readable       answers that are a call, or JSON
    right          calls that are right; share of the leaves of documents that are
    more, fewer    tasks on which the way has more (fewer) right than ``constrained``; only tasks that both answered
    tokens         of an answer, mean
    seconds        of an answer, mean

Intervals hold 95 % of 2,000 bootstrap samples. All ways have the same seed. Answers are kept in the file --answers as
they come: another run goes on from there, and adds what is missing. The report has all models and ways of that file.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from about import origin
from asking import FILES, LABELS, OF_DOCUMENTS, SEED, WAYS

import constrain
from constrain.llama.model import default_model_path

sys.path.append(str(Path(__file__).parent.parent))

from tests.support.accuracy.calls import is_right
from tests.support.accuracy.documents import count_right, equal, leaves

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SAMPLES = 2_000


@dataclass
class Answer:
    """One answer: whether it could be read, how much of it is right, its tokens and seconds.

    ``kind``: ``call`` or ``extract``. ``leaves``: probability of each part, and whether it is right, where
    probabilities were asked for.
    """

    model: str
    way: str
    task: str
    kind: str
    readable: bool
    right: int
    of: int
    tokens: int
    seconds: float
    text: str = ""
    leaves: list[tuple[float, bool]] = field(default_factory=list)


def main() -> None:
    """Asks in all ways for all tasks, prints a table and writes a JSON file."""
    options = parse_arguments()
    ways = options.ways.split(",")
    path = options.model or default_model_path()
    tasks = read_tasks(options.calls, options.documents)
    answers = read_answers(options.answers)
    known = {(each.model, each.way, each.task) for each in answers}
    model = constrain.Model(path, n_ctx=4096, n_threads=options.threads)
    FILES[model] = path
    with options.answers.open("a", encoding="utf-8") as kept:
        for number, task in enumerate(tasks):
            for way in ways:
                if is_asked(way, task) and (path.name, way, task["id"]) not in known:
                    limit = options.call_tokens if task["task"] == "call" else options.document_tokens
                    answers.append(ask(path.name, way, model, task, limit))
                    print(json.dumps(asdict(answers[-1])), file=kept, flush=True)
            print(f"{number + 1} of {len(tasks)}", end="\r", file=sys.stderr)
    models = {name: report_of([each for each in answers if each.model == name]) for name in sorted(names_of(answers))}
    report = {**origin(options.measured_on), "threads": model.llama.n_threads, "models": models}
    options.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    for name, found in models.items():
        print(name)
        for way, row in found.items():
            print(f"{row['label']:26} {way:16} {row}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a GGUF file (the default model)")
    parser.add_argument("--calls", type=int, default=517, help="function calls to ask for (%(default)s)")
    parser.add_argument("--documents", type=int, default=133, help="documents to read (%(default)s)")
    parser.add_argument("--ways", default=",".join(WAYS), help="which ways (%(default)s)")
    parser.add_argument("--threads", type=int, help="threads of a model (as many as there are cores)")
    parser.add_argument("--call-tokens", type=int, default=200, help="the most tokens of a call (%(default)s)")
    parser.add_argument("--document-tokens", type=int, default=512, help="of the contents of one (%(default)s)")
    parser.add_argument("--answers", type=Path, default=Path("answers.jsonl"), help="where the answers are kept")
    parser.add_argument("--measured-on", help="where the answers come from, if not from this machine, in words")
    parser.add_argument("--output", type=Path, default=Path("accuracy.json"), help="where the numbers go")
    options = parser.parse_args()
    if unknown := set(options.ways.split(",")) - WAYS.keys():
        parser.error(f"no ways: {', '.join(sorted(unknown))}; there are {', '.join(WAYS)}")
    return options


def read_tasks(calls: int, documents: int) -> list[dict[str, Any]]:
    """So many tasks of each kind, evenly spaced."""
    path = Path(os.environ["CONSTRAIN_DATA"]) / "accuracy-dev.jsonl.xz"
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        tasks = [json.loads(line) for line in lines]
    return [
        *spaced([task for task in tasks if task["task"] == "call"], calls),
        *spaced([task for task in tasks if task["task"] == "extract"], documents),
    ]


def is_asked(way: str, task: dict[str, Any]) -> bool:
    return task["task"] == "extract" or way not in OF_DOCUMENTS


def spaced(tasks: list[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    return tasks if number >= len(tasks) else [tasks[place * len(tasks) // number] for place in range(number)]


def read_answers(path: Path) -> list[Answer]:
    """The answers that are kept."""
    if not path.exists():
        return []
    return [Answer(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def names_of(answers: Iterable[Answer]) -> set[str]:
    return {each.model for each in answers}


# Judging


def ask(name: str, way: str, model: constrain.Model, task: dict[str, Any], limit: int) -> Answer:
    """Asks, and judges what comes; an error counts as an answer that cannot be read."""
    started = time.perf_counter()
    about = (name, way, task["id"], task["task"])
    try:
        completion = WAYS[way](model, task, limit)
    except constrain.ConstrainError as error:
        seconds = round(time.perf_counter() - started, 3)
        text = f"{error!r:.300}"
        return Answer(*about, readable=False, right=0, of=size_of(task), tokens=0, seconds=seconds, text=text)
    seconds = round(time.perf_counter() - started, 3)
    readable, right = judge(task, completion)
    text = completion.text or repr(completion.value)[:400]
    answer = Answer(*about, readable, right, size_of(task), completion.usage.completion_tokens, seconds, text)
    if completion.fields is not None:
        answer.leaves = sure(task, completion, right)
    return answer


def sure(task: dict[str, Any], completion: constrain.Completion, right: int) -> list[tuple[float, bool]]:
    """The probability of each leaf of a document, or of the arguments of a call, and whether it is right."""
    assert completion.fields is not None
    if task["task"] == "call":
        found = completion.fields.get(("calls", 0, "arguments"))
        return [] if found is None else [(found.probability, right == 1)]
    expected = dict(leaves(task["truth"]))
    return [
        (completion.fields[path].probability, path in expected and equal(value, expected[path]))
        for path, value in leaves(completion.value)
        if path in completion.fields
    ]


def size_of(task: dict[str, Any]) -> int:
    return 1 if task["task"] == "call" else count_right(None, task["truth"])[1]


def judge(task: dict[str, Any], completion: constrain.Completion) -> tuple[bool, int]:
    """Whether an answer can be read, and how much of it is right."""
    value = completion.value
    if task["task"] == "extract":
        answer = value if isinstance(value, dict) else json_in(completion.text)
        return isinstance(answer, dict), count_right(answer, task["truth"])[0]
    if isinstance(value, constrain.tools.Reply):
        call = {"name": value[0].name, "arguments": json.loads(value[0].text)} if value.calls else None
    else:
        call = json_in(completion.text)
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return False, 0
    return True, int(is_right(call["name"], call.get("arguments"), task["accept"]))


def json_in(text: str) -> Any:
    """The first JSON object in a text; None if there is none."""
    decoder = json.JSONDecoder()
    for begin, character in enumerate(text):
        if character == "{":
            try:
                return decoder.raw_decode(text, begin)[0]
            except ValueError:
                continue
    return None


# Reports


def report_of(answers: list[Answer]) -> dict[str, Any]:
    """What is reported of one model, by way."""
    by_way = {way: [each for each in answers if each.way == way] for way in WAYS}
    base = {each.task: each for each in by_way["constrained"]}
    return {
        way: {"label": LABELS[way], "about": WAYS[way].__doc__, **summary(own, base)}
        for way, own in by_way.items()
        if own
    }


def summary(answers: list[Answer], base: Mapping[str, Answer]) -> dict[str, Any]:
    """What a table shows of one way: calls, each half of them, and documents; ``base``: answers to compare with."""
    answers = sorted(answers, key=lambda each: each.task)
    calls = [each for each in answers if each.kind == "call"]
    documents = [each for each in answers if each.kind == "extract"]
    parts = {"calls": calls, "even calls": calls[::2], "odd calls": calls[1::2], "documents": documents}
    found: dict[str, Any] = {}
    for name, part in parts.items():
        if part:
            gains = [each.right - base[each.task].right for each in part if each.task in base]
            found[name] = {
                "readable": sum(each.readable for each in part),
                "right": share(part),
                "interval": interval(part),
                "compared": len(gains),
                "more": sum(gain > 0 for gain in gains),
                "fewer": sum(gain < 0 for gain in gains),
                "tokens": round(sum(each.tokens for each in part) / len(part), 1),
                "seconds": round(sum(each.seconds for each in part) / len(part), 2),
                "answers": len(part),
            }
            if sures := [each for answer in part for each in answer.leaves]:
                found[name]["confidence"] = calibration(sures)
    return found


def calibration(sures: list[tuple[float, bool]]) -> dict[str, Any]:
    """How well probabilities tell right parts from wrong ones.

    ``auroc``: probability that a right part has a higher one than a wrong part. ``coverage``: share of right parts
    among the surest tenth, two tenths and so on. ``bins``: by tenths of the probability, its mean, the share
    of right parts and their number.
    """
    ordered = sorted(sures, key=lambda each: -each[0])
    right = [probability for probability, is_right in sures if is_right]
    wrong = [probability for probability, is_right in sures if not is_right]
    wins = sum((a > b) + (a == b) / 2 for a in right for b in wrong)
    bins = [[each for each in sures if min(9, int(each[0] * 10)) == tenth] for tenth in range(10)]
    cuts = [max(1, len(ordered) * tenth // 10) for tenth in range(1, 11)]
    return {
        "parts": len(sures),
        "auroc": round(wins / (len(right) * len(wrong)), 3) if right and wrong else None,
        "coverage": [round(sum(is_right for _, is_right in ordered[:cut]) / cut, 3) for cut in cuts],
        "bins": [
            [
                round(sum(probability for probability, _ in each) / len(each), 3),
                round(sum(is_right for _, is_right in each) / len(each), 3),
                len(each),
            ]
            for each in bins
            if each
        ],
    }


def share(answers: list[Answer]) -> float:
    return round(sum(each.right for each in answers) / sum(each.of for each in answers), 4)


def interval(answers: list[Answer]) -> tuple[float, float]:
    """The middle 95 % of the share that is right, in samples with replacement."""
    rng = Random(SEED)
    shares = sorted(share(rng.choices(answers, k=len(answers))) for _ in range(SAMPLES))
    return shares[SAMPLES // 40], shares[-SAMPLES // 40]


if __name__ == "__main__":
    main()
