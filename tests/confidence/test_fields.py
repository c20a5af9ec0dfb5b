"""Confidence of answers: spans, tokens and sums of the fields, and probabilities against all answers of a language."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from typing import Any, Literal

import pytest
from pydantic import BaseModel

import constrain
from constrain.generation.completion import Completion
from constrain.generation.observers.confidence.alternatives import ALL_QUESTIONS
from constrain.generation.observers.confidence.fields import FieldConfidence
from constrain.generation.planning import prepare
from constrain.generation.running import Running
from constrain.llama.binding import Candidates
from constrain.llama.contexts.context import Context
from constrain.llama.decoding.answer import Answer
from constrain.llama.decoding.decode import Decoding


class Person(BaseModel):
    name: str
    age: int
    mood: Literal["happy", "sad", "angry"]
    alive: bool
    tags: list[str]


class Script:
    """A chain that takes given numbers of candidates, then always the first, and notes how many there were."""

    def __init__(self, wanted: list[int]) -> None:
        self.wanted, self.counts, self.taken = wanted, list[int](), list[int]()

    def choose(self, candidates: Candidates, count: int, _: float | None = None) -> int:
        number = self.wanted[len(self.taken)] if len(self.taken) < len(self.wanted) else 0
        self.counts.append(count)
        self.taken.append(number)
        return int(candidates.buffer[number]["id"])

    def accept(self, _: int) -> None:
        pass

    def close(self) -> None:
        pass


def every_answer(model: constrain.Model, prompt: str, schema: Any) -> list[Completion]:
    """All ways to write all texts of a small language."""
    found = []
    wanted: list[int] | None = []
    while wanted is not None:
        running = Running(prepare(model, prompt, schema, {"confidence": True, "show_schema": False}))
        script = Script(wanted)
        running.answer.chain.close()
        running.answer.chain = script  # type: ignore[assignment]
        with model.turn() as context:
            for _ in Decoding(context, running.answer).steps():
                pass
        running.progress.finish()
        found.append(running.completion(0, constrain.results.Timings(0, 0, 0, 0)))
        wanted = following(script)
    return found


def following(script: Script) -> list[int] | None:
    taken = script.taken
    while taken and taken[-1] + 1 == script.counts[len(taken) - 1]:
        taken.pop()
    return [*taken[:-1], taken[-1] + 1] if taken else None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schema", "texts"),
    [
        ({"enum": ["red", "green", "great"]}, 3),
        ({"enum": ["red", "green", "blue"]}, 3),
        ({"enum": ["north-east", "north-west", "northern", "south", None]}, 5),
        ({"type": "boolean"}, 2),
        ({"type": "integer", "minimum": 7, "maximum": 12}, 6),
    ],
)
def test_probabilities_of_all_answers_of_a_language_add_up_to_one(
    model: constrain.Model, schema: Any, texts: int
) -> None:
    answers = every_answer(model, "Is the grass red or green?", schema)
    values: dict[str, float] = {}
    for each in answers:
        values[each.text] = values.get(each.text, 0.0) + whole(each).probability
    assert len(values) == texts
    assert sum(values.values()) == pytest.approx(1, abs=1e-6)
    for each in answers:
        alternatives = {json.dumps(other.value): other.probability for other in whole(each).alternatives}
        assert alternatives.keys() <= values.keys()
        unknown = 1 - sum(alternatives.values())
        for text, probability in alternatives.items():
            assert probability - 1e-6 <= values[text] <= probability + unknown + 1e-6
        assert 1 - unknown >= 0.9
    assert max(sum(other.probability for other in whole(each).alternatives) for each in answers) >= 0.95


def whole(completion: Completion) -> FieldConfidence:
    assert completion.fields is not None
    return completion.fields[()]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_fields_have_the_spans_and_tokens_of_their_values(model: constrain.Model, seed: int) -> None:
    asked: dict[str, Any] = {"schema": Person, "seed": seed, "max_tokens": 120, "max_string_tokens": 8}
    prompt = "Ada Lovelace — 36 years, happy, « née Byron » 🎩."
    completion = constrain.complete(model, prompt, confidence=True, logprobs=True, **asked)
    plain = constrain.complete(model, prompt, **asked)
    assert plain.fields is None
    assert completion.tokens == plain.tokens
    assert completion.fields is not None
    assert completion.logprobs is not None
    value = json.loads(completion.text)
    assert set(completion.fields) == set(paths(value))
    assert next(iter(completion.fields)) == ()
    for path, field in completion.fields.items():
        assert json.loads(completion.text[field.begin : field.end]) == field.value == at(value, path)
        spelled = b"".join(completion.logprobs[number].bytes for number in field.tokens)
        assert completion.text[field.begin : field.end] in spelled.decode(errors="replace")
        assert field.logprob == pytest.approx(sum(completion.logprobs[number].logprob for number in field.tokens))
        assert 0 <= field.mass <= 1
        assert field.logprob <= 1e-9
        assert field.constrained_logprob <= 0
        assert field.is_forced == (field.choices == 0)
        assert field.probability == 1 if field.is_forced else field.probability <= 1
    mood = completion.fields["mood",]
    assert {other.value for other in mood.alternatives} <= {"happy", "sad", "angry"}
    assert completion.fields["alive",].choices > 0


@pytest.mark.slow
def test_several_answers_are_the_same_with_confidence_and_alone(model: constrain.Model) -> None:
    """Also where more tokens are forced than are evaluated together."""
    note = "Nobody has said anything at all about where the person lives. " * 4
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 12},
            "note": {"const": note},
            "alive": {"type": "boolean"},
        },
        "required": ["name", "note", "alive"],
        "additionalProperties": False,
    }
    asked: dict[str, Any] = {"schema": schema, "seed": 3, "max_tokens": 120, "show_schema": False}
    prompts = [f"{name} is a person." for name in ("Ada", "Charles", "Mary")]
    plain = constrain.complete_batch(model, prompts, **asked)
    sure = constrain.complete_batch(model, prompts, confidence=True, logprobs=True, **asked)
    assert [each.tokens for each in sure] == [each.tokens for each in plain]
    alone = constrain.complete(model, prompts[0], confidence=True, logprobs=True, **asked)
    assert alone.tokens == sure[0].tokens
    assert alone.logprobs is not None
    assert sure[0].logprobs is not None
    assert [each.logprob for each in alone.logprobs] == pytest.approx(
        [each.logprob for each in sure[0].logprobs], abs=1e-4
    )
    assert constrain.complete(model, prompts[0], **asked).tokens == alone.tokens


def paths(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner: Mapping[Any, Any] = value if isinstance(value, dict) else {}
    if isinstance(value, list):
        inner = dict(enumerate(value))
    return [path, *(each for key, item in inner.items() for each in paths(item, (*path, key)))]


def at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def test_what_is_forced_is_certain(model: constrain.Model) -> None:
    schema = {"type": "object", "properties": {"kind": {"const": "a long constant text"}, "n": {"enum": [1, 2]}}}
    schema |= {"required": ["kind", "n"]}
    completion = constrain.complete(model, "Anything.", schema=schema, confidence=True, temperature=0)
    assert completion.fields is not None
    kind, number = completion.fields["kind",], completion.fields["n",]
    assert kind.logprob < -0.1
    assert kind.mass < 0.9
    assert number.choices > 0
    assert [other.value for other in number.alternatives][:1] == [number.value]


WIND: dict[str, Any] = {
    "type": "object",
    "properties": {
        "wind": {"enum": ["north-east", "north-west", "northern", "south"]},
        "number": {"type": "integer", "minimum": 1, "maximum": 12},
        "town": {"type": "string", "maxLength": 12},
        "sky": {"enum": ["cloudless", "clouded", "clear"]},
    },
    "required": ["wind", "number", "town", "sky"],
}
"""Two enums whose values begin with the same tokens, a number and a text."""

WINDY = "Wind in Bergen, from the north-west or the north-east, strength 10, few clouds."


def told_apart(completion: Completion) -> dict[Any, dict[Any, float]]:
    """The probabilities of all alternatives, by path."""
    assert completion.fields is not None
    return {
        path: {other.value: other.probability for other in each.alternatives}
        for path, each in completion.fields.items()
        if each.alternatives
    }


WINDS = {"type": "array", "items": WIND, "minItems": 2, "maxItems": 2}

Asked = list[Any]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Notes what the model is asked after its answers, one at a time and several at once."""
    found: Asked = []
    ask = Answer.ask

    def noting(self: Answer, logits: Any = None) -> Any:
        wanted = ask(self, logits)
        found.extend([] if wanted is None else [wanted])
        return wanted

    monkeypatch.setattr(Answer, "ask", noting)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("more", [{}, {"draft": 8}], ids=["plain", "draft"])
