"""What a server counts and measures, for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from constrain.server.account import current

if TYPE_CHECKING:
    from constrain._completion import Completion

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60, 120)


class Metrics:
    """The metrics of one server. ``requests`` is labelled by path and status; paths that are not served are one."""

    media_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self.requests = Counter(
            "constrain_requests", "Requests that were answered.", ("path", "status"), registry=registry
        )
        self.admitted = Gauge(
            "constrain_answers_admitted", "Answers that are waited for or being written.", registry=registry
        )
        self.refused = Counter("constrain_requests_refused", "Requests that found the queue full.", registry=registry)
        self.abandoned = Counter(
            "constrain_requests_abandoned", "Requests whose client left before the end.", registry=registry
        )
        self._tokens = Counter("constrain_tokens", "Tokens, by kind.", ("kind",), registry=registry)
        self._seconds = {
            name: Histogram(f"constrain_{name}_seconds", about, buckets=_SECONDS, registry=registry)
            for name, about in (
                ("compile", "Making a schema or a grammar ready."),
                ("queue", "Waiting for the model."),
                ("first_token", "From the request to the first token."),
                ("generation", "Writing an answer, from its first token on."),
            )
        }

    def add(self, completion: Completion) -> None:
        """Counts an answer to the request that is being answered."""
        current.get().add(completion)
        usage, timings = completion.usage, completion.timings
        self._tokens.labels("prompt").inc(usage.prompt_tokens - usage.cached_tokens)
        self._tokens.labels("cached_prompt").inc(usage.cached_tokens)
        self._tokens.labels("completion").inc(usage.completion_tokens)
        self._seconds["compile"].observe(timings.compile)
        self._seconds["queue"].observe(timings.queue)
        self._seconds["first_token"].observe(timings.compile + timings.queue + timings.prompt)
        self._seconds["generation"].observe(timings.generation)

    def text(self) -> bytes:
        """All of them in Prometheus' format."""
        return generate_latest(self._registry)
