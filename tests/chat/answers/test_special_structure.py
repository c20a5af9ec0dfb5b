"""Answers whose structure is made of special tokens: those tokens are allowed where it stands, and nowhere else."""

from __future__ import annotations

from random import Random

import pytest

import constrain
from constrain.chat.answers.choices import Calls, Reasoning
from constrain.chat.answers.language import AnswerLanguage
from constrain.chat.answers.structure import structure_parts
from constrain.chat.families.format import ToolFormat
from tests.support import allowed, small_vocabulary
from tests.support.chat.forms import CHANNELS, TAGS
from tests.support.chat.parsed import read_answer
from tests.support.chat.walks import TOOLS

NAMES = ("<tool_call>", "</tool_call>", "<think>", "</think>", "[TOOL_CALLS]", "<|channel|>", "<|message|>", "<|end|>")
TEXTS = list(map(small_vocabulary(2).token_bytes, range(256 + 400)))
FIRST = len(TEXTS)
VOCABULARY = constrain.Vocabulary.from_tokens(
    [*TEXTS, *(b"" for _ in NAMES), b""],
    eos=[FIRST + len(NAMES)],
    special={FIRST + index: name for index, name in enumerate(NAMES)},
)
END = VOCABULARY.eos[0]


def tokens(structure: str) -> list[int]:
    """The tokens of a structure text."""
    found: list[int] = []
    for part in structure_parts(structure, frozenset(NAMES)):
        found += part.encode() if isinstance(part, str) else [FIRST + NAMES.index(part.name)]
    return found


def written(token: int) -> bytes:
    """A token as readers have it."""
    return TEXTS[token] if token < FIRST else b"\xff%b\xfe" % NAMES[token - FIRST].encode()


def test_only_the_token_is_a_mark() -> None:
    constraint = constrain.compile(AnswerLanguage(TAGS, special=NAMES, tools=TOOLS), VOCABULARY)
    matcher = constraint.matcher()
    assert matcher.accept_many(list(b"<tool_call>\n{}")) == len(b"<tool_call>\n{}")
    assert matcher.is_accepting
    assert matcher.accept_many(tokens("<tool_call>\n{")) == 3
    assert not matcher.accept(ord("}"))
    none = constrain.compile(AnswerLanguage(TAGS, special=NAMES, tools=TOOLS, calls=Calls.NONE), VOCABULARY).matcher()
    assert not none.accept(FIRST)


@pytest.mark.slow(
    but=("Reasoning.OPENED-tokens-channels", "Reasoning.OPTIONAL-tokens-channels", "Reasoning.OPENED-texts-channels")
)
@pytest.mark.parametrize("form", [TAGS, CHANNELS], ids=lambda form: form.name)
@pytest.mark.parametrize("special", [NAMES, ()], ids=["tokens", "texts"])
@pytest.mark.parametrize("reasoning", [Reasoning.OPENED, Reasoning.OPTIONAL])
def test_reasoning_has_a_limit_of_its_own(form: ToolFormat, special: tuple[str, ...], reasoning: Reasoning) -> None:
    answer = AnswerLanguage(form, special=special, tools=TOOLS, calls=Calls.REQUIRED, reasoning=reasoning)
    constraint = constrain.compile(answer, VOCABULARY, cache=False)
    assert form.thinking is not None
    begin = "" if reasoning is Reasoning.OPENED else form.thinking.begin
    lead = tokens(begin) if special else list(begin.encode())
    for seed in range(5):
        rng = Random(seed)
        matcher, row = constraint.matcher(max_reasoning_tokens=10), constraint.allocate_bitmask()[0]
        assert matcher.accept_many(lead) == len(lead)
        text = b"".join(map(written, lead))
        while len(text) < 4000:
            token = int(rng.choice(allowed(matcher, row)))
            assert matcher.accept(token)
            if token == END:
                break
            text += written(token)
            if read_answer(answer, text).calls:
                break
        thought = read_answer(answer, text)
        assert thought.calls, text
        assert len(thought.reasoning) < 200
