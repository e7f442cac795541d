"""Evidence that a scale measures what it says: content, consistency, construct, multiverse."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from .exceptions import DataError, ParameterError
from .prompts import prompts
from .questionnaires import Questionnaire
from .reliability import alpha
from .scoring import keyed_items, pss

WORDING_VARIABLE = "PSYCHOMETRICS_WORDING"
RATINGS = ("meaning_kept", "natural", "neutral", "measures_it")


def content(
    questionnaire: Questionnaire,
    encoder: str = "embedded",
    acceptability: str | None = "embedded",
) -> pd.DataFrame:
    """Semantic similarity to the item, and linguistic acceptability, of every prompt.

    Parameters
    ----------
    questionnaire : Questionnaire
        Where its wording is not ``verbatim``, the items' own wording is read from the file named
        by ``PSYCHOMETRICS_WORDING`` if that has it.
    encoder : str
        A sentence-transformers model: ``"embedded"``, a local folder or a hub id.
    acceptability : str or None
        As in :func:`psychometrics.respondents.embedded.load_acceptability`; None leaves acceptability out.

    Returns
    -------
    DataFrame
        ``item_id, template, term, polarity, intensifier``; ``similarity``, the cosine of item and
        prompt (premise and hypothesis together), from -1 to 1; ``acceptability``, the mean
        probability over premise and hypothesis; ``wording``, what the item's text was: verbatim,
        original (from the user's file) or paraphrase.

    References
    ----------
    Reuben et al. (2024), section 3.3 (content validity).

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> content(load_questionnaire("gad7"))["similarity"].mean()  # doctest: +SKIP
    0.64
    """
    from sentence_transformers import SentenceTransformer

    from .respondents.sources import base_path
    from .respondents.loading import quietly

    table = prompts(questionnaire)
    texts, wording = item_texts(questionnaire)
    with quietly():
        model = SentenceTransformer(base_path() if encoder == "embedded" else encoder)
    options = {"normalize_embeddings": True, "show_progress_bar": False}
    items = dict(zip(texts, model.encode(list(texts.values()), **options), strict=True))
    answers = model.encode((table["premise"] + " " + table["hypothesis"]).tolist(), **options)
    frame = table[["item_id", "template", "term", "polarity", "intensifier"]].copy()
    frame["similarity"] = [
        float(items[item] @ answer) for item, answer in zip(table["item_id"], answers, strict=True)
    ]
    if acceptability is not None:
        from .respondents.embedded import acceptability as judged

        sentences = [*table["premise"], *table["hypothesis"]]
        frame["acceptability"] = judged(sentences, acceptability).reshape(2, -1).mean(axis=0)
    return frame.assign(wording=wording)


def item_texts(questionnaire: Questionnaire) -> tuple[dict[str, str], str]:
    """The items' texts by id, and what they are: verbatim, original or paraphrase.

    Raises
    ------
    DataError
        The file named by ``PSYCHOMETRICS_WORDING`` cannot be read, lacks a column, or has
        another number of items.
    """
    own = {item.id: item.text for item in questionnaire.items}
    if questionnaire.wording == "verbatim":
        return own, "verbatim"
    named = os.environ.get(WORDING_VARIABLE)
    if not named:
        return own, "paraphrase"
    path = Path(named).expanduser()
    if not path.is_file():
        raise DataError(f"{WORDING_VARIABLE} names {named}, which is no file: correct or unset it.")
    table = pd.read_csv(path)
    if missing := {"instrument", "wording"} - set(table.columns):
        raise DataError(f"{path} lacks the column(s) {', '.join(sorted(missing))}: add them.")
    rows = table.loc[table["instrument"] == questionnaire.short_title, "wording"].tolist()
    if not rows:
        return own, "paraphrase"
    if len(rows) != len(own):
        raise DataError(
            f"{path} has {len(rows)} items of {questionnaire.short_title}, which has {len(own)}: "
            f"give one row per item, in order."
        )
    return dict(zip(own, rows, strict=True)), "original"


def silhouette(shares: pd.DataFrame) -> pd.DataFrame:
    """Silhouette of source against inverse terms on their PSS rows, per respondent and item.

    Parameters
    ----------
    shares : DataFrame
        As :func:`psychometrics.scoring.pss` gives it.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, item_id, silhouette``, from -1 (each term is closer to
        the other kind) to 1 (two tight groups); correlation distance, mean over the item's
        templates. Rows without variance are as far from each other as uncorrelated ones.

    References
    ----------
    Reuben et al. (2024), section 3.3 (intra-question consistency); Rousseeuw (1987).
    """
    rows = []
    keys = ["questionnaire", "item_id", "template"]
    for (questionnaire, item, _), part in shares.groupby(keys, sort=False):
        columns = part.groupby(["level", "intensifier"], sort=True).ngroup()
        table = part.assign(column=columns).pivot(
            index=["respondent_id", "polarity", "term"], columns="column", values="pss"
        )
        for name, own in table.groupby(level="respondent_id", sort=False):
            labels = own.index.get_level_values("polarity").to_numpy()
            rows.append((name, questionnaire, item, _silhouette(own.to_numpy(), labels)))
    columns = ["respondent_id", "questionnaire", "item_id", "silhouette"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.groupby(columns[:3], sort=False)["silhouette"].mean().reset_index()


def normal_scores(values: pd.DataFrame | pd.Series) -> pd.DataFrame | pd.Series:
    """Replace each value by the normal quantile of its rank (van der Waerden), column by column.

    Parameters
    ----------
    values : DataFrame or Series, R rows

    Returns
    -------
    DataFrame or Series
        Same shape; ties share the mean rank.

    Examples
    --------
    >>> normal_scores(pd.Series([10.0, 30.0, 20.0])).round(2).tolist()
    [-0.67, 0.67, 0.0]
    """
    from scipy.stats import norm

    shares = values.rank() / (len(values) + 1)
    return shares.copy().mask(shares.notna(), norm.ppf(shares))


def correlations(
    scores: pd.DataFrame,
    pairs: Sequence[tuple[str, str]],
    reliabilities: pd.Series | None = None,
    n_resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Correlations between scales over respondents, with what is needed to judge them.

    Parameters
    ----------
    scores : DataFrame, shape (R, scales)
        Scale scores, respondents as index.
    pairs : sequence of (str, str)
        Which columns to correlate.
    reliabilities : Series, optional
        Reliability by scale, for the correction for attenuation.
    n_resamples : int
        Bootstrap samples, and permutations.
    seed : int
        Seed of both.

    Returns
    -------
    DataFrame
        Per pair: ``n``; ``spearman`` with its percentile interval ``spearman_low, spearman_high``;
        ``pearson`` of the normal scores with ``pearson_low, pearson_high``; ``p``, two-sided, by
        permutation of Spearman's rho; ``p_holm`` over the pairs; ``corrected``, Pearson's r over
        the root of the product of the reliabilities (it may exceed 1).

    Raises
    ------
    ParameterError
        There are fewer than four respondents.

    References
    ----------
    Reuben et al. (2024), section 4 (construct validity); Spearman (1904) for attenuation;
    Phipson and Smyth (2010) for p values that are never zero; Holm (1979).
    """
    import pingouin

    if len(scores) < 4:
        raise ParameterError(f"At least 4 respondents are needed, got {len(scores)}.")
    rows = []
    for first, second in pairs:
        x, y = scores[first].to_numpy(), scores[second].to_numpy()
        rank = _bootstrap_correlation(_ranks(x), _ranks(y), n_resamples, seed, again=_ranks)
        normal = [normal_scores(pd.Series(v)).to_numpy() for v in (x, y)]
        pearson = _bootstrap_correlation(*normal, n_resamples, seed)
        row = {"first": first, "second": second, "n": len(scores)}
        row |= dict(zip(("spearman", "spearman_low", "spearman_high"), rank, strict=True))
        row |= dict(zip(("pearson", "pearson_low", "pearson_high"), pearson, strict=True))
        row["p"] = _permutation_p(_ranks(x), _ranks(y), n_resamples, seed)
        if reliabilities is not None:
            product = max(reliabilities[first], 0) * max(reliabilities[second], 0)
            row["corrected"] = pearson[0] / np.sqrt(product) if product else np.nan
        rows.append(row)
    frame = pd.DataFrame(rows)
    _, adjusted = pingouin.multicomp(frame["p"].to_numpy(), method="holm")
    frame.insert(frame.columns.get_loc("p") + 1, "p_holm", adjusted)
    return frame


def partial_correlations(
    scores: pd.DataFrame, pairs: Sequence[tuple[str, str]], control: pd.Series
) -> pd.DataFrame:
    """Spearman correlations between scales with a third variable held constant.

    Parameters
    ----------
    scores : DataFrame, shape (R, scales)
    pairs : sequence of (str, str)
    control : Series, shape (R,)
        What to hold constant, on the same index.

    Returns
    -------
    DataFrame
        ``first, second, n, partial, low, high, p``; 95 % interval by Fisher's z, from pingouin.
    """
    import pingouin

    table = scores.assign(control=control)
    rows = []
    for first, second in pairs:
        result = pingouin.partial_corr(table, first, second, "control", method="spearman").iloc[0]
        low, high = result["CI95"] if "CI95" in result else result["CI95%"]
        p = result["p_val"] if "p_val" in result else result["p-val"]
        rows.append([first, second, int(result["n"]), result["r"], low, high, p])
    return pd.DataFrame(rows, columns=["first", "second", "n", "partial", "low", "high", "p"])


def decisiveness(shares: pd.DataFrame) -> pd.Series:
    """How far a respondent's PSS lie from an even spread, whatever their direction.

    Parameters
    ----------
    shares : DataFrame
        As :func:`psychometrics.scoring.pss` gives it.

    Returns
    -------
    Series
        Root mean square deviation from the even spread, in per cent of it, by respondent.
    """
    keys = ["respondent_id", "questionnaire", "item_id", "template", "polarity", "term"]
    even = 1 / shares.groupby(keys)["pss"].transform("size")
    squares = ((shares["pss"] - even) / even) ** 2
    return 100 * squares.groupby(shares["respondent_id"], sort=False).mean().pow(0.5)


def source_inverse_agreement(
    responses: pd.DataFrame,
    questionnaires: Sequence[Questionnaire],
    score: str = "entailment",
    temperature: float = 1.0,
) -> pd.Series:
    """Spearman correlation of scores from source terms and from reversed inverse terms.

    Agreeing with everything raises the one and lowers the other, so that it shows as a negative
    correlation.

    Parameters
    ----------
    responses : DataFrame
        As :func:`psychometrics.ask` gives them.
    questionnaires : sequence of Questionnaire
    score, temperature
        As in :func:`psychometrics.item_scores`.

    Returns
    -------
    Series
        Correlations over respondents, by questionnaire.
    """
    shares = pss(responses, score, temperature)
    shares["score"] = shares["pss"] * shares["weight"] * shares["polarity"]
    keys = ["respondent_id", "questionnaire", "item_id"]
    found = {}
    for questionnaire in questionnaires:
        source, inverse = (
            keyed_items(
                shares[shares["polarity"] == polarity].groupby(keys)["score"].mean().reset_index(),
                questionnaire,
            ).mean(axis=1)
            for polarity in (1, -1)
        )
        found[questionnaire.id] = source.corr(inverse, "spearman")
    return pd.Series(found)


def reliability_table(items: pd.DataFrame, questionnaires: Sequence[Questionnaire]) -> pd.DataFrame:
    """Alpha with its interval, and omega, of every scale and subscale.

    Parameters
    ----------
    items : DataFrame
        As :func:`psychometrics.scoring.item_scores` gives them.
    questionnaires : sequence of Questionnaire

    Returns
    -------
    DataFrame
        ``scale, title, items, alpha, low, high, omega``, one row per scale.
    """
    from .reliability import omega

    rows = []
    for questionnaire in questionnaires:
        matrix = keyed_items(items, questionnaire)
        for scale in questionnaire.scales:
            own = matrix[[item.id for item in questionnaire.members(scale)]]
            rows.append(
                {"scale": scale.id, "title": scale.title, "items": own.shape[1]}
                | alpha(own).to_dict()
                | {"omega": omega(own) if own.shape[1] > 2 else np.nan}
            )
    return pd.DataFrame(rows)


def multiverse(
    responses: pd.DataFrame,
    questionnaires: Sequence[Questionnaire],
    pairs: Sequence[tuple[str, str]],
    temperatures: Sequence[float] = (0.5, 1.0, 2.0),
) -> pd.DataFrame:
    """Correlations between whole scales under every defensible choice.

    Parameters
    ----------
    responses : DataFrame
        Answers to all the questionnaires, as :func:`psychometrics.ask` gives them.
    questionnaires : sequence of Questionnaire
    pairs : sequence of (str, str)
        Ids of the questionnaires to correlate.
    temperatures : sequence of float
        Of the two-way normalisation.

    Returns
    -------
    DataFrame
        One row per pair and specification: ``first, second, score`` (entailment or contrast)``,
        temperature, terms`` (source, inverse or both)``, templates`` (all, first or last of each
        item)``, transform`` (raw or normal scores)``, r`` (Pearson's).

    References
    ----------
    Steegen et al. (2016); Simonsohn, Simmons and Nelson (2020) for specification curves.
    """
    keys = {item.id: item.keying for q in questionnaires for item in q.items}
    rows = []
    for score, temperature in itertools.product(("entailment", "contrast"), temperatures):
        shares = pss(responses, score, temperature)
        weighted = shares["pss"] * shares["weight"] * shares["polarity"]
        table = shares[
            ["respondent_id", "questionnaire", "item_id", "template", "polarity"]
        ].assign(value=weighted * shares["item_id"].map(keys))
        number = table["template"]
        last = table.groupby("item_id")["template"].transform("max")
        kept = {"all": number > 0, "first": number == 1, "last": number == last}
        sides = {"source": [1], "inverse": [-1], "both": [1, -1]}
        for (templates, rows_kept), (terms, polarities) in itertools.product(
            kept.items(), sides.items()
        ):
            part = table[rows_kept & table["polarity"].isin(polarities)]
            per_item = part.groupby(["respondent_id", "questionnaire", "item_id"])["value"].mean()
            scales = per_item.groupby(level=[0, 1]).mean().unstack()
            for transform, values in (("raw", scales), ("normal", normal_scores(scales))):
                matrix = values.corr()
                rows += [
                    (a, b, score, temperature, terms, templates, transform, matrix.loc[a, b])
                    for a, b in pairs
                ]
    columns = ["first", "second", "score", "temperature", "terms", "templates", "transform", "r"]
    return pd.DataFrame(rows, columns=columns)


def multitrait_multimethod(scores: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Spearman correlations between traits measured by several methods.

    Parameters
    ----------
    scores : dict of DataFrame
        Scale scores (respondents by scales) by method, such as the response mode; respondents
        that some method lacks are left out.

    Returns
    -------
    DataFrame
        Square, rows and columns indexed by ``method, trait``. The same trait by two methods
        should correlate more than different traits do.

    Raises
    ------
    ParameterError
        Fewer than four respondents are common to all methods.

    References
    ----------
    Campbell and Fiske (1959).
    """
    table = pd.concat(scores, axis=1, names=["method", "trait"]).dropna()
    if len(table) < 4:
        raise ParameterError(f"At least 4 respondents are needed in all methods, got {len(table)}.")
    return table.corr("spearman")


def curation_sheet(questionnaire: Questionnaire, rater: str) -> pd.DataFrame:
    """A sheet for a panel: one row per item, what the item and its prompts say, columns to fill.

    Parameters
    ----------
    questionnaire : Questionnaire
    rater : str
        Who fills it.

    Returns
    -------
    DataFrame
        ``rater, item_id, text, templates, source, inverse``, then the empty ratings
        ``meaning_kept, natural, neutral, measures_it`` (1 yes, 0 no) and ``remark``.

    References
    ----------
    Reuben et al. (2024), section 3.3 and appendix B: the panel's criteria.

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> curation_sheet(load_questionnaire("gad7"), "A").shape
    (7, 11)
    """
    texts, _ = item_texts(questionnaire)
    rows = []
    for item in questionnaire.items:
        terms = [template.terms or item.terms for template in item.templates]
        rows.append(
            {
                "rater": rater,
                "item_id": item.id,
                "text": texts[item.id],
                "templates": " | ".join(f"{t.premise} {t.hypothesis}" for t in item.templates),
                "source": " | ".join(", ".join(t.source) for t in terms if t),
                "inverse": " | ".join(", ".join(t.inverse) for t in terms if t),
                **dict.fromkeys(RATINGS, ""),
                "remark": "",
            }
        )
    return pd.DataFrame(rows)


def read_curation(paths: Sequence[str | Path]) -> pd.DataFrame:
    """Read filled curation sheets.

    Returns
    -------
    DataFrame
        ``rater, item_id, criterion, rating``; unrated cells are left out.

    Raises
    ------
    DataError
        A sheet lacks a column, or a rating is neither 0 nor 1.
    """
    parts = []
    for path in paths:
        sheet = pd.read_csv(path, dtype=str)
        if missing := {"rater", "item_id", *RATINGS} - set(sheet.columns):
            raise DataError(f"{path} lacks the column(s) {', '.join(sorted(missing))}: add them.")
        long = sheet.melt(["rater", "item_id"], list(RATINGS), "criterion", "rating").dropna()
        wrong = long[~long["rating"].str.strip().isin(["0", "1"])]
        if len(wrong):
            first = wrong.iloc[0]
            raise DataError(
                f"{path}, item {first['item_id']}, {first['criterion']}: a rating is 0 or 1, "
                f"got '{first['rating']}'."
            )
        parts.append(long.assign(rating=long["rating"].astype(int)))
    return pd.concat(parts, ignore_index=True)


def rater_agreement(ratings: pd.DataFrame) -> pd.DataFrame:
    """Agreement between raters, per criterion.

    Parameters
    ----------
    ratings : DataFrame
        As :func:`read_curation` gives them.

    Returns
    -------
    DataFrame
        Indexed by criterion: ``raters, items, agreement`` (share of agreeing pairs of ratings)``,
        fleiss_kappa`` (items that all rated)``, krippendorff_alpha`` (all items; nominal).

    Raises
    ------
    ParameterError
        There are fewer than two raters.

    References
    ----------
    Fleiss (1971), by statsmodels; Krippendorff (2011), by the package krippendorff.
    """
    import krippendorff
    from statsmodels.stats.inter_rater import fleiss_kappa

    rows = {}
    for criterion, part in ratings.groupby("criterion", sort=False):
        table = part.pivot(index="item_id", columns="rater", values="rating")
        if table.shape[1] < 2:
            raise ParameterError("Agreement needs at least two raters: give another sheet.")
        complete = table.dropna().to_numpy(dtype=int)
        counts = np.stack([(complete == value).sum(axis=1) for value in (0, 1)], axis=1)
        varied = table.stack().nunique() > 1
        n = complete.shape[1]
        agreeing = (counts * (counts - 1)).sum() / (len(complete) * n * (n - 1))
        rows[criterion] = {
            "raters": n,
            "items": len(table),
            "agreement": agreeing,
            "fleiss_kappa": fleiss_kappa(counts) if varied else np.nan,
            "krippendorff_alpha": krippendorff.alpha(
                table.to_numpy(dtype=float).T, level_of_measurement="nominal"
            )
            if varied
            else np.nan,
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("criterion")


def _silhouette(rows: np.ndarray, labels: np.ndarray) -> float:
    from sklearn.metrics import silhouette_score

    centred = rows - rows.mean(axis=1, keepdims=True)
    length = np.linalg.norm(centred, axis=1)
    units = np.divide(
        centred, length[:, None], out=np.zeros_like(rows), where=length[:, None] > 1e-12
    )
    distance = np.clip(1 - units @ units.T, 0, 2)
    np.fill_diagonal(distance, 0)
    return float(silhouette_score(distance, labels, metric="precomputed"))


def _ranks(values: np.ndarray) -> np.ndarray:
    from scipy.stats import rankdata

    return rankdata(values, axis=-1)


def _bootstrap_correlation(x, y, n_resamples: int, seed: int, again=None) -> tuple:
    """Correlation and its percentile interval; samples are transformed anew where asked."""
    draws = np.random.default_rng(seed).integers(0, len(x), size=(n_resamples, len(x)))
    xs, ys = (x[draws], y[draws]) if again is None else (again(x[draws]), again(y[draws]))
    values = _row_correlations(xs, ys)
    low, high = np.nanquantile(values, [0.025, 0.975])
    return float(np.corrcoef(x, y)[0, 1]), float(low), float(high)


def _permutation_p(x, y, n_resamples: int, seed: int) -> float:
    shuffled = np.random.default_rng(seed).permuted(np.tile(y, (n_resamples, 1)), axis=1)
    observed = abs(np.corrcoef(x, y)[0, 1])
    drawn = np.abs(_row_correlations(np.tile(x, (n_resamples, 1)), shuffled))
    return float((1 + (drawn >= observed - 1e-12).sum()) / (n_resamples + 1))


def _row_correlations(xs: np.ndarray, ys: np.ndarray) -> np.ndarray:
    xs = xs - xs.mean(axis=1, keepdims=True)
    ys = ys - ys.mean(axis=1, keepdims=True)
    norms = np.sqrt((xs**2).sum(axis=1) * (ys**2).sum(axis=1))
    return np.divide((xs * ys).sum(axis=1), norms, out=np.full(len(xs), np.nan), where=norms > 0)
