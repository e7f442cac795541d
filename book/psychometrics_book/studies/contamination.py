"""Measure whether a language model knows the IPIP by heart, against what it cannot have read.

There are three signs of memory:

- ``order``: the first 25 items of the IPIP-50 as one list in their published order, against the
  same items in random orders in which the traits take turns as they do in the published order.
- ``wording``: the twenty items of the Mini-IPIP against our paraphrases of them, and items of two
  placebo questionnaires, which were written after the models, against their paraphrases, in
  log-probability per token, since paraphrases differ in length.
- ``key``: how well a model continues the scoring key after four items with their keys, as the area
  under the curve of "+" against "-", for the items as published and for the paraphrases.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import stats

from psychometrics.exceptions import RespondentError
from psychometrics.models.lengths import token_limit
from psychometrics.models.loading import load_model
from psychometrics.paths import data_dir
from psychometrics.questionnaires import Questionnaire, load_questionnaire

if TYPE_CHECKING:
    import torch

_ORDERS = 16
_LISTED = 25
_PERMUTATIONS = 2000
_HEADING = "Describe yourself as you generally are now.\n"
_KEY_HEADING = "Scoring key: + for a plain item, - for a reverse-scored item.\n"
_SHOWN = 4  # number of items shown with their key before the tested one


def contamination(name: str) -> pd.DataFrame:
    """Return the three signs of memory of a model, with their nulls.

    Parameters
    ----------
    name : str
        A causal language model: a folder, a hub id, or a name of this package.

    Returns
    -------
    DataFrame
        ``model``; ``sign``; ``of``, what is compared; ``value`` with the 95 % interval ``low,
        high`` over ``n`` items; ``null`` with its central 95 %, ``null_low, null_high``; and ``p``,
        not corrected. A sign of memory lies above its null. The gain of placebos is the null of
        the gain of published items, which the third row of ``wording`` compares.

    Raises
    ------
    RespondentError
        The model is not a causal language model, or cannot read as many tokens as the list has.

    References
    ----------
    Lee et al. (2025).

    Examples
    --------
    >>> contamination("nobody/no-model")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.RespondentError: ...
    """
    paraphrases = pd.read_csv(data_dir() / "texts" / "paraphrases.csv")
    reader = _Reader(name)
    rows = [{"sign": "order", "of": "published less random orders"} | _order(reader)]
    rows += [{"sign": "wording"} | row for row in _wording(reader, paraphrases)]

    mini = load_questionnaire("ipip20")
    reversed_items = {item for scale in mini.scales for item in scale.reverse}
    reverse = np.array([item.id in reversed_items for item in mini.items])
    ours = paraphrases.query("questionnaire == 'ipip20'")["text"].tolist()
    for of, texts in {"published": _statements(mini), "paraphrases": ours}.items():
        rows.append({"sign": "key", "of": of} | _key(reader, texts, reverse))

    columns = ["sign", "of", "value", "low", "high", "null", "null_low", "null_high", "n", "p"]
    table = pd.DataFrame(rows).reindex(columns=columns)
    table.insert(0, "model", name)
    return table


class _Reader:
    """Log-probabilities of texts under a language model."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.model, self.tokenizer = load_model(name, "causal")
        self.begin = self.tokenizer.bos_token_id or self.tokenizer.eos_token_id

    def _ids(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]

    def _logs(self, ids: list[int], last: int) -> torch.Tensor:
        """Return log-probabilities of the token that follows each of the last tokens."""
        import torch  # slow to load

        tokens = [] if self.begin is None else [self.begin]
        tokens += ids
        limit = token_limit([tokens], self.model, self.tokenizer, self.name)
        if len(tokens) > limit:
            raise RespondentError(
                f"{self.name} reads at most {limit} tokens, and the list has {len(tokens)}: name a "
                "model that reads longer texts."
            )

        with torch.inference_mode():
            logits = self.model(torch.tensor([tokens], device=self.model.device)).logits[0, -last:]
            return logits.float().log_softmax(dim=-1)

    def continuation(self, before: str, text: str) -> float:
        """Return the log-probability that a text follows another."""
        skipped = len(self._ids(before))
        ids = self._ids(before + text)
        added = ids[skipped:]
        logs = self._logs(ids[:-1], len(added))
        return float(logs[range(len(added)), added].double().sum())

    def per_token(self, before: str, text: str) -> float:
        """Return the mean log-probability of the tokens of a text that follows another."""
        count = len(self._ids(before + text)) - len(self._ids(before))
        return self.continuation(before, text) / count


