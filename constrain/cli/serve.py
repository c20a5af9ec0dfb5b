"""``constrain serve``: serves models over HTTP to the clients of OpenAI, Anthropic and Ollama."""

from __future__ import annotations

import json
import shlex
import sys
from importlib import import_module
from pathlib import Path  # noqa: TC003 - typer reads annotations
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from constrain.cli import flags, shared
from constrain.server.variables import KEY_VARIABLE, STORE_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.server.config import ServerConfig
    from constrain.server.serving.models import Models
    from constrain.server.settings import Settings

_NEEDED = (
    "openai",
    "platformdirs",
    "prometheus_client",
    "pythonjsonlogger",
    "starlette",
    "tomllib" if sys.version_info >= (3, 11) else "tomli",
    "uvicorn",
)
"""Modules that the ``server`` extra installs."""

_SUBSETS = ("structural", "openai", "off")

_LOG_FORMATS = ("text", "json")


def serve(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="MODEL", callback=shared.find_model, help="GGUF file; by default the model of the demo extra."
        ),
    ] = None,
    *,
    config: Annotated[
        Path | None, typer.Option(help="TOML file with models and settings; flags override its settings.")
    ] = None,
    model: shared.ModelFile = None,
    host: Annotated[
        str | None,
        typer.Option(help="Address to listen on; 0.0.0.0 for all addresses of this machine.", show_default="127.0.0.1"),
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any free one.", show_default="8080")
    ] = None,
    alias: Annotated[
        list[str] | None,
        typer.Option(help="Name of the model in requests; by default its file name; `*` is any text; may be repeated."),
    ] = None,
    ctx: shared.Context = None,
    threads: shared.Threads = None,
    parallel: Annotated[
        int | None, typer.Option(min=1, help="Answers that a model writes at once.", show_default="8")
    ] = None,
    gpu_layers: shared.GpuLayers = None,
    lock_memory: Annotated[
        bool | None,
        typer.Option(
            "--lock-memory/--no-lock-memory",
            help="Keep the weights in main memory, so that the system never reads them again from disk.",
            show_default="no",
        ),
    ] = None,
    memory_limit: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help='Memory for loaded models ("6 GiB"); idle models are unloaded to make room for others.',
            show_default="none",
        ),
    ] = None,
    queue: Annotated[
        int | None,
        typer.Option(min=0, help="Answers that may wait; further requests get status 429.", show_default="64"),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(help="Seconds that a request may take; then its answer is ended early.", show_default="600"),
    ] = None,
    compile_seconds: Annotated[
        float | None,
        typer.Option(help="CPU seconds to compile the schemas and tools of a request.", show_default="3"),
    ] = None,
    deterministic: Annotated[
        bool | None,
        typer.Option(
            "--deterministic/--no-deterministic",
            help="Answer one request at a time, without reusing earlier prompts: equal requests get equal answers.",
            show_default="no",
        ),
    ] = None,
    api_key_file: Annotated[
        Path | None, typer.Option(help=f"File with API keys, one per line; the variable {KEY_VARIABLE} adds one.")
    ] = None,
    strict_subset: Annotated[
        str | None,
        flags.one_of(
            _SUBSETS, 'OpenAI rules that schemas with "strict": true must obey: the structural ones, all, or none.'
        ),
    ] = None,
    shared_cache: Annotated[
        bool | None,
        typer.Option(
            "--shared-cache/--no-shared-cache",
            help="API keys share evaluated prompts; a client can then find out how prompts of others begin.",
            show_default="no",
        ),
    ] = None,
    prompt_cache: Annotated[
        bool | None,
        typer.Option(
            "--prompt-cache/--no-prompt-cache",
            help="Keep evaluated system prompts, tools and schemas on disk, for the next start, apart for each key.",
            show_default="yes",
        ),
    ] = None,
    prompt_cache_size: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help='Disk space for evaluated prompts ("500 MB").', show_default="2 GiB"),
    ] = None,
    playground: Annotated[
        bool | None,
        typer.Option(
            "--playground/--no-playground",
            help="Show a page at / for trying schemas and prompts, and watching answers token by token.",
            show_default="yes",
        ),
    ] = None,
    response_store: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE",
            help=f"Place of stored responses: memory, none, or the address of a database, which servers may share; the "
            f"variable {STORE_VARIABLE} hides a password in it.",
            show_default="memory",
        ),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(help='Host name that requests may use, "*" for any; may be repeated.'),
    ] = None,
    cors_origin: Annotated[
        list[str] | None,
        typer.Option(
            help='Origin of web pages that may call the server, "vscode-webview://*" for all of a scheme, "*" for all; '
            "may be repeated."
        ),
    ] = None,
    grace: Annotated[
        float | None,
        typer.Option(min=1, help="Seconds to finish answers when the server is stopped.", show_default="30"),
    ] = None,
    log_format: Annotated[str | None, flags.one_of(_LOG_FORMATS, "Format of the log on standard error.")] = None,
) -> None:
    """Serves models to the clients of OpenAI, Anthropic and Ollama.

    A request's schema, grammar and tools are enforced exactly, or the request is refused.
    """
    given = locals()
    if file is not None and model is not None:
        raise typer.BadParameter(f"the model is {file} already; leave one of them out", param_hint="--model")
    require_server()
    from constrain.server.config import ServerConfig, read_config
    from constrain.server.http.listening import listen

    asked = {name: given[name] for name in ServerConfig.model_fields if given.get(name) is not None}
    settled = read_config(config, asked)
    sockets = listen(settled.host, settled.port)
    run_server(settled, file or model, alias or [], sockets)


