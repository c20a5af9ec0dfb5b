"""The bodies of requests of the playground, checked completely before anything is compiled or written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from constrain.fields.logprobs import read_confidence
from constrain.fields.sampling import (
    MAX_TOKEN_ID,
    read_cache_prompt,
    read_draft,
    read_max_tokens,
    read_parallel,
    read_prefix,
    read_sampling,
    read_show_schema,
    read_sources,
    read_token_ids,
)
from constrain.fields.values import integer, missing, required_text
from constrain.server.http.errors import convert_field_errors
from constrain.server.playground.language import LanguageText, read_language
from constrain.server.requests.body import model_name
from constrain.server.requests.limits import RANGES
from constrain.server.requests.messages import read_messages
from constrain.server.requests.places import Places
from constrain.server.requests.question import Question
from constrain.server.requests.refusals import PLAYGROUND_FIELDS, refuse_fields
from constrain.server.requests.streams import Streaming
from constrain.server.requests.tools import read_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.generation.options import ChatOptions
    from constrain.server.settings import Settings


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """The checked fields of a request for an answer.

    Attributes:
        model: name of the model.
        question: question to the model.
        is_json: whether the content is JSON.
    """

    model: str
    question: Question
    is_json: bool

    streaming = Streaming(is_wanted=True)

    @property
    def questions(self) -> tuple[Question, ...]:
        """The question, as a tuple of one."""
        return (self.question,)


@dataclass(frozen=True, slots=True)
class PlaceRequest:
    """A request about a place of an answer at hand: a request for an answer, without its prefix and limit.

    Attributes:
        generation: the request for an answer.
        tokens: token ids of the answer at hand.
        max_tokens: budget to try; only for ``/budget``.
        token: token id to explain; only for ``/why``.
    """

    generation: GenerationRequest
    tokens: tuple[int, ...]
    max_tokens: int = 0
    token: int = 0

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.generation.model


@dataclass(frozen=True, slots=True)
class LanguageRequest:
    """A request about a schema or grammar: without a prompt.

    Attributes:
        model: name of the model, whose tokens count.
        language: the schema or grammar; ``None`` for none.
        text: text to explain; only for ``/explain``.
    """

    model: str
    language: LanguageText | None
    text: str = ""


@convert_field_errors()
def read_generation_request(body: Mapping[str, Any], settings: Settings) -> GenerationRequest:
    """Reads the parsed body of ``/generate``. Raises ``ApiError`` with the place."""
    limit, name = read_max_tokens(body, "max_completion_tokens", "max_tokens", least=1)
    options: ChatOptions = {**limit, **read_draft(body), **read_prefix(body)}
    return _read_question(body, settings, options, name)


def _read_question(
    body: Mapping[str, Any], settings: Settings, options: ChatOptions, limit: str = "max_tokens"
) -> GenerationRequest:
    """Reads all but how an answer begins and ends, which ``options`` say. ``limit``: field of the limit on tokens."""
    model = model_name(body)
    refuse_fields(body, PLAYGROUND_FIELDS)
    messages = read_messages(body)
    language = read_language(body.get("language"))
    content = None if language is None else language.format()
    tools = read_tools(body, settings.strict_subset, is_flat=False)
    options = {**options, **read_sampling(body, RANGES), **read_show_schema(body), **read_cache_prompt(body)}
    options["trace"] = True
    is_json = language is not None and language.is_json
    confidence = read_confidence(body)
    if language is not None and is_json:
        options = {**options, **language.policies}
    if is_json or tools.all:
        options |= {"confidence": True, **confidence}
    options |= read_sources(body, has_schema=is_json or bool(tools.all))
    options |= tools.options(parallel=read_parallel(body))
    question = Question(messages, content, options, Places("messages", limit, tools.field, tools.places))
    return GenerationRequest(model, question, is_json)


@convert_field_errors()
def read_budget_request(body: Mapping[str, Any], settings: Settings) -> PlaceRequest:
    """Reads the parsed body of ``/budget``. Raises ``ApiError`` with the place."""
    most = _number(body, "max_tokens")
    return PlaceRequest(_read_question(body, settings, {}), _tokens(body), max_tokens=most)


@convert_field_errors()
def read_why_request(body: Mapping[str, Any], settings: Settings) -> PlaceRequest:
    """Reads the parsed body of ``/why``. Raises ``ApiError`` with the place."""
    limit, name = read_max_tokens(body, "max_completion_tokens", "max_tokens", least=1)
    return PlaceRequest(_read_question(body, settings, limit, name), _tokens(body), token=_number(body, "token"))


@convert_field_errors()
def read_check_request(body: Mapping[str, Any], settings: Settings) -> LanguageRequest:  # noqa: ARG001 - as all
    """Reads the parsed body of ``/check``: the language is not read yet, since its errors are the result."""
    return LanguageRequest(model_name(body), read_language(body.get("language")))


@convert_field_errors()
def read_explain_request(body: Mapping[str, Any], settings: Settings) -> LanguageRequest:
    """Reads the parsed body of ``/explain``. Raises ``ApiError`` with the place."""
    return replace(read_check_request(body, settings), text=required_text(body, "text"))


def _tokens(body: Mapping[str, Any]) -> tuple[int, ...]:
    """Reads the tokens of the answer at hand. Raises ``FieldError``."""
    given = body.get("tokens")
    return () if given is None else tuple(read_token_ids(given, "tokens"))


def _number(members: Mapping[str, Any], name: str) -> int:
    """Returns an integer of 0 or more. Raises ``FieldError`` if it is missing, null or another value."""
    found = integer(members, name, 0, MAX_TOKEN_ID)
    if found is None:
        raise missing(name)
    return found
