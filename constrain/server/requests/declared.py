"""What all bodies are made of: the name of the model, the fields that are refused, and options for sampling."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from constrain.fields.declared import Fields, Schema
from constrain.fields.sampling import (
    KeepingFields,
    Limit,
    OptionFields,
    biases,
    sampling_fields,
    smallest_limit,
    stops,
)
from constrain.server.http.account import warn
from constrain.server.http.errors import convert_field_errors
from constrain.server.requests.limits import RANGES
from constrain.server.requests.refusals import HOSTED_FIELDS, refuse_fields
from constrain.suggestions import closest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from typing_extensions import Self

    from constrain.generation.options import ChatOptions
    from constrain.server.settings import Settings

if TYPE_CHECKING:
    SamplingFields = OptionFields
else:
    SamplingFields = sampling_fields(RANGES)


_MOST_COMPARED = 50
"""Unread fields of one request that are compared with the read ones; the others are accepted in silence."""

_FEWEST_LETTERS = 3
"""Letters of an unread field below which it is nearly the name of too many others."""

_KNOWN = frozenset(("conversation_id", "mode", "models", "n_keep", "speed", "thread_id", "tool_ids"))
"""Fields of other servers that have no effect here, and nearly the name of one that has."""


class Body(Fields):
    """The body of a request. ``model`` is ``""`` for the only model, whose name the endpoint fills in."""

    refused: ClassVar[Mapping[str, str]] = {}
    """Fields that change the answer and are not read here, each with the alternative."""

    names: ClassVar[str] = "ModelName"
    """The schema of the models' names, which the description of a server lists."""

    model: str = ""

    @classmethod
    @convert_field_errors()
    def ask(cls, given: Mapping[str, Any], settings: Settings) -> Any:
        """Returns the request of a parsed body, checked completely. Raises ``ApiError`` with the place.

        Compiles grammars and schemas of tools. Unknown fields are accepted; known ones that this server cannot honour
        are refused.
        """
        return cls.read(given).request(settings)

    def request(self, settings: Settings) -> Any:  # noqa: ARG002 - subclasses' use
        """Returns the request: the fields themselves, unless an endpoint makes more of them. Raises ``FieldError``."""
        return self

    @classmethod
    def read(cls, given: Mapping[str, Any], place: str = "") -> Self:
        """Reads a parsed body; warns of left-out and misspelt fields. Raises ``FieldError``, also for a refused one."""
        if cls.refused:
            refuse_fields(given, cls.refused)
        found = super().read(given, place)
        for sentence in misspelt_fields(given, _known_to(cls)):
            warn(sentence)
        return found

    @classmethod
    def describe(cls) -> Schema:
        """Returns the JSON Schema of the body. ``model`` is required: only a server with one model does without it."""
        found = super().describe()
        found["properties"]["model"] = {"$ref": f"#/components/schemas/{cls.names}"}
        return {**found, "required": ["model", *found.get("required", ())]}


@cache
def _known_to(body: type[Body]) -> frozenset[str]:
    """Returns the names of all fields that a body has or refuses."""
    others = (*body.refused, "modalities", *HOSTED_FIELDS) if body.refused else ()
    return frozenset((*body.model_fields, *(name.partition(".")[0] for name in others)))


def misspelt_fields(fields: Mapping[str, Any], read: Collection[str]) -> Iterator[str]:
    """Yields a sentence for each field that is not read, and whose name is one slip of typing away from one that is."""
    unread = [name for name, value in fields.items() if name not in read and name not in _KNOWN and value is not None]
    for name in unread[:_MOST_COMPARED]:
        letters = sum(map(str.isalnum, name))
        if letters >= _FEWEST_LETTERS and (meant := closest(name, read, (letters - 1) / letters)):
            yield f"'{name:.64}' is not read; is '{meant}' meant?"


class UnnamedBody(Body):
    """A body that may leave out the name of the model."""

    @classmethod
    def describe(cls) -> Schema:
        """Returns the JSON Schema of the body."""
        found = super().describe()
        found["properties"]["model"] = {"anyOf": [found["properties"]["model"], {"type": "null"}]}
        return {**found, "required": found["required"][1:]}


class LimitFields(Fields):
    """The limit on tokens, and its older name."""

    max_completion_tokens: Limit = None
    max_tokens: Limit = None

    def limit(self) -> tuple[ChatOptions, str]:
        """Returns the limit on tokens, and the name of its field."""
        limits = {"max_completion_tokens": self.max_completion_tokens, "max_tokens": self.max_tokens}
        return smallest_limit(limits)


class AskingBody(KeepingFields, SamplingFields, Body):
    """A body that asks a model to write."""

    stop: Annotated[list[str] | None, stops(RANGES["stop"][1])] = None
    logit_bias: Annotated[dict[int, float] | None, biases(RANGES["logit_bias"])] = None
