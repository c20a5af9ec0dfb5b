"""Whether an answer is a call: as likely as the model makes it, whatever content must be."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.chat.answers.call_or_content import CallOrContent, offers_both
from constrain.chat.answers.choices import Calls, FunctionCalls, Reasoning, Value
from constrain.chat.answers.language import AnswerLanguage
from constrain.chat.families.format import Section, Thinking, ToolFormat
from constrain.engine.constraint import Matcher
from constrain.generation.plan import Language
from constrain.generation.planning import prepare
from constrain.generation.running import Run, Running
from constrain.llama.binding import CANDIDATE
from constrain.llama.decoding.answer import Answer as Writing
from constrain.llama.decoding.decode import Decoding
from constrain.llama.decoding.sampler import Sampling
from constrain.vocabulary.vocabulary import Vocabulary
from tests.support.chat.forms import OBJECT, TAGS
from tests.support.llama.babbler import babbler

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

    def __init__(self, form: ToolFormat = TAGS, temperature: float = 1, seed: int = 0, **options: Any) -> None:
        answer = AnswerLanguage(form, special=("<think>",), tools=TOOLS, **{"content": PERSON, **options})
        assert offers_both(answer)
        self.choice = CallOrContent(answer, VOCABULARY, Sampling(temperature=temperature, seed=seed))
        self.matcher: Matcher = Language(answer).compile(VOCABULARY, cache=False).matcher(max_tokens=1000)
        self.tokens: list[int] = []

    def write(self, *texts: bytes) -> None:
        for text in texts:
            assert self.matcher.accept(IDS[text])
            self.tokens.append(IDS[text])

    def weighed(self, likely: Mapping[bytes, float]) -> dict[bytes, float]:
        """The likelihoods of what is allowed; they add up to 1."""
        return self._likelihoods(likely, self.choice)

    def masked(self, likely: Mapping[bytes, float]) -> dict[bytes, float]:
        """The same by the mask alone."""
        return self._likelihoods(likely, None)

    def goes_on(self, likely: Mapping[bytes, float]) -> bool:
        """Whether a mark that was begun is not taken back."""
        return self.choice.allows(self.tokens, *self._choice(likely))

    def _choice(self, likely: Mapping[bytes, float]) -> tuple[Any, Any]:
        """Logits and candidates."""
        logits = np.full(VOCABULARY.n_vocab, -math.inf, np.float32)
        for text, probability in likely.items():
            logits[IDS[text]] = math.log(probability)
        candidates = np.empty(VOCABULARY.n_vocab, CANDIDATE)
        return logits, candidates[: self.matcher.fill_candidates(logits, candidates)]

    def _likelihoods(self, likely: Mapping[bytes, float], choice: CallOrContent | None) -> dict[bytes, float]:
        logits, found = self._choice(likely)
        if choice is not None:
            assert choice.allows(self.tokens, logits, found)
        weights = np.exp(found["logit"].astype(float))
        texts = {token: text for text, token in IDS.items()}
        pairs = zip(found["id"].tolist(), (weights / weights.sum()).tolist(), strict=True)
        return {texts[token]: probability for token, probability in pairs if probability}


def test_a_token_that_begins_no_call_counts_for_content() -> None:
    likely = {b"You": 0.55, b"<tool": 0.2, b"<": 0.1, b"{": 0.03, b'{"': 0.01, b"<eos>": 0.06, b"<th": 0.05}
    answer = Asked()
    assert answer.masked(likely)[b"<tool"] == pytest.approx(0.2 / 0.34), "without it, calls take what others lose"
    assert answer.weighed(likely) == pytest.approx({b"<tool": 0.2, b"<": 0.1, b"{": 0.525, b'{"': 0.175})


def test_a_model_that_knows_what_it_may_say_is_left_alone() -> None:
    likely = {b"<tool_call>": 0.4, b"{": 0.35, b'{"': 0.25}
    assert Asked().weighed(likely) == pytest.approx(likely)


def test_behind_the_choice_no_logits_are_adjusted() -> None:
    answer = Asked()
    answer.write(b'{"', *[bytes([byte]) for byte in b'name":"'])
    likely = {b"<": 0.01, b"a": 0.04, b"\n": 0.95}
    assert answer.weighed(likely) == pytest.approx({b"<": 0.2, b"a": 0.8}), "no new line is in a string"
    called = Asked()
    called.write(b"<tool")
    assert called.weighed({b"_": 0.1, b"b": 0.9}) == pytest.approx({b"_": 1})


def test_the_choice_is_behind_reasoning() -> None:
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


def test_the_choice_is_behind_reasoning_that_the_prompt_has_begun() -> None:
    answer = Asked(reasoning=Reasoning.OPENED)
    inside = {b"<tool": 0.3, b"{": 0.1, b"You": 0.6}
    assert answer.weighed(inside) == pytest.approx(inside)
    answer.write(b"You", b"</think>")
    assert answer.weighed(inside) == pytest.approx({b"<tool": 0.3, b"{": 0.7})


WRITTEN = ToolFormat(
    "written", call="<tool>$name $arguments", custom_call="<tool>$name $json_input", thinking=Thinking("<th>", "</th>")
)
"""With marks that begin alike, and are no tokens."""


def test_marks_that_begin_alike_are_told_apart_where_that_is_possible() -> None:
    likely = {b"You": 0.5, b"<tool": 0.2, b"<": 0.1, b"<th": 0.1, b"{": 0.1}
    answer = Asked(WRITTEN, reasoning=Reasoning.OPTIONAL)
    assert answer.weighed(likely) == pytest.approx({b"<tool": 0.2, b"<": 0.1, b"<th": 0.1, b"{": 0.6})
    answer.write(b"<th", b">", b"a", b"<", b"/", b"t", b"h", b">")
    behind = {b"You": 0.5, b"<tool": 0.2, b"<": 0.1, b"<th": 0.1, b"{": 0.1}
    assert answer.weighed(behind) == pytest.approx({b"<tool": 0.2, b"<": 0.1, b"{": 0.7})
    opened = Asked(WRITTEN, reasoning=Reasoning.OPENED)
    opened.write(b"a", b"<", b"/", b"t", b"h", b">")
    assert opened.weighed(behind) == pytest.approx({b"<tool": 0.2, b"<": 0.1, b"{": 0.7})


@pytest.mark.parametrize("other", [{"type": "string"}, {"type": "array", "items": {"type": "string"}}])
def test_what_begins_unlike_calls_is_no_likelier_where_content_may_begin_like_them(other: dict[str, Any]) -> None:
    likely = {b"You": 0.7, b"{": 0.2, b'"': 0.05, b"[": 0.05}
    content = Value(json.dumps({"anyOf": [json.loads(PERSON.schema), other]}))
    assert Asked(OBJECT, content=content).weighed(likely) == Asked(OBJECT, content=content).masked(likely)
    refusing = Asked(OBJECT, refusal=True)
    assert refusing.weighed({b"You": 0.7, b"{": 0.2, b"R": 0.1}) == pytest.approx({b"{": 2 / 3, b"R": 1 / 3})


def test_where_a_call_begins_like_content_the_mask_decides() -> None:
    likely = {b"You": 0.9, b"{": 0.06, b'{"': 0.03, b'{"name': 0.01}
    assert Asked(OBJECT).weighed(likely) == Asked(OBJECT).masked(likely)


# Marks in several tokens.


def went_on(first: float, second: float, temperature: float, seed: int) -> bool:
    """Whether an answer goes on with a mark of these likelihoods: of its first token, and of the rest behind that."""
    answer = Asked(temperature=temperature, seed=seed)
    answer.weighed({b"<tool": first, b"You": 0.9 * (1 - first), b"{": 0.1 * (1 - first)})
    answer.write(b"<tool")
    assert answer.choice.doubts(IDS[b"<tool"])
    return answer.goes_on({b"_": second, b"x": 1 - second})


@pytest.mark.slow
def test_a_mark_goes_on_as_likely_as_the_model_makes_it() -> None:
    assert sum(went_on(0.8, 0.3, 1, seed) for seed in range(200)) / 200 == pytest.approx(0.3, abs=0.1)
    half = 1 / (1 + (0.76 / 0.24) ** 2) / (1 / (1 + (0.2 / 0.8) ** 2))
    assert sum(went_on(0.8, 0.3, 0.5, seed) for seed in range(200)) / 200 == pytest.approx(half, abs=0.07)


def test_without_chance_the_likelier_one_of_call_and_content_is_taken() -> None:
    assert went_on(0.8, 0.7, 0, 1)
    assert not went_on(0.8, 0.6, 0, 1)
    assert went_on(0.4, 0.1, 0, 1), "something else than the model has decided for the mark"
    answer = Asked(temperature=0)
    answer.weighed({b"<tool": 0.4, b"{": 0.3, b'{"': 0.3})
    answer.write(b"<tool")
    assert answer.choice.doubts(IDS[b"<tool"])
    assert not answer.goes_on({b"_": 0.1, b"x": 0.9}), "it was the likeliest token; content is likelier than a call"


def test_behind_a_mark_that_was_taken_back_is_content() -> None:
    answer = Asked(temperature=0)
    first = {b"<tool": 0.8, b"<": 0.1, b"{": 0.02, b'{"': 0.08}
    answer.weighed(first)
    answer.write(b"<tool")
    assert answer.choice.doubts(IDS[b"<tool"])
    assert not answer.goes_on({b"_": 0.1, b"x": 0.9})
    answer.matcher.rollback(1)
    answer.tokens.pop()
    assert answer.weighed(first) == pytest.approx({b"{": 0.2, b'{"': 0.8})
    assert not answer.choice.doubts(IDS[b'{"'])


def test_there_is_no_doubt_behind_a_whole_mark_or_content() -> None:
    for written in (b"<tool_call>", b"{"):
        answer = Asked()
        answer.weighed({b"<tool_call>": 0.5, b"{": 0.5})
        assert not answer.choice.doubts(IDS[written])
    marked = Asked()
    for token, rest in ((b"<tool", True), (b"_", True), *((bytes([byte]), True) for byte in b"call"), (b">", False)):
        marked.weighed({token: 1.0, **({b"{": 0.1} if token == b"<tool" else {})})
        marked.write(token)
        assert marked.choice.doubts(IDS[token]) is rest


def test_answers_without_such_a_choice_do_not_have_it() -> None:
    sections = ToolFormat(
        "s", call="<c>$name $arguments", custom_call="<c>$name $json_input", content=Section("<t>", "")
    )
    assert not offers_both(AnswerLanguage(TAGS, tools=TOOLS))
    assert not offers_both(AnswerLanguage(TAGS, content=PERSON))
    assert not offers_both(AnswerLanguage(TAGS, tools=TOOLS, content=PERSON, calls=Calls.REQUIRED))
    assert not offers_both(AnswerLanguage(TAGS, tools=TOOLS, content=PERSON, calls=Calls.NONE))
    assert not offers_both(AnswerLanguage(TAGS, tools=TOOLS, content=PERSON, allowed=()))
    assert not offers_both(AnswerLanguage(sections, tools=TOOLS, content=PERSON))


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


SAID: list[dict[str, Any]] = [
    {"role": "user", "content": "I am in Oslo. Do I need an umbrella?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "Rain in Oslo."},
]


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tokens were taken back, each time."""
    found: list[int] = []
    take_back = Writing._take_back

    def take(answer: Writing, matcher: Any) -> tuple[int, ...]:
        found.append(answer.n_doubtful)
        return take_back(answer, matcher)

    monkeypatch.setattr(Writing, "_take_back", take)
    return found


