"""``confidence`` on the endpoints: probabilities of the parts of an answer, by JSON Pointer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support.server.asking import ask, chat, error_of

if TYPE_CHECKING:
    from constrain.server.app import Application

SAID = [{"role": "user", "content": "Ada is 36 and happy."}]
SCHEMA = {
    "type": "object",
    "properties": {"age": {"type": "integer"}, "mood": {"enum": ["happy", "sad"]}},
    "required": ["age", "mood"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "it", "schema": SCHEMA, "strict": True}}


def check(fields: dict[str, Any], text: str) -> None:
    value = json.loads(text)
    assert list(fields) == ["", "/age", "/mood"]
    for pointer, field in fields.items():
        part = value[pointer[1:]] if pointer else value
        assert json.loads(text[field["begin"] : field["end"]]) == part
        assert 0 <= field["mass"] <= 1
        assert 0 <= field["probability"] <= 1
        assert field["logprob"] <= 0
    assert {each["value"] for each in fields["/mood"]["alternatives"]} <= {"happy", "sad"}


def test_choices_have_the_probabilities_of_their_parts(application: Application) -> None:
    answer = chat(application, messages=SAID, response_format=FORMAT, confidence=True, n=2, max_tokens=40).json()
    for choice in answer["choices"]:
        check(choice["constrain"]["fields"], choice["message"]["content"])


def test_responses_have_them_too(application: Application) -> None:
    text = {"format": {"type": "json_schema", "name": "it", "schema": SCHEMA, "strict": True}}
    body = {"model": "small", "input": "Ada is 36 and happy.", "text": text, "confidence": True, "temperature": 0}
    answer = ask(application, "POST", "/v1/responses", json=body).json()
    check(answer["constrain"]["fields"], answer["output"][0]["content"][0]["text"])


def test_a_wrong_value_is_refused(application: Application) -> None:
    assert error_of(chat(application, messages=SAID, confidence="yes"))["param"] == "confidence"
