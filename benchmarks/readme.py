"""Writes the tables of the README, of the guides and of docs/start.md from the reports of the benchmarks.

    python benchmarks/readme.py --write     all tables whose reports are kept
    python benchmarks/readme.py --check     tells which tables are not those of their reports; fails if any are not

Reports are kept in ``benchmarks/results``; each says commit, date and processor, and so does its table. Each file
replaces what stands between the marks of its benchmark: ``<!-- NAME: ... -->`` and ``<!-- /NAME -->``, which stand on
exactly one page. The table ``comparison`` is made of several reports. A table without a report stays as it is.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

from about import machine_of, told
from processes import SCENES, cell, longest
from slices import ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

BUDGETS = ("+0", "+5", "+20", "64", "256")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A Markdown table; all columns but the first are of numbers."""
    yield f"| {' | '.join(head)} |"
    yield "|:--|" + "--:|" * (len(head) - 1)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def masks(report: dict[str, Any]) -> Iterator[str]:
    """Medians and tails over the schemas that all engines compile."""
    n_vocab = report["vocabulary"]["n_vocab"]
    passes = f"microseconds on one core, least of {report['repeat']} passes"
    yield f"Masks: {report['schemas']} schemas, {report['common']} compiled by all; {n_vocab:,} tokens; {passes}."
    yield ""
    head = (
        "",
        "time to first mask p50 / p99",
        "time between masks p50 / p99 / p99.9 / max",
        "met before, p50",
        "refused schemas",
        "valid texts refused",
        "wrong texts allowed",
    )
    rows = []
    for name, engine in report["engines"].items():
        first, cold, warm = engine["first_us"], engine["cold_us"], engine["warm_us"]
        cells = (
            f"{name} {report['versions'][name]}",
            f"{first['p50']:,.0f} / {first['p99']:,.0f}",
            f"{cold['p50']:,.1f} / {cold['p99']:,.0f} / {cold['p99.9']:,.0f} / {cold['p100']:,.0f}",
            f"{warm['p50']:,.1f}",
            f"{report['schemas'] - engine['compiled']:,}",
            f"{engine['valid'] - engine['valid_allowed']:,} of {engine['valid']:,}",
            f"{engine['invalid_allowed']:,} of {engine['invalid']:,}",
        )
        rows.append(cells)
    yield from table(head, rows)


def vocabularies(report: dict[str, Any]) -> Iterator[str]:
    """How the costs grow with the number of tokens."""
    reports = sorted(report["vocabularies"], key=lambda each: each["vocabulary"]["n_vocab"])
    yield f"Masks by the size of the vocabulary: {reports[0]['schemas']} schemas, microseconds on one core."
    yield ""
    head = ("tokens", "", "first mask p50 / p99", "between masks p50 / p99 / p99.9", "load", "memory of the vocabulary")
    rows = []
    for each in reports:
        for name, engine in each["engines"].items():
            first, cold = engine["first_us"], engine["cold_us"]
            cells = (
                f"{each['vocabulary']['n_vocab']:,}",
                name,
                f"{first['p50']:,.0f} / {first['p99']:,.0f}",
                f"{cold['p50']:,.1f} / {cold['p99']:,.0f} / {cold['p99.9']:,.0f}",
                f"{engine['load_s']:.2f} s",
                f"{engine['load_bytes'] / 1e6:.0f} MB",
            )
            rows.append(cells)
    yield from table(head, rows)


def many_tools(report: dict[str, Any]) -> Iterator[str]:
    """What so many tools of public servers cost at once."""
    yield (
        f"Many tools: drawn from {report['tools']:,} of public MCP servers that all engines read, in one schema; "
        "milliseconds to the first mask, microseconds between masks, on one core."
    )
    yield ""
    head = ("tools", "", "first mask, p50", "between masks, cold p50 / p99", "warm p50 / p99", "memory")
    rows = []
    for each in report["sizes"]:
        for name, engine in each["engines"].items():
            if (cold := engine["cold_us"]) is None:
                continue
            first, warm = engine["first_us"], engine["warm_us"]
            cells = (
                f"{each['tools']:,}",
                name,
                f"{first['p50'] / 1000:,.0f}",
                f"{cold['p50']:,.1f} / {cold['p99']:,.0f}",
                f"{warm['p50']:,.1f} / {warm['p99']:,.0f}",
                f"{engine['bytes'] / 1e6:,.0f} MB",
            )
            rows.append(cells)
    yield from table(head, rows)


