"""``python -m tests.matrix [COMMAND | CHAPTER | FAMILY...]``: who runs in what, line by line.

A chapter of one respondent runs once per family, one of several respondents once for all families.
All of it takes two hours on one core; tests/test_families.py holds what is quick.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from psychometrics import exceptions
from psychometrics_book.studies.interventions import intervention_texts
from tests.families import FAMILIES, save_family

ONE = {
    "scores": "scores challenges --respondents {model}",
    "profile": "profile {model} --questionnaires challenges --against nobody",
    "01": "run 01-first-score -p respondent={model} -p null_respondents=40",
    "07": "run 07-interventions -p respondents={model},{twin} -p models=2 -p masked_lm={base} "
          "-p epochs=1 -p measure_at=1 -p live=0 -p arms=depressive.txt,neutral.txt",
    "10": "run 10-self-report -p respondent={model} -p runs=2",
}  # fmt: skip
"""What is run for each family."""
ALL = {
    "ask": "ask challenges --respondents {all}",
    "compare": "compare {spaced} --questionnaires challenges --against nobody",
    "03": "run 03-assessment -p respondents={all}",
    "04": "run 04-consistency -p respondents={all} -p populations=2",
    "05": "run 05-relations -p respondents={all} -p populations=2",
    "06": "run 06-other-explanations -p respondents={all} -p populations=2",
    "11": "run 11-ways-of-asking -p respondents={all} -p members=18",
}
"""What is run once for all families."""


def outcome(command: str, folder: Path) -> str:
    """Run a command in a folder: ✓, or why it was refused, or the error that it ended in."""
    done = subprocess.run(
        [sys.executable, "-m", "psychometrics", *command.split()],
        env=os.environ | {"PSYCHOMETRICS_STORE": str(folder / "store")},
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = (done.stderr.strip().splitlines() or ["no word"])[-1]
    kind = re.match(r"psychometrics: (?:[\w-]+, (\w+): )?", said)  # in a chapter, which
    refused = kind and hasattr(exceptions, kind[1] or "ParameterError")
    return "✓" if done.returncode == 0 else f"{'refused' if refused else '✗'}: {said}"


def main(chosen: list[str]) -> None:
    """Print a row of a table for each run."""
    families = [name for name in chosen if name in FAMILIES] or list(FAMILIES)
    names = [name for name in chosen if name not in FAMILIES] or [*ALL, *ONE]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for arm in ("depressive", "neutral"):  # a few sentences each, so that it takes a minute
            few = intervention_texts(arm)[:24]
            (folder / f"{arm}.txt").write_text("\n".join(few), encoding="utf-8")
        models = {family: save_family(folder, family) for family in families}
        every = {"all": ",".join(map(str, models.values())),
                 "spaced": " ".join(map(str, models.values()))}  # fmt: skip
        for name in names:
            if name in ALL:
                print(
                    f"| all | {name} | {outcome(ALL[name].format(**every), folder)} |", flush=True
                )
                continue
            for family, model in models.items():
                twin = save_family(folder / "twins", family)
                given = {"model": model, "twin": twin, "base": f"{model}-base"}
                said = outcome(ONE[name].format(**given), folder)
                print(f"| {family} | {name} | {said} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
