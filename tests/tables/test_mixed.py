"""Tables and bounds by other fields in one schema: random schemas and walks, judged by an independent reader."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import constrain
from tests.json_schema.stages.judging import Schema, is_valid, read
from tests.json_schema.stages.test_walks import VOCABULARY, WIDE, Maker, walked
from tests.support import LONG

COLUMNS: dict[str, list[Any]] = {
    "words": ["a", "ab", "abc", 'q"', "12", "é", "x,y", ""],
    "integers": [-7, 0, 1, 2, 5, 12, 120, 10**9],
    "numbers": [0.5, 1, 1.25, -3, 12.75],
    "truths": [True, False],
    "days": ["2012-01-31", "2020-05-09", "2024-02-29", "1999-12-31"],
    "mixed": ["1", 1, True, "true", -2.5],
}


def rows(rng: Random) -> list[dict[str, Any]]:
    """Rows of three columns, some with gaps."""
    found = [
        {"u": rng.choice("ABC"), "v": rng.choice(["p", "pq", "q", "r", 's"']), "w": rng.choice([1, 2, 30])}
        for _ in range(rng.randint(2, 9))
    ]
    for row in found[1:] if rng.random() < 0.5 else ():
        if rng.random() < 0.15:
            row[rng.choice("uvw")] = None
    return found


class Mixed(Maker):
    """Makes schemas whose fields depend on each other, and on rows of tables."""

    def related(self) -> Schema:
        rng = self.rng
        made = super().related()
        fields, sources = {}, "ui"
        if rng.random() < 0.7:
            fields["t"] = {"x-one-of": {"table": rng.choice([*COLUMNS])}}
        if rng.random() < 0.3:
            fields["i"] = {"type": "integer", "x-one-of": {"table": "integers"}}
            if rng.random() < 0.5:  # a value of a table bounds another field
                fields["j"] = {"type": "integer", rng.choice(["minimum", "maximum"]): {"$data": "1/i"}}
        if rng.random() < 0.6:
            target = rng.choice("vw")
            given: dict[str, Any] = {"table": "rows", "column": target, "given": {"u": "1/u"}}
            fields |= {target: {"x-one-of": given}, "u": {"type": "string"}}
            if rng.random() < 0.5:  # a chain
                last, by = "vw".replace(target, ""), {target: f"1/{target}"}
                if rng.random() < 0.6:
                    by["u"] = "1/u"
                sources += target
                fields[last] = {"x-one-of": {"table": "rows", "column": last, "given": by}}
        if rng.random() < 0.3:
            fields["l"] = {"type": "array", "items": {"x-one-of": {"table": "words"}}, "maxItems": 2}
        listed = [*(made["properties"] | fields).items()]
        if rng.random() < 0.5:
            rng.shuffle(listed)
        required = [name for name in fields if rng.random() < 0.9 or name in sources]
        return {**made, "properties": dict(listed), "required": made["required"] + required}


def mixed_texts(
    seed: int, vocabulary: constrain.Vocabulary, count: int = 5
) -> tuple[Schema, list[str], dict[str, Any]] | None:
    """A random schema, finished texts, and the rows of its tables; ``None`` if it is refused."""
    rng = Random(seed)
    schema = Mixed(rng).schema()
    made = rows(rng)
    texts = walked(schema, rng, vocabulary, count, tables={**COLUMNS, "rows": made})
    lists = {name: [{"": value} for value in values] for name, values in COLUMNS.items()}
    return None if texts is None else (schema, texts, {**lists, "rows": made})


@pytest.mark.parametrize("vocabulary", [VOCABULARY, WIDE], ids=["bytes", "wide"])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_texts_have_values_of_tables_within_bounds(seed: int, vocabulary: constrain.Vocabulary) -> None:
    count = 3 if seed == 1 else 400 if LONG else 40
    judged = 0
    for number in range(count):
        found = mixed_texts(1000 * seed + number, vocabulary, 50 if LONG else 5)
        if found is not None:
            schema, texts, tables = found
            for text in texts:
                assert is_valid(schema, read(text), tables), (schema, text, tables["rows"])
                judged += 1
    assert judged > count
