"""Run pytest with the given arguments as on a poor machine."""

import os
import sys

from tests.poverty import poor_environment

command = [sys.executable, "-m", "pytest", *sys.argv[1:]]
os.execve(sys.executable, command, poor_environment())
