"""Thread pools whose threads all start in advance: later, the system may have no thread left.

A ``ThreadPoolExecutor`` starts its threads with the work. If a start fails, the work stays queued and may run later,
when its caller has given up.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor


def start_pool(size: int, name: str) -> ThreadPoolExecutor:
    """Returns a pool whose ``size`` threads all run. Raises ``RuntimeError`` if the system has too few threads."""
    pool = ThreadPoolExecutor(size, thread_name_prefix=name)
    together = threading.Barrier(size)  # without it, one thread could do the work of several
    try:
        begun = [pool.submit(together.wait) for _ in range(size)]
    except BaseException:
        together.abort()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    for each in begun:
        each.result()
    return pool
