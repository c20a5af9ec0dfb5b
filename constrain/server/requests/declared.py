"""What all bodies are made of: the name of the model, the fields that are refused, and options for sampling."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from constrain.fields.declared import Fields, Schema
from constrain.fields.sampling import KeepingFields, OptionFields, biases, sampling_fields, stops
from constrain.server.requests.limits import RANGES
from constrain.server.requests.refusals import HOSTED_FIELDS, refuse_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Self

if TYPE_CHECKING:
    SamplingFields = OptionFields
else:
    SamplingFields = sampling_fields(RANGES)


class Body(Fields):
    """The body of a request. ``model`` is ``""`` for the only model, whose name the endpoint fills in."""

    refused: ClassVar[Mapping[str, str]] = {}
    """Fields that change the answer and are not read here, each with the alternative."""

    names: ClassVar[str] = "ModelName"
    """The schema of the models' names, which the description of a server lists."""

    model: str = ""

    @classmethod
    def read(cls, given: Mapping[str, Any], place: str = "") -> Self:
        """Reads a parsed body. Raises ``FieldError``, also for a refused field; warns of those left out."""
        document: Any = given
        if hasattr(document, "names"):  # it records which fields are asked for, which takes longer than to read them
            document.names.update(_asked_for(cls))
            document = document.fields
        if cls.refused:
            refuse_fields(document, cls.refused)
        return super().read(document, place)

    @classmethod
    def describe(cls) -> Schema:
        """Returns the JSON Schema of the body. ``model`` is required: only a server with one model does without it."""
        found = super().describe()
        found["properties"]["model"] = {"$ref": f"#/components/schemas/{cls.names}"}
        return {**found, "required": ["model", *found.get("required", ())]}


@cache
def _asked_for(body: type[Body]) -> frozenset[str]:
    """Returns the names of all fields that a body has or refuses."""
    others = (*body.refused, "modalities", *HOSTED_FIELDS) if body.refused else ()
    return frozenset((*body.model_fields, *(name.partition(".")[0] for name in others)))


class UnnamedBody(Body):
    """A body that may leave out the name of the model."""

    @classmethod
    def describe(cls) -> Schema:
        """Returns the JSON Schema of the body."""
        found = super().describe()
        found["properties"]["model"] = {"anyOf": [found["properties"]["model"], {"type": "null"}]}
        return {**found, "required": found["required"][1:]}


class AskingBody(KeepingFields, SamplingFields, Body):
    """A body that asks a model to write."""

    stop: Annotated[list[str] | None, stops(RANGES["stop"][1])] = None
    logit_bias: Annotated[dict[int, float] | None, biases(RANGES["logit_bias"])] = None
