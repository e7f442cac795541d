"""``python -m psychometrics.cli`` is the ``psychometrics`` command."""

from . import main

main()
