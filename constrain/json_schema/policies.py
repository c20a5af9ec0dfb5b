"""The policies of ``compile_schema``: where the language is narrowed on purpose."""

from __future__ import annotations

from typing import NamedTuple

from constrain._errors import UnsupportedSchemaError

CHOICES = {
    "whitespace": ("flexible", "compact", "any"),
    "property_order": ("schema", "any"),
    "formats": ("assert", "annotation", "strict"),
    "numbers": ("canonical", "any"),
}

AVAILABLE_LATER = {("numbers", "any")}


class Policies(NamedTuple):
    """See ``compile_schema``."""

    whitespace: str
    property_order: str
    formats: str
    numbers: str
    close_objects: bool

    def check(self) -> None:
        """Raises ValueError for a value that no policy has, UnsupportedSchemaError for one not available yet."""
        for policy, choices in CHOICES.items():
            value = getattr(self, policy)
            if value not in choices:
                raise ValueError(f"{policy} must be one of {', '.join(map(repr, choices))}, not {value!r}")
            if (policy, value) in AVAILABLE_LATER:
                raise UnsupportedSchemaError(f"the policy {policy}={value!r} is not available yet")
