"""The annotations of a function's parameters: resolved where the function was defined, and the mark of a context."""

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
    """Marks the parameter that is given the context of a call."""


ToolContext = Annotated[_T, _ContextMark()]
"""``ctx: ToolContext[T]``: a tool's first parameter, given ``call(context=...)`` and not shown to the model."""


def is_context(annotation: Any) -> bool:
    """Is this ``ToolContext[...]``, or that or None?"""
    if get_origin(annotation) in (Union, types.UnionType):
        return any(is_context(part) for part in get_args(annotation))
    return any(isinstance(mark, _ContextMark) for mark in getattr(annotation, "__metadata__", ()))


def mentions_context(annotation: Any) -> bool:
    """Does ``ToolContext`` stand anywhere in this annotation?"""
    return is_context(annotation) or any(mentions_context(part) for part in get_args(annotation))


def innermost(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that was written: without ``partial``, binding to an object, and decorators that say what they wrap.

    Of an object that can be called, its ``__call__``.
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
    """Does calling it make a coroutine?"""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def names_around(function: Callable[..., Any], frame: FrameType | None) -> dict[str, Any]:
    """What a function's annotations may name beside its module's globals: locals of ``frame``, if it was defined there.

    ``frame`` is where the function is made a tool: the body of the function that defines it, or of its class.
    """
    written = innermost(function)
    scopes = getattr(written, "__qualname__", "").split(".")[:-1]
    names: dict[str, Any] = {}
    while frame is not None and frame.f_globals is getattr(written, "__globals__", None):
        if frame.f_code.co_name not in scopes:
            break
        names = {**frame.f_locals, **names}
        if frame.f_code.co_flags & inspect.CO_OPTIMIZED:  # the body of a function; that of a class stands in another
            break
        frame = frame.f_back
    return names


def resolve(annotation: Any, function: Callable[..., Any], names: Mapping[str, Any]) -> Any:
    """An annotation with all its references resolved. Raises NameError, and what evaluating it raises."""
    from typing_extensions import get_type_hints

    def holder() -> None: ...

    holder.__annotations__ = {"annotation": annotation}
    written = innermost(function)
    module = sys.modules.get(getattr(written, "__module__", None) or "")
    scope = getattr(written, "__globals__", None) or ({} if module is None else vars(module))
    # One scope, not two: a lambda in an annotation finds globals only.
    return get_type_hints(holder, {**scope, **names}, include_extras=True)["annotation"]
