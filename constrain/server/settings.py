"""The settings of a server, fixed at its start: its configuration, and what it finds in files and the environment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pydantic import InstanceOf  # noqa: TC002 - for Pydantic

from constrain.server.config import KEY_VARIABLE, STORE_VARIABLE, ServerConfig
from constrain.server.http.auth import read_key, read_keys
from constrain.server.http.hosts import Hosts, hosts_for

if TYPE_CHECKING:
    from collections.abc import Iterable


class Settings(ServerConfig):
    """The settings of a server: those of its configuration, and more.

    Attributes:
        api_keys: keys of which every request must carry one; empty for no check.
        hosts: names by which requests may call the server.
        max_body_bytes: bytes of the largest request.
        max_bodies_bytes: bytes that the large bodies of all requests in progress may take together.
        compile_memory_bytes: bytes of memory for reading and compiling the tools and schemas of one request.
    """

    api_keys: tuple[str, ...] = ()
    hosts: InstanceOf[Hosts] = Hosts()
    max_body_bytes: int = 8 << 20
    max_bodies_bytes: int = 256 << 20
    compile_memory_bytes: int = 1 << 30


def make_settings(config: ServerConfig, addresses: Iterable[str]) -> Settings:
    """Returns the settings of a server that listens on some addresses.

    Raises ``ValueError`` and ``OSError`` for API keys that cannot be read.
    """
    keys = () if config.api_key_file is None else read_keys(config.api_key_file)
    if from_environment := read_key(os.environ.get(KEY_VARIABLE, ""), f"the variable {KEY_VARIABLE}"):
        keys += (from_environment,)
    found: dict[str, Any] = {**dict(config), "response_store": response_store(config), "api_keys": keys}
    hosts = hosts_for(config.host, addresses, config.allowed_host, has_keys=bool(keys))
    return Settings.model_construct(**found, hosts=hosts)


def response_store(config: ServerConfig) -> str:
    """Returns the place of stored responses, which the environment may name."""
    named = os.environ.get(STORE_VARIABLE, "").strip()
    return named if named and "response_store" not in config.model_fields_set else config.response_store
