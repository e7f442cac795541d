"""Questionnaires: what one holds, and how a file of any of three layouts is read and checked.

YAML is the project's own layout (``questionnaires/README.md`` lists its keys). PsychoBench's and
question_llm's JSON become the same :class:`Questionnaire`, by the same strict rules.
"""

from __future__ import annotations

import difflib
import functools
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import pandas as pd
import yaml
from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from ..data import fetch
from ..exceptions import ParameterError, QuestionnaireError
from ..paths import data_dir, questionnaires_dir

PLACEHOLDERS = ("term", "intensifier")
COMPASS = "political_compass"
PERTURBATIONS = ("order", "typos", "paraphrase", "negation")
"""Ways in which :func:`perturbed` changes how a questionnaire is asked."""
LARGEST = 1e9  # values, weights and scores lie between minus and plus this


def _clean(text: str) -> str:
    for before, sign, after in zip(" " + text, text, text[1:] + " ", strict=False):
        # Persian, Hindi and emoji need the two joiners; between other letters they only hide.
        joins = sign in "\u200c\u200d" and not before.isascii() and not after.isascii()
        hidden = unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") and sign != "\n"
        if (hidden and not joins) or ord(sign) & 0xFFFE == 0xFFFE:
            raise ValueError(f"holds the invisible sign U+{ord(sign):04X}: take it out")
    # Styled tables of a notebook pass text on to the page as it is.
    if tag := re.search(r"<[a-zA-Z/!?]", text):
        raise ValueError(f"holds what a page reads as a tag ('{tag[0]}'): put a blank after '<'")
    return text


def _one_line(text: str) -> str:
    if "\n" in text:
        raise ValueError("holds a line break: write it on one line")
    return text


def _without_gaps(text: str) -> str:
    if set("{}") & set(text):
        raise ValueError("holds a brace: only premise and hypothesis have gaps")
    return text


def _number(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")
    if not abs(value) <= LARGEST:  # NaN too
        raise ValueError(f"must be a finite number of at most {LARGEST:g}")
    return float(value)


def _truth(value: object) -> object:
    known = {"true": "True", "false": "False"}
    return known.get(str(value).strip().lower(), value)


def _key(value: object) -> object:
    if isinstance(value, bool) or value not in (1, -1):
        raise ValueError("must be 1, or -1 where agreement lowers the score")
    return int(value)


Text = Annotated[str, Field(min_length=1), AfterValidator(_clean), AfterValidator(_one_line)]
Paragraph = Annotated[str, Field(min_length=1), AfterValidator(_clean)]
Word = Annotated[Text, AfterValidator(_without_gaps)]
Words = Annotated[tuple[Word, ...], Field(min_length=1)]
Number = Annotated[float, BeforeValidator(_number)]
Size = Annotated[int, Field(strict=True, gt=0, le=LARGEST)]
Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=100)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class _Level(_Part):
    """A level of the Likert scale: interchangeable intensifiers and their common weight."""

    weight: Number
    terms: Words


class _Terms(_Part):
    """Construct terms: ``source`` (S+) keep the item's stance, ``inverse`` (S−) turn it round."""

    source: Words
    inverse: Words

    @model_validator(mode="after")
    def _each_once(self) -> _Terms:
        repeated = _repeated([*self.source, *self.inverse])
        if repeated:
            raise ValueError(
                f"{', '.join(map(repr, repeated))} occurs more than once: keep one of them"
            )
        return self


class _Template(_Part):
    """A premise and a hypothesis with one gap for a term and one for an intensifier."""

    premise: Text
    hypothesis: Text
    terms: _Terms | None = None

    @field_validator("premise", "hypothesis")
    @classmethod
    def _placeholders_known(cls, text: str) -> str:
        unknown = [name for name in re.findall(r"{([^{}]*)}", text) if name not in PLACEHOLDERS]
        if unknown:
            raise ValueError(
                f"unknown placeholder {{{unknown[0]}}}: templates know {{term}} and {{intensifier}}"
            )
        if set("{}") & set(re.sub(r"{[^{}]*}", "", text)):
            raise ValueError("has a brace without its partner: write {term} or {intensifier}")
        return text

    @model_validator(mode="after")
    def _placeholders_once(self) -> _Template:
        for name in PLACEHOLDERS:
            times = (self.premise + self.hypothesis).count(f"{{{name}}}")
            if times != 1:
                raise ValueError(
                    f"premise and hypothesis together need {{{name}}} exactly once, "
                    f"they have it {times} times"
                )
        return self


class _Candidates(_Part):
    """What could stand in for a template of the item, or for its terms: wordings to be measured.

    ``premises`` and ``hypotheses`` are tried in place of the template's own (the first by default);
    ``source`` and ``inverse`` terms beside its own.
    """

    template: Annotated[int, Field(strict=True, ge=1)] = 1
    premises: tuple[Text, ...] = ()
    hypotheses: tuple[Text, ...] = ()
    source: tuple[Word, ...] = ()
    inverse: tuple[Word, ...] = ()


class Option(_Part):
    """A response option as people see it, with the value that scores it."""

    value: Number
    label: Text


class Scale(_Part):
    """Items that are added up or averaged, after those in ``reverse`` are turned round.

    ``items: all`` in a file stands for every item; a subscale names its parent.
    """

    id: Text
    title: Text
    items: Words
    reverse: tuple[Text, ...] = ()
    mode: Literal["mean", "sum"] = "mean"
    parent: str | None = None


class _Norm(_Part):
    """Mean and standard deviation of a scale in a group of people, with the source."""

    scale: Text
    group: Text
    n: Size
    mean: Number
    sd: Annotated[Number, Field(gt=0)]
    citation: Text


class Item(_Part):
    """One question, its key, and what it needs for a way of asking.

    ``terms``, ``templates`` and ``intensifiers`` for NLI prompts, ``candidates`` for better ones;
    ``options`` where they are not the questionnaire's; ``weights``, what each option adds to each
    category; ``paraphrases`` and ``negated``, the text in other words and denied, for
    :func:`perturbed`.
    """

    id: Text
    text: Paragraph
    keying: Annotated[int, BeforeValidator(_key)] = 1
    terms: _Terms | None = None
    templates: tuple[_Template, ...] = ()
    candidates: tuple[_Candidates, ...] = ()
    intensifiers: Annotated[tuple[_Level, ...], Field(min_length=2)] | None = None
    options: Annotated[tuple[Option, ...], Field(min_length=2)] | None = None
    weights: tuple[tuple[Number, ...], ...] | None = None
    paraphrases: tuple[Paragraph, ...] = ()
    negated: Paragraph | None = None


