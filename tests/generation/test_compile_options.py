"""How a schema is compiled, said to ``generate`` and all its kin."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

import constrain
from constrain.engine.compiling import compile_any, describe_source, grammar_of_description
from constrain.generation.completion import Finished
from constrain.generation.planning import prepare
from constrain.language import tree
from constrain.language.grammar import GrammarBuilder
from constrain.language.policies import CHOICES
from tests.support import byte_vocabulary, for_each, small_vocabulary

SCHEMA = {
    "type": "object",
    "properties": {"sky": {"enum": ["blue", "red"]}, "sun": {"const": [1, 2]}},
    "required": ["sky", "sun"],
    "additionalProperties": False,
}
COMPACT: Any = {"schema": SCHEMA, "whitespace": "compact", "temperature": 0}


def is_compact(text: str) -> bool:
    return text == json.dumps(json.loads(text), separators=(",", ":"))


@pytest.mark.slow
def test_all_ways_to_generate_take_policies(model: constrain.Model) -> None:
    completion = constrain.complete(model, "The sky?", **COMPACT)
    assert is_compact(completion.text)
    assert completion.report is not None
    assert completion.report.policies["whitespace"] == "compact"
    *_, last = constrain.stream(model, "The sky?", **COMPACT)
    assert isinstance(last, Finished)
    several = constrain.complete_batch(model, ["The sky?"] * 2, **COMPACT)
    later = asyncio.run(constrain.acomplete(model, "The sky?", **COMPACT))
    assert [one.text for one in (last.completion, *several, later)] == [completion.text] * 4
    assert constrain.generate(model, "The sky?", **COMPACT) == completion.value
    assert not is_compact(constrain.complete(model, "The sky?", schema=SCHEMA, temperature=0).text)


@pytest.mark.slow
def test_strict_refuses_what_is_not_strict(model: constrain.Model) -> None:
    assert constrain.generate(model, "The sky?", schema=SCHEMA, strict=True)["sky"] in ("blue", "red")
    with pytest.raises(constrain.SchemaError, match="additionalProperties"):
        constrain.generate(model, "x", schema={"type": "object", "properties": {}}, strict=True)


@pytest.mark.parametrize("options", [{}, {"allow_refusal": True}])
def test_references_are_found_in_the_registry(model: constrain.Model, options: dict[str, Any]) -> None:
    for colours in (["blue", "red"], ["green"]):  # another registry is another language
        registry = {"urn:colour": {"enum": colours}}
        job = prepare(model, "The sky?", {"$ref": "urn:colour"}, {"registry": registry, **options})
        assert job.constraint is not None
        assert [each for each in ("blue", "red", "green") if job.constraint.accepts(f'"{each}"')] == colours


def test_a_registry_is_for_models_that_reason_too(model: constrain.Model) -> None:
    template = "{{ messages[0].content }}{% if not enable_thinking %}<think></think>{% endif %}"
    reasoning = constrain.Model(model.llama, chat_template=template)
    registry = {"urn:colour": {"const": "green"}}
    assert constrain.generate(reasoning, "The sky?", schema={"$ref": "urn:colour"}, registry=registry) == "green"
    with pytest.raises(constrain.SchemaError, match="urn:colour"):
        constrain.generate(model, "The sky?", schema={"$ref": "urn:colour"})


@for_each("policy", CHOICES)
def test_a_value_that_a_policy_does_not_have(model: constrain.Model, policy: str) -> None:
    with pytest.raises(ValueError, match=f"{policy} must be one of .*'nothing'"):
        constrain.generate(model, "x", schema=SCHEMA, **{policy: "nothing"})  # type: ignore[call-overload]


def test_without_a_json_schema_there_are_no_policies(model: constrain.Model) -> None:
    with pytest.raises(ValueError, match="whitespace applies to JSON Schemas only, but there is no schema"):
        constrain.generate(model, "x", whitespace="compact")
    builder = GrammarBuilder()
    word = builder.terminal("word", tree.Literal(b"yes"))
    builder.define(builder.rule("start"), [[word]])
    grammar = builder.build()
    others: list[dict[str, Any]] = [{"strict": True}, {"registry": {}}, {"numbers": "any"}]
    for options in others:
        with pytest.raises(ValueError, match="applies to JSON Schemas only, but this is a Grammar"):
            constrain.generate(model, "x", schema=grammar, **options)
        with pytest.raises(ValueError, match="applies to JSON Schemas only, but this is a Grammar"):
            constrain.compile(grammar, model.vocabulary, **options)
    with pytest.raises(ValueError, match="years applies to JSON Schemas only, but this is a Grammar"):
        constrain.compile(grammar, model.vocabulary, years="1000-2999")
    for years in ("any", "1000-2999"):
        assert constrain.generate(model, "x", schema=grammar, whitespace="flexible", years=years) == "yes"


def test_policies_may_be_named_in_any_order_or_not_at_all() -> None:
    vocabulary = small_vocabulary()
    made = compile_any(SCHEMA, vocabulary, close_objects=True, numbers="any", formats="annotation")
    again = compile_any(SCHEMA, vocabulary, close_objects=True, formats="annotation", numbers="any")
    assert again is made
    swapped = compile_any({"enum": [1]}, vocabulary, close_objects=False, whitespace="any", numbers="any")
    assert swapped is not compile_any({"enum": [1]}, vocabulary, close_objects=False, property_order="any")
    plain = compile_any(SCHEMA, vocabulary, close_objects=False)
    assert constrain.compile(SCHEMA, vocabulary) is plain


def test_generation_has_defaults_of_its_own_that_are_told_and_lifted() -> None:
    vocabulary = small_vocabulary()
    dated = {"type": "object", "properties": {"day": {"format": "date"}, "size": {"type": "integer"}}}
    for closes, given, told in (
        (True, {}, ("1000-2999", "64-bit")),
        (True, {"years": "any", "integers": "any"}, ("any", "any")),
        (False, {}, ("any", "any")),
        (False, {"years": "1000-2999"}, ("1000-2999", "any")),
    ):
        policies = compile_any(dated, vocabulary, close_objects=closes, **given).report.policies  # type: ignore[arg-type]
        assert (policies["years"], policies["integers"]) == told


def test_a_description_from_before_a_policy_has_none_of_it() -> None:
    described = describe_source({"type": "integer"}, small_vocabulary(), close_objects=True)
    assert isinstance(described, dict)
    older = {**described, "policies": {k: v for k, v in described["policies"].items() if k != "integers"}}
    assert compile_any(grammar_of_description(older), byte_vocabulary(), close_objects=False).accepts("9" * 20)
    assert not compile_any(grammar_of_description(described), byte_vocabulary(), close_objects=False).accepts("9" * 20)


def test_a_model_stands_for_its_vocabulary(model: constrain.Model) -> None:
    assert constrain.compile({"const": 1}, model) is constrain.compile({"const": 1}, model.vocabulary)
    assert constrain.compile({"const": 1}, model.llama).accepts("1")
    assert constrain.explain({"const": 1}, "1", model).steps


@pytest.mark.parametrize("given", ["model.gguf", None, 5])
def test_something_else_is_told_what_a_vocabulary_is(given: object) -> None:
    with pytest.raises(TypeError, match=r"vocabulary is .*; it must be a Vocabulary .* or a Model"):
        constrain.compile({"const": 1}, given)  # type: ignore[arg-type]