def generation(report: dict[str, Any]) -> Iterator[str]:
    """Tokens per second of each loop, and how many times as fast as others it was, by the median of the rounds."""
    yield (
        f"Generation: tokens per second, {report['threads']} threads, llama-cpp-python {report['llama_cpp']}; in "
        f"brackets, times llama-cpp-python's own loop without a constraint."
    )
    yield ""
    settings: dict[tuple[str, float], dict[str, Any]] = {}
    for result in report["results"]:
        settings.setdefault((result["model"], result["temperature"]), {})[result["loop"]] = result
    loops = list(next(iter(settings.values())))
    rows = []
    for (model, temperature), results in settings.items():
        peer = results[loops[0]]["rounds"]
        cells = [f"{results[loop]['median']:.1f} ({ratio(peer, results[loop]['rounds']):.2f})" for loop in loops]
        rows.append((f"{model.removesuffix('.gguf')}, temperature {temperature:g}", *cells))
    yield from table(("", *loops), rows)


def budget(report: dict[str, Any]) -> Iterator[str]:
    """The share of complete and valid answers, by ``max_tokens``."""
    parts = [(part, report[part]) for part in ("walks", "model") if part in report]
    counts = ", ".join(f"{part}: {found['schemas']} schemas" for part, found in parts)
    yield f"Budgets: complete and valid answers within `max_tokens`, from the fewest that do; {counts}."
    yield ""
    head = ("", *(f"fewest {size}" if size[0] == "+" else size for size in BUDGETS))
    rows = []
    for part, found in parts:
        for engine, shares in found["valid"].items():
            version = report["versions"].get("constrain-llm" if engine == "constrain" else engine)
            cells = (f"{100 * good / total:.0f} %" for good, total in (shares[size] for size in BUDGETS))
            rows.append((f"{part}: {engine}{f' {version}' if version else ''}", *cells))
    yield from table(head, rows)


def batch(report: dict[str, Any]) -> Iterator[str]:
    """Throughput of several answers at once."""
    yield f"Several at once: {report['prompts']} prompts, {report['threads']} threads."
    yield ""
    rows = []
    for result in report["results"]:
        alone, together = (
            result["tokens"] / statistics.median(result[seconds]) for seconds in ("alone_seconds", "batch_seconds")
        )
        equal = report["prompts"] - len(result["differ"])
        model = result["model"].removesuffix(".gguf")
        numbers = (f"{result['parallel']}", f"{alone:.0f}", f"{together:.0f}", f"{result['ratio']:.2f}", f"{equal}")
        rows.append((model, *numbers))
    head = ("", "at once", "tokens per second, one at a time", "at once", "times", "texts that are the same")
    yield from table(head, rows)


def serving(report: dict[str, Any]) -> Iterator[str]:
    """What many clients met, beside what one did."""
    alone = {
        (load["model"], load["server"]): load["tokens"] / load["seconds"]
        for load in report["loads"]
        if load["clients"] == 1
    }
    many = [load for load in report["loads"] if load["clients"] > 1]
    yield (
        f"Serving: {many[0]['clients']} clients with streams of objects, calls, texts of grammars and plain text for "
        f"{many[0]['seconds']:.0f} seconds; {report['threads']} threads, llama-cpp-python {report['llama_cpp']}."
    )
    yield ""
    head = ("", "answers", "wrong", "tokens per second", "times one client's", "first piece p50 / p99", "more memory")
    rows = []
    for load in many:
        rate = load["tokens"] / load["seconds"]
        first = " / ".join(f"{seconds:.1f} s" for seconds in load["first_seconds"])
        counts = (f"{load['answers']:,}", f"{len(load['wrong']):,}")
        rates = (f"{rate:.0f}", f"{rate / alone[load['model'], load['server']]:.2f}")
        name = f"{load['server']}, {load['model'].removesuffix('.gguf')}"
        rows.append((name, *counts, *rates, first, f"{load['growth']:.1f} MiB a minute"))
    yield from table(head, rows)


def attack(report: dict[str, Any]) -> Iterator[str]:
    """Latency of a normal client, and memory of the server, during hostile requests."""
    yield (
        f"Attack: a normal client during {report['hostile']} hostile requests, 4 at a time; refused within 5 seconds: "
        f"{report['refused_in_5_seconds']}, the slowest after {report['slowest_seconds']:.1f} s; options of the "
        f"server: {' '.join(report['server']) or 'none'}."
    )
    yield ""
    head = ("", "answers", "p50", "p95", "memory of the server")
    memory = report["memory_mib"]
    rows = []
    for name, load, mib in (("alone", "alone", memory["before"]), ("attacked", "attacked", memory["after"])):
        times = report[load]
        seconds = (f"{times[part]:.2f} s ({times[part] / report['alone'][part]:.2f})" for part in ("p50", "p95"))
        rows.append((name, f"{times['requests']}", *seconds, f"{mib:.0f} MiB"))
    yield from table(head, rows)


