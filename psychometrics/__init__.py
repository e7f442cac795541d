"""The psychometrics of language models: questionnaires, respondents, answers, scores, evidence.

The stub next to this file lists the public names. Each is imported on first use, so that importing
the package is fast.
"""

import lazy_loader

__version__ = "1.0.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