class Questionnaire(_Part):
    """Items, response options, scales or categories, NLI templates, norms, source and terms."""

    id: Identifier
    title: Text
    short_title: Text
    measures: Text
    language: Text = "en"
    citation: Text
    source: Text
    licence: Text
    wording: Literal["verbatim", "paraphrase", "upstream"] = "verbatim"
    instructions: Paragraph | None = None
    system: Paragraph | None = None
    stem: Text | None = None
    options: tuple[Option, ...] = Field(
        default=(), validation_alias=AliasChoices("options", "response")
    )
    intensifiers: Annotated[tuple[_Level, ...], Field(min_length=2)] | None = None
    candidates: tuple[Annotated[tuple[_Level, ...], Field(min_length=2)], ...] = ()
    scales: tuple[Scale, ...] = ()
    norms: tuple[_Norm, ...] = ()
    categories: tuple[Text, ...] = ()
    bias: tuple[Number, ...] = ()
    items: Annotated[tuple[Item, ...], Field(min_length=1)]

    @model_validator(mode="before")
    @classmethod
    def _filled(cls, content: object) -> object:
        """``items: all`` of a scale as the list it stands for, and no bias as zeros."""
        if not isinstance(content, dict):
            return content
        items, scales, categories = (content.get(k) for k in ("items", "scales", "categories"))
        if isinstance(categories, list | tuple):
            content = {"bias": [0.0] * len(categories)} | content
        if not isinstance(items, list | tuple) or not isinstance(scales, list | tuple):
            return content
        ids = [i.get("id") if isinstance(i, dict) else getattr(i, "id", None) for i in items]
        ids = [name for name in ids if isinstance(name, str)]  # others are mistakes of the items
        whole = [
            {**scale, "items": ids}
            if isinstance(scale, dict) and scale.get("items") == "all"
            else scale
            for scale in scales
        ]
        return {**content, "scales": whole}

    @model_validator(mode="after")
    def _parts_fit(self) -> Questionnaire:
        if mistakes := _mistakes(self):
            raise ValueError("\n".join(mistakes))
        return self

    def item(self, item_id: str) -> Item:
        """The item with this id."""
        for item in self.items:
            if item.id == item_id:
                return item
        raise ParameterError(f"{self.id} has no item '{item_id}': it has {self.items[0].id} etc.")

    def scale(self, scale_id: str) -> Scale:
        """The scale with this id."""
        for scale in self.scales:
            if scale.id == scale_id:
                return scale
        known = ", ".join(scale.id for scale in self.scales)
        raise ParameterError(f"{self.id} has no scale '{scale_id}': it has {known}.")

    def members(self, scale: Scale) -> list[Item]:
        """Items of a scale, in the questionnaire's order."""
        return [item for item in self.items if item.id in scale.items]

    def keys(self, scale: Scale | None = None) -> dict[str, int]:
        """Key of each item (of a scale): -1 where agreement lowers the score, else 1."""
        reverse = scale.reverse if scale else ()
        members = self.members(scale) if scale else self.items
        return {item.id: -item.keying if item.id in reverse else item.keying for item in members}

    def levels(self, item: Item) -> tuple[_Level, ...]:
        """Levels of intensifiers that an item is asked with: its own, or the questionnaire's."""
        return item.intensifiers or self.intensifiers or ()

    def choices(self, item: Item | str) -> tuple[Option, ...]:
        """Options of an item (or the item with this id): its own, or the questionnaire's."""
        if isinstance(item, str):
            item = self.item(item)
        return item.options or self.options

    def statement(self, item: Item) -> str:
        """The item as a whole sentence: after the stem, if there is one, and with a full stop."""
        text = item.text
        if self.stem:
            text = f"{self.stem} {text[0].lower()}{text[1:]}"
        return text if text[-1] in ".?!" else f"{text}."

    def span(self, scale: Scale) -> tuple[float, float]:
        """Lowest and highest score that a scale can take by its options."""
        ends = [[o.value for o in self.choices(name)] for name in scale.items]
        if not all(ends):
            raise ParameterError(f"{self.id} has items without options, so no range.")
        low, high = sum(min(e) for e in ends), sum(max(e) for e in ends)
        return (low, high) if scale.mode == "sum" else (low / len(ends), high / len(ends))


def load_questionnaire(
    name_or_path: str | Path | Questionnaire, texts: bool = True
) -> Questionnaire:
    """Read and check a questionnaire.

    Parameters
    ----------
    name_or_path : str or Path
        One of :func:`questionnaire_names`, one of them changed (``ipip20-typos-1``, see
        :func:`perturbed`), or the path of a file: YAML in the project's layout, or JSON in
        PsychoBench's or question_llm's. A loaded questionnaire is given back.
    texts : bool
        Whether the items' wording is needed. Without it PsychoBench's thirteen scales load with
        no download: keys, norms and ranges, and a placeholder for each item.

    Returns
    -------
    Questionnaire
        Frozen; every part of it is checked.

    Raises
    ------
    QuestionnaireError
        The file is missing or malformed. The message has one line per mistake, each naming the
        file, the item and the mend.
    DataError
        The wording is needed and can neither be found nor downloaded.

    References
    ----------
    Huang et al. (2024), Table 5 and appendix A; the question_llm library's description,
    *Instantiating Questionnaires*.

    Examples
    --------
    >>> load_questionnaire("gad7").measures
    'anxiety'
    >>> [scale.title for scale in load_questionnaire("dtdd", texts=False).scales]
    ['Machiavellianism', 'Psychopathy', 'Narcissism']
    """
    if isinstance(name_or_path, Questionnaire):
        return name_or_path
    if isinstance(name_or_path, str) and name_or_path in psychobench_keys():
        return _psychobench(name_or_path, texts)
    if isinstance(name_or_path, str) and name_or_path == COMPASS:
        path = fetch(COMPASS)
        stated = {
            "id": COMPASS,
            "title": "Political Compass, as used by question_llm",
            "short_title": "PCT",
            "measures": "political position",
            "citation": "questionllm",
        }
        content = _checked(_json(path, path.name), path.name, _QuestionLlm).ours(path)
        return _checked(content | stated, path.name)
    if isinstance(name_or_path, str) and (known := perturbation(name_or_path)):
        name, how, seed = known
        return _perturbed(load_questionnaire(name, texts), how, seed, texts)
    path = _find(name_or_path)
    place = _shown(path)
    if path.suffix.lower() == ".json":
        content = _json(path, place)
        entry = content[0] if isinstance(content, list) and len(content) == 1 else content
        if isinstance(entry, list):
            raise QuestionnaireError(
                f"{place}: holds {len(entry)} questionnaires; give each a file of its own."
            )
        keys = set(entry) if isinstance(entry, dict) else set()
        layout = max(
            _QuestionLlm, _PsychoBench, key=lambda known: len(keys & set(known.model_fields))
        )
        content = _checked(entry, place, layout).ours(path)
    else:
        content = _yaml(path, place)
    questionnaire = _checked(content, place)
    if path.suffix.lower() != ".json" and questionnaire.id != path.stem:
        raise QuestionnaireError(
            f"{place}, id: '{questionnaire.id}' must be the file's name without its ending; "
            f"rename one of the two."
        )
    _not_shipped(questionnaire, path, place)
    return questionnaire


