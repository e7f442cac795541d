"""Assess a model: its scores, with those of null respondents, other models and people.

One file: a model is compared only with null respondents on its own base, which this file finds.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from .. import __version__
from ..asking.ask import ask
from ..asking.nulls import kernel, null_answers
from ..asking.population import population, population_table, untouched_bases
from ..checks import check_choice
from ..data import shipped
from ..exceptions import ParameterError, PsychometricsError, RespondentError
from ..measures.evidence import profiles
from ..measures.intervals import mean_interval, scale_intervals
from ..measures.kernels import kernel_statistics
from ..measures.norms import compare_norms, norm_table
from ..measures.scoring import item_scores, keyed_items
from ..models.devices import computing_on
from ..models.loading import load_config, load_model
from ..models.model_files import read_json
from ..models.sources import SMOLLM2, find
from ..modes import identify, load_respondent
from ..paths import data_dir
from ..questionnaires import Questionnaire, Scale, load_questionnaire, load_questionnaires
from ..questionnaires.prompts import prompts
from ..store import key_of
from .rules import _item_means, flags, verdict

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_HEADS = 99
_ERROR = 0.05  # probability that a know-nothing respondent passes on a page
_ENDS = {"": "value", " low": "low", " high": "high"}
_NEAREST = 3  # number of the study's bases shown with a model
_RESPONDENTS = 24  # sample size for a statistic's interval without learning
_SENTENCE = "The students' exam wasn't easy, but they passed it in 2026!"
_NO_FLAGS = pd.DataFrame(columns=["scale", "check", "mark", "words", "value", "questionnaire"])
_STRANGE = "not judged, as the random heads are built on another base: "


def assess(
    model: str | Path,
    questionnaires: str | Path | Questionnaire | Iterable,
    mode: str = "nli",
    against: str | None = "default",
    base: str | Path | None = None,
    store: str | Path | None = None,
    dtype: str | None = None,
    device: str | None = None,
    **conditions: object,
) -> dict[str, pd.DataFrame]:
    """Ask a model, score it, and judge the scores by :mod:`psychometrics.reports.rules`.

    Parameters
    ----------
    model : str or Path
        A member of the embedded population, a folder, a hub id; in mode chat a model's name at the
        endpoint.
    questionnaires : str, Path or Questionnaire, or several
        Questionnaires with scales.
    mode, store, dtype, device, **conditions
        Settings of :func:`psychometrics.asking.ask`; the device also computes null respondents.
    against : str, optional
        Respondents to compare with, asked in the same way: ``"embedded"``, or names. By default the
        embedded population in mode ``nli``, whose scores on the book's questionnaires are shipped,
        and nobody in the other modes. None means nobody.
    base : str or Path, optional
        The untouched model that this one was trained from, a folder or a hub id; the random heads
        that judge answers to prompts are built on it. By default a member's base, or the base in
        the manifest of a model trained here. Without a known base, heads on the embedded encoder
        are shown but decide nothing.

    Returns
    -------
    dict of DataFrame
        ``scores``: ``questionnaire, scale, title, score, low, high`` (over items), ``n`` (items),
        ``place`` (share of the others that score lower), ``mark`` and ``verdict``; ``flags``, from
        :func:`psychometrics.reports.rules.flags`, with ``questionnaire``; ``others`` and ``nulls``:
        ``questionnaire, scale, who, score``; ``norms``, for answers to items; ``items`` and
        ``null_items``, item scores of the model and the null respondents; ``kernel``, for answers
        to prompts :func:`psychometrics.measures.kernels.kernel_statistics` on the model's base;
        ``sizes``, for answers to prompts of GAD-7, PHQ-9 or SOC-13: ``questionnaire, respondents,
        million parameters``, ``silhouette`` and ``alpha`` with ``low, high``, for the model, for
        random heads on its base, and for random heads on the three bases of ``data/bases`` nearest
        in size (MiniLM with the nearest number of layers); ``asked``: ``how`` by ``what``.

    Raises
    ------
    RespondentError
        The model cannot answer.
    ParameterError, QuestionnaireError
        A questionnaire, a mode or a condition cannot be used.

    Examples
    --------
    >>> found = assess("minilm-mnli-l3-s16", "challenges", against=None, store="memory://doctest")
    >>> found["scores"]["scale"].tolist()
    ['challenges']
    """
    with computing_on(device):
        return _assessed(model, questionnaires, mode, against, base, store, dtype, conditions)


def judge_respondents(
    answers: pd.DataFrame,
    questionnaires: str | Path | Questionnaire | Iterable,
    names: Sequence[str],
) -> dict[str, dict[str, pd.DataFrame]]:
    """Judge respondents by their own answers to items.

    Parameters
    ----------
    answers : DataFrame
        Answers, as :func:`psychometrics.asking.answer_files.read_answers` returns them.
    questionnaires : str, Path or Questionnaire, or several
        All questionnaires that the answers are to, with scales.
    names : sequence of str
        Names of the respondents to judge.

    Returns
    -------
    dict of dict of DataFrame
        For each respondent, ``scores, flags, nulls, items`` and ``null_items`` as :func:`assess`
        returns them. The null shuffles the same answers over the items.

    Raises
    ------
    ParameterError
        A respondent has no answers.

    Examples
    --------
    >>> from psychometrics.measures.styles import empty_answers
    >>> answers = empty_answers("gad7", "agree")
    >>> name = answers["respondent_id"].iloc[0]
    >>> judge_respondents(answers, "gad7", [name])[name]["scores"]["mark"].tolist()
    ['✗']
    """
    loaded = _load(questionnaires)
    known = answers["respondent_id"].unique()
    for name in names:
        check_choice(known, respondent=name)

    return {
        name: _judge_all(loaded, answers[answers["respondent_id"] == name], None, None, None, {})
        for name in names
    }


def differences(found: dict[str, dict[str, pd.DataFrame]], questionnaires) -> pd.DataFrame:
    """Return the differences of models from the first, paired by item.

    Parameters
    ----------
    found : dict
        Results of :func:`assess`, by the names of the models.
    questionnaires : str, Path or Questionnaire, or several
        The questionnaires that were asked.

    Returns
    -------
    DataFrame
        One row per scale and model after the first: ``questionnaire, scale, model``; the
        ``difference`` from the first model with its 95 % interval ``low, high``, paired over the
        ``n`` items; ``null``, for answers to prompts the share of pairs of random heads whose
        interval excludes 0, too.
    """
    (_, one), *rest = found.items()
    to_prompts = "terms" in set(one["flags"]["check"])
    rows = []
    for questionnaire in _load(questionnaires):
        for scale in questionnaire.scales:
            own = _keyed(one["items"], questionnaire, scale).reset_index(drop=True)
            for name, tables in rest:
                other = _keyed(tables["items"], questionnaire, scale).reset_index(drop=True)
                apart = (other - own).stack().dropna().to_numpy(dtype=float)
                apart = apart * _size(scale, to_prompts)
                row = {"questionnaire": questionnaire.id, "scale": scale.id, "model": name}
                row |= dict.fromkeys(("difference", "low", "high"), np.nan)

                if len(apart):
                    low, high = map(float, mean_interval(apart))
                    row |= {"difference": apart.mean(), "low": low, "high": high}

                row |= {"n": len(apart), "null": np.nan}
                if len(apart) and to_prompts:
                    nulls = (
                        _keyed(both["null_items"], questionnaire, scale).to_numpy(dtype=float)
                        for both in (one, tables)
                    )
                    row["null"] = _differing(*nulls)

                rows.append(row)

    columns = ["questionnaire", "scale", "model", "difference", "low", "high", "n", "null"]
    return pd.DataFrame(rows, columns=columns)


def _assessed(
    model, questionnaires, mode: str, against: str | None, base, store, dtype, conditions: dict
) -> dict[str, pd.DataFrame]:
    """Return the tables of :func:`assess`, computed on the default device."""
    loaded = _load(questionnaires)
    who = identify(model, mode, None if dtype == "auto" else dtype, **conditions)
    how = {"mode": mode, "store": store, "dtype": dtype, **conditions}
    answers = ask(loaded, [model], **how)

    if "option" in answers:
        raise ParameterError("choose=none gives probabilities, not answers: leave it out.")
    left_out: dict[str, str] = {}
    stand = {}
    null = None
    accuracy = None
    if "term" in answers:
        stand, null = _own_null(str(model), base, loaded, left_out)
        with _leaving_out(left_out, "accuracy"):
            accuracy = _accuracy(who, model)

    if against == "default":
        against = "embedded" if mode == "nli" else None

    others = pd.DataFrame()
    with _leaving_out(left_out, "others"):
        others = _others(against, who["respondent_id"], loaded, how)

    tables = _judge_all(loaded, answers, null, others, accuracy, stand)
    tables |= dict.fromkeys(("norms", "kernel", "sizes"), pd.DataFrame())
    if null is None:
        with _leaving_out(left_out, "norms"):
            tables["norms"] = _norms(tables["scores"], loaded, who)

    if stand:
        with _leaving_out(left_out, "kernel"):  # a scale of one item has no alpha
            K = kernel(loaded, stand["base"], stand["layers"], stand["wording"])
            tables["kernel"] = kernel_statistics(K, _RESPONDENTS)

        known = _asked_of_bases(loaded)
        with _leaving_out(left_out, "sizes"):
            if known:
                million = _million_parameters(model, mode, dtype=who["dtype"], **conditions)
                own_null = null if stand["own"] else None
                own = own_null, tables["kernel"], _name_of_base(stand)
                tables["sizes"] = _by_size(known, million, tables["flags"], *own)

    tables["asked"] = _asked(who, loaded, answers, conditions, stand)
    if len(others):
        count = others["respondent_id"].nunique()
        tables["asked"].loc["others"] = f"{count} respondents of '{against}'"

    for section, reason in (answers.attrs["summary"]["failed"] | left_out).items():
        tables["asked"].loc[f"left out: {section}"] = reason

    return tables


def _own_null(
    model: str, base: str | Path | None, loaded: list[Questionnaire], left_out: dict[str, str]
) -> tuple[dict, pd.DataFrame]:
    """Return a model's base, and random heads on it or otherwise on the embedded base."""
    stand = _base_of(model, base)
    null = None
    with _leaving_out(left_out, "its own base"):
        null = _random_heads(loaded, stand)

    if null is None:  # heads on another base are shown but decide nothing
        stand = _no_base("cannot be read")
        null = _random_heads(loaded, stand)

    stand["heads"] = null["respondent_id"].nunique()
    return stand, null


