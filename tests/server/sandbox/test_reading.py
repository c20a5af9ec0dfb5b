"""Fields of requests that nobody reads: those that seem to be misspelt are warnings, and none is refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from constrain.server.chat.request import read_chat_request
from constrain.server.completions.request import read_completion_request
from constrain.server.http.account import Account
from constrain.server.llama_server.request import read_completion
from constrain.server.messages.request import read_messages_request
from constrain.server.ollama.request import read_ollama_chat
from constrain.server.responses.request import read_request
from constrain.server.sandbox.reading import misspelt_fields, read_again
from constrain.server.settings import Settings
from tests.support import for_each

MESSAGES = [{"role": "user", "content": "Hi"}]
SETTINGS = Settings()
READERS: dict[str, tuple[Callable[..., object], dict[str, Any]]] = {
    "chat": (partial(read_chat_request, settings=SETTINGS), {"messages": MESSAGES}),
    "completions": (partial(read_completion_request, settings=SETTINGS), {"prompt": "Hi"}),
    "responses": (read_request, {"input": "Hi"}),
    "messages": (partial(read_messages_request, settings=SETTINGS), {"messages": MESSAGES, "max_tokens": 9}),
    "Ollama's": (partial(read_ollama_chat, settings=SETTINGS), {"messages": MESSAGES}),
    "llama-server's": (partial(read_completion, settings=SETTINGS), {"prompt": "Hi"}),
    "llama-server's with a random seed": (partial(read_completion, settings=SETTINGS), {"prompt": "Hi", "seed": -1}),
}


@pytest.fixture
def warnings_of(account: Account) -> Callable[..., list[str]]:
    """A function that reads a request with some fields, and returns its new warnings."""

    def read_with(endpoint: str, **fields: Any) -> list[str]:
        read, body = READERS[endpoint]
        before = len(account.warnings)
        read_again(read, {"model": "m", **body, **fields})
        return list(account.warnings[before:])

    return read_with


@for_each(
    "endpoint, name, meant",
    ("chat", "max_token", "max_tokens"),
    ("chat", "temprature", "temperature"),
    ("chat", "respones_format", "response_format"),
    ("chat", "maxTokens", "max_tokens"),
    ("chat", "top-p", "top_p"),
    ("chat", "saed", "seed"),
    ("chat", "stop_sequence", "stop_sequences"),
    ("completions", "max_tokens_", "max_tokens"),
    ("responses", "max_output_token", "max_output_tokens"),
    ("messages", "stopSequences", "stop_sequences"),
    ("Ollama's", "fromat", "format"),
    ("llama-server's", "n_predcit", "n_predict"),
)
def test_a_field_with_nearly_the_name_of_a_read_one_is_a_warning(
    warnings_of: Callable[..., list[str]], endpoint: str, name: str, meant: str
) -> None:
    assert warnings_of(endpoint, **{name: 1}) == [f"'{name}' is not read; is '{meant}' meant?"]
    assert warnings_of(endpoint, **{name: None}) == []


@for_each("endpoint", READERS)
def test_fields_that_say_nothing_here_are_accepted_in_silence(
    warnings_of: Callable[..., list[str]], endpoint: str
) -> None:
    """Among them are fields of other servers, and of other endpoints, with similar names."""
    names = ["conversation_id", "id", "k", "mode", "models", "n_keep", "prompt_cache_key", "reasoning_format", "speed"]
    assert warnings_of(endpoint, **dict.fromkeys(names, "x")) == []


def test_fields_of_a_changed_body_are_read(warnings_of: Callable[..., list[str]]) -> None:
    """Beside ``mirostat_mode``, which is refused, ``mirostat`` would seem misspelt."""
    assert warnings_of("llama-server's with a random seed", mirostat=0, temperature=1) == []


def test_few_of_many_unread_fields_are_compared() -> None:
    assert [*misspelt_fields({**{f"unread {n}": 1 for n in range(60)}, "sead": 1}, {"seed"})] == []
