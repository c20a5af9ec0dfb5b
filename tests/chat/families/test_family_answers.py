"""Answers in the forms of all families, with their special tokens: random walks in every mode are read back."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

import constrain
from constrain.chat.answers.choices import Calls, FunctionCalls, Reasoning, Value
from constrain.chat.answers.language import AnswerLanguage
from constrain.chat.families import forms as families
from constrain.chat.families.format import ToolFormat
from constrain.generation.planning import prefill_tokens
from constrain.language import special
from tests.support import LONG, allowed, for_each, small_vocabulary
from tests.support.chat.parsed import read_answer
from tests.support.chat.walks import MODES, SCHEMA, TOOLS, assert_calls_hold
from tests.support.judging import require_valid

WALKS = 50 if LONG else 5
NAMES = sorted({form.name for form in families.tool_formats().values()})
TEXTS = list(map(small_vocabulary(3).token_bytes, range(256 + 600)))


def token_names(form: ToolFormat) -> tuple[str, ...]:
    """What looks like the name of a special token in the texts of a form."""
    sections = [each for each in (form.content, form.preamble, form.thinking) if each is not None]
    texts = [form.opening, form.call, form.between, form.closing, *(t for s in sections for t in (s.begin, s.end))]
    return tuple(sorted(set(re.findall(r"<[^<>\s$=]+>|\[[A-Z_]+\]", " ".join(texts)))))


class Family:
    """A form with a vocabulary that has its special tokens."""

    def __init__(self, name: str) -> None:
        template = "<|channel|>analysis<|message|>" if name == "harmony" else "</think>"
        self.form = replace(families.tool_format(name), thinking=families.detect_thinking(template))
        self.names = token_names(self.form)
        first = len(TEXTS)
        self.ids = {text: first + index for index, text in enumerate(self.names)}
        self.vocabulary = constrain.Vocabulary.from_tokens(
            [*TEXTS, *(b"" for _ in self.names), b""],
            eos=[first + len(self.names)],
            special={token: text for text, token in self.ids.items()},
        )

    def tokens(self, text: str) -> list[int]:
        """A text, with the special tokens that it names."""
        pieces = re.split(f"({'|'.join(map(re.escape, self.names)) or '$^'})", text)
        return [token for piece in pieces for token in ([self.ids[piece]] if piece in self.ids else piece.encode())]

    def written(self, token: int) -> bytes:
        """A token as readers have it."""
        return TEXTS[token] if token < len(TEXTS) else special.mark(self.names[token - len(TEXTS)])

    def walk(self, constraint: constrain.Constraint, rng: Random, lead: list[int]) -> bytes:
        """A random answer of some 120 tokens at most."""
        matcher, row = constraint.matcher(max_tokens=len(lead) + 120), constraint.allocate_bitmask()[0]
        assert matcher.accept_many(lead) == len(lead)
        text = b"".join(map(self.written, lead))
        while True:
            token = int(rng.choice(allowed(matcher, row)))
            assert matcher.accept(token), (text, token)
            if token == self.vocabulary.eos[0]:
                return text
            text += self.written(token)


def walked(name: str, leads: list[str], **about: Any) -> list[Any]:
    """Answers and what they say."""
    family = Family(name)
    answer = AnswerLanguage(family.form, special=family.names, tools=TOOLS, **about)
    constraint = constrain.compile(answer, family.vocabulary, cache=False)
    starts = [family.tokens(lead) for lead in leads]
    texts = [family.walk(constraint, Random(f"{name} {seed}"), starts[seed % len(starts)]) for seed in range(WALKS)]
    parsed = [read_answer(answer, text) for text in texts]
    for each in parsed:
        assert_calls_hold(answer, each)
    return parsed


def call_begin(form: ToolFormat) -> str:
    """With what the first call begins."""
    return (form.opening + form.call).partition("$")[0]


@pytest.mark.slow(but=("llama3-json-none", "gemma3-none", "harmony-none"))
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NAMES)
def test_random_answers_of_families_are_valid(name: str, mode: str) -> None:
    about = MODES[mode]
    calls = about.get("calls", Calls.AUTO)
    leads = ["", call_begin(families.tool_format(name))] if calls is Calls.AUTO else [""]
    for parsed in walked(name, leads, **about):
        assert parsed.calls or calls is not Calls.REQUIRED
        assert not (parsed.calls and calls is Calls.NONE)
        assert len(parsed.calls) <= 1 or mode not in ("named", "one")


@pytest.mark.parametrize("name", NAMES)
def test_names_may_begin_alike_and_have_all_signs(name: str) -> None:
    family, schema = Family(name), '{"properties": {"a": {"enum": ["b"]}}}'
    tools = tuple(FunctionCalls(called, schema) for called in ("read", "read.file", "read.file/all-" + "x" * 113))
    answer = AnswerLanguage(family.form, special=family.names, tools=tools, calls=Calls.REQUIRED, parallel=False)
    constraint = constrain.compile(answer, family.vocabulary, cache=False)
    for tool in tools:
        alone = constrain.compile(replace(answer, tools=(tool,)), family.vocabulary, cache=False)
        text = alone.matcher().shortest_completion()
        assert constraint.accepts(text)
        assert [call.name for call in read_answer(answer, text).calls] == [tool.name]


@pytest.mark.slow(but=("gemma3-Reasoning.OPENED", "llama3-json-Reasoning.OPENED", "llama3-json-Reasoning.OPTIONAL"))
@pytest.mark.parametrize("reasoning", [Reasoning.OPTIONAL, Reasoning.OPENED])
@pytest.mark.parametrize("name", NAMES)
def test_reasoning_of_families_is_apart(name: str, reasoning: Reasoning) -> None:
    thinking = Family(name).form.thinking
    assert thinking is not None
    begin = thinking.begin if reasoning is Reasoning.OPTIONAL else ""
    for parsed in walked(name, [f"{begin}Hm, 1 < 2.{thinking.end}"], reasoning=reasoning):
        assert parsed.reasoning == "Hm, 1 < 2."


@pytest.mark.slow(but=("gemma3-NONE-text", "harmony-OPENED-value", "hermes-OPENED-text"))
@pytest.mark.parametrize(
    ("content", "begun"), [(None, "So: 1 < 2,"), (Value(json.dumps(SCHEMA)), "{")], ids=["text", "value"]
)
@pytest.mark.parametrize("reasoning", [Reasoning.NONE, Reasoning.OPENED], ids=lambda reasoning: reasoning.name)
@pytest.mark.parametrize("name", NAMES)
def test_answers_of_families_go_on_with_a_text(
    name: str, reasoning: Reasoning, content: Value | None, begun: str
) -> None:
    family = Family(name)
    vocabulary: Any = SimpleNamespace(encode=list, special_tokens=family.ids)
    for calls in (Calls.NONE, Calls.AUTO):
        answer = AnswerLanguage(
            family.form, special=family.names, tools=TOOLS, calls=calls, content=content, reasoning=reasoning
        )
        constraint = constrain.compile(answer, family.vocabulary, cache=False)
        lead = list(prefill_tokens(answer, vocabulary, begun))
        for seed in range(WALKS):
            parsed = read_answer(answer, family.walk(constraint, Random(f"{name} {seed}"), lead))
            assert parsed.reasoning == ""
            assert parsed.content.startswith(begun)


@for_each("name", NAMES)
def test_content_of_a_schema_stands_beside_calls_of_families(name: str) -> None:
    form = families.tool_format(name)
    begin = "" if form.content is None else form.content.begin
    for parsed in walked(name, ["", begin + "{", call_begin(form)], content=Value(json.dumps(SCHEMA))):
        if not parsed.calls:
            require_valid(SCHEMA, parsed.content)
        else:
            assert parsed.content == ""


@pytest.mark.slow(but=("qwen3", "harmony", "mistral-v3"))
@pytest.mark.parametrize("calls", Calls)
@pytest.mark.parametrize("name", NAMES)
def test_the_kernel_proves_that_lexemes_end_by_themselves(name: str, calls: Calls) -> None:
    family = Family(name)
    for names in ((), family.names):
        for reasoning in Reasoning:
            answer = AnswerLanguage(family.form, special=names, tools=TOOLS, calls=calls, reasoning=reasoning)
            grammar = answer.grammar()
            assert grammar.self_delimiting
            constrain.compile(replace(grammar, self_delimiting=False), family.vocabulary, cache=False)
