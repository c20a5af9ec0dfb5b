"""A cluster that answers documents, simulated batch by batch: starts, batches, lost nodes, and the end of the job.

The seconds of batches are drawn from some hundred batches that ``work.batch_seconds`` plays through, each with answers
drawn from the sample. An event is the end of an actor's batch or the loss of a node. A new node comes after its start,
and its actors after theirs. If a node is lost, the batches that its actors worked on are answered again, and a new node
takes its place. The job ends with its last batch.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from work import batch_seconds

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from work import Costs

PLAYED = 200
"""Batches that are played through answer by answer; the seconds of the others are drawn from theirs."""

SPREAD = 0.25
"""Share by which the start of a node may be shorter or longer than the mean."""


@dataclass(frozen=True)
class Cluster:
    """A job and the nodes that it runs on.

    Attributes:
        documents: documents to answer.
        nodes: nodes at any time.
        actors_per_node: actors of a node.
        parallel: answers that an actor writes at once.
        batch_size: documents that an actor takes at once.
        price: price of a node for an hour, from when it is asked for.
        lost: nodes that are lost, for each node and hour.
        node_start: mean seconds until a node that is asked for is there, with the image and the model file.
    """

    documents: int
    nodes: int
    actors_per_node: int
    parallel: int
    batch_size: int
    price: float
    lost: float
    node_start: float


@dataclass(frozen=True)
class Result:
    """What the simulation found.

    Attributes:
        hours: hours from when nodes are asked for until the last answer.
        documents_per_hour: documents by these hours.
        node_hours: hours of all nodes together, which are paid.
        cost: their price.
        lost_nodes: nodes that were lost.
        repeated_documents: documents that were answered again, at most: those of batches that were lost.
    """

    hours: float
    documents_per_hour: float
    node_hours: float
    cost: float
    lost_nodes: int
    repeated_documents: int


def simulate(costs: Costs, cluster: Cluster, seed: int = 0) -> Result:
    """Simulates a job. Raises ``ValueError`` for a cluster that cannot answer anything."""
    if min(cluster.documents, cluster.nodes, cluster.actors_per_node, cluster.parallel, cluster.batch_size) < 1:
        raise ValueError(f"a cluster without documents, nodes or actors answers nothing: {cluster}")
    run = _Run(costs, cluster, np.random.default_rng(seed))
    seconds = run.finish()
    hours = seconds / 3600
    node_hours = run.paid_seconds(seconds) / 3600
    return Result(
        hours, cluster.documents / hours, node_hours, node_hours * cluster.price, run.lost, run.repeated_documents
    )


class _Run:
    """One simulated job. Events are (seconds, order, node, actor, size); an actor of -1 is the loss of the node.

    A batch of 0 documents is the moment in which an actor is ready.
    """

    def __init__(self, costs: Costs, cluster: Cluster, rng: np.random.Generator) -> None:
        self._cluster, self._costs, self._rng = cluster, costs, rng
        self._full = self._play(cluster.batch_size)
        whole, rest = divmod(cluster.documents, cluster.batch_size)
        self._sizes = [rest] * (rest > 0) + [cluster.batch_size] * whole  # taken from the end
        self._unfinished = len(self._sizes)
        self._last: dict[int, NDArray[np.float64]] = {}
        self._events: list[tuple[float, int, int, int, int]] = []
        self._order = 0
        self._working: list[dict[int, int]] = []  # of each node, by actor: documents of its batch
        self._asked: list[float] = []
        self._gone: dict[int, float] = {}
        self._idle: list[tuple[int, int]] = []  # actors that found no batch
        self.lost = self.repeated_documents = 0
        for _ in range(cluster.nodes):
            self._ask_for_node(0.0)

    def finish(self) -> float:
        """Returns the seconds until the last batch is answered."""
        while True:
            seconds, _, node, actor, size = heapq.heappop(self._events)
            if node in self._gone:
                continue
            if actor < 0:
                self._lose(node, seconds)
                continue
            if size:
                del self._working[node][actor]
                self._unfinished -= 1
                if not self._unfinished:
                    return seconds
            self._begin(node, actor, seconds)

    def paid_seconds(self, end: float) -> float:
        """Returns the seconds of all nodes, from when they were asked for until they were lost or the job ended."""
        return sum(self._gone.get(node, end) - asked for node, asked in enumerate(self._asked))

    def _ask_for_node(self, now: float) -> None:
        node = len(self._asked)
        self._asked.append(now)
        self._working.append({})
        spread = self._rng.uniform(1 - SPREAD, 1 + SPREAD)
        there = now + self._cluster.node_start * spread
        for actor in range(self._cluster.actors_per_node):
            self._push(there + self._costs.start, node, actor, 0)
        if self._cluster.lost:
            self._push(there + self._rng.exponential(3600 / self._cluster.lost), node, -1, 0)

    def _begin(self, node: int, actor: int, now: float) -> None:
        if not self._sizes:
            self._idle.append((node, actor))
            return
        size = self._sizes.pop()
        self._working[node][actor] = size
        self._push(now + self._seconds(size), node, actor, size)

    def _lose(self, node: int, now: float) -> None:
        self._gone[node] = now
        self.lost += 1
        self._idle = [one for one in self._idle if one[0] != node]
        for size in self._working[node].values():
            self._sizes.append(size)
            self.repeated_documents += size
        self._ask_for_node(now)
        while self._sizes and self._idle:
            self._begin(*self._idle.pop(), now)

    def _push(self, seconds: float, node: int, actor: int, size: int) -> None:
        self._order += 1
        heapq.heappush(self._events, (seconds, self._order, node, actor, size))

    def _seconds(self, size: int) -> float:
        table = self._full
        if size != self._cluster.batch_size:
            table = self._last.setdefault(size, self._play(size))
        return float(table[self._rng.integers(len(table))])

    def _play(self, size: int) -> NDArray[np.float64]:
        """Returns the seconds of batches of a size, with answers drawn from the sample."""
        answers = self._costs.answers
        drawn = self._rng.integers(len(answers), size=(PLAYED, size))
        return np.array(
            [batch_seconds(self._costs, [answers[each] for each in row], self._cluster.parallel) for row in drawn]
        )
