"""Chat endpoints: where they are, the queue of requests to them, batches, and a simulated one."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submodules=["batches", "request_queue", "server"]
)