def require_server() -> None:
    """Ends the program with a message if the ``server`` extra is not installed."""
    try:
        for name in _NEEDED:
            import_module(name)
    except ModuleNotFoundError as error:
        raise SystemExit(f"constrain: {error.name} is missing; pip install 'constrain-llm[server]'") from error


def run_server(
    config: ServerConfig,
    model: Path | None,
    aliases: list[str],
    sockets: list[Any],
    *,
    started: Callable[[str], None] | None = None,
) -> None:
    """Serves until the program is stopped. ``started``: function that receives the server's address."""
    from constrain.server.app import Application
    from constrain.server.logs import log_event
    from constrain.server.run import Server
    from constrain.server.sandbox.workers import workers
    from constrain.server.serving.model_files import find_models
    from constrain.server.startup import make_settings

    settings = make_settings(config, [listening.getsockname()[0] for listening in sockets])
    models = find_models(config, model, aliases)
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    application = Application(models, settings)

    def greet(url: str) -> None:
        if config.log_format == "json":
            log_event("started", "listening", url=url, models=list(models))
        else:
            console.print(_make_greeting(url, models, settings), markup=False)
        if started is not None:
            started(url)

    server = Server(
        application, sockets, log_format=config.log_format, grace_seconds=settings.grace_seconds, on_start=greet
    )
    try:
        workers().start()
        if len(models.states()) == 1:
            name = next(iter(models))
            with shared.show_progress(console, f"Loading {name}"):
                models.load(name)
        server.serve_until_stopped()
    finally:
        models.close()
        workers().close()


def _make_greeting(base: str, models: Models, settings: Settings) -> str:
    """Returns the text that tells where the server listens and how to call it."""
    key = " -H 'Authorization: Bearer YOUR_KEY'" if settings.api_keys else ""
    body = json.dumps({"model": next(iter(models)), "messages": [{"role": "user", "content": "Hello"}]})
    url = shlex.quote(f"{base}/v1/chat/completions")
    curl = f"curl {url} -H 'Content-Type: application/json'{key} -d {shlex.quote(body)}"
    page = f"Playground at {base}/\n\n" if settings.playground else ""
    return f"{', '.join(models)} at {base}/v1\n\n  {curl}\n\n{page}".rstrip("\n").translate(shared.HARMLESS) + "\n"
