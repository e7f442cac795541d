"""What each null respondent answers: the probabilities of a question's options.

========================================  =========================================================
name                                      answer
========================================  =========================================================
``random``                                any option, with equal probabilities
``first-option``                          the option that is shown first
``middle``                                the middle of the scale, the lower one of two
``agrees``                                the highest option: *strongly agree*, *always*, 7
``extreme``                               one of the two ends of the scale
``habit-<seed>``                          a preference for places that is the same for all items
``desirable``                             the end that is flattering
``repeats-last``                          what it answered before; at first, any option
``simulated-<trait>=<value>,...``         as a person with these traits would, in standard units
``impostor-<base>-<seed>``                the option that an untrained head finds most entailed
``people-<sample>``                       an answer drawn from those of people, item by item
========================================  =========================================================
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..data import shipped
from ..exceptions import ParameterError, naming_extras
from ..files import digest_text
from ..models import sources
from ..modes.simulated import graded_shares
from ..questionnaires import (
    Item,
    Questionnaire,
    load_questionnaire,
    questionnaire_names,
)
from ..questionnaires.library import COMPASS
from .forms import Answer
from .prompts import Choice, Question

Shares = NDArray[np.float64]
_Known = tuple[Questionnaire, Item]

SIMPLE = ("random", "first-option", "middle", "agrees", "extreme", "desirable", "repeats-last")
"""The names of respondents without parameters."""
_PATTERNS = ("habit-<seed>", "simulated-<trait>=<value>,...", "impostor-<base>-<seed>")
_SAMPLES = ("gad7", "ipip50", "phq9", "soc13")
# Directions of scales that data/norms/desirable.csv lacks.
_DESIRABLE = {"emotional_stability": 1, "intellect": 1, "esteem10": 1, "soc13": 1,
              "gad7": -1, "gad7_es": -1, "phq9": -1, "phq9_es": -1}  # fmt: skip
# Smallest sentiment of an item that counts as good or bad.
_FEELING = 0.05
_NEGATIVE = re.compile(
    r"\b(?:dis\w+|not|no|never|none|in(?:accurate|correct)\w*|un\w+|false|rarely|seldom|hardly|low"
    r"|poor|least|worst|bad)\b",
    re.IGNORECASE,
)
# Options beside the scale, which a rule about the scale does not choose.
_NO_ANSWER = re.compile(r"\b(?:refused?|don t know|prefer not|no answer|not applicable|n a)\b")
_SEED = re.compile(r"0?\d{1,9}|10{9}")  # whole numbers up to a billion
# Loading a base is not safe in two threads.
_LOCK = threading.Lock()


class Respondents:
    """The respondents of a server, and the questionnaires whose items they recognise.

    Parameters
    ----------
    files : iterable of str or Path
        Files of questionnaires besides the shipped ones.

    Examples
    --------
    >>> respondents = Respondents()
    >>> question = Question("I am calm.", (Choice("1", "never"), Choice("2", "always")))
    >>> respondents.shares("agrees", question).tolist()
    [0.0, 1.0]
    """

    def __init__(self, files: Iterable[str | Path] = ()) -> None:
        # the compass would be downloaded
        names = [*files, *(name for name in questionnaire_names() if name != COMPASS)]
        self.questionnaires = [load_questionnaire(name, texts=False) for name in names]
        self.items: dict[str, list[_Known]] = {}
        self.values: list[dict[str, float]] = []
        for questionnaire in self.questionnaires:
            for item in questionnaire.items:
                for text in {questionnaire.statement(item), item.text}:
                    items = self.items.setdefault(_plain(text), [])
                    items.append((questionnaire, item))
            for item in questionnaire.items[:1]:
                options = questionnaire.choices(item)
                self.values.append({_plain(option.label): option.value for option in options})

        self.traits = {scale.id for each in self.questionnaires for scale in each.scales}
        self.recognise = functools.lru_cache(maxsize=10_000)(self._recognise)
        self.rising = functools.lru_cache(maxsize=10_000)(self._rising)

    def names(self) -> list[str]:
        """Return the names of models, with examples of those that have parameters."""
        traits = "extraversion=1,neuroticism=-1"
        examples = ["habit-0", f"simulated-{traits}", "impostor-embedded-0"]
        return [*SIMPLE, *examples, *(f"people-{sample}" for sample in _SAMPLES)]

    def check(self, name: str) -> None:
        """Refuse an unknown name, with a sentence that names the known ones.

        Raises
        ------
        ParameterError
            No respondent has this name.
        """
        kind, _, detail = name.partition("-")
        is_known = name in SIMPLE
        if kind == "habit":
            is_known = _SEED.fullmatch(detail) is not None
        elif kind == "people":
            is_known = detail in _SAMPLES
        elif kind == "impostor":
            base, _, seed = detail.rpartition("-")
            is_known = _SEED.fullmatch(seed) is not None and base in _bases()
        elif kind == "simulated":
            traits = _traits(detail)
            is_known = bool(traits)
            unknown = set(traits) - self.traits
            if unknown:
                names = ", ".join(sorted(self.traits))
                raise ParameterError(f"model: no trait '{min(unknown)}'; use one of {names}.")

        if not is_known:
            names = ", ".join([*SIMPLE, *_PATTERNS, *(f"people-{each}" for each in _SAMPLES)])
            raise ParameterError(
                f"model: there is no null respondent '{name:.80}'; use {names}. "
                f"Bases are {', '.join(_bases())}."
            )

    def shares(self, name: str, question: Question, last: str = "") -> Shares:
        """Return the probabilities of a question's options.

        Parameters
        ----------
        name : str
            A name that :meth:`check` accepts.
        question : Question
        last : str
            The label or the text of the respondent's last answer.

        Raises
        ------
        ParameterError
            The respondent has no answer: no person of the sample answered this item.
        """
        count = len(question.choices)
        certain: list[Shares] = list(np.eye(count))
        shares = np.zeros(count)
        rising = self.rising(question.choices)
        middle = (len(rising) - 1) // 2
        kind, _, detail = name.partition("-")

        if name == "first-option":
            return certain[0]
        if name == "middle":
            return certain[rising[middle]]
        if name == "agrees":
            return certain[rising[-1]]
        if name == "extreme":
            return (certain[rising[0]] + certain[rising[-1]]) / 2
        if name == "desirable":
            ends = {-1: 0, 0: middle, 1: -1}
            return certain[rising[ends[self._direction(question)]]]
        if name == "repeats-last":
            places = [k for k, choice in enumerate(question.choices) if last in choice]
            return certain[places[0]] if places else np.full(count, 1 / count)
        if kind == "habit":
            return np.random.default_rng([int(detail), count]).dirichlet(np.ones(count))
        if kind == "simulated":
            shares[list(rising)] = self._graded(question, len(rising), _traits(detail))
            return shares
        if kind == "people":
            shares[list(rising)] = self._of_people(question, len(rising), detail)
            return shares
        if kind == "impostor":
            base, _, seed = detail.rpartition("-")
            texts = [choice.text for choice in question.choices]
            ordered = tuple(sorted(set(texts)))  # other orders of the options have the same answers
            item = question.text or "This is an item."
            most_entailed = ordered[_entailment(base, int(seed), item, ordered).argmax()]
            return certain[texts.index(most_entailed)]
        return np.full(count, 1 / count)

    def _recognise(self, text: str) -> list[_Known]:
        """Return the known items that a question contains, from the longest match."""
        plain = f" {_plain(text)} "
        within = [words for words in self.items if len(words) > 8 and f" {words} " in plain]
        longest = max(within, key=len, default=plain.strip())
        return self.items.get(plain.strip()) or self.items.get(longest, [])

    def _rising(self, choices: tuple[Choice, ...]) -> tuple[int, ...]:
        """Return the places of options from the lowest to the highest, without *refused* and such.

        The order is that of a known questionnaire with the same words; or that of the numbers, or
        of the places if there are none, turned if its first option says more than its last.
        """
        words = [_plain(choice.text) for choice in choices]
        for values in self.values:
            if set(words) <= set(values):
                return tuple(sorted(range(len(words)), key=lambda place: values[words[place]]))

        order = [place for place, text in enumerate(words) if not _NO_ANSWER.search(text)]
        if len(order) < 2:
            order = list(range(len(words)))
        numbers = [re.match(r"-?\d+", choice.label) for choice in choices]
        if all(numbers):
            order.sort(key=lambda place: int(numbers[place][0]))  # type: ignore[index]
        low, high = (bool(_NEGATIVE.search(words[place])) for place in (order[0], order[-1]))
        return tuple(order[::-1] if high and not low else order)

    def _direction(self, question: Question) -> int:
        """Return whether a high answer is flattering (1), unflattering (-1) or neither (0)."""
        listed = _listed_directions()
        for questionnaire, item in self.recognise(question.text):
            for scale in questionnaire.scales:
                direction = listed.get(scale.id, 0)
                if direction and item.id in scale.items:
                    return -direction if item.id in scale.reverse else direction

        feeling = _sentiment().polarity_scores(question.text)["compound"]
        return 0 if abs(feeling) < _FEELING else int(np.sign(feeling))

    def _graded(self, question: Question, count: int, traits: dict[str, float]) -> Shares:
        """Return the probabilities of rising options under the graded-response model.

        An item without a known scale is answered by chance, as by a person of average traits.
        """
        trait = 0.0
        for questionnaire, item in self.recognise(question.text):
            scales = [each for each in questionnaire.scales if item.id in each.items]
            named = [each for each in scales if each.id in traits]
            if named:
                key = -1 if item.id in named[0].reverse else 1
                trait = key * traits[named[0].id]
                break

        shares: Shares = graded_shares(np.array([trait]), count)[0]
        return shares

    def _of_people(self, question: Question, count: int, sample: str) -> Shares:
        """Return how often people gave each of the rising options."""
        table = _sample(sample)
        for _, item in self.recognise(question.text):
            counts = table.get(item.id)
            if counts is not None and len(counts) == count:
                shares: Shares = counts / counts.sum()
                return shares
        raise ParameterError(
            f"people-{sample}: no answers of people to this item with {count} "
            "options; ask the items of this questionnaire with its options."
        )


class Answering:
    """A respondent that answers the questions of one reply, in turn.

    Parameters
    ----------
    respondents : Respondents
    name : str
        A name that :meth:`Respondents.check` accepts.
    seed : int
        The seed of all draws.
    last : str
        The respondent's last reply in the conversation.

    Examples
    --------
    >>> answering = Answering(Respondents(), "agrees", seed=0)
    >>> answering(Question("I am calm.", (Choice("1", "never"), Choice("2", "always")))).label
    '2'
    >>> len(answering.answers)
    1
    """

    def __init__(self, respondents: Respondents, name: str, seed: int, last: str = "") -> None:
        self.respondents = respondents
        self.name = name
        self.rng = np.random.default_rng(seed)
        self.last = last
        self.answers: list[Answer] = []

    def __call__(self, question: Question) -> Answer:
        shares = self.respondents.shares(self.name, question, self.last)
        place = int((self.rng.random() > shares.cumsum()[:-1]).sum())
        self.last = question.choices[place].label
        self.answers.append(Answer(question, place, shares))
        return self.answers[-1]


def request_seed(*parts: object) -> int:
    """Return a seed that depends on everything that a request contains.

    Examples
    --------
    >>> request_seed("random", 1) == request_seed("random", 1) != request_seed("random", 2)
    True
    """
    return int(digest_text(*map(str, parts))[:15], 16)


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _traits(text: str) -> dict[str, float]:
    """Parse ``extraversion=1.5,neuroticism=-1``; return nothing if it is malformed."""
    traits = {}
    for assignment in re.split("[,;]", text):  # some tools split names at commas
        match = re.fullmatch(r"\s*(\w+)\s*=\s*([+-]?\d{1,3}(?:\.\d{1,6})?)\s*", assignment)
        if not match:
            return {}
        traits[match[1]] = float(match[2])
    return traits


@functools.cache
def _bases() -> tuple[str, ...]:
    """Return the bases of impostors on this machine; a client's text never names a file."""
    return ("embedded", "smollm2") if sources.is_here("smollm2") else ("embedded",)


