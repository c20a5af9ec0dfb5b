"""Only the broken field again: what is judged, where an answer goes back to, and the distribution that is left."""

from __future__ import annotations

import hashlib
import json
import math
import threading
from typing import Annotated, Any

import numpy as np
import pytest
from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, ValidationInfo, field_validator, model_validator

import constrain
from constrain.errors import OutputValidationError, RejectedFieldError
from constrain.generation.checking import FieldChecks, Judges
from constrain.generation.observers.choices import Choices
from constrain.language.result import result_type
from constrain.llama.binding import CANDIDATE
from constrain.llama.decoding.answer import Answer
from constrain.llama.decoding.decode import Decoding
from constrain.llama.decoding.rejections import Rejections, Step, reduce
from constrain.llama.decoding.sampler import Chain, Sampling
from constrain.types.field_checks import TypeChecks
from constrain.vocabulary.vocabulary import byte_vocabulary
from tests.support import for_each
from tests.support.llama.alone import Alone

VOCABULARY = byte_vocabulary()
PROMPT = [*b"Q: "]
SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 0, "maximum": 99},
        "tags": {"type": "array", "items": {"enum": ["a", "b", "ab", "ba"]}, "minItems": 2, "maxItems": 3},
        "end": {"enum": ["x", "xy", "y"]},
    },
    "required": ["id", "tags", "end"],
    "additionalProperties": False,
}
CONSTRAINT = constrain.compile(SCHEMA, VOCABULARY, whitespace="compact")


class Model(Alone):
    """A model whose logits depend on all that it has evaluated."""

    def next_logits(self) -> np.ndarray[Any, np.dtype[np.float32]]:
        seed = hashlib.sha256(np.array(self.evaluated)).digest()
        return np.random.default_rng([*seed]).normal(0, 2, self.n_vocab).astype(np.float32)


class Shown:
    """Takes the accepted bytes, as the reader of an answer does."""

    def __init__(self) -> None:
        self.data = b""
        self.steps: list[bytes] = []

    def feed(self, data: bytes) -> bool:
        self.data += data
        return False


def write(
    checks: dict[str, Any],
    *,
    retries: int = 5,
    temperature: float = 1.0,
    seed: int = 0,
    schema: Any = SCHEMA,
    vocabulary: constrain.Vocabulary = VOCABULARY,
    **options: Any,
) -> tuple[Answer, FieldChecks, Shown, Model]:
    shown, model = Shown(), Model(vocabulary.n_vocab)
    checking = FieldChecks(Judges(checks, result_type(schema)), retries, temperature, shown.feed, vocabulary)
    answer = Answer(
        PROMPT,
        Chain(Sampling(temperature=temperature, seed=seed), vocabulary.n_vocab, 400),
        constrain.compile(schema, vocabulary, whitespace="compact").matcher,
        eos=vocabulary.eos,
        encode=list,
        token_bytes=vocabulary.token_bytes,
        wants_stop=lambda token: checking.feed(token, vocabulary.token_bytes(token)),
        check=checking,
        **options,
    )
    for _ in Decoding(model, answer).steps():
        shown.steps.append(shown.data)
    return answer, checking, shown, model


def is_odd(value: int) -> bool:
    return value % 2 == 1


def is_short(value: str) -> None:
    if len(value) > 1:
        raise ValueError("too long")


@for_each("temperature", [0.0, 1.0])
@for_each("spare", [None, 0, 2])
def test_no_rejected_value_is_left(temperature: float, spare: int | None) -> None:
    n_retried = 0
    most = None if spare is None else CONSTRAINT.matcher().min_tokens_left + spare
    for seed in range(12):
        checks = {"/id": is_odd, "/tags/*": is_short, "/end": lambda value: value != "y"}
        answer, checking, shown, _ = write(checks, seed=seed, temperature=temperature, max_tokens=most)
        text = bytes(answer.tokens)
        value = json.loads(text)
        assert CONSTRAINT.accepts(text)
        assert value["id"] % 2 == 1
        assert set(value["tags"]) <= {"a", "b"}
        assert value["end"] in ("x", "xy")
        assert shown.data == text
        assert all(text.startswith(step) for step in shown.steps), "what was shown is never taken back"
        n_retried += len(checking.retried)
        for each in checking.retried:
            assert each.message in ("is_odd returned False", "too long", "<lambda> returned False")
    assert n_retried > 3


