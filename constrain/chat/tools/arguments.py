"""Arguments of a call, validated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Arguments:
    """Validated arguments of a function tool.

    Attributes:
        text: the JSON object that they were read from.
        values: by the names of the function's parameters, those that were left out with their defaults; of a tool from
            JSON, by the keys of the object.
        args: what the function is given by position, after the context; ``kwargs``: what it is given by name.
    """

    text: str
    values: Mapping[str, Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
