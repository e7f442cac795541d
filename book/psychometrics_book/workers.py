"""Worker processes that end with the process that started them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context, parent_process


def worker_pool(workers: int, prepare: Callable[[], object]) -> Executor:
    """Return a pool of new processes that end with this process, even if it is killed.

    A machine without semaphores, such as a container without ``/dev/shm``, gets threads instead.

    Parameters
    ----------
    workers : int
        Number of processes.
    prepare : callable
        A function that each process calls first.

    Examples
    --------
    >>> with worker_pool(1, print) as pool:
    ...     pool.submit(abs, -1).result()
    1
    """
    try:
        return ProcessPoolExecutor(workers, get_context("spawn"), partial(_begin_worker, prepare))
    except (OSError, ImportError, NotImplementedError):  # Python's errors of missing semaphores
        return ThreadPoolExecutor(workers)


def _begin_worker(prepare: Callable[[], object]) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    prepare()


def _end_with_parent() -> None:
    """Wait for the end of the parent, of which the pool itself does not tell its workers."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
