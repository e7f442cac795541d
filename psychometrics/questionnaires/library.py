"""Questionnaires by name or path: the project's own, and users' files.

Another package adds questionnaires through an entry point that names a package with YAML files::

    [project.entry-points."psychometrics.questionnaires"]
    wellbeing = "wellbeing.sheets"
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from importlib.metadata import entry_points
from importlib.resources import files as files_of
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from ..checks import check_flags, suggest
from ..data import fetch
from ..exceptions import ParameterError, QuestionnaireError
from ..paths import questionnaires_dir, user_path
from .checking import parse_part
from .model import Questionnaire
from .perturbations import _PERTURBATIONS, perturbed
from .psychobench import _load_psychobench, psychobench_keys
from .readers import _read_text, read

COMPASS = "political_compass"
AnyQuestionnaires: TypeAlias = str | Path | Questionnaire | Iterable[str | Path | Questionnaire]
"""One questionnaire or several, each by its name, by its path, or loaded."""


def load_questionnaire(
    name_or_path: str | Path | Questionnaire, texts: bool = True
) -> Questionnaire:
    """Read and check a questionnaire.

    Parameters
    ----------
    name_or_path : str or Path
        A name from :func:`questionnaire_names`, the name of a variant (``ipip20-typos-1``, see
        :func:`perturbed`), or the path of a file: YAML in the project's layout, JSON in the layout
        of PsychoBench or question_llm, or an OpenScales ``.osd`` file. A loaded questionnaire is
        returned unchanged.
    texts : bool
        Whether the items' wording is needed. Without the wording, PsychoBench's thirteen scales
        load without a download, with keys, norms, ranges, and a placeholder for each item.

    Returns
    -------
    Questionnaire
        The questionnaire, which is immutable and checked in all its parts.

    Raises
    ------
    QuestionnaireError
        The file is missing or malformed. The message has one line per mistake, with the file, the
        item and the correction.
    DataError
        The wording is needed but can be neither found nor downloaded.

    References
    ----------
    Huang et al. (2024), Table 5 and appendix A; the description of the question_llm library,
    *Instantiating Questionnaires*.

    Examples
    --------
    >>> load_questionnaire("gad7").measures
    'anxiety'
    >>> [scale.title for scale in load_questionnaire("dtdd", texts=False).scales]
    ['Machiavellianism', 'Psychopathy', 'Narcissism']
    """
    check_flags(texts=texts)
    if isinstance(name_or_path, Questionnaire):
        return name_or_path

    named = name_or_path if isinstance(name_or_path, str) else ""
    if named in psychobench_keys():
        return _load_psychobench(named, texts)

    if named == COMPASS:
        path = fetch(COMPASS)
        description = {
            "id": COMPASS,
            "title": "Political Compass (question_llm)",
            "short_title": "PCT",
            "measures": "political position",
            "citation": "questionllm",
        }
        return parse_part(read(path, path.name) | description, path.name, Questionnaire)

    # A name such as ipip20-typos-1 has a questionnaire, a change and a seed.
    variant = re.fullmatch(rf"(.+)-({'|'.join(_PERTURBATIONS)})(?:-(\d{{1,9}}))?", named)
    if variant is not None and variant[1] in questionnaire_names():
        name, change, seed = variant.groups()
        return perturbed(load_questionnaire(name, texts), change, int(seed or 1), texts)

    path = _find(name_or_path)
    place = str(path)  # in the form that a reader would write
    for base in (questionnaires_dir().parent, Path.cwd()):
        if path.resolve().is_relative_to(base):
            place = path.resolve().relative_to(base).as_posix()

    place = place if place.isprintable() else repr(place)
    questionnaire = _parse_file(path, place, _read_text(path, place))
    if path.suffix.lower() not in (".json", ".osd") and questionnaire.id != path.stem:
        raise QuestionnaireError(
            f"{place}, id: '{questionnaire.id}' must be the file's name; rename one of the two."
        )

    _check_name(questionnaire, path, place)
    return questionnaire


@functools.lru_cache(64)  # reading YAML takes a tenth of a second, and most questionnaires recur
def _parse_file(path: Path, place: str, _content: str) -> Questionnaire:
    """Read and check a file, once as long as its content does not change."""
    return parse_part(read(path, place), place, Questionnaire)


def load_questionnaires(
    questionnaires: AnyQuestionnaires, texts: bool = True
) -> list[Questionnaire]:
    """Load one questionnaire or several, for functions that have a parameter ``questionnaires``.

    Parameters
    ----------
    questionnaires : Questionnaire, name or path, or several of them
    texts : bool
        As in :func:`load_questionnaire`.

    Returns
    -------
    list of Questionnaire

    Raises
    ------
    ParameterError
        No questionnaire is given.

    Examples
    --------
    >>> [loaded.id for loaded in load_questionnaires(["gad7", load_questionnaire("phq9")])]
    ['gad7', 'phq9']
    """
    names: Any = questionnaires
    is_single = isinstance(questionnaires, str | Path | Questionnaire)
    if is_single or not isinstance(questionnaires, Iterable):
        names = [questionnaires]

    loaded = [load_questionnaire(name, texts) for name in names]
    if not loaded:
        raise ParameterError("There is no questionnaire to ask or score: name at least one.")
    return loaded


def questionnaire_names() -> list[str]:
    """Return the names of questionnaires of the project and of other packages.

    Examples
    --------
    >>> {"gad7", "ipip50", "bfi"} <= set(questionnaire_names())
    True
    """
    shipped = sorted(path.stem for path in questionnaires_dir().glob("*.yaml"))
    names = [*shipped, *psychobench_keys(), COMPASS]
    return [*names, *sorted(set(_added_files()) - set(names))]


@functools.cache  # reading the installed packages takes longer than a questionnaire
def _added_files() -> dict[str, Path]:
    """Return the files of questionnaires that other packages add, by name."""
    files: dict[str, Path] = {}
    for point in entry_points(group="psychometrics.questionnaires"):
        folder = files_of(point.value)
        if isinstance(folder, Path):  # not inside an archive
            files |= {path.stem: path for path in sorted(folder.glob("*.yaml"))}

    return files


def counts(questionnaire: Questionnaire) -> pd.DataFrame:
    """Count each item's templates, terms, intensifiers, prompts and options.

    Parameters
    ----------
    questionnaire : Questionnaire, name or path

    Returns
    -------
    DataFrame
        Indexed by ``item_id``: ``templates``; ``source`` and ``inverse``, terms per template (a
        mean, if an item's templates have their own terms); ``intensifiers``; ``prompts``;
        ``options``.

    Examples
    --------
    >>> counts(load_questionnaire("gad7"))["intensifiers"].unique()
    array([8])
    """
    questionnaire = load_questionnaire(questionnaire)
    rows = []
    for item in questionnaire.items:
        terms = [template.terms or item.terms for template in item.templates]
        intensifiers = sum(len(level.terms) for level in questionnaire.levels(item))
        sizes = [(len(t.source), len(t.inverse)) for t in terms if t]
        source, inverse = (sum(side) for side in zip(*sizes, strict=True)) if sizes else (0, 0)
        row = {"item_id": item.id, "templates": len(terms)}
        row |= {"source": source / max(len(sizes), 1), "inverse": inverse / max(len(sizes), 1)}
        row |= {"intensifiers": intensifiers, "prompts": (source + inverse) * intensifiers}
        rows.append(row | {"options": len(questionnaire.choices(item))})

    return pd.DataFrame(rows).set_index("item_id")


def _find(name_or_path: str | Path) -> Path:
    if not isinstance(name_or_path, str | Path):
        raise QuestionnaireError(f"A questionnaire needs a name or path, not {name_or_path!r:.40}.")

    path = user_path(name_or_path)
    if path is not None:
        shipped = questionnaires_dir() / f"{name_or_path}.yaml"
        if isinstance(name_or_path, str) and "/" not in name_or_path and shipped.is_file():
            return shipped
        if path.is_file():
            return path
        if name_or_path in _added_files():
            return _added_files()[str(name_or_path)]

    names = questionnaire_names()
    name = str(name_or_path)[:100]
    raise QuestionnaireError(
        f"No questionnaire {name!r}{suggest(name, names)}: give one of {', '.join(names)}, or the "
        "path of a YAML, JSON or OSD file."
    )


def _check_name(questionnaire: Questionnaire, path: Path, place: str) -> None:
    """Refuse a different questionnaire with a shipped name, since the two would share answers."""
    shipped = questionnaires_dir() / f"{questionnaire.id}.yaml"
    is_own_file = (
        path == _added_files().get(questionnaire.id) or path.resolve() == shipped.resolve()
    )
    if is_own_file or questionnaire.id not in questionnaire_names():
        return
    if shipped.is_file() and load_questionnaire(questionnaire.id) == questionnaire:
        return
    raise QuestionnaireError(
        f"{place}, id: '{questionnaire.id}' is the name of a shipped questionnaire: rename yours."
    )
