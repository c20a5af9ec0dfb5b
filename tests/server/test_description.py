"""Answers are as the server's own description says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from tests.server.support import ask, chunks_of

if TYPE_CHECKING:
    from constrain.server.app import Application

COMPLETION: dict[str, Any] = {"prompt": "One, two,", "max_tokens": 2, "logprobs": 1}


@pytest.mark.parametrize(
    ("path", "fields", "name"),
    [
        ("/v1/completions", COMPLETION, "Completion"),
        ("/v1/completions", {**COMPLETION, "stream": True}, "CompletionChunk"),
        ("/v1/embeddings", {"input": "Hello"}, "Embeddings"),
        ("/v1/embeddings", {"input": "Hello", "encoding_format": "base64"}, "Embeddings"),
    ],
)
def test_answers_are_as_described(application: Application, path: str, fields: dict[str, Any], name: str) -> None:
    description = ask(application, "GET", "/openapi.json").json()
    described = {**description, "$ref": f"#/components/schemas/{name}"}
    response = ask(application, "POST", path, json={"model": "small", **fields})
    for document in chunks_of(response) if "stream" in fields else [response.json()]:
        jsonschema.validate(document, described)