def test_an_answer_goes_back_to_the_beginning_of_the_value() -> None:
    seen: list[int] = []
    _, checking, _, model = write({"/id": lambda value: seen.append(value) or len(seen) > 2})
    assert len(set(seen)) == 3, "no value is tried twice"
    assert [(each.path, each.value) for each in checking.retried] == [(("id",), value) for value in seen[:2]]
    assert bytes(model.evaluated[3:]).startswith(b'{"id":%d,' % seen[2]), "the model has read nothing else"


def test_observers_know_nothing_of_what_was_taken_back() -> None:
    n_retried = 0
    for seed in range(6):
        choices = Choices()
        answer, checking, _, _ = write({"/id": is_odd, "/tags/1": is_short}, seed=seed, observers=[choices])
        n_retried += len(checking.retried)
        again = Model(VOCABULARY.n_vocab)
        again.evaluated = list(PROMPT)
        assert len(choices.logprobs) == len(answer.tokens)
        for token, logprob in zip(answer.tokens, choices.logprobs, strict=True):
            logits = again.next_logits().astype(np.float64)
            assert logprob == pytest.approx(logits[token] - np.log(np.exp(logits).sum()), abs=1e-4)
            again.evaluated.append(token)
    assert n_retried


@for_each(
    "checks, retries, told",
    [
        ({"/id": is_odd}, 0, "retries=0"),
        ({"/end": lambda _: False}, 9, "no other value is possible"),
        ({"/id": lambda _: False}, 40, "at most 10 retries"),
    ],
)
def test_rejections_end_in_an_error_that_names_the_values(checks: dict[str, Any], retries: int, told: str) -> None:
    with pytest.raises(OutputValidationError, match=told) as caught:
        [write(checks, retries=retries, seed=seed) for seed in range(10)]
    assert caught.value.pointer == next(iter(checks))


def test_after_the_time_limit_values_are_judged_and_nothing_is_written_again() -> None:
    answer, _, shown, _ = write({"/end": lambda _: True}, deadline=0.0)
    assert answer.ended_by == "timeout"
    assert shown.data == bytes(answer.tokens), "values that are accepted are shown to the end"
    with pytest.raises(OutputValidationError, match="the time is up"):
        write({"/end": lambda _: False}, deadline=0.0)


def test_the_distribution_is_that_of_the_model_without_the_rejected_values() -> None:
    first, second = {0: 0.5, 1: 0.3, 2: 0.2}, {0: {0: 0.6, 1: 0.4}, 1: {0: 0.1, 1: 0.9}, 2: {0: 0.5, 1: 0.5}}
    joint = {(a, b): first[a] * second[a][b] for a in first for b in second[a]}
    rejections, rejected = Rejections(VOCABULARY), set[tuple[int, int]]()
    for value in [(0, 0), (1, 1), (0, 1)]:
        rejections.add(_steps(value, first, second), b"?")
        rejected.add(value)
        left = {each: share for each, share in joint.items() if each not in rejected}
        wanted = {each: share / sum(left.values()) for each, share in left.items()}
        assert {each: share for each, share in _drawn(rejections, first, second).items() if share} == pytest.approx(
            wanted
        )
    rejections.add(_steps((1, 0), first, second), b"?")
    rejections.add(_steps((2, 0), first, second), b"?")
    rejections.add(_steps((2, 1), first, second), b"?")
    assert not reduce(_candidates(first), rejections.shares([]), 1.0)


def _steps(value: tuple[int, int], first: Any, second: Any) -> list[Step]:
    return [
        Step([], value[0], first[value[0]], None),
        Step([value[0]], value[1], second[value[0]][value[1]], None),
    ]


CODES = ["LHR", "LGW", "LGA", "CDG"]
PIECES = ["L", "LH", "LG", "HR", "GW", "CD", "DG", "LHR", 'R"', 'W"}', '"L', '":"L']


@for_each("temperature", [0.0, 1.0])
def test_all_tokens_that_write_a_rejected_value_count(temperature: float) -> None:
    tokens = [*(bytes([byte]) for byte in range(256)), *(piece.encode() for piece in PIECES), b""]
    wide = constrain.Vocabulary.from_tokens(tokens, eos=[len(tokens) - 1])
    schema = {
        "type": "object",
        "properties": {"code": {"enum": CODES}},
        "required": ["code"],
        "additionalProperties": False,
    }
    for seed in range(8):
        for code in CODES:
            _, checking, shown, _ = write(
                {"/code": code.__eq__}, retries=9, temperature=temperature, seed=seed, schema=schema, vocabulary=wide
            )
            assert json.loads(shown.data) == {"code": code}
            assert len({each.value for each in checking.retried}) == len(checking.retried) < len(CODES)


