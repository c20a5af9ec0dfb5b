"""The models of a configuration: their files are checked at the start, and loaded on demand."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from constrain.canary import run_canary
from constrain.chat.families.forms import tool_format
from constrain.llama.memory import memory_needed
from constrain.llama.model import DEFAULT_PARALLEL, Model, default_model_path
from constrain.queries.served import Served, sql_at
from constrain.server.config import ModelTable
from constrain.server.sandbox.workers import workers
from constrain.server.serving.models import Models, ModelSource
from constrain.tables.keyword import bound_tables
from constrain.tables.table import split_names, table_at

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from constrain.generation.options import ChatOptions
    from constrain.server.config import ServerConfig
    from constrain.tables.table import Table

_SEED = 0
"""Seed of requests without one on a deterministic server, where equal requests must get equal answers."""


def find_models(config: ServerConfig, path: Path | None, aliases: Sequence[str]) -> Models:
    """Returns the models of a server: the one at ``path``, or those of the configuration, or the ``demo`` extra's.

    ``aliases`` are names, or patterns with ``*``, if there is only one model. Raises ``ConstrainError``, ``ValueError``
    and ``OSError`` for all errors that can be found without loading a model.
    """
    tables = config.models
    if path is not None or not tables:
        tables = [ModelTable(path=path or default_model_path())]
    if aliases:
        if len(tables) > 1:
            raise ValueError(f"--alias names one model, and the configuration has {len(tables)}")
        name = next((name for name in aliases if "*" not in name), tables[0].name)
        further = [each for each in aliases if each != name]
        tables = [ModelTable.model_validate({**tables[0].model_dump(), "name": name, "alias": further})]
    given = {name: table_at(source) for name, source in split_names(config.table).items()}
    databases = [Served(name, sql_at(source)) for name, source in split_names(config.sql).items()]
    workers().keep([*bound_tables(given)[1], *databases])
    sources = [_source(config, table, given) for table in tables]
    owners: dict[str, Path] = {}
    for source, table in zip(sources, tables, strict=True):
        for name in source.names:
            if name in owners:
                raise ValueError(f"two models have the name {name}: {owners[name]} and {table.path}")
            owners[name] = table.path
        if config.memory_limit is not None and source.memory_bytes > config.memory_limit:
            raise ValueError(
                f"{table.path} takes about {source.memory_bytes / 2**30:.1f} GiB, more than the memory_limit of "
                f"{config.memory_limit / 2**30:.1f} GiB; a smaller ctx or parallel takes less"
            )
    return Models(sources, config.memory_limit)


def _source(config: ServerConfig, table: ModelTable, given: dict[str, Table]) -> ModelSource:
    def choose(name: str) -> Any:
        own = getattr(table, name)
        return getattr(config, name) if own is None else own

    parallel = choose("parallel")
    if config.deterministic and parallel not in (None, 1):
        raise ValueError(
            f"{table.path}: parallel is {parallel}, but a deterministic server writes one answer at a time"
        )
    if parallel is None:
        parallel = 1 if config.deterministic else DEFAULT_PARALLEL
    defaults: ChatOptions = {"tools_shown": config.tools_shown, "tables": given}
    if config.deterministic:
        defaults["seed"] = _SEED
    if table.tool_format is not None:
        defaults["tool_format"] = tool_format(table.tool_format).name
    gpu_layers = choose("gpu_layers")
    options = {
        "n_ctx": choose("ctx"),
        "parallel": parallel,
        "n_gpu_layers": -1 if gpu_layers is None else gpu_layers,
        "n_threads": choose("threads"),
        "chat_template": None if table.chat_template is None else table.chat_template.read_text(encoding="utf-8-sig"),
        "keep_prompts": not config.deterministic,
        "batch_invariant": config.deterministic,
        "prompt_cache": None if config.prompt_cache else False,
        "prompt_cache_bytes": config.prompt_cache_size,
        "lock_memory": bool(choose("lock_memory")),
    }
    return ModelSource(
        names=tuple(dict.fromkeys((table.name or table.path.stem, *table.alias))),
        created=int(table.path.stat().st_mtime),
        parallel=parallel,
        memory_bytes=memory_needed(table.path, options["n_ctx"], parallel),
        load=partial(_load, table.path, options),
        defaults=defaults,
        path=table.path,
        chat_template=options["chat_template"],
    )


def _load(path: Path, options: dict[str, Any]) -> Model:
    model = Model(path, **options)
    try:
        _ = model.scheduler  # takes the scheduler's memory now, so that a lack of it shows at once
        run_canary(model)
        workers().start(model.vocabulary)  # teaches the sandbox the vocabulary, so that no request waits for that
    except BaseException:
        model.close()
        raise
    return model
