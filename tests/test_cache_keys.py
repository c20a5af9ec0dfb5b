"""A cache gives no result to arguments that it was not computed for, however alike they are."""

from __future__ import annotations

import importlib
import json
from dataclasses import fields, replace
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import pytest
from pydantic import BaseModel, Field, TypeAdapter, create_model
from pydantic.dataclasses import dataclass

import constrain
from constrain.chat.answers.choices import DEFAULT_POLICIES, FunctionCalls
from constrain.chat.families.format import ArgumentStyle, Element
from constrain.json_schema.compiler import CompiledSchema
from constrain.json_schema.emission.number_spellings import ALL_BUT_OF_INTEGERS
from constrain.json_schema.shapes.number_texts import CANONICAL
from constrain.json_schema.shapes.numeric import ANY_INTEGER, ANY_NUMBER, NumberShape
from constrain.language import tree
from constrain.language.digest import expression_digest, grammar_digest
from constrain.language.grammar import Capture, Grammar, Rule, Terminal
from constrain.language.result import result_type
from constrain.quotes.keyword import QuoteKeyword
from tests.support import byte_vocabulary
from tests.test_caches import memories, unbounded_caches

if TYPE_CHECKING:
    from collections.abc import Callable

Call = tuple[tuple[Any, ...], dict[str, Any]]


def call(*args: Any, **named: Any) -> Call:
    return args, named


SPELLED = (1, Decimal("1.0"), Decimal("1.5"), Decimal("1.50"))
"""Numbers, equal ones beside each other."""


def numbers(name: str, *, whole: bool = False) -> list[Call]:
    made = [(each,) if name in ("excluded", "not_multiples_of") else each for each in SPELLED]
    return [call(**{name: each}, integer=whole) for each in made]


def call_of(parameters: str, element: Element | None = None, **more: Any) -> Call:
    tool = FunctionCalls("f", parameters, **more)
    style = ArgumentStyle.JSON if element is None else ArgumentStyle.XML
    return call(tool, style, element or Element(), DEFAULT_POLICIES, keys_apart=False)


