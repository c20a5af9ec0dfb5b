"""Special tokens in structural tags: by their names in texts, and as tokens by text or id."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import constrain
from constrain.parts import StructuralTag
from tests.structural.cases import ANY, const, json, sequence, tag, triggered
from tests.support import for_each

TOOL, END, WORD, THINK = 256, 257, 258, 259
SPECIAL = {TOOL: "<tool>", END: "</tool>"}
VOCABULARY = constrain.Vocabulary.from_tokens(
    [*(bytes([byte]) for byte in range(256)), b"", b"", b"word", b"<think>", b""], eos=[260], special=SPECIAL
)
"""``<tool>`` and ``</tool>`` are special tokens; ``word`` and ``<think>`` are tokens with a text."""

ONE = json({"const": 1})
Given = tuple[str | int, ...]


def accepts(document: dict[str, Any], *parts: str | int) -> bool:
    """Whether these tokens are a whole answer; a text stands for its bytes."""
    matcher = constrain.compile(StructuralTag({"format": document}), VOCABULARY, cache=False).matcher()
    for part in parts:
        for token in [part] if isinstance(part, int) else part.encode():
            if not matcher.accept(token):
                return False
    return matcher.is_accepting


def token(name: str | int) -> dict[str, object]:
    return {"type": "token", "token": name}


@for_each(
    "document, accepted, rejected",
    [
        (
            triggered(["<tool>"], [tag("<tool>", ONE, "</tool>")]),
            [("a", TOOL, "1", END, "b"), (), ("a<tool>",)],
            [(TOOL,), (TOOL, "1</tool>"), (END,), (TOOL, "2", END)],
        ),
        (
            triggered(["\n<tool>a"], [tag("\n<tool>ab", ONE, "</tool>")]),
            [("\n", TOOL, "ab1", END), ("x\n", TOOL, "ab1", END, "\n")],
            [(TOOL, "ab1", END), ("\n", TOOL, "b1", END)],
        ),
        (tag("<tool>", ANY, "</tool>"), [(TOOL, "a</tool>", END)], [(TOOL, "a"), (TOOL, TOOL, END), ("<tool>", END)]),
        (sequence(const("a<tool>b"), ONE), [("a", TOOL, "b1")], [("a<tool>b1",)]),
        (
            {
                "type": "token_triggered_tags",
                "trigger_tokens": ["<tool>"],
                "tags": [tag(token("<tool>"), ONE, token(END))],
                "exclude_tokens": ["</tool>", 260],
            },
            [(), ("a", TOOL, "1", END, "b", TOOL, "1", END)],
            [(TOOL, "1"), (END,), ("a", TOOL, "2")],
        ),
        (
            {
                "type": "token_triggered_tags",
                "trigger_tokens": [TOOL],
                "tags": [tag(token(TOOL), ONE, token("</tool>"))],
                "at_least_one": True,
                "stop_after_first": True,
            },
            [(TOOL, "1", END)],
            [(), ("a", TOOL, "1", END), (TOOL, "1", END, "a")],
        ),
        (
            {"type": "token_dispatch", "rules": [["<tool>", const("x")], [END, ONE]], "loop": False},
            [("a", TOOL, "x"), (END, "1"), ("a",)],
            [(TOOL,), (TOOL, "xa"), (END, "x")],
        ),
        (token(TOOL), [(TOOL,)], [("<tool>",), ()]),
        (
            tag(token("<tool>"), {"type": "any_tokens"}, token("</tool>")),
            [(TOOL, "ab", WORD, END)],
            [(TOOL, TOOL, END)],
        ),
        # A token with a text stands for its text: the tokens that spell it are allowed, too.
        (
            tag(token("<think>"), {"type": "any_tokens"}, token("word")),
            [(THINK, "a", WORD), ("<think>aword",), (THINK, WORD)],
            [(THINK, "a"), (THINK, WORD, "a"), (THINK, "wordword")],
        ),
        (
            {"type": "exclude_token", "exclude_tokens": ["b", WORD, "<other>", 300]},
            [("a",), (THINK,), (TOOL,), (END,), (0,)],
            [(), ("b",), (WORD,), ("aa",), (THINK, THINK)],
        ),
        ({"type": "exclude_token"}, [("b",), (WORD,), (TOOL,)], [(), ("bb",)]),
        (
            tag(token("<tool>"), {"type": "exclude_token", "exclude_tokens": [END]}, token("word")),
            [(TOOL, "a", WORD), (TOOL, TOOL, "word")],
            [(TOOL, END, WORD), (TOOL, WORD, WORD), (TOOL, WORD)],
        ),
        (tag("<tool>", {"type": "exclude_token"}, "</tool>"), [(TOOL, "a", END)], [(TOOL, END, END), (TOOL, END)]),
        (
            tag(token(TOOL), {"type": "any_tokens", "max_tokens": 2, "exclude_tokens": ["word"]}, token(END)),
            [(TOOL, END), (TOOL, "ab", END), (TOOL, THINK, "a", END)],
            [(TOOL, "abc", END), (TOOL, WORD, END), (TOOL, TOOL, END)],
        ),
        (
            sequence(tag("x", {**ANY, "max_tokens": 2}, "</x>"), ONE),
            [("x</x>1",), ("xa", WORD, "</x>1"), ("x<<</x>1",)],
            [("xabc</x>1",), ("xab", WORD, "</x>1"), ("x",)],
        ),
        ({**ANY, "max_tokens": 2, "max_chars": 5}, [(), (WORD,), (WORD, "a")], [(WORD, WORD), ("aaa",)]),
        ({**ANY, "max_tokens": 0}, [()], [("a",)]),
        (
            {"type": "star", "content": tag("<", {**ANY, "max_tokens": 1}, ">")},
            [(), ("<a><", WORD, "><>")],
            [("<aa>",), ("<a><", WORD, "a>")],
        ),
        (
            {"type": "any_tokens", "exclude_tokens": [WORD, "<tool>"]},
            [("wor", "d"[:0]), (THINK,)],
            [(WORD,), ("word",), (TOOL,)],
        ),
    ],
)
def test_special_tokens_are_read_where_the_tag_names_them(
    document: dict[str, Any], accepted: list[Given], rejected: list[Given]
) -> None:
    assert [given for given in accepted if not accepts(document, *given)] == []
    assert [given for given in rejected if accepts(document, *given)] == []


def test_free_text_of_limited_tokens_is_complete_in_every_budget() -> None:
    document = tag("<tool>", {"type": "any_tokens", "max_tokens": 5}, "</tool>")
    constraint = constrain.compile(StructuralTag({"format": document}), VOCABULARY, cache=False)
    row = constraint.allocate_bitmask()[0]
    rng = Random(3)
    for budget in range(constraint.report.min_tokens, 12):
        for _ in range(20):
            matcher, written = constraint.matcher(max_tokens=budget), []
            while not matcher.is_finished:
                matcher.fill_bitmask(row)
                written.append(rng.choice([each for each in range(261) if row[each // 32] >> (each % 32) & 1]))
                assert matcher.accept(written[-1])
            assert written[0] == TOOL
            assert written[-1] == END
            assert len(written) - 2 <= min(5, budget - 2)


def test_free_text_of_limited_tokens_before_what_it_could_take_is_refused() -> None:
    with pytest.raises(constrain.GrammarError, match=r"max_tokens of the rule any text.* remove max_tokens") as error:
        accepts(sequence({**ANY, "max_tokens": 2}, json({"type": "object"})))
    assert error.value.pointer == "/format/elements/0/max_tokens"


def test_a_token_other_than_all_is_an_error() -> None:
    with pytest.raises(constrain.GrammarError, match="any other token: no token is left in this set") as error:
        accepts({"type": "exclude_token", "exclude_tokens": list(range(260))})
    assert error.value.pointer == "/format"


def test_names_are_plain_text_in_a_vocabulary_without_them() -> None:
    document = {"format": triggered(["<tool>"], [tag("<tool>", ONE, "</tool>")])}
    plain = constrain.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), b""], eos=[256])
    constraint = constrain.compile(StructuralTag(document), plain, cache=False)
    assert constraint.accepts("a<tool>1</tool>b")
    assert not constraint.accepts("<tool>")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("<tools>", "this vocabulary has no token <tools>; it has <tool>, </tool>"),
        (999, "this vocabulary has no token <[999]>"),
    ],
)
def test_a_token_that_the_vocabulary_lacks_is_an_error(given: str | int, message: str) -> None:
    with pytest.raises(constrain.GrammarError) as error:
        accepts(token(given))
    assert error.value.message == message
    assert error.value.pointer == "/format"


def test_a_token_that_ends_a_generation_is_an_error() -> None:
    with pytest.raises(constrain.GrammarError, match="ends the generation"):
        accepts({"type": "sequence", "elements": [token(260), token(260)]})
