"""Policies: the options of ``compile`` and ``generate`` for JSON Schemas.

A new policy is a row of CHOICES and of ABOUT, and a field of ``CompileOptions`` and of ``Policies``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CHOICES = {
    "whitespace": ("flexible", "compact", "any"),
    "property_order": ("schema", "any"),
    "formats": ("assert", "annotation", "strict"),
    "inexact": ("narrow", "refuse"),
    "numbers": ("canonical", "any"),
    "precision": ("double", "decimal"),
    "escapes": ("canonical", "any"),
    "years": ("any", "1000-2999"),
    "integers": ("any", "64-bit"),
}
"""The values of each policy; the first is the default, but for GENERATION."""

GENERATION = {"years": "1000-2999", "integers": "64-bit"}
"""The defaults of generation that differ from those of ``compile``."""

ABOUT = {
    "whitespace": "The white space between the parts of the JSON text.",
    "property_order": "The order of the keys of an object.",
    "formats": "Whether the keyword format is enforced.",
    "inexact": "Whether a format that cannot be enforced exactly is narrowed or refused.",
    "numbers": "How numbers are spelled.",
    "precision": "Whether numbers are valid as doubles and as decimals, or only as decimals.",
    "escapes": "How the characters of strings and keys are spelled.",
    "years": "The years of dates (formats date and date-time), on each side that the schema leaves open.",
    "integers": "The size of integers, on each side that the schema leaves open.",
}
"""The subject of each policy."""

POLICY_DEFAULTS = {policy: choices[0] for policy, choices in CHOICES.items()}
"""The default of each policy."""


def policy_defaults(*, close_objects: bool) -> dict[str, str]:
    """Returns the default of each policy; ``close_objects``: in generation."""
    return POLICY_DEFAULTS | GENERATION if close_objects else POLICY_DEFAULTS


class CompileOptions(TypedDict, total=False):
    """The keyword arguments of ``compile`` for JSON Schemas and types; ``help(constrain.compile)`` describes them."""

    whitespace: str
    property_order: str
    formats: str
    inexact: str
    numbers: str
    precision: str
    escapes: str
    years: str
    integers: str
    strict: bool
    registry: object
    sources: Mapping[str, str | Sequence[str]] | None


DEFAULTS: CompileOptions = {
    **POLICY_DEFAULTS,  # type: ignore[typeddict-item]
    "strict": False,
    "registry": None,
    "sources": None,
}


class Policies(NamedTuple):
    """The policies of one compilation, and whether objects may have only keys that the schema names."""

    whitespace: str
    property_order: str
    formats: str
    inexact: str
    numbers: str
    precision: str
    escapes: str
    years: str
    integers: str
    close_objects: bool

    def check(self) -> None:
        """Raises ValueError for an unknown value of a policy."""
        for policy, choices in CHOICES.items():
            value = getattr(self, policy)
            if value not in choices:
                raise ValueError(f"{policy} must be one of {', '.join(map(repr, choices))}, not {value!r}")


def refuse_compile_options(options: CompileOptions, what: str, *, close_objects: bool = True) -> None:
    """Raises ValueError for options given with a language that is no JSON Schema.

    ``what``: its name. ``close_objects``: whether the defaults of generation, which change nothing, may be given, too.
    """
    defaults: Mapping[str, object] = DEFAULTS
    own = policy_defaults(close_objects=close_objects)
    for name, value in options.items():
        if value not in (defaults[name], own.get(name, defaults[name])):
            raise ValueError(f"{name} applies to JSON Schemas only, but {what}")