def questionnaire_names() -> list[str]:
    """Names of the questionnaires that come with the project.

    Examples
    --------
    >>> {"gad7", "ipip50", "bfi"} <= set(questionnaire_names())
    True
    """
    own = sorted(path.stem for path in questionnaires_dir().glob("*.yaml"))
    return [*own, *psychobench_keys(), COMPASS]


@functools.cache
def psychobench_keys() -> dict[str, dict]:
    """Keys, ranges, norms and sources of PsychoBench's thirteen scales, from ``data/norms``.

    Returns
    -------
    dict
        By the questionnaire's id, in the order of the paper's Table 5.
    """
    return yaml.safe_load((data_dir() / "norms" / "psychobench.yml").read_text(encoding="utf-8"))


def overview(names: Iterable[str] | None = None) -> pd.DataFrame:
    """Scales of questionnaires: items, range, scoring, norms.

    Parameters
    ----------
    names : iterable of str, optional
        By default all that come with the project, but the political compass, whose file is fetched.

    Returns
    -------
    DataFrame
        One row per scale, or per category: ``questionnaire, scale, items, reversed, low, high``
        (missing without options, and of categories)``, mode, groups`` (of norms).

    References
    ----------
    Huang et al. (2024), Table 5, has thirteen of them.

    Examples
    --------
    >>> overview(["epq-r"])["items"].sum().item()
    100
    """
    rows = []
    for name in names or [name for name in questionnaire_names() if name != COMPASS]:
        questionnaire = load_questionnaire(name, texts=False)
        for scale in questionnaire.scales:
            optional = all(questionnaire.choices(item) for item in scale.items)
            low, high = questionnaire.span(scale) if optional else (None, None)
            groups = sum(norm.scale == scale.id for norm in questionnaire.norms)
            reverse = sum(key < 0 for key in questionnaire.keys(scale).values())
            figures = (len(scale.items), reverse, low, high, scale.mode, groups)
            rows.append((questionnaire.id, scale.title, *figures))
        rows += [
            (questionnaire.id, category, len(questionnaire.items), 0, None, None, "category", 0)
            for category in questionnaire.categories
        ]
    columns = ["questionnaire", "scale", "items", "reversed", "low", "high", "mode", "groups"]
    return pd.DataFrame(rows, columns=columns)


def counts(questionnaire: Questionnaire) -> pd.DataFrame:
    """Templates, terms, intensifiers and prompts of each item.

    Parameters
    ----------
    questionnaire : Questionnaire

    Returns
    -------
    DataFrame
        Indexed by ``item_id``: ``templates``; ``source`` and ``inverse``, terms per template (a
        mean, where an item's templates have terms of their own); ``intensifiers``; ``prompts``;
        ``options``.

    Examples
    --------
    >>> counts(load_questionnaire("gad7"))["intensifiers"].unique()
    array([8])
    """
    rows = []
    for item in questionnaire.items:
        terms = [template.terms or item.terms for template in item.templates]
        intensifiers = sum(len(level.terms) for level in questionnaire.levels(item))
        sizes = [(len(t.source), len(t.inverse)) for t in terms if t]
        rows.append(
            {
                "item_id": item.id,
                "templates": len(terms),
                "source": sum(s for s, _ in sizes) / max(len(sizes), 1),
                "inverse": sum(i for _, i in sizes) / max(len(sizes), 1),
                "intensifiers": intensifiers,
                "prompts": sum(s + i for s, i in sizes) * intensifiers,
                "options": len(questionnaire.choices(item)),
            }
        )
    return pd.DataFrame(rows).set_index("item_id")


def perturbed(questionnaire: str | Path | Questionnaire, how: str, seed: int = 1) -> Questionnaire:
    """The same questionnaire asked in another way, to see what its answers hang on.

    What comes back is a questionnaire like any other, so every mode asks it. Its id is the old one
    with what was done, ``ipip20-typos-1``, and :func:`load_questionnaire` knows shipped ones by
    that name. Items keep their ids; norms are left out, as they hold for the old wording.

    Parameters
    ----------
    questionnaire : Questionnaire, name or path
    how : {"none", "order", "typos", "paraphrase", "negation"}
        ``order``: the items in another order. ``typos``: a slip in about one of six words of four
        letters or more, and in at least one of each text that has such a word. ``paraphrase``: one
        of the item's ``paraphrases``, else its statement in a frame (*It is true that I ...*).
        ``negation``: the item's ``negated`` text, else a denial by rule (*I do not ...*); keys and
        category weights turn round with it. Premises of templates are put in the same frames;
        terms and intensifiers stay.
    seed : int
        Of all draws; ``negation`` has none.

    Returns
    -------
    Questionnaire
        With ``none`` the one that was given.

    Raises
    ------
    ParameterError
        There is no such way, the seed is impossible, or no rule fits an item that has no text of
        its own for it. The rules are English: in other languages items need ``paraphrases`` or
        ``negated``, and their templates are left out.

    Examples
    --------
    >>> mini = load_questionnaire("ipip20")
    >>> denied = perturbed(mini, "negation")
    >>> denied.statement(denied.items[0]), denied.keys()["ipip20_1"]
    ('I am not the life of the party.', -1)
    >>> load_questionnaire("ipip20-typos-1").items[1].text
    "Sympathze with others' feelings."
    """
    return _perturbed(load_questionnaire(questionnaire), how, seed)


def perturbation(name: str) -> tuple[str, str, int] | None:
    """The shipped questionnaire, way and seed of a name such as ``ipip20-typos-1``, if it is one.

    Examples
    --------
    >>> perturbation("ipip20-typos-2"), perturbation("ipip20")
    (('ipip20', 'typos', 2), None)
    """
    ways = "|".join(PERTURBATIONS)
    match = (
        re.fullmatch(rf"(.+)-({ways})(?:-(\d{{1,9}}))?", name) if isinstance(name, str) else None
    )
    if match is None or match[1] not in questionnaire_names():
        return None
    return match[1], match[2], int(match[3] or 1)


