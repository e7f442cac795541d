"""Answers to questionnaires that others have published: of models, and of people.

Readers bring each published set into the package's table of answers; :func:`shipped` gives what of
it comes with the project. What is known to be wrong in the files is mended here, and said.
"""

from __future__ import annotations

import functools
import json
import re
import zlib
from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..asking.answers import COLUMNS, check_columns, check_numbers, tidy
from ..data import fetch, registry
from ..exceptions import DataError, ParameterError
from ..paths import data_dir
from ..questionnaires import Questionnaire, load_questionnaire

MODELS = (
    "llama3.1-8b", "llama3.3-70b", "mistral-7b", "mistral-large-123b", "qwen2.5-7b", "qwen2.5-72b",
)  # fmt: skip
"""Of ``llm_questionnaires``, by family and size."""
CONDITIONS = ("baseline", "history", "inverted")
"""Ways in which they were asked: each item in a call of its own; with the last questions and
answers, a window of five, in view; the same with reversed labels."""
SOURCES = (
    "llm_questionnaires", "survey", "llmpersonality", "ai_like_humans", "students_mexico",
    "students_bmi", "adults_peru",
)  # fmt: skip
"""Published sets of answers."""
YEARS = {"llm_questionnaires": 2024, "llmpersonality": 2024, "ai_like_humans": 2026}
"""When the models of each set came out, or, of the last, were asked."""
_LABELS = {
    "very inaccurate": 1, "moderately inaccurate": 2, "neither accurate nor inaccurate": 3,
    "moderately accurate": 4, "very accurate": 5,
}  # fmt: skip
_SOC_TURNED = (1, 2, 3, 7, 10)
"""Items whose published answers run from coherent to not."""
_FILES = ("answers.csv.gz", "counts.csv.gz", "moments.parquet", "by_score.parquet", "fit.csv")


def answers(source: str) -> pd.DataFrame:
    """A published set of answers, as the package's table.

    Parameters
    ----------
    source : str
        One of ``SOURCES``: ``llm_questionnaires`` (IPIP-50, six open models, up to 1,000 runs
        in three conditions), ``survey`` (IPIP-50, 19,719 people), ``llmpersonality`` (IPIP-50,
        twelve models of 2024), ``ai_like_humans`` (BFI, eight models of 2026), ``students_mexico``
        (PHQ-9 and GAD-7), ``students_bmi`` (these and the PSS-10), ``adults_peru`` (SOC-13).

    Returns
    -------
    DataFrame
        The columns of every table of answers, and ``condition``. Answers to inverted labels are
        turned round, so that a high value agrees with the item everywhere; those to SOC-13 point
        where the items of our own wording do.

    Raises
    ------
    DataError
        A file cannot be had.
    ParameterError
        The source is none of these.

    Notes
    -----
    Mended: the headers of ``llm_questionnaires`` name the domains in another order than that of
    its values; a missing answer of the survey is 0; ``gad5`` of one Mexican student is 10, for 1;
    one model of ``llmpersonality`` wrote a number beside the label that means the opposite, where
    the label counts, and one repeated the labels before its answers, where the last number counts.
    Left out: the condition with cycled items, whose values fit neither its header nor the order of
    the items, and the heights, weights and diagnoses of people.

    References
    ----------
    Münker (2025); Anand (2024); AI Like Humans Contributors (2026); the people's sets as the
    registry names them.

    Examples
    --------
    >>> answers("weather")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: source must be one of llm_questionnaires, survey, \
llmpersonality, ai_like_humans, students_mexico, students_bmi, adults_peru, got 'weather'.
    """
    if source not in SOURCES:
        raise ParameterError(f"source must be one of {', '.join(SOURCES)}, got '{source}'.")
    return {
        "llm_questionnaires": _runs,
        "survey": _survey,
        "llmpersonality": _llmpersonality,
        "ai_like_humans": _ai_like_humans,
        "students_mexico": _students_mexico,
        "students_bmi": _students_bmi,
        "adults_peru": _adults_peru,
    }[source]()


