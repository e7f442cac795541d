"""Who answers: names of respondents, and the table of the embedded population of small NLI models.

``data/population.csv`` holds each member's recipe and its accuracy on the held-out MNLI pairs that
no member was trained on; :mod:`psychometrics.make.population` trains them.
"""

from __future__ import annotations

import pandas as pd

from .exceptions import RespondentError
from .paths import data_dir
from .respondents.sources import embedded_path

RECIPE = ["data", "share", "genre", "layers", "tuning", "epochs", "lr", "seed"]


def population(name: str = "embedded") -> list[str]:
    """Names of the respondents of a population.

    Parameters
    ----------
    name : str
        ``"embedded"``, the population that comes with the project, or a comma-separated list of
        respondents (embedded members, local folders, hub ids), which is taken as it is.

    Returns
    -------
    list of str

    Raises
    ------
    RespondentError
        The name is empty, or no member of the embedded population is there.

    Examples
    --------
    >>> population("bert-large-mnli, my-model")
    ['bert-large-mnli', 'my-model']
    """
    if name == "embedded":
        names = [member for member in population_table()["respondent_id"] if embedded_path(member)]
        if not names:
            raise RespondentError("data/population holds no adapters: run `make population`.")
        return names
    names = [part.strip() for part in name.split(",") if part.strip()]
    if not names:
        raise RespondentError("The population has no respondents: name at least one.")
    return names


def population_table() -> pd.DataFrame:
    """Recipe, seed and held-out accuracy of each embedded member, one row each.

    Returns
    -------
    DataFrame
        ``respondent_id``; the recipe ``data, share`` (of the data), ``genre`` (the encoder was
        first adapted to), ``layers, tuning, epochs, lr, seed``; the result ``pairs`` trained on,
        ``accuracy`` on held-out MNLI with its Wilson 95 % interval ``low, high``,
        ``accuracy_snli`` (only where SNLI was not trained on) and ``seconds`` of training.
    """
    return pd.read_csv(data_dir() / "population.csv", dtype={"genre": str, "data": str})
