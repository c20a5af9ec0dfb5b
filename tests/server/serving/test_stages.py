"""Values that depend on others: the server follows them within limits of its own process."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from constrain.errors import LimitError
from constrain.generation.plan import Language
from constrain.language.schema_text import read_schema
from constrain.server.app import Application
from constrain.server.sandbox import compiling
from constrain.server.settings import Settings
from tests.support import byte_vocabulary
from tests.support.server.asking import ask, chat, chunks_of, served_as

if TYPE_CHECKING:
    import constrain

pytestmark = pytest.mark.slow

NUMBER = {"type": "integer", "minimum": 0, "maximum": 99}
SCHEMA = {
    "type": "object",
    "properties": {"start": NUMBER, "end": {**NUMBER, "minimum": {"$data": "1/start"}}},
    "required": ["start", "end"],
    "additionalProperties": False,
}
SAID = [{"role": "user", "content": "From when to when?"}]
FORM = {"type": "json_schema", "json_schema": {"name": "it", "schema": SCHEMA, "strict": True}}


@pytest.fixture(scope="module")
def application(model: constrain.Model) -> Application:
    return Application(served_as(model, "small"), Settings())


def is_right(text: str) -> bool:
    value = json.loads(text)
    return bool(0 <= value["start"] <= value["end"] <= 99)


def test_answers_and_streams_keep_bounds_by_other_fields(application: Application) -> None:
    for seed in range(3):
        fields: dict[str, Any] = {"messages": SAID, "response_format": FORM, "temperature": 2, "seed": seed}
        answer = chat(application, **fields).json()
        assert is_right(answer["choices"][0]["message"]["content"])
        pieces = chunks_of(chat(application, stream=True, **fields))
        assert is_right("".join(each["choices"][0]["delta"].get("content") or "" for each in pieces))
    form = {"format": {"type": "json_schema", "name": "it", "schema": SCHEMA, "strict": True}}
    answer = ask(application, "POST", "/v1/responses", json={"model": "small", "input": "When?", "text": form}).json()
    assert is_right(answer["output"][-1]["content"][0]["text"])


def test_a_value_with_too_large_a_grammar_ends_its_own_answer_with_an_error(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "STAGE_STEPS", 3)
    other = {"type": "json_schema", "json_schema": {"name": "it", "schema": {**SCHEMA, "title": "Other"}}}
    with ThreadPoolExecutor(2) as both:
        failing = both.submit(chat, application, messages=SAID, response_format=other)
        going_on = both.submit(chat, application, messages=SAID, max_tokens=20)
        error = failing.result().json()["error"]
        assert going_on.result().status_code == 200
    assert "more steps than 3" in error["message"]


def test_a_large_schema_is_refused_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_STAGED_STEPS", 10)
    monkeypatch.setattr("constrain.server.sandbox.worker._vocabularies", {b"v": byte_vocabulary()})
    language = Language(read_schema(SCHEMA), {})
    order = compiling._Order(language, b"v", None, None, None)  # type: ignore[arg-type]
    with pytest.raises(
        LimitError, match=r"at /properties/end/minimum: a schema with \$data or given may take 10 steps"
    ):
        compiling._compile_and_try(language, [], order)
