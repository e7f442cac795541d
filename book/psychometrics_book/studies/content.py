"""Content validity: prompts' similarity to their items, acceptability, and ratings by a panel."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from psychometrics.checks import check_columns, check_names
from psychometrics.data import text_table
from psychometrics.exceptions import DataError, ParameterError
from psychometrics.models.embedded import acceptability as judged
from psychometrics.models.sources import base_path
from psychometrics.questionnaires import Questionnaire, load_questionnaire
from psychometrics.questionnaires.prompts import prompts

from .sentence_encoders import load_sentence_encoder

_WORDING_VARIABLE = "PSYCHOMETRICS_WORDING"
# The criteria that the panel of Reuben et al. (2024), appendix B, rates.
_RATINGS = ("meaning_kept", "natural", "neutral", "measures_it")


def content_validity(
    questionnaire: Questionnaire, encoder: str = "embedded", acceptability: str | None = "embedded"
) -> pd.DataFrame:
    r"""Return the similarity to the item and the linguistic acceptability of every prompt.

    The embeddings :math:`e` of the item, and of premise and hypothesis together, have unit length:

    .. math:: SS = e_{\text{item}} \cdot e_{\text{prompt}}, \qquad
              LA = \tfrac12 (p_{\text{premise}} + p_{\text{hypothesis}})

    Parameters
    ----------
    questionnaire : Questionnaire, name or path
        The questionnaire. If its wording is not ``verbatim``, the items' original wording is read
        from the file named by ``PSYCHOMETRICS_WORDING``, if that file contains the questionnaire.
    encoder : str
        A sentence-transformers model: ``"embedded"``, a local folder or a hub id.
    acceptability : str or None
        Model of acceptability, as in :func:`psychometrics.models.embedded.acceptability`; None
        leaves acceptability out.

    Returns
    -------
    DataFrame
        ``item_id, template, term, polarity, intensifier``; ``similarity``, the cosine of item and
        prompt (premise and hypothesis together), from -1 to 1; ``stranger``, the cosine of the
        prompt and the *next* item (after the last, the first), a baseline; ``acceptability``, the
        mean probability over premise and hypothesis; ``wording``, the source of the item's text:
        verbatim, original (from the user's file) or paraphrase.

    Raises
    ------
    RespondentError
        The encoder or the acceptability model cannot be loaded.
    DataError
        The file named by ``PSYCHOMETRICS_WORDING`` cannot be read, lacks a column, or has a
        different number of items.

    References
    ----------
    Reuben et al. (2024), section 3.3 (content validity).

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> table = content_validity(load_questionnaire("challenges"), acceptability=None)
    >>> round(float(table["similarity"].mean()), 2)
    0.32
    """
    questionnaire = load_questionnaire(questionnaire)
    table = prompts(questionnaire)
    texts, wording = _item_texts(questionnaire)
    model = load_sentence_encoder(base_path() if encoder == "embedded" else encoder)
    options = {"normalize_embeddings": True, "show_progress_bar": False}
    items = dict(zip(texts, model.encode(list(texts.values()), **options), strict=True))
    answers = model.encode((table["premise"] + " " + table["hypothesis"]).tolist(), **options)
    frame = table[["item_id", "template", "term", "polarity", "intensifier"]].copy()
    following = dict(zip(items, [*list(items)[1:], next(iter(items))], strict=True))
    strangers = table["item_id"].map(following)
    for column, ids in (("similarity", table["item_id"]), ("stranger", strangers)):
        frame[column] = [float(items[i] @ answer) for i, answer in zip(ids, answers, strict=True)]

    if acceptability is not None:
        sentences = [*table["premise"], *table["hypothesis"]]
        frame["acceptability"] = judged(sentences, acceptability).reshape(2, -1).mean(axis=0)

    return frame.assign(wording=wording)


def rater_agreement(
    sheets: pd.DataFrame,
    criteria: Sequence[str] = _RATINGS,
    items: Sequence[str] = ("item_id",),
    labels: Sequence = (0, 1),
) -> pd.DataFrame:
    """Return the agreement between raters on each criterion.

    Parameters
    ----------
    sheets : DataFrame
        Ratings of all raters in long format: one row per rater and item.
    criteria : sequence of str
        The columns that the raters filled in; a missing value is a missing rating.
    items : sequence of str
        The columns that identify the item of a row.
    labels : sequence
        The permitted ratings.

    Returns
    -------
    DataFrame
        Indexed by criterion: ``raters, items, agreement`` (share of agreeing pairs of ratings),
        ``fleiss_kappa`` (items rated by all), ``krippendorff_alpha`` (all items; nominal).

    Raises
    ------
    ParameterError
        There are fewer than two raters, no item was rated by all, a rater rated an item twice, or a
        rating is not among the labels.

    References
    ----------
    Fleiss (1971), computed by statsmodels; Krippendorff (2011), case C, nominal data.

    Examples
    --------
    >>> sheets = pd.DataFrame({"rater": list("aabb"), "item_id": [1, 2, 1, 2],
    ...                        "natural": [0, 1, 0, 1]})
    >>> rater_agreement(sheets, ["natural"])["fleiss_kappa"].item()
    1.0
    """
    # Imported here because it is slow and only panels need it.
    from statsmodels.stats.inter_rater import fleiss_kappa

    check_names(criteria=criteria, items=items, labels=labels)
    check_columns(sheets, ["rater", *items], once=["rater", *items], gaps=criteria)
    rows = {}
    for criterion in criteria:
        rated = sheets.dropna(subset=[criterion])
        codes = pd.Index(list(labels)).get_indexer(rated[criterion])
        if (codes < 0).any():
            wrong = rated[criterion].iloc[codes.argmin()]
            allowed = ", ".join(map(str, labels))
            raise ParameterError(f"{criterion}: a rating must be one of {allowed}, got {wrong!r}.")

        table = rated.assign(code=codes).pivot(index=list(items), columns="rater", values="code")
        complete = table.dropna().to_numpy(dtype=int)
        if table.shape[1] < 2 or not len(complete):
            raise ParameterError(f"{criterion}: no item has two raters; have items rated twice.")

        n = complete.shape[1]
        counts = (complete[:, :, None] == np.arange(len(labels))).sum(axis=1)
        row = {"raters": n, "items": len(table)}
        row["agreement"] = (counts * (counts - 1)).sum() / (len(counts) * n * (n - 1))
        row["fleiss_kappa"] = fleiss_kappa(counts) if np.ptp(complete) else np.nan
        row["krippendorff_alpha"] = np.nan

        if len(set(codes)) > 1:
            row["krippendorff_alpha"] = _krippendorff_alpha(table.to_numpy(), len(labels))

        rows[criterion] = row

    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("criterion")


def _krippendorff_alpha(codes: np.ndarray, labels: int) -> float:
    """Return 1 - observed / expected disagreement; codes (items, raters) may be NaN."""
    counts = (codes[:, :, None] == np.arange(labels)).sum(axis=1)
    counts = counts[counts.sum(axis=1) > 1]  # an item with one rating has no pair
    raters = counts.sum(axis=1)
    totals = counts.sum(axis=0)
    n = totals.sum()
    unlike = (raters**2 - (counts**2).sum(axis=1)) / (raters - 1)
    expected = n**2 - (totals**2).sum()

    return 1 - (n - 1) * unlike.sum() / expected if expected else np.nan


def _item_texts(questionnaire: Questionnaire) -> tuple[dict[str, str], str]:
    """Return the items' texts by id, and their source: verbatim, original or paraphrase."""
    texts = {item.id: item.text for item in questionnaire.items}
    if questionnaire.wording == "verbatim":
        return texts, "verbatim"

    named = os.environ.get(_WORDING_VARIABLE)
    if not named:
        return texts, "paraphrase"

    path = Path(named).expanduser()
    if not path.is_file():
        raise DataError(f"{_WORDING_VARIABLE} names {named}, which is not a file: name one.")

    table = text_table(path, ("instrument", "wording"))
    rows = table.loc[table["instrument"] == questionnaire.short_title, "wording"].tolist()
    if not rows:
        return texts, "paraphrase"

    if len(rows) != len(texts):
        name = questionnaire.short_title
        raise DataError(
            f"{path} has {len(rows)} item(s) of {name}, not {len(texts)}; correct them."
        )

    return dict(zip(texts, rows, strict=True)), "original"
