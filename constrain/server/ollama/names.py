"""Names of models with a tag, and bodies that name a model; a name without a tag has the tag ``latest``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.fields.declared import Flag, Text  # noqa: TC001 - for Pydantic
from constrain.fields.values import missing
from constrain.server.http.errors import ApiError, convert_field_errors
from constrain.server.requests.body import LATEST
from constrain.server.requests.declared import UnnamedBody
from constrain.server.requests.refusals import unsupported

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from constrain.server.serving.models import Models


def served_name(models: Models, name: str) -> str:
    """Returns the served name that a request means (see ``Models.name_of``). Raises ``ApiError``."""
    found = models.name_of(name)
    if found is None:
        raise ApiError(
            f"model '{name:.200}' not found; this server has {list_names(models)}",
            status=404,
            param="model",
            code="model_not_found",
        )
    return found


def full_name(name: str) -> str:
    """Returns a name with its tag.

    >>> full_name("demo"), full_name("qwen3:8b")
    ('demo:latest', 'qwen3:8b')
    """
    return name if ":" in name.rpartition("/")[2] else name + LATEST


def list_names(models: Iterable[str]) -> str:
    """Returns the names of all models for a sentence."""
    return ", ".join(f"'{name}'" for name in models)


class NamedBody(UnnamedBody):
    """A body that names a model."""

    names = "TaggedModelName"

    name: Text = None
    verbose: Flag = None
    stream: Flag = None


@convert_field_errors()
def read_named(body: Mapping[str, Any]) -> dict[str, Any]:
    """Reads a parsed body that names a model. Raises ``ApiError`` with the place."""
    asked = NamedBody.read(body)
    name = asked.model or asked.name
    if not name:
        raise missing("model")
    if asked.verbose:
        raise unsupported("verbose", "This server does not list the tokens of a model; leave it out.")
    return {"model": name, "stream": asked.stream is not False}
