"""``constrain serve``: a model behind an endpoint that OpenAI's clients can talk to."""

from __future__ import annotations

import os
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer
from rich.console import Console

from constrain.cli import shared

_KEY_VARIABLE = "CONSTRAIN_API_KEY"

_SUBSETS = ("structural", "openai", "off")

_DEFAULT_PORT = 8080


def _subset(value: str) -> str:
    if value not in _SUBSETS:
        raise typer.BadParameter(f"{value!r} is none of {', '.join(_SUBSETS)}")
    return value


def serve(
    *,
    model: shared.ModelFile = None,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all of this machine's.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")] = _DEFAULT_PORT,
    alias: Annotated[
        list[str] | None, typer.Option(help="Name of the model in requests, by default its file's; may be repeated.")
    ] = None,
    n_ctx: shared.Context = None,
    n_threads: shared.Threads = None,
    parallel: Annotated[int, typer.Option(min=1, help="Answers that are written at once.")] = 8,
    max_queue: Annotated[int, typer.Option("--queue", min=0, help="Answers that may wait; more get a 429.")] = 64,
    gpu_layers: Annotated[int, typer.Option(min=-1, help="Layers to offload to a GPU; -1 for all.")] = -1,
    api_key_file: Annotated[
        Path | None, typer.Option(help=f"File with API keys, one a line; {_KEY_VARIABLE} in the environment is one.")
    ] = None,
    strict_subset: Annotated[
        str,
        typer.Option(
            metavar="|".join(_SUBSETS),
            callback=_subset,
            help='What schemas with "strict": true must keep: the structural rules, all that OpenAI has, or none.',
        ),
    ] = _SUBSETS[0],
    cors_origin: Annotated[
        list[str] | None, typer.Option(help='Origin of web pages that may ask, "*" for all; may be repeated.')
    ] = None,
    grace: Annotated[float, typer.Option(min=1, help="Seconds to finish answers in, when it is stopped.")] = 30.0,
) -> None:
    """Serves a model to OpenAI's clients; every schema, grammar and tool in a request is enforced, or it is refused."""
    try:
        from constrain.server.app import Application
        from constrain.server.auth import read_keys
        from constrain.server.models import Models, ModelSource
        from constrain.server.run import Server
        from constrain.server.settings import Settings
    except ModuleNotFoundError as error:
        raise SystemExit(f"constrain: {error.name} is missing; pip install 'constrain-llm[server]'") from error
    from constrain.llama.model import Model, default_model_path

    keys = () if api_key_file is None else read_keys(api_key_file)
    if from_environment := os.environ.get(_KEY_VARIABLE, "").strip():
        keys += (from_environment,)
    path = model or default_model_path()
    names = alias or [path.stem]
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    with shared.working(console, f"Loading {path.name}"):
        loaded = Model(path, n_ctx=n_ctx, n_threads=n_threads, parallel=parallel, n_gpu_layers=gpu_layers)
    with loaded:
        _ = loaded.scheduler  # its memory is taken now, or never
        created = int(path.stat().st_mtime)
        settings = Settings(
            keys,
            strict_subset,  # type: ignore[arg-type]
            max_queue=max_queue,
            cors_origins=tuple(cors_origin or ()),
            grace_seconds=grace,
        )
        source = ModelSource(tuple(names), created, parallel, 0, lambda: loaded)
        application = Application(Models([source]), settings)

        def greet(url: str) -> None:
            console.print(_greeting(url, names, has_keys=bool(keys)), markup=False)

        Server(application, host, port, grace_seconds=grace, on_start=greet).run()


def _greeting(url: str, names: list[str], *, has_keys: bool) -> str:
    """Where it is, and how to ask it."""
    key = " -H 'Authorization: Bearer YOUR_KEY'" if has_keys else ""
    body = f'{{"model": "{names[0]}", "messages": [{{"role": "user", "content": "Hello"}}]}}'
    return (
        f"{', '.join(names)} at {url}/v1\n\n"
        f"  curl {url}/v1/chat/completions -H 'Content-Type: application/json'{key} -d '{body}'\n"
    )