def _keys_of(source: str) -> list[str]:
    """Files of a set, as ``data/registry.yml`` calls them.

    Parameters
    ----------
    source : str
        One of ``SOURCES``.

    Returns
    -------
    list of str
        For :func:`psychometrics.data.available`.

    Examples
    --------
    >>> _keys_of("adults_peru")
    ['adults_peru']
    """
    if source == "survey":
        return ["llm_questionnaires_items", "llm_questionnaires_people"]
    if source == "llm_questionnaires":
        names = [f"{source}_{c}_{m}" for c in CONDITIONS for m in MODELS]
        return ["llm_questionnaires_items", *names]
    return [key for key in registry() if key.startswith(source)]


def shipped(name: str) -> pd.DataFrame:
    """What of the published sets comes with the project.

    Parameters
    ----------
    name : {"answers", "counts", "moments", "by_score", "fit"}
        ``answers``: those of the sets under the MIT licence, item by item. Of the others, figures
        alone. ``counts``: how many runs or people gave each answer (``respondent_id, condition,
        item_id, missing, 1 … 5``). ``moments``: means and covariances of keyed answers, over runs
        or people without a gap (``respondent_id, condition, item_id, n, mean`` and one column an
        item), for groups of at least 60. ``by_score``: of the keyed answers to an item, by the sum
        of its scale, ``n, sum, squares``. ``fit``: how the answers of one run or person suit those
        of people.

    Returns
    -------
    DataFrame

    Raises
    ------
    ParameterError
        The name is another.

    Examples
    --------
    >>> people = shipped("counts").query("respondent_id == 'people'")
    >>> int(people.iloc[0][["missing", "1", "2", "3", "4", "5"]].sum())
    19719
    """
    files = {file.partition(".")[0]: file for file in _FILES}
    if name not in files:
        raise ParameterError(f"name must be one of {', '.join(files)}, got '{name}'.")
    path = data_dir() / "published" / files[name]
    read = pd.read_parquet if path.suffix == ".parquet" else pd.read_csv
    return read(path)


def stand_in(
    moments: pd.DataFrame, respondent: str, condition: str = "people", rows: int | None = None
) -> pd.DataFrame:
    """Rows with exactly the means and covariances of a group whose answers are not shipped.

    Everything that is a function of means and covariances alone (alpha, omega, correlations,
    components, variance components) is the same as for the answers themselves.

    Parameters
    ----------
    moments : DataFrame
        As :func:`shipped` gives them.
    respondent, condition : str
        Which group.
    rows : int, optional
        How many; by default as many as there were. More than items.

    Returns
    -------
    DataFrame, shape (R, I)
        Keyed values. They are no answers: they are not whole, and can leave the scale.

    Raises
    ------
    ParameterError
        There is no such group, or there are too few rows.

    Examples
    --------
    >>> from psychometrics import load_questionnaire, reliability
    >>> people = stand_in(shipped("moments"), "people", rows=60)
    >>> scale = load_questionnaire("ipip50").scales[0]
    >>> round(reliability.alpha(people[list(scale.items)])["alpha"], 2)
    np.float64(0.89)
    """
    check_columns(moments, ["respondent_id", "condition", "item_id"], ["n", "mean"])
    part = moments[(moments["respondent_id"] == respondent) & (moments["condition"] == condition)]
    if part.empty:
        raise ParameterError(
            f"There are no moments of '{respondent}', '{condition}': too few of its runs have "
            "every item, or the name is another."
        )
    part = part.set_index("item_id")
    items = list(part.index)
    rows = int(part["n"].iloc[0]) if rows is None else rows
    check_numbers(rows=rows)
    if rows <= len(items):
        raise ParameterError(f"rows must be more than the {len(items)} items, got {rows}.")
    values, vectors = np.linalg.eigh(part[items].to_numpy(dtype=float))
    root = vectors * np.sqrt(values.clip(min=0))
    # of each group's own, so that rows of two groups have nothing to do with each other
    seed = zlib.crc32(f"{respondent}/{condition}".encode())
    draws = np.random.default_rng(seed).normal(size=(rows, len(items)))
    basis = np.linalg.qr(draws - draws.mean(axis=0))[0]
    table = part["mean"].to_numpy() + np.sqrt(rows - 1) * basis @ root.T
    constant = np.diag(part[items]) == 0
    table[:, constant] = part["mean"].to_numpy()[constant]
    return pd.DataFrame(table, columns=items).rename_axis("row")


