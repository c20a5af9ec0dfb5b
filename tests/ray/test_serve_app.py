"""``serve_app`` refuses what a cluster cannot have, before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

ray = pytest.importorskip("ray")

import constrain.ray  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
"""Warnings of Ray Serve about itself."""


@pytest.fixture(autouse=True)
def two_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster of two nodes, as Ray tells of it."""
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "nodes", lambda: [{"Alive": True, "Resources": {"CPU": 8}}] * 2)


@pytest.mark.parametrize(
    ("config", "replicas", "message"),
    [
        ({"response_store": "memory"}, 2, "each of 2 replicas"),
        ({"response_store": "sqlite:////tmp/responses.db"}, 2, "several nodes"),
        ({"modles": []}, 2, "config: modles: there is no such key \\(did you mean models"),
        ({"host": "no.such.host.invalid"}, 2, "has no address"),
        ({}, 0, "replicas is 0"),
        ({}, (3, 2), r"replicas is \(3, 2\)"),
    ],
)
def test_settings_that_a_cluster_cannot_have_are_refused(config: Any, replicas: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        constrain.ray.serve_app(config, replicas=replicas)


def deployments(app: Any) -> tuple[Any, Any]:
    """The deployments of the front and of the replicas."""
    front = app._bound_deployment
    (replica,) = front.init_args
    return front, replica._bound_deployment


def test_the_numbers_of_a_configuration_hold_for_replicas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSTRAIN_API_KEY", "secret")
    monkeypatch.setenv("CONSTRAIN_RESPONSE_STORE", "postgresql+psycopg://db/responses")
    (tmp_path / "server.toml").write_text('parallel = 3\nqueue = 7\ntimeout = 20\napi_key_file = "keys"\n')
    (tmp_path / "keys").write_text("another\n")
    front, replica = deployments(
        constrain.ray.app_builder({"config": str(tmp_path / "server.toml"), "replicas": [1, 5], "fronts": 2})
    )
    config, settings = replica.init_args
    assert config.threads == 4
    assert settings.api_keys == ("another", "secret")
    assert settings.response_store == "postgresql+psycopg://db/responses"
    assert (replica.max_ongoing_requests, replica.max_queued_requests) == (5, 7)
    scaling = replica._deployment_config.autoscaling_config
    assert (scaling.min_replicas, scaling.max_replicas, scaling.target_ongoing_requests) == (1, 5, 3)
    assert replica._deployment_config.graceful_shutdown_timeout_s == 50
    assert front.num_replicas == 2


def test_without_a_database_several_replicas_keep_no_responses() -> None:
    kept = [deployments(constrain.ray.serve_app({}, replicas=count))[1].init_args[1] for count in (1, 2)]
    assert [settings.response_store for settings in kept] == ["memory", "none"]
