"""How many answers are right: function calls by BFCL's rules, documents leaf by leaf, in several ways of asking.

    CONSTRAIN_DATA=data python benchmarks/accuracy.py --output benchmarks/results/accuracy.json
    CONSTRAIN_DATA=data python benchmarks/accuracy.py --calls 60 --documents 20 --ways prompt,constrained

    way          how the model is asked: see WAYS
    readable     answers that are a call, or JSON
    right        calls that are right; share of the leaves of documents that are
    tokens       of an answer, mean
    seconds      of an answer, mean

Intervals hold 95 % of 2,000 bootstrap samples. Every way answers the same tasks, one after the other, with the same
seed; each is asked for at most --max-tokens tokens.
"""

from __future__ import annotations

import argparse
import functools
import json
import lzma
import os
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import llama_cpp
from about import origin

import constrain
from constrain.llama.model import default_model_path

sys.path.append(str(Path(__file__).parent.parent))

from tests.support.accuracy.calls import is_right
from tests.support.accuracy.documents import count_right, equal, leaves

if TYPE_CHECKING:
    from collections.abc import Callable

SAMPLES = 2_000
SEED = 7
ASKED = "Answer with JSON in this format:\n{schema}"
MATCHES = "Answer with JSON that matches this schema:"
FILES: dict[constrain.Model, Path] = {}
"""The files of the models that are asked, for the other engine."""


@dataclass
class Answer:
    """One answer: whether it could be read, how much of it is right, its tokens and seconds.

    ``leaves``: probability of each part, and whether it is right, where probabilities were asked for.
    """

    task: str
    readable: bool
    right: int
    of: int
    tokens: int
    seconds: float
    text: str = ""
    leaves: list[tuple[float, bool]] = field(default_factory=list)


def main() -> None:
    """Asks all ways for all tasks, prints a table and writes a JSON file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, help="a GGUF file (the default model)")
    parser.add_argument("--calls", type=int, default=517, help="function calls to ask for (%(default)s)")
    parser.add_argument("--documents", type=int, default=133, help="documents to read (%(default)s)")
    parser.add_argument("--ways", default=",".join(WAYS), help="which ways (%(default)s)")
    parser.add_argument("--max-tokens", type=int, default=200)
    parser.add_argument("--output", type=Path, default=Path("accuracy.json"), help="where the numbers go")
    options = parser.parse_args()
    ways = options.ways.split(",")
    if unknown := set(ways) - WAYS.keys():
        parser.error(f"no ways: {', '.join(sorted(unknown))}; there are {', '.join(WAYS)}")
    tasks = read_tasks(options.calls, options.documents)
    path = options.model or default_model_path()
    model = constrain.Model(path, n_ctx=4096)
    FILES[model] = path
    answers: dict[str, list[Answer]] = {way: [] for way in ways}
    for number, task in enumerate(tasks):
        for way in ways:
            answers[way].append(ask(WAYS[way], model, task, options.max_tokens))
        print(f"{number + 1} of {len(tasks)}", end="\r", file=sys.stderr)
    report = {
        **origin(),
        "model": str(options.model or "SmolLM2-135M-Instruct Q4_1"),
        "ways": {way: {"about": WAYS[way].__doc__, **summary(found)} for way, found in answers.items()},
        "answers": {way: [asdict(each) for each in found] for way, found in answers.items()},
    }
    options.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    for way, row in report["ways"].items():
        print(f"{way:16} {row}")


def read_tasks(calls: int, documents: int) -> list[dict[str, Any]]:
    """The first tasks of each kind."""
    path = Path(os.environ["CONSTRAIN_DATA"]) / "accuracy-dev.jsonl.xz"
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        tasks = [json.loads(line) for line in lines]
    return [
        *[task for task in tasks if task["task"] == "call"][:calls],
        *[task for task in tasks if task["task"] == "extract"][:documents],
    ]


# Ways of asking


def prompt_only(model: constrain.Model, task: dict[str, Any], limit: int) -> constrain.Completion:
    """The prompt says what is wanted; nothing is enforced."""
    return constrain.complete(model, instructed(task), max_tokens=limit, seed=SEED, thinking=False)


def llama_cpp_python(model: constrain.Model, task: dict[str, Any], limit: int) -> Plain:
    """llama-cpp-python's own grammar of the schema, the question as in prompt, its default temperature."""
    response_format = {"type": "json_object", "schema": schema_of(task)}
    answer = its_model(FILES[model]).create_chat_completion(
        instructed(task), response_format=response_format, max_tokens=limit, seed=SEED
    )
    return Plain(answer["choices"][0]["message"]["content"] or "", Used(answer["usage"]["completion_tokens"]))