def processes(report: dict[str, Any]) -> Iterator[str]:
    """Seconds that the slowest of several processes took, and how many times those of one."""
    yield (
        f"Processes at once: seconds until the last one has written {report['tokens']} tokens, from its start on; in "
        f"brackets, times one process alone; llama-cpp-python {report['llama_cpp']}."
    )
    yield ""
    results = {(one["run"], one["threads"], one["scene"]): longest(one) for one in report["results"]}
    rows = []
    for run, threads in dict.fromkeys(key[:2] for key in results):
        alone = results[run, threads, "1"]
        keys = [(run, threads, scene) for scene in SCENES]
        cells = [cell(results[key], report["patience"], alone) if key in results else "" for key in keys]
        name = "constrain" if run == "ours" else run
        rows.append((f"{name}, {'its choice of' if threads is None else threads} threads", *cells))
    yield from table(("", *SCENES), rows)


def memory(report: dict[str, Any]) -> Iterator[str]:
    """Memory of the server's process, and with its processes for compiling."""
    yield f"Memory of `constrain serve` with the demo model and the defaults, around {report['requests']} answers."
    yield ""
    head = ("", "server", "with its processes for compiling")
    times = (("idle", "idle"), (f"after {report['requests']} requests", "after"))
    yield from table(
        head,
        [(name, *(f"{report[when][part] / 2**20:,.0f} MiB" for part in ("resident", "all"))) for name, when in times],
    )


def accuracy(report: dict[str, Any]) -> Iterator[str]:
    """What share of calls and of leaves of documents is right, by way of asking, with its interval."""
    yield (
        "Right: calls by the rules of the Berkeley Function Calling Leaderboard, leaves of documents; in brackets the "
        "middle 95 % of 2,000 bootstrap samples. +/-: tasks with more and with fewer right than constrain with default "
        "options. Readable: a call, or JSON. Tokens and seconds: mean of an answer."
    )
    for name, ways in report["models"].items():
        for part in ("calls", "documents"):
            rows = [(found["label"], *_accuracy_cells(found[part])) for found in ways.values() if part in found]
            yield ""
            yield f"{name}, {part}:"
            yield ""
            yield from table(("", "tasks", "right, %", "+/-", "readable, %", "tokens", "seconds"), rows)


def _accuracy_cells(part: Mapping[str, Any]) -> Iterator[str]:
    yield f"{part['answers']}"
    yield _right(part)
    yield f"+{part['more']} -{part['fewer']}"
    yield f"{100 * part['readable'] / part['answers']:.0f}"
    yield f"{part['tokens']:.0f}"
    yield f"{part['seconds']:.1f}"


def _right(part: Mapping[str, Any]) -> str:
    low, high = part["interval"]
    return f"{100 * part['right']:.1f} ({100 * low:.0f} to {100 * high:.0f})"


IN_SHORT = ("prompt", "llama-cpp-python", "constrained")
"""The ways of asking that the README shows."""


def right(report: dict[str, Any]) -> Iterator[str]:
    """Calls of a few ways of asking: how many can be read, and how many are right."""
    yield (
        "Function calls, judged by the rules of the Berkeley Function Calling Leaderboard; in brackets the middle 95 % "
        "of 2,000 bootstrap samples."
    )
    yield ""
    head = [cell for name in report["models"] for cell in (f"{name}: readable, %", "right, %")]
    rows = []
    for way in IN_SHORT:
        parts = [ways[way]["calls"] for ways in report["models"].values()]
        cells = (cell for part in parts for cell in (f"{100 * part['readable'] / part['answers']:.0f}", _right(part)))
        rows.append((next(iter(report["models"].values()))[way]["label"], *cells))
    yield from table(("", *head), rows)