CALLS: dict[str, list[Call]] = {
    "constrain.chat.answers.arguments._compiled": [
        call_of('{"properties": {"a": {"const": 1}}}'),
        call_of('{"properties": {"a": {"const": true}}}'),
        call_of('{"properties": {"a": {"const": 1}}}', closed=False),
        call_of('{"properties": {"a": {"const": 1}}}', typed=True),
        call_of('{"properties": {"a": {"type": "integer"}}}'),
        call_of('{"properties": {"a": {"type": "integer"}, "b": true}}'),
        call_of('{"properties": {"b": true, "a": {"type": "integer"}}}'),
        call_of('{"properties": {"a": {"const": 1}}}', Element()),
        call_of('{"properties": {"a": {"const": 1}}}', Element("<a>", "</a>", "\n")),
    ],
    "constrain.chat.answers.assembly.may_begin_like": [
        call(constrain.Regex("a|b"), b"a"),
        call(constrain.Regex("a|b"), b"c"),
        call(constrain.Lark("start: @a", grammars={"a": {"const": 1}}), b"1"),
        call(constrain.Lark("start: @a", grammars={"a": {"const": True}}), b"1"),
    ],
    "constrain.json_schema.emission.number_spellings._between": [
        call(("1", 1), ("2", 1), low_open=is_open, high_open=False, places=places)
        for is_open in (False, True)
        for places in (None, 0, 1)
    ],
    "constrain.json_schema.emission.number_spellings.all_spellings": [
        call(NumberShape(values=(Decimal("1.5"),)), by_double=True),
        call(NumberShape(values=(Decimal("1.50"),)), by_double=True),
        call(NumberShape(values=(1,)), by_double=True),
        call(NumberShape(values=(Decimal("1.0"),)), by_double=False),
        call(NumberShape(values=(1,), integer=True), by_double=True),
    ],
    "constrain.json_schema.emission.scalars._unbounded": [
        call(spellings, shape)
        for spellings in (*CANONICAL.values(), *ALL_BUT_OF_INTEGERS.values())
        for shape in (ANY_NUMBER, ANY_INTEGER)
    ],
    "constrain.json_schema.shapes.strings.negation": [
        call(tree.Literal(b"a")),
        call(tree.Literal(b"a")),
        call(tree.CharClass(((97, 97),))),
        call(tree.CharClass(((97, 97),), json=True)),
        call(tree.Concatenation((tree.Literal(b"a"),))),
    ],
    "constrain.json_schema.spelling.numbers.number_expression": [
        *numbers("minimum"),
        *numbers("minimum", whole=True),
        *numbers("exclusive_maximum"),
        *numbers("multiple_of"),
        *numbers("not_multiples_of"),
        *numbers("excluded"),
        *(call(minimum=zero, integer=False) for zero in (0, Decimal("-0"), Decimal("0.0"))),
        call(integer=False),
        call(integer=False, by_double=True),
        call(integer=False, spare_zeros=True),
    ],
    "constrain.language.result._of_class": [],  # see the tests of types
    "constrain.language.schema_text.parse_schema": [
        *map(call, ("1", "true", "1.0", "1.00", "[1]", "[true]", "0.0", "-0.0", "0")),
        *map(call, ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}', '{"a": true, "b": 2}')),
    ],
    "constrain.quotes.texts.quote_expression": [
        call(texts, keyword)
        for texts in (("ab", "c"), ("c", "ab"), ("abc",))
        for keyword in (QuoteKeyword(), QuoteKeyword(min_length=0), QuoteKeyword(fold=True, whole_words=True))
    ],
    "constrain.regex.parsing.parser.char_class": [
        call(((0, 1), (97, 122)), json=False),
        call(((0, 1), (97, 122)), json=True),
        call(((1, 1), (97, 122)), json=True),
    ],
    "constrain.regex.parsing.parser.parse_pattern": [
        call("a$", dialect, json=json_, anchored=anchored)
        for dialect in ("rust", "ecma", "python")
        for json_ in (True, False)
        for anchored in (True, False)
    ],
    "constrain.regex.named_groups._parsed": [call("(?P<a>b)$", "rust"), call("(?P<a>b)$", "python")],
}
"""Calls of functions with a cache, whose arguments are equal, or alike."""

TEXTS = "texts, which mean what they spell"
NUMBERS = "whole numbers, and texts of digits"
CONSTANTS = "constants of its module"
ITSELF = "the object itself, which never changes"
ALIKE = {
    "constrain.batch.stores.locks._held": TEXTS,
    "constrain.chat.answers.call_or_content._known_first_bytes": ITSELF,
    "constrain.chat.prompt.abilities.abilities": f"{TEXTS}, and a form of the package",
    "constrain.chat.prompt.template._compile": TEXTS,
    "constrain.chat.prompt.template.free_variables": TEXTS,
    "constrain.chat.tools.checks._compile": TEXTS,
    "constrain.engine.cache._cache_of": TEXTS,
    "constrain.inspection.check._readable": ITSELF,
    "constrain.inspection.explanation._byte_vocabulary": TEXTS,
    "constrain.json_schema.formats.expressions._identifier": CONSTANTS,
    "constrain.json_schema.formats.expressions._uuid_of": CONSTANTS,
    "constrain.json_schema.keywords.unknown._closest": f"{TEXTS}, and a draft of the package",
    "constrain.lark.substrings._kind": TEXTS,
    "constrain.llama.costs.kept._known": "a hash of the facts",
    "constrain.llama.hashes._known": "path, size and time of change of a file",
    "constrain.llama.lookup._loaded": "a path without links",
    "constrain.regex.named_groups._automaton": "the texts of _parsed",
    "constrain.regex.scientific._any_digits": NUMBERS,
    "constrain.regex.scientific._at_least": NUMBERS,
    "constrain.regex.scientific._at_most": NUMBERS,
    "constrain.regex.scientific._fraction": NUMBERS,
    "constrain.regex.scientific._more_digits": NUMBERS,
    "constrain.regex.scientific.exponent": NUMBERS,
    "constrain.regex.string_spellings._hexadecimal": NUMBERS,
    "constrain.regex.string_spellings._octets": NUMBERS,
    "constrain.regex.string_spellings.spelled_class": NUMBERS,
    "constrain.regex.unicode.properties._aliases": CONSTANTS,
    "constrain.regex.unicode.properties._category": TEXTS,
    "constrain.regex.unicode.properties._orbit_of": CONSTANTS,
    "constrain.regex.unicode.properties._orbits": CONSTANTS,
    "constrain.regex.unicode.properties._property": TEXTS,
    "constrain.regex.unicode.properties.perl_class": CONSTANTS,
    "constrain.server.playground.page._tagged": TEXTS,
    "constrain.server.sandbox.worker._vocabularies": "a hash of all tokens",
    "constrain.server.serving.sizes._longest": ITSELF,
}
"""Caches whose keys, if equal, are the same, and what the keys are."""


