"""What a compilation may take: counted the same each time, and told with the name of the limit and the place."""

from __future__ import annotations

import contextlib
import gc
from typing import Any

import pytest

import constrain
from constrain import kernel
from constrain import work as _work
from constrain.json_schema.compiler import compile_schema
from constrain.language.tree import Alternation, Complement, Intersection, Literal, Repetition
from constrain.regex.anchors import sequence
from tests.support import byte_vocabulary, for_each
from tests.support.hostile_schemas import FAMILIES, cost

SMALL = {
    "enum of objects": 200,
    "references one after the other": 200,
    "references into a chain of references": 200,
    "properties": 200,
    "properties of bounded numbers, any spelling": 10,
    "properties with lookahead": 20,
    "allOf of not const": 200,
    "allOf of not const strings": 200,
    "allOf of not required": 50,
    "oneOf of tagged objects": 30,
    "oneOf of objects": 20,
    "conditions on a string": 20,
    "dependentRequired": 20,
    "key patterns that overlap": 3,
    "unique items of objects": 100,
}
"""Families of which a size takes a few hundredths of a second."""


def steps_of(schema: Any, **options: Any) -> int:
    return compile_schema(schema, **options).steps


@pytest.mark.slow(but=("enum of objects", "properties", "conditions on a string"))
@pytest.mark.parametrize("name", SMALL)
def test_a_schema_beyond_the_limit_is_refused_with_its_name_and_the_place(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    family = FAMILIES[name]
    schema = {"properties": {"below": family.make(SMALL[name])}}
    if "$defs" in schema["properties"]["below"]:
        schema["$defs"] = schema["properties"]["below"].pop("$defs")
    options = dict(family.options)
    steps = steps_of(schema, **options)
    monkeypatch.setattr(_work, "MAX_COMPILE_WORK", steps)
    assert steps_of(schema, **options) == steps
    monkeypatch.setattr(_work, "MAX_COMPILE_WORK", steps // 2)
    with pytest.raises(constrain.LimitError, match=f"MAX_COMPILE_WORK = {steps // 2}; ") as caught:
        compile_schema(schema, **options)
    assert caught.value.pointer is not None


@pytest.mark.slow(only=("allOf of not const",))
@pytest.mark.parametrize(
    "name", ["references into a chain of references", "allOf of not const", "allOf of not const strings"]
)
def test_a_schema_twice_as_large_takes_about_twice_the_steps(name: str) -> None:
    make = FAMILIES[name].make
    assert steps_of(make(800)) < 2.6 * steps_of(make(400))


def test_parts_of_a_grammar_share_one_allowance(monkeypatch: pytest.MonkeyPatch) -> None:
    embedded = '%json {"type": "integer", "minimum": 3}'
    one = constrain.Lark(f"start: a\na: {embedded}")
    four = constrain.Lark(f"start: a b c d\na: {embedded}\nb: {embedded}\nc: {embedded}\nd: {embedded}")
    monkeypatch.setattr(_work, "MAX_COMPILE_WORK", 2 * steps_of({"type": "integer", "minimum": 3}))
    constrain.compile(one, byte_vocabulary(), cache=False)
    with pytest.raises(constrain.LimitError, match="MAX_COMPILE_WORK"):
        constrain.compile(four, byte_vocabulary(), cache=False)


@for_each("schema", [{"type": "integer", "minimum": 17}, {"type": "nothing"}])
@for_each("was_enabled", [True, False])
def test_the_garbage_collector_is_left_as_it_was(schema: dict[str, Any], was_enabled: bool) -> None:
    seen: list[bool] = []

    class Seeing(dict[str, Any]):
        def items(self) -> Any:
            seen.append(gc.isenabled())
            return super().items()

    try:
        (gc.enable if was_enabled else gc.disable)()
        with contextlib.suppress(constrain.SchemaError):
            compile_schema(Seeing(schema))
        assert gc.isenabled() == was_enabled
    finally:
        gc.enable()
    assert seen
    assert not any(seen)


@pytest.mark.long
@pytest.mark.parametrize("name", FAMILIES)
def test_large_schemas_compile_or_are_refused_in_about_a_second(name: str) -> None:
    found = cost(name)
    assert found.outcome == "compiles" or "MAX_" in found.outcome, found
    assert found.seconds < 2.5, found
    assert found.memory < 500 << 20, found


def test_questions_to_the_kernel_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    either = Alternation((Literal(b"a"), Literal(b"b")))
    loops = [sequence(Repetition(either, 0, None), Literal(b"a"), Repetition(either, k, k)) for k in range(8)]
    questions = [Intersection((one, Complement(other))) for one in loops for other in loops]
    with _work.compilation():
        answers = [_work.asked(kernel.is_empty, question) for question in questions]
    steps = _work.steps_taken()
    assert answers == [one == other for one in range(8) for other in range(8)]
    assert steps > 5_000
    monkeypatch.setattr(_work, "MAX_COMPILE_WORK", steps // 2)
    with _work.compilation():
        with pytest.raises(constrain.LimitError, match="MAX_COMPILE_WORK"):
            [_work.asked(kernel.is_empty, question) for question in questions]
        with pytest.raises(constrain.LimitError, match="MAX_COMPILE_WORK"):
            _work.asked(pytest.fail, "a question is asked though no work is left")


def test_the_parts_of_a_structural_tag_share_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(*sizes: int) -> constrain.Constraint:
        parts = [{"type": "regex", "pattern": f"([ab]{{1,{size}}}a)*"} for size in sizes]
        tag = {"type": "structural_tag", "format": {"type": "sequence", "elements": parts}}
        return constrain.compile(constrain.parts.StructuralTag(tag), byte_vocabulary(), cache=False)

    compiled(5, 6, 7, 8)
    monkeypatch.setattr(_work, "MAX_COMPILE_WORK", _work.steps_taken() // 2)
    with pytest.raises(constrain.LimitError, match="MAX_COMPILE_WORK"):
        compiled(8, 7, 6, 5)


def test_a_proof_that_has_no_steps_left_is_no_fault_of_the_grammar(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = [bytes([byte]) for byte in range(256)]
    vocabulary = constrain.Vocabulary.from_tokens([*tokens, b"", b""], eos=[256], special={257: "<|x|>"})
    grammar = constrain.Lark("start: a\na[max_tokens=9]: <|x|> <|x|>\n")
    constrain.compile(grammar, vocabulary)
    monkeypatch.setattr(_work, "MAX_COMPILE_WORK", 1)
    with pytest.raises(constrain.LimitError, match="MAX_COMPILE_WORK"):
        constrain.compile(grammar, vocabulary, cache=False)
