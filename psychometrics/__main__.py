"""``python -m psychometrics`` is the ``psychometrics`` command."""

from .cli import main

main()
