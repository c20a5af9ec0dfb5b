"""The bodies of requests of the playground, checked completely before anything is compiled or written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import WithJsonSchema

from constrain.fields.declared import Flag, Reads, within
from constrain.fields.sampling import (
    MAX_TOKEN_ID,
    DraftFields,
    Limit,
    Prefix,
    ShowingFields,
    read_token_ids,
    smallest_limit,
)
from constrain.server.http.errors import convert_field_errors
from constrain.server.playground.language import LANGUAGE, LanguageText, read_language
from constrain.server.requests.declared import AskingBody, Body
from constrain.server.requests.limits import RANGES
from constrain.server.requests.messages import read_messages
from constrain.server.requests.places import Places
from constrain.server.requests.question import Asked, Question
from constrain.server.requests.refusals import PLAYGROUND_FIELDS
from constrain.server.requests.streams import Streaming
from constrain.server.requests.tools import read_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.generation.options import ChatOptions
    from constrain.server.settings import Settings


_OBJECTS = {"type": "array", "items": {"type": "object"}}
_TOKEN = within((0, MAX_TOKEN_ID))
_TOKENS = {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": MAX_TOKEN_ID}}


class AnswerBody(ShowingFields, AskingBody):
    """A body about an answer."""

    refused = PLAYGROUND_FIELDS

    messages: Annotated[Any, Reads(read_messages, {**_OBJECTS, "minItems": 1})]
    language: Annotated[LanguageText | None, Reads(read_language, LANGUAGE)] = None
    tools: Annotated[Any, WithJsonSchema({**_OBJECTS, "maxItems": RANGES["tools"][1]})] = None
    tool_choice: Annotated[Any, WithJsonSchema({"type": ["string", "object"]})] = None
    parallel_tool_calls: Flag = None


class _LimitFields(AnswerBody):
    max_completion_tokens: Limit = None
    max_tokens: Limit = None

    def limit(self) -> tuple[ChatOptions, str]:
        """Returns the limit on tokens, and the name of its field."""
        limits = {"max_completion_tokens": self.max_completion_tokens, "max_tokens": self.max_tokens}
        return smallest_limit(limits)


class GenerationBody(DraftFields, _LimitFields):
    """The body of ``/generate``."""

    prefix: Prefix = None


class PlaceBody(AnswerBody):
    """A body about a place of an answer at hand."""

    tokens: Annotated[tuple[int, ...], Reads(lambda given, name: tuple(read_token_ids(given, name)), _TOKENS)] = ()


class BudgetBody(PlaceBody):
    """The body of ``/budget``."""

    max_tokens: Annotated[int, _TOKEN]


class WhyBody(PlaceBody, _LimitFields):
    """The body of ``/why``."""

    token: Annotated[int, _TOKEN]


class CheckBody(Body):
    """The body of ``/check``: the language is not read yet, since its errors are the result."""

    language: Annotated[LanguageText | None, Reads(read_language, LANGUAGE)] = None


class ExplainBody(CheckBody):
    """The body of ``/explain``."""

    text: str


@dataclass(frozen=True, slots=True)
class GenerationRequest(Asked):
    """A request for an answer. ``is_json``: whether the content is JSON."""

    is_json: bool


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
    asked = GenerationBody.read(body)
    return _read_question(asked, settings, *asked.limit())


def _read_question(asked: AnswerBody, settings: Settings, limit: ChatOptions, name: str) -> GenerationRequest:
    """Returns the question. ``limit`` and ``name``: limit on tokens, and the name of its field."""
    language = asked.language
    content = None if language is None else language.format()
    tools = read_tools(asked.given("tools", "tool_choice"), settings.strict_subset, is_flat=False)
    options: ChatOptions = {**asked.plain_options(), **limit, "trace": True}
    is_json = language is not None and language.is_json
    if language is not None and is_json:
        options = {**options, **language.policies}
    if is_json or tools.all:
        options.setdefault("confidence", True)
    else:
        options.pop("confidence", None)
    asked.require_quotes(has_schema=is_json or bool(tools.all))
    options |= tools.options(parallel=asked.parallel_tool_calls is not False)
    question = Question(asked.messages, content, options, Places("messages", name, tools.field, tools.places))
    return GenerationRequest(asked.model, question, Streaming(is_wanted=True), is_json)


@convert_field_errors()
def read_budget_request(body: Mapping[str, Any], settings: Settings) -> PlaceRequest:
    """Reads the parsed body of ``/budget``. Raises ``ApiError`` with the place."""
    asked = BudgetBody.read(body)
    generation = _read_question(asked, settings, {}, "max_tokens")
    return PlaceRequest(generation, asked.tokens, max_tokens=asked.max_tokens)


@convert_field_errors()
def read_why_request(body: Mapping[str, Any], settings: Settings) -> PlaceRequest:
    """Reads the parsed body of ``/why``. Raises ``ApiError`` with the place."""
    asked = WhyBody.read(body)
    return PlaceRequest(_read_question(asked, settings, *asked.limit()), asked.tokens, token=asked.token)


@convert_field_errors()
def read_check_request(body: Mapping[str, Any], settings: Settings) -> LanguageRequest:  # noqa: ARG001 - as all
    """Reads the parsed body of ``/check``. Raises ``ApiError`` with the place."""
    asked = CheckBody.read(body)
    return LanguageRequest(asked.model, asked.language)


@convert_field_errors()
def read_explain_request(body: Mapping[str, Any], settings: Settings) -> LanguageRequest:  # noqa: ARG001 - as all
    """Reads the parsed body of ``/explain``. Raises ``ApiError`` with the place."""
    asked = ExplainBody.read(body)
    return LanguageRequest(asked.model, asked.language, asked.text)
