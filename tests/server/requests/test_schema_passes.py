"""Each process that a request passes through writes its schemas out at most once, and parses them at most once."""

from __future__ import annotations

import json
import pickle
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from constrain.generation.planning import make_plan
from constrain.server.chat.request import read_chat_request
from constrain.server.requests.body import parse_body
from constrain.server.sandbox.reading import read_again, reading_key, rehearse
from constrain.server.settings import Settings
from tests.support.schema_passes import counted_passes, enter_other_process, new_schema, new_tools

if TYPE_CHECKING:
    import constrain
    from constrain.generation.job import Plan

TOOLS = 20

read = partial(read_chat_request, settings=Settings())


def response_format() -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "a", "strict": True, "schema": new_schema()}}


REQUESTS: dict[str, tuple[dict[str, Any], int]] = {
    # fields, and how many schemas they hold
    "tools": ({"tools": new_tools(TOOLS, strict=False)}, TOOLS),
    "strict tools": ({"tools": new_tools(TOOLS, strict=True)}, TOOLS),
    "format": ({"response_format": response_format()}, 1),
    "both": ({"tools": new_tools(TOOLS, strict=True), "response_format": response_format()}, TOOLS + 1),
}


def plan_of(model: constrain.Model, body: bytes) -> Plan:
    """What the process of the server does with a body that was read in the sandbox."""
    document = parse_body(body)
    reading_key(document)
    question = read_again(read, document).question
    assert isinstance(question.prompt, list)
    return make_plan(model, question.prompt, question.schema, question.options)


@pytest.mark.parametrize("name", REQUESTS)
def test_each_process_writes_and_parses_a_schema_once(
    monkeypatch: pytest.MonkeyPatch, model: constrain.Model, name: str
) -> None:
    fields, schemas = REQUESTS[name]
    body = json.dumps({"model": "small", "messages": [{"role": "user", "content": "Hi"}], **fields}).encode()
    enter_other_process()
    with counted_passes(monkeypatch) as sandbox:
        rehearse(read, body)
    assert sandbox.counts == (schemas, schemas + 1)  # the body is parsed, too
    enter_other_process()
    with counted_passes(monkeypatch) as server:
        plan = plan_of(model, body)
    assert server.counts == (schemas, schemas + 1)
    with counted_passes(monkeypatch) as repeated:
        assert plan_of(model, body).language == plan.language
    assert repeated.counts == (schemas, 1)
    enter_other_process()
    rehearse(read, body)
    language = pickle.loads(pickle.dumps(plan.language))
    with counted_passes(monkeypatch) as compiling:
        language.compile(model.vocabulary, cache=False)
    assert compiling.counts == (0, 0)
