"""``python -m tests.faults``: see :mod:`tests.faults.faults`."""

from .faults import main

if __name__ == "__main__":
    main()
