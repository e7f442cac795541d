"""Find a model's untouched base, build null respondents on it, and compare it with other bases."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..asking.population import population_table, untouched_bases
from ..exceptions import ParameterError, PsychometricsError, RespondentError
from ..models.loading import load_config, load_model
from ..models.model_files import read_json
from ..models.sources import BASE_MODEL, SMOLLM2, base_path, find
from ..nulls.evidence import profiles
from ..paths import data_dir
from ..questionnaires import Questionnaire
from .rules import HEAD_SIZES

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_HEAD = "classifier.weight"
_HEADS = 99
_ENDS = {"": "value", " low": "low", " high": "high"}
_NEAREST = 3  # number of the study's bases shown with a model
_DEPTHS = {"embedded": 6, SMOLLM2: 30}  # of whole bases, in layers
_SENTENCE = "The students' exam wasn't easy, but they passed it in 2026!"


@dataclass(frozen=True)
class UntouchedBase:
    """The untouched model on which the random heads of a model are built.

    Parameters
    ----------
    base, layers, wording
        As :func:`~psychometrics.nulls.respondents.null_answers` takes them.
    is_own : bool
        Whether the base is the model's own. If that base is not known or cannot be read, the
        embedded encoder takes its place, and its heads decide nothing.
    description : str
        Where the heads are built, as a page says it.
    """

    base: str
    layers: int | None = None
    wording: str | None = None
    is_own: bool = True
    description: str = ""

    @property
    def reading(self) -> dict[str, Any]:
        """The settings with which null respondents read a prompt as the model does."""
        return {"base": self.base, "layers": self.layers, "wording": self.wording}

    @property
    def title(self) -> str:
        """The name of the model's own base as the study of six bases spells it, or ``""``."""
        return Path(self.base).name.replace("embedded", "minilm") if self.is_own else ""


def untouched_base(model: str, named: str | Path | None = None) -> UntouchedBase:
    """Return the untouched base on which to build a model's random heads.

    Parameters
    ----------
    model : str
        A member of the embedded population, a folder or a hub id.
    named : str or Path, optional
        The base, if it is known; by default a member's base, the base in the manifest of a model
        that was trained by this package, or the base that the model's configuration names.

    Returns
    -------
    UntouchedBase

    Raises
    ------
    ParameterError
        The model cannot have been trained from the named base.

    Examples
    --------
    >>> untouched_base("minilm-snli-l3-s17").description
    'on its own untouched base, MiniLM with 3 layers'
    """
    wording = find(model).recipe.get("wording")
    if named is not None:
        _check_base(model, str(named))
        description = f"on the untouched base that was named, {Path(named).name}"
        return UntouchedBase(str(named), wording=wording, description=description)

    if model == SMOLLM2:
        description = "on the model itself, SmolLM2-135M"
        return UntouchedBase(SMOLLM2, wording=wording, description=description)

    member = equal_member(model) or model
    if member in set(population_table()["respondent_id"]):
        bases = untouched_bases([member])
        base = bases["base"][0]
        layers = bases["layers"][0]
        title = "SmolLM2-135M" if base == SMOLLM2 else "MiniLM"
        depth = f" with {layers} layers" if layers else ""
        description = f"on its own untouched base, {title}{depth}"
        return UntouchedBase(base, layers, wording, description=description)

    manifest = Path(model).expanduser() / "manifest.json"
    if manifest.is_file():  # written by training
        base = str(read_json(model, manifest).get("base", ""))
        if base == "minilm":
            return UntouchedBase("embedded", None, wording, True, "on its own base, MiniLM")

        with contextlib.suppress(RespondentError):
            find(base)
            description = f"on its own untouched base, {Path(base).name}"
            return UntouchedBase(base, wording=wording, description=description)

    return _base_of_config(model, wording)


def _base_of_config(model: str, wording: str | None) -> UntouchedBase:
    """Return the base that a model's own configuration names, if it is here and fits."""
    source = find(model)
    if source.base is not None:
        base = str(source.base.folder or source.base.model)
    else:
        base = ""
        with contextlib.suppress(PsychometricsError):
            base = str(source.config.get("_name_or_path") or "")

    if not base or base in {source.model, str(source.folder), source.name}:
        return _substitute("is not known here")

    name = Path(base).name
    try:
        find(base)
        _check_base(model, base)
    except RespondentError:
        return _substitute(f"is {name} by its configuration and not on this machine")
    except ParameterError:
        return _substitute(f"is not {name}, which its configuration names")

    description = f"on its own untouched base, {name}, which its configuration names"
    return UntouchedBase(base, wording=wording, description=description)


