"""The bodies of ``POST /api/embed`` and ``POST /api/embeddings``, checked: texts that get vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.fields.values import array, boolean, integer, missing, optional_text, wrong_type
from constrain.server.embeddings.request import EmbeddingRequest
from constrain.server.http.errors import ApiError, convert_field_errors
from constrain.server.ollama.options import read_num_ctx, read_options
from constrain.server.requests.body import model_name
from constrain.server.requests.limits import RANGES

if TYPE_CHECKING:
    from collections.abc import Mapping


@convert_field_errors()
def read_embed(body: Mapping[str, Any]) -> EmbeddingRequest:
    """Reads a parsed body of ``/api/embed``: a text, or several. Raises ``ApiError`` with the place."""
    given = body.get("input")
    if given is None:
        raise missing("input")
    if isinstance(given, str):
        inputs: tuple[str, ...] = (given,) if given else ()
    elif isinstance(given, list):
        texts = array(given, "input", RANGES["input"][1])
        inputs = tuple(_text(text, f"input[{index}]") for index, text in enumerate(texts))
    else:
        raise wrong_type("input", "a string or an array", given)
    is_cut = boolean(body, "truncate") is not False
    return _request(body, inputs, "input", dimensions=integer(body, "dimensions", 1), is_cut=is_cut)


@convert_field_errors()
def read_old_embeddings(body: Mapping[str, Any]) -> EmbeddingRequest:
    """Reads a parsed body of ``/api/embeddings``: one text, as ``prompt``. Raises ``ApiError`` with the place."""
    prompt = optional_text(body, "prompt")
    return _request(body, (prompt,) if prompt else (), "prompt", dimensions=None, is_cut=True)


def _request(
    body: Mapping[str, Any], inputs: tuple[str, ...], field: str, *, dimensions: int | None, is_cut: bool
) -> EmbeddingRequest:
    read_options(body)
    return EmbeddingRequest(
        model_name(body), inputs, "float", dimensions, field, max_tokens=read_num_ctx(body), truncate=is_cut
    )


def _text(given: object, place: str) -> str:
    if not isinstance(given, str):
        raise wrong_type(place, "a string", given)
    if not given:
        raise ApiError(f"Invalid '{place}': it is an empty string.", param=place, code="invalid_value")
    return given