def congruence(
    reference: pd.DataFrame,
    other: pd.DataFrame,
    factors: int = 5,
    draws: int = 500,
    seed: int = 0,
    order: Sequence[str] = (),
) -> pd.Series:
    r"""Do two tables of answers have the same factors? Tucker's coefficient, beside chance.

    Of each table's item correlations the loadings of the first principal components are taken, the
    reference's turned by varimax, the other's by orthogonal Procrustes to come as near as they can:

    .. math:: \phi_f = \frac{\sum_i a_{if} b_{if}}{\sqrt{\sum_i a_{if}^2 \sum_i b_{if}^2}}

    The turning finds agreement where there is none. So the other's items are exchanged at random,
    and the loadings turned again.

    Parameters
    ----------
    reference, other : DataFrame, shape (R, I)
        Columns are matched by label. Items that do not vary in one of them are left out, and rows
        with a gap.
    factors : int
        Of both.
    draws : int
        Exchanges of the items, and bootstrap samples of the other's rows (at most 200).
    seed : int
        Of these.
    order : sequence of str, optional
        Items in the order in which they were asked. If given, items are not exchanged but pushed
        along it by 1, 2, … places, the last to the front: items that were neighbours stay so.

    Returns
    -------
    Series
        ``congruence`` (mean of the factors) with its 95 % interval ``low, high``; ``worst`` (the
        smallest factor's); ``chance, chance_high`` (median and 95 % point among the exchanges),
        ``p``; ``distance``, root mean square difference of the correlations, ``chance_distance``
        the median among the exchanges; ``n, items``. The bootstrap is parametric (Wishart),
        over the other's rows; its percentiles are shifted by its bias, as turning finds more
        agreement in noise added to noise. Missing where the rows are no more than the items.

    Raises
    ------
    ParameterError
        Items are fewer than factors plus two, rows fewer than three, or the order lacks an item.

    References
    ----------
    Tucker (1951); Lorenzo-Seva and ten Berge (2006), to whom 0.95 and more is the same factor and
    0.85 to 0.94 a similar one; McCrae et al. (1996) for the turning and its chance level.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> traits = np.repeat(rng.normal(size=(2, 300, 2)), 4, axis=2)
    >>> a, b = (pd.DataFrame(t + rng.normal(size=(300, 8))) for t in traits)
    >>> congruence(a, b, factors=2)[["congruence", "chance"]].round(2).tolist()
    [0.99, 0.52]
    """
    check_numbers(factors=factors, draws=draws, seed=seed)
    both = [c for c in reference if c in set(other)]
    one, two = reference[both].dropna(), other[both].dropna()
    if min(len(one), len(two)) < 3:
        raise ParameterError("At least three rows without a gap are needed in both tables.")
    keep = [c for c in both if one[c].std() > 1e-9 and two[c].std() > 1e-9]
    if len(keep) < factors + 2:
        raise ParameterError(
            f"{len(keep)} items vary in both tables, too few for {factors} factors; take fewer."
        )
    # An import here for cost; statsmodels and scipy.stats are slow to load.
    from scipy.stats import wishart
    from statsmodels.multivariate.factor_rotation import rotate_factors

    first, second = (np.corrcoef(t[keep].to_numpy(dtype=float), rowvar=False) for t in (one, two))
    target = rotate_factors(_loadings(first[None], factors)[0], "varimax")[0]
    rng = np.random.default_rng(seed)
    own = _loadings(second[None], factors)
    orders = np.array([rng.permutation(len(keep)) for _ in range(draws)])
    if len(order):
        asked = [keep.index(item) for item in order if item in keep]
        if len(asked) != len(keep) or len(set(asked)) != len(keep):
            raise ParameterError("order must hold every item of both tables once; correct it.")
        orders = np.tile(np.arange(len(keep)), (len(keep) - 1, 1))
        for push, row in enumerate(orders, start=1):
            row[asked] = np.roll(asked, push)
    phi, chance = _turned(own, target)[0], _turned(own[0][orders], target).mean(axis=1)
    above = ~np.eye(len(keep), dtype=bool)
    mixed = second[orders[:, :, None], orders[:, None, :]]
    low = high = np.nan
    n = len(two)
    if n > len(keep) and np.linalg.eigvalsh(second)[0] > 1e-10:
        samples = wishart.rvs(n - 1, second, size=min(draws, 200), random_state=rng)
        spread = np.sqrt(np.einsum("dii->di", samples))
        samples = samples / spread[:, :, None] / spread[:, None, :]
        again = _turned(_loadings(samples, factors), target).mean(axis=1)
        low, high = np.quantile(again, [0.025, 0.975]) + phi.mean() - np.median(again)
        high = min(high, 1.0)
    return pd.Series(
        {
            "congruence": phi.mean(),
            "low": low,
            "high": high,
            "worst": phi.min(),
            "chance": np.median(chance),
            "chance_high": np.quantile(chance, 0.95),
            "p": (1 + (chance >= phi.mean()).sum()) / (1 + len(chance)),
            "distance": np.sqrt(((first - second)[above] ** 2).mean()),
            "chance_distance": np.median(np.sqrt(((first - mixed)[:, above] ** 2).mean(axis=1))),
            "n": n,
            "items": len(keep),
        }
    )


