"""The threads of a llama.cpp context: ``n_threads`` of the model, or fewer while other programs need the cores.

The number of threads does not change results.
"""

from __future__ import annotations

import llama_cpp

from constrain.llama.threads.cores import shared_cores
from constrain.llama.threads.preparing import leaves_a_core


class Threads:
    """Evaluates with a context, with at most as many threads as the context has at creation of this object.

    Args:
        context: the context, as llama.cpp's pointer.

    Attributes:
        most: the most threads that compute one token, and several.
    """

    def __init__(self, context: llama_cpp.llama_context_p) -> None:
        self._context = context
        self.most: tuple[int, int] = (llama_cpp.llama_n_threads(context), llama_cpp.llama_n_threads_batch(context))
        self._single, self._batch = self.most
        self._now = self.most
        self._cores = shared_cores()

    @property
    def leave_a_core(self) -> bool:
        """Whether a core is free for another thread while one token is evaluated."""
        if not leaves_a_core(self._single):
            return False
        return self._cores is None or self._cores.are_free(self._single + 1)

    def decode(self, batch: llama_cpp.llama_batch) -> int:
        """Calls ``llama_decode``; returns its status."""
        if self._cores is None:
            return self._decode(batch)
        is_single = batch.n_tokens == 1
        with self._cores.claim(self._single if is_single else self._batch) as granted:
            self._use(*((granted, self._now[1]) if is_single else (self._now[0], granted)))
            return self._decode(batch)

    def restore(self) -> None:
        """Restores the context's own thread counts, for callers that use it directly."""
        self._use(self._single, self._batch)

    def _decode(self, batch: llama_cpp.llama_batch) -> int:
        status: int = llama_cpp.llama_decode(self._context, batch)
        return status

    def _use(self, single: int, batch: int) -> None:
        if self._now != (single, batch):
            llama_cpp.llama_set_n_threads(self._context, single, batch)
            self._now = (single, batch)
