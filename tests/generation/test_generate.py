"""Answers of a model: typed values, streams, budgets, reuse of what was evaluated, callers in a queue."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import json
import threading
from typing import Any, Literal

import jsonschema
import llama_cpp
import numpy as np
import pydantic
import pytest
from typing_extensions import TypedDict

import constrain
from constrain.chat.reading.events import TextDelta
from constrain.generation.completion import Finished
from constrain.json_schema.hint import describe
from constrain.llama.loading import Llama
from constrain.llama.lookup import as_model
from tests.support import demo_model, for_each
from tests.support.llama.babbler import babbler, babbler_file
from tests.support.llama.prompts import prompt_tokens

SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "maxLength": 30},
        "year": {"type": "integer", "minimum": 1000, "maximum": 2100},
        "genres": {"type": "array", "items": {"enum": ["novel", "poem", "play"]}, "maxItems": 2},
    },
    "required": ["title", "year", "genres"],
}


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


class Person(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=20, description="full name")
    age: int = pydantic.Field(ge=0, le=150)
    likes: list[Colour] = pydantic.Field(max_length=2)


@dataclasses.dataclass
class Point:
    x: float
    y: float


class Place(TypedDict):
    city: Literal["Paris", "Rome"]
    visited: bool


TYPES: list[tuple[Any, type]] = [
    (Person, Person),
    (Point, Point),
    (Place, dict),
    (Colour, Colour),
    (Literal["yes", "no"], str),
    (bool, bool),
    (dt.date, dt.date),
    (Point | Place, object),
    (list[Colour], list),
    (tuple[bool, bool], tuple),
    (Place | None, object),
    (SCHEMA, dict),
    (json.dumps(SCHEMA), dict),
    ({"const": [1, "a", None]}, list),
]


@pytest.mark.slow(but=("5", "4", "3"))
@pytest.mark.parametrize(("schema", "kind"), TYPES, ids=[str(number) for number in range(len(TYPES))])
def test_answers_are_values_of_the_type(model: constrain.Model, schema: Any, kind: type) -> None:
    completion = constrain.complete(model, "Make something up.", schema=schema, seed=11, max_tokens=120)
    assert isinstance(completion.value, kind)
    if isinstance(schema, (str, dict)):
        document = json.loads(schema) if isinstance(schema, str) else schema
        jsonschema.validate(completion.value, document)
    else:
        assert pydantic.TypeAdapter(schema).validate_json(completion.text) == completion.value


def test_objects_are_closed(model: constrain.Model) -> None:
    value = constrain.generate(model, "Go on.", schema={"properties": {"a": {"type": "boolean"}}, "type": "object"})
    assert set(value) <= {"a"}


def test_without_a_schema_the_model_says_anything(model: constrain.Model) -> None:
    completion = constrain.complete(model, "Say hello.", max_tokens=8, temperature=0)
    assert isinstance(completion.value, str)
    assert completion.value == completion.text
    assert completion.report is None
    expected = model.llama.create_completion(prompt_tokens(model, "Say hello."), max_tokens=8, temperature=0)
    assert completion.text == expected["choices"][0]["text"]


@pytest.mark.slow
def test_greedy_takes_the_most_likely_allowed_token(model: constrain.Model) -> None:
    completion = constrain.complete(model, "A famous book?", schema=SCHEMA, temperature=0)
    constraint = constrain.compile({**SCHEMA, "additionalProperties": False}, model.vocabulary)
    matcher, row = constraint.matcher(), constraint.allocate_bitmask()[0]
    prompt = prompt_tokens(model, "A famous book?", shown=describe(SCHEMA), constrained=True)
    llama = Llama(model.llama.model_path, n_ctx=1024, n_threads=1, n_threads_batch=1, verbose=False)
    tokens: list[int] = []
    for _ in completion.tokens:
        # An independent loop: llama-cpp-python evaluates, numpy masks and chooses.
        llama.eval([tokens[-1]] if tokens else prompt)
        logits = np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(llama.ctx, -1), shape=(llama.n_vocab(),))
        matcher.fill_bitmask(row)
        allowed = np.unpackbits(row.view(np.uint8), count=llama.n_vocab(), bitorder="little").view(bool)
        tokens.append(int(np.argmax(np.where(allowed, logits, -np.inf))))
        assert matcher.accept(tokens[-1])
        if len(tokens) == 12:
            break
    assert list(completion.tokens[: len(tokens)]) == tokens


def test_tokens_evaluated_together_say_what_they_say_one_by_one(model: constrain.Model) -> None:
    prompt = prompt_tokens(model, "Make something up.")
    assert model.vocabulary.encode is not None
    tokens = model.vocabulary.encode(b'{"name":"Ada","age":36,"')
    with model.turn() as context:
        context.prefill(prompt)
        for token in tokens:
            context.decode([token])
        one_by_one = context.logits().copy()
        context.prefill(prompt)
        context.decode(tokens)
        together = context.logits().copy()
        context.prefill([*prompt, *tokens])
        # Quantized weights are multiplied in other ways for several tokens: the logits are not equal bit by bit.
        assert np.corrcoef(one_by_one, together)[0, 1] > 0.999
        assert one_by_one.argmax() == together.argmax() == context.logits().argmax()
        assert model.llama.input_ids[: model.llama.n_tokens].tolist() == [*prompt, *tokens]


@pytest.mark.slow
def test_stop_texts(model: constrain.Model) -> None:
    free = constrain.complete(model, "Count: one, two, three.", max_tokens=30, temperature=0)
    stop = free.text[5:8]
    cut = constrain.complete(model, "Count: one, two, three.", max_tokens=30, temperature=0, stop=stop)
    assert cut.text == free.text[: free.text.index(stop)]
    assert (cut.finish_reason, cut.stop, free.stop) == ("stop", stop, None)
    schema = {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 5}
    completion = constrain.complete(model, "Letters!", schema=schema, stop=["a", "b"], seed=1)
    assert len(completion.value) == 5
    assert completion.stop is None


@pytest.mark.slow
@pytest.mark.parametrize("schema", [None, SCHEMA])
def test_deltas_are_the_text(model: constrain.Model, schema: Any) -> None:
    events = list(constrain.stream(model, "Ein Gedicht über Äpfel 🍎", schema=schema, max_tokens=60, seed=5))
    *deltas, last = events
    assert isinstance(last, Finished)
    assert all(isinstance(delta, TextDelta) and delta.text for delta in deltas)
    assert len(deltas) > 3
    assert "".join(delta.text for delta in deltas) == last.completion.text
    again = constrain.complete(model, "Ein Gedicht über Äpfel 🍎", schema=schema, max_tokens=60, seed=5)
    assert again.tokens == last.completion.tokens


@pytest.mark.slow
def test_logit_bias_and_repeat_penalty(model: constrain.Model) -> None:
    schema = {"enum": ["yes", "no"]}
    assert model.vocabulary.encode is not None
    tokens = {answer: model.vocabulary.encode(answer.encode())[0] for answer in ("yes", "no")}
    for answer, token in tokens.items():
        for first in ("Y", "N"):
            bias = {token: 100.0}
            assert constrain.generate(model, first, schema=schema, logit_bias=bias, seed=2) == answer
    repeated: Any = {"temperature": 0, "max_tokens": 20, "logit_bias": {tokens["yes"]: 15.0}}
    free = constrain.complete(model, "Say something.", **repeated)
    penalized = constrain.complete(model, "Say something.", **repeated, repeat_penalty=2.0)
    assert len(set(penalized.tokens)) > len(set(free.tokens))


@pytest.mark.slow
def test_what_calls_have_in_common_is_evaluated_once() -> None:
    fresh = babbler()
    said = [{"role": "system", "content": "You know all books. " * 10}]
    first = constrain.complete(fresh, [*said, {"role": "user", "content": "A play?"}], schema=SCHEMA, seed=1)
    second = constrain.complete(fresh, [*said, {"role": "user", "content": "A poem?"}], schema=SCHEMA, seed=1)
    assert first.usage.cached_tokens == 0
    assert second.usage.cached_tokens > 40
    third = constrain.complete(fresh, [*said, {"role": "user", "content": "A poem?"}], schema=SCHEMA, seed=1)
    assert third.usage.cached_tokens == third.usage.prompt_tokens - 2


@pytest.mark.slow
def test_calls_alternate_with_those_of_llama_cpp_python(model: constrain.Model) -> None:
    llama = model.llama
    prompt = prompt_tokens(model, "What is the sea?")
    theirs = llama.create_completion(prompt, max_tokens=12, temperature=0)["choices"][0]["text"]
    ours = constrain.complete(model, "What is the sea?", max_tokens=12, temperature=0)
    assert ours.text == theirs
    assert ours.usage.cached_tokens == len(prompt) - 2
    constrain.complete(model, "Something else.", schema=SCHEMA)
    assert llama.create_completion(prompt, max_tokens=12, temperature=0)["choices"][0]["text"] == theirs


@pytest.mark.slow
def test_callers_queue_and_never_mix(model: constrain.Model) -> None:
    questions = [f"Make up book number {number}." for number in range(4)]
    alone = [constrain.complete(model, q, schema=SCHEMA, seed=n).tokens for n, q in enumerate(questions)]
    together: dict[int, tuple[int, ...]] = {}

    def ask(number: int) -> None:
        together[number] = constrain.complete(model, questions[number], schema=SCHEMA, seed=number).tokens

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(questions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [together[number] for number in range(len(questions))] == alone


def test_a_stream_that_is_still_read_is_not_waited_for_by_its_own_thread(model: constrain.Model) -> None:
    events = constrain.stream(model, "Tell me a story.", max_tokens=50)
    next(events)
    with pytest.raises(constrain.ModelError, match="still reading a stream"):
        constrain.complete(model, "Hello", max_tokens=2)
    events.close()
    assert constrain.complete(model, "Hello", max_tokens=2).text


@pytest.mark.slow
def test_a_stream_frees_the_model_for_other_threads_when_it_is_closed(model: constrain.Model) -> None:
    events = constrain.stream(model, "Tell me a story.", max_tokens=200)
    next(events)
    done: list[str] = []
    thread = threading.Thread(target=lambda: done.append(constrain.complete(model, "Hello", max_tokens=2).text))
    thread.start()
    thread.join(0.2)
    assert not done
    events.close()
    thread.join(30)
    assert done


class Even(pydantic.BaseModel):
    number: Literal[1, 3]

    @pydantic.field_validator("number")
    @classmethod
    def even(cls, _: int) -> int:
        raise ValueError("not even")


@pytest.mark.slow
def test_the_types_own_validators_may_reject(model: constrain.Model) -> None:
    with pytest.raises(constrain.OutputValidationError, match="not even") as caught:
        constrain.generate(model, "A number?", schema=Even)
    assert json.loads(caught.value.text)["number"] in (1, 3)
    assert caught.value.pointer == "/number"
    with pytest.raises(constrain.OutputValidationError) as caught:
        constrain.generate(model, "A number?", schema=pydantic.create_model("Outer", inner=(tuple[Even], ...)))
    assert caught.value.pointer == "/inner/0/number"


def test_the_schema_is_shown_or_not(model: constrain.Model) -> None:
    def count(show: Any) -> int:
        return constrain.complete(model, "Hi", schema={"const": 1}, show_schema=show).usage.prompt_tokens

    assert count(show=False) < count(show="As {schema}:") < count(show=True)


BAD_OPTIONS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"max_tokens": -1}, ValueError, "max_tokens"),
    ({"timeout": -1}, ValueError, "timeout"),
    ({"stop": ""}, ValueError, "stop"),
    ({"show_schema": "no place"}, ValueError, "show_schema"),
    ({"temperature": -1}, ValueError, "temperature"),
    ({"logit_bias": {-5: 1.0}}, ValueError, "logit_bias"),
    ({"max_token": 5}, TypeError, "max_token"),
    ({"schema": {"type": "nothing"}}, constrain.SchemaError, "type"),
    ({"schema": "{"}, constrain.SchemaError, "JSON"),
    ({"schema": {"$ref": "#/nowhere"}}, constrain.SchemaError, "nowhere"),
    ({"schema": {"enum": []}}, constrain.SchemaError, "enum"),
    ({"schema": threading.Lock}, constrain.SchemaError, "JSON Schema"),
]


@for_each("options, error, message", BAD_OPTIONS)
def test_bad_options(model: constrain.Model, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        constrain.complete(model, "x", **options)


def test_a_prompt_too_long_for_the_context(model: constrain.Model) -> None:
    with pytest.raises(constrain.ModelError, match="the context holds 1024"):
        constrain.generate(model, "word " * 2000, schema=SCHEMA)


def test_what_the_model_is_shown_is_named_where_it_overflows_the_context(model: constrain.Model) -> None:
    schema = {"type": "object", "properties": {f"key_{index}": {"type": "integer"} for index in range(300)}}
    with pytest.raises(constrain.ModelError, match=r"about \d{4} of which are the schema .* \(show_schema=False"):
        constrain.generate(model, "x", schema=schema)
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    with pytest.raises(constrain.ModelError, match=r"about \d{4} of which are the tools that the model is shown, but"):
        constrain.complete(model, "x", tools=[tool], tools_shown="all")
    assert isinstance(constrain.generate(model, "x", schema=schema, show_schema=False, max_tokens=9), dict)


@pytest.mark.slow
def test_models_by_path_by_llama_and_by_default(model: constrain.Model) -> None:
    assert as_model(model) is model
    by_default = as_model(None)
    assert by_default.n_ctx == 4096
    assert as_model(demo_model()) is by_default is as_model(str(demo_model()))
    prompt = "Is Paris the capital of France, or of Peru?"
    assert constrain.generate(by_default, prompt, schema=Literal["France", "Peru"]) == "France"
    wrapped = as_model(model.llama)
    assert wrapped is as_model(model.llama)
    assert wrapped.llama is model.llama
    assert constrain.generate(model.llama, "Yes?", schema=bool) in (True, False)


def test_models_that_cannot_be_loaded(tmp_path: Any) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(babbler_file().read_bytes()[:-1000])
    cases = [(cut, "llama.cpp cannot load it: .*bounds"), (tmp_path, "cannot be opened"), ("no.gguf", "no.gguf")]
    for path, message in cases:
        with pytest.raises(constrain.ModelError, match=message):
            constrain.Model(path)


def test_settings_of_a_llama_are_its_own(model: constrain.Model) -> None:
    with pytest.raises(ValueError, match="n_ctx"):
        constrain.Model(model.llama, n_ctx=5)