def by_score(keyed: pd.DataFrame, questionnaire: Questionnaire) -> pd.DataFrame:
    """Answers to each item by the sum of its scale: what differential item functioning needs.

    Parameters
    ----------
    keyed : DataFrame, shape (R, I)
        Keyed answers. Rows with a gap in a scale are left out of it.
    questionnaire : Questionnaire

    Returns
    -------
    DataFrame
        ``item_id, score`` (the scale's sum), ``n, sum, squares`` of the item's answers.

    Raises
    ------
    ParameterError
        An item is missing.

    Examples
    --------
    >>> q = load_questionnaire("gad7")
    >>> sheet = pd.DataFrame([[1] * 7, [2] * 7, [2] * 7], columns=[item.id for item in q.items])
    >>> by_score(sheet, q).query("item_id == 'gad7_1'")[["score", "n", "sum"]].to_numpy().tolist()
    [[7.0, 1.0, 1.0], [14.0, 2.0, 4.0]]
    """
    parts = []
    for scale in questionnaire.scales:
        check_columns(keyed, (), scale.items)
        own = keyed[list(scale.items)].dropna().astype(float)
        total = own.sum(axis=1)
        for item in scale.items:
            given = pd.DataFrame({"score": total, "value": own[item], "square": own[item] ** 2})
            found = given.groupby("score").agg(
                n=("value", "size"), sum=("value", "sum"), squares=("square", "sum")
            )
            parts.append(found.reset_index().assign(item_id=item))
    columns = ["item_id", "score", "n", "sum", "squares"]
    return pd.concat(parts, ignore_index=True)[columns]


