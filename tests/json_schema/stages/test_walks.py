"""Random schemas with ``$data``, and random walks over their masks: every finished text is judged, none gets stuck."""

from __future__ import annotations

import json
import shutil
import subprocess
from itertools import cycle, islice
from pathlib import Path
from random import Random
from typing import Any

import pytest

import constrain
from constrain import SchemaError
from tests.json_schema.stages.judging import Schema, is_valid, read
from tests.support import LONG, allowed, byte_vocabulary

VOCABULARY = byte_vocabulary()
END = VOCABULARY.eos[0]
_MERGED = (
    b'":"',
    b'",',
    b'","',
    b'":[',
    b'":["',
    b'"],"',
    b'".',
    b'":"<',
    b"ab",
    b"12",
    b"20",
    b'":-',
    b"},{",
    b'"}',
    b'"]}',
)
WIDE = constrain.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), b"", *_MERGED], eos=[END])
"""Bytes, and tokens in which values begin or end."""

MAX_BYTES = 400


def data(pointer: str) -> Schema:
    return {"$data": pointer}


class Maker:
    """Makes schemas whose fields depend on each other."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.items: Schema = {}

    def schema(self) -> Schema:
        """A whole schema: an object of related fields, alone or inside of something else."""
        rng = self.rng
        inner = self.related()
        match rng.randrange(8):
            case 0:
                schema: Schema = {"type": "array", "items": inner, "maxItems": 3}
                if rng.random() < 0.3:
                    schema |= {"prefixItems": [{"type": "boolean"}], "minItems": rng.randrange(3)}
            case 1:
                schema = {"type": "object", "properties": {"x": inner, "y": self.plain("integer")}, "required": ["x"]}
            case 2:
                schema = {"$ref": "#/$defs/R", "$defs": {"R": inner}}
            case 3:
                schema = {"anyOf": [inner, {"type": "boolean"}]}
            case 4:
                schema = {
                    "type": "object",
                    "properties": {"rs": {"type": "array", "items": {"$ref": "#/$defs/R"}, "maxItems": 2}},
                    "required": ["rs"],
                    "$defs": {"R": inner},
                }
            case 5:
                others = [self.related(), self.related()]
                for name, each in zip("pq", others, strict=True):
                    each["properties"] = {"kind": {"const": name}, **each["properties"]}
                    each["required"] += ["kind"]
                schema = {"type": "array", "items": {"oneOf": others}, "maxItems": 2}
            case _:
                schema = inner
        return schema

    def related(self) -> Schema:
        """An object with two to four fields, some of which bound others."""
        rng = self.rng
        kind = rng.choice(["integer", "integer", "number", "date", "time", "date-time", "string", "count", "items"])
        names = rng.sample("abcd", rng.randint(2, 4))
        fields: dict[str, Schema] = {}
        optional: set[str] = set()
        for number, name in enumerate(names):
            field = self.field(kind, number)
            if number and rng.random() < 0.8:
                field |= self.bound(kind, rng.choice(names[:number]))
            if number == len(names) - 1 and rng.random() < 0.4:
                if rng.random() < 0.5:
                    optional.add(name)
                else:
                    field = {"anyOf": [field, {"type": "null"}]}
            fields[name] = field
        order = sorted(fields) if rng.random() < 0.5 else names
        return {
            "type": "object",
            "properties": {name: fields[name] for name in order},
            "required": [name for name in order if name not in optional],
        }

    def plain(self, kind: str) -> Schema:
        rng = self.rng
        field: Schema = {"type": kind}
        if rng.random() < 0.5:
            field["minimum"] = rng.randint(-3, 3)
        if rng.random() < 0.5:
            field["maximum"] = rng.randint(3, 12)
        if rng.random() < 0.15:
            field["multipleOf"] = rng.choice([2, 3])
        return field

    def field(self, kind: str, number: int) -> Schema:
        """The own schema of a field."""
        rng = self.rng
        if kind in ("integer", "number"):
            return self.plain(kind)
        if kind == "string":
            return {"type": "string", "maxLength": rng.randint(1, 6)} | ({"minLength": 1} if rng.random() < 0.3 else {})
        if kind == "count":
            if not number:
                return {"type": "integer", "minimum": 0, "maximum": rng.randint(1, 3)}
            return {"type": "array", "items": {"type": "boolean"}}
        if kind == "items":
            items: Schema = {"type": rng.choice(["string", "integer"])} if not number else {}
            self.items = items or self.items
            return {"type": "array", "items": items, "maxItems": 3} if not number else dict(self.items)
        field: Schema = {"type": "string", "format": kind}
        texts = {"date": "20{}-05-09", "time": "1{}:00:30Z", "date-time": "20{}-05-09T10:00:00Z"}
        if rng.random() < 0.3:
            field["formatMinimum"] = texts[kind].format(rng.randint(0, 4) if kind == "time" else rng.randint(10, 14))
        if rng.random() < 0.3:
            field["formatMaximum"] = texts[kind].format(rng.randint(5, 9) if kind == "time" else rng.randint(15, 29))
        return field

    def bound(self, kind: str, name: str) -> Schema:
        """A keyword that points at another field."""
        rng = self.rng
        pointer = data(f"1/{name}")
        if kind == "string":
            return {"const": pointer}
        if kind == "count":
            return dict.fromkeys(rng.choice([["minItems"], ["maxItems"], ["minItems", "maxItems"]]), pointer)
        if kind == "items":
            return {"enum": pointer}
        if kind == "integer" and rng.random() < 0.15:
            return {"const": pointer}
        keyword = rng.choice(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"])
        if kind not in ("integer", "number"):
            keyword = f"format{keyword[0].upper()}{keyword[1:]}"
        return {keyword: pointer}


def walk(constraint: constrain.Constraint, rng: Random, max_tokens: int | None) -> str:
    """A finished text: random tokens, then the shortest end; fails where nothing is allowed."""
    spell = constraint.vocabulary.token_bytes
    matcher, row, text = constraint.matcher(max_tokens), constraint.allocate_bitmask()[0], b""
    while len(text) < MAX_BYTES:
        ids = allowed(matcher, row).tolist()
        assert ids, f"nothing may follow {text!r}"
        if END in ids and (len(ids) == 1 or rng.random() < 0.3):
            break
        brief = [each for each in ids if spell(each)[-1:] in (b'"', b"]", b"}") or spell(each)[-1:].isdigit()]
        token = rng.choice(brief if brief and rng.random() < 0.6 else [each for each in ids if each != END])
        assert matcher.accept(token), (text, token)
        text += spell(token)
    else:
        end = matcher.completion_tokens()
        assert matcher.accept_many(end) == len(end), (text, end)
        text += b"".join(map(spell, end))
    assert matcher.is_accepting
    assert matcher.min_tokens_left == 0
    assert max_tokens is None or matcher.n_accepted <= max_tokens
    return text.decode()


def texts_of(seed: int, vocabulary: constrain.Vocabulary = VOCABULARY) -> tuple[Schema, list[str]] | None:
    """A random schema and finished texts; ``None`` if it is refused."""
    rng = Random(seed)
    schema = Maker(rng).schema()
    texts = walked(schema, rng, vocabulary)
    return None if texts is None else (schema, texts)


def walked(
    schema: Schema, rng: Random, vocabulary: constrain.Vocabulary, count: int = 5, **options: Any
) -> list[str] | None:
    """Finished texts of a schema, with and without a budget; ``None`` if it is refused or ordinary."""
    if rng.random() < 0.5:
        options |= {"years": "1000-2999", "integers": "64-bit"}
    try:
        constraint = constrain.compile(schema, vocabulary, whitespace="compact", cache=False, **options)
    except SchemaError:
        return None
    if constraint.staged is None:
        return None
    least = constraint.matcher().min_tokens_left
    texts = []
    for most in islice(cycle((None, None, least, least + 1, least + 15)), count):
        texts.append(walk(constraint, rng, most))
        assert constraint.accepts(texts[-1]), texts[-1]
    return texts


@pytest.mark.parametrize("vocabulary", [VOCABULARY, WIDE], ids=["bytes", "wide"])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_walks_end_in_valid_texts(seed: int, vocabulary: constrain.Vocabulary) -> None:
    count = 4 if seed == 1 else 3000 if LONG else 200
    compiled = 0
    for number in range(count):
        found = texts_of(1000 * seed + number, vocabulary)
        if found is not None:
            compiled += 1
            for text in found[1]:
                assert is_valid(found[0], read(text)), (found[0], text)
    assert compiled > count / 3, "too few of the schemas compile"


JUDGE = """
const Ajv = require("ajv/dist/2020"), formats = require("ajv-formats");
const lines = require("fs").readFileSync(0, "utf8").trim().split("\\n").map(line => JSON.parse(line));
for (const [schema, texts] of lines) {
  const ajv = new Ajv({$data: true, strict: false, multipleOfPrecision: 9});
  formats(ajv, {keywords: true});
  const validate = ajv.compile(schema);
  console.log(JSON.stringify(texts.map(text => validate(JSON.parse(text)))));
}
"""


@pytest.mark.slow
def test_ajv_finds_the_texts_valid(tmp_path: Path) -> None:
    """Ajv reads ``$data`` in another way of its own; it needs Node, and ``ajv`` and ``ajv-formats`` of npm."""
    if not shutil.which("npm"):
        pytest.skip("npm is not installed")
    install = ["npm", "install", "--silent", "--no-audit", "--no-fund", "ajv@8", "ajv-formats@3"]
    if subprocess.run(install, cwd=tmp_path, capture_output=True, check=False, timeout=100).returncode:
        pytest.skip("npm cannot install ajv")
    found = [each for each in map(texts_of, range(7000, 7000 + (3000 if LONG else 200))) if each is not None]
    lines = "\n".join(json.dumps(each) for each in found)
    (tmp_path / "judge.js").write_text(JUDGE)
    told = subprocess.run(["node", "judge.js"], cwd=tmp_path, input=lines, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in told.stdout.splitlines()]
    assert len(answers) == len(found) > 100
    for (schema, texts), valid in zip(found, answers, strict=True):
        assert all(valid), (schema, [text for text, right in zip(texts, valid, strict=True) if not right])
