"""Find a model's untouched base, make its null respondents, and compare it with other bases."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..asking.population import population_table, untouched_bases
from ..exceptions import ParameterError, PsychometricsError, RespondentError
from ..models.loading import load_config, load_model
from ..models.model_files import read_json
from ..models.sources import SMOLLM2, find
from ..modes import load_respondent
from ..nulls.evidence import profiles
from ..nulls.kernels import kernel_statistics
from ..nulls.respondents import kernel, null_answers
from ..paths import data_dir
from ..questionnaires import Questionnaire, load_questionnaire
from .rules import HEAD_SIZES, _heads_of_sizes

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_HEADS = 99
_ENDS = {"": "value", " low": "low", " high": "high"}
_NEAREST = 3  # number of the study's bases shown with a model
_RESPONDENTS = 24  # sample size for a statistic's interval without learning
_SENTENCE = "The students' exam wasn't easy, but they passed it in 2026!"


def _own_null(
    model: str, base: str | Path | None, loaded: list[Questionnaire], left_out: dict[str, str]
) -> tuple[dict, pd.DataFrame]:
    """Return a model's base, and random heads on this base or else on the embedded base."""
    stand = untouched_base(model, base)
    null = None
    with _leaving_out(left_out, "its own base"):
        null = _random_heads(loaded, stand)

    if null is None:  # heads on another base are shown but decide nothing
        stand = _no_base("cannot be read")
        null = _random_heads(loaded, stand)

    stand["heads"] = null["respondent_id"].nunique()
    return stand, null


@contextlib.contextmanager
def _leaving_out(reasons: dict[str, str], section: str) -> Iterator[None]:
    """Leave a section out of the page if computing it fails, and record the reason."""
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


def untouched_base(model: str, named: str | Path | None = None) -> dict:
    """Return the untouched base on which to build a model's random heads.

    Parameters
    ----------
    model : str
        A member of the embedded population, a folder or a hub id.
    named : str or Path, optional
        The base, if it is known; by default a member's base, or the base in the manifest of a model
        that was trained by this package.

    Returns
    -------
    dict
        ``base, layers, wording``, as :func:`~psychometrics.nulls.respondents.null_answers` takes
        them;
        ``own``, whether the base is the model's own or, if that is not known, the embedded encoder;
        ``said``, a description.

    Raises
    ------
    ParameterError
        The model cannot have been trained from the named base.

    Examples
    --------
    >>> untouched_base("minilm-snli-l3-s17")["said"]
    'on its own untouched base, MiniLM with 3 layers'
    """
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
    """Refuse a base from which the model cannot have been trained."""
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
            why = f"The base {base} and the model have different tokenizers"
        elif not _trained_from(first, second, own.base is not None or tuning == "frozen"):
            why = f"The weights of the model were not trained from the base {base}"

    if why:
        raise ParameterError(f"{why}: name the untouched model that the weights were trained from.")


def _trained_from(model: PreTrainedModel, base: PreTrainedModel, frozen: bool) -> bool:
    """Return whether frozen weights equal the base's, or trained embeddings are similar.

    The cosine of unrelated embeddings is about 0.
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
    said = f"on MiniLM, since the untouched base of this model {why}; these heads decide nothing"
    return {"base": "embedded", "layers": None, "wording": None, "own": False,
            "said": f"{said} (name the base with --base)"}  # fmt: skip


def _beside_bases(
    model: str | Path,
    loaded: list[Questionnaire],
    answers: pd.DataFrame,
    stand: dict,
    null: pd.DataFrame,
    found: pd.DataFrame,
    left_out: dict[str, str],
    how: dict,
) -> dict[str, pd.DataFrame]:
    """Return statistics of untrained heads on a base, and a comparison with other bases."""
    tables = {}
    with _leaving_out(left_out, "kernel"):  # a scale of one item has no alpha
        K = kernel(loaded, stand["base"], stand["layers"], stand["wording"])
        tables["kernel"] = kernel_statistics(K, _RESPONDENTS)

    known = _asked_of_bases(loaded)
    with _leaving_out(left_out, "sizes"):
        if known:
            million = _million_parameters(model, **how)
            own_null = null if stand["own"] else None
            own_kernel = tables.get("kernel", pd.DataFrame())
            own = answers, own_null, own_kernel, _name_of_base(stand)
            tables["sizes"] = _by_size(known, million, found, *own)

    return tables


def _asked_of_bases(loaded: list[Questionnaire]) -> list[Questionnaire]:
    """Return the questionnaires that the study of six bases used, if they are unchanged."""
    known = set(_study_bases().index.get_level_values("questionnaire"))
    return [one for one in loaded if one.id in known and one == load_questionnaire(one.id)]


def _million_parameters(model: str | Path, mode: str, **how: object) -> float:
    """Return a model's size in millions of weights."""
    weights = load_respondent(model, mode, **how).model.parameters()
    return sum(weight.numel() for weight in weights) / 1e6


def _name_of_base(stand: dict) -> str:
    """Return the name of a model's own base as the study spells it, or an empty string."""
    return Path(stand["base"]).name.replace("embedded", "minilm") if stand["own"] else ""


def _by_size(
    loaded: list[Questionnaire],
    million: float,
    found: pd.DataFrame,
    answers: pd.DataFrame,
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

        heads = {}
        if null is not None:
            heads = _heads_of_sizes(
                answers[answers["questionnaire"] == name], null[null["questionnaire"] == name]
            )

        for size, drawn in heads.items():
            own = profiles(drawn, [questionnaire])["silhouette"].mean(axis=1)
            low, high = np.quantile(own, [0.025, 0.975])
            spread = {"silhouette": own.mean(), "silhouette low": low, "silhouette high": high}
            if HEAD_SIZES[size] is None:  # the closed form holds for small heads only
                alpha = own_kernel.query("statistic == 'alpha' and scale == @name").iloc[0]
                spread |= {f"alpha{end}": alpha[column] for end, column in _ENDS.items()}

            label = f"heads on its own base, {size}"
            rows = pd.concat([rows, pd.DataFrame(spread, index=[label])])

        rows["million parameters"] = million
        of_bases = bases.loc[name].loc[nearest].rename(index="heads on {}".format)
        parts.append(pd.concat({name: pd.concat([rows, of_bases])}))

    table = pd.concat(parts)[bases.columns]
    return table.rename_axis(["questionnaire", "respondents"]).reset_index()


def _nearest_bases(bases: pd.DataFrame, million: float, own_base: str) -> pd.Index:
    """Return the study's bases nearest in size to a model, smallest first, without its own base."""

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
    alphas = pd.read_csv(data_dir() / "kernels.csv").query("statistic == 'alpha'")
    alphas = alphas.rename(columns={"scale": "questionnaire"}).set_index(["questionnaire", "base"])
    found = pd.DataFrame(index=heads.index.intersection(alphas.index)).join(sizes, on="base")

    for end, column in _ENDS.items():
        found[f"silhouette{end}"] = heads[column]
        found[f"alpha{end}"] = alphas[column]

    return found