def standardised_dif(reference: pd.DataFrame, focal: pd.DataFrame, least: int = 10) -> pd.DataFrame:
    r"""Differential functioning of items with several options: means at the same scale score.

    With the focal group's numbers :math:`n_s` at each score of the scale as weights,

    .. math:: SMD = \sum_s \frac{n_s}{n} (\bar x_{\text{focal}, s} - \bar x_{\text{reference}, s})

    Parameters
    ----------
    reference, focal : DataFrame
        As :func:`by_score` gives them.
    least : int
        Members of the reference group that a score must have; others are left out.

    Returns
    -------
    DataFrame
        Indexed by item: ``smd`` with its 95 % interval ``low, high``, ``effect`` (by the standard
        deviation of the item in the reference group), ``dif``: ``A`` (negligible: the interval
        holds 0, or the effect is at most 0.17), ``B``, ``C`` (above 0.25); ``n``, members of the
        focal group at scores that are compared, and ``matched``, their share. Missing where none
        is.

    Raises
    ------
    ParameterError
        A column is missing.

    References
    ----------
    Dorans and Schmitt (1991); Zwick, Thayer and Mazzeo (1997) for the classes.

    Examples
    --------
    >>> q = load_questionnaire("gad7")
    >>> rng = np.random.default_rng(1)
    >>> ids = [item.id for item in q.items]
    >>> people, models = (pd.DataFrame(rng.integers(0, 4, (400, 7)), columns=ids) for _ in "ab")
    >>> models["gad7_1"] = 3
    >>> found = standardised_dif(by_score(people, q), by_score(models, q))
    >>> found.loc["gad7_1", "dif"], bool(found.loc["gad7_1", "smd"] > 1)
    ('C', True)
    """
    check_numbers(least=least)
    columns = ["n", "sum", "squares"]
    for table in (reference, focal):
        check_columns(table, ["item_id"], ["score", *columns])
    rows = {}
    for item in focal["item_id"].unique():
        of = reference[reference["item_id"] == item].set_index("score")[columns]
        by = focal[focal["item_id"] == item].set_index("score")[columns]
        total = of.sum()
        spread = np.sqrt(max(total["squares"] / total["n"] - (total["sum"] / total["n"]) ** 2, 0))
        both = by.join(of[of["n"] >= least].add_suffix("_of"), how="inner")
        n = both["n"].sum()
        row = dict.fromkeys(["smd", "low", "high", "effect"], np.nan) | {"dif": None}
        if n and spread > 0:
            weight = both["n"] / n
            mean, mean_of = both["sum"] / both["n"], both["sum_of"] / both["n_of"]
            variance = (both["squares"] / both["n"] - mean**2).clip(lower=0) / both["n"]
            of_mean = (both["squares_of"] / both["n_of"] - mean_of**2).clip(lower=0) / both["n_of"]
            smd = (weight * (mean - mean_of)).sum()
            error = np.sqrt((weight**2 * (variance + of_mean)).sum())
            low, high = smd - 1.959964 * error, smd + 1.959964 * error
            effect = smd / spread
            kind = "C" if abs(effect) > 0.25 else "B" if abs(effect) > 0.17 else "A"
            kind = "A" if low <= 0 <= high else kind
            row = {"smd": smd, "low": low, "high": high, "effect": effect, "dif": kind}
        rows[item] = row | {"n": int(n), "matched": n / by["n"].sum() if len(by) else np.nan}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("item_id")


