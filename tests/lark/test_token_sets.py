"""Tokens by id in Lark grammars: ``<[5]>``, ``<[5-9,12]>``, ``<[^5]>``, ``<[*]>``, and tokens that end a generation."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest

import constrain
from constrain.engine.classes import complement, divide, joined, without
from constrain.engine.remembered import remembered_constraints
from constrain.language.special import mark
from constrain.work import compilation
from tests.support import for_each
from tests.support.matching import allowed_tokens as allowed
from tests.support.processor_time import finishes_within

END, CALL, START, UNUSED, OTHER_END, THE, AB, B, TAG = range(256, 265)
VOCABULARY = constrain.Vocabulary.from_tokens(
    [*(bytes([byte]) for byte in range(256)), b"", b"", b"", b"", b"", b"the", b"ab", b"b", b"<tag>"],
    eos=[END, OTHER_END],
    special={END: "<|end|>", CALL: "<|call|>", START: "<s>", UNUSED: "", OTHER_END: "<|eom|>"},
)
N = VOCABULARY.n_vocab
MAX_READINGS = 64


def compiled(grammar: str, vocabulary: constrain.Vocabulary = VOCABULARY) -> constrain.Constraint:
    return constrain.compile(constrain.Lark(grammar), vocabulary, cache=False)


def after(grammar: str, *tokens: int) -> constrain.Matcher:
    matcher = compiled(grammar).matcher()
    assert matcher.accept_many(tokens) == len(tokens)
    return matcher


@for_each(
    "grammar, ids",
    [
        ("start: <[261]>", {THE}),
        ("start: <[65,70-72]>", {65, 70, 71, 72}),
        ("start: <[1,,2]>", {1, 2}),
        ("start: <[70-70,60-75]>", set(range(60, 76))),
        ("start: <[*]>", set(range(N)) - {END, OTHER_END}),
        ("start: <[^65]>", set(range(N)) - {65, END, OTHER_END}),
        ("start: <[^0-255,261-264]>", {CALL, START, UNUSED}),
        ("start: <[^257]> | <|call|>", set(range(N)) - {END, OTHER_END}),
        ("start: <[250-259]>", {*range(250, 256), CALL, START, UNUSED}),
        ("start: <[259]>", {UNUSED}),
        ("start: <s> | <[257]>", {CALL, START}),
        ('start: <[261]> | "t"', {THE, ord("t")}),
        ("start: <tag>", {TAG}),
    ],
)
def test_masks_have_the_tokens_of_the_set(grammar: str, ids: set[int]) -> None:
    constraint = compiled(grammar)
    assert allowed(constraint.matcher()) == ids
    for token in ids:
        matcher = constraint.matcher()
        assert matcher.accept(token)
        assert matcher.is_finished
    assert not any(constraint.matcher().accept(token) for token in set(range(N)) - ids)


def test_a_token_with_two_readings_is_read_both_ways() -> None:
    both = after('start: <[262]> "c" | "abd"', AB)
    assert allowed(both) == {ord("c"), ord("d")}
    both.accept(ord("d"))
    assert both.is_finished
    both.rollback(1)
    assert allowed(both) == {ord("c"), ord("d")}
    assert both.accept(ord("c"))
    assert not both.fork().accept(ord("c"))


def test_readings_that_reach_the_same_place_are_one_again() -> None:
    matcher = compiled('start: (<[262,263]> | "ab" | "b" | "a")* "c"').matcher()
    for _ in range(300):
        assert matcher.accept(AB)
        assert matcher.accept(B)
    assert matcher.n_readings == 1
    assert allowed(matcher) == {ord("a"), ord("b"), ord("c"), AB, B}


def test_a_rollback_leads_to_the_readings_of_that_place() -> None:
    """Readings come and go at each token of this grammar."""
    constraint = compiled('start: (<[262]> "c"? | "ab" "d"? | "b" | <[263]> "e" | "c" | "d")+')
    rng = Random(0)
    for _ in range(2):
        matcher, masks = constraint.matcher(), []
        for _ in range(200):
            masks.append(allowed(matcher))
            assert matcher.accept(rng.choice(sorted(masks[-1] - {END, OTHER_END})))
        while masks:
            back = min(len(masks), rng.randint(1, 60))
            matcher.rollback(back)
            del masks[len(masks) - back + 1 :]
            assert allowed(matcher) == masks.pop()
        assert matcher.n_accepted == 0


def test_too_many_readings_leave_tokens_out_and_say_so() -> None:
    matcher = compiled('start: (<[262]> | "a" | "b"){200}').matcher(max_tokens=210)
    for _ in range(MAX_READINGS + 10):
        assert matcher.accept(AB)
    assert matcher.limits_met == ("MAX_READINGS",)
    assert matcher.is_narrowed
    tokens = matcher.completion_tokens()
    assert matcher.n_accepted + len(tokens) <= 210
    assert matcher.accept_many(tokens) == len(tokens)
    assert matcher.is_accepting
    matcher.rollback(len(tokens) + MAX_READINGS + 10)
    assert matcher.limits_met == ()


def test_completions_are_complete_where_readings_are_left_out() -> None:
    """Many readings take the same tokens, and some of them need more."""
    constraint = compiled('start: start "b" | p\nr[max_tokens=6]: r+ | "b" | p "bb"\np: start start? r | <[262]>')
    matcher = constraint.matcher()
    assert matcher.accept_many([AB, AB, AB, AB, ord("b"), AB, ord("b"), AB]) == 8
    tokens = matcher.completion_tokens()
    assert matcher.accept_many(tokens) == len(tokens)
    assert matcher.limits_met == ("MAX_READINGS",)
    assert matcher.is_accepting


@for_each(
    "grammar, accepted, rejected",
    [
        ('start: <[262]> "c"', [b"abc"], [b"ab", b"ac"]),
        ("start: <[97-122]>+", [b"word", b"a"], [b"", b"A"]),
        ("start: <[*]>{2}", [b"ab", b"abb", b"theb", b"thethe", mark("<s>") + b"the"], [b"", b"abbb", b"x"]),
        ('start: "a" <[257,259]>', [b"a" + mark("<|call|>"), b"a" + mark("<[259]>")], [b"a", b"a" + mark("<s>")]),
        ('start: "a" <|eom|>', [b"a" + mark("<|eom|>"), b"a" + mark("<[260]>")], [b"a", b"a<|eom|>"]),
        ("start: <tag>", [b"<tag>"], [b"<ta", b"tag"]),
        ("start: <[^0-260]> /[0-9]+/", [b"the1", b"ab20", b"b3"], [b"t1", b"the"]),
        ("start: <[262]>", [b"ab"], [b"\xff\xc00\xfe"]),
    ],
)
def test_texts_match_if_some_tokens_of_them_do(grammar: str, accepted: list[bytes], rejected: list[bytes]) -> None:
    constraint = compiled(grammar)
    assert [text for text in accepted if not constraint.accepts(text)] == []
    assert [text for text in rejected if constraint.accepts(text)] == []


def test_ignored_text_stands_before_a_token_and_after_it() -> None:
    constraint = compiled('start: "a" <[262]> "b"\n%ignore " "')
    assert constraint.accepts("a  ab b")
    assert not constraint.accepts("a a b b")


@pytest.mark.parametrize(
    "grammar", ['start: "a" <|eom|>', 'start: "a" (<[260]> | "b")', 'start: call | "a"\ncall: "a" <[7,260]>']
)
def test_a_grammar_may_end_with_a_token_that_ends_the_generation(grammar: str) -> None:
    matcher = after(grammar, ord("a"))
    assert OTHER_END in allowed(matcher)
    assert (END in allowed(matcher)) == matcher.is_accepting
    assert matcher.accept(OTHER_END)
    assert matcher.is_finished
    assert allowed(matcher) == set()
    assert matcher.completion_tokens() == []
    assert not matcher.accept(END)
    matcher.rollback(1)
    assert OTHER_END in allowed(matcher)


@for_each(
    "grammar, message, place",
    [
        ("start: <[265]>", "there is no token 265; the vocabulary has 265 tokens, with ids from 0 to 264", (1, 8)),
        ('start: "a"\n  | <[^0-99999999999999999999999]>', "there is no token 99999999999999999999", (2, 5)),
        ("start: <[9-7]>", "ids go up: 7 is less than 9", (1, 8)),
        ("start: <[]>", "names no token", (1, 8)),
        ("start: <[^]>", "names no token", (1, 8)),
        ("start: <[^*]>", "* stands for all tokens, so it stands alone", (1, 8)),
        ("start: <[*,1]>", "* stands for all tokens, so it stands alone", (1, 8)),
        ("start: <[1-2-3]>", "1-2-3 is no id of a token, and no range of ids", (1, 8)),
        ("start: <[-3]>", "-3 is no id of a token", (1, 8)),
        ("start: <[x]>", "x is no id of a token", (1, 8)),
        ("start: <[^0-264]>", "no token is left in this set", (1, 8)),
        ("start: <[256-256,260]>\nb: <[1]>", None, None),
        ("start: <[255-256,^1]>", "^1 is no id of a token", (1, 8)),
        ("start: <[^0-255,257-259,261-264]>", "no token is left in this set", (1, 8)),
        ("start: <|nope|>", "this vocabulary has no token of this name", (1, 8)),
        ("start: <|eo|>", "it has <|eom|>", (1, 8)),
        ('start: <|eom|> "a"', "this ends the generation, but more may follow it here", (1, 8)),
        ('start: a+\na: "x" | <[260]>', "this ends the generation, but more may follow it here", (2, 10)),
        ('start: a b*\na: <[260]>\nb: "c"', "this ends the generation, but more may follow it here", (2, 4)),
        ("start: A\nA: <[5]>", "<[5]> stands for a token, not a text, so it is allowed in rules only", (2, 4)),
    ],
)
def test_refusals_name_the_place(grammar: str, message: str | None, place: tuple[int, int] | None) -> None:
    if message is None:
        compiled(grammar)
        return
    with pytest.raises(constrain.GrammarError) as caught:
        compiled(grammar)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == place


def test_sets_that_divide_one_another_too_often_are_refused_in_time() -> None:
    with finishes_within(2):
        grammar = "start: " + " | ".join(f"<[^{token}]>" for token in range(150))
        with pytest.raises(constrain.LimitError, match="MAX_COMPILE_WORK"):
            compiled(grammar)
    ids = ",".join(str(token) for token in range(0, 250, 2))
    assert allowed(compiled(f"start: <[{ids}]>").matcher()) == set(range(0, 250, 2))


def test_sets_divide_the_ids_into_classes() -> None:
    rng = Random(1)
    for _ in range(200):
        sets = [joined([(low, low + rng.randrange(5)) for low in rng.choices(range(40), k=3)]) for _ in range(4)]
        classes, parts = divide(sets)
        for ranges, numbers in zip(sets, parts, strict=True):
            ids = [token for number in numbers for low, high in classes[number] for token in range(low, high + 1)]
            assert sorted(ids) == [token for low, high in ranges for token in range(low, high + 1)]
        some = set(rng.choices(range(45), k=5))
        left = {token for low, high in without(sets[0], some) for token in range(low, high + 1)}
        assert left == {token for low, high in sets[0] for token in range(low, high + 1)} - some
        assert complement(complement(sets[0], 50), 50) == sets[0]
    with compilation(), pytest.raises(constrain.LimitError):
        divide([complement(((token, token),), 10_000) for token in range(200)])


def test_a_budget_holds_whatever_the_reading() -> None:
    constraint = compiled('start: <s> (<[262]> "c" | "ab" | "b")* <|call|> /[0-9]{2,4}/')
    rng = Random(2)
    for budget in range(4, 16):
        for _ in range(20):
            matcher = constraint.matcher(max_tokens=budget)
            for _ in range(budget):
                chosen = allowed(matcher) - {END, OTHER_END}
                if not chosen:
                    break
                assert matcher.accept(rng.choice(sorted(chosen)))
            assert matcher.is_accepting
    with pytest.raises(constrain.BudgetError):
        constraint.matcher(max_tokens=3)


def test_completions_and_forced_text() -> None:
    matcher = compiled('start: "x" "y" <[261]> "z"').matcher()
    assert matcher.forced_bytes() == b"xy"
    assert matcher.shortest_completion() == b"xythez"
    tokens = matcher.completion_tokens()
    assert tokens == [*b"xy", THE, ord("z")]
    assert len(tokens) == matcher.min_tokens_left
    assert matcher.accept_many(tokens) == len(tokens)
    assert matcher.is_finished
    for grammar in ("start: <[257]> <s>", "start: <[259]> <|eom|>", "start: <[*]>{3}"):
        constraint = compiled(grammar)
        assert constraint.accepts(constraint.matcher().shortest_completion())


@pytest.mark.parametrize("symbol", ["<|call|>", "<[257]>", "<[257,261]>"])
def test_a_token_is_shorter_than_letters(symbol: str) -> None:
    constraint = compiled(f'start: "xyz" | {symbol}')
    assert constraint.matcher().min_tokens_left == 1
    assert ord("x") not in allowed(constraint.matcher(max_tokens=1))


def test_explanations() -> None:
    matcher = after('start: "a" <[262]> | "a" "x"', ord("a"))
    assert matcher.explain(AB) == f"token {AB} (b'ab') is allowed"
    assert "fails at byte 0 (b'b'); expected <[262]> (line 1" in matcher.explain(ord("b"))
    assert "may not stand here" in matcher.explain(CALL)
    grammar = constrain.Lark('start: "a" <[^5-9]> "b"')
    found = constrain.explain(grammar, "a<[^5-9]>x")
    assert (found.offset, found.completion) == (len("a<[^5-9]>"), b"b")
    assert constrain.explain(grammar, "a<[^5-9]>b").matches


def test_candidates_are_those_of_the_mask() -> None:
    constraint = compiled("start: <[65,261-263]>")
    logits = np.arange(N, dtype=np.float32)
    out = np.zeros(N, dtype=[("id", "i4"), ("logit", "f4"), ("p", "f4")])
    matcher = constraint.matcher()
    assert matcher.fill_candidates(logits, out) == 4
    assert out["id"][:4].tolist() == out["logit"][:4].tolist() == [65, 261, 262, 263]
    for wrong in (np.zeros(3, np.uint32), np.zeros(9, np.int64), np.zeros((1, 9), np.uint32)):
        with pytest.raises(ValueError, match="bitmask must have shape"):
            matcher.fill_bitmask(wrong)
    with pytest.raises(TypeError):
        matcher.fill_bitmask([0] * 9)  # type: ignore[arg-type]
    with pytest.raises(IndexError):
        matcher.accept(N)


def test_a_logits_processor_takes_these_tokens() -> None:
    processor = compiled('start: <[262]> "c"').logits_processor()
    masked = processor(np.array([1]), np.zeros(N, np.float32))
    assert np.flatnonzero(masked == 0).tolist() == [AB]
    assert np.flatnonzero(processor(np.array([1, AB]), np.zeros(N, np.float32)) == 0).tolist() == [ord("c")]


def test_a_packed_constraint_has_the_same_masks() -> None:
    constraint = compiled('start: <[262]> "c" | "abd"')
    constraint.precompute()
    again = constrain.Constraint._unpacked(VOCABULARY, constraint._packed(), lambda: constraint.grammar, None)
    matcher = again.matcher()
    assert matcher.accept(AB)
    assert allowed(matcher) == {ord("c"), ord("d")}
    assert again.accepts("abd")


def test_a_cached_constraint_has_the_same_masks(tmp_path: Path) -> None:
    grammar = constrain.Lark('start: <[262]> "c" | "abd"')
    assert constrain.compile(grammar, VOCABULARY, cache=tmp_path).precompute().file is not None
    remembered_constraints.forget(VOCABULARY)
    again = constrain.compile(grammar, VOCABULARY, cache=tmp_path)
    assert again._grammar is None, "compiled anew"
    matcher = again.matcher()
    assert matcher.accept(AB)
    assert allowed(matcher) == {ord("c"), ord("d")}
    assert "expected <[262]> (line 1, column 8)" in again.matcher().explain(ord("x"))


@pytest.mark.slow
def test_a_large_vocabulary_is_divided_in_time() -> None:
    tokens = [bytes([byte]) for byte in range(256)] + [f"w{number}".encode() for number in range(262_000)]
    vocabulary = constrain.Vocabulary.from_tokens([*tokens, b""], eos=[len(tokens)])
    with finishes_within(2):
        constraint = compiled('start: "a" <[^97]> <[5000-260000]>* "b"', vocabulary)
        matcher = constraint.matcher()
        assert matcher.accept(97)
        assert len(allowed(matcher)) == len(tokens) - 1


REFUSED = ("[]", "[^]", "[5-3]", "[300]", "[^300]", "[0-99999]", "[1-2-3]", "[^*]", "[*,1]", "[x]", "[3-]")


@for_each("written", REFUSED)
def test_sets_that_name_no_token_are_refused(written: str) -> None:
    with pytest.raises(constrain.GrammarError):
        compiled(f"start: <{written}>")
