"""How many calls are right among many tools: with all tools in the prompt, with their names, and with a short list.

    CONSTRAIN_DATA=data python benchmarks/tools_shown.py --output benchmarks/results/tools_shown.json
    CONSTRAIN_DATA=data python benchmarks/tools_shown.py --calls 40 --others 0,200 --ways all,names-12

Each question of BFCL has its own tools; ``--others`` more are tools of other questions, always the same ones in the
same order. The own tools stand at a random place among them.

    way            what the prompt shows (``WAYS``)
    named          calls of a tool that is right
    right          calls that are right; the interval holds 95 % of 2,000 bootstrap samples
    prompt         tokens of the prompt, with what is shown during the answer, mean
    seconds        of an answer, mean

Prompts that do not fit into the context count as wrong, and ``too long`` says how many. Answers are kept in the file
--answers as they come: another run goes on from there.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from about import origin
from accuracy import interval, read_tasks, share
from asking import SEED

import constrain
from constrain.chat.prompt import shaping
from constrain.llama.model import default_model_path
from constrain.vocabulary.vocabulary import byte_vocabulary

sys.path.append(str(Path(__file__).parent.parent))

from tests.support.accuracy.calls import is_right

if TYPE_CHECKING:
    from collections.abc import Callable

LISTED = 20
"""Tools of a short list."""

WAYS = {
    "all": "all tools, whole",
    "names-0": "names only",
    "names-6": "names, and 6 words",
    "names-12": "names, and 12 words",
    "names-20": "names, and 20 words",
    "listed": f"the {LISTED} tools whose words are nearest to the question, whole",
}


@dataclass
class Answer:
    """One answer. ``right``, ``named``: 1 or 0; ``of`` is 1."""

    model: str
    way: str
    others: int
    task: str
    named: int
    right: int
    prompt: int
    seconds: float
    text: str = ""
    of: int = 1


def main() -> None:
    """Asks in all ways, prints a table and writes a JSON file."""
    options = parse_arguments()
    path = options.model or default_model_path()
    everything = read_tasks(10**6, 0)
    tasks = read_tasks(options.calls, 0)
    answers = read_answers(options.answers)
    known = {(each.model, each.way, each.others, each.task) for each in answers}
    model = constrain.Model(path, n_ctx=options.context, n_threads=options.threads)
    with options.answers.open("a", encoding="utf-8") as kept:
        for others in map(int, options.others.split(",")):
            for way in options.ways.split(","):
                for task in tasks:  # one after the other: their prompts begin alike
                    if (path.name, way, others, task["id"]) in known:
                        continue
                    answers.append(ask(path.name, model, way, others, task, tools_of(task, everything, others)))
                    print(json.dumps(asdict(answers[-1])), file=kept, flush=True)
                print(f"{others} others, {way}", file=sys.stderr)
    report = {**origin(), "context": options.context, "models": report_of(answers)}
    options.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    for name, rows in report["models"].items():
        print(name, *rows, sep="\n")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a GGUF file (the default model)")
    parser.add_argument("--calls", type=int, default=60, help="questions (%(default)s)")
    parser.add_argument("--others", default="0,32,200,1000", help="further tools (%(default)s)")
    parser.add_argument("--ways", default=",".join(WAYS), help="which ways (%(default)s)")
    parser.add_argument("--context", type=int, default=8192, help="tokens of the context (%(default)s)")
    parser.add_argument("--threads", type=int, help="threads of the model (as many as there are cores)")
    parser.add_argument("--answers", type=Path, default=Path("tools_shown.jsonl"), help="where the answers are kept")
    parser.add_argument("--output", type=Path, default=Path("tools_shown.json"), help="where the numbers go")
    options = parser.parse_args()
    if unknown := set(options.ways.split(",")) - WAYS.keys():
        parser.error(f"no ways: {', '.join(sorted(unknown))}; there are {', '.join(WAYS)}")
    return options


def tools_of(task: dict[str, Any], everything: list[dict[str, Any]], others: int) -> list[dict[str, Any]]:
    """The tools of a question among so many of other ones, in an order that most questions share."""
    own = task["tools"]
    names = {tool["function"]["name"] for tool in own}
    tools = [tool for tool in shuffled(everything) if tool["function"]["name"] not in names][:others]
    place = Random(f"{SEED} {task['id']}").randint(0, len(tools))
    return [*tools[:place], *own, *tools[place:]]


def compiles(tool: dict[str, Any]) -> bool:
    """Whether a tool has arguments at all: those of a few exclude each other."""
    try:
        constrain.compile(tool["function"]["parameters"], byte_vocabulary(), cache=False)
    except constrain.ConstrainError:
        return False
    return True


_shuffled: list[dict[str, Any]] = []


def shuffled(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All tools, one of each name, in a random order."""
    if not _shuffled:
        by_name = {tool["function"]["name"]: tool for task in tasks for tool in task["tools"] if compiles(tool)}
        _shuffled.extend(by_name.values())
        Random(SEED).shuffle(_shuffled)
    return _shuffled


