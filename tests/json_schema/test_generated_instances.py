"""Random schemas and instances made for them: a text is accepted if and only if the instance is valid.

Schemas come from the generator of the mask oracle, here without a bound on their values and with more to say about
scalars; instances from hypothesis-jsonschema, which aims at the schema, from small changes of those, and from a pool.
Keys may stand in any order and values are spelled canonically, so that no policy plays a part. Two validators judge;
where they differ there is no verdict.

A failure names its seed: ``schema_of(seed)`` is the schema. ``python -m tests.json_schema.test_generated_instances``
writes the file of refusals anew.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from hypothesis_jsonschema import from_schema

import constrain
from tests.support import LONG, byte_vocabulary
from tests.support.judges import second_validation_error
from tests.support.judging import validation_error
from tests.support.oracles.schemas.cases import reason
from tests.support.oracles.schemas.generator import DRAFT_7, DRAFT_2020, Generator, Universe

RATCHET = Path(__file__).parents[1] / "data" / "generated_instances.json"
REGENERATE = "python -m tests.json_schema.test_generated_instances"

BLOCKS = 10
RECORDED_SEEDS = 120
SEEDS_PER_BLOCK = (1_500 if LONG else RECORDED_SEEDS) // BLOCKS
EXAMPLES = 6
"""Instances that hypothesis makes for a schema."""

MAX_FRACTION_DIGITS = 60
"""Numbers with longer fractions are outside of what numbers="canonical" spells."""

MAX_FLOAT_DIGITS = 308
"""Numbers with more digits before the point are outside of it, too, unless they are asserted to be integers."""

LEAVES: tuple[dict[str, Any], ...] = (
    {"type": "string", "format": "date"},
    {"type": "string", "format": "ipv4"},
    {"type": "string", "minLength": 3, "maxLength": 5},
    {"type": "string", "pattern": "^[a-z]+[0-9]{2,3}$"},
    {"type": "string", "pattern": "\\d", "maxLength": 4},
    {"pattern": "é|ü$", "minLength": 2},
    {"type": "number", "multipleOf": 0.01, "minimum": -1, "maximum": 1},
    {"type": "integer", "multipleOf": 7},
    {"type": "number", "exclusiveMinimum": 0.5, "exclusiveMaximum": 2.25},
    {"type": "integer", "minimum": -(10**20), "maximum": 10**20},
    {"enum": [1, "1", True, None, 1.5, [], {}, [1], {"a": 1}]},
    {"const": {"a": [1, {"b": None}]}},
    {"const": 0.1},
    {"enum": ["é", "\n", '"', "\\", "😀", ""]},
)

POOL: list[Any] = [
    *(None, True, False, 0, 1, 2, 3, 7, -1, 0.1, 0.5, 1.5, 0.37, 10**20, "", "a", "b", "ab", "abc", "é", "x12", "\n"),
    *("2024-02-29", "2023-02-29", "127.0.0.1", [], [0], [1, 1], [1, True], [0, 1, 2], [[1], [1.0]], ["a", "b"]),
    *(
        {},
        {"a": 0},
        {"b": 1},
        {"a": 1, "b": 1},
        {"c": "a", "ab": 0},
        {"a": {"a": 1}},
        {"a": 0, "b": 0, "ab": 0, "c": 0},
    ),
]


def schema_of(seed: int) -> dict[str, Any]:
    rng = Random(f"schema {seed}")
    kind = rng.choice(("arrays", "objects", "both"))
    keys = ("a",) if kind == "arrays" else ("b", "a", "ab", "c")
    universe = Universe(4, ("", "a", "ab"), (None, True), keys, 1 if kind == "objects" else 3, 1)
    draft_7 = rng.random() < 0.3
    generator = Generator(rng, universe, draft_7=draft_7, leaves=LEAVES)
    return {
        "$schema": DRAFT_7 if draft_7 else DRAFT_2020,
        "$defs": {"node": generator.schema(1, refer=False)},
        "allOf": [generator.schema(3)],
    }


def spell(value: Any) -> str | None:
    """The canonical text of a value; None for numbers that have none as a ``number``, which must be finite floats."""
    if isinstance(value, dict):
        items = [(json.dumps(key, ensure_ascii=False), spell(item)) for key, item in value.items()]
        return None if any(text is None for _, text in items) else f"{{{', '.join(f'{k}: {t}' for k, t in items)}}}"
    if isinstance(value, list):
        texts = [spell(item) for item in value]
        return None if any(text is None for text in texts) else f"[{', '.join(map(str, texts))}]"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**MAX_FLOAT_DIGITS:
        return None
    if isinstance(value, float):
        number = Decimal(repr(value))
        if number == number.to_integral_value():
            return spell(int(number))
        text = f"{number:f}"
        return text if len(text.partition(".")[2]) <= MAX_FRACTION_DIGITS else None
    return json.dumps(value, ensure_ascii=False)


def changed(rng: Random, value: Any) -> Any:
    """The value with something in it replaced, added, left out or doubled."""
    if isinstance(value, list) and value and rng.random() < 0.8:
        index = rng.randrange(len(value))
        new: list[list[Any]] = [
            [*value[:index], changed(rng, value[index]), *value[index + 1 :]],
            [*value[:index], *value[index + 1 :]],
            [*value[:index], value[index], *value[index:]],
            [*value, rng.choice(POOL)],
        ]
        return rng.choice(new)
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        rest = {name: item for name, item in value.items() if name != key}
        return rng.choice(
            [{**value, key: changed(rng, value[key])}, rest, {**value, rng.choice("abc"): rng.choice(POOL)}]
        )
    if isinstance(value, str) and rng.random() < 0.5:
        return rng.choice([value + "a", value[1:], value + "1", value.upper()])
    if isinstance(value, int) and not isinstance(value, bool) and rng.random() < 0.5:
        return value + rng.choice((-1, 1))
    return rng.choice(POOL)


class Tally(NamedTuple):
    """``verdicts`` counts (valid, by both validators), "disputed", and schemas of which "no instances" were made."""

    refused: dict[int, str]
    verdicts: Counter[bool | str]


class Subject:
    """A schema, its constraint, and the two validators' view of it."""

    def __init__(self, schema: dict[str, Any], constraint: constrain.Constraint | None, tally: Tally) -> None:
        self.schema = schema
        self.exact_schema = json.loads(json.dumps(schema), parse_float=Decimal)
        self.constraint = constraint
        self.tally = tally

    def check(self, value: Any) -> None:
        text = spell(value)
        if text is None:
            return
        data = text.encode()
        error, second = validation_error(self.exact_schema, data), second_validation_error(self.schema, data)
        if (error is None) != (second is None):
            self.tally.verdicts["disputed"] += 1
            return
        self.tally.verdicts[error is None] += 1
        accepted = self.constraint is not None and self.constraint.accepts(data)
        assert accepted == (error is None), (
            f"{text}: {'accepted' if accepted else 'rejected'}; {error or 'it is valid'}"
        )