def _asked_of_bases(loaded: list[Questionnaire]) -> list[Questionnaire]:
    """Return the questionnaires that the study of six bases asked of random heads, unchanged."""
    known = set(_study_bases().index.get_level_values("questionnaire"))
    return [one for one in loaded if one.id in known and one == load_questionnaire(one.id)]


def _million_parameters(model: str | Path, mode: str, **how: object) -> float:
    """Return a model's size in millions of weights."""
    weights = load_respondent(model, mode, **how).model.parameters()
    return sum(weight.numel() for weight in weights) / 1e6


def _name_of_base(stand: dict) -> str:
    """Return the name of a model's own base for comparison with the study's; or an empty text."""
    return Path(stand["base"]).name.replace("embedded", "minilm") if stand["own"] else ""


def _by_size(
    loaded: list[Questionnaire],
    million: float,
    found: pd.DataFrame,
    null: pd.DataFrame | None,
    own_kernel: pd.DataFrame,
    own_base: str,
) -> pd.DataFrame:
    """Compare a model's evidence with heads on its base and on bases of similar size."""
    bases = _study_bases()
    nearest = _nearest_bases(bases, million, own_base)
    values = found[found["check"] == "terms"].set_index("scale")["value"]
    parts = []

    for questionnaire in loaded:
        name = questionnaire.id
        rows = pd.DataFrame({"silhouette": {"this model": values[name]}})

        if null is not None:
            own = profiles(null, [questionnaire])["silhouette"].mean(axis=1)
            low, high = np.quantile(own, [0.025, 0.975])
            alpha = own_kernel.query("statistic == 'alpha' and scale == @name").iloc[0]
            spread = {"silhouette": own.mean(), "silhouette low": low, "silhouette high": high}
            spread |= {f"alpha{end}": alpha[column] for end, column in _ENDS.items()}
            rows = pd.concat([rows, pd.DataFrame(spread, index=["heads on its own base"])])

        rows["million parameters"] = million
        of_bases = bases.loc[name].loc[nearest].rename(index="heads on {}".format)
        parts.append(pd.concat({name: pd.concat([rows, of_bases])}))

    table = pd.concat(parts)[bases.columns]
    return table.rename_axis(["questionnaire", "respondents"]).reset_index()


