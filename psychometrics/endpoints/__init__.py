"""Chat endpoints: where they are, and how requests are sent to them."""

import pkgutil

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=[module.name for module in pkgutil.iter_modules(__path__)],
    submod_attrs={"endpoint": ["Endpoint"]},
)
