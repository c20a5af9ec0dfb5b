"""The ASGI application: routes, keys, origins and response headers."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from constrain.server.chat.endpoint import make_chat_writer
from constrain.server.chat.request import read_chat_request
from constrain.server.completions.endpoint import make_completion_writer
from constrain.server.completions.request import read_completion_request
from constrain.server.embeddings.endpoint import Embeddings
from constrain.server.embeddings.request import read_embedding_request
from constrain.server.error_forms import MODELS, error_object_for
from constrain.server.http.account import REQUEST_ID, RESPONSE_ID, Account, current
from constrain.server.http.auth import owner_of, require_key
from constrain.server.http.cors import cors_headers, preflight, require_origin
from constrain.server.http.errors import ApiError, on_api_error, on_failure, on_http_error, unavailable
from constrain.server.llama_server.routes import CALLED_IN_SANDBOX as LLAMA_SERVER_CALLED
from constrain.server.llama_server.routes import llama_server_routes
from constrain.server.logs import log_request
from constrain.server.messages.endpoint import TokenCount, make_message_writer
from constrain.server.messages.errors import error_object as message_error
from constrain.server.messages.model_list import describe_model, is_for_messages, list_models
from constrain.server.messages.request import read_count_request, read_messages_request
from constrain.server.ollama.routes import CALLED_IN_SANDBOX as OLLAMA_CALLED
from constrain.server.ollama.routes import ollama_routes
from constrain.server.paths import HEALTH, with_full_path
from constrain.server.playground.endpoint import CALLED_IN_SANDBOX as PLAYGROUND_CALLED
from constrain.server.playground.endpoint import playground_routes
from constrain.server.playground.page import is_open
from constrain.server.responses.endpoint import responses_routes
from constrain.server.responses.opening import open_store
from constrain.server.responses.request import read_request
from constrain.server.sandbox.compiling import compile_here
from constrain.server.sandbox.reading import read_here
from constrain.server.sandbox.worker import Limits
from constrain.server.sandbox.workers import Workers
from constrain.server.serving.answering import Answering
from constrain.server.serving.endpoint import Serving
from constrain.server.serving.generation import Generator
from constrain.server.serving.metrics import Metrics
from constrain.server.serving.models import model_list, model_object

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from constrain.server.serving.models import Models
    from constrain.server.settings import Settings

_CALLED_IN_SANDBOX = (
    read_chat_request,
    read_completion_request,
    read_embedding_request,
    read_messages_request,
    read_count_request,
    read_request,
    *OLLAMA_CALLED,
    *LLAMA_SERVER_CALLED,
    *PLAYGROUND_CALLED,
    read_here,
    compile_here,
)
"""Functions that are called in the processes of the sandbox."""

Workers.modules = tuple(function.__module__ for function in _CALLED_IN_SANDBOX)


class Application:
    """An ASGI application that serves models by name.

    Every response has an ``x-request-id``. If there are API keys, every request needs one, except for ``/health`` and
    the files of the playground's page. A request is refused if its ``Host`` is not a name of this server, or if a
    browser sends it for a page of another origin.

    Attributes:
        generator: object that runs the models.
        metrics: measurements of the server.
    """

    def __init__(self, models: Models, settings: Settings) -> None:
        self._models = models
        self._settings = settings
        self.metrics = Metrics(models)
        limits = Limits(settings.compile_seconds, settings.compile_memory_bytes)
        self.generator = Generator(
            models.parallel, settings.max_queue, limits, self.metrics, settings.timeout, settings.max_bodies_bytes
        )
        serving = Serving(models, self.generator, settings, self.metrics)
        self._store = open_store(settings.response_store)
        responses = responses_routes(serving, self._store)
        answering: dict[str, ASGIApp] = {
            "/v1/chat/completions": Answering(serving, read_chat_request, make_chat_writer),
            "/v1/responses": responses[0].endpoint,
            "/v1/completions": Answering(serving, read_completion_request, make_completion_writer),
            "/v1/embeddings": Embeddings(serving),
        }
        routes = [
            *(Route(path, endpoint, methods=["POST"]) for path, endpoint in answering.items()),
            *responses[1:],
            Route("/v1/messages", Answering(serving, read_messages_request, make_message_writer), methods=["POST"]),
            Route("/v1/messages/count_tokens", TokenCount(serving), methods=["POST"]),
            *llama_server_routes(serving),
            *ollama_routes(serving),
            *(playground_routes(serving) if settings.playground else ()),
            *_about_models(models),
            Route(HEALTH, self._health),
            Route("/metrics", self._show_metrics),
            Route("/openapi.json", self._describe),
        ]
        self._routes = routes
        self._description: dict[str, Any] | None = None
        self._paths = {route.endpoint: route.path_format for route in routes}
        self._app = Starlette(
            routes=routes,
            exception_handlers={ApiError: on_api_error, HTTPException: on_http_error, Exception: on_failure},
        )
        self._app.router.redirect_slashes = False  # clients do not send a body again; /health/ is another path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = with_full_path(scope)
        account = Account(time.monotonic() + self._settings.timeout)
        account.id = scope.get(REQUEST_ID, account.id)
        account.response_id = scope.get(RESPONSE_ID, "")
        current.set(account)
        headers, settings = Headers(scope=scope), self._settings
        account.error_object = error_object_for(scope["path"], headers)
        shared_with = cors_headers(headers, settings.cors_origins)

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                account.status = message["status"]
                sent = MutableHeaders(scope=message)
                sent["x-request-id"] = account.id
                if account.error_object is message_error:
                    sent["request-id"] = account.id
                sent.update(shared_with)
            await send(message)

        try:
            settings.hosts.require(headers)
            if scope["method"] == "OPTIONS":
                await preflight(headers, is_shared=bool(shared_with))(scope, receive, answer)
                return
            require_origin(scope["method"], headers, settings.cors_origins)
            if scope["path"] != HEALTH and not (settings.playground and is_open(scope["path"])):
                require_key(headers, settings.api_keys)
                account.owner = owner_of(headers, settings.api_keys)
                account.partition = self._partition(account.owner)
            await self._app(scope, receive, answer)
        except ApiError as error:
            await error.response()(scope, receive, answer)
        finally:
            self._finish(account, scope)

    def close(self) -> None:
        """Frees what answers need, once all are finished."""
        self.generator.close()
        self._store.close()

    def _partition(self, owner: str) -> str:
        """Returns the name of the prompt cache of an owner (see ``owner_of``)."""
        return "" if self._settings.shared_cache else owner

    def _finish(self, account: Account, scope: Scope) -> None:
        """Counts and logs a request that was answered, or whose client has left."""
        if account.status:
            self.metrics.requests.labels(self._label(scope), account.status).inc()
        log_request(account, scope)

    def _label(self, scope: Scope) -> str:
        """Returns the label of a path in metrics; unknown paths share one label, so that clients cannot add labels."""
        return self._paths.get(scope["endpoint"], "other") if "endpoint" in scope else "other"

    async def _health(self, _: Request) -> Response:
        """Returns 200 if requests can be answered: the server is not stopping, and a model can be loaded."""
        if self.generator.is_stopping:
            raise unavailable("The server is shutting down.")
        if all(state.has_failed for state in self._models.states()):
            raise unavailable("No model can be loaded.")
        return JSONResponse({"status": "ok"})

    async def _show_metrics(self, _: Request) -> Response:
        return Response(self.metrics.text(), media_type=self.metrics.media_type)

    async def _describe(self, _: Request) -> Response:
        if self._description is None:
            from constrain.server.openapi.document import describe

            names = [model["id"] for model in model_list(self._models)["data"]]
            describing = partial(describe, self._routes, names, has_keys=bool(self._settings.api_keys))
            self._description = await self.generator.run_in_thread(describing)
        return JSONResponse(self._description)


def _about_models(models: Models) -> list[Route]:
    """Returns the routes about models, which answer in the form of the client: Anthropic's, or OpenAI's."""

    async def every(request: Request) -> Response:
        if is_for_messages(request.headers):
            return JSONResponse(list_models(models, request.query_params))
        return JSONResponse(model_list(models))

    async def one(request: Request) -> Response:
        name: Any = request.path_params["name"]
        describe = describe_model if is_for_messages(request.headers) else model_object
        return JSONResponse(describe(models, name))

    return [Route(MODELS, every), Route(MODELS + "/{name:path}", one)]