def _nearest_bases(bases: pd.DataFrame, million: float, own_base: str) -> pd.Index:
    """Return the bases nearest in size, without the model's own, from the smallest."""

    def plain(name: str) -> str:
        return "".join(filter(str.isalnum, name)).casefold()

    size = bases.groupby(level="base", sort=False)["million parameters"].first()
    size = size[np.log(size / million).abs().sort_values().index]
    names = size.index.str.split(",").str[0]  # the study has MiniLM in two depths
    is_own = [plain(own_base).startswith(plain(name)) for name in names]  # mpnet-base is MPNet
    return size[~names.duplicated() & ~np.array(is_own)].head(_NEAREST).sort_values().index


def _study_bases() -> pd.DataFrame:
    """Return the study's results for random heads, by questionnaire and base."""
    folder = data_dir() / "bases"
    sizes = pd.read_csv(folder / "sizes.csv", index_col="base")
    heads = pd.read_csv(folder / "nulls.csv").query("kind == 'heads' and size == 'start'")
    heads = heads.query("statistic == 'silhouette'").rename(columns={"mean": "value"})
    heads = heads.set_index(["questionnaire", "base"])
    alphas = pd.read_csv(folder / "kernels.csv").query("statistic == 'alpha'")
    alphas = alphas.rename(columns={"scale": "questionnaire"}).set_index(["questionnaire", "base"])
    found = pd.DataFrame(index=heads.index.intersection(alphas.index)).join(sizes, on="base")

    for end, column in _ENDS.items():
        found[f"silhouette{end}"] = heads[column]
        found[f"alpha{end}"] = alphas[column]

    return found


