"""Names of models with a tag, and bodies that name a model; a name without a tag has the tag ``latest``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.fields.declared import Flag, Text  # noqa: TC001 - for Pydantic
from constrain.fields.values import missing
from constrain.server.http.errors import ApiError
from constrain.server.requests.body import LATEST
from constrain.server.requests.declared import UnnamedBody
from constrain.server.requests.refusals import unsupported

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Self

    from constrain.server.serving.models import Models
    from constrain.server.settings import Settings


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

    def request(self, _: Settings) -> Self:
        """Returns the body, with the name as ``model``. Raises ``FieldError``."""
        self.model = self.model or self.name or ""
        if not self.model:
            raise missing("model")
        if self.verbose:
            raise unsupported("verbose", "This server does not list the tokens of a model; leave it out.")
        return self
