"""Validated arguments of a call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Arguments:
    """Validated arguments of a function tool.

    Attributes:
        text: JSON object that they were read from.
        values: values by parameter name, with defaults for missing ones; for a tool from JSON, by key of the object.
        args: positional arguments of the function, after the context.
        kwargs: keyword arguments of the function.
    """

    text: str
    values: Mapping[str, Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
