"""Flags of the command line, made from the declarations of options; and what flags exclude each other."""

from __future__ import annotations

import inspect
from dataclasses import is_dataclass, replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from constrain.arguments import options_of
from constrain.generation.exclusions import broken_rules
from constrain.generation.options import Limits, Prompting, Reports
from constrain.language.policies import Compiling
from constrain.llama.decoding.sampling import Sampling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from constrain.arguments import Flag, Option

_NO_LIMIT = 2**31 - 1
"""The greatest value of options that have no other; the help does not tell it."""


def refuse_together(**given: object) -> None:
    """Raises ``BadParameter`` for the first rule of the command line that options break: see ``broken_rules``."""
    for rule, message in broken_rules("flag", given):
        raise typer.BadParameter(message, param_hint=rule.hint)


def one_of(choices: tuple[str, ...]) -> Callable[[str | None], str | None]:
    """Returns the check of an option that takes one of several texts."""

    def check(value: str | None) -> str | None:
        if value is not None and value not in choices:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(choices)}")
        return value

    return check


def takes(**groups: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replaces parameters of a command by flags: the command receives what a class or function makes of their values.

    ``takes(language=Language)`` gives the command the fields of the dataclass ``Language`` on the command line, and
    passes an object to its parameter ``language``; of a function, the flags are its parameters.
    """

    def extend(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters
        shared = {name: {each.name: each for each in _parameters(make)} for name, make in groups.items()}

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


def _parameters(make: Any) -> Iterable[inspect.Parameter]:
    if not (isinstance(make, type) and is_dataclass(make)):
        return inspect.signature(make, eval_str=True).parameters.values()
    kinds = inspect.get_annotations(make, eval_str=True)
    return [make_parameter(name, each, each.flags[0], kinds[name]) for name, each in options_of(make).items()]


def only(group: type, *names: str) -> Callable[..., Any]:
    """Returns a function for ``takes``: an object of a class of which flags give some fields alone."""
    make = partial(group)
    make.__signature__ = inspect.Signature([each for each in _parameters(group) if each.name in names])  # type: ignore[attr-defined]
    return make


def make_parameter(name: str, option: Option, flag: Flag, kind: Any) -> inspect.Parameter:
    """Returns the parameter of a command that typer reads; ``kind``: type of its values, as a class has it."""
    spelled, unset = f"--{(flag.name or name).replace('_', '-')}", option.default
    if "/" not in spelled and ((kind is bool and unset) or bool in get_args(kind)):
        spelled += f"/--no-{spelled[2:]}"
    least, most = option.least if flag.least is None else flag.least, option.most
    metavar, check, shown = flag.metavar, flag.check, flag.default or True
    if option.choices:
        metavar, check, shown = "|".join(option.choices), one_of(option.choices), flag.default or option.choices[0]
    info = typer.Option(
        *(spelled, f"-{flag.short}") if flag.short else (spelled,),
        min=None if option.above else least,
        max=None if most == _NO_LIMIT else most,
        help=flag.about,
        metavar=metavar,
        callback=check,
        show_default=shown,
    )
    default = inspect.Parameter.empty if unset is ... else unset
    annotation: Any = Annotated[kind, info]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _of_answer(name: str, option: Option, flag: Flag) -> inspect.Parameter:
    """Returns the parameter for a flag of an option of answers: None, or False for a switch, if it is not given."""
    own, unset = option.default, None
    kind: Any = int | None if "int" in option.annotation else float | None if option.is_number else bool
    if flag.sets is not None:
        kind, unset = bool, False
    elif option.choices:
        kind, first = str | None, option.choices[0]
        flag = flag._replace(default=None if own == first else f"{own} for answers, else {first}")
    elif kind is bool:
        unset = own
    elif own is not None and flag.default is None:
        flag = flag._replace(default=str(own))
    return make_parameter(flag.name or name, replace(option, default=unset), flag, kind)


def _reader(*groups: type, always: tuple[type, ...] = (), without: tuple[str, ...] = ()) -> Callable[..., Any]:
    """Returns a function for ``takes``: from flags to the options of answers that they give.

    ``always``: groups of which options that are not given have their defaults, unless they have switches alone.
    ``without``: options that are left out.
    """
    found = ((group in always, name, each) for group in groups for name, each in options_of(group).items())
    listed = [each for each in found if each[1] not in without]
    declared = [(name, each, flag) for _, name, each in listed for flag in each.flags]
    kept = {name: each.default for keeps, name, each in listed if keeps and any(f.sets is None for f in each.flags)}

    def read(**given: Any) -> dict[str, Any]:
        asked = {f"--{name.replace('_', '-')}": value not in (None, False) for name, value in given.items()}
        refuse_together(**asked)
        found = {**kept}
        for name, each, flag in declared:
            value = given[flag.name or name]
            if flag.sets is None and value is not None:
                found[name] = None if each.is_whole and each.least is not None and value < each.least else value
            elif flag.sets is not None and value:
                found[name] = flag.sets
        return found

    read.__signature__ = inspect.Signature([_of_answer(*each) for each in declared])  # type: ignore[attr-defined]
    return read


policies = _reader(Compiling)
"""The policies for compiling schemas that were given."""

options = _reader(Limits, Sampling, Prompting, Reports, always=(Limits, Prompting))
"""The options of an answer, except the seed; those for sampling and probabilities only if given."""

options_without_tools = _reader(
    Limits, Sampling, Prompting, Reports, always=(Limits, Prompting), without=("tools_shown",)
)
"""The same, for an answer that calls nothing."""
