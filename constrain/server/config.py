"""``server.toml``: the configuration file of a server. Flags of the command line override its settings.

    port = 8000
    memory_limit = "6 GiB"

    [[models]]
    path = "small.gguf"
    alias = ["gpt-4o-mini"]

    [[models]]
    path = "large.gguf"
    ctx = 8192

Keys have the names of the flags, which ``cli.serve`` makes from this declaration. Keys about models at the top are
defaults for all models. The command line reads this module without the ``server`` extra.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ByteSize,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)

from constrain.llama.prompt_cache.folder import PROMPT_CACHE_BYTES
from constrain.suggestions import did_you_mean
from constrain.tables.table import split_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_core import ErrorDetails

StrictSubset = Literal["structural", "openai", "off"]
ToolsShown = Literal["auto", "names", "all"]

LogFormat = Literal["text", "json"]

IN_MEMORY = "memory"
"""Place of responses that are kept in the memory of the server."""

KEEP_NONE = "none"
"""Place of responses that are not kept."""

KEY_VARIABLE = "CONSTRAIN_API_KEY"
"""Variable of the environment with an API key, in addition to those of the file: no list of processes shows it."""

STORE_VARIABLE = "CONSTRAIN_RESPONSE_STORE"
"""Variable with the place of stored responses, if neither a flag nor the configuration file names one."""


def _as_path(given: object) -> object:
    return Path(given) if isinstance(given, str) and given else given


def _as_list(given: object) -> object:
    return [given] if isinstance(given, str) else [*given] if isinstance(given, tuple) else given


def _as_bytes(given: object) -> object:
    """Returns the number of bytes in a size such as ``"6 GiB"``."""
    if not isinstance(given, str):
        return given
    try:
        return int(TypeAdapter(ByteSize).validate_python(given))
    except ValidationError as error:
        raise ValueError('a size is a number of bytes, or a text like "6 GiB"') from error


def _as_host(given: str) -> str:
    from constrain.server.http.hosts import ANY_HOST, host_of

    host = ANY_HOST if given == ANY_HOST else host_of(given)
    if host is None:
        raise ValueError("a host is a name or an address, as in llm.example, without scheme, port and path")
    return host


def _as_origin(given: str) -> str:
    from constrain.server.http.cors import origin_of

    return origin_of(given)


def _as_named(given: list[str]) -> list[str]:
    split_names(given)
    return given


_Host = Annotated[str, AfterValidator(_as_host)]
_Origin = Annotated[str, AfterValidator(_as_origin)]
_Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
_OwnName = Annotated[_Name, Field(pattern=r"^[^*]+$")]
_Names = Annotated[list[_Name], BeforeValidator(_as_list)]
_Named = Annotated[list[str], AfterValidator(_as_named), BeforeValidator(_as_list)]
_File = Annotated[Path, BeforeValidator(_as_path)]


def _flag(default: Any, about: str, shown: str | None = None, metavar: str | None = None) -> Any:
    """Returns the field of a setting that is a key of the file and a flag; ``shown``: its default in words."""
    return Field(default, description=about, json_schema_extra={"shown": shown, "metavar": metavar})


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    ctx: Annotated[int | None, Field(ge=0)] = _flag(None, "Context in tokens; 0 for the model's maximum.")
    parallel: Annotated[int | None, Field(ge=1)] = _flag(None, "Answers that a model writes at once.", "8")
    gpu_layers: Annotated[int | None, Field(ge=-1)] = _flag(
        None, "Layers to offload to a GPU; -1 for all, 0 for none.", "-1"
    )
    threads: Annotated[int | None, Field(ge=1)] = _flag(
        None, "Threads to compute with; fewer while other programs need the cores.", "physical cores"
    )
    lock_memory: bool | None = _flag(
        None, "Keep the weights in main memory, so that the system never reads them again from disk.", "no"
    )


class ModelTable(_Table):
    """One table of ``[[models]]``.

    Attributes:
        path: path of the GGUF file.
        name: name in requests; by default the file name.
        alias: further names; in each, ``*`` stands for any text.
        ctx, parallel, gpu_layers, threads, lock_memory: as the flags of ``constrain serve``.
        chat_template: file with a Jinja template that replaces the model's own.
        tool_format: form in which the model writes calls (``"hermes"``, ``"llama3-json"``, ...); by default the form of
            its chat template.
    """

    path: _File
    name: _OwnName | None = None
    alias: _Names = []
    chat_template: _File | None = None
    tool_format: str | None = None


class ServerConfig(_Table):
    """The configuration of a server; attributes as the flags of ``constrain serve``."""

    host: Annotated[str, Field(min_length=1)] = _flag(
        "127.0.0.1", "Address to listen on; 0.0.0.0 for all addresses of this machine."
    )
    port: Annotated[int, Field(ge=0, le=65535)] = _flag(8080, "Port to listen on; 0 for any free one.")
    queue: Annotated[int, Field(ge=0)] = _flag(64, "Answers that may wait; further requests get status 429.")
    timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] = _flag(
        600.0, "Seconds that a request may take; then its answer is ended early.", "600"
    )
    grace: Annotated[float, Field(ge=1, allow_inf_nan=False)] = _flag(
        30.0, "Seconds to finish answers when the server is stopped.", "30"
    )
    compile_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = _flag(
        3.0, "CPU seconds to compile the schemas and tools of a request.", "3"
    )
    deterministic: bool = _flag(
        False, "Answer one request at a time, without reusing earlier prompts: equal requests get equal answers."
    )
    memory_limit: Annotated[int | None, BeforeValidator(_as_bytes), Field(gt=0)] = _flag(
        None, 'Memory for loaded models ("6 GiB"); idle models are unloaded to make room for others.', "none", "SIZE"
    )
    api_key_file: _File | None = _flag(None, f"File with API keys, one per line; the variable {KEY_VARIABLE} adds one.")
    strict_subset: StrictSubset = _flag(
        "structural", 'OpenAI rules that schemas with "strict": true must obey: the structural ones, all, or none.'
    )
    tools_shown: ToolsShown = _flag(
        "auto", "Show tools whole, or their names and each one once it is called; requests may say it, too."
    )
    allowed_host: Annotated[list[_Host], BeforeValidator(_as_list)] = _flag(
        [], 'Host name that requests may use, "*" for any; may be repeated.'
    )
    cors_origin: Annotated[list[_Origin], BeforeValidator(_as_list)] = _flag(
        [],
        'Origin of web pages that may call the server, "vscode-webview://*" for all of a scheme, "*" for all; may be '
        "repeated.",
    )
    shared_cache: bool = _flag(
        False, "API keys share evaluated prompts; a client can then find out how prompts of others begin."
    )
    prompt_cache: bool = _flag(
        True, "Keep evaluated system prompts, tools and schemas on disk, for the next start, apart for each key."
    )
    prompt_cache_size: Annotated[int, BeforeValidator(_as_bytes), Field(gt=0)] = _flag(
        PROMPT_CACHE_BYTES, 'Disk space for evaluated prompts ("500 MB").', "2 GiB", "SIZE"
    )
    response_store: Annotated[str, Field(min_length=1)] = _flag(
        IN_MEMORY,
        "Place of stored responses: memory, none, or the address of a database, which servers may share; the variable "
        f"{STORE_VARIABLE} hides a password in it.",
        metavar="PLACE",
    )
    playground: bool = _flag(
        True, "Show a page at / for trying schemas and prompts, and watching answers token by token."
    )
    log_format: LogFormat = _flag("text", "Format of the log on standard error.")
    table: _Named = _flag(
        [],
        "Table for x-one-of in requests, as NAME=SOURCE: a CSV or Parquet file, DATABASE.db:TABLE of SQLite, or "
        "URL:TABLE; may be repeated.",
    )
    sql: _Named = _flag(
        [],
        "Database for queries in custom tools with the syntax sql, as NAME=SOURCE: a file of SQLite, a URL, or a file "
        "of CREATE statements that ends in .sql; may be repeated.",
    )
    models: list[ModelTable] = []


def read_config(path: Path | None, flags: Mapping[str, Any]) -> ServerConfig:
    """Reads a configuration file and applies flags to it. Paths in the file are relative to its folder.

    Raises ``ValueError``, which lists all wrong keys, and ``OSError``.
    """
    config = make_config({} if path is None else _parse(path), str(path), flags)
    return config if path is None else _relative_to(path.parent, config, flags)


def make_config(document: Mapping[str, Any], place: str, flags: Mapping[str, Any]) -> ServerConfig:
    """Returns the configuration that a document and flags say.

    ``place``: name of the document in errors.

    Raises ``ValueError``, which lists all wrong keys.
    """
    found = dict(document)
    for_each = {name: flags[name] for name in _Table.model_fields if name in flags}
    if isinstance(found.get("models"), list) and for_each:
        found["models"] = [{**table, **for_each} if isinstance(table, dict) else table for table in found["models"]]
    try:
        return ServerConfig.model_validate({**found, **flags})
    except ValidationError as error:
        raise ValueError("\n".join(_describe_error(each, place, flags) for each in error.errors())) from error


def _parse(path: Path) -> dict[str, Any]:
    tomllib = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        found: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: this is not TOML: {error}") from error
    return found


def _describe_error(error: ErrorDetails, place: str, flags: Mapping[str, Any]) -> str:
    """Returns a message with the wrong key and the reason."""
    if error["loc"][0] in flags:
        return f"--{error['loc'][0]}: ".replace("_", "-") + f"{error['msg']}, not {error['input']!r:.80}"
    key = f"{place}: "
    for part in error["loc"]:
        key += f"[{part}]" if isinstance(part, int) else part if key.endswith(": ") else f".{part}"
    if error["type"] == "extra_forbidden":
        table = ModelTable if error["loc"][0] == "models" else ServerConfig
        near = did_you_mean(str(error["loc"][-1]), table.model_fields)
        return f"{key}: there is no such key{near}; there are {', '.join(table.model_fields)}"
    if error["type"] == "missing":
        return f"{key}: is missing"
    return f"{key}: {error['msg']}, not {error['input']!r:.80}"


def _relative_to(folder: Path, config: ServerConfig, flags: Mapping[str, Any]) -> ServerConfig:
    """Returns the configuration with paths of the file relative to the current folder."""

    def resolve(path: Path | None) -> Path | None:
        return None if path is None else folder / path.expanduser()

    tables = [
        table.model_copy(update={"path": resolve(table.path), "chat_template": resolve(table.chat_template)})
        for table in config.models
    ]
    updated: dict[str, Any] = {"models": tables}
    for key in ("table", "sql"):
        if key not in flags:
            named = split_names(getattr(config, key)).items()
            updated[key] = [f"{name}={at if '://' in at else folder / Path(at).expanduser()}" for name, at in named]
    if "api_key_file" not in flags:
        updated["api_key_file"] = resolve(config.api_key_file)
    return config.model_copy(update=updated)
