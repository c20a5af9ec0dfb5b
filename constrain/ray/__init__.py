"""Answers on a cluster: ``answers`` for Ray Data, ``Answers``, the class beneath it, and ``serve_app`` for Ray Serve.

Users import from here; it needs the extra ``ray``, and ``serve_app`` the extra ``server``, too. Ray itself is imported
when ``answers`` or ``serve_app`` is called. ``Answers`` also works in ``mapInArrow`` and ``mapInPandas`` of Spark and
``map_partitions`` of Dask, which want to know its columns: ``answer_schema``. Read ``rows`` first (a row becomes a task
of a batch), then ``worker`` with its ``metrics``, then ``dataset``, with ``shipping`` for the constraint of all actors
and ``checkpoints`` for jobs that go on. ``pool`` has the actors of ``constrain batch --ray``, whose losses ``seats``
counts, and ``endpoint`` the server on a cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.ray.dataset import answers
from constrain.ray.worker import Answers, answer_schema

if TYPE_CHECKING:
    from constrain.ray.endpoint.app import app_builder, serve_app

__all__ = ["Answers", "answer_schema", "answers", "app_builder", "serve_app"]


def __getattr__(name: str) -> object:
    """Imports the endpoint when it is asked for, since it needs the extra ``server``."""
    if name in ("app_builder", "serve_app"):
        from constrain.ray.endpoint import app

        return getattr(app, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
