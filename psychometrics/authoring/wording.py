"""Rules for the wording of NLI prompts; two rules need a model.

The rules find only some faults. People must judge whether a prompt asks the same question as its
item.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
import yaml

from ..checks import check_flags
from ..models.embedded import acceptability
from ..modes import load_respondent
from ..paths import data_dir
from ..questionnaires.library import load_questionnaire
from ..questionnaires.model import Questionnaire
from ..questionnaires.prompts import prompts

LANGUAGES: dict[str, dict[str, Any]] = yaml.safe_load(
    (data_dir() / "languages.yml").read_text(encoding="utf-8")
)
"""The file of intensifiers and common words by language, which also names their sources."""
_COMMON = {name: set(entry["words"]) for name, entry in LANGUAGES.items()}
RULES = {
    "language": "Every text is in the questionnaire's language.",
    "neutral": "Without its term the template takes no side.",
    "frequency": "Without its intensifier the template does not say how often.",
    "leading": "Nothing in the template tells the respondent what to say.",
    "double negative": "No filled prompt denies twice.",
    "opposites": "Inverse terms are true opposites of source terms, not their negations.",
    "congruence": "Every term fits its place in the sentence.",
    "one question": "The item asks one thing.",
}
_FREQUENCY = frozenset({
    "always", "ever", "never", "often", "rarely", "seldom", "sometimes", "frequently", "usually",
    "generally", "constantly", "regularly", "occasionally", "mostly", "hardly", "scarcely",
})  # fmt: skip
_LEADING = (
    "of course", "obviously", "clearly", "surely", "certainly", "naturally", "everyone knows",
    "as we all know", "don't you", "isn't it", "must admit", "have to admit", "should", "ought to",
    "even you", "really",
)  # fmt: skip
_NEGATIONS = frozenset({
    "no", "not", "never", "none", "nobody", "nothing", "nowhere", "neither", "nor", "without",
    "cannot", "can't", "don't", "doesn't", "didn't", "won't", "isn't", "aren't", "wasn't",
    "weren't", "haven't", "hasn't", "hadn't", "shouldn't", "wouldn't",
})  # fmt: skip
# A row of the table of findings: item, template, rule, finding, mend.
_Row = tuple[str, int, str, str, str]
_RESPONDENT = "minilm-both-l6-s1"  # the model that measures opposites
# Words at least this far from neutral in VADER's lexicon (-4 to 4) take a side.
_VALENCE = 1.0
# Words with a valence in the lexicon that take no side in plain use.
_COMMON_WORDS = frozenset({"like", "well", "want", "share", "care", "help", "please", "matter",
                          "matters", "true"})  # fmt: skip


def wording(questionnaire: str | Questionnaire, measured: bool = False) -> pd.DataFrame:
    """Apply the rules for well-made prompts to a questionnaire, item by item.

    Parameters
    ----------
    questionnaire : str or Questionnaire
        A name, a file or a loaded questionnaire. For languages other than English only the rule
        ``language`` applies, and only if it knows the language.
    measured : bool
        Whether to add two rules that use models, which takes seconds. By the first, inverse terms
        contradict the source terms more than source terms contradict one another, as judged by an
        NLI respondent. By the second, every term reads about as well as the item's other terms, as
        judged by the acceptability head, which agrees only partly with linguists.

    Returns
    -------
    DataFrame
        ``item_id, template`` (from 1; 0 for the item itself), ``rule`` (one of ``RULES``),
        ``finding`` and ``mend``. A prompt without a row breaks no rule, but may still be poor.

    Notes
    -----
    A word takes a side if VADER's lexicon rates it at 1 or more in absolute value and the item
    itself does not contain it; the item's own words are its context. A word that begins with a
    listed word of at least five letters counts as the listed word (*trustworthy* as *trust*).

    References
    ----------
    Reuben et al. (2024), section 3.1 and appendix B: congruence, neutrality, measuring the right
    thing. Hutto and Gilbert (2014) for VADER.

    Examples
    --------
    >>> findings = wording("challenges")
    >>> sorted(findings.loc[findings["item_id"] == "primed", "rule"])
    ['frequency']
    >>> "well_made" in set(findings["item_id"])
    False
    """
    check_flags(measured=measured)
    questionnaire = load_questionnaire(questionnaire)
    rows = _check_language(questionnaire)
    language = questionnaire.language.partition("-")[0].lower()
    for item in questionnaire.items if language == "en" else ():
        if re.search(r"\band\b.*\band\b|\band/or\b", item.text.lower()):
            finding = f"'{item.text}' joins several things by 'and'"
            mend = "ask one thing, or make an item of each"
            rows.append((item.id, 0, "one question", finding, mend))

        denials = _split_words(item.text) & _NEGATIONS
        if len(denials) > 1:
            finding = f"the item denies twice ({_quote_words(denials)})"
            rows.append((item.id, 0, "double negative", finding, "say it without one of them"))

        for number, template in enumerate(item.templates, start=1):
            sentences = f"{template.premise} {template.hypothesis}"
            terms = template.terms or item.terms
            if terms:
                findings = _check_template(item.text, sentences, terms.source, terms.inverse)
                rows += [(item.id, number, *finding) for finding in findings]

    if measured and language == "en":
        rows += _check_by_models(questionnaire)

    return pd.DataFrame(rows, columns=["item_id", "template", "rule", "finding", "mend"])


def _sided_words(text: str) -> list[str]:
    """Return the words of a text that take a side, in the order of the text.

    Examples
    --------
    >>> _sided_words("I often feel sad about the weather.")
    ['sad']
    """
    words = re.findall(r"[a-z']+", text.lower())
    plain = _FREQUENCY | _COMMON_WORDS
    return list(dict.fromkeys(w for w in words if w not in plain and abs(_valence(w)) >= _VALENCE))


def _check_language(questionnaire: Questionnaire) -> list[_Row]:
    """Find texts and intensifiers that are not in the questionnaire's language."""
    language = questionnaire.language.partition("-")[0].lower()
    if language not in LANGUAGES:
        return []

    # Each text except intensifiers, with its item and the number of its template (0: none).
    texts = [("all items", 0, " ".join(option.label for option in questionnaire.options))]
    levels = [("all items", level) for level in questionnaire.intensifiers or ()]
    for item in questionnaire.items:
        levels += [(item.id, level) for level in item.intensifiers or ()]
        texts.append((item.id, 0, item.text))
        for number, template in enumerate(item.templates, start=1):
            terms = template.terms or item.terms
            bare = re.sub(r"{[^{}]*}", " ", f"{template.premise} {template.hypothesis}")
            filling = " ".join([*terms.source, *terms.inverse]) if terms else ""
            texts.append((item.id, number, f"{bare} {filling}"))

    rows = []
    mend = "translate it, or correct `language`"
    for place, number, text in texts:
        words = set(re.findall(r"\w+", text.lower())) | {text.lower()}
        hits = {name: len(words & (common | _degrees(name))) for name, common in _COMMON.items()}
        other = max(hits, key=hits.__getitem__)
        if hits[other] >= hits[language] + 2:
            rows.append(
                (place, number, "language", f"'{' '.join(text.split())}' reads as '{other}'", mend)
            )

    for place, level in levels:
        for term in sorted(set(level.terms) - _degrees(language)):
            languages = [name for name in LANGUAGES if term in _degrees(name)]
            if languages:
                finding = f"'{term}' is an intensifier in '{languages[0]}'"
                rows.append((place, 0, "language", finding, mend))

    return rows