def quotes(report: dict[str, Any]) -> Iterator[str]:
    """What quotes cost by the length of their source, and what llguidance's substring_chars does."""
    yield (
        "Cost of quotes, by the length of an English source: time to compile, and to compute masks inside a quote "
        "(median, 99th percentile). llguidance reads the same quotes with `substring_chars`. Vocabulary "
        f"{report['vocabulary'].removesuffix('.gguf')}."
    )
    yield ""
    head = ("characters", "compile", "bytes a character", "masks", "llguidance: compile", "masks")
    rows = []
    for length, found in report["lengths"].items():
        own, peer = found["constrain"], found.get("llguidance")
        cells = (f"{own['compile_ms']:.1f} ms", f"{own['bytes_per_character']:.0f}", _micros(own["masks_us"]))
        theirs = (f"{peer['compile_ms']:.1f} ms", _micros(peer["masks_us"])) if peer else ("", "")
        rows.append((f"{int(length):,}", *cells, *theirs))
    yield from table(head, rows)


def prompt_states(report: dict[str, Any]) -> Iterator[str]:
    """Time to the first text of a process that finds its system prompt on disk."""
    yield (
        f"Evaluated prompts on disk: time to the first text of an answer, median of {report['rounds']} rounds; "
        f"{report['threads']} threads, llama-cpp-python {report['llama_cpp']}."
    )
    yield ""
    head = ("", "tokens of the prompt", "of these on disk", "first process", "second process", "ratio")
    rows = []
    for run in report["runs"]:
        first, second = (statistics.median(run[name]) for name in ("first_seconds", "second_seconds"))
        on_disk = f"{run['cached_tokens']:,} ({run['file_bytes'] / 1e6:.0f} MB)"
        times = (f"{first:.2f} s", f"{second:.2f} s", f"{second / first:.3f}")
        rows.append((f"`{run['what']}`", f"{run['prompt_tokens']:,}", on_disk, *times))
    yield from table(head, rows)


def speculation(report: dict[str, Any]) -> Iterator[str]:
    """What guesses save here, and would save where several tokens at once cost otherwise."""
    results = report["results"]
    yield (
        f"Times as fast with guesses as without, {results[0]['model'].removesuffix('.gguf')} at temperature 0: "
        "measured, predicted from the costs of this machine, and predicted for machines on which eight tokens at once "
        f"cost so many times what one costs; {report['threads']} threads, llama-cpp-python {report['llama_cpp']}."
    )
    yield ""
    rates_head = ("tokens per second by default", "with flash attention, without guesses")
    elsewhere = [f"{float(eight):g}" for eight in results[0]["elsewhere"]]
    rows = []
    for each in results:
        name = each["case"]
        speedups = [statistics.median(each["speedups"]), each["predicted"], *each["elsewhere"].values()]
        right = f"{each['n_right']} of {each['n_guessed']}"
        rates = (f"{each['default']:.0f}", f"{each['plain']:.0f}")
        rows.append((name, right, *rates, *(f"{speedup:.2f}" for speedup in speedups)))
    yield from table(("", "guesses right", *rates_head, "measured", "predicted", *elsewhere), rows)


def processors(report: dict[str, Any]) -> Iterator[str]:
    """What a step of a batch costs with the logits processors of three engines, and whether answers are whole."""
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    yield (
        f"Eight answers at once of at most {report['tokens']} tokens, with eight schemas, sampled from a small model "
        f"of random weights; {report['threads']} thread. In the processor: eight masks, and setting the logits. "
        f"{versions}."
    )
    yield ""
    rows = []
    for name, engine in report["engines"].items():
        cells = ("", "", "")
        if "us_per_step" in engine:
            valid = f"{engine['valid']} of {engine['answers']}"
            cells = (f"{engine['us_per_step']:,.0f} µs", f"{engine['times_ours']:.2f}", valid)
        rows.append((name, *cells[:2], f"{engine['ms_in_all']:.1f} ms", cells[2]))
    head = ("", "in the processor, a step", "times ours", "step of generate", "whole and valid answers")
    yield from table(head, rows)


