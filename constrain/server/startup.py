"""The settings of a server, made from its configuration when it starts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from constrain.server.http.auth import read_key, read_keys
from constrain.server.http.hosts import hosts_for
from constrain.server.settings import Settings
from constrain.server.variables import KEY_VARIABLE, STORE_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from constrain.server.config import ServerConfig


def make_settings(config: ServerConfig, addresses: Iterable[str]) -> Settings:
    """Returns the settings of a server that listens on some addresses.

    Raises ``ValueError`` and ``OSError`` for API keys that cannot be read.
    """
    keys = () if config.api_key_file is None else read_keys(config.api_key_file)
    if from_environment := read_key(os.environ.get(KEY_VARIABLE, ""), f"the variable {KEY_VARIABLE}"):
        keys += (from_environment,)
    return Settings(
        keys,
        config.strict_subset,
        max_queue=config.queue,
        hosts=hosts_for(config.host, addresses, config.allowed_host, has_keys=bool(keys)),
        cors_origins=tuple(config.cors_origin),
        shared_cache=config.shared_cache,
        compile_seconds=config.compile_seconds,
        timeout=config.timeout,
        grace_seconds=config.grace,
        response_store=response_store(config),
        playground=config.playground,
    )


def response_store(config: ServerConfig) -> str:
    """Returns the place of stored responses, which the environment may name."""
    named = os.environ.get(STORE_VARIABLE, "").strip()
    return named if named and "response_store" not in config.model_fields_set else config.response_store
