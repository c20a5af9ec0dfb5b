"""Draws the plots in docs/plots from the reports in benchmarks/results; ``python -m tools.pages`` calls it.

Each SVG holds the digest of its report and of this file. So a plot can be found current without matplotlib, whose
versions draw the same plot in different bytes. With one version of matplotlib, the bytes are always the same.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"

_STYLE = {
    "svg.hashsalt": "constrain",  # ids of elements are random otherwise
    "svg.fonttype": "none",  # text stays text
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#dddddd",
    "legend.frameon": False,
}

_OURS = "#1b6ca8"
_COLOURS = {
    "constrain": _OURS,
    "ours, constrained": _OURS,
    "ours, all sampled": "#7fb2d8",
    "ours, unconstrained": "#b9d4e8",
    "llguidance": "#c8553d",
    "xgrammar": "#8a9a5b",
    "xgrammar, dynamic": "#c3cf9a",
    "glrmask": "#7d5ba6",
    "llama-cpp-python": "#8c8c8c",
    "llama.cpp grammar": "#d9a441",
}


_BUDGETS = {"+0": "fewest", "+5": "+5", "+20": "+20", "64": "64", "256": "256"}
"""Budgets of the report, and how they are shown: the fewest tokens that are enough, so many more, or so many in all."""


def draw(name: str, folder: Path) -> Path:
    """Draws one plot into a folder and returns its path."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    report = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    path = folder / f"{name}.svg"
    with mpl.rc_context(_STYLE):  # type: ignore[arg-type]
        figure = Figure(figsize=(8, 3.6), layout="constrained")
        PLOTS[name](figure, report)
        described = {"Date": None, "Creator": None, "Description": digest(name), "Title": f"{name}: {_origin(report)}"}
        figure.savefig(path, metadata=described)
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("".join(f"{line.rstrip()}\n" for line in lines), encoding="utf-8")
    return path


def is_current(name: str, folder: Path) -> bool:
    """Returns whether a plot was drawn from the report and by the program that are there now."""
    path = folder / f"{name}.svg"
    return path.exists() and digest(name) in path.read_text(encoding="utf-8")


def digest(name: str) -> str:
    """Returns the SHA-256 of a report and of this file, in hexadecimal digits."""
    parts = (RESULTS / f"{name}.json", Path(__file__))
    return hashlib.sha256(b"\0".join(part.read_bytes() for part in parts)).hexdigest()


def _origin(report: dict[str, Any]) -> str:
    where = report.get("measured_on") or f"{report['cores']} cores ({report['processor']})"
    return f"{where}, commit {report['commit']}, {report['date']}"


def _masks(figure: Any, report: dict[str, Any]) -> None:
    """Times to the first mask and between masks, on a logarithmic scale."""
    first, between = figure.subplots(1, 2, width_ratios=(2, 3))
    engines = report["engines"]
    for axes, key, quantiles, title in (
        (first, "first_us", ("p50", "p99"), f"Time to the first mask ({report['common']} schemas)"),
        (between, "cold_us", ("p50", "p99", "p99.9"), "Time between masks"),
    ):
        series = {name: [engine[key][quantile] for quantile in quantiles] for name, engine in engines.items()}
        _bars(axes, quantiles, series, shown="{:,.0f}".format)
        axes.set_yscale("log")
        axes.set_title(title)
        axes.set_ylabel("microseconds")
    between.legend(loc="upper left")


def _vocabularies(figure: Any, report: dict[str, Any]) -> None:
    """Times to the first mask and between masks, by the number of tokens."""
    reports = sorted(report["vocabularies"], key=lambda each: each["vocabulary"]["n_vocab"])
    panels = figure.subplots(1, 3)
    drawn = (("first_us", "p50", "First mask, p50"), ("cold_us", "p50", "Masks, p50"), ("cold_us", "p99", "Masks, p99"))
    for axes, (key, quantile, title) in zip(panels, drawn, strict=True):
        for name in reports[0]["engines"]:
            points = [(each["vocabulary"]["n_vocab"], each["engines"][name][key][quantile]) for each in reports]
            axes.plot(*zip(*points, strict=True), marker="o", label=name, color=_COLOURS.get(name))
        axes.set_yscale("log")
        axes.set_title(title)
        axes.set_xlabel("tokens")
    panels[0].set_ylabel("microseconds")
    panels[-1].legend()


def _budget(figure: Any, report: dict[str, Any]) -> None:
    """The share of complete and valid answers, by ``max_tokens``."""
    panels = figure.subplots(1, 2, sharey=True)
    titles = {"walks": "Random choices", "model": "A small model"}
    for axes, (part, title) in zip(panels, titles.items(), strict=True):
        found = report[part]
        series = {
            name: [100 * good / total for good, total in (shares[size] for size in _BUDGETS)]
            for name, shares in found["valid"].items()
        }
        _bars(axes, list(_BUDGETS.values()), series, shown="{:.0f}".format)
        axes.set_xlabel("max_tokens: the fewest that are enough, more, or in all")
        axes.set_title(f"{title}, {found['schemas']} schemas")
    panels[0].set_ylabel("complete and valid, %")
    figure.legend(*panels[1].get_legend_handles_labels(), loc="outside lower center", ncols=3)