def _part_of(frame: pd.DataFrame | None, questionnaire: Questionnaire) -> pd.DataFrame | None:
    """Return the rows of a questionnaire, or None without a table."""
    if frame is None or frame.empty:
        return None
    return frame[frame["questionnaire"] == questionnaire.id]


@contextlib.contextmanager
def _leaving_out(reasons: dict[str, str], section: str) -> Iterator[None]:
    """Leave a section out of the page if it fails, and record the reason."""
    try:
        yield
    except Exception as error:
        kind = "" if isinstance(error, PsychometricsError) else f"{type(error).__name__}: "
        reasons[section] = f"{kind}{' '.join(str(error).split())}"


def _random_heads(loaded: list[Questionnaire], stand: dict) -> pd.DataFrame:
    reads = {name: stand[name] for name in ("base", "layers", "wording")}
    # enough for a level of .05, divided among the questionnaires, to be attainable
    heads = max(_HEADS, 40 * len(loaded) - 1)
    return null_answers(loaded, "random-heads", heads, **reads)


def _differing(first: np.ndarray, second: np.ndarray) -> float:
    """Return the share of pairs of random heads, one of each, whose paired interval excludes 0."""
    # pair with the next head, since heads of the same number are equal for a shared base
    low, high = mean_interval(first - np.roll(second, 1, axis=0))
    return float(((low > 0) | (high < 0)).mean())


def _shipped_scores(questionnaire: Questionnaire) -> pd.DataFrame:
    """Return the embedded population's shipped item scores, empty for other prompts."""
    path = shipped("profile.parquet")
    table = pd.read_parquet(path) if path.is_file() else pd.DataFrame({"prompts": []})
    digest = key_of(prompts(questionnaire).to_csv(index=False))
    return table[table["prompts"] == digest].drop(columns="prompts")


