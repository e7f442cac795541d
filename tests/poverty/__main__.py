"""Run pytest with the given arguments as on a poor machine."""

import os
import sys

from tests.poverty import poor_environment

# joblib says so itself where semaphores are missing
serial = "ignore:[Errno 38] Function not implemented.  joblib:UserWarning"
command = [sys.executable, "-m", "pytest", "-W", serial, *sys.argv[1:]]
os.execve(sys.executable, command, poor_environment())