@functools.cache
def its_model(path: Path) -> llama_cpp.Llama:
    return llama_cpp.Llama(str(path), n_ctx=4096, verbose=False)


def constrained(model: constrain.Model, task: dict[str, Any], limit: int, **more: Any) -> constrain.Completion:
    """Our defaults: a tool that must be called, or the document's schema."""
    if task["task"] == "call":
        wanted: dict[str, Any] = {"tools": task["tools"], "tool_choice": "required", "parallel_tool_calls": False}
        return constrain.complete(model, task["messages"], max_tokens=limit, seed=SEED, **wanted, **more)
    return constrain.complete(model, question(task), schema=task["schema"], max_tokens=limit, seed=SEED, **more)


def greedy(model: constrain.Model, task: dict[str, Any], limit: int) -> constrain.Completion:
    """As constrained, at temperature 0."""
    return constrained(model, task, limit, temperature=0)


def compact(model: constrain.Model, task: dict[str, Any], limit: int) -> constrain.Completion:
    """As greedy, without white space in JSON."""
    return constrained(model, task, limit, temperature=0, whitespace="compact")


def confident(model: constrain.Model, task: dict[str, Any], limit: int) -> constrain.Completion:
    """As greedy, with the probability of each part of the answer."""
    return constrained(model, task, limit, temperature=0, confidence=True)


def drafted(model: constrain.Model, task: dict[str, Any], limit: int) -> constrain.Completion:
    """As greedy, behind a draft of at most 96 tokens."""
    return constrained(model, task, limit + 96, temperature=0, draft=96)


def unseen(model: constrain.Model, task: dict[str, Any], limit: int) -> constrain.Completion:
    """As greedy, without the schema in the prompt (tools are shown all the same)."""
    return constrained(model, task, limit, temperature=0, show_schema=False)


def penalized(model: constrain.Model, task: dict[str, Any], limit: int) -> constrain.Completion:
    """As greedy, with repeat_penalty=1.1."""
    return constrained(model, task, limit, temperature=0, repeat_penalty=1.1)


def exemplified(model: constrain.Model, task: dict[str, Any], limit: int) -> constrain.Completion:
    """As greedy, with the shortest valid answer as an example behind the schema (documents only)."""
    if task["task"] == "call":
        return greedy(model, task, limit)
    example = constrain.compile(task["schema"], model).matcher().shortest_completion().decode()
    shown = f"{ASKED}\n\nA valid answer to another question: {example}"
    return constrained(model, task, limit, temperature=0, show_schema=shown)


def whole(model: constrain.Model, task: dict[str, Any], limit: int) -> constrain.Completion:
    """As greedy, with the JSON Schema itself in the prompt in place of its short form (documents only)."""
    if task["task"] == "call":
        return greedy(model, task, limit)
    asked = {**task, "question": f"{task['question']}\n\n{MATCHES} {json.dumps(task['schema'])}"}
    return constrained(model, asked, limit, temperature=0, show_schema=False)


def quoted(model: constrain.Model, task: dict[str, Any], limit: int) -> constrain.Completion:
    """As greedy, with all strings of a document as quotes of it (documents only)."""
    if task["task"] == "call":
        return greedy(model, task, limit)
    changed = {**task, "schema": rewritten(task["schema"], quote)}
    return constrained(model, changed, limit, temperature=0, sources={"document": task["context"]})


def nullable(model: constrain.Model, task: dict[str, Any], limit: int) -> constrain.Completion:
    """As greedy, with null allowed in place of every string and number of a document (documents only)."""
    if task["task"] == "call":
        return greedy(model, task, limit)
    return constrained(model, {**task, "schema": rewritten(task["schema"], or_null)}, limit, temperature=0)


def unordered(model: constrain.Model, task: dict[str, Any], limit: int) -> constrain.Completion:
    """As greedy, with the keys in any order."""
    return constrained(model, task, limit, temperature=0, property_order="any")


