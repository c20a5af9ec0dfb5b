"""The paths about models: ``/api/tags``, ``/api/show``, ``/api/ps`` and ``/api/pull``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import llama_cpp
from starlette.responses import JSONResponse, Response

from constrain.server.http.errors import ApiError
from constrain.server.ollama.lines import LINES, json_line, timestamp
from constrain.server.ollama.names import NamedBody, full_name, list_names, served_name
from constrain.server.serving.endpoint import Endpoint
from constrain.server.serving.facts import FileFacts
from constrain.server.serving.models import find_model

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Send

    from constrain.server.sandbox.session import Session
    from constrain.server.serving.endpoint import Serving
    from constrain.server.serving.facts import Facts

_FOREVER = "9999-12-31T23:59:59Z"
"""Time at which a loaded model leaves memory: it has none."""


class Library:
    """The models of a server as Ollama's clients see them.

    Args:
        serving: models and generator.
        facts: facts about the models' files.
    """

    def __init__(self, serving: Serving, facts: Facts) -> None:
        self._models = serving.models
        self._facts = facts

    async def tags(self, _: Request) -> Response:
        """Lists all models."""
        return JSONResponse({"models": [await self._entry(name) for name in self._models]})

    async def running(self, _: Request) -> Response:
        """Lists the models that are loaded."""
        found = []
        for state in self._models.states():
            if (model := state.model) is not None:
                entry = await self._entry(state.name)
                del entry["modified_at"]
                entry |= {"size": state.memory_bytes, "expires_at": _FOREVER, "context_length": model.n_ctx}
                if not llama_cpp.llama_supports_gpu_offload():
                    entry["size_vram"] = 0
                found.append(entry)
        return JSONResponse({"models": found})

    async def _entry(self, name: str) -> dict[str, Any]:
        source = find_model(self._models, name)
        try:
            facts = await self._facts.of(source)
        except ApiError:  # the other models can be listed nevertheless
            facts = FileFacts()
        shown = full_name(name)
        if shown != name and shown in self._models:  # another model has this name
            shown = name
        return {
            "name": shown,
            "model": shown,
            "modified_at": timestamp(source.created),
            "size": facts.size,
            "digest": facts.digest,
            "details": facts.details or {},
        }


class _About(Endpoint):
    """An endpoint whose body names a model, as ``model`` or, in older clients, as ``name``."""

    def name_model(self, document: dict[str, Any]) -> None:
        """Adds nothing: ``NamedBody`` requires a name."""

    def find(self, name: str) -> str:
        """Returns the name unchanged: ``respond`` finds the model."""
        return name


class Show(_About):
    """``POST /api/show``: describes a model. ``facts``: those about the models' files."""

    def __init__(self, serving: Serving, facts: Facts) -> None:
        super().__init__(serving, NamedBody)
        self._facts = facts

    async def respond(self, asked: NamedBody, session: Session, send: Send) -> Response:  # noqa: ARG002
        """Returns the description of a model; see ``Endpoint``."""
        models = self._serving.models
        source = find_model(models, served_name(models, asked.model))
        facts = await self._facts.of(source)
        described: dict[str, Any] = {
            "modelfile": "",
            "parameters": "",
            "template": facts.template,
            "details": facts.details or {},
            "model_info": facts.info or {},
            "capabilities": list(facts.capabilities),
            "modified_at": timestamp(source.created),
        }
        return JSONResponse({**described, "license": facts.license} if facts.license else described)


class Pull(_About):
    """``POST /api/pull``: succeeds for a model that is served already; others cannot be downloaded here."""

    async def respond(self, asked: NamedBody, session: Session, send: Send) -> Response:  # noqa: ARG002
        """Returns the success, as a stream of one line unless the request wants none; see ``Endpoint``."""
        name = asked.model
        if self._serving.models.name_of(name) is None:
            raise ApiError(
                f"model '{name:.200}' is not served here, and this server downloads no models: get the GGUF file, and "
                f"start the server with it (constrain serve FILE --alias NAME). It has "
                f"{list_names(self._serving.models)}.",
                status=404,
                param="model",
                code="model_not_found",
            )
        return Response(
            json_line({"status": "success"}), media_type="application/json" if asked.stream is False else LINES
        )
