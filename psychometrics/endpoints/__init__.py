"""Chat endpoints: the queue of requests to them, and a server of our own."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=[
        "request_queue",
        "server",
    ],
)
