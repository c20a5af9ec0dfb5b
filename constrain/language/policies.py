"""Policies: the options of ``compile`` and ``generate`` for JSON Schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CHOICES = {
    "whitespace": ("flexible", "compact", "any"),
    "property_order": ("schema", "any"),
    "formats": ("assert", "annotation", "strict"),
    "numbers": ("canonical", "any"),
    "precision": ("double", "decimal"),
    "escapes": ("canonical", "any"),
}
"""The values of each policy, the default first."""


POLICY_DEFAULTS = {policy: choices[0] for policy, choices in CHOICES.items()}
"""The default of each policy."""


class CompileOptions(TypedDict, total=False):
    """The keyword arguments of ``compile`` for JSON Schemas and types; ``help(constrain.compile)`` describes them."""

    whitespace: str
    property_order: str
    formats: str
    numbers: str
    precision: str
    escapes: str
    strict: bool
    registry: object
    sources: Mapping[str, str | Sequence[str]] | None


DEFAULTS: CompileOptions = {
    "whitespace": CHOICES["whitespace"][0],
    "property_order": CHOICES["property_order"][0],
    "formats": CHOICES["formats"][0],
    "numbers": CHOICES["numbers"][0],
    "precision": CHOICES["precision"][0],
    "escapes": CHOICES["escapes"][0],
    "strict": False,
    "registry": None,
    "sources": None,
}


def refuse_compile_options(options: CompileOptions, what: str) -> None:
    """Raises ValueError for options given with a language that is no JSON Schema (``what``: its name)."""
    defaults: Mapping[str, object] = DEFAULTS
    for name, value in options.items():
        if value != defaults[name]:
            raise ValueError(f"{name} applies to JSON Schemas only, but {what}")