def _generation(figure: Any, report: dict[str, Any]) -> None:
    """Tokens per second of each loop."""
    axes = figure.subplots()
    settings: dict[str, dict[str, float]] = {}
    for result in report["results"]:
        model = result["model"].removesuffix(".gguf").replace(".", "\n", 1)  # the format below the name
        group = f"{model}\ntemperature {result['temperature']:g}"
        settings.setdefault(group, {})[result["loop"]] = result["median"]
    loops = list(next(iter(settings.values())))
    _bars(
        axes,
        list(settings),
        {loop: [medians[loop] for medians in settings.values()] for loop in loops},
        shown="{:.0f}".format,
    )
    axes.set_ylabel("tokens per second")
    axes.set_title(f"Generation, {report['threads']} threads")
    axes.legend(loc="upper right", fontsize=8)


def _processes(figure: Any, report: dict[str, Any]) -> None:
    """Seconds until the last of several processes has written its tokens."""
    axes = figure.subplots()
    series: dict[str, dict[str, float]] = {}
    for result in report["results"]:
        if result["threads"] is None:
            name = "constrain" if result["run"] == "ours" else result["run"]
            rounds = sorted(max(seconds) for seconds in result["rounds"])
            series.setdefault(name, {})[result["scene"]] = rounds[len(rounds) // 2]
    scenes = list(next(iter(series.values())))
    _bars(axes, scenes, {name: list(seconds.values()) for name, seconds in series.items()}, shown="{:.1f}".format)
    axes.set_ylabel("seconds")
    axes.set_xlabel("processes at once, and busy other programs")
    axes.set_title(f"Until the last process has written {report['tokens']} tokens, {report['cores']} cores")
    axes.legend(loc="upper left")


def _accuracy(figure: Any, report: dict[str, Any]) -> None:
    """How often parts of answers are right: by their probability, and among the surest."""
    calibrated, covered = figure.subplots(1, 2, sharey=True)
    calibrated.plot([0, 1], [0, 1], color="#cccccc")
    for (model, ways), colour in zip(report["models"].items(), (_OURS, "#c8553d"), strict=True):
        for part, line in (("calls", ".-"), ("documents", ".--")):
            found = ways["confident"][part]["confidence"]
            name = f"{model.partition('-')[0]}, {part} (AUROC {found['auroc']:.2f})"
            means, shares, _ = zip(*found["bins"], strict=True)
            calibrated.plot(means, shares, line, color=colour)
            covered.plot([tenth / 10 for tenth in range(1, 11)], found["coverage"], line, color=colour, label=name)
    calibrated.set(xlabel="probability that the model gave", ylabel="share that is right")
    calibrated.set_title("Calibration")
    covered.set(xlabel="share of the parts, the surest first")
    covered.set_title("Risk and coverage")
    covered.legend(fontsize=8)


def _speculation(figure: Any, report: dict[str, Any]) -> None:
    """How many times as fast guesses make answers, by what eight tokens at once cost."""
    axes = figure.subplots()
    for each in report["results"]:
        if each["speculation"] == "lookup":
            costs, speedups = [float(eight) for eight in each["elsewhere"]], list(each["elsewhere"].values())
            axes.plot(costs, speedups, ".-", label=each["case"])
    axes.set_xlabel("cost of eight tokens at once (one token: 1)")
    axes.set_ylabel("times as fast (predicted)")
    axes.set_title("Guesses from the prompt and the answer")
    axes.legend()


def _bars(axes: Any, groups: Sequence[str], series: dict[str, list[float]], *, shown: Callable[[float], str]) -> None:
    """Draws a bar for each series in each group, with its value above it."""
    width = 0.8 / len(series)
    for index, (name, values) in enumerate(series.items()):
        places = [group + (index - (len(series) - 1) / 2) * width for group in range(len(groups))]
        bars = axes.bar(places, values, width * 0.92, label=name, color=_COLOURS.get(name))
        axes.bar_label(bars, [shown(value) for value in values], fontsize=7, padding=2)
    axes.set_xticks(range(len(groups)), groups)
    axes.margins(y=0.15)


PLOTS: dict[str, Callable[[Any, dict[str, Any]], None]] = {
    "masks": _masks,
    "vocabularies": _vocabularies,
    "budget": _budget,
    "generation": _generation,
    "processes": _processes,
    "accuracy": _accuracy,
    "speculation": _speculation,
}
"""The plots, by the names of their reports, with the functions that draw them."""