def test_alternatives_that_share_tokens_are_told_apart(
    model: constrain.Model, asked: Asked, more: dict[str, Any]
) -> None:
    options: dict[str, Any] = {"schema": WINDS, "confidence": True, "max_tokens": 240, "temperature": 2, **more}
    told = 0
    for seed in (1, 2):
        single = constrain.complete(model, WINDY, seed=seed, **options)
        found = told_apart(single)
        for number in range(2):
            for name in ("wind", "sky"):
                if (number, name) in found:
                    told += 1
                    assert found[number, name].keys() <= set(WIND["properties"][name]["enum"])
                    assert 0.9 <= sum(found[number, name].values()) <= 1 + 1e-6
            assert (number, "town") not in found
        n_asked = len(asked)
        assert n_asked
        several = constrain.complete_batch(model, [WINDY, "A calm day."], seed=seed, **options)
        assert isinstance(several[0], constrain.Completion)
        assert several[0].text == single.text
        assert len(asked) >= 2 * n_asked
        asked.clear()
        for path, values in told_apart(several[0]).items():
            assert values == pytest.approx(found[path], abs=1e-4)
    assert told >= 4


@pytest.mark.slow
def test_answers_after_questions_are_what_they_would_be_without(model: constrain.Model, asked: Asked) -> None:
    options: dict[str, Any] = {"schema": WINDS, "max_tokens": 240, "temperature": 2, "seed": 1}
    plain = constrain.complete(model, WINDY, **options)
    assert not asked
    events = list(constrain.stream(model, WINDY, confidence=True, **options))
    assert isinstance(events[-1], constrain.Finished)
    assert asked
    assert "".join(event.text for event in events[:-1] if isinstance(event, constrain.TextDelta)) == plain.text
    assert constrain.complete(model, WINDY, **options).tokens == plain.tokens
    asked.clear()
    for _ in range(2):
        first, *_ = constrain.complete_batch(model, [WINDY] * 3, confidence=True, **options)
        assert isinstance(first, constrain.Completion)
        assert first.tokens == plain.tokens
    assert asked


