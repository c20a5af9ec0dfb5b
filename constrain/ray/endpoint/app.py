"""``serve_app``: the endpoint as an application of Ray Serve."""

from __future__ import annotations

import importlib
import logging
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constrain.llama.model import DEFAULT_PARALLEL
from constrain.server.config import IN_MEMORY, KEEP_NONE, ServerConfig, make_config, read_config
from constrain.server.settings import make_settings, response_store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ray.serve import Application

    from constrain.ray.endpoint.front import Front

_log = logging.getLogger("constrain.server")

REPLICA = "constrain-replica"
"""Name of the deployment with the models."""

FRONT = "constrain-front"
"""Name of the deployment that passes requests on."""

MOST_REQUESTS = 10_000
"""Requests that a front has at once: 10,000; it does little for each."""

WAITING_AT_REPLICA = 2
"""Requests that wait at a replica while it answers others: 2, so that its model always has a next one."""

DRAIN_SECONDS = 30.0
"""Seconds, beyond the time of one request, in which a replica that is taken away ends its answers: 30."""

UPSCALE_SECONDS = 10.0
"""Seconds for which replicas must be too few before there are more: 10."""


def serve_app(
    config: str | os.PathLike[str] | Mapping[str, Any] | ServerConfig | None = None,
    *,
    replicas: int | tuple[int, int] = (1, 4),
    cpus_per_replica: float | None = None,
    fronts: int = 1,
    replica_options: Mapping[str, Any] | None = None,
) -> Application:
    """Returns the endpoint of ``constrain serve`` as an application, for ``ray.serve.run``.

    It has the protocols, keys and limits of ``constrain serve``. The number of replicas follows that of the requests
    that they answer. A replica that is taken away answers the requests that it has, and a stream that loses its replica
    ends with an error.

    Args:
        config: path of ``server.toml``, its content, or a configuration; ``None`` for the small model of the ``demo``
            extra. All nodes need its model files. Ray Serve listens; ``host`` only says which names are answered.
            ``response_store`` must be a database if responses are to be kept by more than one replica.
        replicas: number of replicas, or the least and the most.
        cpus_per_replica: CPUs of a replica, and threads of its models; by default 4, or those of the largest node.
        fronts: processes that pass requests on. Each takes little of a CPU.
        replica_options: further options of the deployment of the replicas, such as
            ``{"ray_actor_options": {"num_gpus": 1}}``.

    Raises ``ValueError`` for settings that a cluster cannot have, and the errors of ``constrain serve``. API keys are
    read here, and not on the nodes.
    """
    from ray import serve

    from constrain.ray.dataset import choose_cpus
    from constrain.ray.endpoint.replica import Replica

    least, most = (replicas, replicas) if isinstance(replicas, int) else replicas
    if not 1 <= least <= most:
        raise ValueError(f"replicas is {replicas}; it must be a number from 1, or the least and the most")
    found = _for_cluster(_read(config), most)
    settings = make_settings(found, _addresses(found.host))
    cpus = choose_cpus(cpus_per_replica, "cpus_per_replica")
    if found.threads is None:
        found = found.model_copy(update={"threads": max(1, int(cpus))})
    parallel = _parallel(found)
    given: dict[str, Any] = {**(replica_options or {})}
    actor = {"num_cpus": cpus, **given.pop("ray_actor_options", {})}
    replica: Any = serve.deployment(Replica)
    named = replica.options(
        name=REPLICA,
        max_ongoing_requests=parallel + WAITING_AT_REPLICA,
        max_queued_requests=found.queue,
        graceful_shutdown_timeout_s=found.timeout + DRAIN_SECONDS,
        ray_actor_options=actor,
        autoscaling_config={
            "min_replicas": least,
            "max_replicas": most,
            "target_ongoing_requests": parallel,
            "upscale_delay_s": UPSCALE_SECONDS,
            **given.pop("autoscaling_config", {}),
        },
        **given,
    )

    def build() -> Front:
        from constrain.ray.endpoint.front import Front

        return Front(serve.get_deployment_handle(REPLICA, serve.get_replica_context().app_name), settings)

    front: Any = serve.deployment(serve.ingress(build)())
    return front.options(  # type: ignore[no-any-return]
        name=FRONT,
        num_replicas=fronts,
        max_ongoing_requests=MOST_REQUESTS,
        graceful_shutdown_timeout_s=found.timeout + DRAIN_SECONDS,
        ray_actor_options={"num_cpus": 0},
    ).bind(named.bind(found, settings))


def app_builder(args: dict[str, Any]) -> Application:
    """Returns ``serve_app(**args)``: the function that ``import_path`` names in a configuration of Ray Serve."""
    given: dict[str, Any] = {name: tuple(each) if isinstance(each, list) else each for name, each in args.items()}
    return serve_app(**given)


def _read(config: str | os.PathLike[str] | Mapping[str, Any] | ServerConfig | None) -> ServerConfig:
    """Returns a configuration with absolute paths. Raises ``ValueError`` and ``OSError``."""
    if isinstance(config, ServerConfig):
        return config
    if isinstance(config, str | os.PathLike):
        return read_config(Path(config).absolute(), {})
    return make_config(config or {}, "config", {})


def _for_cluster(config: ServerConfig, most: int) -> ServerConfig:
    """Returns a configuration for replicas. Raises ``ValueError`` for settings that they cannot have."""
    given = config.model_fields_set
    if "port" in given:
        _log.warning("port is not used: Ray Serve listens; give it serve.start(http_options={'port': %s})", config.port)
    changes: dict[str, Any] = {"response_store": response_store(config)}
    if changes["response_store"] == IN_MEMORY and most > 1:
        if "response_store" in given:
            raise ValueError(
                f"response_store is {IN_MEMORY!r}, and each of {most} replicas has a memory of its own; name a "
                f"database, or {KEEP_NONE!r}"
            )
        changes["response_store"] = KEEP_NONE
    if changes["response_store"].startswith("sqlite") and _node_count() > 1:
        raise ValueError("response_store is an SQLite file, which is for one machine; the cluster has several nodes")
    return config.model_copy(update=changes)


def _node_count() -> int:
    ray: Any = importlib.import_module("ray")
    return sum(node["Alive"] for node in ray.nodes()) if ray.is_initialized() else 1


def _addresses(host: str) -> list[str]:
    """Returns the addresses of a host. Raises ``ValueError`` if there is none."""
    try:
        return [str(found[4][0]) for found in socket.getaddrinfo(host, None)]
    except OSError as error:
        raise ValueError(f"host is {host!r}, which has no address: {error}") from error


def _parallel(config: ServerConfig) -> int:
    """Returns the number of answers that a replica writes at once."""
    default = config.parallel or (1 if config.deterministic else DEFAULT_PARALLEL)
    return sum(table.parallel or default for table in config.models) or default
