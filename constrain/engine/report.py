"""``Report``: the facts about a constraint."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from constrain.notebooks import one_line, table

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Report:
    """The facts about a constraint: policies, warnings and sizes.

    Attributes:
        policies: values of the policies that ``compile`` used, by name.
        digits: the most digits of numbers that are written, by name (see ``constrain.json_schema.numbers.canonical``);
            empty if there is no JSON Schema.
        warnings: facts that a reader of the schema should know, such as unknown keywords.
        split: terminals of a Lark grammar that are read byte by byte, by name and place, because their longest match
            could lead into a dead end: every way to divide a text among them counts. All others are read by the
            longest match.
        min_tokens: tokens of a shortest text.
        rules: number of rules of the grammar.
        states: number of states of all rules.
        terminals: number of terminals of the grammar.
        memory_bytes: bytes of the tables built so far.
        limited_masks: number of masks, of all matchers so far, without some allowed tokens, because a limit of the
            kernel was met; texts are complete nevertheless. ``Matcher.limited_masks`` counts those of one text.
    """

    policies: Mapping[str, str | bool] = field(repr=False)
    digits: Mapping[str, int] = field(repr=False)
    warnings: tuple[str, ...]
    split: tuple[str, ...]
    min_tokens: int
    rules: int
    states: int
    terminals: int
    memory_bytes: int
    limited_masks: int

    __repr__ = one_line

    def _repr_html_(self) -> str:
        """Returns a table of the facts for notebooks."""
        shown = {field.name: getattr(self, field.name) for field in fields(self)}
        shown["policies"] = ", ".join(f"{name}={value!r}" for name, value in self.policies.items())
        shown["digits"] = ", ".join(f"{name}={value!r}" for name, value in self.digits.items())
        shown["warnings"], shown["split"] = "; ".join(self.warnings), ", ".join(self.split)
        return table((name, fact) for name, fact in shown.items() if fact != "")

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles read-only mappings as dicts, because they cannot be pickled or copied themselves."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return _report_of, ({**values, "policies": dict(self.policies), "digits": dict(self.digits)},)


def _report_of(values: dict[str, Any]) -> Report:
    read_only = {name: MappingProxyType(values[name]) for name in ("policies", "digits")}
    return Report(**{**values, **read_only})


def digits_of(policies: Mapping[str, str | bool]) -> Mapping[str, int]:
    """Returns the most digits of numbers under the policies, by name."""
    if "precision" not in policies:
        return MappingProxyType({})
    from constrain.json_schema.numbers.canonical import digits_of as of_double

    return MappingProxyType(of_double(policies["precision"] == "double"))
