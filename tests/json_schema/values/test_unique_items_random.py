"""Random schemas with ``uniqueItems`` and few values: masks compared with an enumeration of all arrays there are."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

import pytest

import constrain
from tests.json_schema.values.test_unique_items import Case, arrays, check_masks, different, enum, unique

MOST_ARRAYS = 400
SCALARS = ("p", "q", "pq", "", None, True, False)


class Goal(NamedTuple):
    """A schema and all its values."""

    schema: dict[str, object]
    values: list[object]


class Maker:
    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def goal(self, depth: int) -> Goal:
        rng = self.rng
        kind = rng.random() if depth else 0
        if kind < 0.35:
            values = rng.sample(SCALARS, rng.randint(1, 3))
            return Goal(enum(*values), list(values))
        if kind < 0.6:
            return self.array(depth - 1, most=2, differ=rng.random() < 0.5)
        if kind < 0.8:
            return self.object(depth - 1)
        one, two = self.goal(depth - 1), self.goal(depth - 1)
        return Goal({"anyOf": [one.schema, two.schema]}, different([*one.values, *two.values]))

    def object(self, depth: int) -> Goal:
        rng = self.rng
        properties: dict[str, object] = {}
        required = []
        found: list[dict[str, object]] = [{}]
        for name in rng.sample(("a", "b"), rng.randint(1, 2)):
            member = self.goal(depth)
            properties[name] = member.schema
            longer = [{**members, name: value} for members in found for value in member.values]
            if rng.random() < 0.5:
                required.append(name)
                found = longer
            else:
                found += longer
        keywords = {"properties": properties, "required": required, "additionalProperties": False}
        return Goal({"type": "object", **keywords}, different(found))

    def array(self, depth: int, most: int, *, differ: bool) -> Goal:
        rng = self.rng
        prefix = [self.goal(depth) for _ in range(rng.choice((0, 0, 1, 2)))]
        rest = Goal({"not": {}}, []) if prefix and rng.random() < 0.3 else self.goal(depth)
        most = rng.randint(1, most)
        least = rng.choice((0, 0, 1, most))
        schema = {**unique(rest.schema, minItems=least, maxItems=most), "uniqueItems": differ}
        if prefix:
            schema["prefixItems"] = [goal.schema for goal in prefix]
        if differ and rng.random() < 0.2:  # until the values run out
            del schema["maxItems"]
            most = 9
        found = arrays([goal.values for goal in prefix], rest.values, least, most, differ=differ, limit=MOST_ARRAYS)
        return Goal(schema, list(found))


@pytest.mark.slow(only=("1",))
@pytest.mark.parametrize("block", range(5))
def test_random_schemas(block: int) -> None:
    checked = 0
    for seed in range(block * 20, block * 20 + 20):
        try:
            schema, values = Maker(Random(seed)).array(2, 3, differ=True)
        except OverflowError:
            continue
        try:
            check_masks(Case(schema, values))
        except constrain.UnsatisfiableSchemaError:
            assert not values, (seed, schema)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {schema}") from error
        else:
            assert values, (seed, schema)
            checked += 1
    assert checked >= 5
