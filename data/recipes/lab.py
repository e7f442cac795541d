"""Write ``data/lab``: the sheet for the lab of *Ask a model*, and the answers of ``minilm``.

The lab asks one item of the GAD-7 in twenty wordings, ten premises by two hypotheses: ``sheet.csv``
has links that fill in the page's fields, and ``answers.csv`` the scores from Python. ``python -m
recipes.lab`` takes half a minute.
"""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from urllib.parse import urlencode

import pandas as pd
import yaml

import psychometrics as pm
from psychometrics.paths import data_dir, questionnaires_dir

RESPONDENT = "minilm-both-l6-s1"
PREMISES = (
    "As I go about my life, I am feeling {term}.",
    "I have the feeling of being {term}.",
    "I feel {term}.",
    "I am {term}.",
    "These days I feel {term}.",
    "When I think about my life, I feel {term}.",
    "Deep inside I feel {term}.",
    "I find myself feeling {term}.",
    "I notice that I am {term}.",
    "People who know me would say that I feel {term}.",
)
HYPOTHESES = ("I {intensifier} feel this way.", "I am {intensifier} like this.")


def wordings() -> pd.DataFrame:
    """Return the twenty wordings: ``wording, premise, hypothesis``."""
    rows = itertools.product(PREMISES, HYPOTHESES)
    frame = pd.DataFrame(rows, columns=["premise", "hypothesis"])
    return frame.rename_axis("wording").reset_index().assign(wording=range(1, len(frame) + 1))


def scores(table: pd.DataFrame) -> pd.DataFrame:
    """Return the score of each wording with its interval over the source terms."""
    file = yaml.safe_load((questionnaires_dir() / "gad7.yaml").read_text(encoding="utf-8"))
    first = {k: v for k, v in file["items"][0].items() if k in ("text", "terms")}
    file["items"] = [
        first | {"id": f"w_{row.wording}",
                 "templates": [{"premise": row.premise, "hypothesis": row.hypothesis}]}
        for row in table.itertuples()
    ]  # fmt: skip
    file = {k: v for k, v in file.items() if k not in ("norms", "candidates")} | {"id": "lab"}

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lab.yaml"
        path.write_text(yaml.safe_dump(file, sort_keys=False), encoding="utf-8")
        answers = pm.ask(str(path), RESPONDENT, dtype="float32", progress=False)

    shares = pm.pss(answers).query("polarity == 1")
    by_term = shares.assign(score=shares["pss"] * shares["weight"])
    by_term = by_term.groupby(["item_id", "term"])["score"].mean().unstack()
    by_term = by_term.loc[[f"w_{n}" for n in table["wording"]]].to_numpy()
    low, high = pm.intervals.mean_interval(by_term)

    return pd.DataFrame({"score": by_term.mean(axis=1), "low": low, "high": high})


def _main() -> None:
    questionnaire = pm.load_questionnaire("gad7")
    item = questionnaire.items[0]
    words = (f"{w} {x.weight:g}" for x in questionnaire.levels(item) for w in x.terms)
    state = {"text": item.text, "source": ", ".join(item.terms.source),
             "inverse": ", ".join(item.terms.inverse), "words": ", ".join(words),
             "seed": 1}  # fmt: skip
    table = wordings()
    folder = data_dir() / "lab"
    folder.mkdir(exist_ok=True)
    links = [
        f'<a href="#{urlencode(state | row)}">fill the fields</a>'
        for row in table[["premise", "hypothesis"]].to_dict("records")
    ]
    sheet = table.assign(link=links, **{"your guess": "", "score": "", "interval": ""})
    sheet.to_csv(folder / "sheet.csv", index=False, lineterminator="\n")
    table_of_scores = pd.concat([table["wording"], scores(table)], axis=1)
    whole = table_of_scores[["score"]].agg(["mean", "std", "min", "max"]).rename_axis("wording")
    table_of_scores = pd.concat([table_of_scores, whole.reset_index()])
    table_of_scores.to_csv(
        folder / "answers.csv", index=False, float_format="%.3f", lineterminator="\n"
    )


if __name__ == "__main__":
    _main()
