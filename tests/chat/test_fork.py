"""Whether an answer is a call: as likely as the model makes it, whatever content must be."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import constrain
from constrain._job import Language
from constrain.chat.answers import Answer, Calls, FunctionCalls, Reasoning, Value
from constrain.chat.fork import Fork, has_fork
from constrain.chat.format import Section, Thinking, ToolFormat
from constrain.llama.binding import CANDIDATE
from constrain.regex.source import Regex
from constrain.vocabulary import Vocabulary
from tests.chat.forms import OBJECT, TAGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.constraint import Matcher

EMPTY = json.dumps({"type": "object"})
TOOLS = (FunctionCalls("look", EMPTY), FunctionCalls("lock", EMPTY))
PERSON = Value(json.dumps({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}))
WORDS = [b"You", b"<tool", b"<tool_call>", b'{"', b"</think>", b"<th", b"\n\n", b"<b", b"[TOOL", b'{"name'] + [
    bytes([byte]) for byte in range(0x20, 0x7F)
]
VOCABULARY = Vocabulary.from_tokens(
    [*WORDS, b"\n", b"", b""], eos=[len(WORDS) + 1], special={len(WORDS) + 2: "<think>"}
)
IDS = {text: token for token, text in enumerate([*WORDS, b"\n", b"<eos>", b"<think>"])}


class Asked:
    """What an answer says of likelihoods (of the tokens that have any) behind a text."""

    def __init__(self, form: ToolFormat = TAGS, **options: Any) -> None:
        answer = Answer(form, special=("<think>",), tools=TOOLS, **{"content": PERSON, **options})
        assert has_fork(answer)
        self.fork = Fork(answer, VOCABULARY)
        self.matcher: Matcher = Language(answer).compile(VOCABULARY, cache=False).matcher(max_tokens=1000)
        self.tokens: list[int] = []

    def write(self, *texts: bytes) -> None:
        for text in texts:
            assert self.matcher.accept(IDS[text])
            self.tokens.append(IDS[text])

    def weighed(self, likely: Mapping[bytes, float]) -> dict[bytes, float]:
        """The likelihoods of what is allowed; they add up to 1."""
        return self._likelihoods(likely, self.fork)

    def masked(self, likely: Mapping[bytes, float]) -> dict[bytes, float]:
        """The same by the mask alone."""
        return self._likelihoods(likely, None)

    def _likelihoods(self, likely: Mapping[bytes, float], fork: Fork | None) -> dict[bytes, float]:
        logits = np.full(VOCABULARY.n_vocab, -math.inf, np.float32)
        for text, probability in likely.items():
            logits[IDS[text]] = math.log(probability)
        candidates = np.empty(VOCABULARY.n_vocab, CANDIDATE)
        found = candidates[: self.matcher.fill_candidates(logits, candidates)]
        if fork is not None:
            fork.weigh(self.tokens, logits, found)
        weights = np.exp(found["logit"].astype(float))
        texts = {token: text for text, token in IDS.items()}
        pairs = zip(found["id"].tolist(), (weights / weights.sum()).tolist(), strict=True)
        return {texts[token]: probability for token, probability in pairs if probability}


def test_what_begins_no_call_counts_for_content() -> None:
    likely = {b"You": 0.55, b"<tool": 0.2, b"<": 0.1, b"{": 0.03, b'{"': 0.01, b"<eos>": 0.06, b"<th": 0.05}
    answer = Asked()
    assert answer.masked(likely)[b"<tool"] == pytest.approx(0.2 / 0.34), "without it, calls take what others lose"
    assert answer.weighed(likely) == pytest.approx({b"<tool": 0.2, b"<": 0.1, b"{": 0.525, b'{"': 0.175})


def test_a_model_that_knows_what_it_may_say_is_left_alone() -> None:
    likely = {b"<tool_call>": 0.4, b"{": 0.35, b'{"': 0.25}
    assert Asked().weighed(likely) == pytest.approx(likely)


def test_behind_the_fork_nothing_is_weighed() -> None:
    answer = Asked()
    answer.write(b'{"', *[bytes([byte]) for byte in b'name":"'])
    likely = {b"<": 0.01, b"a": 0.04, b"\n": 0.95}
    assert answer.weighed(likely) == pytest.approx({b"<": 0.2, b"a": 0.8}), "no new line is in a string"
    called = Asked()
    called.write(b"<tool")
    assert called.weighed({b"_": 0.1, b"b": 0.9}) == pytest.approx({b"_": 1})


def test_the_fork_is_behind_reasoning() -> None:
    likely = {b"You": 0.5, b"<tool": 0.25, b"{": 0.05, b"<think>": 0.2}
    answer = Asked(reasoning=Reasoning.OPTIONAL)
    assert answer.weighed(likely) == pytest.approx({b"<tool": 0.25, b"{": 0.55, b"<think>": 0.2})
    answer.write(b"<think>")
    assert answer.weighed({b"\n": 0.5, b"You": 0.5}) == answer.masked({b"\n": 0.5, b"You": 0.5})
    answer.write(b"\n", b"You")
    inside = {b"<tool": 0.2, b"a": 0.2, b"</think>": 0.6}
    assert answer.weighed(inside) == answer.masked(inside) == pytest.approx(inside)
    answer.write(b"</think>")
    behind = {b"You": 0.5, b"<tool": 0.25, b"{": 0.05, b"<eos>": 0.2}
    assert answer.weighed(behind) == pytest.approx({b"<tool": 0.25, b"{": 0.75})
    answer.write(b"\n\n")
    assert answer.weighed(behind) == pytest.approx({b"<tool": 0.25, b"{": 0.75})


def test_the_fork_is_behind_reasoning_that_the_prompt_has_begun() -> None:
    answer = Asked(reasoning=Reasoning.OPENED)
    inside = {b"<tool": 0.3, b"{": 0.1, b"You": 0.6}
    assert answer.weighed(inside) == pytest.approx(inside)
    answer.write(b"You", b"</think>")
    assert answer.weighed(inside) == pytest.approx({b"<tool": 0.3, b"{": 0.7})


def test_where_a_call_begins_like_content_the_mask_decides() -> None:
    likely = {b"You": 0.9, b"{": 0.06, b'{"': 0.03, b'{"name': 0.01}
    assert Asked(OBJECT).weighed(likely) == Asked(OBJECT).masked(likely)
    begun = Asked(OBJECT_THINKING, reasoning=Reasoning.OPTIONAL, content=Regex("[a-z]+"))
    both = {b"You": 0.5, b"<": 0.25, b"a": 0.25}  # a call or reasoning
    assert begun.weighed(both) == pytest.approx({b"<": 0.5, b"a": 0.5})


OBJECT_THINKING = ToolFormat(
    "thinking", call="<tool>$name $arguments", custom_call="<tool>$name $json_input", thinking=Thinking("<th>", "</th>")
)


def test_answers_without_such_a_choice_have_no_fork() -> None:
    sections = ToolFormat(
        "s", call="<c>$name $arguments", custom_call="<c>$name $json_input", content=Section("<t>", "")
    )
    assert not has_fork(Answer(TAGS, tools=TOOLS))
    assert not has_fork(Answer(TAGS, content=PERSON))
    assert not has_fork(Answer(TAGS, tools=TOOLS, content=PERSON, calls=Calls.REQUIRED))
    assert not has_fork(Answer(TAGS, tools=TOOLS, content=PERSON, calls=Calls.NONE))
    assert not has_fork(Answer(TAGS, tools=TOOLS, content=PERSON, allowed=()))
    assert not has_fork(Answer(sections, tools=TOOLS, content=PERSON))


FORECAST = {
    "type": "function",
    "function": {
        "name": "forecast",
        "description": "Weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
ADVICE = {
    "type": "object",
    "properties": {"umbrella": {"type": "boolean"}, "why": {"type": "string", "maxLength": 30}},
    "required": ["umbrella", "why"],
}
CALL = {"id": "c1", "type": "function", "function": {"name": "forecast", "arguments": '{"city":"Oslo"}'}}


def test_a_model_answers_behind_the_result_of_a_call(model: constrain.Model) -> None:
    said = [
        {"role": "user", "content": "I am in Oslo. Do I need an umbrella?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "Rain in Oslo."},
    ]
    replies = [
        constrain.generate(model, said, schema=ADVICE, tools=[FORECAST], seed=seed, temperature=0.7, max_tokens=150)
        for seed in range(6)
    ]
    assert sum(not reply.calls for reply in replies) >= 4, "by the mask alone it is none"
    assert all(reply.content.keys() == {"umbrella", "why"} for reply in replies if not reply.calls)
