"""Flags of the command line, made from the declarations of options; and what flags exclude each other."""

from __future__ import annotations

import inspect
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from constrain.arguments import options_of
from constrain.generation.exclusions import broken_rules
from constrain.generation.options import Limits, Prompting, Reports
from constrain.language.policies import Compiling
from constrain.llama.decoding.sampling import Sampling

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.arguments import Flag, Option

_NO_LIMIT = 2**31 - 1
"""The greatest value of options that have no other; the help does not tell it."""


def refuse_together(**given: object) -> None:
    """Raises ``BadParameter`` for the first rule of the command line that options break: see ``broken_rules``."""
    for rule, other in broken_rules(**given):
        if rule.flag:
            raise typer.BadParameter(rule.flag.format(other=other), param_hint=rule.hint)


def one_of(choices: tuple[str, ...], about: str, *flags: str, default: str = "") -> Any:
    """Makes an option that takes one of several values; ``default`` says what it is without it, else the first."""

    def check(value: str | None) -> str | None:
        if value is not None and value not in choices:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(choices)}")
        return value

    shown = default or choices[0]
    return typer.Option(*flags, metavar="|".join(choices), callback=check, help=about, show_default=shown)


def takes(**groups: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replaces parameters of a command by the parameters of functions: the command receives the functions' results.

    ``takes(options=make)`` gives the command the parameters of ``make`` on the command line, and passes the result of
    ``make`` to its parameter ``options``.
    """

    def extend(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters
        shared = {name: inspect.signature(make, eval_str=True).parameters for name, make in groups.items()}

        @wraps(command)
        def extended(**given: Any) -> None:
            made = {name: make(**{each: given.pop(each) for each in shared[name]}) for name, make in groups.items()}
            command(**given, **made)

        listed = [parameter for name in own for parameter in shared.get(name, {name: own[name]}).values()]
        named = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in listed]
        extended.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
        extended.__annotations__ = {parameter.name: parameter.annotation for parameter in named}
        return extended

    return extend


def _spelled(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _typed(name: str, option: Option, flag: Flag) -> tuple[Any, Any, Any]:
    """Returns the type of a flag's value, what typer is told about it, and the value of a flag that is not given."""
    if flag.sets is not None:
        return bool, typer.Option(_spelled(name), help=flag.about), False
    if option.choices:
        first, own = option.choices[0], option.default
        default = "" if own == first else f"{own} for answers, else {first}"
        return str | None, one_of(option.choices, flag.about, default=default), None
    is_whole = "int" in option.annotation
    if not (is_whole or option.is_number):
        return bool, typer.Option(help=flag.about), option.default
    shown = flag.default or (None if option.default is None else str(option.default))
    info = typer.Option(
        _spelled(name),
        min=None if option.above else option.least if flag.least is None else flag.least,
        max=None if option.most == _NO_LIMIT else option.most,
        help=flag.about,
        show_default=shown or True,
    )
    return int | None if is_whole else float | None, info, None


def _reader(*groups: type, always: tuple[type, ...] = ()) -> Callable[..., Any]:
    """Returns a function for ``takes``: from flags to the options that they give.

    ``always``: groups of which options that are not given have their defaults, unless they have switches alone.
    """
    listed = [(group in always, name, each) for group in groups for name, each in options_of(group).items()]
    declared = [(name, each, flag) for _, name, each in listed for flag in each.flags]
    kept = {name: each.default for keeps, name, each in listed if keeps and any(f.sets is None for f in each.flags)}

    def read(**given: Any) -> dict[str, Any]:
        refuse_together(**{_spelled(name): value is not None and value is not False for name, value in given.items()})
        found = {**kept}
        for name, each, flag in declared:
            value = given[flag.name or name]
            if flag.sets is None and value is not None:
                found[name] = None if each.is_whole and each.least is not None and value < each.least else value
            elif flag.sets is not None and value:
                found[name] = flag.sets
        return found

    parameters = []
    for name, each, flag in declared:
        kind, info, unset = _typed(flag.name or name, each, flag)
        annotation: Any = Annotated[kind, info]
        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters.append(inspect.Parameter(flag.name or name, keyword, default=unset, annotation=annotation))
    read.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return read


policies = _reader(Compiling)
"""The policies for compiling schemas that were given."""

options = _reader(Limits, Sampling, Prompting, Reports, always=(Limits, Prompting))
"""The options of an answer, except the seed; those for sampling and probabilities only if given."""
