"""Variants of a questionnaire: a different order, typing errors, other words, denied items."""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np

from ..checks import check_choice, check_flags, check_numbers
from ..exceptions import ParameterError
from .answers import check_loaded
from .checking import parse_part
from .model import Item, Questionnaire

# The kinds of changes that :func:`perturbed` makes.
_PERTURBATIONS = ("order", "typos", "paraphrase", "negation")


def perturbed(
    questionnaire: Questionnaire, how: str, seed: int = 1, texts: bool = True
) -> Questionnaire:
    """Return a variant of a questionnaire, to test what its answers depend on.

    The result is a questionnaire like any other, so every mode can ask it. Its id is the old id
    with the change, such as ``ipip20-typos-1``, and ``load_questionnaire`` loads variants of
    shipped questionnaires by that name. Items keep their ids. Norms are left out, as they apply
    only to the old wording.

    Parameters
    ----------
    questionnaire : Questionnaire
    how : {"order", "typos", "paraphrase", "negation"}
        ``order``: the items in a different order. ``typos``: an error in about one in six words of
        four letters or more, and in at least one such word of each text, if the text has any.
        ``paraphrase``: one of the item's ``paraphrases``, or else its statement in a frame (*It is
        true that I ...*). ``negation``: the item's ``negated`` text, or else a denial by rule (*I
        do not ...*); the keys and the category weights are then reversed. Premises of templates get
        the same frames; terms and intensifiers stay unchanged.
    seed : int
        Seed of all random draws; ``negation`` draws nothing.
    texts : bool
        Whether the items have their wording; without the wording only keys and weights change.

    Returns
    -------
    Questionnaire

    Raises
    ------
    ParameterError
        The change is unknown, or no rule fits an item that has no text of its own for the change.
        The rules are for English: items in other languages need ``paraphrases`` or ``negated``, and
        their templates are left out.

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> mini = load_questionnaire("ipip20")
    >>> denied = perturbed(mini, "negation")
    >>> denied.statement(denied.items[0]), denied.keys()["ipip20_1"]
    ('I am not the life of the party.', -1)
    >>> load_questionnaire("ipip20-typos-1").items[1].text
    "Sympathze with others' feelings."
    """
    check_loaded([questionnaire])
    check_choice(_PERTURBATIONS, how=how)
    check_numbers(seed=seed)
    check_flags(texts=texts)

    items = list(questionnaire.items)
    stem = questionnaire.stem
    # A generator for each item, so that an item's variant does not depend on the others.
    draws = [np.random.default_rng([seed, number]) for number in range(len(items) + 1)]

    if how == "order":
        items = [items[i] for i in draws[-1].permutation(len(items))]
    elif how == "typos":
        items = [_mistype_item(item, rng) for item, rng in zip(items, draws, strict=False)]
    else:
        pairs = zip(items, draws, strict=False)
        items = [_reword(questionnaire, item, how, rng, texts) for item, rng in pairs]
        stem = None  # each text already has the stem

    suffix = how if how == "negation" else f"{how}-{seed}"
    variant = suffix.replace("-", " ")
    content = questionnaire.model_dump() | {
        "id": f"{questionnaire.id}-{suffix}",
        "title": f"{questionnaire.title}, {variant}",
        "short_title": f"{questionnaire.short_title} ({variant})",
        "wording": questionnaire.wording if how == "order" else "paraphrase",
        "items": [item.model_dump() for item in items],
        "stem": stem,
        "norms": (),
    }

    return parse_part(content, f"{questionnaire.id}-{suffix}", Questionnaire)


def _mistype_item(item: Item, rng: np.random.Generator) -> Item:
    templates = []
    for template in item.templates:
        texts = {"premise": template.premise, "hypothesis": template.hypothesis}
        typed = {name: _mistype(text, rng) for name, text in texts.items()}
        templates.append(template.model_copy(update=typed))
    text = _mistype(item.text, rng)
    return item.model_copy(update={"text": text, "templates": tuple(templates)})


def _mistype(text: str, rng: np.random.Generator) -> str:
    """Return a text with errors inside words: letters that are dropped, doubled or swapped."""
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
        here = text[place]
        after = text[place + 1]
        if kind == "swapped" and here != after and place + 1 < end - 1:
            typed = after + here
        elif kind == "left out":
            typed = after
        else:
            typed = here + here + after

        text = text[:place] + typed + text[place + 2 :]

    return text