def _load(questionnaires) -> list[Questionnaire]:
    loaded = load_questionnaires(questionnaires)
    without = [questionnaire.id for questionnaire in loaded if not questionnaire.scales]
    if without:
        raise ParameterError(f"{without[0]} has no scales: use `psychometrics scores --plot`.")
    return loaded


def _judge_all(
    loaded: list[Questionnaire], answers, null, others, accuracy, base: dict
) -> dict[str, pd.DataFrame]:
    """Return the tables of all questionnaires, which share the page's error probability."""
    level = _ERROR / len(loaded)
    parts: dict[str, list] = {}
    for questionnaire in loaded:
        own, drawn, rest = (_part_of(frame, questionnaire) for frame in (answers, null, others))
        judged = _judged(own, questionnaire, drawn, rest, accuracy, base, level)
        for name, part in judged.items():
            parts.setdefault(name, []).append(part)

    return {name: pd.concat(frames, ignore_index=True) for name, frames in parts.items()}


def _judged(
    answers, questionnaire: Questionnaire, null, others, accuracy, base: dict, level: float
) -> dict:
    """Return the tables of one questionnaire."""
    if answers is None or answers.empty:
        return {"scores": _unanswered(questionnaire), "flags": _NO_FLAGS}

    to_prompts = null is not None
    found = flags(answers, questionnaire, null, accuracy, level)
    if not base.get("own", True):
        judged = found["check"].isin(["terms", "trend"])
        found.loc[judged, "words"] = _STRANGE + found.loc[judged, "words"]
        found.loc[judged, "mark"] = "–"

    items = _item_means(item_scores(answers))
    drawn = _item_means(item_scores(null)) if to_prompts else _dealt(items, questionnaire)
    scores = []
    clouds = {"others": [], "nulls": []}

    for scale in questionnaire.scales:
        size = _size(scale, to_prompts)
        for name, rows in (("others", others), ("nulls", drawn)):
            clouds[name].append(_cloud(rows, questionnaire, scale, size))

        row = scale_intervals(items, questionnaire, scale.id).iloc[0]
        n = int(row["n"])
        of = len(scale.items)
        values = row[["score", "low", "high"]] * (size if n == of else np.nan)
        mark, words = verdict(found, scale)

        if n < of:  # a missing item leaves no score
            mark = "✗"
            words = f"no score: {n} of {of} items answered"

        place = np.nan
        known = clouds["others"][-1]["score"].dropna()
        if len(known) and np.isfinite(values["score"]):
            place = float((known < values["score"]).mean())

        about = {"questionnaire": questionnaire.id, "scale": scale.id, "title": scale.title}
        about |= {**values, "n": n, "place": place, "mark": mark, "verdict": words}
        scores.append(about)

    return {
        "scores": pd.DataFrame(scores),
        "flags": found.assign(questionnaire=questionnaire.id),
        **{name: pd.concat(parts, ignore_index=True) for name, parts in clouds.items()},
        "items": items,
        "null_items": drawn,
    }


def _unanswered(questionnaire: Questionnaire) -> pd.DataFrame:
    """Return the rows of scales without any answer, such as after a failure."""
    rows = [
        {"questionnaire": questionnaire.id, "scale": scale.id, "title": scale.title, "n": 0,
         "mark": "✗", "verdict": f"no score: 0 of {len(scale.items)} items answered"}
        for scale in questionnaire.scales
    ]  # fmt: skip
    return pd.DataFrame(rows).assign(**dict.fromkeys(("score", "low", "high", "place"), np.nan))


def _size(scale: Scale, to_prompts: bool) -> int:
    return len(scale.items) if scale.mode == "sum" and not to_prompts else 1


def _keyed(items: pd.DataFrame, questionnaire: Questionnaire, scale: Scale) -> pd.DataFrame:
    own = items[items["questionnaire"] == questionnaire.id]
    return keyed_items(own, questionnaire, scale) if len(own) else pd.DataFrame()


