"""A cache gives no result to arguments that it was not computed for, however alike they are."""

from __future__ import annotations

import json
import sys
from dataclasses import fields, replace
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter, create_model
from pydantic.dataclasses import dataclass

import constrain
from constrain.language import tree
from constrain.language.digest import grammar_digest, source_digest
from constrain.language.grammar import Capture, Grammar, Rule, Terminal
from constrain.language.result import result_type
from constrain.remembering import Memory
from tests.support import byte_vocabulary, for_each

# Types.


class Cat(BaseModel):
    name: str


class Dog(BaseModel):
    name: str


@dataclass
class Bird:
    name: str


class Size(Enum):
    SMALL = "s"


def model(**config: Any) -> Any:
    return create_model("Model", __config__=config, text=(str, ...), number=(int, 1))


PET = '{"name": "a"}'
TYPES: list[tuple[str, list[Any]]] = [
    (PET, [Cat | Dog, Dog | Cat]),
    (PET, [Bird | Cat, Cat | Bird]),
    (f"[{PET}]", [list[Cat | Dog], list[Dog | Cat], tuple[Cat | Dog], tuple[Dog | Cat]]),
    (f'{{"a": {PET}}}', [dict[str, Cat | Dog], dict[str, Dog | Cat]]),
    ('"2024-02-01"', [date | str, str | date]),
    ('"x"', [Literal["x", "y"], Literal["y", "x"]]),
    ("1", [Literal[1, "x"], Literal["x", 1], Literal[1] | bool, Literal[True] | int]),
    ('"s"', [Size | str, str | Size]),
    ("1", [Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1.0)], Annotated[float, Field(ge=True)]]),
    ('{"text": " a "}', [model(), model(str_strip_whitespace=True), model(str_to_upper=True), model()]),
]


@for_each("text, kinds", TYPES)
def test_each_type_reads_a_text_as_if_it_were_the_only_one(text: str, kinds: list[Any]) -> None:
    for kind in (*kinds, *reversed(kinds)):
        adapter = TypeAdapter(kind)
        value, document = adapter.validate_json(text), json.dumps(adapter.json_schema())
        result, reader = result_type(kind), constrain.FieldReader(kind)
        reader.feed(text)
        reader.finish()
        for found in (result.parse(text), reader.value):
            assert (type(found), repr(found)) == (type(value), repr(value)), kind
        assert json.dumps(result.document) == document


def test_the_result_type_of_a_model_is_made_once_until_the_model_is_rebuilt() -> None:
    kind = model()
    first = result_type(kind)
    assert result_type(kind) is first
    kind.model_config["str_to_upper"] = True
    kind.model_rebuild(force=True)
    assert first.parse('{"text": "a"}').text == "a"
    assert result_type(kind).parse('{"text": "a"}').text == "A"


# Constraints.

SCHEMAS: list[list[Any]] = [
    [{"const": 1}, {"const": True}, {"const": 1.0}, {"const": "1"}, {"enum": [1, True]}, {"enum": [True, 1]}],
    [{"minimum": 0, "type": "number"}, {"minimum": -0.0, "type": "number"}, {"minimum": 0.0, "type": "number"}],
    [{"properties": {"a": {}, "b": {}}, "required": order} for order in (["a", "b"], ["b", "a"])],
    [{"properties": {name: {} for name in order}, "required": ["a", "b"]} for order in ("ab", "ba")],
    [Literal[1] | bool, bool | Literal[1], Literal[True] | int, Literal[1], Literal[True]],
    [f'{{"type": "number", "multipleOf": {each}}}' for each in ("1", "1.0", "1.5", "1.50")],
    [f'{{"type": "{kind}", "minimum": {each}}}' for kind in ("number", "integer") for each in ("1", "1.0", "1.5")],
    [f'{{"type": "number", "not": {{"const": {each}}}}}' for each in ("1", "1.0", "1.5", "-0.0", "0")],
    [f'{{"items": {{"const": {each}}}}}' for each in ("1", "true", "1.0")],
    [{"pattern": "a$", "type": "string"}, constrain.Regex("a$"), constrain.Regex("a$", "python"), {"const": "a"}],
    [constrain.Regex("a|1$"), constrain.Regex("a|1$", "python"), constrain.Lark("start: /a|1/")],
    [constrain.Lark("start: @a", grammars={"a": each}) for each in ({"const": 1}, {"const": True}, 'start: "1"')],
]
ANSWERS = ["1", "2", "true", "1.0", "1.5", "1.50", "1e0", "-0", "0", '"1"', "a", '"a"', '"\\u0061"', " 1", "[]"]
ANSWERS += ['{"a":1,"b":2}', '{"b":2,"a":1}', '{"a":1,"b":1.0}', "[1,1.0]"]