def mcp_servers(report: dict[str, Any]) -> Iterator[str]:
    """What becomes of the tools of public MCP servers, and what all of them cost at once."""
    started = [server for server in report["servers"] if "failure" not in server]
    tools, compiled, calls = (sum(server[name] for server in started) for name in ("tools", "compiled", "calls"))
    valid = calls - sum(len(server["invalid"]) for server in started)
    together, sixty = report["together"], report["at_once"]
    steps = ("read_ms", "compile_ms", "first_mask_ms")
    first = sorted(sum(one[step] for step in steps) for one in sixty)
    yield (
        f"Tools of {len(started)} public servers: {compiled:,} of {tools:,} are enforced. Random walks over the masks "
        f"wrote {calls:,} calls, of which jsonschema finds {valid:,} valid for the schemas that the servers list. "
        f"{sixty[0]['tools']} tools at once, {len(sixty)} random choices: reading and compiling them and the first "
        f"mask take {statistics.median(first):.0f} ms in the median, {first[-1]:.0f} ms at most. All "
        f"{together['tools']:,} at once: {sum(together[step] for step in steps):,.0f} ms for the same, "
        f"{together['more_bytes'] / 2**20:,.0f} MiB more memory at the peak, masks of "
        f"{together['masks_us']['p50']:,.0f} µs in the median and {together['masks_us']['p99']:,.0f} µs at the 99th "
        f"percentile; {together['calls'] - len(together['invalid'])} of {together['calls']} calls valid."
    )
    yield ""
    rows = []
    for server in started:
        counts = (server["tools"], len(server["refused"]), server["calls"], len(server["invalid"]))
        rows.append((f"`{server['package']}` {server['version']}", *map(str, counts)))
    yield from table(("", "tools", "refused", "calls", "invalid"), rows)
    refused = [f"`{name}` of `{server['package']}`" for server in started for name in server["refused"]]
    if refused:
        yield ""
        yield f"Refused: {', '.join(refused)}; `benchmarks/results/mcp_servers.json` has the reasons."
    others = [f"`{server['package']}`" for server in report["servers"] if "failure" in server]
    if others:
        yield ""
        yield (
            f"Not measured, because they did not start here or did not list their tools: {', '.join(others)}; "
            "`benchmarks/results/mcp_servers.json` has the reasons."
        )


def cluster(report: dict[str, Any]) -> Iterator[str]:
    """What an answer costs an actor, whether Ray takes as long as predicted, and plans of jobs on clusters."""
    setting, work, costs = report["setting"], report["work"], report["costs"]
    prompts = "made-up notes about people" if setting["prompts"] is None else "prompts"
    yield (
        f"Answers to {prompts} by {report['model'].removesuffix('.gguf')}: {setting['actors']} actors at once, each of "
        f"{setting['threads']} thread{'s' * (setting['threads'] > 1)}, {setting['parallel']} answers at once, of "
        f"{len(costs['answers'])} prompts; llama-cpp-python {report['llama_cpp']}."
    )
    yield ""
    parallel = setting["parallel"]
    step = costs["steps"][str(parallel)]
    rows = [
        ("prompt", f"{work['evaluated']:.0f} tokens", f"{costs['prompt_rate']:.0f} a second", work["prompt_seconds"]),
        ("forced text", f"{work['runs']:.1f} runs", "", work["run_seconds"]),
        (
            "steps",
            f"{work['steps']:.0f}",
            f"cost({parallel}) / {parallel} = {1000 * step:.0f} / {parallel} ms",
            work["steps"] * step / parallel,
        ),
        ("together", "", "", work["seconds"]),
    ]
    yield from table(("an answer", "number", "cost", "seconds"), [(*row[:3], f"{row[3]:.3f}") for row in rows])
    yield ""
    sizes = [*costs["steps"]]
    yield from table(
        ("answers at once, n", *sizes), [("cost(n), ms", *(f"{1000 * costs['steps'][n]:.0f}" for n in sizes))]
    )
    yield ""
    yield (
        f"An actor starts in {costs['start']:.1f} s. It has {costs['private_bytes'] / 2**20:,.0f} MiB of its own; the "
        f"actors of a node share {costs['shared_bytes'] / 2**20:,.0f} MiB."
    )
    if "check" in report:
        yield ""
        yield from _cluster_check(report["check"])
    for plan in report.get("plans", ()):
        yield ""
        yield from _cluster_plan(plan)


def _cluster_check(check: dict[str, Any]) -> Iterator[str]:
    actors = check["all"]["actors"]
    yield (
        f"{check['documents']:,} documents with Ray on this machine, in batches of {check['batch_size']}; {actors} "
        f"actors were {check['times_one']:.2f} times as fast as one. Rows equal to those of `constrain batch`: "
        f"{check['equal_rows']:,}."
    )
    yield ""
    kinds = (("one actor", check["one"]), (f"{actors} actors", check["all"]))
    rows = [(name, f"{one['documents_per_hour']:,.0f}", f"{one['whole_per_hour']:,.0f}") for name, one in kinds]
    rows.append(
        (
            f"{actors} actors, predicted",
            f"{check['predicted_per_hour']:,.0f}",
            f"{check['predicted_whole_per_hour']:,.0f}",
        )
    )
    rows.append(("predicted / measured", f"{check['ratio']:.2f}", f"{check['whole_ratio']:.2f}"))
    yield from table(("", "documents an hour", "the start included"), rows)


