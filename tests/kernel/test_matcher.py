"""What a matcher answers, on grammars small enough to see the answers."""

from __future__ import annotations

import numpy as np
import pytest

import constrain
from constrain.language import tree
from constrain.language.grammar import Grammar, GrammarBuilder
from tests.support.matching import allowed_tokens

TOKENS = [b"a", b"b", b"ab", b"ba", b"aab", b";", b"b;", b";a", b"a", b"", b"\xff", b"", b""]
FIRST_A, B, AB, BA, AAB, END_MARK, B_MARK, MARK_A, OTHER_A, NO_TEXT, UNUSED, STOP, OTHER_STOP = range(len(TOKENS))


@pytest.fixture
def vocabulary() -> constrain.Vocabulary:
    return constrain.Vocabulary.from_tokens(TOKENS, eos=[STOP, OTHER_STOP])


def literal(text: bytes) -> tree.Expression:
    return tree.Literal(text)


def sequence_of(*expressions: tree.Expression, self_delimiting: bool = False) -> Grammar:
    builder = GrammarBuilder()
    symbols = [builder.terminal(f"t{number}", expression) for number, expression in enumerate(expressions)]
    builder.define(builder.rule("start"), [symbols])
    return builder.build(self_delimiting=self_delimiting)


@pytest.fixture
def constraint(vocabulary: constrain.Vocabulary) -> constrain.Constraint:
    """``a+ b*``, then a semicolon, any number of times."""
    builder = GrammarBuilder()
    word = tree.Concatenation((tree.Repetition(literal(b"a"), 1, None), tree.Repetition(literal(b"b"), 0, None)))
    lexeme, mark = builder.terminal("word", word), builder.terminal("mark", literal(b";"))
    start = builder.rule("start")
    builder.define(start, [[], [start, lexeme, mark]])
    return constrain.compile(builder.build(), vocabulary)


def test_tokens_with_equal_bytes_are_allowed_together(constraint: constrain.Constraint) -> None:
    assert {FIRST_A, OTHER_A} <= allowed_tokens(constraint.matcher())


def test_ends_of_generation_are_allowed_exactly_where_the_text_may_end(constraint: constrain.Constraint) -> None:
    matcher = constraint.matcher()
    assert allowed_tokens(matcher) == {FIRST_A, AB, AAB, OTHER_A, STOP, OTHER_STOP}
    assert matcher.accept(AB)
    assert allowed_tokens(matcher) == {B, END_MARK, B_MARK, MARK_A}
    assert not matcher.is_accepting
    assert not matcher.accept(STOP)


def test_tokens_may_end_a_lexeme_and_begin_the_next(constraint: constrain.Constraint) -> None:
    matcher = constraint.matcher()
    assert matcher.accept_many([FIRST_A, MARK_A, B_MARK]) == 3
    assert matcher.is_accepting
    assert constraint.accepts(b"a;ab;")


def test_end_of_generation_finishes_and_can_be_taken_back(constraint: constrain.Constraint) -> None:
    matcher = constraint.matcher()
    assert matcher.accept(OTHER_STOP)
    assert matcher.is_finished
    assert not matcher.accept(FIRST_A)
    matcher.rollback(1)
    assert not matcher.is_finished
    assert matcher.accept(FIRST_A)


def test_a_text_that_cannot_go_on_is_finished(vocabulary: constrain.Vocabulary) -> None:
    matcher = constrain.compile(sequence_of(literal(b"ab")), vocabulary).matcher()
    assert not matcher.is_finished
    assert matcher.accept(AB)
    assert matcher.is_finished
    assert matcher.is_accepting
    assert allowed_tokens(matcher) == {STOP, OTHER_STOP}


def test_rollback_beyond_the_first_token_is_an_error_and_changes_nothing(constraint: constrain.Constraint) -> None:
    matcher = constraint.matcher()
    matcher.accept_many([FIRST_A, B])
    with pytest.raises(ValueError, match="3"):
        matcher.rollback(3)
    assert allowed_tokens(matcher) == {B, END_MARK, B_MARK, MARK_A}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}}},
        {
            "type": "array",
            "prefixItems": [True, {"$ref": "#"}],
            "not": {"contains": {"additionalProperties": {"maxItems": 2}, "items": {"maxProperties": 0}}},
        },
    ],
)
def test_shortest_completion_where_keys_come_before_a_value_that_recurs(schema: dict[str, object]) -> None:
    vocabulary = constrain.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), b""], eos=[256])
    constraint = constrain.compile(schema, vocabulary, whitespace="compact", property_order="any")
    matcher = constraint.matcher()
    assert matcher.shortest_completion() == b"[]"
    assert matcher.accept_many(list(b'[{"z":1,"a')) == 10
    assert constraint.accepts(b'[{"z":1,"a' + matcher.shortest_completion())


def test_explain_names_the_byte_and_what_was_expected(constraint: constrain.Constraint) -> None:
    matcher = constraint.matcher()
    matcher.accept(FIRST_A)
    assert "byte 1" in matcher.explain(BA)
    assert "mark" in matcher.explain(BA)
    assert "is allowed" in matcher.explain(B)
    assert "ends the text" in matcher.explain(STOP)
    assert "no text" in matcher.explain(NO_TEXT)


def test_candidates_are_the_allowed_tokens_with_their_logits(constraint: constrain.Constraint) -> None:
    record = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
    logits = np.arange(len(TOKENS), dtype=np.float32) / 3
    candidates = np.zeros(len(TOKENS), record)
    matcher = constraint.matcher()
    for token in (AB, END_MARK):
        count = matcher.fill_candidates(logits, candidates)
        assert candidates["id"][:count].tolist() == sorted(allowed_tokens(matcher))
        assert (candidates["logit"][:count] == logits[candidates["id"][:count]]).all()
        assert matcher.accept(token)


def test_a_bitmask_row_is_written_whole_and_nothing_beside_it(constraint: constrain.Constraint) -> None:
    batch = constraint.allocate_bitmask(3)
    batch.fill(0xFFFFFFFF)
    constraint.matcher().fill_bitmask(batch[1])
    assert (batch[[0, 2]] == 0xFFFFFFFF).all()
    assert batch[1, 0] >> len(TOKENS) == 0


def test_right_recursion_of_any_depth_and_left_recursion_are_alike(vocabulary: constrain.Vocabulary) -> None:
    texts = (b"", b"a" * 20_000)
    for order in ([0, 1], [1, 0]):
        builder = GrammarBuilder()
        start = builder.rule("start")
        symbols = [builder.terminal("a", literal(b"a")), start]
        builder.define(start, [[], [symbols[index] for index in order]])
        constraint = constrain.compile(builder.build(), vocabulary)
        assert all(map(constraint.accepts, texts))
        assert not constraint.accepts(b"ab")


def test_nesting_of_any_depth_is_taken_back_in_order(vocabulary: constrain.Vocabulary) -> None:
    builder = GrammarBuilder()
    start = builder.rule("start")
    builder.define(start, [[], [builder.terminal("a", literal(b"a")), start, builder.terminal("b", literal(b"b"))]])
    constraint = constrain.compile(builder.build(), vocabulary)
    depth = 5_000
    matcher = constraint.matcher()
    assert matcher.accept_many([FIRST_A] * depth) == depth
    assert matcher.shortest_completion() == b"b" * depth
    assert matcher.accept_many([B] * depth) == depth
    assert matcher.is_finished
    matcher.rollback(depth)
    assert not matcher.is_accepting
    assert constraint.accepts(b"a" * depth + b"b" * depth)
    assert not constraint.accepts(b"a" * depth + b"b" * (depth - 1))
