"""Ask questionnaires of respondents, and store the answers."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=[
        "answers",
        "ask",
        "cluster",
        "grid",
        "plan",
        "population",
        "population_drafts",
        "progress",
        "store",
    ],
)
