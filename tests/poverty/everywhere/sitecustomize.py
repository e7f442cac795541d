"""Take from every Python process what ``tests.poverty`` lists, before anything is imported."""

import _multiprocessing
import errno
import os
import resource
import time

SLOW_DISK = 0.01  # seconds until a file is safe, besides the disk's own
OPEN_FILES = 256  # what macOS allows by default


def _refuse_memory(name, ask=os.sysconf):
    if name == "SC_PHYS_PAGES":
        raise ValueError("unrecognized configuration name")
    return ask(name)


def _write_slowly(file, write=os.fsync):
    time.sleep(SLOW_DISK)
    write(file)


class _NoSemaphore:
    """A semaphore where /dev/shm is missing."""

    SEM_VALUE_MAX = _multiprocessing.SemLock.SEM_VALUE_MAX

    def __init__(self, *_, **__):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


os.cpu_count = lambda: 1
os.sched_getaffinity = lambda process: {0}
os.sysconf = _refuse_memory
os.fsync = _write_slowly
_multiprocessing.SemLock = _NoSemaphore
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, most))
