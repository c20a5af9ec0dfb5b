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

from constrain.fields.values import FieldError
from constrain.server.dialects import DIALECTS, find_dialect
from constrain.server.http.account import REQUEST_ID, RESPONSE_ID, Account, current
from constrain.server.http.auth import owner_of, require_key
from constrain.server.http.cors import cors_headers, preflight, require_origin
from constrain.server.http.errors import ApiError, on_error, on_failure, on_http_error, unavailable
from constrain.server.logs import log_request
from constrain.server.paths import HEALTH, with_full_path
from constrain.server.sandbox.compiling import compile_here
from constrain.server.sandbox.reading import read_here
from constrain.server.sandbox.workers import Workers
from constrain.server.serving.endpoint import Serving
from constrain.server.serving.generation import Generator
from constrain.server.serving.metrics import Metrics
from constrain.server.serving.models import MODELS, model_list, model_object

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.types import Message, Receive, Scope, Send

    from constrain.server.serving.dialect import Dialect
    from constrain.server.serving.models import Models
    from constrain.server.settings import Settings

_CALLED_IN_SANDBOX = (*(reader for dialect in DIALECTS for reader in dialect.readers), read_here, compile_here)
"""Functions that are called in the processes of the sandbox, and bodies that are read there."""

Workers.modules = tuple(function.__module__ for function in _CALLED_IN_SANDBOX)


class Application:
    """An ASGI application that serves models by name.

    Every response has an ``x-request-id``. If there are API keys, every request needs one, except for ``/health`` and
    the files of the playground's page. A request is refused if its ``Host`` is not a name of this server, or if a
    browser sends it for a page of another origin.

    Args:
        models: models by name.
        settings: settings of the server.
        dialects: dialects that it speaks.

    Attributes:
        generator: object that runs the models.
        metrics: measurements of the server.
    """

    def __init__(self, models: Models, settings: Settings, dialects: Sequence[Dialect] = DIALECTS) -> None:
        self._models = models
        self._settings = settings
        self.metrics = Metrics(models)
        self.generator = Generator(models.parallel, settings, self.metrics)
        self._serving = serving = Serving(models, self.generator, settings, self.metrics)
        mounted = [(dialect, dialect.routes(serving)) for dialect in dialects]
        self._dialects = [dialect for dialect, routes in mounted if routes]
        self._routes = [
            *(route for _, routes in mounted for route in routes),
            *_about_models(models),
            Route(HEALTH, self._health),
            Route("/metrics", self._show_metrics),
            Route("/openapi.json", self._describe),
        ]
        self._description: dict[str, Any] | None = None
        self._paths = {route.endpoint: route.path_format for route in self._routes}
        self._app = Starlette(
            routes=self._routes,
            exception_handlers={
                ApiError: on_error,
                FieldError: on_error,
                HTTPException: on_http_error,
                Exception: on_failure,
            },
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
        dialect = find_dialect(scope["path"], headers, self._dialects)
        account.error_object = dialect.error_object
        shared_with = cors_headers(headers, settings.cors_origin)

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                account.status = message["status"]
                sent = MutableHeaders(scope=message)
                sent["x-request-id"] = account.id
                if dialect.id_header:
                    sent[dialect.id_header] = account.id
                sent.update(shared_with)
            await send(message)

        try:
            settings.hosts.require(headers)
            if scope["method"] == "OPTIONS":
                await preflight(headers, is_shared=bool(shared_with))(scope, receive, answer)
                return
            require_origin(scope["method"], headers, settings.cors_origin)
            if scope["path"] != HEALTH and not any(each.is_open(scope["path"]) for each in self._dialects):
                require_key(headers, settings.api_keys)
                account.owner = owner_of(headers, settings.api_keys)
                account.partition = "" if settings.shared_cache else account.owner
            await self._app(scope, receive, answer)
        except ApiError as error:
            await error.response()(scope, receive, answer)
        finally:
            self._finish(account, scope)

    def close(self) -> None:
        """Frees what answers need, once all are finished."""
        self.generator.close()
        self._serving.ends.close()

    def _finish(self, account: Account, scope: Scope) -> None:
        """Counts and logs a request that was answered, or whose client has left.

        In metrics, unknown paths share one label, so that clients cannot add labels.
        """
        if account.status:
            path = self._paths.get(scope["endpoint"], "other") if "endpoint" in scope else "other"
            self.metrics.requests.labels(path, account.status).inc()
        log_request(account, scope)

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
    """Returns the routes about models, in OpenAI's form."""

    async def every(_: Request) -> Response:
        return JSONResponse(model_list(models))

    async def one(request: Request) -> Response:
        name: Any = request.path_params["name"]
        return JSONResponse(model_object(models, name))

    return [Route(MODELS, every), Route(MODELS + "/{name:path}", one)]
