"""The bodies of requests of the playground, checked completely before anything is compiled or written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import WithJsonSchema

from constrain.fields.declared import Flag, Reads, within
from constrain.fields.sampling import (
    MAX_TOKEN_ID,
    DraftFields,
    Prefix,
    ShowingFields,
    read_token_ids,
)
from constrain.server.playground.language import LANGUAGE, LanguageText, read_language
from constrain.server.requests.declared import AskingBody, Body, LimitFields
from constrain.server.requests.messages import read_messages
from constrain.server.requests.places import Places
from constrain.server.requests.question import Asked, Question
from constrain.server.requests.refusals import PLAYGROUND_FIELDS
from constrain.server.requests.streams import Streaming
from constrain.server.requests.tools import read_tools

if TYPE_CHECKING:
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
    tools: Annotated[Any, WithJsonSchema(_OBJECTS)] = None
    tool_choice: Annotated[Any, WithJsonSchema({"type": ["string", "object"]})] = None
    parallel_tool_calls: Flag = None

    def read_question(self, settings: Settings, limit: ChatOptions, name: str) -> Question:
        """Returns the question. ``limit`` and ``name``: limit on tokens, and the name of its field."""
        content = None if self.language is None else self.language.format()
        tools = read_tools(self.given("tools", "tool_choice"), settings.strict_subset, is_flat=False)
        options: ChatOptions = {**self.plain_options(), **limit, "trace": True}
        is_json = self.language is not None and self.language.is_json
        if self.language is not None and is_json:
            options = {**options, **self.language.policies}
        if is_json or tools.all:
            options.setdefault("confidence", True)
        else:
            options.pop("confidence", None)
        self.require_quotes(has_schema=is_json or bool(tools.all))
        options |= tools.options(parallel=self.parallel_tool_calls is not False)
        return Question(self.messages, content, options, Places("messages", name, tools.field, tools.places))


class GenerationBody(DraftFields, LimitFields, AnswerBody):
    """The body of ``/generate``."""

    prefix: Prefix = None

    def request(self, settings: Settings) -> Asked:
        """Returns the request. Raises ``ApiError`` or ``FieldError`` with the place."""
        return Asked(self.model, (self.read_question(settings, *self.limit()),), Streaming(is_wanted=True))


class PlaceBody(AnswerBody):
    """A body about a place of an answer at hand."""

    tokens: Annotated[tuple[int, ...], Reads(lambda given, name: tuple(read_token_ids(given, name)), _TOKENS)] = ()


class BudgetBody(PlaceBody):
    """The body of ``/budget``."""

    max_tokens: Annotated[int, _TOKEN]

    def request(self, settings: Settings) -> PlaceRequest:
        """Returns the request. Raises ``ApiError`` or ``FieldError`` with the place."""
        question = self.read_question(settings, {}, "max_tokens")
        return PlaceRequest(self.model, question, self.tokens, max_tokens=self.max_tokens)


class _LimitedBody(LimitFields, AnswerBody):
    """A body about an answer with a limit."""


class WhyBody(PlaceBody, _LimitedBody):
    """The body of ``/why``."""

    token: Annotated[int, _TOKEN]

    def request(self, settings: Settings) -> PlaceRequest:
        """Returns the request. Raises ``ApiError`` or ``FieldError`` with the place."""
        question = self.read_question(settings, *self.limit())
        return PlaceRequest(self.model, question, self.tokens, token=self.token)


class CheckBody(Body):
    """The body of ``/check``: the language is not read yet, since its errors are the result."""

    language: Annotated[LanguageText | None, Reads(read_language, LANGUAGE)] = None


class ExplainBody(CheckBody):
    """The body of ``/explain``."""

    text: str


@dataclass(frozen=True, slots=True)
class PlaceRequest:
    """A request about a place of an answer at hand.

    Attributes:
        model: name of the model.
        question: question of the answer, without its prefix and limit.
        tokens: token ids of the answer at hand.
        max_tokens: budget to try; only for ``/budget``.
        token: token id to explain; only for ``/why``.
    """

    model: str
    question: Question
    tokens: tuple[int, ...]
    max_tokens: int = 0
    token: int = 0
