"""Chat endpoints: where they are, how requests are sent to them, and a simulated one."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["batches", "client", "endpoint", "request_queue", "server"],
    submod_attrs={"endpoint": ["Endpoint"], "server": ["simulated_endpoint"]},
)
