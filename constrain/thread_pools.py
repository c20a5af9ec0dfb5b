"""Pools of threads that never lack one: the system may have no thread left when work comes.

A ``ThreadPoolExecutor`` starts its threads with the work. Where that fails, the work stays in its queue, and is done
later although nobody waits for it any more.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor


def start_pool(size: int, name: str) -> ThreadPoolExecutor:
    """A pool whose ``size`` threads have all been started. Raises ``RuntimeError`` if the system has too few."""
    pool = ThreadPoolExecutor(size, thread_name_prefix=name)
    together = threading.Barrier(size)  # else one thread could do the work of several
    try:
        begun = [pool.submit(together.wait) for _ in range(size)]
    except BaseException:
        together.abort()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    for each in begun:
        each.result()
    return pool
