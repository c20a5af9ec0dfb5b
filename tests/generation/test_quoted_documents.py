"""Facts from long documents as quotes: every free string of an answer stands in its document, where it is said to."""

from __future__ import annotations

import json
import lzma
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

import constrain
from constrain.generation.planning import prepare
from tests.support import LONG, data_folder
from tests.support.judging import require_valid

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_TOKENS = 120
DOCUMENTS = 100 if LONG else 1


@pytest.fixture(scope="module")
def reader() -> constrain.Model:
    return constrain.Model(n_ctx=4096, n_threads=1)


def quoting(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema whose free strings are quotes of the source ``context``."""
    assert schema.keys() <= {"type", "description", "properties", "required", "additionalProperties", "items", "enum",
                             "format"}  # fmt: skip
    found = dict(schema)
    if schema["type"] == "string" and not schema.keys() & {"enum", "format"}:
        found["x-quote"] = "context"
    if "properties" in schema:
        found["properties"] = {key: quoting(inner) for key, inner in schema["properties"].items()}
    if "items" in schema:
        found["items"] = quoting(schema["items"])
    return found


def has_quote(schema: dict[str, Any]) -> bool:
    """Whether every value has a quote, by its schema."""
    required = [schema["properties"][key] for key in schema.get("required", ())]
    return "x-quote" in schema or any(map(has_quote, required))


def quotes_in(value: Any, schema: dict[str, Any], path: tuple[str | int, ...] = ()) -> Iterator[tuple[Any, str]]:
    """The quotes of a value with their paths, by its schema."""
    if "x-quote" in schema:
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from quotes_in(inner, schema["properties"][key], (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from quotes_in(inner, schema["items"], (*path, number))


def asked(document: dict[str, Any]) -> tuple[str, dict[str, Any], constrain.Options]:
    """The prompt, the schema and the options for a document."""
    prompt = f"{document['question']}\n\n{document['context']}"
    sources = {"context": document["context"]}
    return prompt, quoting(document["schema"]), {"sources": sources, "max_tokens": MAX_TOKENS, "temperature": 0}


def documents(model: constrain.Model) -> Iterator[dict[str, Any]]:
    """The documents from which strings are to be extracted, if the shortest answer has few enough tokens."""
    with lzma.open(data_folder() / "accuracy-dev.jsonl.xz", "rt", encoding="utf-8") as lines:
        for line in lines:
            document = json.loads(line)
            if document["task"] == "extract" and fits(model, document):
                yield document


def fits(model: constrain.Model, document: dict[str, Any]) -> bool:
    prompt, schema, options = asked(document)
    if not has_quote(schema):
        return False
    job = prepare(model, prompt, schema, options)
    assert job.constraint is not None
    try:
        job.constraint.matcher(MAX_TOKENS)
    except constrain.BudgetError:
        return False
    return True


@cache
def chosen(model: constrain.Model) -> list[dict[str, Any]]:
    return list(islice(documents(model), DOCUMENTS))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(DOCUMENTS))
def test_free_strings_are_quotes_of_the_document(reader: constrain.Model, number: int) -> None:
    document = chosen(reader)[number]
    prompt, schema, options = asked(document)
    completion = constrain.complete(reader, prompt, schema=schema, **options)
    require_valid(document["schema"], completion.text)
    assert json.loads(completion.text) == completion.value
    expected = dict(quotes_in(completion.value, schema))
    assert expected
    assert [quote.path for quote in completion.quotes] == list(expected)
    for quote in completion.quotes:
        assert (quote.source, quote.text) == ("context", 0)
        assert document["context"][quote.start : quote.end] == expected[quote.path]
        assert document["context"].index(expected[quote.path]) == quote.start, "the first occurrence"
    assert completion.usage.completion_tokens <= MAX_TOKENS
