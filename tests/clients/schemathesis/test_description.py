"""The server is as ``/openapi.json`` says: requests that schemathesis makes of it, and what it expects of the answers.

No answer has a status, a type or a shape that is not described, or status 500; and bodies that are not as described are
refused. That those that are as described are taken is not expected: a schema in a request may say anything.
"""

from __future__ import annotations

import json
import os
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, settings
from openapi_spec_validator import validate
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

URL = os.environ["OPENAI_BASE_URL"].removesuffix("/v1")
HEADERS = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
EXAMPLES = int(os.environ.get("CONSTRAIN_SCHEMATHESIS_EXAMPLES", "100"))
"""Requests of each operation and kind, valid or not."""

FEW = 16
"""Tokens of an answer, where a request sets no other limit: long answers show nothing more here."""

PLAIN = {"messages": [{"role": "user", "content": "Hello"}], "input": "Hello", "previous_response_id": None}

CHECKS = [
    *(content_type_conformance, negative_data_rejection, not_a_server_error, response_headers_conformance),
    *(response_schema_conformance, status_code_conformance, unsupported_method),
]

schema = schemathesis.openapi.from_url(f"{URL}/openapi.json", headers=HEADERS)
schema.config.max_stream_events = 10_000  # whole streams, in place of their beginnings


def bound(case: schemathesis.Case) -> None:
    """Sees to it that no answer is long, and that most requests that are as described get one.

    Random messages rarely fit together: calls have no results, and results no calls.
    """
    body: Any = case.body
    if not isinstance(body, dict):
        return
    if case.meta.generation.mode.is_positive and len(json.dumps(body)) % 4:
        body |= {key: text for key, text in PLAIN.items() if key in body}
    if case.path.startswith("/api/"):
        bound_ollama(body, is_positive=case.meta.generation.mode.is_positive)
        return
    name = "max_output_tokens" if case.path == "/v1/responses" else "max_tokens"
    if body.get(name) is None and isinstance(body.get("messages", body.get("input")), list | str):
        body[name] = FEW


def bound_ollama(body: dict[str, Any], *, is_positive: bool) -> None:
    """Limits the tokens of an answer of Ollama's API; so few that no wrong body becomes a right one."""
    if is_positive and "prompt" in body and len(json.dumps(body)) % 4:
        body["prompt"] = "Hello"
    options = body.setdefault("options", {})
    if isinstance(options, dict) and options.get("num_predict") is None:
        options["num_predict"] = FEW


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_answers_are_as_described(case: schemathesis.Case) -> None:
    bound(case)
    response = case.call(headers=HEADERS, timeout=300)
    case.validate_response(response, checks=CHECKS)
    if "text/event-stream" in response.headers.get("content-type", [""])[0]:
        require_stream(response.text)


def require_stream(text: str) -> None:
    """A stream is whole, and no error is in it."""
    data = [line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: ")]
    events = [json.loads(each) for each in data if each != "[DONE]"]
    if data[-1] != "[DONE]":
        assert events[-1]["type"] in ("response.completed", "response.incomplete", "message_stop")
    assert not any("error" in event and event["error"] for event in events)


def test_the_description_is_one_of_openapi() -> None:
    validate(schema.raw_schema)