def votes(model: constrain.Model, task: dict[str, Any], limit: int) -> constrain.Completion:
    """As constrained, the vote of five answers."""
    return constrained(model, task, limit, n=5, vote=True)


class Used(NamedTuple):
    completion_tokens: int


class Plain(NamedTuple):
    """A text of another engine, with the members of a completion that are read here."""

    text: str
    usage: Used
    value: None = None
    fields: None = None


WAYS: dict[str, Callable[..., constrain.Completion]] = {
    "prompt": prompt_only,
    "llama-cpp-python": llama_cpp_python,
    "constrained": constrained,
    "greedy": greedy,
    "compact": compact,
    "confident": confident,
    "drafted": drafted,
    "unseen": unseen,
    "penalized": penalized,
    "exemplified": exemplified,
    "whole": whole,
    "quoted": quoted,
    "nullable": nullable,
    "unordered": unordered,
    "votes": votes,
}


def rewritten(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """A copy of a schema in which every part that has a type has gone through ``change``."""
    if isinstance(schema, list):
        return [rewritten(each, change) for each in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {key: rewritten(each, change) for key, each in schema.items()}
    return change(parts) if isinstance(parts.get("type"), str | list) else parts


def quote(part: dict[str, Any]) -> dict[str, Any]:
    is_free = part["type"] == "string" and not part.keys() & {"enum", "const", "format", "pattern"}
    return {**part, "x-quote": "document"} if is_free else part


def or_null(part: dict[str, Any]) -> dict[str, Any]:
    is_leaf = part["type"] in ("string", "number", "integer", "boolean") and not part.keys() & {"enum", "const"}
    return {**part, "type": [part["type"], "null"]} if is_leaf else part


def schema_of(task: dict[str, Any]) -> Any:
    """The schema of an answer: of calls, one of the functions and its arguments."""
    if task["task"] == "extract":
        return task["schema"]
    functions = [tool["function"] for tool in task["tools"]]
    calls = [
        {
            "type": "object",
            "properties": {"name": {"const": each["name"]}, "arguments": each["parameters"]},
            "required": ["name", "arguments"],
        }
        for each in functions
    ]
    return calls[0] if len(calls) == 1 else {"oneOf": calls}


def question(task: dict[str, Any]) -> str:
    return f"{task['context']}\n\n{task['question']}"


def instructed(task: dict[str, Any]) -> list[dict[str, Any]]:
    """Messages that ask for JSON in words."""
    if task["task"] == "extract":
        schema = json.dumps(task["schema"])
        return [{"role": "user", "content": f"{question(task)}\n\n{MATCHES} {schema}"}]
    functions = json.dumps([tool["function"] for tool in task["tools"]])
    *before, last = task["messages"]
    wanted = 'Answer with one call of a function, as JSON: {"name": ..., "arguments": {...}}. The functions:'
    return [*before, {**last, "content": f"{last['content']}\n\n{wanted} {functions}"}]


# Judging


def ask(way: Callable[..., constrain.Completion], model: constrain.Model, task: dict[str, Any], limit: int) -> Answer:
    """Asks, and judges what comes."""
    started = time.perf_counter()
    try:
        completion = way(model, task, limit)
    except constrain.ConstrainError as error:
        seconds = time.perf_counter() - started
        return Answer(
            task["id"], readable=False, right=0, of=size_of(task), tokens=0, seconds=seconds, text=f"{error!r:.300}"
        )
    seconds = time.perf_counter() - started
    readable, right = judge(task, completion)
    text = completion.text or repr(completion.value)[:400]
    answer = Answer(
        task["id"], readable, right, size_of(task), completion.usage.completion_tokens, round(seconds, 3), text
    )
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
    if isinstance(value, constrain.Reply):
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


def summary(answers: list[Answer]) -> dict[str, Any]:
    """What a table shows of one way."""
    calls = [each for each in answers if not each.task.startswith("document")]
    documents = [each for each in answers if each.task.startswith("document")]
    found: dict[str, Any] = {}
    for name, part in (("calls", calls), ("documents", documents)):
        if part:
            found[name] = {
                "readable": sum(each.readable for each in part),
                "right": share(part),
                "interval": interval(part),
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