@functools.cache
def _degrees(language: str) -> set[str]:
    """Return a language's words of frequency and agreement."""
    levels = LANGUAGES[language]["frequency"] + LANGUAGES[language]["agreement"]
    return {term for level in levels for term in level["terms"]}


def word_lists() -> dict[str, Any]:
    """Return the words that the rules look for, which a web page uses to check text as it is typed.

    Returns
    -------
    dict
        ``frequency``, ``leading``, ``negations``; ``common``, words that never take a side; and the
        lexicon's words, under ``sided`` if they take a side and under ``plain`` if they do not.
        ``languages`` holds for each language its common ``words`` and its ``degrees``, the words of
        frequency and agreement.

    Examples
    --------
    >>> lists = word_lists()
    >>> "sad" in lists["sided"], "weather" in lists["sided"]
    (True, False)
    """
    valences = {word: v for word, v in _valences().items() if re.fullmatch("[a-z']+", word)}
    lists = {"frequency": _FREQUENCY, "leading": _LEADING, "negations": _NEGATIONS}
    lists["common"] = _COMMON_WORDS
    lists["sided"] = {word for word, valence in valences.items() if abs(valence) >= _VALENCE}
    # only these can be what a longer word begins with
    lists["plain"] = {word for word in valences.keys() - lists["sided"] if len(word) > 4}
    languages = {
        name: {"words": sorted(words), "degrees": sorted(_degrees(name))}
        for name, words in _COMMON.items()
    }

    return {name: sorted(words) for name, words in lists.items()} | {"languages": languages}