def _cloud(items, questionnaire: Questionnaire, scale: Scale, size: int) -> pd.DataFrame:
    columns = ["questionnaire", "scale", "who", "score"]
    if items is None or not len(items):
        return pd.DataFrame(columns=columns)
    keyed = keyed_items(items, questionnaire, scale)
    scores = size * keyed.mean(axis=1, skipna=False).to_numpy()
    frame = pd.DataFrame({"who": keyed.index.get_level_values("respondent_id"), "score": scores})
    return frame.assign(questionnaire=questionnaire.id, scale=scale.id)[columns]


def _dealt(items: pd.DataFrame, questionnaire: Questionnaire) -> pd.DataFrame:
    """Shuffle answers over items into the item scores of as many respondents as random heads."""
    ranges = {
        tuple(option.value for option in questionnaire.choices(questionnaire.item(name)))
        for name in items["item_id"]
    }

    if len(ranges) > 1 or items["score"].isna().any():  # answers do not fit other items
        return pd.DataFrame()
    rng = np.random.default_rng(0)
    scores = items["score"].to_numpy()
    parts = [
        items.assign(respondent_id=f"deal {number + 1}", score=rng.permutation(scores))
        for number in range(_HEADS)
    ]

    return pd.concat(parts, ignore_index=True)


def _norms(scores: pd.DataFrame, loaded: list[Questionnaire], who: dict) -> pd.DataFrame:
    """Compare each scale score, as one person's, with the people of the norms."""
    parts = []
    for questionnaire in loaded:
        norms = norm_table(questionnaire) if questionnaire.norms else pd.DataFrame({"scale": []})
        for scale in questionnaire.scales:
            if scale.mode == "mean" and len(norms):  # a mean is compared with norms of sums
                sums = (norms["scale"] == scale.id) & norms["group"].str.contains("sums of ticks")
                norms.loc[sums, ["norm_mean", "norm_sd"]] /= len(scale.items)
                norms.loc[sums, "group"] += ", here as means"

        own = scores[scores["questionnaire"] == questionnaire.id].dropna(subset="score")
        if set(own["scale"]) & set(norms["scale"]):
            own = own[["questionnaire", "scale", "score"]].rename(columns={"score": "mean"})
            own = own.assign(respondent_id=who["respondent_id"], sd=np.nan, n=1)
            parts.append(compare_norms(own, norms))

    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _asked(who: dict, loaded: list, answers: pd.DataFrame, conditions: dict, base: dict):
    summary = answers.attrs["summary"]
    titles = {questionnaire.id: questionnaire.short_title for questionnaire in loaded}
    kind = "prompts" if "term" in answers else "answers"
    counts = answers.groupby("questionnaire", sort=False).size()
    rows = {
        "respondent": who["respondent_id"],
        "model": f"{who.get('model', '')} ({who.get('source', 'unknown source')})",
        "revision": str(who.get("revision") or "not known"),
        "mode": who["mode"],
        "conditions": ", ".join(f"{k}={v}" for k, v in conditions.items()) or "the mode's own",
        "asked": "; ".join(f"{titles[name]}: {n:,} {kind}" for name, n in counts.items()),
        "precision": str(who.get("dtype") or "the endpoint's"),
        "answers": f"{summary['asked']:,} asked now, {summary['from_store']:,} from the store, in "
        f"{summary['seconds']:.1f} s",
        "refused or unreadable": f"{summary['unanswered']:,}",
        "package": f"psychometrics {__version__}",
    }

    if base:
        rows["null respondents"] = f"{base['heads']} random heads {base['said']}"

    return pd.DataFrame({"how": rows}).rename_axis("what")


