"""The commands that the book adds to ``psychometrics``; importing this package adds them."""

# isort: off
from . import studies as studies
from . import book as book
