"""Counters and measurements of a server, for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from constrain.engine.remembered import remembered_constraints
from constrain.server.http.account import current
from constrain.server.http.pace import Pace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import Metric

    from constrain.generation.completion import Completion
    from constrain.llama.decoding.answer import Answer
    from constrain.server.serving.models import Models

_USUAL_SECONDS = 2.0
"""Seconds that an answer takes, before any was finished: 2."""

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60, 120)


class Metrics:
    """The metrics of one server. ``requests`` has the labels path and status; all unknown paths share one label.

    ``models``: models of the server. ``pace``: seconds that writing an answer takes, from the first step of its prompt.
    """

    media_type = CONTENT_TYPE_LATEST

    def __init__(self, models: Models) -> None:
        self.pace = Pace(_USUAL_SECONDS)
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(_Found(models))
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
        self._masks = Counter("constrain_masks", "Masks that tokens were chosen with.", ("found",), registry=registry)
        self._mask_seconds = Counter(
            "constrain_mask_seconds", "Time that computing masks and looking them up took.", registry=registry
        )
        self._seconds = {
            name: Histogram(f"constrain_{name}_seconds", about, buckets=_SECONDS, registry=registry)
            for name, about in (
                ("compile", "Making a schema or a grammar ready."),
                ("queue", "Waiting for the model."),
                ("first_token", "From the request to the first token."),
                ("generation", "Writing an answer, from its first token on."),
            )
        }

    def add(self, completion: Completion, *, is_first: bool = True) -> None:
        """Counts an answer, also for the current request; ``is_first``: whether it is the prompt's first answer."""
        current.get().add(completion, is_first=is_first)
        usage, timings = completion.usage, completion.timings
        self._tokens.labels("prompt").inc(usage.prompt_tokens - usage.cached_tokens)
        self._tokens.labels("cached_prompt").inc(usage.cached_tokens)
        self._tokens.labels("completion").inc(usage.completion_tokens)
        self._seconds["compile"].observe(timings.compile)
        self._seconds["queue"].observe(timings.queue)
        self._seconds["first_token"].observe(timings.compile + timings.queue + timings.prompt)
        self._seconds["generation"].observe(timings.generation)
        self.pace.add(timings.prompt + timings.generation)

    def add_embedded(self, tokens: int) -> None:
        """Counts the tokens of embedded texts of the current request."""
        current.get().prompt_tokens += tokens
        self._tokens.labels("embedded").inc(tokens)

    def add_masks(self, answer: Answer) -> None:
        """Counts the masks of an answer."""
        self._masks.labels("computed").inc(answer.n_computed_masks)
        self._masks.labels("known").inc(
            max(0, answer.n_masks - answer.n_computed_masks)
        )  # some computed masks go unused
        self._mask_seconds.inc(answer.mask_seconds)

    def samples(self) -> Iterator[tuple[str, list[tuple[str, dict[str, str], float]]]]:
        """Yields each metric: what it is about, and its values with names and labels."""
        for metric in self._registry.collect():
            yield metric.documentation, [(each.name, each.labels, each.value) for each in metric.samples]

    def text(self) -> bytes:
        """Returns all metrics in Prometheus' format."""
        return generate_latest(self._registry)


class _Found:
    """Measurements that are taken when metrics are requested."""

    def __init__(self, models: Models) -> None:
        self._models = models

    def collect(self) -> Iterator[Metric]:
        """Yields the current measurements; see ``prometheus_client.registry.Collector``."""
        constraints = CounterMetricFamily(
            "constrain_constraints", "Schemas and grammars that were asked for, in this process.", labels=("found",)
        )
        constraints.add_metric(("known",), remembered_constraints.counts.known)
        constraints.add_metric(("compiled",), remembered_constraints.counts.new)
        yield constraints
        loaded = GaugeMetricFamily("constrain_model_loaded", "Whether a model is loaded.", labels=("model",))
        memory = GaugeMetricFamily("constrain_model_memory_bytes", "What a loaded model takes.", labels=("model",))
        users = GaugeMetricFamily(
            "constrain_model_requests", "Requests that have a model, or wait for it.", labels=("model",)
        )
        for state in self._models.states():
            loaded.add_metric((state.name,), state.model is not None)
            memory.add_metric((state.name,), state.memory_bytes)
            users.add_metric((state.name,), state.users)
        yield from (loaded, memory, users)
        if self._models.memory_limit is not None:
            yield GaugeMetricFamily(
                "constrain_model_memory_limit_bytes", "What all models may take.", self._models.memory_limit
            )
