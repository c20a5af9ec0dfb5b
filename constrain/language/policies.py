"""Policies: the options of ``compile`` and ``generate`` for JSON Schemas.

A new policy is a field of ``Compiling``, of ``CompileOptions`` and of ``Policies``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from constrain.arguments import Flag, option, options_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def _policy(about: str, *choices: str, generation: str | None = None) -> Any:
    return option(generation or choices[0], Flag(about), choices=choices)


@dataclass(frozen=True, slots=True)
class Compiling:
    """How JSON Schemas and types are compiled; the defaults are those of generation.

    Attributes:
        years: ``"1000-2999"`` (the default), or ``"any"``: the years of dates where the schema does not bound them.
        integers: ``"64-bit"`` (the default), or ``"any"``: the size of integers on each side without a bound.
        whitespace, property_order, formats, inexact, numbers, precision, escapes: as for ``compile``; for JSON Schemas
            and types only, as are all of this group.
        strict: whether the schema must keep the structural rules of OpenAI's strict mode (``False``); a ``SchemaError``
            lists all that it breaks. ``strict_schema`` makes a schema keep them.
        registry: a mapping from URIs to schemas, such as a ``referencing.Registry``, for references that leave the
            schema and for metaschemas of your own. Nothing is ever fetched.
        sources: texts that strings with ``constrain.Quote`` (or the keyword ``x-quote``) are quoted from, by name: each
            is a text or a list of texts. The user's messages are the source ``"prompt"``, from which quotes come that
            name no source.
        tables: tables whose values are those of fields with ``constrain.OneOf`` (or the keyword ``x-one-of``), by name:
            each is a ``constrain.Table``, or the values for one, which are then read for this call.
    """

    whitespace: str = _policy("The white space between the parts of the JSON text.", "flexible", "compact", "any")
    property_order: str = _policy("The order of the keys of an object.", "schema", "any")
    formats: str = _policy("Whether the keyword format is enforced.", "assert", "annotation", "strict")
    inexact: str = _policy(
        "Whether a format that cannot be enforced exactly is narrowed or refused.", "narrow", "refuse"
    )
    numbers: str = _policy("How numbers are spelled.", "canonical", "any")
    precision: str = _policy(
        "Whether numbers are valid as doubles and as decimals, or only as decimals.", "double", "decimal"
    )
    escapes: str = _policy("How the characters of strings and keys are spelled.", "canonical", "any")
    years: str = _policy(
        "The years of dates (formats date and date-time), on each side that the schema leaves open.",
        "any",
        "1000-2999",
        generation="1000-2999",
    )
    integers: str = _policy(
        "The size of integers, on each side that the schema leaves open.", "any", "64-bit", generation="64-bit"
    )
    strict: bool = option(False, Flag("Refuse schemas that OpenAI's strict mode refuses.", sets=True))
    registry: object = option(None)
    sources: Mapping[str, str | Sequence[str]] | None = option(None)
    tables: Mapping[str, Any] | None = option(None)


_OPTIONS = options_of(Compiling)

CHOICES = {name: each.choices for name, each in _OPTIONS.items() if each.choices}
"""The values of each policy; the first is the default, but for GENERATION."""

GENERATION = {name: _OPTIONS[name].default for name in CHOICES if _OPTIONS[name].default != CHOICES[name][0]}
"""The defaults of generation that differ from those of ``compile``."""

ABOUT = {name: _OPTIONS[name].flags[0].about for name in CHOICES}
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
    tables: Mapping[str, Any] | None


DEFAULTS: CompileOptions = {name: POLICY_DEFAULTS.get(name, each.default) for name, each in _OPTIONS.items()}  # type: ignore[assignment]


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


DEFAULT_POLICIES = Policies(**policy_defaults(close_objects=True), close_objects=True)
"""The policies of answers for which the caller names none."""


def refuse_compile_options(options: CompileOptions, what: str, *, close_objects: bool = True) -> None:
    """Raises ValueError for options given with a language that is no JSON Schema.

    ``what``: its name. ``close_objects``: whether the defaults of generation, which change nothing, may be given, too.
    """
    defaults: Mapping[str, object] = DEFAULTS
    own = policy_defaults(close_objects=close_objects)
    for name, value in options.items():
        if value not in (defaults[name], own.get(name, defaults[name])):
            raise ValueError(f"{name} applies to JSON Schemas only, but {what}")
