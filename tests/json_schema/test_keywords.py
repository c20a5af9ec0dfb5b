"""A keyword is one record: one that is added by CONTRIBUTING's steps is everywhere, and no part can be forgotten."""

from __future__ import annotations

from typing import Any

import pytest

import constrain
from constrain.errors import SchemaError, UnsupportedSchemaError
from constrain.json_schema.compiler import compile_schema
from constrain.json_schema.documents.vocabularies import declared_vocabulary
from constrain.json_schema.hint import render
from constrain.json_schema.keywords.table import KEYWORDS, Keyword
from constrain.json_schema.lint.linter import lint_schema
from constrain.json_schema.shapes.strings import StringShape, pattern_expression
from constrain.json_schema.strict.merging import merged
from tests.support import byte_vocabulary


@pytest.fixture(autouse=True)
def records_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KEYWORDS, "__dict__", {**vars(KEYWORDS), "records": dict(KEYWORDS.records)})


def start(_: Any, at: Any, value: object, found: Any) -> None:
    """``x-start``: the text that the string begins with."""
    if not isinstance(value, str):
        raise SchemaError(f"x-start must be a string, not {value!r:.80}", pointer=at.pointer("x-start"))
    found.restrict_strings(StringShape((pattern_expression(at, f"^{value}", "x-start"),)))


@pytest.mark.parametrize(
    ("schema", "accepted", "rejected"),
    [
        ({"type": "string", "x-start": "ab"}, '"abc"', '"b"'),
        ({"type": "string", "not": {"x-start": "ab"}}, '"b"', '"abc"'),
        ({"type": "object", "propertyNames": {"x-start": "k"}, "maxProperties": 1}, '{"k1":0}', '{"l":0}'),
        ({"type": "string", "anyOf": [{"x-start": "a"}], "unevaluatedItems": False}, '"a"', '"b"'),
    ],
)
def test_a_keyword_that_is_added_is_enforced(schema: object, accepted: str, rejected: str) -> None:
    Keyword("x-start", "string", hint=None, merge=None)(start)
    KEYWORDS.derive()
    constraint = constrain.compile(compile_schema(schema, whitespace="compact").grammar, byte_vocabulary())
    assert constraint.accepts(accepted)
    assert not constraint.accepts(rejected)


def test_a_keyword_that_is_added_is_checked_shown_merged_and_listed() -> None:
    Keyword("x-start", "string", hint=lambda value: f"beginning with {value}", merge=max)(start)
    KEYWORDS.derive()
    with pytest.raises(SchemaError, match="x-start must be a string"):
        compile_schema({"items": {"x-start": 1}})
    with pytest.raises(UnsupportedSchemaError, match="may not fit x-start"):
        compile_schema({"x-quote": {"fold": True}, "x-start": "a", "x-sources": {"prompt": "abc"}})
    assert render({"type": "string", "x-start": "ab"}) == "string (beginning with ab)"
    assert merged({"x-start": "a"}, {"x-start": "ab"}) == {"x-start": "ab"}
    assert lint_schema({"x-start": "a"}).enforced == {"x-start": ("/x-start",)}
    assert KEYWORDS.records["x-start"].says == "the text that the string begins with"
    core = declared_vocabulary({"https://json-schema.org/draft/2020-12/vocab/core": True}, "urn:own", "")
    assert "x-start" in core.left_out


WHOLE = {
    "about": "array",
    "hint": None,
    "merge": None,
    "in_place": None,
    "holds": "list",
    "says": "all",
    "handler": start,
}


@pytest.mark.parametrize("part", ["about", "hint", "merge", "in_place", "says", "handler"])
def test_a_part_that_is_missing_is_named(part: str) -> None:
    parts: dict[str, Any] = {name: value for name, value in WHOLE.items() if name != part}
    with pytest.raises(TypeError, match=f"^the keyword x-all lacks {part}: "):
        KEYWORDS.add(Keyword("x-all", **parts))


def test_a_function_documents_its_own_keyword_which_has_one_record() -> None:
    with pytest.raises(TypeError, match=r"^the keyword x-begin lacks says: "):
        Keyword("x-begin", "string", hint=None, merge=None)(start)
    with pytest.raises(TypeError, match=r"^the keyword minLength has two records"):
        KEYWORDS.add(KEYWORDS.records["minLength"])
