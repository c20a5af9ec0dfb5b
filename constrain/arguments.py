"""Arguments: how an option is declared, signatures for ``help``, and checks of integers and encodable texts."""

from __future__ import annotations

import contextlib
import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from operator import index
from typing import Any, NamedTuple, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


class Flag(NamedTuple):
    """A flag of the command line that gives an option.

    Attributes:
        about: meaning in one sentence.
        name: name, with underscores; an empty text for that of the option.
        sets: value that the flag stands for; ``None`` for a flag with a value.
        least: least value, where it is not that of the option; one below that stands for ``None``.
        default: default in words, where the program does not know it yet.
        metavar: name of the value.
        short: a second spelling, of one letter.
        check: function that returns the value to use.
    """

    about: str
    name: str = ""
    sets: object = None
    least: float | None = None
    default: str | None = None
    metavar: str | None = None
    short: str | None = None
    check: Callable[[Any], Any] | None = None


@dataclass(frozen=True, slots=True)
class Option:
    """The declaration of an option; the docstring of its group has the meaning.

    Attributes:
        default: value where none is given.
        least, most: range; ``None`` for no limit.
        neutral: value that leaves the model's own distribution unchanged; ``None`` for a detail of another option.
        above: whether ``least`` itself is out of range.
        choices: its values, if it is one of several texts.
        flags: flags of the command line.
        fields: fields of requests that give it, where their names are others.
        in_batch: whether lines of a batch may have it.
        annotation: its type, as the source has it.
    """

    default: Any = None
    least: float | None = None
    most: float | None = None
    neutral: float | None = None
    above: bool = False
    choices: tuple[str, ...] = ()
    flags: tuple[Flag, ...] = ()
    fields: tuple[str, ...] = ()
    in_batch: bool = True
    annotation: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether it is a whole number."""
        return self.annotation in ("int", "int | None")

    @property
    def is_number(self) -> bool:
        """Whether it is a number, whole or not."""
        return self.is_whole or self.annotation in ("float", "float | None")

    @property
    def may_be_none(self) -> bool:
        """Whether ``None`` is one of its values."""
        return self.annotation.endswith("| None") or self.annotation in ("Any", "object")

    @property
    def range(self) -> tuple[float | None, float | None]:
        """The least and the greatest value, for readers of requests."""
        return self.least, self.most

    def holds(self, value: float) -> bool:
        """Returns whether a value is in range."""
        low = self.least is None or (value > self.least if self.above else value >= self.least)
        return low and (self.most is None or value <= self.most) and math.isfinite(value)

    def describe(self) -> str:
        """Returns the range in words."""
        if self.least is not None and self.most is not None:
            return f"between {self.least} and {self.most}"
        return f"a finite number{f' above {self.least}' if self.above else f', {self.least} or more'}"


def option(default: Any, *flags: Flag, **declared: Any) -> Any:
    """Returns the field of a dataclass that declares an option; ``declared``: further attributes of ``Option``."""
    metadata = {"option": Option(default, flags=flags, **declared)}
    if isinstance(default, dict):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


def options_of(group: Any) -> dict[str, Option]:
    """Returns the options that a dataclass declares, by name."""
    found = {each.name: (each.metadata.get("option"), each.type) for each in fields(group)}
    return {name: replace(declared, annotation=str(kind)) for name, (declared, kind) in found.items() if declared}


def meanings_of(group: type) -> dict[str, str]:
    """Returns the entries under ``Attributes`` in the docstring of a class, by the names of the attributes."""
    listed = inspect.cleandoc(group.__doc__ or "").partition("Attributes:\n")[2].partition("\n\n")[0]
    entries = re.split(r"\n(?=    \w)", listed) if listed else []
    return {name: entry for entry in entries for name in entry.partition(":")[0].strip().split(", ")}


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
