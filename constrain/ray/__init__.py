"""Answers on a cluster: ``answers`` for Ray Data, and ``Answers``, the class that works in each process.

Users import from here; it needs the extra ``ray``. Ray itself is imported when ``answers`` is called. ``Answers`` also
works in ``mapInArrow`` and ``mapInPandas`` of Spark and ``map_partitions`` of Dask, which want to know its columns:
``answer_schema``. Read ``columns`` first (types of columns, and the records of answers), then ``rows`` (a row becomes a
task of a batch), then ``worker`` with its ``metrics``, then ``dataset``. ``pool`` has the actors of
``constrain batch --ray``.
"""

from __future__ import annotations

from constrain.ray.dataset import answers
from constrain.ray.worker import Answers, answer_schema

__all__ = ["Answers", "answer_schema", "answers"]
