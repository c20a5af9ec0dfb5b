"""A function's parameters: the ones that a caller of its tool fills in, and the context before them."""

from __future__ import annotations

import functools
import inspect
from inspect import Parameter
from typing import TYPE_CHECKING, Any

from constrain.chat.tools.annotations import innermost, is_context, mentions_context, resolve
from constrain.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CONTEXT_NAMES = ("ctx", "context")
"""Names that make a first parameter without annotation the context."""

_UNRESOLVED = (AttributeError, NameError, RecursionError, SyntaxError, TypeError, ValueError)
"""Errors that the evaluation of an annotation raises."""


def callers_parameters(
    function: Callable[..., Any], tool: str, names: Mapping[str, Any], *, is_method: bool = False
) -> tuple[list[Parameter], bool]:
    """Returns the parameters that a caller fills in, and whether a context precedes them. Raises ``ToolError``."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError, NameError) as error:
        raise ToolError(
            f"tool {tool!r}: the signature of {function!r} cannot be read ({error}); wrap it in a function of your own"
        ) from error
    given = function.keywords if isinstance(function, functools.partial) else {}
    parameters = [one for one in parameters[1 if is_method else 0 :] if one.name not in given]
    context = [one for one in parameters if _is_context(one, tool, function, names)]
    takes_context = bool(context)
    if context and (context[0] is not parameters[0] or not _is_positional(context[0]) or len(context) > 1):
        wrong = context[0] if context[0] is not parameters[0] or not _is_positional(context[0]) else context[1]
        raise ToolError(
            f"tool {tool!r}: parameter {wrong.name!r} is a context, which can only be the first parameter, given by "
            f"position; move it there, or annotate it with its type ({wrong.name}: Any) if the model is to fill it in"
        )
    return parameters[1 if takes_context else 0 :], takes_context


def _is_positional(parameter: Parameter) -> bool:
    return parameter.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def _is_context(parameter: Parameter, tool: str, function: Callable[..., Any], names: Mapping[str, Any]) -> bool:
    if parameter.annotation is Parameter.empty:
        return parameter.name in CONTEXT_NAMES and parameter.kind not in (
            Parameter.VAR_POSITIONAL,
            Parameter.VAR_KEYWORD,
        )
    annotation = resolve_annotation(parameter, tool, function, names)
    if mentions_context(annotation) and not is_context(annotation):
        raise ToolError(
            f"tool {tool!r}: parameter {parameter.name!r} has ToolContext inside its annotation; annotate the first "
            f"parameter with ToolContext[T] itself"
        )
    return is_context(annotation)


def resolve_annotation(parameter: Parameter, tool: str, function: Callable[..., Any], names: Mapping[str, Any]) -> Any:
    """Returns a parameter's annotation, evaluated; ``Any`` if it has none. Raises ``ToolError``."""
    if parameter.annotation is Parameter.empty:
        return Any
    try:
        return resolve(parameter.annotation, function, names)
    except _UNRESOLVED as error:
        raise ToolError(
            f"tool {tool!r}: the annotation of parameter {parameter.name!r} cannot be resolved ({error}); define what "
            f"it names before the tool, in the function's module or where the tool is made"
        ) from error


def keyword_names(function: Callable[..., Any]) -> frozenset[str]:
    """Returns the names by which a call can pass parameters other than ``**kwargs``."""
    kinds = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    names = {one.name for one in inspect.signature(innermost(function)).parameters.values() if one.kind in kinds}
    while isinstance(function, functools.partial):
        names |= set(function.keywords)
        function = function.func
    return frozenset(names)
