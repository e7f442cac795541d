"""``python -m tests.matrix [CHAPTER...]``: every family in every command and chapter, as a table.

A chapter of one respondent runs once per family, one of several respondents once for all families.
Takes an hour on one core; tests/test_families.py holds what is quick.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.families import FAMILIES, save_family

ONE = {
    "scores": "scores challenges --respondents {model}",
    "profile": "profile {model} --questionnaires challenges --against nobody",
    "01": "run 01-first-score -p respondent={model} -p null_respondents=40",
    "05": "run 05-interventions -p respondents={model},{twin} -p models=2 -p masked_lm={base} "
          "-p epochs=1 -p measure_at='1'",
    "09": "run 09-self-report -p respondent={model} -p runs=2",
}  # fmt: skip
"""What is run for each family."""
ALL = {
    "ask": "ask challenges --respondents {all}",
    "compare": "compare {spaced} --questionnaires challenges --against nobody",
    "03": "run 03-assessment -p respondents={all}",
    "04": "run 04-consistency -p respondents={all} -p populations=2",
    "15": "run 15-relations -p respondents={all} -p populations=2",
    "16": "run 16-other-explanations -p respondents={all} -p populations=2",
    "11": "run 11-ways-of-asking -p respondents={all} -p members=18",
}
"""What is run once for all families."""


def outcome(command: str, folder: Path) -> str:
    """Run the command in a folder: *ok*, or the last line of its errors; and the seconds."""
    began = time.monotonic()
    words = [word.replace("'", '"') for word in command.split()]
    environment = os.environ | {"PSYCHOMETRICS_STORE": str(folder / "store")}
    done = subprocess.run(
        [sys.executable, "-m", "psychometrics.cli", *words],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = (done.stderr.strip().splitlines() or ["no word"])[-1]
    return f"{'ok' if done.returncode == 0 else said} ({time.monotonic() - began:.0f} s)"


def main(chosen: list[str]) -> None:
    """Print a line for each run."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        models = {family: save_family(folder, family) for family in FAMILIES}
        twins = {family: save_family(folder / "twins", family) for family in FAMILIES}
        every = {"all": ",".join(map(str, models.values())),
                 "spaced": " ".join(map(str, models.values()))}  # fmt: skip
        for name, command in ALL.items():
            if name in chosen or not chosen:
                print(f"| all | {name} | {outcome(command.format(**every), folder)} |", flush=True)
        for name, command in ONE.items():
            for family, model in models.items() if name in chosen or not chosen else ():
                given = {"model": model, "twin": twins[family], "base": f"{model}-base"}
                said = outcome(command.format(**given), folder)
                print(f"| {family} | {name} | {said} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
