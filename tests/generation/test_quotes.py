"""Quotes of a model: verbatim, with the right offsets, in every way to generate."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pydantic
import pytest

import constrain
from constrain import Finished, Quote, UnsupportedSchemaError
from constrain.generation.planning import make_plan, prepare
from constrain.generation.running import Running
from tests.support import LONG, for_each

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


@pytest.mark.parametrize("number", range(100 if LONG else 3))
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


def look_up(name: Annotated[str, Quote(min_length=3, max_length=12)]) -> str:
    """Looks a person up."""
    return name


def compare(left: Annotated[str, Quote("page")], rest: list[Annotated[str, Quote()]], note: str = "") -> str:
    """Compares texts."""
    return left + note + str(rest)


def part(value: Any, path: Sequence[str | int]) -> Any:
    """The part of a reply that a path leads to."""
    for step in path:
        value = getattr(value, step) if hasattr(value, str(step)) else value[step]
    return value


@pytest.mark.parametrize("form", [None, "qwen3-coder", "llama-pythonic"])
def test_arguments_of_tools_are_quotes_and_have_places(model: constrain.Model, form: str | None) -> None:
    prompt = "Look up Ada Lovelace."
    options: Any = {"tools": [look_up], "tool_choice": "required", "tool_format": form, "seed": 1, "max_tokens": 80}
    completion = constrain.complete(model, prompt, **options)
    assert completion.value.calls
    assert [quote.path for quote in completion.quotes] == [
        ("calls", number, "arguments", "name") for number in range(len(completion.value.calls))
    ]
    for quote in completion.quotes:
        assert prompt[quote.start : quote.end] == part(completion.value, quote.path)


def scripted(model: constrain.Model, answer: str, prompt: str, schema: Any, **options: Any) -> constrain.Completion:
    """The completion of a model that answers with a given text."""
    plan = prepare(model, prompt, schema, options)
    assert plan.constraint is not None
    assert plan.constraint.accepts(answer)
    running = Running(plan)
    running.progress.feed(answer.encode())
    running.finish()
    return running.completion(0, constrain.results.Timings(0, 0, 0, 0))


HERMES = """<tool_call>
{"name": "look_up", "arguments": {"name": "Ada \\"L\\""}}
</tool_call>
<tool_call>
{"name": "compare", "arguments": {"left": "page", "rest": ["it", "Ada"], "note": "Ada"}}
</tool_call>"""


def test_places_of_arguments_are_told_by_call_and_argument(model: constrain.Model) -> None:
    prompt, page = 'Say it: Ada "L".', ["", "One page"]
    completion = scripted(
        model, HERMES, prompt, None, tools=[look_up, compare], tool_format="hermes", sources={"page": page}
    )
    assert [(*quote.path[1:], quote.source, quote.text, quote.start) for quote in completion.quotes] == [
        (0, "arguments", "name", "prompt", 0, 8),
        (1, "arguments", "left", "page", 1, 4),
        (1, "arguments", "rest", 0, "prompt", 0, 4),
        (1, "arguments", "rest", 1, "prompt", 0, 8),
    ]
    for quote in completion.quotes:
        said = {"prompt": [prompt], "page": page}[quote.source][quote.text]
        assert said[quote.start : quote.end] == part(completion.value, quote.path)


def test_with_tools_quotes_of_the_content_have_a_path_of_their_own(model: constrain.Model) -> None:
    asked: Any = {"tools": [look_up], "tool_format": "hermes"}
    schema = {"type": "array", "items": {"type": "string", "x-quote": True}}
    (place,) = scripted(model, '["Ada"]', "Say Ada.", schema, **asked).quotes
    assert (place.path, place.start, place.end) == (("content", 0), 4, 7)


def test_inputs_of_custom_tools_have_no_quotes(model: constrain.Model) -> None:
    note = constrain.tools.CustomTool("note", format=constrain.Regex("[a-z]+"))
    call = '<tool_call>\n{"name": "note", "arguments": {"input": "ada"}}\n</tool_call>'
    completion = scripted(model, call, "Note ada.", None, tools=[look_up, note], tool_format="hermes")
    assert [each.name for each in completion.value.calls] == ["note"]
    assert completion.quotes == ()


def test_folded_arguments_are_refused(model: constrain.Model) -> None:
    def find(name: Annotated[str, Quote(fold=True)]) -> str:
        """Looks a person up."""
        return name

    with pytest.raises(UnsupportedSchemaError, match="find has a quote with fold"):
        constrain.generate(model, "Look up Ada.", tools=[find])


def test_a_refusal_has_no_quotes(model: constrain.Model) -> None:
    schema = {"type": "string", "x-quote": True}
    for seed in range(3):
        completion = constrain.complete(model, "Say it.", schema=schema, allow_refusal=True, seed=seed, max_tokens=20)
        assert bool(completion.quotes) == isinstance(completion.value, str)


class Quoting(pydantic.BaseModel):
    it: Annotated[str, Quote()]


@for_each(
    "schema, path",
    (Quoting, ("it",)),
    (Annotated[str, Quote()], ()),
    (Annotated[str, Quote(), list[int]], ()),
    ({"type": "string", "x-quote": True}, ()),
    (r'{"type": "string", "x\u002dquote": true}', ()),
)
def test_quotes_are_found_in_schemas_of_every_kind(model: constrain.Model, schema: Any, path: tuple[str, ...]) -> None:
    answer = '{"it": "Ada"}' if path else '"Ada"'
    (place,) = scripted(model, answer, "Say Ada.", schema).quotes
    assert (place.path, place.start) == (path, 4)
    assert scripted(model, '"x-quote"', "Say Ada.", {"const": "x-quote"}).quotes == ()
    assert make_plan(model, "Say Ada.", str, {}).result.quotes is None