def _base_of(model: str, named: str | Path | None = None) -> dict:
    """Return the untouched base of a model's random heads, with a description."""
    own = {"layers": None, "own": True, "wording": find(model).recipe.get("wording")}
    if named is not None:
        _check_base(model, str(named))
        said = f"on the untouched base that was named, {Path(named).name}"
        return own | {"base": str(named), "said": said}

    if model == SMOLLM2:
        return own | {"base": SMOLLM2, "said": "on the model itself, SmolLM2-135M"}

    if model in set(population_table()["respondent_id"]):
        stand = untouched_bases([model])
        base = stand["base"][0]
        layers = stand["layers"][0]
        said = "SmolLM2-135M" if base == SMOLLM2 else "MiniLM"
        said += f" with {layers} layers" if layers else ""

        return own | {"base": base, "layers": layers, "said": f"on its own untouched base, {said}"}

    written = Path(model).expanduser() / "manifest.json"
    if written.is_file():  # written by training
        base = str(read_json(model, written).get("base", ""))
        if base == "minilm":
            return own | {"base": "embedded", "said": "on its own base, MiniLM"}

        try:
            find(base)
            said = f"on its own untouched base, {Path(base).name}"
            return own | {"base": base, "said": said}
        except RespondentError:
            pass

    return _no_base("is not known here")


def _check_base(model: str, base: str) -> None:
    """Refuse a base that this model cannot have been trained from."""
    own = find(model)
    if own.kind == "embedded":
        return

    kinds = [
        f"{config.model_type} of {config.hidden_size} dimensions"
        for config in map(load_config, (model, base))
    ]
    written = Path(own.folder or "") / "manifest.json"
    tuning = read_json(model, written).get("tuning") if written.is_file() else None
    why = f"The model is a {kinds[0]} and the base {base} a {kinds[1]}"

    if kinds[0] == kinds[1]:
        try:
            (first, reads), (second, other) = (
                load_model(one, "encoder") for one in (own.base or own, base)
            )
        except RespondentError:
            return  # the page gives the reason instead of null respondents

        why = ""
        if reads(_SENTENCE)["input_ids"] != other(_SENTENCE)["input_ids"]:
            why = f"The base {base} has another tokenizer than the model"
        elif not _trained_from(first, second, own.base is not None or tuning == "frozen"):
            why = f"The weights of the model are not those of the base {base}, trained further"

    if why:
        raise ParameterError(f"{why}: name the untouched model that it was trained from.")


def _trained_from(model: PreTrainedModel, base: PreTrainedModel, frozen: bool) -> bool:
    """Return whether frozen weights equal the base's, or trained embeddings are similar.

    Unrelated embeddings have a cosine of about 0.
    """
    theirs = dict(base.named_parameters())
    if frozen:
        own = (item for item in model.named_parameters() if not item[0].startswith("pooler."))
        return all(name in theirs and weight.equal(theirs[name]) for name, weight in own)
    one, other = (x.get_input_embeddings().weight.detach() for x in (model, base))
    size = min(len(one), len(other))  # a padding token may have been added
    one = one[:size].flatten()
    other = other[:size].flatten()
    return one @ other > 0.9 * one.norm() * other.norm()


def _no_base(why: str) -> dict:
    said = f"on MiniLM, since the untouched base of this model {why}; they decide nothing"
    return {"base": "embedded", "layers": None, "wording": None, "own": False,
            "said": f"{said} (name the base by --base)"}  # fmt: skip


def _accuracy(who: dict, model: str | Path) -> tuple[float, ...] | None:
    """Return the accuracy at inference: a member's on held-out pairs, else on labelled pairs."""
    if who["mode"] != "nli":
        return None
    known = population_table().set_index("respondent_id")
    if who.get("source") == "embedded" and who["respondent_id"] in known.index:
        return tuple(known.loc[who["respondent_id"], ["accuracy", "low", "high"]])
    return load_respondent(model, dtype=who["dtype"]).accuracy()


def _others(against: str | None, own: str, loaded: list[Questionnaire], how: dict) -> pd.DataFrame:
    """Return the item scores of the respondents to compare with, shipped or newly asked."""
    names = [] if against is None else [n for n in population(against) if Path(n).name != own]
    parts = []
    for questionnaire in loaded if names else []:
        known = _shipped_scores(questionnaire) if how["mode"] == "nli" else pd.DataFrame()
        if set(names) <= set(known.get("respondent_id", ())):
            parts.append(known[known["respondent_id"].isin(names)])
        else:
            parts.append(_item_means(item_scores(ask(questionnaire, names, **how))))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
