"""Tables of requests: which are refused, in which words, and which are accepted, before any model is asked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from constrain.fields.values import FieldError
from constrain.server.chat.request import read_chat_request
from constrain.server.completions.request import read_completion_request
from constrain.server.embeddings.request import read_embedding_request
from constrain.server.http.errors import convert_field_errors
from constrain.server.llama_server.request import read_completion, read_infill
from constrain.server.messages.request import read_messages_request
from constrain.server.ollama.request import read_ollama_chat, read_ollama_generate
from constrain.server.ollama.texts import read_embed
from constrain.server.requests.formats import RESPONSE_FORMAT, read_format
from constrain.server.responses.input import conversation, read_items
from constrain.server.responses.request import read_request
from constrain.server.settings import Settings
from tests.support.server.tables import require_refused, table

if TYPE_CHECKING:
    from collections.abc import Callable

SETTINGS = Settings()
MODEL = {"model": "small"}
CHAT = {**MODEL, "messages": [{"role": "user", "content": "Hello"}]}
GAP = {"input_prefix": "def add(", "input_suffix": "return a + b"}


def read_input(given: Any) -> None:
    with convert_field_errors():
        conversation(read_items(given), None)


def ollama_chat(fields: dict[str, Any]) -> object:
    return read_ollama_chat({**CHAT, **fields}, SETTINGS)


def ollama_generate(fields: dict[str, Any]) -> object:
    return read_ollama_generate({**MODEL, "prompt": "Hi", **fields}, SETTINGS)


def llama_completion(fields: dict[str, Any]) -> object:
    return read_completion({"prompt": "One, two,", **fields}, SETTINGS)


def llama_infill(fields: dict[str, Any]) -> object:
    return read_infill({**GAP, **fields}, SETTINGS)


READERS: dict[str, dict[str, tuple[Callable[[Any], object], ...]]] = {
    "chat_requests": {"refused": (lambda fields: read_chat_request({**CHAT, **fields}, SETTINGS),)},
    "completion_requests": {
        "refused": (lambda fields: read_completion_request({**MODEL, "prompt": "Hello", **fields}, SETTINGS),)
    },
    "embedding_requests": {"refused": (lambda fields: read_embedding_request({**MODEL, "input": "Hello", **fields}),)},
    "messages_requests": {
        "refused": (lambda fields: read_messages_request({**CHAT, "max_tokens": 100, **fields}, SETTINGS),)
    },
    "responses_requests": {
        "refused": (lambda fields: read_request({**MODEL, "input": "Hello", **fields}),),
        "items": (read_input,),
    },
    "ollama_requests": {
        "both": (ollama_chat, ollama_generate),
        "chat": (ollama_chat,),
        "generate": (ollama_generate,),
        "embed": (lambda fields: read_embed({**MODEL, "input": "a", **fields}),),
    },
    "llama_requests": {
        "both": (llama_completion, llama_infill),
        "completion": (llama_completion,),
        "infill": (llama_infill,),
    },
}
"""The readers of each table, by the kind of its cases."""

CASES = [
    pytest.param(case.values[0], reader, id=f"{name}, {kind}, {number}, {case.id}")
    for name, kinds in READERS.items()
    for kind, readers in kinds.items()
    for case in table(name)[kind]
    for number, reader in enumerate(readers)
]
ACCEPTED = [
    pytest.param(case.values[0], kinds["refused"][0], id=f"{name}, {case.id}")
    for name, kinds in READERS.items()
    for case in table(name).get("accepted", ())
]


@pytest.mark.parametrize(("case", "read"), CASES)
def test_what_cannot_be_had_is_refused_with_its_place(case: dict[str, Any], read: Callable[[Any], object]) -> None:
    require_refused(case, read)


@pytest.mark.parametrize(("case", "read"), ACCEPTED)
def test_what_clients_send_is_accepted(case: dict[str, Any], read: Callable[[Any], object]) -> None:
    assert read(json.loads(case["fields"])).model == "small"  # type: ignore[attr-defined]


@pytest.mark.parametrize("case", table("formats")["refused"])
def test_a_format_that_says_nothing_or_two_things_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(FieldError) as caught:
        read_format(json.loads(case["fields"]), RESPONSE_FORMAT, "structural")
    assert caught.value.param == case["param"]
