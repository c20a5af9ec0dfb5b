"""The settings of a server, fixed at its start."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from constrain.server.http.hosts import Hosts

StrictSubset = Literal["structural", "openai", "off"]

LogFormat = Literal["text", "json"]

IN_MEMORY = "memory"
"""Place of responses that are kept in the memory of the server."""

KEEP_NONE = "none"
"""Place of responses that are not kept."""


def _any_hosts() -> Hosts:
    from constrain.server.http.hosts import Hosts  # needs the extra: the command line reads this module without it

    return Hosts()


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a server.

    Attributes:
        api_keys: keys of which every request must carry one; empty for no check.
        strict_subset: rules for schemas with ``strict: true``: ``"structural"`` rules, whose violation is a mistake in
            the
            schema; all rules of OpenAI (``"openai"``); or none (``"off"``).
        max_body_bytes: bytes of the largest request.
        max_bodies_bytes: bytes that the large bodies of all requests in progress may take together.
        max_queue: answers that may wait, in addition to those that are being written.
        compile_seconds: CPU seconds for reading and compiling the tools and schemas of one request.
        compile_memory_bytes: bytes of memory for the same.
        hosts: names by which requests may call the server.
        cors_origins: origins, or patterns of origins, of web pages that may call, in the spelling of ``origin_of``;
            ``"*"`` for all.
        shared_cache: whether requests with different keys share evaluated prompts. Then ``cached_tokens`` of one
            request
            reveals how prompts of others begin.
        timeout: seconds to answer a request. Then an answer in progress is ended early, and a request whose answer has
            not
            begun is refused.
        response_store: place where responses are kept: ``"memory"``, ``"none"``, or the address of a database.
        playground: whether ``/`` has a page that shows answers token by token, with an endpoint of its own.
        grace_seconds: seconds after a signal to stop in which answers in progress are finished.
    """

    api_keys: tuple[str, ...] = ()
    strict_subset: StrictSubset = "structural"
    max_body_bytes: int = 8 << 20
    max_bodies_bytes: int = 256 << 20
    max_queue: int = 64
    compile_seconds: float = 3.0
    compile_memory_bytes: int = 1 << 30
    hosts: Hosts = field(default_factory=_any_hosts)
    cors_origins: tuple[str, ...] = ()
    shared_cache: bool = False
    timeout: float = 600.0
    response_store: str = IN_MEMORY
    playground: bool = True
    grace_seconds: float = 30.0