def cached() -> dict[str, Any]:
    """All caches with arguments, by the module that has made them."""
    found: dict[str, Any] = {}
    for name, of in {**memories(), **unbounded_caches()}.items():
        module, _, own = name.rpartition(".")
        value = getattr(importlib.import_module(module), own)
        if getattr(value, "__module__", module) in (module, "weakref"):
            found[name] = of
    return found


def seen(value: Any) -> object:
    """What tells two results apart, where their own comparison does not."""
    if isinstance(value, get_args(tree.Expression)):
        return expression_digest(value, {})
    if isinstance(value, Terminal):
        return seen(value.expression)
    if isinstance(value, CompiledSchema):
        return grammar_digest(value.grammar), value.policies
    return repr(value)


def test_every_cache_has_calls_here_or_keys_that_are_the_same_if_they_are_equal() -> None:
    assert sorted(CALLS.keys() | ALIKE.keys()) == sorted(cached())


@pytest.mark.parametrize("name", [name for name, calls in CALLS.items() if calls])
def test_a_cached_result_is_the_result_of_its_own_arguments(name: str) -> None:
    module, _, own = name.rpartition(".")
    function: Callable[..., Any] = getattr(importlib.import_module(module), own)
    fresh = [seen(function.__wrapped__(*args, **named)) for args, named in CALLS[name]]  # type: ignore[attr-defined]
    for order in (range(len(fresh)), range(len(fresh) - 1, -1, -1)):
        for number in order:
            args, named = CALLS[name][number]
            assert seen(function(*args, **named)) == fresh[number], CALLS[name][number]


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


@pytest.mark.parametrize(("text", "kinds"), TYPES)
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
    [constrain.Regex("a|1$"), constrain.Regex("a|1$", "python"), constrain.Lark("start: /a|1/")],
    [constrain.Lark("start: @a", grammars={"a": each}) for each in ({"const": 1}, {"const": True}, 'start: "1"')],
]
ANSWERS = ["1", "true", "1.0", "-0", "0", '"1"', "a", '{"a":1,"b":2}', '{"b":2,"a":1}', "[]"]


@pytest.mark.parametrize("schemas", SCHEMAS)
def test_each_schema_has_its_own_constraint(schemas: list[Any]) -> None:
    def answers(schema: Any, vocabulary: constrain.Vocabulary) -> list[bool]:
        constraint = constrain.compile(schema, vocabulary, cache=False)
        return [constraint.accepts(answer) for answer in ANSWERS]

    shared = byte_vocabulary()
    for schema in (*schemas, *reversed(schemas)):
        assert answers(schema, shared) == answers(schema, byte_vocabulary()), schema


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
