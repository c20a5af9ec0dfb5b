"""Checks of arguments: integers, encodable texts, the ``TypeError`` for a wrong type; and signatures for ``help``."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from operator import index
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def lists_options(options: type, defaults: Mapping[str, object], about: str = "") -> Callable[[Function], Function]:
    """Returns a decorator that lists the keys of a ``TypedDict`` in a signature, in place of ``**options``.

    ``help``, ``inspect.signature`` and notebooks then show and complete them, in the order of ``defaults``. Type
    checkers read ``Unpack`` instead. ``about``: text about the options, which is added to the docstring.
    """

    def decorate(function: Function) -> Function:
        written = inspect.signature(function)
        *own, _ = written.parameters.values()
        listed = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=default,
                annotation=options.__annotations__[name].__forward_arg__,
            )
            for name, default in defaults.items()
            if name in options.__annotations__
        ]
        function.__signature__ = written.replace(parameters=[*own, *listed])  # type: ignore[attr-defined]
        if about and function.__doc__:  # there is none with ``python -OO``
            function.__doc__ = f"{inspect.cleandoc(function.__doc__)}\n\n{about}"
        return function

    return decorate


def integer(name: str, value: Any) -> int:
    """Returns an integer argument as an ``int``; NumPy's integers count, ``bool`` does not. Raises TypeError.

    >>> integer("max_tokens", 7)
    7
    """
    if isinstance(value, bool):
        raise wrong_type(name, "an integer", value)
    try:
        return index(value)
    except TypeError as error:
        raise wrong_type(name, "an integer", value) from error


def wrong_type(name: str, wanted: str, value: object) -> TypeError:
    """Returns the ``TypeError`` for an argument of the wrong type."""
    return TypeError(f"{name} must be {wanted}, not {type(value).__name__}")


def model_then_prompt(function: Function) -> Function:
    """Decorates a function of a model and a prompt: a wrong order or number of the two raises a plain ``TypeError``."""
    name = function.__name__

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        if len(given) + ("model" in named) + ("prompt" in named) < 2:
            raise TypeError(
                f"{name}(model, prompt, schema=...) needs a model and a prompt, in this order; None is the demo model"
                + ("; messages are the prompt" if "messages" in named else "")
            )
        if (
            len(given) > 2
            or (given and isinstance(given[0], type))
            or (len(given) == 2 and (isinstance(given[1], type) or hasattr(given[1], "vocabulary")))
        ):
            raise TypeError(
                f"{name}(model, prompt, schema=...) takes the model first, then the prompt, and all else by name; "
                f"given are {', '.join(map(_kind, given))}"
            )
        return function(*given, **named)

    return call  # type: ignore[return-value]


def _kind(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return "a text" if isinstance(value, str) else f"a {type(value).__name__}"


@contextlib.contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Replaces the error of a package that is not installed by one that names the extra of this package with it."""
    try:
        yield
    except ModuleNotFoundError as error:
        message = f"{error.name} is missing; pip install 'constrain-llm[{extra}]'"
        raise ModuleNotFoundError(message, name=error.name) from error


def without_mark(text: str) -> str:
    """Returns a text without the byte order mark that some editors write at its beginning."""
    return text.removeprefix("\ufeff")


def lone_surrogate(text: str) -> tuple[int, str] | None:
    r"""Returns index and description of the first character that UTF-8 cannot encode; ``None`` if all can be.

    >>> lone_surrogate("a\ud800")
    (1, 'half of a surrogate pair (U+D800)')
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start, f"half of a surrogate pair (U+{ord(text[error.start]):04X})"
    return None