def person_fit(values: pd.DataFrame, mean: pd.Series, covariance: pd.DataFrame) -> pd.DataFrame:
    r"""Does a set of answers look like a person's? Its profile, and its distance from people.

    Parameters
    ----------
    values : DataFrame, shape (R, I)
        Answers; one row a person, or a run.
    mean : Series
        People's mean of each item.
    covariance : DataFrame, shape (I, I)
        People's.

    Returns
    -------
    DataFrame
        ``profile``: correlation of the row with the means, over items (a person who answers as
        people do has a high one; answers in a shuffled order have 0), and ``distance``:
        :math:`D^2 = (x - \mu)^\top \Sigma^{-1} (x - \mu) / I`, 1 on average in people. The first
        is missing where a row does not vary, both where it has a gap.

    Raises
    ------
    ParameterError
        An item has no mean or covariance, or the covariances are singular.

    References
    ----------
    Meade and Craig (2012) on both as signs of careless answers.

    Examples
    --------
    >>> mean = pd.Series({"a": 4.0, "b": 2.0, "c": 3.0})
    >>> rows = pd.DataFrame([[5, 1, 3], [1, 5, 3]], columns=["a", "b", "c"])
    >>> person_fit(rows, mean, pd.DataFrame(np.eye(3), mean.index, mean.index))["profile"].tolist()
    [1.0, -1.0]
    """
    items = list(values)
    if lacking := [i for i in items if i not in mean.index or i not in covariance.index]:
        raise ParameterError(f"People's moments lack the item '{lacking[0]}'; add it.")
    sigma = covariance.loc[items, items].to_numpy(dtype=float)
    if not np.isfinite(sigma).all() or np.linalg.eigvalsh(sigma)[0] < 1e-10:
        raise ParameterError("People's covariances are singular; give more people than items.")
    centre = mean.loc[items].to_numpy(dtype=float)
    table = values.to_numpy(dtype=float)
    gap = np.isnan(table).any(axis=1)
    off = np.where(gap[:, None], 0.0, table - centre)
    distance = np.einsum("ri,ri->r", off, np.linalg.solve(sigma, off.T).T) / len(items)
    own = table - table.mean(axis=1, keepdims=True)
    norm = np.sqrt((own**2).sum(axis=1) * ((centre - centre.mean()) ** 2).sum())
    varies = norm > 1e-9  # a gap is missing here, too, and so does not count as varying
    profile = np.full(len(table), np.nan)
    profile[varies] = (own @ (centre - centre.mean()))[varies] / norm[varies]
    return pd.DataFrame(
        {"profile": profile, "distance": np.where(gap, np.nan, distance)}, index=values.index
    )


def flattery(given: pd.DataFrame, norms: pd.DataFrame) -> pd.DataFrame:
    """How far answers lie on the side that flatters, in standard deviations of people.

    Parameters
    ----------
    given : DataFrame
        Scale scores: ``respondent_id, scale, score``, each in the direction that flatters.
    norms : DataFrame
        Indexed by scale: ``mean, sd`` of people.

    Returns
    -------
    DataFrame
        Indexed by respondent: ``mean`` of the standardised scores, the ``least`` and ``most`` of
        them, and ``n`` scales. A handful of named traits is no sample, so there is no interval.

    Raises
    ------
    ParameterError
        A scale has no norm.

    Examples
    --------
    >>> given = pd.DataFrame({"respondent_id": "r", "scale": ["a", "b"], "score": [4.0, 5.0]})
    >>> people = pd.DataFrame({"mean": [3.0, 3.0], "sd": [1.0, 1.0]}, index=["a", "b"])
    >>> float(flattery(given, people).loc["r", "mean"])
    1.5
    """
    check_columns(given, ["respondent_id", "scale"], ["score"])
    if lacking := set(given["scale"]) - set(norms.index):
        raise ParameterError(f"There is no norm of '{min(lacking)}'; add it.")
    of = norms.loc[given["scale"]]
    z = given.assign(z=(given["score"].to_numpy() - of["mean"].to_numpy()) / of["sd"].to_numpy())
    rows = {}
    for name, part in z.groupby("respondent_id", sort=False):
        found = (
            part["z"].agg(["mean", "min", "max", "count"]).set_axis(["mean", "least", "most", "n"])
        )
        rows[name] = found.to_dict()
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("respondent_id")


def _loadings(matrices: np.ndarray, factors: int) -> np.ndarray:
    """Of the first principal components of correlation matrices, shape (D, I, F)."""
    values, vectors = np.linalg.eigh(matrices)
    return vectors[:, :, -factors:] * np.sqrt(values[:, None, -factors:].clip(min=0))