def forget() -> None:
    """Empties all caches of the package."""
    modules = [module for name, module in [*sys.modules.items()] if name.startswith("constrain.")]
    for value in [value for module in modules for value in vars(module).values()]:
        if isinstance(memory := getattr(value, "memory", None), Memory):
            memory.clear()
        elif hasattr(value, "cache_clear"):
            value.cache_clear()


def require_own(languages: list[tuple[Any, dict[str, Any]]]) -> None:
    """Each language accepts after others what it accepts alone."""

    def answers(language: Any, options: dict[str, Any], vocabulary: constrain.Vocabulary) -> list[bool]:
        constraint = constrain.compile(language, vocabulary, cache=False, **options)
        return [constraint.accepts(answer) for answer in ANSWERS]

    alone = []
    for language, options in languages:
        forget()
        alone.append(answers(language, options, byte_vocabulary()))
    for order in (range(len(alone)), reversed(range(len(alone)))):
        forget()
        shared = byte_vocabulary()
        for number in order:
            language, options = languages[number]
            assert answers(language, options, shared) == alone[number], language


@pytest.mark.slow
@for_each("schemas", SCHEMAS)
def test_each_schema_has_its_own_constraint(schemas: list[Any]) -> None:
    require_own([(schema, {}) for schema in schemas])


@for_each(
    "policy, values",
    ("numbers", ("canonical", "any")),
    ("precision", ("double", "decimal")),
    ("integers", ("64-bit", "any")),
    ("whitespace", ("flexible", "compact", "any")),
    ("escapes", ("canonical", "any")),
    ("property_order", ("schema", "any")),
)
def test_each_policy_has_its_own_constraint(policy: str, values: tuple[str, ...]) -> None:
    members = {"a": {"multipleOf": 0.5}, "b": {"type": "integer"}}
    schema = {"type": ["number", "string", "object", "array"], "properties": members, "uniqueItems": True}
    require_own([(schema, {policy: value}) for value in values])


# Digests.

LARGE = tree.Concatenation(tuple(tree.Repetition(tree.Literal(bytes([byte])), 0, 1) for byte in range(200)))
"""An expression of which printing omits a part."""


def test_each_field_of_a_grammar_is_in_its_digest() -> None:
    def after(text: bytes) -> tree.Expression:
        return tree.Concatenation((LARGE, tree.Literal(text)))

    capture = Capture("a", body=LARGE)
    rule, terminal = Rule("r", (), (), capture=capture), Terminal("t", LARGE)
    grammar = Grammar((terminal,), (rule,))
    found = {grammar_digest(grammar)}
    for old, place in ((capture, "capture"), (rule, "rules"), (terminal, "terminals"), (grammar, "")):
        for field in fields(old):
            for value in (after(b"x"), after(b"y")) if "Expression" in str(field.type) else (("other",),):
                made: Any = replace(old, **{field.name: value})
                made = replace(rule, capture=made) if place == "capture" else made
                whole = replace(grammar, **{"rules" if place == "capture" else place: (made,)}) if place else made
                digest = grammar_digest(whole)
                assert digest not in found, field
                found.add(digest)


@for_each(
    "make",
    [
        constrain.Regex,
        constrain.Lark,
        constrain.Gbnf,
        lambda end: constrain.Lark("start: @a", description="d", grammars={"a": end}),
        lambda end: constrain.StructuralTag({"format": {"type": "const_string", "value": end}}),
        lambda end: constrain.sequence("a", constrain.choice("b", constrain.repeat(constrain.Regex(end)))),
    ],
)
def test_sources_that_differ_where_printing_ends_have_different_digests(make: Any) -> None:
    one, same, other = (make("a" * 1_000 + end) for end in "bbc")
    assert repr(one) == repr(other)
    assert source_digest(one) == source_digest(same) != source_digest(other)