def _cluster_plan(plan: dict[str, Any]) -> Iterator[str]:
    cluster, result = plan["cluster"], plan["result"]
    yield (
        f"Plan: {cluster['documents']:,} such documents on {cluster['nodes']} nodes with {plan['cpus_per_node']} CPUs. "
        f"Assumed: {cluster['actors_per_node']} actors a node, {cluster['parallel']} answers at once, batches of "
        f"{cluster['batch_size']}; {cluster['price']:.2f} for a node and hour; {100 * cluster['lost']:g} % of the "
        f"nodes lost in an hour; {cluster['node_start']:.0f} s until a node is there."
    )
    yield ""
    rows = [
        ("documents an hour, by the formula", f"{plan['formula_per_hour']:,.0f}"),
        ("documents an hour, simulated", f"{result['documents_per_hour']:,.0f}"),
        ("hours", f"{result['hours']:.2f}"),
        ("node-hours", f"{result['node_hours']:,.0f}"),
        ("cost", f"{result['cost']:,.0f}"),
        ("lost nodes; documents answered again", f"{result['lost_nodes']}; {result['repeated_documents']:,}"),
        ("memory of a node, without Ray's own", f"{plan['node_bytes'] / 2**30:.1f} GiB"),
    ]
    yield from table(("", ""), rows)


def certificates(report: dict[str, Any]) -> Iterator[str]:
    """Certificates that were checked and tampered with, their sizes, and what they cost."""
    checked, tampered, cost = report["verify"], report["tamper"], report.get("cost")
    yield (
        f"{checked['certificates']:,} certificates, of answers of the default model and of random walks over masks, "
        f"{checked['tokens']:,} tokens: `constrain.verify` refuses {checked['refused']}."
    )
    yield ""
    rows = [
        ("check of a certificate", *(f"{checked['milliseconds'][at]:,.1f} ms" for at in ("p50", "p99", "p100"))),
        ("size of a certificate", *(f"{checked['kilobytes'][at]:,.1f} kB" for at in ("p50", "p99", "p100"))),
    ]
    yield from table(("", "median", "99th percentile", "at most"), rows)
    yield ""
    verdicts = dict(tampered["tampered"])
    total, refused = sum(verdicts.values()), verdicts.pop("refused")
    right = sum(number for name, number in verdicts.items() if name in RIGHT_AFTER_TAMPERING)
    yield (
        f"{total:,} certificates in which one thing was changed: {refused:,} are refused with the place of the change; "
        f"{right:,} are right all the same (another answer that the engine accepts, or the same language); "
        f"{total - refused - right:,} are neither."
    )
    if cost is None:
        return
    yield ""
    yield (
        f"{cost['answers']} answers of {cost['tokens']:,} tokens took {cost['seconds_with']:.1f} s with a certificate "
        f"and {cost['seconds_without']:.1f} s without; in the median, a certificate takes "
        f"{100 * cost['median_share']:.1f} % more time."
    )


def one_of(report: dict[str, Any]) -> Iterator[str]:
    """Loading tables, their memory, and masks, next to enumerations."""
    yield (
        f"Tables of three kinds of texts, the vocabulary {report['vocabulary']}; load and memory: of the table; masks "
        "in microseconds, cold: met for the first time. Next to them, names as an `enum`."
    )
    yield ""
    rows = []
    for kind in ("names", "numbered", "codes"):
        for size, found in report[kind].items():
            load = f"{found['load_ms']:,.0f}", f"{found['load_mb']:.0f}"
            rows.append((f"{kind}, {int(size):,}", *load, *_masks(found)))
    for engine, sizes in report["others"].items():
        for size, found in sizes.items():
            cells = ("refused", "", "", "") if "error" in found else ("", "", *_masks(found))
            rows.append((f"`enum` of {engine}, {int(size):,}", *cells))
    yield from table(("", "load, ms", "MB", "cold p50 / p99", "known p50 / p99"), rows)


def _masks(found: Mapping[str, Any]) -> Iterator[str]:
    for times in (found["cold_us"], found["warm_us"]):
        yield f"{times['p50']:.1f} / {times['p99']:,.0f}"