def ask(
    name: str, model: constrain.Model, way: str, others: int, task: dict[str, Any], tools: list[dict[str, Any]]
) -> Answer:
    """Asks for one call, and judges it."""
    shown = "names" if way.startswith("names") else "all"
    if way.startswith("names"):
        shaping.WORDS_SHOWN = int(way.removeprefix("names-"))
    if way == "listed":
        tools = nearest(task["messages"][-1]["content"], tools)
    started = time.perf_counter()
    try:
        completion = constrain.complete(
            model, task["messages"], tools=tools, tools_shown=shown, tool_choice="required",
            parallel_tool_calls=False, max_tokens=200, seed=SEED,
        )  # fmt: skip
    except constrain.ModelError as error:
        return Answer(name, way, others, task["id"], 0, 0, 0, 0.0, f"{error!r:.200}")
    seconds = round(time.perf_counter() - started, 3)
    call = completion.value[0]
    right = int(is_right(call.name, json.loads(call.text), task["accept"]))
    named = int(any(call.name == each["name"] for each in task["accept"]))
    return Answer(name, way, others, task["id"], named, right, completion.usage.prompt_tokens, seconds, completion.text)


def nearest(question: str, tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The ``LISTED`` tools whose names and descriptions share the rarest words with a question, in their order."""
    texts = [words(f"{tool['function']['name']} {tool['function'].get('description') or ''}") for tool in tools]
    asked = words(question)
    holds: Callable[[str], int] = functools.cache(lambda word: sum(word in text for text in texts))
    scores = [sum(1 / holds(word) for word in asked & text) for text in texts]
    best = sorted(range(len(tools)), key=lambda place: -scores[place])[:LISTED]
    return [tools[place] for place in sorted(best)]


def words(text: str) -> set[str]:
    return set("".join(each if each.isalnum() else " " for each in text.lower()).split())


def read_answers(path: Path) -> list[Answer]:
    """The answers that are kept."""
    if not path.exists():
        return []
    return [Answer(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def report_of(answers: list[Answer]) -> dict[str, list[dict[str, Any]]]:
    """The rows of a table, by model."""
    groups: dict[tuple[str, int, str], list[Answer]] = {}
    for answer in answers:
        groups.setdefault((answer.model, answer.others, answer.way), []).append(answer)
    found: dict[str, list[dict[str, Any]]] = {}
    for (model, others, way), own in groups.items():
        fitting = [each for each in own if each.prompt]
        row = {
            "others": others,
            "way": way,
            "label": WAYS[way],
            "answers": len(own),
            "too long": len(own) - len(fitting),
            "named": round(sum(each.named for each in own) / len(own), 4),
            "right": share(own),  # type: ignore[arg-type]
            "interval": interval(own),  # type: ignore[arg-type]
            "prompt": round(sum(each.prompt for each in fitting) / max(1, len(fitting))),
            "seconds": round(sum(each.seconds for each in fitting) / max(1, len(fitting)), 2),
        }
        found.setdefault(model, []).append(row)
    return found


if __name__ == "__main__":
    main()
