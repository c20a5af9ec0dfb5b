"""The policies of ``compile_schema``, which narrow the language on purpose."""

from __future__ import annotations

from typing import NamedTuple

from constrain.language.policies import CHOICES


class Policies(NamedTuple):
    """The policies of one compilation: see ``compile_schema``."""

    whitespace: str
    property_order: str
    formats: str
    numbers: str
    precision: str
    escapes: str
    close_objects: bool

    def check(self) -> None:
        """Raises ValueError for an unknown value of a policy."""
        for policy, choices in CHOICES.items():
            value = getattr(self, policy)
            if value not in choices:
                raise ValueError(f"{policy} must be one of {', '.join(map(repr, choices))}, not {value!r}")