@functools.lru_cache(maxsize=10_000)
def _entailment(base: str, seed: int, item: str, texts: tuple[str, ...]) -> Shares:
    """Return an untrained head's probability that an item entails each of some answers."""
    pairs = tuple((item, f"The answer is: {text}.") for text in texts)
    with _LOCK, naming_extras():
        from ..nulls.respondents import NullRespondent  # loads torch

        answers = NullRespondent("random-heads", base, number=seed).answer(pairs)
    return answers[:, 0].astype(float)


@functools.cache
def _listed_directions() -> dict[str, int]:
    table = pd.read_csv(shipped("norms/desirable.csv"))
    table = table[table["scale"] != "overall"]  # a name of many scales
    return dict(zip(table["scale"], table["direction"], strict=True)) | _DESIRABLE


@functools.cache
def _sample(name: str) -> dict[str, Shares]:
    """Return how many people gave each answer, from the lowest, by item."""
    if name == "ipip50":
        table = pd.read_csv(shipped("published/counts.csv.gz"))
        counts = table[table["condition"] == "people"].set_index("item_id")[list("12345")]
        return {item: row.to_numpy(dtype=float) for item, row in counts.iterrows()}

    questionnaire = load_questionnaire(name, texts=False)
    table = pd.read_csv(shipped("published/answers.csv.gz"))
    table = table[(table["questionnaire"] == name) & (table["status"] == "ok")]
    by_item = {}
    for item, answers in table.groupby("item_id")["value"]:
        low, high = questionnaire.ends(questionnaire.item(item))
        values = np.arange(low, high + 1)
        by_item[item] = (answers.to_numpy()[:, None] == values).sum(axis=0).astype(float)
    return by_item


@functools.cache
def _sentiment() -> Any:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    return SentimentIntensityAnalyzer()
