"""The models that a server has, by name, and how it lists them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openai.types import Model as ModelObject

from constrain.server.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.llama.model import Model

_OWNER = "constrain"


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model under a name. ``created``: seconds since 1970, of its file."""

    name: str
    model: Model
    created: int


def find_model(models: Mapping[str, ServedModel], name: str) -> ServedModel:
    """The model of a name. Raises ``ApiError``."""
    if name not in models:
        there = ", ".join(f"'{known}'" for known in models)
        raise ApiError(
            f"The model '{name:.200}' does not exist. This server has {there}.",
            status=404,
            param="model",
            code="model_not_found",
        )
    return models[name]


def model_object(served: ServedModel) -> dict[str, Any]:
    """A model as OpenAI's clients know it."""
    described = ModelObject(id=served.name, created=served.created, object="model", owned_by=_OWNER)
    return described.model_dump(exclude_unset=True)


def model_list(models: Mapping[str, ServedModel]) -> dict[str, Any]:
    """All of them."""
    return {"object": "list", "data": [model_object(served) for served in models.values()]}