def equal_member(model: str) -> str | None:
    """Return the embedded member that was saved to a folder, by the weights of its head.

    Examples
    --------
    >>> equal_member("minilm-snli-l3-s17") is None
    True
    """
    source = find(model)
    if source.kind != "local" or source.base is not None or source.folder is None:
        return None

    from safetensors import safe_open

    path = source.folder / "model.safetensors"
    if not path.is_file():
        return None

    with safe_open(path, "np") as file:
        if _HEAD not in file.keys():  # noqa: SIM118
            return None
        head = file.get_tensor(_HEAD).astype(np.float16)

    for name in population_table()["respondent_id"]:
        for path in (data_dir() / "population" / name).glob("*.safetensors"):
            with safe_open(path, "np") as file:
                heads = [key for key in file.keys() if key.endswith(_HEAD)]  # noqa: SIM118
                if any(np.array_equal(head, file.get_tensor(key)) for key in heads):
                    return str(name)

    return None


def keep_possible_twins(rivals: pd.DataFrame, base: UntouchedBase) -> pd.DataFrame:
    """Leave out embedded members that were trained from another base, or at another depth.

    Parameters
    ----------
    rivals : DataFrame
        ``respondent_id``; respondents that are not embedded members stay.
    base : UntouchedBase
        The base of the model whose twins are wanted.

    Examples
    --------
    >>> names = ["minilm-snli-l3-s17", "minilm-snli-l6-s3", "mine"]
    >>> rivals = pd.DataFrame({"respondent_id": names})
    >>> keep_possible_twins(rivals, UntouchedBase("embedded", 6))["respondent_id"].tolist()
    ['minilm-snli-l6-s3', 'mine']
    """
    if rivals.empty:
        return rivals

    names = rivals["respondent_id"].unique().tolist()
    known = pd.DataFrame(untouched_bases(names), index=names)
    usual = _usual_name(base.base)
    depth = base.layers or _DEPTHS.get(usual)
    is_twin = base.is_own & (known["base"] == usual) & (known["layers"] == depth)
    return rivals[rivals["respondent_id"].map(is_twin | known["layers"].isna())]


def _usual_name(base: str) -> str:
    """Return the name by which a base is embedded, if it is, whatever a model calls it."""
    with contextlib.suppress(RespondentError):  # the weights here may be others
        if base in ("embedded", BASE_MODEL, base_path()):
            return "embedded"
        # finding the model unpacks it, so only where a folder may be its own
        if Path(base).name.startswith("gguf-") and base == str(find(SMOLLM2).folder):
            return SMOLLM2
    return base


def _substitute(problem: str) -> UntouchedBase:
    """Return the embedded encoder in place of a base that cannot be used."""
    description = (
        f"on MiniLM, since the untouched base of this model {problem}; these heads decide nothing "
        "(name the base with --base)"
    )
    return UntouchedBase("embedded", is_own=False, description=description)


def _check_base(model: str, base: str) -> None:
    """Refuse a base from which the model cannot have been trained."""
    source = find(model)
    if source.kind == "embedded":
        return

    kinds = [
        f"{config.model_type} of {config.hidden_size} dimensions"
        for config in map(load_config, (model, base))
    ]
    manifest = Path(source.folder or "") / "manifest.json"
    tuning = read_json(model, manifest).get("tuning") if manifest.is_file() else None
    problem = f"The model is a {kinds[0]} and the base {base} a {kinds[1]}"

    if kinds[0] == kinds[1]:
        try:
            model_weights, model_tokenizer = load_model(source.base or source, "encoder")
            base_weights, base_tokenizer = load_model(base, "encoder")
        except RespondentError:
            return  # the page gives the reason instead of null respondents

        problem = ""
        is_frozen = source.base is not None or tuning == "frozen"
        if model_tokenizer(_SENTENCE)["input_ids"] != base_tokenizer(_SENTENCE)["input_ids"]:
            problem = f"The base {base} and the model have different tokenizers"
        elif not _is_trained_from(model_weights, base_weights, is_frozen):
            problem = f"The weights of the model were not trained from the base {base}"

    if problem:
        raise ParameterError(
            f"{problem}: name the untouched model that the weights were trained from."
        )