@pytest.mark.parametrize("count", [0, 1])
def test_nothing_is_asked_after_the_deadline(
    model: constrain.Model, asked: Asked, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    options: dict[str, Any] = {"confidence": True, "max_tokens": 240, "temperature": 2, "seed": 1}
    running = Running(prepare(model, WINDY, WINDS, options))
    replace = Context.replace

    def late(self: Context, groups: Any) -> bool:
        running.answer.deadline = time.monotonic() - 1
        return replace(self, groups)

    monkeypatch.setattr(Context, "replace", late)
    with model.turn() as context:
        for _ in Decoding(context, running.answer).steps():
            if running.answer.is_done and count == 0:
                running.answer.deadline = time.monotonic() - 1
    assert len(asked) == count
    running.finish()
    assert told_apart(running.completion(0, constrain.results.Timings(0, 0, 0, 0)))


@pytest.mark.slow
def test_questions_have_a_bound(model: constrain.Model, asked: Asked) -> None:
    schema = {"type": "array", "items": WIND["properties"]["wind"], "minItems": 30, "maxItems": 30}
    constrain.complete(model, WINDY, schema=schema, confidence=True, temperature=2, seed=1, max_tokens=500)
    assert len(asked) == ALL_QUESTIONS


@pytest.mark.parametrize(
    "other", [{"type": "string"}, {"type": "object", "properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"]}]
)
def test_nothing_is_asked_where_countless_values_are_possible(
    model: constrain.Model, asked: Asked, other: dict[str, Any]
) -> None:
    for seed in range(12):
        schema = {"anyOf": [{"type": "boolean"}, other]}
        answer = constrain.complete(
            model, "Yes or no?", schema=schema, confidence=True, temperature=5, seed=seed, max_tokens=40
        )
        if isinstance(answer.value, bool):
            break
    assert isinstance(answer.value, bool)
    assert len(asked) <= seed + 1


def test_arguments_of_calls_have_fields(model: constrain.Model) -> None:
    def weather(city: str, unit: Literal["C", "F"]) -> str:
        """Tells the weather of a city."""
        return city + unit

    completion = constrain.complete(
        model, "The weather in Paris?", tools=[weather], tool_choice="required", confidence=True, temperature=0,
        parallel_tool_calls=False, max_tokens=100,
    )  # fmt: skip
    assert completion.fields is not None
    call = completion.value.calls[0]
    assert completion.fields["calls", 0, "arguments", "city"].value == call.arguments["city"]
    assert completion.fields["calls", 0, "arguments", "unit"].choices > 0


def test_an_answer_that_is_not_json_is_one_field(model: constrain.Model) -> None:
    for schema in (None, constrain.Regex("(yes|no), (always|never)")):
        completion = constrain.complete(
            model, "Does water boil?", schema=schema, confidence=True, logprobs=True, max_tokens=12, seed=3
        )
        assert completion.fields is not None
        assert completion.logprobs is not None
        assert list(completion.fields) == [()]
        assert whole(completion).value == completion.text
        assert whole(completion).logprob == pytest.approx(sum(each.logprob for each in completion.logprobs))
        assert math.isclose(whole(completion).probability, math.exp(whole(completion).constrained_logprob))
