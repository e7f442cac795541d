"""Chat endpoints: where they are, how requests are sent to them, and a simulated one."""

import pkgutil

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=[module.name for module in pkgutil.iter_modules(__path__)],
    submod_attrs={"endpoint": ["Endpoint"], "server": ["simulated_endpoint"]},
)