def _is_trained_from(model: PreTrainedModel, base: PreTrainedModel, is_frozen: bool) -> bool:
    """Return whether frozen weights equal the base's, or trained embeddings are similar.

    The cosine of unrelated embeddings is about 0.
    """
    base_weights = dict(base.named_parameters())
    if is_frozen:
        weights = (item for item in model.named_parameters() if not item[0].startswith("pooler."))
        return all(name in base_weights and w.equal(base_weights[name]) for name, w in weights)

    embeddings = [each.get_input_embeddings() for each in (model, base)]
    tables = [each.get_parameter("weight").detach() for each in embeddings]
    words = min(map(len, tables))  # a padding token may have been added
    table, base_table = (table[:words].flatten() for table in tables)
    return bool(table @ base_table > 0.9 * table.norm() * base_table.norm())


@contextlib.contextmanager
def _recording_failure(failures: dict[str, str], section: str) -> Iterator[None]:
    """Leave a section out of the page if computing it fails, and record the reason."""
    try:
        yield
    except Exception as error:
        kind = "" if isinstance(error, PsychometricsError) else f"{type(error).__name__}: "
        failures[section] = f"{kind}{' '.join(str(error).split())}"


def _compare_with_bases(
    loaded: list[Questionnaire],
    million: float,
    flags: pd.DataFrame,
    heads: Mapping[str, Mapping[str, pd.DataFrame]],
    kernel: pd.DataFrame | None,
    own_base: str,
) -> pd.DataFrame:
    """Compare a model's silhouettes with heads on its base and on bases of similar size.

    ``heads`` has the answers of heads on the model's own base, by questionnaire and size; it is
    empty if that base is not known.
    """
    bases = _study_bases()
    size = bases.groupby(level="base", sort=False)["million parameters"].first()
    size = size[np.log(size / million).abs().sort_values().index]
    names = size.index.str.split(",").str[0]  # the study has MiniLM in two depths
    is_own = [_letters(own_base).startswith(_letters(name)) for name in names]
    nearest = size[~names.duplicated() & ~np.array(is_own)].head(_NEAREST).sort_values().index

    values = flags[flags["check"] == "terms"].set_index("scale")["value"]
    tables = {}

    for questionnaire in loaded:
        name = questionnaire.id
        rows = {"this model": {"silhouette": values[name]}}
        for size, answers in heads.get(name, {}).items():
            silhouettes = profiles(answers, [questionnaire])["silhouette"].mean(axis=1)
            low, high = np.quantile(silhouettes, [0.025, 0.975])
            row = {"silhouette": silhouettes.mean(), "silhouette low": low, "silhouette high": high}

            if HEAD_SIZES[size] is None and kernel is not None:  # it holds for small heads only
                alpha = kernel[(kernel["statistic"] == "alpha") & (kernel["scale"] == name)].iloc[0]
                row |= {f"alpha{end}": alpha[column] for end, column in _ENDS.items()}

            rows[f"heads on its own base, {size}"] = row

        table = pd.DataFrame.from_dict(rows, orient="index").assign(
            **{"million parameters": million}
        )
        of_bases = bases.loc[name].loc[nearest].rename(index="heads on {}".format)
        tables[name] = pd.concat([table, of_bases])

    joined = pd.concat(tables)[bases.columns]
    return joined.rename_axis(["questionnaire", "respondents"]).reset_index()


def _letters(name: str) -> str:
    """Return the letters and digits of a base's name, as mpnet-base is MPNet."""
    return "".join(filter(str.isalnum, name)).casefold()


def _study_bases() -> pd.DataFrame:
    """Return the study's results for random heads, by questionnaire and base."""
    folder = data_dir() / "bases"
    sizes = pd.read_csv(folder / "sizes.csv", index_col="base")
    heads = pd.read_csv(folder / "nulls.csv").query("kind == 'heads' and size == 'start'")
    heads = heads.query("statistic == 'silhouette'").rename(columns={"mean": "value"})
    heads = heads.set_index(["questionnaire", "base"])
    alphas = pd.read_csv(data_dir() / "kernels.csv").query("statistic == 'alpha'")
    alphas = alphas.rename(columns={"scale": "questionnaire"}).set_index(["questionnaire", "base"])
    table = pd.DataFrame(index=heads.index.intersection(alphas.index)).join(sizes, on="base")

    for end, column in _ENDS.items():
        table[f"silhouette{end}"] = heads[column]
        table[f"alpha{end}"] = alphas[column]

    return table