# Frames for statements in the first person, for others, and for phrases (not whole sentences).
_FRAMES = {
    "statement": ("It is true that {}", "I can say of myself that {}", "It is a fact that {}"),
    "other": ("The following is true: {}", "This is how it is: {}", "What follows is so: {}"),
    "phrase": ("The following: {}", "Something of this kind: {}", "What is named here: {}"),
}


def _reword(
    questionnaire: Questionnaire, item: Item, change: str, rng: np.random.Generator, texts: bool
) -> Item:
    """Reword or deny an item, and the premises of its English templates in the same way."""
    statement = questionnaire.statement(item)
    english = questionnaire.language == "en"
    phrase = not questionnaire.stem and item.text[-1] not in ".?!"
    update: dict[str, Any] = {"paraphrases": (), "negated": None}

    if change == "negation":
        key = "negated"
        text = item.negated
        by_rule = _deny_phrase if phrase else _deny_sentence
        premise = _deny_whole
        weights = None if item.weights is None else item.weights[::-1]
        update |= {"keying": -item.keying, "weights": weights}
    else:
        key = "paraphrases"
        frame = int(rng.integers(3))
        text = None
        if item.paraphrases:
            text = item.paraphrases[int(rng.integers(len(item.paraphrases)))]

        by_rule = functools.partial(_put_into_frame, frame=frame, phrase=phrase)
        premise = functools.partial(_put_into_frame, frame=frame, phrase=False)

    if text:
        statement = questionnaire.statement(item.model_copy(update={"text": text}))
    elif texts and questionnaire.choices(item):
        has_rules = english and not statement.endswith("?")
        reworded = by_rule(statement) if has_rules else None
        if reworded is None:
            place = f"{questionnaire.id}, {item.id}"
            raise ParameterError(f"{place}: no rule fits its text; add `{key}` to the item.")

        statement = reworded

    update["text"] = statement
    update["templates"] = tuple(
        template.model_copy(update={"premise": premise(template.premise)})
        for template in item.templates
        if english
    )

    return item.model_copy(update=update)


def _put_into_frame(text: str, frame: int, phrase: bool) -> str:
    kind = "phrase" if phrase else "other"
    if re.match(r"I\b", text):
        kind = "statement"

    return _FRAMES[kind][frame].format(text)


def _deny_whole(text: str) -> str:
    start = "It is" if re.match(r"I\b", text) else "The following is"
    return f"{start} not true{' that' if start == 'It is' else ':'} {text}"


def _deny_sentence(statement: str) -> str:
    """Deny a sentence: by its verb if it is in the first person, otherwise as a whole."""
    for affirmation, denial in _DENIALS:
        if re.match(affirmation, statement):
            return re.sub(affirmation, denial, statement, count=1)
    return _deny_whole(statement)


_DENIALS = (
    (r"I am not ", "I am "),
    (r"I (?:do not|don't) ", "I "),
    (r"I (?:cannot|can't) ", "I can "),
    (r"I (?:will not|won't) ", "I will "),
    (r"I(?:'m| am) ", "I am not "),
    (r"I (will|can|could|should|would|must|may|might) ", r"I \1 not "),
    (r"I (?:seldom|rarely) ", "I often "),
    (r"I (?:never) ", "I sometimes "),
    # A past tense does not fit the form of the denial.
    (r"I (?!(?:had|was|were|did|felt|went|made|got|saw|knew|thought|have been|[a-z]+ed) )([a-z]+) ",
     r"I do not \1 "),
)  # fmt: skip


def _deny_phrase(phrase: str) -> str | None:
    """Deny a phrase such as *Feeling nervous* or *Trouble relaxing*, if a rule fits."""
    match = re.match(r"Not (\w)", phrase)
    if match:
        return match[1].upper() + phrase[match.end() :]
    if re.match(r"[A-Z][a-z]+ing\b", phrase):
        return f"Not {phrase[0].lower()}{phrase[1:]}"
    if re.match(r"(?:Trouble|Difficulty|Difficulties|Problems|Thoughts|Loss|Lack) ", phrase):
        return f"No {phrase[0].lower()}{phrase[1:]}"
    return None