def sql(report: dict[str, Any]) -> Iterator[str]:
    """Which random queries, and which of a model's, EXPLAIN accepts."""
    model = report["model"]
    yield (
        f"{model['answers']} questions to the demo model: `EXPLAIN` fails for {model['failed with tables']} queries of "
        f"`constrain.sql`, and for {model['failed with any names']} of `sql_select` without tables."
    )
    yield ""
    rows = [
        (
            f"{each['database']}, {each['dialect']}",
            f"{each['tables']}",
            f"{each['compile_seconds']:.2f}",
            f"{each['walks']:,}",
            f"{len(each['failed'])}",
            f"{len(each['failed_on_rows'])}",
        )
        for each in report["walks"]
    ]
    yield from table(("", "tables", "compile, s", "random queries", "`EXPLAIN` fails", "fail on rows"), rows)


def retries(report: dict[str, Any]) -> Iterator[str]:
    """Tokens of answers with fields written again, and of answers that are asked again."""
    fields, again = report["fields"], report["again"]
    yield (
        f"Five strings and a number, whose validators reject {100 * report['rejected']:.0f} % of all values by chance; "
        f"{len(report['answers'])} answers of the demo model at temperature 1, with the same seeds."
    )
    yield ""
    rows = [
        ("only the broken field again", f"{fields['tokens']:.0f}", f"{fields['retried']:.1f} values again"),
        ("the whole answer, until nothing is rejected", f"{again['tokens']:.0f}", f"{again['answers']:.1f} answers"),
    ]
    yield from table(("", "tokens, with those taken back", "written"), rows)


def tools_shown(report: dict[str, Any]) -> Iterator[str]:
    """Right calls among many tools, by what the prompt shows of them."""
    yield (
        "Questions of the Berkeley Function Calling Leaderboard, with their own tools among others; right and named in "
        "%, in brackets the middle 95 % of 2,000 bootstrap samples. *Too long*: the prompt does not fit into "
        f"{report['context']:,} tokens, and counts as wrong."
    )
    for name, ways in report["models"].items():
        rows = [
            (
                f"{row['others']:,} others, {row['label']}",
                f"{row['answers']}",
                _right(row),
                f"{100 * row['named']:.0f}",
                f"{row['prompt']:,}" if row["prompt"] else "too long",
            )
            for row in sorted(ways, key=lambda row: row["others"])
        ]
        yield ""
        yield f"{name}:"
        yield ""
        yield from table(("", "questions", "right", "right tool named", "tokens of the prompt"), rows)


def _micros(times: Mapping[str, float]) -> str:
    return f"{times['p50']:.1f}, {times['p99']:,.0f} µs"


SECTIONS: dict[str, Callable[[dict[str, Any]], Iterator[str]]] = {
    "masks": masks,
    "vocabularies": vocabularies,
    "many_tools": many_tools,
    "generation": generation,
    "budget": budget,
    "batch": batch,
    "serving": serving,
    "attack": attack,
    "processes": processes,
    "memory": memory,
    "accuracy": accuracy,
    "tools_shown": tools_shown,
    "one_of": one_of,
    "sql": sql,
    "retries": retries,
    "quotes": quotes,
    "prompt_states": prompt_states,
    "speculation": speculation,
    "processors": processors,
    "mcp_servers": mcp_servers,
    "cluster": cluster,
    "certificates": certificates,
}

RIGHT_AFTER_TAMPERING = ("same answer, derived otherwise", "same language", "another answer of the language")
"""Verdicts on tampered certificates that hold, and are right."""

COMPARED = ("masks", "budget", "generation")
"""The reports that the comparison is made of."""


