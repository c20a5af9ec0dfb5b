"""Answers on a cluster: ``answers`` for Ray Data, and ``Answers``, the class that works in each process.

Users import from here; it needs the extra ``ray``. Ray itself is imported when ``answers`` is called. ``Answers`` also
works in ``mapInPandas`` of Spark and ``map_partitions`` of Dask. Read ``columns`` first (types of columns, and the
records of answers), then ``rows`` (a row becomes a task of a batch), then ``worker`` with its ``metrics``, then
``dataset``. ``pool`` has the actors of ``constrain batch --ray``.
"""

from __future__ import annotations

from constrain.ray.dataset import answers
from constrain.ray.worker import Answers

__all__ = ["Answers", "answers"]
