"""Tools of public MCP servers: which of them are enforced, whether calls are valid, and what all of them cost at once.

    python benchmarks/mcp_servers.py FOLDER --output benchmarks/results/mcp_servers.json
    python benchmarks/mcp_servers.py FOLDER --again      measures what the servers listed before

Installs the servers that ``mcp_servers.json`` names into ``FOLDER``, starts each without a network and takes its tools
with their schemas as they are (see ``mcp_installs``). Then every tool is compiled as for a request that requires a call
of it, with the vocabulary of the default model. Walks over the masks, with a seeded generator, write calls: the
shortest one, and some of random tokens and steps towards the end in turns. jsonschema judges their arguments by the
schema that the server lists, in the draft that it names (2020-12 if it names none), formats included. Last, requests
with all tools, and with ``AT_ONCE`` of them, are measured in processes of their own.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import re
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import jsonschema
import numpy as np
from about import origin
from mcp_installs import list_tools, read_listed, read_servers, write_listed

import constrain
from constrain.errors import ConstrainError
from constrain.generation.planning import make_plan
from constrain.mcp.names import different_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_installs import Listed

    from constrain.generation.plan import Plan

WALKS = 5
"""Calls written for each tool."""

MORE_WALKS = 300
"""Calls that are written where all tools are offered at once."""

STEPS = 100
"""Random tokens of a walk; then it takes the shortest way to the end."""

HURRIES = (1.0, 0.1, 0.3, 0.5, 0.05)
"""Share of the steps of a walk that lead towards the end, by its number: the first is the shortest call."""

AT_ONCE = 60
"""Tools of a request of a usual size."""

SAMPLES = 20
"""Random choices of so many tools, each measured in a fresh process."""

WARM_UP = {"name": "warm_up", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}}
"""Tool that a process compiles first, so that all modules are loaded before anything is timed."""


def as_json(tool: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": tool}


def plan_of(model: constrain.Model, tools: Sequence[constrain.tools.FunctionTool]) -> Plan:
    """The request that requires one call of some tools."""
    return make_plan(model, "Do it.", None, {"tools": tools, "tool_choice": "required", "parallel_tool_calls": False})


def compile_plan(plan: Plan) -> constrain.Constraint:
    assert plan.language is not None
    return plan.language.compile(plan.model.vocabulary, cache=False)


def walk(constraint: constrain.Constraint, rng: Random, hurry: float, seconds: list[float]) -> list[int]:
    """The tokens of a random answer. ``seconds`` gets the time of each mask."""
    matcher, row, tokens = constraint.matcher(), constraint.allocate_bitmask()[0], []
    end = set(constraint.vocabulary.eos)
    while len(tokens) < STEPS and hurry < 1:
        if rng.random() < hurry:
            chosen = matcher.completion_tokens()[: rng.randint(1, 4)]
        else:
            begin = time.perf_counter()
            matcher.fill_bitmask(row)
            seconds.append(time.perf_counter() - begin)
            chosen = [int(rng.choice(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))))]
        if not chosen or chosen[0] in end:
            break
        assert matcher.accept_many(chosen) == len(chosen), (tokens, chosen)
        tokens += chosen
    rest = [token for token in matcher.completion_tokens() if token not in end]
    assert matcher.accept_many(rest) == len(rest), (tokens, rest)
    assert matcher.is_accepting, tokens
    return [*tokens, *rest]


def call_of(plan: Plan, tokens: Sequence[int]) -> constrain.tools.FunctionCall:
    """The one call of an answer, read as answers are."""
    progress = plan.progress(0, None)
    for token in tokens:
        progress.feed(plan.model.vocabulary.marked_bytes(token))
    progress.finish()
    [call] = progress.outcome().value.calls
    return call


def flaw(parameters: dict[str, Any], text: str) -> str | None:
    """What jsonschema has against a call's arguments; None if they are valid."""
    schema = {"type": "object", **parameters}
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    error = next(kind(schema, format_checker=kind.FORMAT_CHECKER).iter_errors(json.loads(text)), None)
    return None if error is None else f"{error.json_path}: {error.message}"[:300]


def measure_tool(model: constrain.Model, tool: constrain.tools.FunctionTool) -> dict[str, Any]:
    """What compiling a tool takes, and what is wrong with the calls written for it."""
    plan, begin = plan_of(model, [tool]), time.perf_counter()
    constraint = compile_plan(plan)
    found: dict[str, Any] = {"ms": 1e3 * (time.perf_counter() - begin), "calls": 0, "invalid": []}
    for number in range(WALKS):
        tokens = walk(constraint, Random(f"{tool.name} {number}"), HURRIES[number], [])
        text = call_of(plan, tokens).text
        wrong = flaw(tool.parameters, text)
        found["calls"] += 1
        found["invalid"] += [f"{tool.name}: {text:.200}: {wrong}"] if wrong else []
    return found