def _turned(loadings: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Congruence of each factor with the target's after the best orthogonal turn, shape (D, F)."""
    left, _, right = np.linalg.svd(np.swapaxes(loadings, 1, 2) @ target)
    turned = loadings @ left @ right
    norms = np.sqrt((turned**2).sum(axis=1) * (target**2).sum(axis=0))
    return (turned * target).sum(axis=1) / norms.clip(min=1e-12)


@functools.cache
def _asked_order() -> tuple[str, ...]:
    """Items of the IPIP-50 in the order in which ``llm_questionnaires`` asks them.

    Matched by wording; needs its file of items.

    Raises
    ------
    DataError
        The file cannot be had, or a statement is none of the questionnaire's.
    """
    file = json.loads(fetch("llm_questionnaires_items").read_text(encoding="utf-8"))
    ours = {_plain(i.text): i.id for i in load_questionnaire("ipip50").items}
    given = sorted(file[0]["questions"], key=lambda question: question["id"])
    try:
        return tuple(ours[_plain(question["content"])] for question in given)
    except KeyError as error:
        raise DataError(f"The IPIP-50 has no item {error}: replace that copy.") from None


def _plain(text: str) -> str:
    """A statement without its subject and marks."""
    text = re.sub(r"^(i am|am|i)\s+", "", text.strip().lower())
    return re.sub(r"[^a-z]", "", text)


def _long(
    table: pd.DataFrame, questionnaire: str, condition: str, ids: Sequence[str] | None = None
) -> pd.DataFrame:
    """A matrix of answers (index: respondent and run) as rows, gaps as missing answers."""
    table = table.set_axis(list(ids) if ids is not None else list(table), axis=1)
    long = table.rename_axis(columns="item_id").stack(future_stack=True).rename("value")
    long = long.reset_index()
    low, high = {"soc13": (1, 7), "pss10": (0, 4)}.get(questionnaire, (None, None))
    given = load_questionnaire(questionnaire, texts=False) if low is None else None
    if given is not None:
        ends = [option.value for option in given.choices(given.items[0])]
        low, high = min(ends), max(ends)
    long["status"] = np.where(
        long["value"].isna(), "missing", np.where(long["value"].between(low, high), "ok",
                                                  "out_of_range")
    )  # fmt: skip
    long = long.assign(questionnaire=questionnaire, mode="published", condition=condition)
    if given is not None:
        return tidy(long, given)
    long["value"] = long["value"].astype(float).where(long["status"] == "ok")
    return long[[*COLUMNS, "condition"]]


def _indexed(table: pd.DataFrame, names: Sequence[str], runs: Sequence[int]) -> pd.DataFrame:
    index = pd.MultiIndex.from_arrays([list(names), list(runs)], names=["respondent_id", "run"])
    return table.set_axis(index, axis=0)


def _people(table: pd.DataFrame, prefix: str) -> pd.DataFrame:
    names = [f"{prefix}-{number:05d}" for number in range(1, len(table) + 1)]
    return _indexed(table, names, [1] * len(table))


def _runs() -> pd.DataFrame:
    parts = []
    for condition in CONDITIONS:
        for model in MODELS:
            # the header is wrong and not read: the columns follow the items' numbers
            table = pd.read_csv(
                fetch(f"llm_questionnaires_{condition}_{model}"), header=None, skiprows=1
            ).astype(float)
            if condition == "inverted":
                table = 6 - table
            table = _indexed(table, [model] * len(table), range(1, len(table) + 1))
            parts.append(_long(table, "ipip50", condition, _asked_order()))
    return pd.concat(parts, ignore_index=True)


def _survey() -> pd.DataFrame:
    table = pd.read_csv(fetch("llm_questionnaires_people"), skipinitialspace=True)
    columns = [f"{letter}{number}" for letter in "ENACO" for number in range(1, 11)]
    table = _people(table[columns].astype(float).replace(0, np.nan), "person")
    return _long(table, "ipip50", "people", _asked_order())


def _llmpersonality() -> pd.DataFrame:
    text = fetch("llmpersonality").read_text(encoding="utf-8")
    items = load_questionnaire("ipip50").items
    rows = {}
    for found in re.finditer(r'^  "?([\w.\- ]+)"?: \{\n    personality', text, re.MULTILINE):
        start = text.index("response: `", found.end()) + len("response: `")
        rows[found[1]] = _listed(text[start : text.index("`", start)], [i.text for i in items])
    table = pd.DataFrame.from_dict(rows, orient="index", columns=[i.id for i in items])
    return _long(_indexed(table, table.index, [1] * len(table)), "ipip50", "single")


def _listed(reply: str, statements: Sequence[str]) -> list[float]:
    """Answers of a numbered list, by label, or by number where there is no label; the last counts.

    Where the list repeats the statements, an answer goes to the statement it repeats.
    """
    places = {_plain(text): place for place, text in enumerate(statements)}
    values = [np.nan] * len(statements)
    parts = re.split(r"^\s*\**(\d+)[.)]\s", reply, flags=re.MULTILINE)
    label = re.compile("|".join(_LABELS).replace(" ", r"\s+"), re.IGNORECASE)
    for number, rest in zip(parts[1::2], parts[2::2], strict=True):
        place = int(number) - 1
        head, _, tail = rest.strip().partition(".")
        if _plain(head) in places:
            place, rest = places[_plain(head)], tail
        if not 0 <= place < len(values):
            continue
        if named := label.search(rest):
            values[place] = _LABELS[re.sub(r"\s+", " ", named[0].lower())]
        elif digit := re.match(r"\D{0,3}([1-5])\b", rest):
            values[place] = int(digit[1])
    return values


def _ai_like_humans() -> pd.DataFrame:
    questionnaire = load_questionnaire("bfi", texts=False)
    rows = {}
    for key in _keys_of("ai_like_humans"):
        reply = fetch(key).read_text(encoding="utf-8")
        given = dict(re.findall(r"^(\d+)\.\s*([1-5])\s*$", reply, re.MULTILINE))
        rows[key.removeprefix("ai_like_humans_")] = [
            float(given.get(item.id.rpartition("_")[2], np.nan)) for item in questionnaire.items
        ]
    table = pd.DataFrame.from_dict(
        rows, orient="index", columns=[i.id for i in questionnaire.items]
    )
    return _long(_indexed(table, table.index, [1] * len(table)), "bfi", "single")


def _students_mexico() -> pd.DataFrame:
    table = pd.read_csv(fetch("students_mexico"))
    table["gad5"] = table["gad5"].replace(10, 1)  # one cell; the options end at 3
    return _both(table, "phq{}", "gad{}", "mexico")


def _students_bmi() -> pd.DataFrame:
    table = pd.read_csv(fetch("students_bmi"), encoding="utf-8-sig")
    stress = table[[f"S{n}" for n in range(1, 11)]].astype(float)
    stress = _long(_people(stress, "bmi"), "pss10", "people", [f"pss10_{n}" for n in range(1, 11)])
    return pd.concat([_both(table, "D{}", "A{}", "bmi"), stress], ignore_index=True)


def _both(table: pd.DataFrame, phq: str, gad: str, prefix: str) -> pd.DataFrame:
    """PHQ-9 and GAD-7 of the same people."""
    parts = []
    for name, form, size in (("phq9", phq, 9), ("gad7", gad, 7)):
        own = table[[form.format(n) for n in range(1, size + 1)]].astype(float)
        ids = [f"{name}_{n}" for n in range(1, size + 1)]
        parts.append(_long(_people(own, prefix), name, "people", ids))
    return pd.concat(parts, ignore_index=True)


def _adults_peru() -> pd.DataFrame:
    table = pd.read_csv(fetch("adults_peru"))
    own = table[[f"SOC_{n}" for n in range(1, 14)]].astype(float)
    items = load_questionnaire("soc13").items
    ids = [item.id for item in items]
    for n, (column, item) in enumerate(zip(own, items, strict=True), start=1):
        # high is coherent where not turned; our item then speaks for or against coherence
        if (n in _SOC_TURNED) == (item.keying == 1):
            own[column] = 8 - own[column]
    return _long(_people(own, "peru"), "soc13", "people", ids)