class Doubting:
    """It has doubts about the first three tokens."""

    def __init__(self, _: Any) -> None:
        self.doubted = 0

    def allows(self, *_: Any) -> bool:
        return True

    def doubts(self, _: int) -> bool:
        self.doubted += 1
        return self.doubted <= 3


@pytest.mark.slow
@pytest.mark.parametrize("logprobs", [True, False])
def test_an_open_choice_is_taken_back_when_time_is_up(
    model: constrain.Model, logprobs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken_back = counted(monkeypatch)
    monkeypatch.setattr(Writing, "_late", lambda answer: answer.n_doubtful == 2)
    options: Any = {"max_tokens": 20, "temperature": 0, "logprobs": logprobs}
    schema = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
    plan = prepare(model, SAID, schema, options)
    plan = replace(plan, call_or_content=Doubting)
    alone = Running(plan)
    written = list(Decoding(model.context, alone.answer).steps())
    handed: list[int] = []
    together = Run(plan)
    together.request.receive = handed.extend
    together.submit()
    together.request.done.result(30)
    completion = together.finish()[1]
    assert taken_back == [2, 2]
    assert alone.answer.finish_reason == completion.finish_reason == "timeout"
    assert written == alone.answer.tokens == handed == list(completion.tokens)
    assert re.fullmatch(rb"\[[0-9],[0-9]\]", b"".join(map(model.vocabulary.token_bytes, written)))
    if logprobs:
        assert completion.logprobs is not None
        assert [each.token for each in completion.logprobs] == written
        assert [each.logprob for each in completion.logprobs] == pytest.approx(
            [each.logprob for each in alone.completion(0, constrain.results.Timings(0, 0, 0, 0)).logprobs or ()],
            abs=0.01,
        )


@pytest.mark.slow
@pytest.mark.parametrize("logprobs", [True, False])
def test_a_choice_that_is_taken_back_leaves_no_trace(
    model: constrain.Model, logprobs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert model.vocabulary.encode is not None
    begun, *_ = model.vocabulary.encode(b"<tool_call>")
    taken_back = counted(monkeypatch)
    options: Any = {"schema": ADVICE, "tools": [FORECAST], "temperature": 1.0, "max_tokens": 100, "logprobs": logprobs}
    options["logit_bias"] = {begun: 40.0}
    alone = [constrain.complete(model, SAID, seed=seed, **options) for seed in range(6)]
    for completion in alone:
        assert not completion.value.calls
        assert b"".join(map(model.vocabulary.token_bytes, completion.tokens)) == completion.text.encode()
        if logprobs:
            assert tuple(each.token for each in completion.logprobs or ()) == completion.tokens
    counts = list(taken_back)
    assert len(counts) >= 2
    assert min(counts) >= 1

    for seed, completion in enumerate(alone):
        events = list(constrain.stream(model, SAID, seed=seed, **options))
        assert "".join(event.text for event in events if isinstance(event, constrain.TextDelta)) == completion.text
        assert not any(isinstance(event, constrain.events.CallStarted) for event in events)

    taken_back.clear()
    with babbler(parallel=4) as several:
        together = constrain.complete_batch(several, [SAID], n=6, seed=0, **options)
    assert [each.text for each in together[0]] == [each.text for each in alone]
    assert sorted(taken_back) == sorted(counts)
