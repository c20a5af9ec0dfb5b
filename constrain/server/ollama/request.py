"""The bodies of ``POST /api/chat`` and ``POST /api/generate``, checked completely before generation begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain.fields.logprobs import read_certificate, read_logprobs
from constrain.fields.sampling import read_cache_prompt, read_parallel
from constrain.fields.thinking import read_thinking
from constrain.fields.values import array, boolean, optional_text
from constrain.server.http.errors import convert_field_errors
from constrain.server.ollama.fields import (
    CHAT_REFUSED,
    GENERATE_REFUSED,
    read_functions,
    read_keep_alive,
    read_shape,
)
from constrain.server.ollama.messages import convert_messages, refuse_images
from constrain.server.ollama.options import NUM_PREDICT, read_options
from constrain.server.ollama.thinking import thinking_options
from constrain.server.requests.body import model_name
from constrain.server.requests.places import Places
from constrain.server.requests.question import Question, take_prefill
from constrain.server.requests.refusals import refuse_fields, unsupported
from constrain.server.requests.streams import Streaming

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.generation.options import ChatOptions
    from constrain.server.settings import Settings


@dataclass(frozen=True, slots=True)
class OllamaRequest:
    """The checked fields of a request whose model writes an answer, or is only loaded or unloaded.

    Attributes:
        model: name of the model, with or without a tag.
        question: question to the model; ``None`` if the request only loads or unloads it.
        streaming: how the answer is sent.
        is_unloading: whether a request without a question unloads the model.
        options: options for the generation.
    """

    model: str
    question: Question | None
    streaming: Streaming
    is_unloading: bool
    options: ChatOptions

    @property
    def questions(self) -> tuple[Question, ...]:
        """The question, as a tuple of one, or of none."""
        return () if self.question is None else (self.question,)


@convert_field_errors()
def read_ollama_chat(body: Mapping[str, Any], settings: Settings) -> OllamaRequest:
    """Reads a parsed body of ``/api/chat``. Raises ``ApiError`` with the place.

    Compiles schemas of tools. Unknown fields are accepted; known fields that this server cannot honour are refused.
    """
    model = model_name(body)
    refuse_fields(body, CHAT_REFUSED)
    options, is_unloading = _read_common(body)
    content = read_shape(body)
    tools = read_functions(body, settings.strict_subset)
    options |= tools.options(parallel=read_parallel(body))
    messages = body.get("messages")
    question = None
    if messages is not None and array(messages, "messages"):
        places = Places("messages", NUM_PREDICT, tools.field, tools.places)
        asked, prefill = take_prefill(body, convert_messages(messages), options)
        question = Question(asked, content, options, places, prefill=prefill)
    return OllamaRequest(model, question, _read_streaming(body), is_unloading, options)


@convert_field_errors()
def read_ollama_generate(body: Mapping[str, Any], settings: Settings) -> OllamaRequest:  # noqa: ARG001 - as all readers
    """Reads a parsed body of ``/api/generate``. Raises ``ApiError`` with the place.

    With ``raw``, the model continues the prompt; otherwise it answers, and the prompt is a message of the user.
    """
    model = model_name(body)
    refuse_fields(body, GENERATE_REFUSED)
    refuse_images(body)
    options, is_unloading = _read_common(body)
    content = read_shape(body)
    prompt, system = optional_text(body, "prompt") or "", optional_text(body, "system")
    is_raw = boolean(body, "raw") or False
    if is_raw and system:
        raise unsupported("system", "With 'raw', the prompt is all that the model reads; write it into 'prompt'.")
    if is_raw and options.pop("thinking", None):
        raise unsupported("think", "With 'raw', the prompt begins the reasoning where there is one; leave it out.")
    question = None
    if prompt and is_raw:
        question = Question(prompt, content, options, Places("prompt", NUM_PREDICT))
    elif prompt:
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": prompt})
        question = Question(messages, content, options, Places("prompt", NUM_PREDICT))
    return OllamaRequest(model, question, _read_streaming(body), is_unloading, options)


def _read_common(body: Mapping[str, Any]) -> tuple[ChatOptions, bool]:
    """Reads the fields that both endpoints have. Raises ``FieldError``.

    Returns the options for the generation, and whether the model is to be unloaded.
    """
    options: ChatOptions = {**read_options(body), **read_logprobs(body), **read_cache_prompt(body)}
    options |= read_certificate(body)
    most = options.get("max_tokens")
    thinking = thinking_options(body, most)
    options |= {**read_thinking(body, most), **thinking}
    return options, read_keep_alive(body)


def _read_streaming(body: Mapping[str, Any]) -> Streaming:
    """Reads ``stream``: answers are sent while they are written, unless it is false. Raises ``FieldError``."""
    return Streaming(boolean(body, "stream") is not False)