def _perturbed(questionnaire: Questionnaire, how: str, seed: int, texts: bool = True):
    if how == "none":
        return questionnaire
    if how not in PERTURBATIONS:
        raise ParameterError(f"how must be none or one of {', '.join(PERTURBATIONS)}, got {how!r}.")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 10**9:
        raise ParameterError(f"seed must be a whole number from 0, got {seed!r}.")
    items, stem = list(questionnaire.items), questionnaire.stem
    # A generator for each item: what one item becomes does not depend on the others.
    draws = [np.random.default_rng([seed, number]) for number in range(len(items) + 1)]
    if how == "order":
        items = [items[i] for i in draws[-1].permutation(len(items))]
    elif how == "typos":
        items = [_with_typos(item, rng) for item, rng in zip(items, draws, strict=False)]
    else:
        reword = _reworded if how == "paraphrase" else _denied
        items = [
            reword(questionnaire, item, rng, texts) for item, rng in zip(items, draws, strict=False)
        ]
        stem = None  # is in each text
    suffix = how if how == "negation" else f"{how}-{seed}"
    content = questionnaire.model_dump() | {
        "id": f"{questionnaire.id}-{suffix}",
        "title": f"{questionnaire.title}, {suffix.replace('-', ' ')}",
        "short_title": f"{questionnaire.short_title} ({suffix.replace('-', ' ')})",
        "wording": questionnaire.wording if how == "order" else "paraphrase",
        "items": [item.model_dump() for item in items],
        "stem": stem,
        "norms": (),
    }
    return _checked(content, f"{questionnaire.id}-{suffix}")


def _with_typos(item: Item, rng: np.random.Generator) -> Item:
    templates = [
        template.model_copy(
            update={
                "premise": _mistyped(template.premise, rng),
                "hypothesis": _mistyped(template.hypothesis, rng),
            }
        )
        for template in item.templates
    ]
    return item.model_copy(
        update={"text": _mistyped(item.text, rng), "templates": tuple(templates)}
    )


def _mistyped(text: str, rng: np.random.Generator) -> str:
    """A text with slips inside words: a letter left out, doubled, or in its neighbour's place."""
    gaps = [match.span() for match in re.finditer(r"{[^{}]*}", text)]
    words = [
        match.span()
        for match in re.finditer(r"[^\W\d_]{4,}", text)
        if not any(start <= match.start() < end for start, end in gaps)
    ]
    if not words:
        return text
    chosen = rng.choice(len(words), max(1, round(len(words) / 6)), replace=False)
    for start, end in sorted((words[i] for i in chosen), reverse=True):
        place = int(rng.integers(start + 1, end - 1))  # neither the first letter nor the last
        kind = rng.choice(["left out", "doubled", "swapped"])
        here, after = text[place], text[place + 1]
        if kind == "swapped" and here != after and place + 1 < end - 1:
            typed = after + here
        elif kind == "left out":
            typed = after
        else:
            typed = here + here + after
        text = text[:place] + typed + text[place + 2 :]
    return text


_SAID_OTHERWISE = (
    ("It is true that {}", "I can say of myself that {}", "It is a fact that {}"),
    ("The following is true: {}", "This is how it is: {}", "What follows is so: {}"),
    ("The following: {}", "Something of this kind: {}", "What is named here: {}"),
)
"""Frames for statements of the first person, for others, and for phrases (not whole sentences)."""


def _reworded(questionnaire: Questionnaire, item: Item, rng, texts: bool) -> Item:
    english = questionnaire.language == "en"
    statement = questionnaire.statement(item)
    frame = int(rng.integers(3))
    if item.paraphrases:
        text = item.paraphrases[int(rng.integers(len(item.paraphrases)))]
        statement = questionnaire.statement(item.model_copy(update={"text": text}))
    elif texts and questionnaire.choices(item):
        if not english or statement.endswith("?"):
            raise _without_rule(questionnaire, item, "paraphrases")
        statement = _framed(statement, frame, _is_phrase(questionnaire, item))
    templates = tuple(
        template.model_copy(update={"premise": _framed(template.premise, frame, False)})
        for template in item.templates
        if english
    )
    return item.model_copy(update={"text": statement, "templates": templates, **_SPENT})


def _framed(text: str, frame: int, phrase: bool) -> str:
    if re.match(r"I\b", text):
        return _SAID_OTHERWISE[0][frame].format(text)
    return _SAID_OTHERWISE[2 if phrase else 1][frame].format(text)


def _denied(questionnaire: Questionnaire, item: Item, _rng, texts: bool) -> Item:
    english = questionnaire.language == "en"
    statement = questionnaire.statement(item)
    if item.negated:
        statement = questionnaire.statement(item.model_copy(update={"text": item.negated}))
    elif texts and questionnaire.choices(item):
        rule = _no_such if _is_phrase(questionnaire, item) else _not_so
        known = english and not statement.endswith("?")
        if (statement := rule(statement) if known else None) is None:
            raise _without_rule(questionnaire, item, "negated")
    templates = tuple(
        template.model_copy(update={"premise": _untrue(template.premise)})
        for template in item.templates
        if english
    )
    weights = None if item.weights is None else item.weights[::-1]
    changed = {"text": statement, "templates": templates, "keying": -item.keying}
    return item.model_copy(update={**changed, "weights": weights, **_SPENT})


def _is_phrase(questionnaire: Questionnaire, item: Item) -> bool:
    return not questionnaire.stem and item.text[-1] not in ".?!"


def _untrue(text: str) -> str:
    if re.match(r"I\b", text):
        return f"It is not true that {text}"
    return f"The following is not true: {text}"


def _not_so(statement: str) -> str:
    """A sentence denied: one of the first person in its verb, another as a whole."""
    for known, denied in _DENIALS:
        if re.match(known, statement):
            return re.sub(known, denied, statement, count=1)
    return _untrue(statement)


_DENIALS = (
    (r"I am not ", "I am "),
    (r"I (?:do not|don't) ", "I "),
    (r"I (?:cannot|can't) ", "I can "),
    (r"I (?:will not|won't) ", "I will "),
    (r"I(?:'m| am) ", "I am not "),
    (r"I (will|can|could|should|would|must|may|might) ", r"I \1 not "),
    (r"I (?:seldom|rarely) ", "I often "),
    (r"I (?:never) ", "I sometimes "),
    # What is in the past has another form than the denial's verb.
    (r"I (?!(?:had|was|were|did|felt|went|made|got|saw|knew|thought|have been|[a-z]+ed) )([a-z]+) ",
     r"I do not \1 "),
)  # fmt: skip


