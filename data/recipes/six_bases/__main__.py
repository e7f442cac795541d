"""Ask and train respondents on six bases: ``make bases``, or ``python -m recipes.six_bases``.

The plan is ``data/plans/six-bases.yml``. A stopped run resumes. It first computes the untouched
bases' vectors of the prompts, then the members, block by block, of all bases or of the named ones:
``python -m recipes.six_bases embedded mpnet``. After each member its statistics and scores go into
``data/bases/members-*.csv``, which are part of the repository; a member in these tables is not made
again, whether or not the user's cache still has it. ``python -m recipes.six_bases analyse``
computes the planned tests from these rows and writes the other tables of ``data/bases/``; with
``--interim`` also for bases with incomplete blocks, into tables that are marked as such. Run one
process per base at a time.
"""

from __future__ import annotations

import argparse

from . import runs, tables
from .plan import BASES


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="BASE", help=f"{', '.join(BASES)}; or: analyse")
    parser.add_argument("--interim", action="store_true")
    arguments = parser.parse_args()

    if arguments.names == ["analyse"]:
        tables.write(arguments.interim)
        return

    if unknown := set(arguments.names) - set(BASES):
        parser.error(f"{', '.join(sorted(unknown))}: not in the plan; name some of {[*BASES]}.")
    runs.run(arguments.names)


if __name__ == "__main__":
    _main()
