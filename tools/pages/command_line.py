"""Writes docs/reference/command-line.md: every command, argument and flag of the program ``constrain``.

The source are the signatures of the commands, which typer reads, too.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from typer.models import ArgumentInfo, Context

from constrain.arguments import meanings_of
from constrain.cli.program import app, main
from constrain.generation.exclusions import NAMES, RULES, describe
from constrain.server.config import ModelTable
from tools.pages.markdown import NOTE, cell, code, paragraphs, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from typer.models import OptionInfo

    from constrain.generation.exclusions import Rule

_HEADER = f"""# Command line

`constrain COMMAND --help` shows the same. Answers go to standard output and nothing else does; progress, warnings and
errors go to standard error. `constrain --version` prints the version.

{NOTE}
"""

_KINDS = {int: "integer", float: "number", str: "text", Path: "path"}


@dataclass(frozen=True)
class _Parameter:
    """A parameter of a command: its name in Python, its type, what typer is told about it, and its default."""

    name: str
    kind: Any
    info: ArgumentInfo | OptionInfo
    default: Any

    @property
    def is_argument(self) -> bool:
        return isinstance(self.info, ArgumentInfo)

    @property
    def flags(self) -> str:
        """All spellings of an option, the longest first; those that switch it off behind a slash."""
        # Within Annotated, typer keeps the first spelling where the default was once.
        given = (self.info.default, *(self.info.param_decls or ()))
        declared = [each for each in given if isinstance(each, str) and each.startswith("-")]
        if declared:
            return ", ".join(sorted(declared, key=len, reverse=True))
        dashed = self.name.replace("_", "-")
        return f"--{dashed}/--no-{dashed}" if self.types == {bool} else f"--{dashed}"

    @property
    def types(self) -> set[Any]:
        """The types of its values."""
        found = set(get_args(self.kind)) if get_origin(self.kind) in (Union, UnionType) else {self.kind}
        return {get_args(each)[0] if get_origin(each) is list else each for each in found - {NoneType}}

    @property
    def is_repeated(self) -> bool:
        return any(get_origin(each) is list for each in (self.kind, *get_args(self.kind)))

    @property
    def placeholder(self) -> str:
        """An argument as the usage shows it."""
        shown = self.info.metavar or self.name.upper()
        placed = shown if self.default is inspect.Parameter.empty else f"[{shown}]"
        return placed + "..." * self.is_repeated


def page() -> str:
    """Returns the text of the page."""
    known = dict(sorted(_commands()))
    rows = [
        (f"[`constrain {name}`](#constrain-{name})", cell(next(paragraphs(run.__doc__ or ""))))
        for name, run in known.items()
    ]
    parts = [_HEADER, table(("command", "does"), rows)]
    for name, run in known.items():
        parts += _described(name, run)
        if name == "serve":
            parts.append(_server_file())
    parts.append(exclusions((rule for rule in RULES if rule.flag), is_command=True))
    parts.append(f"\n## Exit status\n\n{_statuses()}")
    return "".join(parts)


def flags_of(command: str) -> dict[str, str]:
    """Returns the flags of a command by the names of its parameters."""
    return {each.name: each.flags for each in _parameters(dict(_commands())[command]) if not each.is_argument}


def exclusions(rules: Iterable[Rule], *, is_command: bool = False) -> str:
    """Returns a section about options that exclude or need each other; ``is_command``: on the command line."""

    def named(option: str) -> str:
        dashed = is_command and option.isidentifier() and option.islower()
        return NAMES.get(option) or (f"`--{option.replace('_', '-')}`" if dashed else f"`{option}`")

    rows = []
    for rule in rules:
        places = {"Python": rule.python, "requests, lines of a batch": rule.field, "command line": rule.flag}
        where = [] if is_command else [", ".join(place for place, message in places.items() if message)]
        rows.append([named(rule.option), describe(rule, named), cell(rule.why), *where])
    head = ("option", "rule", "reason", *([] if is_command else ["refused in"]))
    return f"\n## Options that exclude or need each other\n\n{table(head, rows)}"


def _commands() -> Iterator[tuple[str, Callable[..., Any]]]:
    for registered in app.registered_commands:
        assert registered.callback is not None
        yield registered.name or registered.callback.__name__, registered.callback


def _parameters(run: Callable[..., Any]) -> Iterator[_Parameter]:
    for parameter in inspect.signature(run, eval_str=True).parameters.values():
        if parameter.annotation is not Context:
            kind, info = get_args(parameter.annotation)[:2]
            yield _Parameter(parameter.name, kind, info, parameter.default)


def _described(name: str, run: Callable[..., Any]) -> Iterator[str]:
    parameters = list(_parameters(run))
    arguments = [each for each in parameters if each.is_argument]
    options = [each for each in parameters if not each.is_argument]
    usage = ["constrain", name, *(each.placeholder for each in arguments), *(["[OPTIONS]"] if options else [])]
    yield f"\n## constrain {name}\n\n"
    yield "\n\n".join(paragraphs(run.__doc__ or ""))
    yield f"\n\n```text\n{' '.join(usage)}\n```\n"
    if arguments:
        rows = [(code(each.placeholder), cell(each.info.help or "")) for each in arguments]
        yield f"\n{table(('argument', 'meaning'), rows)}"
    if options:
        described = [(code(each.flags), _values(each), _default(each), cell(each.info.help or "")) for each in options]
        yield f"\n{table(('option', 'value', 'default', 'meaning'), described)}"


def _server_file() -> str:
    """Returns the section about the configuration file of a server."""
    rows = [(code(name), cell(entry.partition(":")[2])) for name, entry in meanings_of(ModelTable).items()]
    about = "Its keys have the names of the flags, with underscores; the tables `[[models]]` have these:"
    return f"\n### server.toml\n\nThe file of `--config`. {about}\n\n{table(('key', 'meaning'), rows)}"


def _values(option: _Parameter) -> str:
    """Returns the values that an option takes; nothing for a flag."""
    if option.types == {bool}:
        return ""
    (kind,) = option.types
    shown = code(option.info.metavar) if option.info.metavar else _KINDS[kind]
    least, most = option.info.min, option.info.max
    if least is not None and most is not None:
        shown += f", {least:g} to {most:g}"
    elif least is not None:
        shown += f", {least:g} or more"
    return f"{shown}; any number of times" if option.is_repeated else shown


def _default(option: _Parameter) -> str:
    if isinstance(option.info.show_default, str):
        return option.info.show_default
    if option.default is inspect.Parameter.empty:
        return "required"
    if isinstance(option.default, bool):
        return code(option.flags.split("/")[not option.default]) if "/" in option.flags else ""
    return "" if option.default is None else f"{option.default}"


def _statuses() -> str:
    """Returns what the docstring of the program says about its exit status."""
    (told,) = [each for each in paragraphs(main.__doc__ or "") if each.startswith("Exit status:")]
    pairs = [each.strip().split(" ", 1) for each in told.removeprefix("Exit status:").rstrip(".").split(";")]
    return table(("status", "meaning"), [(number, cell(meaning)) for number, meaning in pairs], "rl")
