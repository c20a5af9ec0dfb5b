"""MaskBench: how many of its schemas compile, what becomes of their instances, and the file that remembers it.

``python -m tests.maskbench`` prints the table and writes the file anew (CONSTRAIN_DATA must be set). Instances are
written as ``json.dumps`` does; whitespace="any", all other policies at their defaults.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import constrain
from tests.json_schema.official_suite import orders
from tests.support import byte_vocabulary, maskbench

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_ORDERS = 200
"""Orders of the keys of an instance that are tried."""

RATCHET = Path(__file__).parent / "data" / "maskbench.json"
REGENERATE = "CONSTRAIN_DATA=... python -m tests.maskbench"

WRONG_LABELS: dict[tuple[str, int], str] = {}
"""Instances, by schema and index, whose label is wrong, and why."""

WITHOUT_A_VALUE: dict[str, str] = {}
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
    if any(constraint.accepts(text_of(other)) for other in islice(orders(instance), MAX_ORDERS)):
        return EXPLANATIONS[0][0]
    for why, policies in EXPLANATIONS:
        try:
            constraint = _compile(schema, **policies)
        except (constrain.UnsupportedSchemaError, constrain.LimitError):
            continue
        if constraint.accepts(text_of(instance)):
            return why
    return ""


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
