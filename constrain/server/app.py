"""The application: what is served at which path, to whom, and with which headers."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from constrain.server.answering import Answering
from constrain.server.auth import require_key
from constrain.server.chat import read_chat
from constrain.server.completions import read_completion
from constrain.server.cors import cors_headers, preflight
from constrain.server.endpoint import Serving
from constrain.server.errors import ApiError, on_api_error, on_failure, on_http_error
from constrain.server.generation import Generator
from constrain.server.metrics import Metrics
from constrain.server.models import find_model, model_list, model_object
from constrain.server.responses import responses_routes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.types import Message, Receive, Scope, Send

    from constrain.server.models import ServedModel
    from constrain.server.settings import Settings

_HEALTH = "/health"
_MODELS = "/v1/models"


class Application:
    """An ASGI application that answers for models, by name.

    Every response has an ``x-request-id``; every request but one for ``/health`` needs a key, if there are keys.

    Attributes:
        generator: what runs the models.
    """

    def __init__(self, models: Mapping[str, ServedModel], settings: Settings) -> None:
        self._settings = settings
        self._metrics = Metrics()
        parallel = sum(model.parallel for model in {id(one.model): one.model for one in models.values()}.values())
        self.generator = Generator(parallel, settings.max_queue, self._metrics)
        serving = Serving(models, self.generator, settings, self._metrics)
        routes = [
            Route("/v1/chat/completions", Answering(serving, read_chat), methods=["POST"]),
            Route("/v1/completions", Answering(serving, read_completion), methods=["POST"]),
            *responses_routes(serving),
            *_about_models(models),
            Route(_HEALTH, _health),
            Route("/metrics", self._show_metrics),
        ]
        self._paths = {route.endpoint: route.path_format for route in routes}
        self._app = Starlette(
            routes=routes,
            exception_handlers={ApiError: on_api_error, HTTPException: on_http_error, Exception: on_failure},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 0
        headers = Headers(scope=scope)
        shared_with = cors_headers(headers, self._settings.cors_origins)

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                sent = MutableHeaders(scope=message)
                sent["x-request-id"] = f"req_{secrets.token_hex(12)}"
                sent.update(shared_with)
            await send(message)

        try:
            if shared_with and scope["method"] == "OPTIONS":
                await preflight(headers)(scope, receive, answer)
                return
            if scope["path"] != _HEALTH:
                require_key(headers, self._settings.api_keys)
            await self._app(scope, receive, answer)
        except ApiError as error:
            await error.response()(scope, receive, answer)
        finally:
            if status:  # else the client has left
                self._metrics.requests.labels(self._label(scope), status).inc()

    def _label(self, scope: Scope) -> str:
        """What a path is counted as: the paths that clients make up are not remembered."""
        return self._paths.get(scope["endpoint"], "other") if "endpoint" in scope else "other"

    async def _show_metrics(self, _: Request) -> Response:
        return Response(self._metrics.text(), media_type=self._metrics.media_type)


def _about_models(models: Mapping[str, ServedModel]) -> list[Route]:
    async def every(_: Request) -> Response:
        return JSONResponse(model_list(models))

    async def one(request: Request) -> Response:
        name: Any = request.path_params["name"]
        return JSONResponse(model_object(find_model(models, name)))

    return [Route(_MODELS, every), Route(_MODELS + "/{name:path}", one)]


async def _health(_: Request) -> Response:
    return JSONResponse({"status": "ok"})