def measure_server(model: constrain.Model, listed: Listed) -> dict[str, Any]:
    """What a server lists, and what becomes of it."""
    about = {name: getattr(listed, name) for name in ("name", "package", "version", "index")}
    if listed.failure is not None:
        return {**about, "failure": listed.failure}
    refused, found = dict(listed.refused), []
    for given in listed.tools:
        try:
            tool = constrain.tools.tool_from_json(as_json(given))
            assert isinstance(tool, constrain.tools.FunctionTool)
            found.append(measure_tool(model, tool))
        except ConstrainError as error:  # noqa: PERF203
            refused[given["name"]] = str(error)
    times = [each["ms"] for each in found]
    return {
        **about,
        "tools": len(listed.tools) + len(listed.refused),
        "compiled": len(found),
        "refused": refused,
        "calls": sum(each["calls"] for each in found),
        "invalid": [wrong for each in found for wrong in each["invalid"]],
        "compile_ms": {"p50": round(float(np.median(times)), 2), "max": round(max(times), 2)} if times else None,
    }


def measure_together(tools: list[dict[str, Any]], walks: int) -> dict[str, Any]:
    """What a request with some tools takes in this process, and whether calls among them are valid."""
    model = constrain.Model()
    by_name = {tool["name"]: tool["parameters"] for tool in tools}
    warm = compile_plan(plan_of(model, [constrain.tools.tool_from_json(as_json(WARM_UP))]))
    warm.matcher().fill_bitmask(warm.allocate_bitmask()[0])
    gc.collect()
    before, begin = reset_peak(), time.perf_counter()
    made = [constrain.tools.tool_from_json(as_json(tool)) for tool in tools]
    read = time.perf_counter() - begin
    plan, begin = plan_of(model, made), time.perf_counter()
    constraint = compile_plan(plan)
    compiled = time.perf_counter() - begin
    begin = time.perf_counter()
    matcher = constraint.matcher()
    matcher.fill_bitmask(constraint.allocate_bitmask()[0])
    first = time.perf_counter() - begin
    more, masks, invalid = peak() - before, [], []
    for number in range(walks):
        hurry = HURRIES[1 + number % (len(HURRIES) - 1)]
        call = call_of(plan, walk(constraint, Random(number), hurry, masks))
        wrong = flaw(by_name[call.name], call.text)
        invalid += [f"{call.name}: {call.text:.200}: {wrong}"] if wrong else []
    micros = 1e6 * np.array(masks) if masks else np.zeros(1)
    return {
        "tools": len(tools),
        "read_ms": round(1e3 * read, 1),
        "compile_ms": round(1e3 * compiled, 1),
        "first_mask_ms": round(1e3 * first, 3),
        "constraint_bytes": constraint.report.memory_bytes,
        "more_bytes": more,
        "calls": walks,
        "invalid": invalid,
        "masks_us": {f"p{at}": round(float(np.percentile(micros, at)), 1) for at in (50, 99, 100)},
    }


def reset_peak() -> int:
    """Counts the most resident memory of this process anew; the memory now, in bytes."""
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    return peak()


def peak() -> int:
    """The most resident memory of this process since ``reset_peak``, in bytes."""
    [kibibytes] = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="utf-8"))
    return int(kibibytes) << 10


def alone(tools: list[dict[str, Any]], walks: int) -> dict[str, Any]:
    """``measure_together`` in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(measure_together, tools, walks).result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the servers are installed")
    parser.add_argument("--servers", type=Path, default=Path(__file__).with_suffix(".json"), help="(%(default)s)")
    parser.add_argument("--only", action="append", help="only the server of this name; may be repeated")
    parser.add_argument("--again", action="store_true", help="do not start the servers: they listed their tools before")
    parser.add_argument("--output", type=Path, default=Path("mcp_servers.json"), help="the report (%(default)s)")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    kept = folder / "listed.json"
    if arguments.again:
        listed = read_listed(kept)
    else:
        servers = read_servers(arguments.servers)
        listed = list_tools([each for each in servers if each.name in (arguments.only or [each.name])], folder)
        write_listed(kept, listed)
    model = constrain.Model()
    gc.freeze()
    found = []
    for each in listed:
        found.append(measure_server(model, each))
        print(json.dumps(found[-1]), flush=True)
    tools = all_tools(listed, found)
    rng = Random(1)
    report: dict[str, Any] = {**origin(), "model": Path(model.llama.model_path).name, "servers": found}
    report["together"] = alone(tools, MORE_WALKS)
    print(json.dumps(report["together"]), flush=True)
    report["at_once"] = [alone(rng.sample(tools, AT_ONCE), 0) for _ in range(SAMPLES)] if len(tools) >= AT_ONCE else []
    print(json.dumps([each["compile_ms"] + each["first_mask_ms"] for each in report["at_once"]]))
    arguments.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def all_tools(listed: Sequence[Listed], found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tools of all servers that compile, with names that differ."""
    tools = [
        (server.name, tool)
        for server, result in zip(listed, found, strict=True)
        for tool in server.tools
        if tool["name"] not in result.get("refused", ())
    ]
    names = different_names([(server, tool["name"]) for server, tool in tools])
    return [{**tool, "name": name} for name, (_, tool) in zip(names, tools, strict=True)]


if __name__ == "__main__":
    main()
