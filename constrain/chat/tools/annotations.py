"""Annotations of a function's parameters: evaluation in the scope of the function, and the mark of a context."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args, get_origin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _ContextMark:
    """Marks the parameter that receives the context of a call."""


ToolContext = Annotated[_T, _ContextMark()]
"""``ctx: ToolContext[T]``: a tool's first parameter; it receives ``call(context=...)`` and is hidden from the model."""


def is_context(annotation: Any) -> bool:
    """Returns whether an annotation is ``ToolContext[...]``, or the union of it and None."""
    if get_origin(annotation) in (Union, types.UnionType):
        return any(is_context(part) for part in get_args(annotation))
    return any(isinstance(mark, _ContextMark) for mark in getattr(annotation, "__metadata__", ()))


def mentions_context(annotation: Any) -> bool:
    """Returns whether ``ToolContext`` occurs anywhere in an annotation."""
    return is_context(annotation) or any(mentions_context(part) for part in get_args(annotation))


def innermost(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function inside ``partial``, bound methods, and decorators that use ``functools.wraps``.

    For a callable object, returns its ``__call__``.
    """
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif inspect.ismethod(function):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = inspect.unwrap(function)
        elif inspect.isroutine(function):
            return function
        else:
            function = type(function).__call__


def is_async(function: Callable[..., Any]) -> bool:
    """Returns whether a call of the function makes a coroutine."""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def names_around(function: Callable[..., Any], frame: FrameType | None) -> dict[str, Any]:
    """Returns names in addition to a function's globals that its annotations may use: locals of ``frame``.

    ``frame`` is where the function becomes a tool: the body of the function that defines it, or of its class. The
    result is empty if the function was defined elsewhere.
    """
    written = innermost(function)
    scopes = getattr(written, "__qualname__", "").split(".")[:-1]
    names: dict[str, Any] = {}
    while frame is not None and frame.f_globals is getattr(written, "__globals__", None):
        if frame.f_code.co_name not in scopes:
            break
        names = {**frame.f_locals, **names}
        if (
            frame.f_code.co_flags & inspect.CO_OPTIMIZED
        ):  # the body of a function; a class body needs the frame around it
            break
        frame = frame.f_back
    return names


def resolve(annotation: Any, function: Callable[..., Any], names: Mapping[str, Any]) -> Any:
    """Evaluates an annotation with all its references. Raises NameError, and any error of the evaluation."""
    from typing_extensions import get_type_hints

    def holder() -> None: ...

    holder.__annotations__ = {"annotation": annotation}
    written = innermost(function)
    module = sys.modules.get(getattr(written, "__module__", None) or "")
    scope = getattr(written, "__globals__", None) or ({} if module is None else vars(module))
    # One scope, not two: a lambda in an annotation sees globals only.
    return get_type_hints(holder, {**scope, **names}, include_extras=True)["annotation"]