def _no_such(phrase: str) -> str | None:
    """A phrase such as *Feeling nervous* or *Trouble relaxing* denied; None where no rule fits."""
    if match := re.match(r"Not (\w)", phrase):
        return match[1].upper() + phrase[match.end() :]
    if re.match(r"[A-Z][a-z]+ing\b", phrase):
        return f"Not {phrase[0].lower()}{phrase[1:]}"
    if re.match(r"(?:Trouble|Difficulty|Difficulties|Problems|Thoughts|Loss|Lack) ", phrase):
        return f"No {phrase[0].lower()}{phrase[1:]}"
    return None


def _without_rule(questionnaire: Questionnaire, item: Item, key: str) -> ParameterError:
    return ParameterError(
        f"{questionnaire.id}, {item.id}: no rule fits its text; give the item `{key}` in its file."
    )


_SPENT = {"paraphrases": (), "negated": None}


# --- reading files


class _StrictLoader(yaml.SafeLoader):
    """The safe loader without YAML 1.1's surprises: 1:30 is text, so is a date; no key twice."""

    yaml_implicit_resolvers: ClassVar = {
        first: [pair for pair in resolvers if pair[0].rpartition(":")[2] in ("null", "bool")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    yaml_constructors: ClassVar = {
        tag: make
        for tag, make in yaml.SafeLoader.yaml_constructors.items()
        if tag is None or tag.rpartition(":")[2] in ("null", "bool", "float", "str", "seq", "map")
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                problem = f"the key {key!r} is no text: put it in quotes"
            elif key in seen:
                problem = f"'{key}' is given twice: keep one"
            else:
                seen.add(key)
                continue
            raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
        return super().construct_mapping(node, deep)


_NUMBERS = {  # YAML 1.2's, of a length that a number needs
    "int": r"[-+]?\d{1,30}$",
    "float": r"[-+]?(\d{1,30}\.\d{0,30}|\.\d{1,30}|\d{1,30}(?=[eE]))([eE][-+]?\d{1,3})?$"
    r"|[-+]?\.(inf|Inf|INF)$|\.(nan|NaN|NAN)$",
}
for _kind, _pattern in _NUMBERS.items():
    _StrictLoader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_kind}", re.compile(_pattern, re.ASCII), list("-+0123456789.")
    )
_StrictLoader.add_constructor(
    "tag:yaml.org,2002:int", lambda loader, node: int(loader.construct_scalar(node))
)


def _find(name_or_path: str | Path) -> Path:
    if not isinstance(name_or_path, str | Path):
        raise QuestionnaireError(
            f"A questionnaire is named by text or a path, not by {type(name_or_path).__name__}."
        )
    try:
        shipped = questionnaires_dir() / f"{name_or_path}.yaml"
        if isinstance(name_or_path, str) and "/" not in name_or_path and shipped.is_file():
            return shipped
        path = Path(name_or_path).expanduser()
        if path.is_file():
            return path
    except (OSError, RuntimeError, ValueError):  # too long, an unknown user's home, a NUL
        pass
    names = questionnaire_names()
    asked = _line(str(name_or_path)[:100])
    near = difflib.get_close_matches(asked, names, n=1)
    hint = f" (did you mean '{near[0]}'?)" if near else ""
    raise QuestionnaireError(
        f"No questionnaire '{asked}'{hint}: give one of {', '.join(names)}, or the path of a "
        "YAML or JSON file."
    )


def _shown(path: Path) -> str:
    """The path as a reader would write it."""
    for base in (Path.cwd(), questionnaires_dir().parent):
        if path.resolve().is_relative_to(base):
            return _line(path.resolve().relative_to(base).as_posix())
    return _line(str(path))


def _text(path: Path, place: str) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise QuestionnaireError(f"{place}: not a text file; save it as UTF-8.") from None
    except OSError as error:
        raise QuestionnaireError(
            f"{place}: cannot be read ({error.strerror}); see to its permissions."
        ) from None


def _yaml(path: Path, place: str) -> object:
    text = _text(path, place)
    try:
        return yaml.load(text, Loader=_StrictLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise QuestionnaireError(
            f"{place}{where}: not valid YAML ({_line(str(error.problem))})."
        ) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise QuestionnaireError(
            f"{place}, line {line}: holds the invisible sign U+{error.character:04X}; take it out."
        ) from None
    except (KeyError, ValueError):  # such as `!!bool maybe`
        raise QuestionnaireError(f"{place}: a tag (!!...) misfits its value; remove it.") from None
    except RecursionError:
        raise QuestionnaireError(f"{place}: nested too deeply; a questionnaire is flat.") from None


def _json(path: Path, place: str) -> object:
    def once(pairs: list[tuple[str, object]]) -> dict:
        if repeated := _repeated([key.strip() for key, _ in pairs], fold=False):
            raise QuestionnaireError(f"{place}: '{_line(repeated[0])}' is given twice; keep one.")
        return dict(pairs)

    def refused(name: str):
        raise QuestionnaireError(f"{place}: {name} is no number; write a finite one.")

    try:
        return json.loads(_text(path, place), object_pairs_hook=once, parse_constant=refused)
    except QuestionnaireError:
        raise
    except json.JSONDecodeError as error:
        raise QuestionnaireError(
            f"{place}, line {error.lineno}, column {error.colno}: not valid JSON ({error.msg})."
        ) from None
    except (RecursionError, ValueError):
        raise QuestionnaireError(f"{place}: nested too deeply, or a number too long.") from None


def _checked(content: object, place: str, schema: type[_Part] = Questionnaire):
    if not isinstance(content, dict):
        raise QuestionnaireError(f"{place}: holds no questionnaire; give it keys, such as `items`.")
    try:
        return schema.model_validate(content)
    except ValidationError as error:
        found = error.errors()
    # A list whose parts are wrong is not too short besides.
    inside = {mistake["loc"][:size] for mistake in found for size in range(len(mistake["loc"]))}
    told = [_told(m, content) for m in found if m["type"] != "too_short" or m["loc"] not in inside]
    lines = dict.fromkeys(f"{place}{_line(line)}." for lines in told for line in lines)
    raise QuestionnaireError("\n".join(lines))


def _not_shipped(questionnaire: Questionnaire, path: Path, place: str) -> None:
    """Refuse another questionnaire under a shipped one's name: their answers would be mixed up."""
    if questionnaire.id not in questionnaire_names():
        return
    shipped = questionnaires_dir() / f"{questionnaire.id}.yaml"
    if path.resolve() == shipped.resolve():
        return
    if shipped.is_file() and load_questionnaire(questionnaire.id) == questionnaire:
        return
    raise QuestionnaireError(
        f"{place}, id: '{questionnaire.id}' is the name of a questionnaire that comes with the "
        "project and differs from this one; rename the file and its id."
    )


# --- what PsychoBench ships, and its layout


def _psychobench(name: str, texts: bool) -> Questionnaire:
    keys = psychobench_keys()[name]
    upstream = _upstream_entry(name) if texts else {}
    low, high = keys["range"]
    labels = keys["labels"]
    if isinstance(labels, dict):  # only some levels have words; the others are their number
        labels = [labels.get(value, str(value)) for value in range(low, high + 1)]
    reverse = set(keys["reverse"])
    scales = [
        {
            "id": scale["id"],
            "title": scale["title"],
            "items": [f"{name}_{i}" for i in scale["items"]],
            "reverse": [f"{name}_{i}" for i in scale["items"] if i in reverse],
            "mode": keys["mode"],
        }
        for scale in keys["scales"]
    ]
    by_title = {scale["title"]: scale["items"] for scale in keys["scales"]}
    for model, dimensions in keys.get("dimensions", {}).items():
        scales += [
            {
                "id": f"{model}_{title.lower().replace(' ', '_')}",
                "title": f"{title} ({model.upper()})",
                "items": [f"{name}_{i}" for interest in members for i in by_title[interest]],
                "mode": keys["mode"],
            }
            for title, members in dimensions.items()
        ]
    norms = [
        {"scale": scale["id"], "citation": keys["norm_citation"], **norm}
        for scale in keys["scales"]
        for norm in scale["norms"]
    ]
    questions = upstream.get("questions", {})
    content = {
        "id": name,
        "title": keys["title"],
        "short_title": keys["upstream"],
        "measures": keys["measures"],
        "citation": keys["citation"],
        "source": f"PsychoBench's questionnaires.json, {keys['upstream']}",
        "licence": "wording: see the questionnaire's owner, read at run time and not shipped",
        "wording": "upstream",
        "instructions": upstream.get("prompt", f"Instructions of the {keys['upstream']}."),
        "system": upstream.get("inner_setting"),
        "stem": keys.get("stem"),
        "options": [
            {"value": value, "label": label}
            for value, label in zip(range(low, high + 1), labels, strict=True)
        ],
        "items": [
            {
                "id": f"{name}_{i}",
                "text": questions.get(str(i), f"({keys['upstream']}, item {i})"),
            }
            for i in range(1, keys["n_items"] + 1)
        ],
        "scales": scales,
        "norms": norms,
    }
    return _checked(content, f"data/norms/psychobench.yml, {name}")


@functools.cache
def corrections() -> pd.DataFrame:
    """What is wrong in PsychoBench's file and how the project has it.

    Returns
    -------
    DataFrame
        ``questionnaire, kind, place, upstream, ours, reason``. Rows of the kind *wording* are
        applied when items are read; *name* is corrected in the project's keys; the others say
        what a reader should know.

    Examples
    --------
    >>> set(corrections().query("questionnaire == 'dtdd' and kind == 'name'")["ours"])
    {'Narcissism'}
    """
    return pd.read_csv(data_dir() / "norms" / "corrections.csv", keep_default_na=False)


@functools.cache
def _upstream_file() -> dict[str, dict]:
    entries = json.loads(fetch("psychobench").read_text(encoding="utf-8"))
    return {entry["name"]: entry for entry in entries}


def _upstream_entry(name: str) -> dict:
    """PsychoBench's entry of a scale, with the project's corrections of its wording."""
    entry = _upstream_file()[psychobench_keys()[name]["upstream"]]
    entry = {**entry, "questions": dict(entry["questions"])}
    known = corrections()
    for row in known[(known["questionnaire"] == name) & (known["kind"] == "wording")].itertuples():
        part, place = entry["questions"], row.place.removeprefix("item ")
        if row.place == "prompt":
            part = entry
        if row.upstream not in part[place]:
            raise QuestionnaireError(
                f"data/norms/corrections.csv, {name}, {row.place}: '{row.upstream}' is not in the "
                "upstream wording; remove or correct that row."
            )
        part[place] = part[place].replace(row.upstream, row.ours)
    return entry


# --- the two JSON layouts, as their owners write them


class _Crowd(_Part):
    crowd_name: Text
    mean: Number
    std: Annotated[Number, Field(gt=0)]
    n: Size


class _Category(_Part):
    cat_name: Text
    cat_questions: tuple[Size, ...]
    crowd: tuple[_Crowd, ...] = ()


class _PsychoBench(_Part):
    """One entry of PsychoBench's ``questionnaires.json``."""

    name: Text
    questions: dict[Word, Paragraph]
    inner_setting: Paragraph | None = None
    prompt: Paragraph
    scale: Annotated[int, Field(strict=True)]
    compute_mode: Literal["AVG", "SUM"]
    reverse: tuple[Size, ...] = ()
    categories: Annotated[tuple[_Category, ...], Field(min_length=1)]

    @property
    def range(self) -> tuple[int, int]:
        """Lowest and highest answer; the file has their sum, and the prompt often has both."""
        spoken = re.search(r"from (-?\d{1,4}) to (-?\d{1,4})(?!\d)", self.prompt)
        low = int(spoken[1]) if spoken and int(spoken[1]) + int(spoken[2]) == self.scale else 1
        return low, self.scale - low

    @model_validator(mode="after")
    def _adds_up(self) -> _PsychoBench:
        low, high = self.range
        found = [
            f"reverse: there is no question {number}; correct it"
            for number in self.reverse
            if str(number) not in self.questions
        ]
        if not low < high <= low + 100:
            found.append(f"scale: must be the lowest and highest answer added up, got {self.scale}")
        if found:
            raise ValueError("\n".join(found))
        return self

    def ours(self, path: Path) -> dict:
        """The entry in the project's layout."""
        stem = _slug(path.stem)
        low, high = self.range
        words = dict(re.findall(r"(-?\d+) denotes ['\"]?([^'\",;.\n]+)", self.prompt))
        turned = {f"{stem}_{i}" for i in self.reverse}
        scales, norms = [], []
        for number, category in enumerate(self.categories, start=1):
            name = re.sub(r"[^a-z0-9]+", "_", category.cat_name.lower()).strip("_")
            items = [f"{stem}_{i}" for i in category.cat_questions]
            scale = {
                "id": name or f"s{number}",
                "title": category.cat_name,
                "items": items,
                "reverse": [item for item in items if item in turned],
                "mode": {"AVG": "mean", "SUM": "sum"}[self.compute_mode],
            }
            scales.append(scale)
            norms += [
                {"scale": scale["id"], "group": crowd.crowd_name, "n": crowd.n}
                | {"mean": crowd.mean, "sd": crowd.std, "citation": "user"}
                for crowd in category.crowd
            ]
        return _unstated(path, self.name) | {
            "measures": ", ".join(category.cat_name for category in self.categories),
            "instructions": self.prompt,
            "system": self.inner_setting,
            "options": [
                {"value": value, "label": words.get(str(value), str(value))}
                for value in range(low, high + 1)
            ],
            "items": [{"id": f"{stem}_{i}", "text": text} for i, text in self.questions.items()],
            "scales": scales,
            "norms": norms,
        }


class _Question(_Part):
    question: Paragraph
    choices: Annotated[tuple[Text, ...], Field(min_length=2)] | None = None
    scores: Annotated[tuple[tuple[Number, ...], ...], Field(min_length=2)] | None = None
    answer: Annotated[Literal["True", "False"], BeforeValidator(_truth)] | None = None


class _QuestionLlm(_Part):
    """A file of question_llm: Likert (``choice_descs``), choice (``choices``) or true/false."""

    instruction: Paragraph | None = None
    categories: Annotated[tuple[Text, ...], Field(min_length=1)] | None = None
    categories_bias: tuple[Number, ...] | None = None
    choice_descs: Annotated[tuple[Text, ...], Field(min_length=2)] | None = None
    data: Annotated[dict[Text, _Question], Field(min_length=1)]

    def labels(self, question: _Question) -> tuple[str, ...]:
        """What a question's options read: its own, the file's, or true and false."""
        return question.choices or self.choice_descs or ("True", "False")

    @model_validator(mode="after")
    def _scored(self) -> _QuestionLlm:
        found, right = [], [key for key, q in self.data.items() if q.answer is not None]
        width = len(self.categories or ("Correct", "Incorrect"))
        if self.categories is None and len(right) < len(self.data):
            found.append("categories: is missing; add it, or give every question its `answer`")
        for key, question in self.data.items():
            shape = [len(row) for row in question.scores or ()]
            size = len(self.labels(question))
            if question.answer is not None and (self.categories or question.scores):
                found.append(f"data, {key}: has an answer beside categories or scores; remove one")
            elif self.categories and shape != [width] * size:
                found.append(
                    f"data, {key}, scores: must be a list of {size} options, each a list of "
                    f"{width} categories; correct them or `choices`"
                )
            elif question.answer is not None and self.labels(question) != ("True", "False"):
                found.append(f"data, {key}, answer: needs the choices True and False")
        if found:
            raise ValueError("\n".join(found))
        return self

    def ours(self, path: Path) -> dict:
        """The file in the project's layout; true/false questions add to correct or incorrect."""
        items = []
        for key, question in self.data.items():
            scores = question.scores
            if scores is None:
                scores = ((1, 0), (0, 1)) if question.answer == "True" else ((0, 1), (1, 0))
            options = enumerate(self.labels(question), start=1)
            items.append(
                {
                    "id": key,
                    "text": question.question,
                    "options": [{"value": value, "label": label} for value, label in options],
                    "weights": scores,
                }
            )
        categories = self.categories or ("Correct", "Incorrect")
        return _unstated(path, path.stem) | {
            "measures": ", ".join(categories),
            "instructions": self.instruction or "Choose the option that fits best.",
            "items": items,
            "categories": categories,
            "bias": self.categories_bias or [0.0] * len(categories),
        }


def _unstated(path: Path, title: str) -> dict:
    """What a JSON file does not say."""
    return {
        "id": _slug(path.stem),
        "title": title,
        "short_title": title,
        "citation": "user",
        "source": path.name,
        "licence": "as the file's owner states",
    }


def _slug(stem: str) -> str:
    return re.sub(r"[^a-z0-9_-]+", "-", stem.lower()).strip("-_") or "own"


# --- mistakes


def _mistakes(questionnaire: Questionnaire) -> list[str]:
    """What each part on its own cannot see."""
    found = []
    ids = [item.id for item in questionnaire.items]
    found += [f"items: the id '{i}' occurs more than once; rename one" for i in _repeated(ids)]
    found += _level_mistakes("intensifiers", questionnaire.intensifiers or ())
    for number, levels in enumerate(questionnaire.candidates, start=1):
        found += _level_mistakes(f"candidate {number}", levels)
    found += _option_mistakes("options", questionnaire.options)
    if not any(item.templates or questionnaire.choices(item) for item in questionnaire.items):
        found.append("items: none has templates or options, so none can be asked; add them")
    if not questionnaire.scales and not questionnaire.categories:
        found.append("scales: is missing; add it, or categories")
    first: dict[tuple, str] = {}
    for item in questionnaire.items:
        same = first.setdefault((_fold(item.text), item.options, item.templates), item.id)
        if same != item.id:
            found.append(f"items: '{item.id}' is the same question as '{same}'; keep one")
    for number, item in enumerate(questionnaire.items, start=1):
        found += _item_mistakes(f"item {number} ({item.id})", questionnaire, item)
    found += _scale_mistakes(questionnaire, ids)
    found += [f"categories: '{c}' is listed twice; keep one" for c in _repeated(
        questionnaire.categories)]  # fmt: skip
    if len(questionnaire.bias) not in (0, len(questionnaire.categories)):
        found.append("bias: must have one number for each category; correct it")
    return found


def _item_mistakes(place: str, questionnaire: Questionnaire, item: Item) -> list[str]:
    found = _level_mistakes(place, item.intensifiers or ())
    options = questionnaire.choices(item)
    found += _option_mistakes(place, item.options or ())
    if item.templates and not questionnaire.levels(item):
        found.append(f"{place}: has templates, but there are no intensifiers; add them")
    if len(options) == 1:
        found.append(f"{place}: has one option only; add another")
    for at, template in enumerate(item.templates, start=1):
        if not (template.terms or item.terms):
            found.append(
                f"{place}, template {at}: has no terms; give the item source and inverse terms"
            )
        if template in item.templates[: at - 1]:
            found.append(f"{place}, template {at}: is there already; keep one")
    for at, candidate in enumerate(item.candidates, start=1):
        found += _candidate_mistakes(f"{place}, candidate {at}", item, candidate)
    if questionnaire.categories:
        shape = [len(row) for row in item.weights or ()]
        if shape != [len(questionnaire.categories)] * len(options):
            found.append(
                f"{place}: weights must be {len(options)} options by "
                f"{len(questionnaire.categories)} categories; correct them"
            )
    elif item.weights:
        found.append(f"{place}: has weights, but there are no categories; add them")
    return found


def _candidate_mistakes(place: str, item: Item, candidate: _Candidates) -> list[str]:
    if candidate.template > len(item.templates):
        return [f"{place}: there is no template {candidate.template}; correct the number"]
    own = item.templates[candidate.template - 1]
    terms, found = own.terms or item.terms, []
    known = [*terms.source, *terms.inverse] if terms else []
    for word in _repeated([*known, *candidate.source, *candidate.inverse]):
        found.append(f"{place}: the term '{word}' is there already; keep one")
    pairs = [(premise, own.hypothesis) for premise in candidate.premises]
    for premise, hypothesis in [*pairs, *((own.premise, h) for h in candidate.hypotheses)]:
        try:
            _Template(premise=premise, hypothesis=hypothesis)
        except ValidationError as error:
            said = str(error.errors()[0]["ctx"]["error"])
            found.append(f"{place}: '{premise} {hypothesis}' {said}; correct it")
    return found


def _option_mistakes(place: str, options: tuple[Option, ...]) -> list[str]:
    labels = _repeated([option.label for option in options])
    found = [f"{place}: two options read '{label}'; reword one" for label in labels]
    if len({option.value for option in options}) < len(options):
        found.append(f"{place}: two options have one value; correct one")
    return found


def _scale_mistakes(questionnaire: Questionnaire, ids: list[str]) -> list[str]:
    found = []
    parents = {scale.id: scale.parent for scale in questionnaire.scales}
    for repeated in _repeated([scale.id for scale in questionnaire.scales]):
        found.append(f"scales: the id '{repeated}' occurs more than once; rename one")
    for scale in questionnaire.scales:
        place = f"scale {scale.id}"
        above, seen = scale.parent, {scale.id}
        if above is not None and above not in parents:
            found.append(f"{place}: its parent '{above}' is no scale; correct it")
        while above is not None and above in parents and above not in seen:
            seen.add(above)
            above = parents[above]
        if above in seen:
            found.append(f"{place}: is its own ancestor; correct its parent")
        for missing in [name for name in scale.items if name not in ids]:
            found.append(f"{place}: there is no item '{missing}'; correct it")
        for repeated in _repeated(scale.items):
            found.append(f"{place}: item '{repeated}' is listed twice; keep one")
        for repeated in _repeated(scale.reverse):
            found.append(f"{place}: reverse lists '{repeated}' twice; keep one")
        for stray in [name for name in scale.reverse if name not in scale.items]:
            found.append(f"{place}: reverses '{stray}', which is none of its items; correct it")
    for norm in questionnaire.norms:
        if norm.scale not in parents:
            found.append(f"norms: there is no scale '{norm.scale}'; correct it")
    groups = [f"{norm.scale}, {norm.group}" for norm in questionnaire.norms]
    found += [f"norms: two for {group}; keep one" for group in _repeated(groups)]
    return found


def _level_mistakes(place: str, levels: tuple[_Level, ...]) -> list[str]:
    words = [word for level in levels for word in level.terms]
    found = [f"{place}: '{word}' is in two places; keep one" for word in _repeated(words)]
    weights = [level.weight for level in levels]
    if weights != sorted(set(weights)):
        found.append(f"{place}: the weights must rise from level to level, got {weights}")
    return found


_EXPECTED = {
    "tuple_type": "must be a list",
    "model_type": "must be keys and values",
    "model_attributes_type": "must be keys and values",
    "dict_type": "must be keys and values",
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "too_short": "needs an entry more",
    "string_too_short": "is empty; write something",
    "string_too_long": "must have at most 100 signs",
    "string_pattern_mismatch": "must be small letters without accents, digits, - and _",
    "recursion_loop": "holds itself; write it out",
}


def _told(mistake: dict, content: dict) -> list[str]:
    """A pydantic mistake as lines that name the place and the mend, after the file's name."""
    place = _place(mistake["loc"], content)
    place = f", {place}" if place else ""
    got, kind = mistake["input"], mistake["type"]
    if kind == "missing":
        return [f"{place}: is missing; add it"]
    if kind == "extra_forbidden":
        merge = " (YAML's merge key is not supported)" if mistake["loc"][-1:] == ("<<",) else ""
        return [f"{place}: is not a known key{merge}; remove or rename it"]
    shown = f", got {str(got)[:60]!r}" if isinstance(got, str) else ""
    shown = f", got {repr(got)[:60]}" if isinstance(got, int | float | None) else shown
    if kind == "value_error":
        lines = str(mistake["ctx"]["error"]).split("\n")
        shown = shown if lines[0].startswith("must be") else ""
        return [f"{place}: {line}{shown}" if place else f", {line}" for line in lines]
    said = mistake["msg"][0].lower() + mistake["msg"][1:]
    said = _EXPECTED.get(kind, said.replace("input should", "must"))
    quotes = "; put it in quotes" if kind == "string_type" and shown and got is not None else ""
    return [f"{place}: {said}{shown}{quotes}"]


def _place(location: tuple, content: object) -> str:
    """``("items", 2, "templates", 0, "premise")`` as *item 3 (phq9_3), template 1, premise*."""
    words: list[str] = []
    for key in location:
        inside = isinstance(content, dict | list | tuple)
        known = inside and (key in content if isinstance(content, dict) else isinstance(key, int))
        content = content[key] if known else None
        if isinstance(key, int):
            name = content.get("id") if isinstance(content, dict) else None
            several = words.pop() if words and not words[-1][-1:].isdigit() else "places"
            one = re.sub("ie$", "y", several.removesuffix("s"))
            words.append(f"{one} {key + 1}" + (f" ({str(name)[:60]})" if name else ""))
        elif key != "[key]":
            words.append(str(key)[:60])
    return ", ".join(words)


def _line(text: str) -> str:
    """Text on one line: what is not printable as its escape."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def _fold(text: str) -> str:
    """What makes two texts the same to a reader: not capitals, nor how letters are coded."""
    return unicodedata.normalize("NFKC", text).casefold()


def _repeated(names, fold: bool = True) -> list[str]:
    """Names that occur more than once, each told once."""
    told = {name: _fold(name) if fold else name for name in names}
    times = Counter(told[name] for name in names)
    return list({key: name for name, key in told.items() if times[key] > 1}.values())
