"""Structural tags: their texts, complete answers at every place and within every budget, and the ways to write them."""

from __future__ import annotations

import json
import pickle
from random import Random
from typing import Any

import pytest

import constrain
from constrain.language.digest import source_digest
from constrain.parts import StructuralTag
from tests.structural.cases import ANY, CALL, CASES, CITY, NOW, TIME, WEATHER, Case, sequence, tag, triggered
from tests.structural.cases import json as json_format
from tests.support import byte_vocabulary


def compiled(document: dict[str, Any] | str, vocabulary: constrain.Vocabulary | None = None) -> constrain.Constraint:
    return constrain.compile(StructuralTag(document), vocabulary or byte_vocabulary(), cache=False)


@pytest.mark.slow(but=("tag", "regex", "triggered_tags"))
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_texts_are_accepted_and_rejected_and_complete_from_every_beginning(case: Case) -> None:
    constraint = compiled({"type": "structural_tag", "format": case.format})
    assert [text for text in case.accepted if not constraint.accepts(text)] == []
    assert [text for text in case.rejected if constraint.accepts(text)] == []
    assert isinstance(StructuralTag({"format": case.format}).describe(), str)
    for text in (each.encode()[:120] for each in case.accepted):
        matcher = constraint.matcher()
        for end, byte in enumerate(text, start=1):
            assert matcher.accept(byte)
            assert constraint.accepts(text[:end] + matcher.shortest_completion())
    require_budgets(constraint)


def require_budgets(constraint: constrain.Constraint) -> None:
    """Every answer is complete within its budget."""
    least = constraint.report.min_tokens
    rng = Random(7)
    for budget in (least, least + 1, least + 5, least + 20):
        matcher = constraint.matcher(max_tokens=budget)
        written: list[int] = []
        while not matcher.is_finished:
            row = constraint.allocate_bitmask()[0]
            matcher.fill_bitmask(row)
            token = rng.choice([each for each in range(257) if row[each // 32] >> (each % 32) & 1])
            assert matcher.accept(token)
            written.append(token)
        assert len(written) <= budget + 1
        assert constraint.accepts(bytes(each for each in written if each < 256))


def test_the_first_form_is_triggered_tags() -> None:
    first = compiled(
        {
            "type": "structural_tag",
            "structures": [
                {"begin": "<function=weather>", "schema": CITY, "end": "</function>"},
                {"begin": "<function=time>", "schema": json.dumps({"enum": ["now", "later"]}), "end": "</function>"},
            ],
            "triggers": ["<function="],
        }
    )
    for text in CASES["triggered_tags"].accepted:
        assert first.accepts(text)
    for text in CASES["triggered_tags"].rejected:
        assert not first.accepts(text)


def test_a_tag_may_be_json_text() -> None:
    document = {"type": "structural_tag", "format": WEATHER}
    given, text = StructuralTag(document), StructuralTag(json.dumps(document))
    assert given == text
    assert hash(given) == hash(text)
    assert source_digest(given) == source_digest(text)
    assert pickle.loads(pickle.dumps(given)) == given
    assert compiled(json.dumps(document)).accepts(CALL)


def test_a_tag_of_a_list_needs_no_type() -> None:
    bare = {key: value for key, value in TIME.items() if key != "type"}
    assert compiled({"format": triggered(["<function="], [bare])}).accepts(NOW)
    assert compiled({"format": bare}).accepts(NOW)


def test_numbers_in_schemas_keep_all_digits() -> None:
    text = '{"format": {"type": "json_schema", "json_schema": {"enum": [0.5, 1E+2, 12345678901234567890]}}}'
    constraint = compiled(text)
    assert constraint.accepts("12345678901234567890")
    assert not constraint.accepts("12345678901234567891")
    assert constraint.accepts("0.5")
    half = compiled({"format": json_format({"type": "number", "multipleOf": 0.5, "minimum": 0, "maximum": 1})})
    assert half.accepts("0.5")
    assert not half.accepts("0.25")


def test_generation_closes_objects() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    source = StructuralTag({"format": tag("<", json_format(schema), ">")})
    text = '<{"a": 1, "b": 2}>'
    assert constrain.compile(source, byte_vocabulary(), cache=False).accepts(text)
    assert not constrain.compile(source.closed(), byte_vocabulary(), cache=False).accepts(text)
    assert source.closed().policies_in_force()["close_objects"] is True


def test_a_tag_is_a_part_of_compositions() -> None:
    source = constrain.parts.sequence(
        "Answer: ", StructuralTag({"format": tag("<", json_format({"const": 1}), ">")}), "."
    )
    constraint = constrain.compile(source, byte_vocabulary(), cache=False)
    assert constraint.accepts("Answer: <1>.")
    assert not constraint.accepts("Answer: <2>.")


def test_the_prompt_shows_the_tag() -> None:
    shown = StructuralTag({"format": sequence(tag("<think>", ANY, "</think>"), triggered(["<function="], [WEATHER]))})
    assert shown.render() == (
        "<think>[any text]</think>[any text, in which these may stand:\n"
        '- <function=weather>[JSON: {\n  "city": string,\n  "days"?: integer\n}]</function>\n]'
    )
    assert shown.render() in shown.describe()
    described = StructuralTag({"format": WEATHER}, description="a call of the weather service")
    assert described.describe() == "Answer with a text of this kind, and nothing else:\na call of the weather service"


def test_the_cache_knows_a_tag(tmp_path: Any) -> None:
    source = StructuralTag({"format": WEATHER})
    first = constrain.compile(source, byte_vocabulary(), cache=tmp_path)
    assert first.precompute(max_masks=10).file is not None
    assert constrain.compile(StructuralTag({"format": WEATHER}), byte_vocabulary(), cache=tmp_path).accepts(CALL)


def test_hundreds_of_tags_are_compiled_at_once() -> None:
    tags = [tag(f"<function=f{index}>", json_format(CITY), "</function>") for index in range(300)]
    constraint = compiled({"format": triggered(["<function="], tags)})
    assert constraint.split == ()
    assert constraint.accepts('a<function=f299>{"city":"b"}</function>c')
    assert not constraint.accepts("<function=f300>")


def test_a_trigger_that_cannot_occur_is_a_warning() -> None:
    constraint = compiled({"format": CASES["an excluded text in a trigger"].format})
    assert constraint.warnings == ("/format/triggers/0: this trigger cannot occur, because it holds an excluded text",)


def test_a_tag_names_the_terminals_of_its_grammars_that_are_split() -> None:
    grammar = {"type": "grammar", "grammar": 'start: "x" ","? /.+/ "\\n"'}
    constraint = compiled({"format": {"type": "tag", "begin": "<a>", "content": grammar, "end": "</a>"}})
    assert constraint.accepts("<a>x,,\n</a>")
    assert any(name.startswith('"," (') for name in constraint.split)
