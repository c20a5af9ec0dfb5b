"""How long something may take, told so that neither a slow neighbour nor the size of the test run decides."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def finishes_within(seconds: float) -> Iterator[None]:
    """Fails if what is done within takes longer, in processor time of this thread.

    Neither threads of other tests nor garbage collections count. Late in a run of thousands of tests, one collection
    takes a second.
    """
    enabled = gc.isenabled()
    gc.disable()
    begun = time.thread_time()
    try:
        yield
    finally:
        took = time.thread_time() - begun
        if enabled:
            gc.enable()
    assert took < seconds, f"took {took:.2f} of {seconds} seconds"
