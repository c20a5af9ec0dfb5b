"""llama.cpp chooses the same tokens in its graph as in main memory, under the same masks."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import jsonschema
import llama_cpp
import pytest

import constrain
from constrain.llama.graph import mask_sampler
from constrain.llama.graph.sampling import GraphSampling

if TYPE_CHECKING:
    from collections.abc import Iterator

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "kind": {"enum": ["human", "robot", "cat"]},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 8}, "maxItems": 3},
    },
    "required": ["name", "age", "kind", "tags"],
    "additionalProperties": False,
}
SCHEMAS = [
    PERSON,
    {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"},
    {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 5},
    {"enum": ["yes", "no"]},
    {"type": "string", "minLength": 30, "maxLength": 80},
]
PROMPT = "Ada Lovelace is 36 years old, and she likes numbers. Describe her."


@pytest.fixture(scope="module")
def in_graph() -> Iterator[constrain.Model]:
    model = constrain.Model(n_ctx=512, n_threads=1, mask_in_graph=True, keep_prompts=False, chat_template="")
    yield model
    model.close()


@pytest.fixture(scope="module")
def plain() -> Iterator[constrain.Model]:
    model = constrain.Model(n_ctx=512, n_threads=1, keep_prompts=False, chat_template="")
    yield model
    model.close()


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The tokens that were chosen in the graph."""
    found: list[int] = []
    take = GraphSampling.take

    def watched(self: GraphSampling) -> int:
        found.append(take(self))
        return found[-1]

    monkeypatch.setattr(GraphSampling, "take", watched)
    return found


@pytest.mark.long
@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"repeat_penalty": 1.3},
        {"frequency_penalty": 0.7, "presence_penalty": 0.5},
        {"logit_bias": {330: 3.0, 400: float("-inf")}},
    ],
)
def test_the_likeliest_tokens_are_the_same(
    in_graph: constrain.Model, plain: constrain.Model, taken: list[int], schema: dict[str, Any], options: dict[str, Any]
) -> None:
    texts = [
        constrain.complete(
            model, PROMPT, schema=schema, temperature=0, max_tokens=80, show_schema=False, **options
        ).text
        for model in (plain, in_graph)
    ]
    assert texts[0] == texts[1]
    assert taken or schema == {"enum": ["yes", "no"]}  # which has one choice, the first


@pytest.mark.parametrize("options", [{}, {"top_k": 0}, {"top_p": 1, "min_p": 0, "top_k": 0}, {"temperature": 2.0}])
def test_sampled_answers_are_valid_and_equal_for_equal_seeds(
    in_graph: constrain.Model, taken: list[int], options: dict[str, Any]
) -> None:
    texts = set()
    options = {"temperature": 0.9, "max_tokens": 120, "show_schema": False, **options}
    for seed in (*range(4), *range(4)):
        answer = constrain.complete(in_graph, PROMPT, schema=PERSON, seed=seed, **options)
        jsonschema.validate(json.loads(answer.text), PERSON)
        texts.add(answer.text)
    assert 1 < len(texts) <= 4
    assert len(taken) > 40


@pytest.mark.long
def test_both_ways_have_the_same_distribution(
    in_graph: constrain.Model, plain: constrain.Model, taken: list[int]
) -> None:
    schema = {"type": "string", "pattern": "^[a-c]([d-f]|[0-9])$"}
    options = {"temperature": 1.5, "top_k": 0, "top_p": 1, "min_p": 0, "max_tokens": 10, "show_schema": False}
    counts = []
    for model in (plain, in_graph):
        values = [constrain.complete(model, "Two?", schema=schema, seed=seed, **options).value for seed in range(200)]
        counts.append(Counter(value[1].isdigit() for value in values))
    assert taken
    assert abs(counts[0][True] - counts[1][True]) < 40  # four standard deviations of the difference


def test_answers_that_need_logits_are_chosen_in_main_memory(in_graph: constrain.Model, taken: list[int]) -> None:
    constrain.complete(in_graph, PROMPT, max_tokens=8)
    constrain.complete(in_graph, PROMPT, schema=PERSON, logprobs=True, max_tokens=120)
    assert taken == []


def test_a_budget_is_kept(in_graph: constrain.Model) -> None:
    for limit in range(34, 60, 5):
        answer = constrain.complete(in_graph, PROMPT, schema=PERSON, max_tokens=limit, seed=1)
        assert answer.usage.completion_tokens <= limit
        jsonschema.validate(json.loads(answer.text), PERSON)


def test_errors_in_the_sampler_are_raised(in_graph: constrain.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(mask_sampler, "_values", broken)
    with pytest.raises(RuntimeError, match="broken"):
        constrain.complete(in_graph, PROMPT, schema=PERSON, max_tokens=120)
    monkeypatch.undo()
    constrain.complete(in_graph, PROMPT, schema=PERSON, max_tokens=120)


def test_errors_while_a_mask_is_copied_are_raised(in_graph: constrain.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    copies = 0
    copy = mask_sampler.MaskSampler._set_input

    def broken(sampler: Any, argument: Any) -> None:
        nonlocal copies
        copies += 1
        if copies == 3:
            raise RuntimeError("broken copy")
        copy(sampler, argument)

    monkeypatch.setattr(mask_sampler.MaskSampler, "_set_input", broken)
    with pytest.raises(RuntimeError, match="broken copy"):
        constrain.complete(in_graph, PROMPT, schema=PERSON, max_tokens=120)
    monkeypatch.undo()
    jsonschema.validate(constrain.complete(in_graph, PROMPT, schema=PERSON, max_tokens=120).value, PERSON)


def test_a_temperature_in_the_grammar_ends_choices_in_the_graph(
    in_graph: constrain.Model, plain: constrain.Model, taken: list[int]
) -> None:
    grammar = constrain.Lark(
        'start: word " is " age " years old"\nword: /[A-Z][a-z]{3,9}/\nage[temperature=0]: /[0-9]+/'
    )
    texts = [
        constrain.complete(model, PROMPT, schema=grammar, temperature=0, max_tokens=30).text
        for model in (plain, in_graph)
    ]
    assert texts[0] == texts[1]
    assert 0 < len(taken) < 20


def test_an_abandoned_stream_leaves_no_sampler_behind(in_graph: constrain.Model, plain: constrain.Model) -> None:
    options = {"temperature": 0, "max_tokens": 80}
    for number in (1, 2, 5):
        stream = constrain.stream(in_graph, PROMPT, schema=PERSON, **options)
        for _ in range(number):
            next(stream)
        stream.close()
        texts = [constrain.complete(model, PROMPT, max_tokens=8, temperature=0).text for model in (plain, in_graph)]
        assert texts[0] == texts[1]


def test_a_forbidden_token_is_replaced_by_the_likeliest_allowed_one(
    in_graph: constrain.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = llama_cpp.llama_get_sampled_token_ith
    count = 0

    def forbidden(*arguments: Any) -> int:
        nonlocal count
        count += 1
        return 0 if count % 2 else chosen(*arguments)  # the token 0 ends the text, which is not allowed

    monkeypatch.setattr(llama_cpp, "llama_get_sampled_token_ith", forbidden)
    answer = constrain.complete(in_graph, PROMPT, schema=PERSON, temperature=0.8, seed=3, max_tokens=120)
    jsonschema.validate(answer.value, PERSON)
    assert count > 10


def test_guesses_exclude_choices_in_the_graph() -> None:
    with pytest.raises(ValueError, match="leave out one of them"):
        constrain.Model(speculate=True, mask_in_graph=True)
