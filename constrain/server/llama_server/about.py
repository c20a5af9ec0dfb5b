"""The server and its models, as llama-server (``/props``, ``/slots``) and LM Studio (``/api/v0/models``) show them."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response

from constrain.server.http.errors import unavailable
from constrain.server.serving.facts import Facts
from constrain.server.serving.models import find_model, only_model, require_name

if TYPE_CHECKING:
    from starlette.requests import Request

    from constrain.llama.model import Model
    from constrain.server.serving.endpoint import Serving


class About:
    """The descriptions of a server and its models. ``serving``: models and generator."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._facts = Facts(serving.generator)

    async def properties(self, request: Request) -> Response:
        """Describes the model that the query names (``model``), or the only one."""
        name, model = self._loaded(request)
        path, tokenizer = find_model(self._serving.models, name).path, model.tokenizer
        return JSONResponse(
            {
                "default_generation_settings": {"n_ctx": model.n_ctx},
                "total_slots": model.parallel,
                "model_alias": name,
                "model_path": "" if path is None else path.name,
                "modalities": {"vision": False, "audio": False},
                "chat_template": model.chat_template,
                "bos_token": tokenizer.name(tokenizer.bos),
                "eos_token": tokenizer.name(tokenizer.eos),
                "build_info": f"constrain {version('constrain-llm')}",
            }
        )

    async def slots(self, request: Request) -> Response:
        """Lists the places for answers of a model."""
        name, model = self._loaded(request)
        own = find_model(self._serving.models, name).names[0]
        users = next(state.users for state in self._serving.models.states() if state.name == own)
        return JSONResponse(
            [{"id": number, "n_ctx": model.n_ctx, "is_processing": number < users} for number in range(model.parallel)]
        )

    async def models(self, _: Request) -> Response:
        """Lists all models."""
        return JSONResponse({"object": "list", "data": [await self._describe(name) for name in self._serving.models]})

    async def model(self, request: Request) -> Response:
        """Describes one model."""
        return JSONResponse(await self._describe(require_name(self._serving.models, request.path_params["name"])))

    def _loaded(self, request: Request) -> tuple[str, Model]:
        """Returns the served name of the model that the query names, or the only one, and the model.

        Raises ``ApiError``, also for one that is not loaded: a description is no reason to load a model.
        """
        models = self._serving.models
        name = require_name(models, request.query_params.get("model") or only_model(models))
        if (model := models.loaded(name)) is None:
            raise unavailable(f"The model '{name}' is not loaded; it is with the first request for an answer.")
        return name, model

    async def _describe(self, name: str) -> dict[str, Any]:
        source, loaded = find_model(self._serving.models, name), self._serving.models.loaded(name)
        facts = await self._facts.of(source)
        details, info = facts.details or {}, facts.info or {}
        family = details.get("family", "")
        return {
            "id": name,
            "object": "model",
            "type": "llm",
            "publisher": "",
            "arch": family,
            "compatibility_type": "gguf",
            "quantization": details.get("quantization_level", ""),
            "state": "not-loaded" if loaded is None else "loaded",
            "max_context_length": info.get(f"{family}.context_length", 0),
            **({} if loaded is None else {"loaded_context_length": loaded.n_ctx}),
        }
