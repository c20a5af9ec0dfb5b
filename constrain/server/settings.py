"""What is decided when a server is started."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from constrain.server.http.hosts import Hosts

StrictSubset = Literal["structural", "openai", "off"]

LogFormat = Literal["text", "json"]


@dataclass(frozen=True, slots=True)
class Settings:
    """How a server answers.

    Attributes:
        api_keys: one of which every request must carry; none for no check.
        strict_subset: what schemas with ``strict: true`` are held to: ``"structural"`` rules, whose breach is a mistake
            in the schema; all that OpenAI refuses (``"openai"``); or nothing (``"off"``).
        max_body_bytes: the largest request.
        max_queue: answers that may wait for the model, beside those that are being written.
        compile_seconds: of computing that tools and schemas of one request may take to be read and compiled.
        compile_memory_bytes: that they may take meanwhile.
        hosts: the names by which requests may call the server.
        cors_origins: of web pages that may ask, as ``origin_of`` writes them; ``"*"`` for all.
        shared_cache: whether requests with different keys share what a model has read of their prompts. Then the
            ``cached_tokens`` of one tell it how the prompts of others begin.
        timeout: seconds in which a request is answered. Then an answer that is being written is brought to its end,
            and a request whose answer is not begun is refused.
        grace_seconds: after a signal to stop, in which answers that are being written are finished.
    """

    api_keys: tuple[str, ...] = ()
    strict_subset: StrictSubset = "structural"
    max_body_bytes: int = 8 << 20
    max_queue: int = 64
    compile_seconds: float = 3.0
    compile_memory_bytes: int = 1 << 30
    hosts: Hosts = field(default_factory=Hosts)
    cors_origins: tuple[str, ...] = ()
    shared_cache: bool = False
    timeout: float = 600.0
    grace_seconds: float = 30.0
