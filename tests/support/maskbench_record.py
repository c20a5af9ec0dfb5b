"""MaskBench: how many of its schemas compile, what becomes of their instances, and the file that remembers it.

``python -m tests.support.maskbench_record`` prints the table and writes the file anew (CONSTRAIN_DATA must be set).
Instances are written as ``json.dumps`` does; whitespace="any", all other policies at their defaults.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import constrain
from tests.support import byte_vocabulary, maskbench

MAX_TRIES = 20_000
"""Members that are tried at all places of one instance together."""

RATCHET = Path(__file__).parents[1] / "data" / "maskbench.json"
REGENERATE = "CONSTRAIN_DATA=... python -m tests.support.maskbench_record"

WRONG_LABELS: dict[tuple[str, int], str] = {}
"""Instances, by schema and index, whose label is wrong, and why."""

WITHOUT_A_VALUE: dict[str, str] = dict.fromkeys(
    (
        *("Glaiveai2K---calculate_area_2f92f3ea", "Glaiveai2K---calculate_area_4493ae68"),
        *("Glaiveai2K---calculate_area_95058385", "Glaiveai2K---calculate_area_d402e1cc"),
        *("Glaiveai2K---calculate_area_e6818129", "Glaiveai2K---calculate_area_e8f1513d"),
        *("Glaiveai2K---calculate_area_f88fb53c", "Glaiveai2K---calculate_area_f8e04f89"),
    ),
    "the measures of all shapes are required, and oneOf asks for those of one shape alone",
)
"""Schemas that no value satisfies, and why."""

EXPLANATIONS: tuple[tuple[str, dict[str, str]], ...] = (
    ("keys in another order", {"property_order": "any"}),
    ("a format", {"property_order": "any", "formats": "annotation"}),
    ("the spelling of a number", {"property_order": "any", "numbers": "any"}),
)
"""Policies under which a valid instance may be accepted that is rejected by default."""


class Entry(NamedTuple):
    """What became of one schema. ``refused``: the reason; ``empty``: it is said to have no value."""

    id: str
    refused: str = ""
    pointer: str = ""
    empty: bool = False
    valid: int = 0
    invalid: int = 0
    rejected: tuple[tuple[int, str], ...] = ()
    """Valid instances, by index, that are rejected, and what explains it ("" if nothing does)."""
    accepted: tuple[int, ...] = ()
    """Invalid instances that are accepted."""


def measure(entry: dict[str, Any]) -> Entry:
    """Compiles one schema and tries all its instances."""
    try:
        constraint = _compile(entry["schema"])
    except constrain.UnsatisfiableSchemaError as error:
        return Entry(entry["id"], str(error), error.pointer or "", empty=True)
    except constrain.ConstrainError as error:
        return Entry(entry["id"], reason(error), error.pointer or "")
    count = Counter[bool]()
    rejected, accepted = [], []
    for number, test in enumerate(entry["tests"]):
        valid = test["valid"] != ((entry["id"], number) in WRONG_LABELS)
        count[valid] += 1
        fits = constraint.accepts(text_of(test["data"]))
        if valid and not fits:
            rejected.append((number, explain(entry["schema"], test["data"], constraint)))
        elif fits and not valid:
            accepted.append(number)
    return Entry(
        entry["id"], valid=count[True], invalid=count[False], rejected=tuple(rejected), accepted=tuple(accepted)
    )


def _compile(schema: object, **policies: Any) -> constrain.Constraint:
    return constrain.compile(schema, byte_vocabulary(), whitespace="any", **policies)


def text_of(instance: object) -> bytes:
    return json.dumps(instance, ensure_ascii=False).encode("utf-8", "surrogatepass")


def explain(schema: object, instance: object, constraint: constrain.Constraint) -> str:
    """The policy under which a valid instance is accepted; empty if there is none."""
    if InSomeOrder(constraint).accepts(instance) or InSomeOrder(constraint, schema).accepts(instance):
        return EXPLANATIONS[0][0]
    for why, policies in EXPLANATIONS:
        try:
            constraint = _compile(schema, **policies)
        except (constrain.UnsupportedSchemaError, constrain.LimitError):
            continue
        if constraint.accepts(text_of(instance)):
            return why
    if "draft-04" in str(schema) and InSomeOrder(constraint).accepts(_without_fractions(instance)):
        return "a fraction that draft 4 may take for an integer"
    return ""


def _without_fractions(value: Any) -> Any:
    """Returns a value with ``1`` in place of ``1.0``."""
    if isinstance(value, dict):
        return {key: _without_fractions(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_without_fractions(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


class InSomeOrder:
    """Looks for an order of an instance's keys that a constraint over bytes accepts, one member after the other.

    Keys are tried in the order of the instance, or in that in which the text of a ``schema`` has them first.
    """

    def __init__(self, constraint: constrain.Constraint, schema: object = None) -> None:
        self.matcher = constraint.matcher()
        self.schema = json.dumps(schema)
        self.tries = 0

    def accepts(self, instance: object) -> bool:
        return self._value(instance) and self.matcher.is_accepting

    def _text(self, text: str) -> bool:
        data = text.encode("utf-8", "surrogatepass")
        read = self.matcher.accept_many(list(data))
        if read < len(data):
            self.matcher.rollback(read)
        return read == len(data)

    def _value(self, value: object) -> bool:
        """Reads a value, or nothing."""
        before = self.matcher.n_accepted
        if isinstance(value, dict):
            read = self._text("{") and self._members(value, "") and self._text("}")
        elif isinstance(value, list):
            commas = ("", *[", "] * (len(value) - 1))
            read = self._text("[") and all(
                self._text(comma) and self._value(item) for comma, item in zip(commas, value, strict=False)
            )
            read = read and self._text("]")
        else:
            return self._text(json.dumps(value, ensure_ascii=False))
        if not read:
            self.matcher.rollback(self.matcher.n_accepted - before)
        return read

    def _members(self, members: dict[str, object], comma: str) -> bool:
        """Reads the members in some order after which the object may end, or nothing."""
        if not members:
            return self.matcher.fork().accept(ord("}"))
        before = self.matcher.n_accepted
        for key, value in sorted(members.items(), key=lambda member: self.schema.find(json.dumps(member[0]) + ": ")):
            self.tries += 1
            if self.tries > MAX_TRIES:
                return False
            rest = {name: item for name, item in members.items() if name != key}
            key_read = self._text(f"{comma}{json.dumps(key, ensure_ascii=False)}: ")
            if key_read and self._value(value) and self._members(rest, ", "):
                return True
            self.matcher.rollback(self.matcher.n_accepted - before)
        return False


def reason(error: constrain.ConstrainError) -> str:
    """What an error says, without what belongs to the single schema."""
    message = re.sub(r"'(?:[^'\\]|\\.)*'(?:\.\.\.)?|\"(?:[^\"\\]|\\.)*\"", "...", error.message)
    message = re.sub(r"^branches \d+ and \d+", "two branches", message)
    message = re.sub(r", column \d+", "", message)
    return f"{type(error).__name__}: {message}"


def measure_all(entries: Iterable[dict[str, Any]]) -> list[Entry]:
    return [measure(entry) for entry in entries]


def table(entries: list[Entry]) -> str:
    """The totals, and every reason for a refusal with its number of schemas."""
    refused = Counter(entry.refused for entry in entries if entry.refused and not entry.empty)
    satisfiable = sum(not entry.empty for entry in entries)
    compiled = satisfiable - refused.total()
    valid, invalid = sum(entry.valid for entry in entries), sum(entry.invalid for entry in entries)
    rejected = Counter(why or "NOT EXPLAINED" for entry in entries for _, why in entry.rejected)
    lines = [
        f"{len(entries)} schemas, {len(entries) - satisfiable} of them without a value",
        f"{compiled} of {satisfiable} others compile: {compiled / satisfiable:.2%}",
        f"{sum(len(entry.accepted) for entry in entries)} of {invalid} invalid instances accepted",
        f"{rejected.total()} of {valid} valid instances rejected: {rejected.total() / max(valid, 1):.2%}",
        *(f"  {count:5} {why}" for why, count in rejected.most_common()),
        f"{refused.total()} schemas refused:",
        *(f"  {count:5} {why}" for why, count in refused.most_common()),
    ]
    return "\n".join(lines)


# The file: ids by reason.


def record(entries: list[Entry]) -> dict[str, Any]:
    refused: dict[str, list[str]] = defaultdict(list)
    for entry in entries:
        if entry.refused and not entry.empty:
            refused[entry.refused].append(entry.id)
    return {
        "table": table(entries).splitlines(),
        "refused": {why: sorted(ids) for why, ids in sorted(refused.items(), key=lambda item: -len(item[1]))},
        "without a value": {entry.id: entry.refused for entry in entries if entry.empty},
        "rejected": {f"{entry.id} {number}": why for entry in entries for number, why in entry.rejected},
    }


def main() -> None:
    entries = measure_all(maskbench())
    written = record(entries)
    RATCHET.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print("\n".join(written["table"]))


if __name__ == "__main__":
    main()
