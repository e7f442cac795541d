"""Who answers: names of respondents, and the table of the embedded NLI models, of two families.

``data/population.csv`` holds each member's recipe and its accuracy on the held-out MNLI pairs that
no member was trained on; :mod:`psychometrics.make.population` trains them. Encoders are
adapters and a head on MiniLM, decoders adapters on SmolLM2 that answer by a word.
"""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from .exceptions import RespondentError
from .paths import data_dir
from .respondents.sources import embedded_path

RECIPE = ["data", "share", "genre", "layers", "tuning", "epochs", "lr", "seed"]
"""What makes a member, besides its family; a decoder's adapter has a rank and a wording, too."""
FAMILIES = {"encoders": "MiniLM", "decoders": "SmolLM2"}
"""Names of populations, and the family that each is of."""


def population(name: str = "embedded") -> list[str]:
    """Names of the respondents of a population.

    Parameters
    ----------
    name : str
        ``"embedded"``, the population that comes with the project; ``"encoders"`` or
        ``"decoders"``, all embedded members of one family; or a comma-separated list of respondents
        (embedded members, local folders, hub ids), which is taken as it is. The default one has
        all decoders and, of the encoders, the most accurate of each kind of data, depth and genre
        and the frozen ones.

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
    >>> len(population("encoders"))
    24
    """
    if name == "embedded" or name in FAMILIES:
        table = population_table()
        chosen = table["default"] if name == "embedded" else table["family"] == FAMILIES[name]
        names = [member for member in table.loc[chosen, "respondent_id"] if embedded_path(member)]
        if not names:
            raise RespondentError("data/population holds no adapters: run `make population`.")
        return names
    names = [part.strip() for part in name.split(",") if part.strip()]
    if not names:
        raise RespondentError("The population has no respondents: name at least one.")
    return names


def readable_names(names: Iterable[str]) -> dict[str, str]:
    """What respondents are called in figures: family, pairs of what data, what is special.

    Parameters
    ----------
    names : iterable of str
        Names of respondents; those that do not come with the project keep their name, folders
        their last part.

    Returns
    -------
    dict
        From each name to the one to show. No two are equal: a seed is added where it decides.

    Examples
    --------
    >>> readable_names(["minilm-both-l6-s1", "smol-mnli6k-d22-r10-s4"])
    {'minilm-both-l6-s1': 'MiniLM, 36k MNLI+SNLI', 'smol-mnli6k-d22-r10-s4': 'SmolLM2, 6k MNLI, ...
    """
    table = population_table().set_index("respondent_id")
    full = table.groupby("family")["layers"].max()
    shown = {}
    for name in dict.fromkeys(names):
        if name not in table.index:
            short = name.rstrip("/").rpartition("/")[2] or name
            shown[name] = "SmolLM2" if name == "smollm2" else short
            continue
        row = table.loc[name]
        pairs = f"{row['pairs'] / 1000:.0f}k" if row["pairs"] >= 3000 else f"{row['pairs']:.0f}"
        parts = [row["family"], f"{pairs} {row['data'].upper()}"]
        parts += [row["genre"]] if isinstance(row["genre"], str) else []
        parts += ["frozen"] if row["tuning"] == "frozen" else []
        parts += [f"{row['layers']:.0f} layers"] if row["layers"] < full[row["family"]] else []
        shown[name] = ", ".join(parts)
    twice = {label for label in shown.values() if list(shown.values()).count(label) > 1}
    return {
        name: f"{label} ({name.rpartition('-')[2] if name in table.index else name})"
        if label in twice
        else label
        for name, label in shown.items()
    }


def untouched_bases(names: list[str]) -> dict[str, list]:
    """What a population's null respondents stand on: its members' bases, before any training.

    Parameters
    ----------
    names : list of str
        Of respondents; those that are no embedded members stand on the whole encoder.

    Returns
    -------
    dict
        ``base`` and ``layers``, one each a respondent, as :func:`psychometrics.nulls.null_answers`
        takes them.

    Examples
    --------
    >>> untouched_bases(["minilm-snli-l3-s17", "smol-mnli6k-r8-s1"])
    {'base': ['embedded', 'smollm2'], 'layers': [3, None]}
    """
    table = population_table().set_index("respondent_id").reindex(names)
    decoders = table["family"] == FAMILIES["decoders"]
    deep = table["layers"].where(~decoders)
    return {
        "base": ["smollm2" if decoder else "embedded" for decoder in decoders],
        "layers": [None if depth != depth else int(depth) for depth in deep],
    }


def population_table() -> pd.DataFrame:
    """Recipe, seed and held-out accuracy of each embedded member, one row each.

    Returns
    -------
    DataFrame
        ``respondent_id``; ``family``; ``default``, whether ``population("embedded")`` has it; the
        recipe ``data, share`` (of the data), ``genre`` (the encoder was first adapted to),
        ``layers, tuning, epochs, lr, seed``, of decoders ``rank, adapt_from`` (the first layer
        adapted) and ``wording`` too; the result ``pairs`` trained on, ``accuracy`` on held-out
        MNLI with its Wilson 95 % interval ``low, high``, ``accuracy_snli`` (only where SNLI was
        not trained on) and ``seconds`` of training.
    """
    texts = {"genre": str, "data": str, "wording": str}
    return pd.read_csv(data_dir() / "population.csv", dtype=texts)
