"""Fields of other servers that say what an answer is: enforced on every endpoint that writes text, or refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from constrain.server.app import Application
from tests.structural.styles import written
from tests.support.server.asking import ask, error_of
from tests.support.server.tables import table

pytestmark = pytest.mark.slow

CHAT, RESPONSES, COMPLETIONS = "/v1/chat/completions", "/v1/responses", "/v1/completions"
TABLE = table("peer_requests")
ENDPOINTS = (CHAT, RESPONSES, COMPLETIONS)

PERSON = {
    "type": "object",
    "properties": {"age": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["age"],
    "additionalProperties": False,
}


def is_person(text: str) -> bool:
    return json.loads(text).keys() == {"age"}


def is_nested(text: str) -> bool:
    return re.fullmatch(r"(\(*)([0-9]|x)(\)*)", text) is not None and text.count("(") == text.count(")")


def is_code(text: str) -> bool:
    return re.fullmatch("[A-Z]{2}-[0-9]{2}", text) is not None


def is_call(text: str) -> bool:
    return re.fullmatch(r'<call>\s*\{\s*"age":\s*[0-9]{1,2}\s*\}\s*</call>', text) is not None


def is_colour(text: str) -> bool:
    return text in ("red", "green (dark)")


CALL = {"type": "tag", "begin": "<call>", "content": {"type": "json_schema", "json_schema": PERSON}, "end": "</call>"}
TAG = {"type": "structural_tag", "format": CALL}
FORCED = {
    "type": "structural_tag",
    "format": {
        "type": "triggered_tags",
        "triggers": ["<call"],
        "tags": [CALL],
        "at_least_one": True,
        "stop_after_first": True,
    },
}

RIGHT: dict[str, Callable[[str], bool]] = {
    "a person": is_person,
    "a code": is_code,
    "brackets": is_nested,
    "a colour": is_colour,
    "a call": is_call,
}


def asked(application: Application, endpoint: str, fields: dict[str, Any]) -> Any:
    body: dict[str, Any] = {"model": "small", "seed": 1}
    if endpoint == CHAT:
        body |= {"messages": [{"role": "user", "content": "Hi"}], "max_completion_tokens": 30}
    elif endpoint == RESPONSES:
        body |= {"input": "Hi", "max_output_tokens": 30}
    else:
        body |= {"prompt": "Hi", "max_tokens": 30}
    return ask(application, "POST", endpoint, json=body | fields)


def text_of(answer: Any) -> str:
    if "output" in answer:
        [text] = [part["text"] for item in answer["output"] if item["type"] == "message" for part in item["content"]]
        return text
    choice = answer["choices"][0]
    return choice["text"] if "text" in choice else choice["message"]["content"]


@pytest.mark.parametrize("case", TABLE["answered"])
def test_the_answer_is_what_the_field_says(application: Application, case: dict[str, Any]) -> None:
    endpoint = ENDPOINTS[len(case["name"]) % len(ENDPOINTS)]
    response = asked(application, endpoint, json.loads(case["fields"]))
    assert response.status_code == 200, response.text
    assert RIGHT[case["is"]](text_of(response.json())), (endpoint, text_of(response.json()))


@pytest.mark.parametrize(
    "tag",
    [
        TAG,
        FORCED,
        {
            "type": "structural_tag",
            "structures": [{"begin": "<call>", "schema": PERSON, "end": "</call>"}],
            "triggers": ["<call"],
        },
    ],
    ids=["new", "triggered", "first"],
)
def test_a_response_format_may_be_a_structural_tag(application: Application, tag: dict[str, Any]) -> None:
    for endpoint in ENDPOINTS:
        fields = {"text": {"format": tag}} if endpoint == RESPONSES else {"response_format": tag}
        response = asked(application, endpoint, fields)
        assert response.status_code == 200, response.text
        text = text_of(response.json())
        if "structures" in tag:
            assert re.fullmatch(r'((?!<call).|<call>\s*\{\s*"age":\s*[0-9]{1,2}\s*\}\s*</call>)*', text, re.DOTALL)
        else:
            assert is_call(text)
        if endpoint == RESPONSES:
            assert response.json()["text"]["format"] == {"type": "text"}


def test_arguments_of_a_structural_tag_have_a_style(application: Application) -> None:
    content = {"type": "json_schema", "json_schema": PERSON, "style": "qwen_xml"}
    tag = {"type": "structural_tag", "format": {**CALL, "content": content}}
    calls = {f"<call>{written('qwen_xml', {'age': age})}</call>" for age in range(100)}
    response = asked(application, CHAT, {"response_format": tag, "max_completion_tokens": 80})
    assert response.status_code == 200, response.text
    assert text_of(response.json()).replace("\n", "") in calls


def test_an_unknown_style_is_refused_by_name(application: Application) -> None:
    content = {"type": "json_schema", "json_schema": PERSON, "style": "gemma"}
    response = asked(application, CHAT, {"response_format": {"type": "structural_tag", "format": content}})
    error = error_of(response)
    assert error["param"] == "response_format.format.style"
    assert "there are json, qwen_xml" in error["message"]
    assert "minimax_m3_xml" in error["message"]


def test_a_place_in_the_format_of_a_response_is_named(application: Application) -> None:
    tag = {"type": "structural_tag", "format": {"type": "any_texts"}}
    error = error_of(asked(application, RESPONSES, {"text": {"format": tag}}))
    assert error["param"] == "text.format.format.type"
    assert "did you mean any_text?" in error["message"]


def test_any_json(application: Application) -> None:
    for fields in ({"structured_outputs": {"json_object": True}}, {"json_schema": {"type": "object"}}):
        assert isinstance(json.loads(text_of(asked(application, CHAT, fields).json())), dict)
    json.loads(text_of(asked(application, CHAT, {"guided_json": {}}).json()))


@pytest.mark.parametrize(
    "fields", [{"guided_json": None, "grammar": "", "structured_outputs": {}}, {"structured_outputs": None}]
)
def test_what_says_nothing_is_accepted(application: Application, fields: dict[str, Any]) -> None:
    assert asked(application, CHAT, fields).status_code == 200


@pytest.mark.parametrize("case", TABLE["refused"])
def test_what_cannot_be_honoured_is_refused_with_its_place(application: Application, case: dict[str, Any]) -> None:
    for endpoint in (CHAT, COMPLETIONS):
        error = error_of(asked(application, endpoint, json.loads(case["fields"])))
        assert case["says"] in error["message"]
        assert error["param"] == case["param"]
