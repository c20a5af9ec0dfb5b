"""Quotes of a real model: verbatim, with the right offsets, in every way to generate."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pydantic
import pytest

import constrain
from constrain import Finished, Quote, UnsupportedSchemaError
from tests.support import LONG

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PAGES = sorted((Path(__file__).parents[2] / "docs").rglob("*.md"))


class Findings(pydantic.BaseModel):
    name: Annotated[str, Quote(whole_words=True, max_length=40)]
    place: Annotated[str, Quote(max_length=60)] | None
    parts: Annotated[list[Annotated[str, Quote("page", min_length=5, max_length=80)]], pydantic.Field(max_length=3)]
    folded: Annotated[str, Quote("page", fold=True, whole_words=True, min_length=4, max_length=50)]


def check(completion: constrain.Completion, sources: Mapping[str, Sequence[str]]) -> None:
    value = completion.value.model_dump()
    for quote in completion.quotes:
        part = value
        for step in quote.path:
            part = part[step]
        assert sources[quote.source][quote.text][quote.start : quote.end] == part
    expected = 2 + (value["place"] is not None) + len(value["parts"])
    assert len(completion.quotes) == expected
    assert type(completion.value).model_validate_json(completion.text) == completion.value


@pytest.mark.parametrize("number", range(100 if LONG else 4))
def test_every_quote_is_verbatim_and_its_offsets_are_right(model: constrain.Model, number: int) -> None:
    rng = random.Random(number)
    page = rng.choice(PAGES).read_text("utf-8")
    begin = rng.randrange(max(1, len(page) - 800))
    prompt = f"Name the subject. {page[begin : begin + 800]}"
    completion = constrain.complete(
        model, prompt, schema=Findings, sources={"page": [page[:50], page]}, seed=number, max_tokens=200
    )
    check(completion, {"prompt": [prompt], "page": [page[:50], page]})


def test_a_quote_lies_within_one_message(model: constrain.Model) -> None:
    messages = [
        {"role": "user", "content": "abc"},
        {"role": "assistant", "content": "hello"},
        {"role": "user", "content": "xyz"},
    ]
    schema = {"type": "string", "x-quote": {"min_length": 3}}
    completion = constrain.complete(model, messages, schema=schema, seed=1)
    (quote,) = completion.quotes
    assert (completion.value, quote.text) in (("abc", 0), ("xyz", 1))


def test_streams_batches_and_votes_have_quotes(model: constrain.Model) -> None:
    prompt, sources = "Ada lived in London.", {"page": "One page of text"}
    options = {"schema": Findings, "sources": sources, "seed": 1, "max_tokens": 150}
    *_, last = constrain.stream(model, prompt, **options)
    assert isinstance(last, Finished)
    (batched,) = constrain.complete_batch(model, [prompt], **options)
    for completion in (last.completion, batched, constrain.complete(model, prompt, vote=True, n=2, **options)):
        check(completion, {"prompt": [prompt], "page": ["One page of text"]})


def test_arguments_of_tools_are_quotes(model: constrain.Model) -> None:
    def look_up(name: Annotated[str, Quote(min_length=3, max_length=12)]) -> str:
        """Looks a person up."""
        return name

    prompt = "Look up Ada Lovelace."
    reply = constrain.generate(model, prompt, tools=[look_up], tool_choice="required", seed=1, max_tokens=80)
    assert reply.calls
    assert all(call.arguments["name"] in prompt for call in reply.calls)


def test_folded_arguments_are_refused(model: constrain.Model) -> None:
    def look_up(name: Annotated[str, Quote(fold=True)]) -> str:
        """Looks a person up."""
        return name

    with pytest.raises(UnsupportedSchemaError, match="look_up has a quote with fold"):
        constrain.generate(model, "Look up Ada.", tools=[look_up])


def test_a_refusal_has_no_quotes(model: constrain.Model) -> None:
    schema = {"type": "string", "x-quote": True}
    for seed in range(3):
        completion = constrain.complete(model, "Say it.", schema=schema, allow_refusal=True, seed=seed, max_tokens=20)
        assert bool(completion.quotes) == isinstance(completion.value, str)
