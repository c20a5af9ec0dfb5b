"""Tables of the operator: values of fields and arguments of every request that names them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import constrain
from constrain.server.app import Application
from constrain.server.sandbox.workers import workers
from constrain.server.serving.models import Models, ModelSource
from constrain.server.settings import Settings
from constrain.tables.keyword import bound_tables
from tests.support.server.asking import chat, error_of

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.slow

NAMES = ["Ada", "Grace", "Émilie"]
SAID = [{"role": "user", "content": "Who?"}]


@pytest.fixture(scope="module")
def application(model: constrain.Model) -> Application:
    tables = {"people": constrain.Table([{"name": name, "born": 1900 + len(name)} for name in NAMES])}
    workers().keep(bound_tables(tables)[1])
    source = ModelSource(("small",), 1_700_000_000, model.parallel, 0, lambda: model, {"tables": tables})
    return Application(Models([source]), Settings())


def schema(column: str = "name") -> dict[str, Any]:
    field = {"type": "string", "x-one-of": {"table": "people", "column": column}}
    return {"type": "object", "properties": {"a": field}, "required": ["a"], "additionalProperties": False}


def form(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "it", "schema": schema, "strict": True}}


def test_content_and_arguments_are_values_of_the_servers_tables(application: Application) -> None:
    ignored = {"people": ["Bob"]}  # a request has no tables of its own
    answer = chat(application, messages=SAID, response_format=form(schema()), tables=ignored).json()
    assert json.loads(answer["choices"][0]["message"]["content"])["a"] in NAMES
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema(), "strict": True}}]
    answer = chat(application, messages=SAID, tools=tools, tool_choice="required", max_tokens=80).json()
    calls = answer["choices"][0]["message"]["tool_calls"]
    assert all(json.loads(call["function"]["arguments"])["a"] in NAMES for call in calls)


def test_other_requests_are_answered_as_before(application: Application) -> None:
    assert chat(application, messages=SAID, max_tokens=5).status_code == 200
    assert chat(application, messages=SAID, max_tokens=5, guided_regex="[ab]+").status_code == 200


def test_a_column_that_is_not_there_is_named(application: Application) -> None:
    error = error_of(chat(application, messages=SAID, response_format=form(schema("nam"))))
    assert "the table 'people' has no column 'nam' (did you mean name?)" in error["message"]


def test_values_stand_in_the_rows_that_other_fields_have_chosen(application: Application) -> None:
    wanted = schema()
    wanted["properties"]["a"]["x-one-of"]["given"] = {"born": "1/born"}
    wanted |= {"properties": {"born": {"type": "integer"}, **wanted["properties"]}, "required": ["born", "a"]}
    for seed in range(3):
        answer = chat(application, messages=SAID, response_format=form(wanted), temperature=2, seed=seed).json()
        found = json.loads(answer["choices"][0]["message"]["content"])
        assert found["a"] in NAMES
        assert found["born"] == 1900 + len(found["a"])
