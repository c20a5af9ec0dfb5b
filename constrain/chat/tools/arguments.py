"""Validated arguments of a call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain.notebooks import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Arguments:
    """The validated arguments of a call of a ``FunctionTool``.

    Attributes:
        text: JSON text from which they were read.
        values: values by name of the parameter, with defaults for missing ones; for a tool from JSON, by key.
        args: positional arguments of the function, after the context.
        kwargs: keyword arguments of the function.
    """

    text: str
    values: Mapping[str, Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    __repr__ = one_line