def _check_template(
    item: str, text: str, source: Sequence[str], inverse: Sequence[str]
) -> list[tuple[str, str, str]]:
    """Check a template's sentences and terms by the item's text; return rules, findings, mends."""
    bare = re.sub(r"{[^{}]*}", " ", text)
    words = _split_words(bare)
    rows = []
    sided = [word for word in _sided_words(bare) if not _has_word(item, word)]
    if sided:
        finding = f"{_quote_words(sided)} takes a side before a term is filled in"
        rows.append(("neutral", finding, "use a plain word, or let it be the term"))

    often = (words & _FREQUENCY) - _split_words(item)
    if often:
        finding = f"{_quote_words(often)} says how often, as the intensifier does"
        rows.append(("frequency", finding, "take it out"))

    leading = [phrase for phrase in _LEADING if re.search(rf"\b{phrase}\b", bare.lower())]
    if leading:
        rows.append(("leading", f"{_quote_words(leading)} leads", "take it out"))

    denied = words & _NEGATIONS
    if denied:
        rows += [
            ("double negative", f"'{term}' after {_quote_words(denied)} denies twice",
             "put the denial into the term alone")
            for term in [*source, *inverse]
            if _split_words(term) & _NEGATIONS
        ]  # fmt: skip
        finding = f"{_quote_words(denied)} in the template denies twice with 'never' or 'rarely'"
        rows.append(("double negative", finding, "say it without"))

    affirmed = {_drop_negation(term) for term in source}
    rows += [
        ("opposites", f"'{term}' negates the source term and is not its opposite",
         "use an opposite word; 'never' would negate it again")
        for term in inverse
        if _split_words(term) & _NEGATIONS and _drop_negation(term) in affirmed
    ]  # fmt: skip
    before = re.search(r"\b(an?)\s+{term}", text)
    if before is None:
        return rows

    for term in [*source, *inverse]:
        article = "an" if term[0].lower() in "aeiou" else "a"
        if article != before[1]:
            mend = f"put the article into the term: '{article} {term}'"
            rows.append(("congruence", f"'{before[1]} {term}'", mend))

    return rows


def _check_by_models(questionnaire: Questionnaire) -> list[_Row]:
    """Check opposites by contradiction, and congruence by the acceptability head."""
    table = prompts(questionnaire).drop_duplicates(["item_id", "template", "term"])
    in_premise = [
        "{term}" in questionnaire.item(row.item_id).templates[row.template - 1].premise
        for row in table.itertuples()
    ]
    table = table.assign(sentence=table["premise"].where(in_premise, table["hypothesis"]))
    table["reads"] = acceptability(table["sentence"].tolist())
    model = load_respondent(_RESPONDENT)
    rows = []
    for (item_id, number), terms in table.groupby(["item_id", "template"], sort=False):
        sentence = dict(zip(terms["term"], terms["sentence"], strict=True))
        source = terms.loc[terms["polarity"] > 0, "term"].tolist()
        couples = [(term, of_source) for term in sentence for of_source in source]
        couples = [(term, of_source) for term, of_source in couples if term != of_source]
        pairs = [(sentence[term], sentence[of_source]) for term, of_source in couples]
        both_ways = [*pairs, *(pair[::-1] for pair in pairs)]
        contradicted = model.answer(both_ways)[:, 2].reshape(2, -1).mean(axis=0)
        by_term = pd.Series(contradicted).groupby([term for term, _ in couples], sort=False).mean()
        alike = by_term.reindex(source).mean()
        apart = by_term.drop(source, errors="ignore").mean()
        if apart <= alike:  # False if a single source term leaves no comparison
            finding = f"for {_RESPONDENT} the inverse terms contradict the source terms no more "
            finding += f"than one another ({apart:.2f} against {alike:.2f})"
            rows.append((item_id, number, "opposites", finding, "read both: can both be true?"))

        middle = terms["reads"].median()
        for row in terms[terms["reads"] < middle - 0.3].itertuples():
            finding = f"'{row.term}' reads worse than the other terms ({row.reads:.2f} against "
            finding += f"{middle:.2f}, by the acceptability head)"
            rows.append((item_id, number, "congruence", finding, "read it aloud"))

    return rows


@functools.cache
def _valences() -> dict[str, float]:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    lexicon: dict[str, float] = SentimentIntensityAnalyzer().lexicon
    return lexicon


def _valence(word: str) -> float:
    """Return the valence of a word, or of the longest known word with which it begins."""
    valences = _valences()
    for end in range(len(word), 4, -1):
        if word[:end] in valences:
            return valences[word[:end]]

    return valences.get(word, 0.0)


def _split_words(text: str) -> set[str]:
    return set(re.findall(r"[a-z']+", text.lower()))


def _has_word(text: str, word: str) -> bool:
    """Return whether the item contains the word, or a word with the same beginning."""
    stem = word[: max(4, len(word) - 3)]
    return any(other.startswith(stem) for other in _split_words(text))


def _drop_negation(term: str) -> str:
    """Return the term without its negation."""
    dropped = _NEGATIONS | {"do", "does", "am"}
    return " ".join(word for word in term.lower().split() if word not in dropped)


def _quote_words(words: Iterable[str]) -> str:
    return ", ".join(f"'{word}'" for word in sorted(words))
