"""``constrain serve``: serves models over HTTP to the clients of OpenAI, Anthropic and Ollama."""

from __future__ import annotations

import inspect
import json
import shlex
import sys
from importlib import import_module
from pathlib import Path  # noqa: TC003 - typer reads annotations
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from rich.console import Console

from constrain.arguments import Flag, Option
from constrain.cli import flags, shared
from constrain.server.config import ServerConfig, read_config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


def _declared() -> Iterator[inspect.Parameter]:
    """Yields the parameter of each setting with a flag."""
    kinds = get_type_hints(ServerConfig)
    for name, declared in ServerConfig.model_fields.items():
        if declared.description is None:
            continue
        more: Any = declared.json_schema_extra
        choices = get_args(kinds[name]) if get_origin(kinds[name]) is Literal else ()
        kind: Any = str if more["metavar"] or choices else kinds[name]
        default = {True: "yes", False: "no"}.get(declared.default) if kind is bool else declared.default
        shown = more["shown"] or (str(default) if default else None)
        limits = {type(each).__name__: each for each in declared.metadata}
        least, most = getattr(limits.get("Ge"), "ge", None), getattr(limits.get("Le"), "le", None)
        flag = Flag(declared.description, default=shown, metavar=more["metavar"])
        yield flags.make_parameter(name, Option(None, least, most, choices=choices), flag, kind | None)


def _settings(**given: Any) -> dict[str, Any]:
    """Returns the settings that were given: the flags of ``ServerConfig``, which is also the configuration file."""
    return {name: value for name, value in given.items() if value is not None}


_settings.__signature__ = inspect.Signature([*_declared()])  # type: ignore[attr-defined]


@flags.takes(machine=flags.only(shared.Machine, "model"), settings=_settings)
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
    machine: shared.Machine,
    alias: Annotated[
        list[str] | None,
        typer.Option(help="Name of the model in requests; by default its file name; `*` is any text; may be repeated."),
    ] = None,
    settings: dict[str, Any],
) -> None:
    """Serves models to the clients of OpenAI, Anthropic and Ollama.

    A request's schema, grammar and tools are enforced exactly, or the request is refused.
    """
    model = machine.model
    flags.refuse_together(**{"--model": model, "MODEL": file})
    require_server()
    from constrain.server.http.listening import listen

    settled = read_config(config, settings)
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
    from constrain.server.settings import make_settings

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

    server = Server(application, sockets, log_format=config.log_format, grace_seconds=config.grace, on_start=greet)
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