def comparison(masks: dict[str, Any], budget: dict[str, Any], generation: dict[str, Any]) -> Iterator[str]:
    """One line for each engine: what it compiles, whether its answers end, and what it costs."""
    yield (
        f"{masks['schemas']} schemas of the benchmark MaskBench, a vocabulary of {masks['vocabulary']['n_vocab']:,} "
        f"tokens; masks: the {masks['common']} schemas that all engines compile. Complete answers: a model, and "
        f"{budget['model']['schemas']} schemas that all engines of that column compile. Speed: tokens per second next "
        f"to those without constraint, in {len({(one['model'], one['temperature']) for one in generation['results']})} "
        "settings of model and temperature."
    )
    yield ""
    head = (
        "",
        "schemas compiled",
        "complete within 64 tokens",
        "median mask",
        "first mask, 99th percentile",
        "speed (unconstrained: 1)",
    )
    rates: dict[str, list[float]] = {}
    rounds = {(one["model"], one["temperature"], one["loop"]): one["rounds"] for one in generation["results"]}
    for (model, temperature, loop), own in rounds.items():
        rates.setdefault(loop, []).append(ratio(rounds[model, temperature, "llama-cpp-python"], own))
    rows = []
    for name in dict.fromkeys([*masks["engines"], *budget["model"]["valid"]]):
        engine, valid = masks["engines"].get(name), budget["model"]["valid"].get(name)
        speeds = rates.get("ours, constrained" if name == "constrain" else name)
        cells = (
            f"{engine['compiled']}" if engine else "",
            f"{100 * valid['64'][0] / valid['64'][1]:.0f} %" if valid else "",
            f"{engine['cold_us']['p50']:.1f} µs" if engine else "",
            f"{engine['first_us']['p99'] / 1000:,.0f} ms" if engine else "",
            f"{min(speeds):.2f} to {max(speeds):.2f}" if speeds else "",
        )
        rows.append((f"{name} {masks['versions'][name]}" if engine else name, *cells))
    yield from table(head, rows)


def measured(reports: Sequence[dict[str, Any]]) -> str:
    """The machine and the days of several reports, for readers; the tables of each report have its commit."""
    machines = dict.fromkeys(map(machine_of, reports))
    days = sorted({report["date"] for report in reports})
    return f"{' and '.join(machines)}, {' to '.join(dict.fromkeys((days[0], days[-1])))}."


def read(results: Path, name: str) -> dict[str, Any]:
    """A report that is kept."""
    report: dict[str, Any] = json.loads((results / f"{name}.json").read_text(encoding="utf-8"))
    return report


def sections(results: Path) -> dict[str, list[str]]:
    """The lines of each table whose reports are kept: where its numbers come from, and what they are."""
    reports = {name: read(results, name) for name in SECTIONS if (results / f"{name}.json").exists()}
    made = {name: (SECTIONS[name](report), told(report)) for name, report in reports.items()}
    if "accuracy" in reports:
        made["right"] = right(reports["accuracy"]), told(reports["accuracy"])
    if all(name in reports for name in COMPARED):
        made["comparison"] = (
            comparison(*(reports[name] for name in COMPARED)),
            measured([reports[name] for name in COMPARED]),
        )
    return {name: [f"{next(lines)} {origin}", *lines] for name, (lines, origin) in made.items()}


def pattern_of(name: str) -> re.Pattern[str]:
    """A section with its marks."""
    return re.compile(rf"(<!-- {name}: [^>]*-->\n).*?(<!-- /{name} -->)", re.DOTALL)


def written(pages: Mapping[Path, str], results: Path) -> tuple[dict[Path, str], list[str]]:
    """The pages with the tables of all kept reports; and which of these were others."""
    texts, changed = dict(pages), []
    for name, lines in sections(results).items():
        marked = [page for page, text in texts.items() for _ in pattern_of(name).finditer(text)]
        if name == "comparison" and not marked:
            continue
        if len(marked) != 1:
            raise ValueError(f"{len(marked)} sections are marked {name}; there must be one")
        body = "".join(f"{line}\n" for line in lines)
        replaced = pattern_of(name).sub(lambda marks, body=body: marks[1] + body + marks[2], texts[marked[0]])
        changed += [name] if replaced != texts[marked[0]] else []
        texts[marked[0]] = replaced
    return texts, changed


def main() -> None:
    here = Path(__file__).parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true", help="write the tables")
    what.add_argument("--check", action="store_true", help="only compare them")
    parser.add_argument("--results", type=Path, default=here / "results", help="where the reports are (%(default)s)")
    parser.add_argument("--page", type=Path, action="append", help="in place of the README and the docs")
    arguments = parser.parse_args()
    for path in arguments.results.glob("*.json"):
        if path.stem not in SECTIONS:
            parser.error(f"{path}: a report is named as its benchmark: {', '.join(SECTIONS)}")
    pages = arguments.page or [here.parent / "README.md", *sorted((here.parent / "docs").rglob("*.md"))]
    before = {path: path.read_text(encoding="utf-8") for path in pages}
    texts, changed = written(before, arguments.results)
    if arguments.write:
        for path, text in texts.items():
            if text != before[path]:
                path.write_text(text, encoding="utf-8")
        print(f"written: {', '.join(changed) or 'nothing, all tables are those of their reports'}")
    elif changed:
        raise SystemExit(f"not those of their reports: {', '.join(changed)}; python benchmarks/readme.py --write")


if __name__ == "__main__":
    main()
