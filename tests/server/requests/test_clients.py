"""Requests in the form in which known programs send them: read, with a warning, or refused."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from constrain.server.chat.request import read_chat_request
from constrain.server.completions.request import read_completion_request
from constrain.server.http.errors import ApiError
from constrain.server.llama_server.request import read_completion, read_infill
from constrain.server.messages.request import read_messages_request
from constrain.server.ollama.request import read_ollama_chat, read_ollama_generate
from constrain.server.responses.request import read_request
from constrain.server.settings import Settings
from tests.support.server.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.server.http.account import Account

READERS: dict[str, Callable[[dict[str, Any]], object]] = {
    "/v1/responses": read_request,
    **{
        path: partial(read, settings=Settings())
        for path, read in {
            "/v1/chat/completions": read_chat_request,
            "/v1/completions": read_completion_request,
            "/v1/messages": read_messages_request,
            "/api/chat": read_ollama_chat,
            "/api/generate": read_ollama_generate,
            "/completion": read_completion,
            "/infill": read_infill,
        }.items()
    },
}


@pytest.mark.parametrize("case", table("clients")["request"])
def test_what_known_programs_send(account: Account, case: dict[str, Any]) -> None:
    read = partial(READERS[case["path"]], json.loads(case["body"]))
    if "refused" in case:
        with pytest.raises(ApiError) as caught:
            read()
        assert caught.value.param == case["refused"]
        return
    told = case.get("told", [])
    read()
    assert len(account.warnings) == len(told), account.warnings
    for part in told:
        assert any(part in warning for warning in account.warnings), account.warnings