def check_seed(seed: int, tally: Tally) -> None:
    schema, rng = schema_of(seed), Random(f"values {seed}")
    constraint = None
    try:
        constraint = constrain.compile(schema, byte_vocabulary(), property_order="any")
    except constrain.UnsatisfiableSchemaError:
        pass  # no value may be valid
    except (constrain.UnsupportedSchemaError, constrain.PatternError, constrain.LimitError) as error:
        tally.refused[seed] = reason(error)
        return
    subject = Subject(schema, constraint, tally)

    def check(value: Any) -> None:
        subject.check(value)
        for _ in range(2):
            value = changed(rng, value)
            subject.check(value)

    try:
        for value in rng.sample(POOL, 8):
            check(value)
        check_generated(schema, check, tally)
    except Exception as error:
        raise AssertionError(f"seed {seed}: {error}\n{json.dumps(schema)}") from error


def unfolded(schema: Any, node: Any) -> Any:
    """The schema with ``node`` in the place of references to it, and anything in the place of those inside of it."""
    if isinstance(schema, list):
        return [unfolded(item, node) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if isinstance(schema.get("$ref"), str):
        return node
    return {key: unfolded(value, node) for key, value in schema.items() if key not in ("$schema", "$defs")}


class WrongVerdictError(Exception):
    """Tells what the engine gets wrong from what the library that makes instances cannot do."""


def check_generated(schema: dict[str, Any], check: Any, tally: Tally) -> None:
    """Instances of hypothesis-jsonschema, which reads drafts up to 7 and overlooks newer keywords."""
    plain = unfolded(schema, unfolded(schema["$defs"]["node"], {}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        strategy = from_schema(plain, codec="utf-8")
        if strategy.is_empty:
            return

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def holds(value: Any) -> None:
        try:
            check(value)
        except Exception as error:
            raise WrongVerdictError(str(error)) from error

    try:
        holds()
    except WrongVerdictError:
        raise
    except Unsatisfiable:  # most often the schema has no value
        pass
    except Exception:  # noqa: BLE001 - of contradictory schemas the library makes strategies that fail in many ways
        tally.verdicts["no instances"] += 1


@pytest.fixture(scope="module")
def tally() -> Tally:
    return Tally({}, Counter())


@pytest.mark.slow
@pytest.mark.parametrize("block", range(BLOCKS))
def test_accepted_if_and_only_if_valid(block: int, tally: Tally) -> None:
    for seed in range(block * SEEDS_PER_BLOCK, (block + 1) * SEEDS_PER_BLOCK):
        check_seed(seed, tally)


@pytest.mark.slow
def test_enough_was_judged(tally: Tally) -> None:
    seen = tally.verdicts
    print(
        f"{seen[True]} valid, {seen[False]} invalid, {seen['disputed']} disputed, {len(tally.refused)} schemas refused"
    )
    assert seen[True] > 0.1 * seen.total()
    assert seen[False] > 0.1 * seen.total()
    assert seen["disputed"] < 0.01 * seen.total()
    assert seen["no instances"] < 0.001 * seen.total()
    assert seen.total() > (10_000 if LONG else 1_000)


@pytest.mark.slow
def test_refusals_are_as_recorded(tally: Tally) -> None:
    recorded = json.loads(RATCHET.read_text())
    reasons = Counter(why for seed, why in tally.refused.items() if seed < RECORDED_SEEDS)
    assert reasons.total() <= recorded["refused"], "more refusals than ever"
    assert reasons == recorded["reasons"], f"write them down: {REGENERATE}"


def main() -> None:
    tally = Tally({}, Counter())
    for seed in range(RECORDED_SEEDS):
        check_seed(seed, tally)
    reasons = Counter(tally.refused.values())
    written = {"schemas": RECORDED_SEEDS, "refused": reasons.total(), "reasons": dict(reasons.most_common())}
    RATCHET.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    print(RATCHET.read_text(), tally.verdicts)


if __name__ == "__main__":
    main()
