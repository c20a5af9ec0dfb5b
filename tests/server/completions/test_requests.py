"""Which requests for completions of texts are refused, and what is asked by those that are not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from constrain.server.completions.request import CompletionRequest, read_completion_request
from constrain.server.settings import Settings
from tests.support.server.tables import require_refused, table

TABLE = table("completion_requests")


def read(fields: dict[str, Any]) -> CompletionRequest:
    return read_completion_request({"model": "small", "prompt": "Hello", **fields}, Settings())


@pytest.mark.parametrize("case", TABLE["refused"])
def test_what_cannot_be_had_is_refused_with_its_place(case: dict[str, Any]) -> None:
    require_refused(case, read)


@pytest.mark.parametrize("case", TABLE["accepted"])
def test_what_clients_send_is_accepted(case: dict[str, Any]) -> None:
    assert read(json.loads(case["fields"])).model == "small"


@pytest.mark.parametrize(
    ("prompt", "read_as"),
    [("a", ("a",)), (["a", "b"], ("a", "b")), ([1, 2], ((1, 2),)), ([[1, 2], [3]], ((1, 2), (3,)))],
)
def test_a_prompt_is_texts_or_tokens(prompt: object, read_as: tuple[Any, ...]) -> None:
    assert read({"prompt": prompt}).prompts == read_as


def test_a_text_is_short_unless_asked_for_more() -> None:
    assert read({}).options["max_tokens"] == 16
    assert read({"max_tokens": 0}).options["max_tokens"] == 0


def test_a_format_is_not_cut_where_nobody_asked_for_that() -> None:
    assert "max_tokens" not in read({"response_format": {"type": "json_object"}}).options
