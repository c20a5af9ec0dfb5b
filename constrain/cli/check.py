"""``constrain check``: findings about schemas, and about a list of tools."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from constrain.cli import shared
from constrain.errors import ModelError, ToolError, describe_pointer

if TYPE_CHECKING:
    from constrain.chat.inspection import ToolFacts, ToolsCheck
    from constrain.inspection.check import Check
    from constrain.json_schema.lint.findings import Finding
    from constrain.vocabulary.vocabulary import Vocabulary


def check(
    schemas: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCHEMA", help="JSON Schemas: files, JSON, MODULE:CLASS, or keys with types ('name, age int')."
        ),
    ] = None,
    tools: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="JSON file with the tools of a request to OpenAI's or Anthropic's endpoints, or of MCP's tools/list.",
        ),
    ] = None,
    vocab: Annotated[
        Path | None, typer.Option(help="GGUF file whose tokens are counted; by default the model of the demo extra.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,  # noqa: FBT002
) -> None:
    """Reports which parts of a schema are enforced, which are refused, which can never match, and what could be better.

    With --tools, it reports what each tool costs: tokens in the prompt, with its definition and with its name and a
    line alone, and steps to compile its parameters; which tools a model may confuse, and which keywords are refused.

    The exit status is 1 if a part of a schema is refused or can never match; advice alone does not change it.
    """
    if not (schemas or tools):
        raise typer.BadParameter("no schema and no tools to check")
    console = Console(highlight=False)
    listed: list[dict[str, Any]] = []
    passed = _check_tools(console, tools, vocab, listed if as_json else None) if tools else True
    if schemas:
        passed = _check_schemas(console, schemas, vocab, listed if as_json else None) and passed
    if as_json:
        sys.stdout.write(json.dumps(listed, indent=2) + "\n")
    if not passed:
        raise typer.Exit(shared.FAILED)


def _check_schemas(
    console: Console, schemas: list[str], vocab: Path | None, listed: list[dict[str, Any]] | None
) -> bool:
    """Prints the findings about schemas, or adds them to a list; returns whether all is well."""
    from constrain.inspection.check import check_schema

    passed = True
    with shared.show_progress(Console(stderr=True), "Reading the vocabulary"):
        vocabulary, unit = _load_counter(vocab)
    for given in schemas:
        with shared.show_progress(Console(stderr=True), f"Checking {given:.80}"):
            found = check_schema(shared.parse_schema_argument(given), vocabulary)
        passed = passed and found.passed
        if listed is None:
            _print_check(console, given, found, unit)
        else:
            listed.append(_as_json(given, found, unit))
    return passed


def _check_tools(console: Console, file: Path, vocab: Path | None, listed: list[dict[str, Any]] | None) -> bool:
    """Prints the findings about a list of tools, or adds them to a list; returns whether all is well."""
    from constrain.chat.inspection import check_tools
    from constrain.llama.loading import load_tokenizer
    from constrain.llama.model import default_model_path

    try:
        document = json.loads(shared.read_text(file))
    except ValueError as error:
        raise ToolError(f"{file} is not JSON: {error}") from error
    model = vocab or default_model_path()
    with shared.show_progress(Console(stderr=True), f"Checking {file}"), shared.name_file(file):
        found = check_tools(document, *load_tokenizer(model))
    if listed is None:
        _print_tools(console, str(file), found, f"tokens of {model.name}")
    else:
        tools = [{**asdict(tool), **_findings(tool)} for tool in found.tools]
        listed.append({"tools_of": str(file), "unit": f"tokens of {model.name}", **asdict(found), "tools": tools})
    return found.passed


def _print_tools(console: Console, name: str, found: ToolsCheck, unit: str) -> None:
    counts = f"{found.tokens:,} {unit} ({found.frame} around them), {found.short_tokens:,} with names and a line only"
    console.print(f"{name}: {len(found.tools)} tools, {counts}", style="bold", markup=False, soft_wrap=True)
    numbers = ("tokens", "name and line", "bytes of schema", "steps to compile", "edges")
    table = Table(_tool_column("tool"), *numbers, title="Costs")
    for tool in found.tools:
        counted = (tool.tokens, tool.short_tokens, tool.schema_bytes, tool.steps, tool.edges)
        table.add_row(escape(tool.name), *(f"{number:,}" for number in counted))
    console.print(table)
    if found.alike:
        table = Table(_tool_column("tool"), _tool_column("and"), "why", title="A model may confuse")
        for pair in found.alike:
            table.add_row(*map(escape, pair.names), "; ".join(pair.reasons))
        console.print(table)
    for title in ("refused", "narrowed", "unsatisfiable"):
        rows = [(tool.name, finding) for tool in found.tools for finding in getattr(tool, title)]
        if rows:
            table = Table(_tool_column("tool"), "where", "what", title=title.capitalize())
            for owner, finding in rows:
                table.add_row(escape(owner), escape(describe_pointer(finding.pointer)), escape(finding.message))
            console.print(table)
    for tool in found.tools:
        for warning in tool.warnings:
            console.print(f"warning: {tool.name}: {warning}", style="yellow", markup=False)
    for kind in found.left_out:
        console.print(f"left out: a tool of the type {kind!r:.80}, which no model is shown", markup=False)


def _tool_column(title: str) -> Column:
    return Column(title, overflow="fold")


def _findings(tool: ToolFacts) -> dict[str, Any]:
    return {
        title: [finding._asdict() for finding in getattr(tool, title)]
        for title in ("refused", "narrowed", "unsatisfiable")
    }


def _load_counter(path: Path | None) -> tuple[Vocabulary, str]:
    """Returns the vocabulary whose tokens are counted, and a name for the unit."""
    from constrain.vocabulary.vocabulary import Vocabulary, byte_vocabulary

    if path is None:
        from constrain.llama.model import default_model_path

        try:
            path = default_model_path()
        except ModelError:  # without the demo extra, bytes are counted; the output names the unit
            return byte_vocabulary(), "bytes"
    return Vocabulary.from_gguf(path), f"tokens of {path.name}"


_SHOWN_PLACES = 3


def _print_check(console: Console, name: str, found: Check, unit: str) -> None:
    lint, report = found.lint, found.report
    enforced = (
        f"every keyword is enforced, {len(lint.narrowed)} narrowed"
        if lint.narrowed
        else "exact: every keyword is enforced"
    )
    verdict = enforced if lint.exact else f"{len(lint.refused)} refused"
    console.print(f"{name}: {verdict}", style="bold", markup=False, soft_wrap=True)
    if report is not None:
        table = Table("keyword", "times", "places", title="Enforced")
        for keyword, places in lint.enforced.items():
            more = ", ..." if len(places) > _SHOWN_PLACES else ""
            table.add_row(escape(keyword), str(len(places)), escape(", ".join(places[:_SHOWN_PLACES]) + more))
        console.print(table)
        table = Table("policy", "value", title="Policies")
        for name, value in report.policies.items():
            table.add_row(name, str(value))
        console.print(table)
        for warning in report.warnings:
            console.print(f"warning: {warning}", style="yellow", markup=False)
        console.print(
            f"{report.rules} rules with {report.states} states over {report.terminals} terminals, "
            f"{report.memory_bytes // 1024} KiB; the shortest answer has {report.min_tokens} and a typical one "
            f"{found.typical_tokens} {unit}",
            markup=False,
        )
    for title in ("refused", "narrowed", "unsatisfiable", "advice"):
        findings: tuple[Finding, ...] = getattr(lint, title)
        if findings:
            table = Table("rule", "where", "what", title=title.capitalize())
            for finding in findings:
                table.add_row(finding.rule, escape(describe_pointer(finding.pointer)), escape(finding.message))
            console.print(table)


def _as_json(name: str, found: Check, unit: str) -> dict[str, Any]:
    lint, report = found.lint, found.report

    def listed(findings: tuple[Finding, ...]) -> list[dict[str, str]]:
        return [finding._asdict() for finding in findings]

    return {
        "schema": name,
        "exact": lint.exact,
        "refused": listed(lint.refused),
        "narrowed": listed(lint.narrowed),
        "unsatisfiable": listed(lint.unsatisfiable),
        "advice": listed(lint.advice),
        "enforced": lint.enforced,
        "policies": None if report is None else dict(report.policies),
        "warnings": [] if report is None else report.warnings,
        "length": None
        if report is None
        else {"unit": unit, "shortest": report.min_tokens, "typical": found.typical_tokens},
        "automaton": None
        if report is None
        else {
            "rules": report.rules,
            "states": report.states,
            "terminals": report.terminals,
            "memory_bytes": report.memory_bytes,
        },
    }