def _candidates(shares: dict[int, float]) -> Any:
    return np.array([(token, math.log(share), 0) for token, share in shares.items()], dtype=CANDIDATE)


def _drawn(rejections: Rejections, first: Any, second: Any) -> dict[tuple[int, int], float]:
    def weights(path: list[int], shares: dict[int, float]) -> dict[int, float]:
        rows = _candidates(shares)
        reduce(rows, rejections.shares(path), 1.0)
        found = np.exp(rows["logit"].astype(np.float64))
        return (
            dict(zip(shares, (found / found.sum()).tolist(), strict=True))
            if found.sum()
            else dict.fromkeys(shares, 0.0)
        )

    return {
        (a, b): share * other
        for a, share in weights([], first).items()
        for b, other in (weights([a], second[a]) if share else {}).items()
    }


def _no_swear(value: str) -> str:
    if "x" in value:
        raise ValueError("no x")
    return value.upper()


class Item(BaseModel):
    tag: Annotated[str, AfterValidator(_no_swear)]
    size: int = Field(alias="n")
    double: int

    @field_validator("double")
    @classmethod
    def _is_double(cls, value: int, info: ValidationInfo) -> int:
        if value != 2 * info.data["size"]:
            raise ValueError("not the double")
        return value

    @model_validator(mode="after")
    def _fits(self) -> Item:
        if self.size == 9:
            raise RejectedFieldError("9 is taken", "n")
        if self.size == 8:
            raise ValueError("8 is taken, and nobody says by which field")
        return self


class Order(BaseModel):
    items: list[Item]
    words: list[Annotated[str, AfterValidator(_no_swear)]]
    plain: int


@for_each(
    "path, text, before, message",
    [
        (("items", 0, "tag"), '"ax"', {}, "Value error, no x"),
        (("items", 3, "tag"), '"a"', {}, None),
        (("items", 0, "double"), "7", {"tag": "a", "n": 3}, "Value error, not the double"),
        (("items", 0, "double"), "6", {"tag": "a", "n": 3}, None),
        (("words", 1), '"x"', {}, "Value error, no x"),
        (("items", 0), '{"tag":"a","n":9,"double":18}', {}, "Value error, 9 is taken"),
        (("items", 0), '{"tag":"a","n":8,"double":16}', {}, "Value error, 8 is taken, and nobody says by which field"),
    ],
)
def test_validators_of_a_type_judge_one_value(path: Any, text: str, before: Any, message: str | None) -> None:
    checks = TypeChecks(TypeAdapter(Order))
    assert checks.judges(path)
    verdict = checks.judge(path, text, before)
    assert (verdict and verdict.message) == message
    if message == "Value error, 9 is taken":
        assert verdict is not None
        assert verdict.field == "n"


def test_values_without_validators_are_not_judged() -> None:
    checks = TypeChecks(TypeAdapter(Order))
    assert not any(map(checks.judges, [(), ("plain",), ("items",), ("items", 0, "n"), ("other",), ("words",)]))


def test_the_demo_model_writes_a_rejected_field_again() -> None:  # loads a model: the layers together
    def not_london(value: str) -> bool:
        return "London" not in value

    schema = {"properties": {"city": {"type": "string", "maxLength": 12}}, "required": ["city"]}
    options: Any = {"schema": schema, "checks": {"/city": not_london}, "retries": 4, "temperature": 0}
    found = constrain.complete(None, "Name the capital of England.", **options)
    assert found.retried
    assert found.retried[0].value == "London"
    assert not_london(found.value["city"])


def test_a_slow_check_stops_its_own_answer_only() -> None:  # loads a model: the layers together
    both = threading.Barrier(2, timeout=20)  # each check of one answer waits for that of the other

    def is_last(value: str) -> bool:
        both.wait()
        return value == "ORY"

    schema = {"properties": {"code": {"enum": ["LHR", "LGW", "CDG", "ORY", "HND"]}}, "required": ["code"]}
    options: Any = {"schema": schema, "checks": {"/code": is_last}, "retries": 4, "temperature": 0}
    options["whitespace"] = "compact"  # so the value completes the answer
    found = constrain.complete_batch(None, ["An airport of London."] * 2, **options)
    assert [each.value["code"] for each in found] == ["ORY", "ORY"]
    assert all(len(each.retried) >= 3 for each in found)


def test_checks_need_one_json_text() -> None:
    with pytest.raises(ValueError, match="a JSON Schema or a type"):
        constrain.generate(None, "Hi", checks={"/a": bool})
    with pytest.raises(ValueError, match="a JSON Pointer"):
        constrain.generate(None, "Hi", schema=SCHEMA, checks={"a": bool})