def _statements(questionnaire: Questionnaire) -> list[str]:
    texts = [questionnaire.statement(item).rstrip(".") for item in questionnaire.items]
    return [f"{text}." for text in texts]


def _order(reader: _Reader) -> dict:
    """Compare the published order with random orders of the same items within each trait."""
    fifty = load_questionnaire("ipip50")
    texts = np.array(_statements(fifty)[:_LISTED])
    places = np.arange(_LISTED).reshape(-1, 5)  # each row has one item per trait
    rng = np.random.default_rng(1)
    published = reader.continuation(_HEADING, "\n".join(texts)) / _LISTED
    random_orders = [
        reader.continuation(_HEADING, "\n".join(texts[rng.permuted(places, axis=0).ravel()]))
        / _LISTED
        for _ in range(_ORDERS)
    ]
    # a new order's distance from the mean of these: Student's distribution, as 16 have no tails
    spread = np.std(random_orders, ddof=1) * np.sqrt(1 + 1 / _ORDERS)
    value = published - np.mean(random_orders)
    reach = stats.t.ppf(0.975, _ORDERS - 1) * spread
    p = stats.t.sf(value / spread, _ORDERS - 1)
    return {
        "value": value,
        "null": 0.0,
        "null_low": -reach,
        "null_high": reach,
        "n": _LISTED,
        "p": p,
    }


def _wording(reader: _Reader, paraphrases: pd.DataFrame) -> Iterator[dict]:
    """Compare items with paraphrases, published ones and placebos."""
    gains: dict[str, list[float]] = {"published": [], "placebo": []}
    for name, texts in paraphrases.groupby("questionnaire", sort=False):
        questionnaire = load_questionnaire(name)
        kind = "placebo" if name.startswith("placebo") else "published"
        for item, text in zip(_statements(questionnaire), texts["text"], strict=True):
            gains[kind].append(reader.per_token(_HEADING, item) - reader.per_token(_HEADING, text))

    for kind, values in gains.items():
        low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
        yield {"of": kind, "value": np.mean(values), "low": low, "high": high, "n": len(values)}

    welch = stats.ttest_ind(gains["published"], gains["placebo"], equal_var=False)
    low, high = welch.confidence_interval()
    difference = np.mean(gains["published"]) - np.mean(gains["placebo"])
    counts = len(gains["published"]) + len(gains["placebo"])
    yield {"of": "published less placebo", "value": difference, "low": low, "high": high,
           "null": 0.0, "n": counts, "p": welch.pvalue}  # fmt: skip


def _key(reader: _Reader, texts: list[str], reverse: np.ndarray) -> dict:
    """Return the area under the curve of the key that a model continues with."""
    rng = np.random.default_rng(1)
    odds = []
    for tested in range(len(texts)):
        remaining = [number for number in range(len(texts)) if number != tested]
        kinds = [[n for n in remaining if reverse[n] == kind] for kind in (False, True)]
        examples = np.concatenate([rng.choice(kind, _SHOWN // 2, replace=False) for kind in kinds])
        lines = [f"{texts[n]} ({'-' if reverse[n] else '+'})\n" for n in rng.permutation(examples)]
        before = _KEY_HEADING + "".join(lines) + texts[tested]
        # whole signs, as tokenizers put the blank, the bracket and the sign into one token
        odds.append(reader.continuation(before, " (+)") - reader.continuation(before, " (-)"))

    ranks = stats.rankdata(odds)
    plain = (~reverse).sum()

    def area(reversed_items: np.ndarray) -> float:
        total = ranks[~reversed_items].sum() - plain * (plain + 1) / 2
        return total / (plain * reversed_items.sum())

    dealt = [area(rng.permutation(reverse)) for _ in range(_PERMUTATIONS)]
    low, high = np.quantile(dealt, [0.025, 0.975])
    p = (1 + np.sum(np.array(dealt) >= area(reverse))) / (1 + _PERMUTATIONS)
    return {"value": area(reverse), "null": 0.5, "null_low": low, "null_high": high,
            "n": len(texts), "p": p}  # fmt: skip
