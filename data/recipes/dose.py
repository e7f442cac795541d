"""Train heads on frozen vectors with growing numbers of pairs: ``python -m recipes.dose``.

The plans are ``data/plans/dose.yml`` and ``data/plans/hypothesis.yml``. The bases' vectors of the
training pairs are stored in the user's cache (ten minutes on one processor core); all heads of a
condition are trained at once (another ten). The tables go into ``data/dose/``.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from peft import PeftModel
from scipy import stats

from psychometrics.asking.ask import ask
from psychometrics.asking.population import population_table
from psychometrics.measures.intervals import jackknife_half_width, merge_near_ties
from psychometrics.measures.normalisation import two_way
from psychometrics.measures.reliability import alphas
from psychometrics.measures.validity import item_contrasts, silhouettes
from psychometrics.models import vectors as bases
from psychometrics.models.sources import SMOLLM2, base_path
from psychometrics.modes import load_respondent
from psychometrics.modes.nli import PROBABILITIES, NLIRespondent
from psychometrics.paths import cache_dir, data_dir
from psychometrics.questionnaires import load_questionnaire
from psychometrics.questionnaires.prompts import prompts
from psychometrics.training import train_nli
from psychometrics.training.heads import nli_classifier
from psychometrics.training.pairs import mnli_sample, nli_pairs

from .nulls import QUESTIONNAIRES
from .nulls import _save as save_merged

BASES = {  # name in the tables: base, its depth, most steps of training
    "encoder, 4 layers": ("embedded", 4, 800),
    "encoder, 6 layers": ("embedded", 6, 800),
    "decoder": (SMOLLM2, None, 2000),
}
WORDING = "Premise: {premise} Hypothesis: {hypothesis} Answer:"
LAYERS = 30
"""The decoder's wording, which most members on it read, and its number of layers."""
DOSES = {"16,000 shuffled": 16000, "250": 250, "1,000": 1000, "4,000": 4000, "16,000": 16000}
LONG = "16,000 shuffled, as long"
ALONE = "16,000 hypotheses"
SEEDS = 40
POPULATIONS = 50
BATCH = 256
EVERY = 25
PATIENCE = 150
MEMBER = {"tuning": "lora", "epochs": 2, "lr": 1e-3, "dropout": 0.0}
RATES = (0.0003, 0.001, 0.003)
POOL = 8000
LONGEST = 157
HELD_OUT = 800


def pool() -> pd.DataFrame:
    """Return the pairs: ``premise, hypothesis, label, part`` (train, stop or test).

    The training pairs are 8,000 of MNLI and 8,000 of SNLI. MNLI's pairs are drawn from the shorter
    half of its training pairs, up to 157 characters, since prompts are short and long pairs cost
    most.
    """
    mnli = mnli_sample()
    mnli = mnli[mnli["premise"].str.len() + mnli["hypothesis"].str.len() <= LONGEST]
    held = mnli[mnli["held_out"]].sample(HELD_OUT, random_state=0)
    snli = nli_pairs("snli")
    premises = pd.Series(snli["premise"].unique()).sample(frac=1, random_state=0)
    snli = snli.set_index("premise").loc[premises].reset_index()  # pairs of a premise together
    half = HELD_OUT // 2
    parts = {
        "train": [mnli[~mnli["held_out"]].sample(POOL, random_state=0), snli[:POOL]],
        "stop": [held[:half], snli[-HELD_OUT:-half]],
        "test": [held[half:], snli[-half:]],
    }
    frame = pd.concat({name: pd.concat(those) for name, those in parts.items()}, names=["part"])

    return frame.reset_index("part")[["premise", "hypothesis", "label", "part"]]


def read(base: str, pairs: pd.DataFrame) -> np.ndarray:
    """Return a base's vectors of pairs, shape (depths, pairs, width), at the study's depths."""
    texts = tuple(pairs[["premise", "hypothesis"]].itertuples(index=False, name=None))
    if base != SMOLLM2:
        return bases.prompt_vectors(base, texts)[[4, 6]]
    return bases.text_vectors(SMOLLM2, texts, WORDING, [LAYERS])


def cached(base: str, name: str, pairs: pd.DataFrame) -> np.ndarray:
    """Return a base's vectors of pairs from the user's cache, computing them the first time."""
    path = cache_dir() / "dose-2" / f"{Path(base).name}-{name}.npy"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path.with_suffix(".part.npy"), read(base, pairs))
        path.with_suffix(".part.npy").replace(path)
    return np.load(path)


class Template(NamedTuple):
    """A template's position among the prompts: rows (terms, intensifiers), weights and stances."""

    item: str
    key: int
    rows: np.ndarray
    weights: np.ndarray
    polarity: np.ndarray


def templates(names: tuple[str, ...] = QUESTIONNAIRES) -> tuple[pd.DataFrame, list[Template]]:
    """Return the prompts of questionnaires, and each template's position among them."""
    loaded = [load_questionnaire(name) for name in names]
    table = pd.concat([prompts(one) for one in loaded], ignore_index=True)
    keys = {item.id: item.keying for one in loaded for item in one.items}
    found = []
    for (item, _), part in table.groupby(["item_id", "template"], sort=False):
        terms = part["term"].ne(part["term"].shift()).sum()
        rows = part.index.to_numpy().reshape(terms, -1)
        weights = table["weight"].to_numpy()[rows[0]]
        polarity = table["polarity"].to_numpy()[rows[:, 0]]
        found.append(Template(item, keys[item], rows, weights, polarity))

    return table, found


def score(entailment: np.ndarray, places: list[Template]) -> dict[str, np.ndarray]:
    """Return ``source, inverse`` (by the items' keys) and ``silhouette``, each (heads, items)."""
    found: dict[str, dict[str, list]] = {"source": {}, "inverse": {}, "silhouette": {}}
    for item, key, rows, weights, polarity in places:
        sides = two_way(entailment[:, rows])
        values = key * (sides @ weights) / len(weights) * polarity
        found["source"].setdefault(item, []).append(values[:, polarity > 0].mean(axis=1))
        found["inverse"].setdefault(item, []).append(values[:, polarity < 0].mean(axis=1))
        found["silhouette"].setdefault(item, []).append(silhouettes(sides, polarity))

    return {
        kind: np.stack([np.mean(of_item, axis=0) for of_item in items.values()], axis=1)
        for kind, items in found.items()
    }


def untrained(numbers: range, width: int, linear: bool) -> list[torch.Tensor]:
    """Return initial weights of heads, as :func:`psychometrics.null_answers` draws them.

    Shapes (heads, width, width) and (heads, width, 3); linear heads have only the second.
    """
    shapes = [(width, 3)] if linear else [(width, width), (width, 3)]
    drawn = []
    for number in numbers:
        rng = np.random.default_rng([0, number])
        drawn.append([torch.from_numpy(rng.normal(0, 0.02, shape)).float() for shape in shapes])
    return [torch.stack(layer) for layer in zip(*drawn, strict=True)]


def logits(head: list[torch.Tensor], vectors: torch.Tensor) -> torch.Tensor:
    """Return logits, (heads, n, 3), of vectors (n, width), or each head's own (heads, n, width)."""
    vectors = vectors.expand(len(head[0]), *vectors.shape[-2:])
    for layer in head[:-1]:
        vectors = torch.tanh(vectors @ layer)
    return vectors @ head[-1]


def train(
    head: list[torch.Tensor],
    given: torch.Tensor,
    labels: torch.Tensor,
    stop: tuple[torch.Tensor, torch.Tensor],
    rate: float,
    steps: int,
    keep: np.ndarray | None = None,
) -> tuple[list[torch.Tensor], np.ndarray, np.ndarray]:
    """Train heads side by side, each on its own pairs.

    Parameters
    ----------
    head : list of Tensor
        Initial weights, as :func:`untrained` returns them.
    given, labels : Tensor, shapes (pool, width) and (heads, 2, pairs)
        Vectors of the pool; for each head the rows of its pairs, and their labels.
    stop : Tensor and Tensor
        Vectors and labels of the pairs for early stopping.
    rate, steps
        Learning rate of Adam, and maximum number of steps.
    keep : ndarray, optional
        The step at which to keep each head, instead of its best one.

    Returns
    -------
    list of Tensor, ndarray and ndarray
        Each head at its best step, its loss there on the stopping pairs, and that step.
    """
    head = [layer.clone().requires_grad_() for layer in head]
    heads = len(head[0])
    size = labels.shape[2]
    best = [layer.detach().clone() for layer in head]
    lowest = np.full(heads, np.inf)
    at = 0
    where = np.zeros(heads, dtype=int)
    optimizer = torch.optim.Adam(head, lr=rate, fused=True)
    generator = torch.Generator().manual_seed(0)

    for step in range(steps + 1):
        if step % EVERY == 0:
            with torch.no_grad():
                z = logits(head, stop[0]).mT

            losses = F.cross_entropy(z, stop[1].expand(heads, -1), reduction="none").mean(1).numpy()
            better = losses < lowest if keep is None else keep >= step
            if better.any():
                at = step
                lowest[better], where[better] = losses[better], step
                for kept, layer in zip(best, head, strict=True):
                    kept[better] = layer.detach()[better]

            if step - at >= PATIENCE:
                break

        chosen = torch.randint(size, (heads, 1, BATCH), generator=generator).expand(-1, 2, -1)
        rows, truth = labels.gather(2, chosen).unbind(1)
        z = logits(head, given[rows])
        loss = F.cross_entropy(z.flatten(0, 1), truth.flatten()) * heads
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return best, lowest, where


def centred_logs(scores: np.ndarray) -> np.ndarray:
    """Return log probabilities of logits (heads, n, 3), minus their means over classes and n."""
    logs = scores - np.logaddexp.reduce(scores, axis=2, keepdims=True)
    logs = logs - logs.mean(axis=2, keepdims=True)
    return logs - logs.mean(axis=1, keepdims=True)


def shares(logs: np.ndarray, how: str) -> np.ndarray:
    """Return the score of each answer, (heads, n): by entailment, or against contradiction."""
    logs = logs if how == "entailment" else logs[..., [0, 2]]
    return np.exp(logs[..., 0] - np.logaddexp.reduce(logs, axis=2))


def correlated(a: np.ndarray, b: np.ndarray, chosen: np.ndarray) -> float:
    """Return the correlation of two matrices over the chosen pairs of items."""
    return float(np.corrcoef(a[chosen], b[chosen])[0, 1])


def statistics(scores: dict[str, np.ndarray], scale: np.ndarray, kernels: dict) -> dict[str, float]:
    """Return the plan's statistics of heads.

    Parameters
    ----------
    scores : dict of ndarray, shape (heads, items)
        Scores, as :func:`score` returns them.
    scale : ndarray, shape (items,)
        Number of each item's questionnaire: 0 to 2 are GAD-7, PHQ-9, SOC-13, the rest placebos.
    kernels : dict of ndarray, shape (items, items)
        Covariances by name: ``kernel`` and ``sampling kernel``.
    """
    real = scale < 3
    items = scores["source"][:, real]
    own = scale[real]
    covariance = np.cov(items.T)
    upper = np.triu(np.ones_like(covariance, dtype=bool), 1)
    within = own[:, None] == own
    known = {name: one[np.ix_(real, real)] for name, one in kernels.items()}
    pattern = {"seeds": covariance} | known
    found = {}
    r = {k: one / np.sqrt(np.outer(np.diag(one), np.diag(one))) for k, one in pattern.items()}
    found["kernel"] = correlated(r["seeds"], r["kernel"], upper)
    found["kernel, within scales"] = correlated(r["seeds"], r["kernel"], upper & within)
    found["kernel, between scales"] = correlated(r["seeds"], r["kernel"], upper & ~within)
    found["sampling kernel"] = correlated(r["seeds"], r["sampling kernel"], upper)
    found["covariance"] = correlated(covariance, known["kernel"], upper)
    found["silhouette"] = float(scores["silhouette"][:, real].mean())
    means = {
        kind: np.stack([scores[kind][:, scale == k].mean(1) for k in range(scale.max() + 1)])
        for kind in ("source", "inverse")
    }
    both = np.concatenate([means["source"], means["inverse"][:3]])
    rank = np.corrcoef(stats.rankdata(merge_near_ties(both), axis=1))
    three = np.array([rank[0, 1], -rank[0, 2], -rank[1, 2]])
    found["discriminant"] = three.mean() - np.abs(rank[:3, 3:-3]).mean()
    found["source and inverse"] = rank[[0, 1, 2], [-3, -2, -1]].mean()
    found["alpha"] = np.mean([alphas(covariance[np.ix_(own == k, own == k)]) for k in range(3)])
    found["correlations"] = three.min()

    return found


def ceiling(scores: dict[str, np.ndarray], scale: np.ndarray, splits: int = 100) -> float:
    """Return the split-half reliability of all heads' item correlations (Spearman-Brown)."""
    items = scores["source"][:, scale < 3]
    rng = np.random.default_rng(0)
    found = []
    upper = np.triu(np.ones((items.shape[1],) * 2, dtype=bool), 1)
    for _ in range(splits):
        one, two = np.array_split(rng.permutation(len(items)), 2)
        r = correlated(np.corrcoef(items[one].T), np.corrcoef(items[two].T), upper)
        found.append(2 * r / (1 + r))
    return float(np.mean(found))


class Study:
    """One base: its vectors of pairs and prompts, and its heads' answers."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.base, depth, self.steps = BASES[name]
        self.pairs = pool()
        self.layer = 1 if depth == 6 else 0
        self.labels = torch.tensor(self.pairs["label"].to_numpy(copy=True))
        self.table, self.places = templates()
        self.items = list(dict.fromkeys(place.item for place in self.places))
        asked = self.table.drop_duplicates("item_id").set_index("item_id")["questionnaire"]
        self.scale = asked[self.items].map(QUESTIONNAIRES.index).to_numpy()
        texts = tuple(self.table[["premise", "hypothesis"]].itertuples(index=False, name=None))
        wording = WORDING if self.base == SMOLLM2 else None
        vectors = bases.layer_vectors(self.base, {depth}, (texts,), wording)[depth]
        self.prompts = torch.from_numpy(vectors)
        self.linear = self.base == SMOLLM2
        self.head = untrained(range(SEEDS), self.prompts.shape[1], self.linear)
        phi = self.contrasts(vectors)
        pool_vectors = self.read("pairs")[self.rows("train")]
        spread = np.cov(pool_vectors.numpy().T)
        spread += 0.01 * np.trace(spread) / len(spread) * np.eye(len(spread))
        self.kernels = {
            "kernel": phi @ phi.T,
            "sampling kernel": phi @ np.linalg.solve(spread, phi.T),
        }

    def contrasts(self, vectors: np.ndarray) -> np.ndarray:
        """Return the contrasts of the items by their keys, (items, width)."""
        keys = pd.Series({place.item: place.key for place in self.places})
        found = item_contrasts(self.table, vectors).droplevel("questionnaire")
        return found.mul(keys, axis=0).loc[self.items].to_numpy()

    def read(self, which: str) -> torch.Tensor:
        """Return the base's vectors of the pairs, or of only their hypotheses."""
        pairs = self.pairs if which == "pairs" else self.pairs.assign(premise="")
        return torch.from_numpy(cached(self.base, which, pairs)[self.layer])

    def rows(self, part: str) -> np.ndarray:
        """Return the positions of a part among the pairs."""
        return np.flatnonzero(self.pairs["part"] == part)

    def draws(self, pairs: int, shuffled: bool, seeds: int) -> torch.Tensor:
        """Return rows of the pool, with replacement, and labels, shape (seeds, 2, pairs)."""
        drawn = []
        places = self.rows("train")
        for seed in range(seeds):
            rng = np.random.default_rng([1, seed])
            rows = places[rng.integers(len(places), size=pairs)]
            labels = self.labels.numpy()[rows]
            drawn.append([rows, rng.permutation(labels) if shuffled else labels])
        return torch.from_numpy(np.array(drawn))

    def trained(self, condition: str, rate: float, seeds: int = SEEDS, keep=None) -> tuple:
        """Train a condition's heads; see :func:`train`."""
        vectors = self.read("hypotheses" if condition == ALONE else "pairs")
        drawn = self.draws(DOSES.get(condition, 16000), "shuffled" in condition, seeds)
        stop = vectors[self.rows("stop")], self.labels[self.rows("stop")]
        head = [layer[:seeds] for layer in self.head]
        return train(head, vectors, drawn, stop, rate, self.steps, keep)

    def rates(self) -> dict[float, float]:
        """Return the stopping loss of 8 seeds on 4,000 pairs at each learning rate."""
        return {rate: float(self.trained("4,000", rate, 8)[1].mean()) for rate in RATES}

    def accuracy(self, head: list[torch.Tensor], which: str) -> np.ndarray:
        """Return each head's share of correct labels on the test pairs."""
        guessed = answer(head, self.read(which)[self.rows("test")]).argmax(axis=2)
        return (guessed == self.labels.numpy()[self.rows("test")]).mean(axis=1)

    def scored(self, logs: np.ndarray, how: str = "entailment") -> dict[str, np.ndarray]:
        """Return the item scores of log probabilities, (heads, prompts, 3)."""
        return score(shares(logs, how), self.places)


@torch.no_grad()
def answer(head: list[torch.Tensor], vectors: torch.Tensor) -> np.ndarray:
    """Return logits, (heads, n, 3), head by head."""
    each = range(len(head[0]))
    return np.concatenate([logits([layer[k : k + 1] for layer in head], vectors) for k in each])


def run(name: str) -> dict[str, pd.DataFrame]:
    """Return one base's tables: ``training``, ``scores``, ``statistics`` and ``kernels``."""
    study = Study(name)
    rates = study.rates()
    rate = min(rates, key=rates.get)
    print(name, rates, flush=True)
    training = []
    logs = {}
    keep = None

    for condition in ["0", *DOSES, LONG, ALONE]:
        if condition == "0":
            head = study.head
            loss = np.full(SEEDS, np.nan)
            step = np.zeros(SEEDS, int)
        else:
            as_long = {"keep": keep} if condition == LONG else {}
            head, loss, step = study.trained(condition, rate, **as_long)
            keep = step if condition == "16,000" else keep

        logs[condition] = centred_logs(answer(head, study.prompts))
        told = {"seed": range(SEEDS), "rate": rate, "step": step, "loss": loss}
        told |= {"accuracy": study.accuracy(head, "pairs")}
        told |= {"accuracy without premise": study.accuracy(head, "hypotheses")}
        told |= {"decisiveness": np.sqrt((logs[condition] ** 2).mean(axis=(1, 2)))}
        training.append(pd.DataFrame(told).assign(base=name, condition=condition))
        print(training[-1].mean(numeric_only=True).round(4).to_dict(), condition, flush=True)

    training = pd.concat(training, ignore_index=True)
    sizes = training.groupby("condition")["decisiveness"].mean()
    nulls = null_logs(study)
    tables = []
    scores = []
    for how in ("entailment", "contrast"):
        found = {condition: study.scored(own, how) for condition, own in logs.items()}
        tables.append(tested(study, found, nulls, sizes, how).assign(base=name, score=how))
        if how == "entailment":
            scores = [long(study, name, *one) for one in found.items()]

    return {
        "training": training,
        "scores": pd.concat(scores, ignore_index=True),
        "statistics": pd.concat(tables, ignore_index=True),
        "kernels": kernel_table(study).assign(base=name),
    }


def null_logs(study: Study, size: int = SEEDS) -> np.ndarray:
    """Return centred log probabilities of the untrained populations' heads, (heads, prompts, 3)."""
    width = study.prompts.shape[1]
    found = []
    for start in range(1000, 1000 + SEEDS * POPULATIONS, SEEDS):  # not the seeds' own heads
        head = untrained(range(start, start + size), width, study.linear)
        found.append(centred_logs(answer(head, study.prompts)).astype("float32"))
    return np.stack(found)


def tested(study: Study, found: dict, nulls: np.ndarray, sizes: pd.Series, how: str):
    """Return every condition's statistics with their intervals and nulls, and differences."""
    args = study.scale, study.kernels
    own_size = np.sqrt((nulls**2).mean(axis=(2, 3), keepdims=True))
    again = {
        condition: pd.DataFrame(
            [
                statistics({k: np.delete(v, n, 0) for k, v in one.items()}, *args)
                for n in range(SEEDS)
            ]
        )
        for condition, one in found.items()
    }
    values = {condition: pd.Series(statistics(one, *args)) for condition, one in found.items()}
    null = {None: [statistics(study.scored(one, how), *args) for one in nulls]}

    for condition in sizes.index.drop("0"):
        scaled = (one * sizes[condition] / size for one, size in zip(nulls, own_size, strict=True))
        null[condition] = [statistics(study.scored(one, how), *args) for one in scaled]

    null = {size: pd.DataFrame(rows) for size, rows in null.items()}
    rows = []
    for condition, value in values.items():
        row = interval(value, again[condition])
        for title, size in (("start", None), ("matched", condition)):
            if size in null:
                low, middle, high = null[size].quantile([0.025, 0.5, 0.975]).to_numpy()
                row[[f"{title} low", title, f"{title} high"]] = np.stack([low, middle, high], 1)

        row.loc["ceiling", "value"] = ceiling(found[condition], study.scale)
        rows.append(row.assign(condition=condition))

    shuffled, *doses = DOSES
    pairs = [(dose, other) for dose in (*doses, ALONE) for other in (shuffled, LONG)]
    pairs.append(("16,000", ALONE))

    for one, other in pairs:
        row = interval(values[one] - values[other], again[one] - again[other])
        rows.append(row.assign(condition=one, less=other))

    return pd.concat(rows).rename_axis("statistic").reset_index()


def interval(value: pd.Series, without: pd.DataFrame) -> pd.DataFrame:
    """Return values with 95 % jackknife intervals from values without each seed in turn.

    The bootstrap is unsuitable: a seed drawn twice lowers correlations of patterns.
    """
    half = jackknife_half_width(without[value.index].to_numpy())
    return pd.DataFrame({"value": value, "low": value - half, "high": value + half})


def long(study: Study, name: str, condition: str, scores: dict[str, np.ndarray]) -> pd.DataFrame:
    """Return item scores as rows."""
    table = pd.DataFrame(
        {kind: values.ravel().astype("float32") for kind, values in scores.items()}
    )
    table.insert(0, "item_id", study.items * SEEDS)
    table.insert(0, "seed", np.repeat(np.arange(SEEDS), len(study.items)))
    return table.assign(base=name, condition=condition)


def kernel_table(study: Study) -> pd.DataFrame:
    """Return the item correlations from the two kernels, one row per pair of items."""
    one, other = np.triu_indices((study.scale < 3).sum(), 1)
    table = pd.DataFrame({"one": np.array(study.items)[one], "other": np.array(study.items)[other]})
    for name, kernel in study.kernels.items():
        size = np.sqrt(np.diag(kernel))
        table[name] = (kernel / size / size[:, None])[one, other]
    return table


def member(seed: int) -> tuple[NLIRespondent, dict[str, float]]:
    """Train a member on hypotheses alone, and return it with its accuracies."""
    folder = cache_dir() / "dose" / f"member-s{seed}"
    if not (folder / "merged" / "config.json").is_file():
        pairs = nli_pairs(["mnli", "snli"]).sample(frac=0.33, random_state=seed).assign(premise="")
        train_nli(base_path(), pairs, folder, seed=seed, progress=False, **MEMBER)
        whole = PeftModel.from_pretrained(nli_classifier(base_path())[0], folder).merge_and_unload()
        save_merged(whole, folder / "merged")

    respondent = load_respondent(folder / "merged", dtype="float32")
    held = mnli_sample().query("held_out")
    right = {}
    given = {"accuracy": held["premise"], "accuracy without premise": [""] * len(held)}
    for name, premises in given.items():
        texts = sorted(zip(held["hypothesis"], premises, held["label"], strict=True), key=_length)
        hits = 0
        for start in range(0, len(texts), 64):  # `answer` would refuse an empty premise
            second, first, labels = zip(*texts[start : start + 64], strict=True)
            inputs = respondent.tokenizer(first, second, padding=True, return_tensors="pt")
            with torch.inference_mode():
                guessed = respondent.model(**inputs).logits.argmax(dim=1)

            hits += int((guessed == torch.tensor(labels)).sum())

        right[name] = hits / len(texts)

    return respondent, right


def _length(pair: tuple) -> int:
    return len(pair[0]) + len(pair[1])


def compared_members(seeds: range) -> dict[str, pd.DataFrame]:
    """Compare members trained on hypotheses alone with the population and with untrained heads.

    Returns
    -------
    dict of DataFrame
        ``members``: accuracy, decisiveness and mean silhouette of each; ``member statistics``:
        values of the members trained on hypotheses, with the median and central 95 % of 200 samples
        of as many of the population's members (``whole``) and of 50 populations of untrained heads,
        at their initial size and at the members' decisiveness.
    """
    study = Study("encoder, 6 layers")
    asked = list(study.table[["premise", "hypothesis"]].itertuples(index=False, name=None))
    table = population_table()
    table = table.query("family == 'MiniLM' and layers == 6 and tuning == 'lora'")
    answers = {}
    told = []
    for seed in seeds:
        respondent, right = member(seed)
        answers[f"s{seed}"] = respondent.answer(asked)
        told.append({"respondent_id": f"s{seed}", "trained on": "hypotheses", **right})

    names = list(table["respondent_id"])
    others = ask(list(QUESTIONNAIRES), names, progress=False)
    for name, accuracy in zip(names, table["accuracy"], strict=True):
        own = others.loc[others["respondent_id"] == name, list(PROBABILITIES)]
        answers[name] = own.to_numpy()
        told.append({"respondent_id": name, "trained on": "whole pairs", "accuracy": accuracy})

    told = pd.DataFrame(told)
    logs = centred_logs(np.log(np.stack(list(answers.values()))))
    told["decisiveness"] = np.sqrt((logs**2).mean(axis=(1, 2)))
    scores = study.scored(logs)
    told["silhouette"] = scores["silhouette"][:, study.scale < 3].mean(axis=1)
    alone = (told["trained on"] == "hypotheses").to_numpy()
    n = len(seeds)
    args = (study.scale, study.kernels)
    rng = np.random.default_rng(3)

    def of(rows: np.ndarray) -> dict[str, float]:
        return statistics({kind: values[rows] for kind, values in scores.items()}, *args)

    whole = [of(rng.choice(np.flatnonzero(~alone), n, replace=False)) for _ in range(200)]
    nulls = null_logs(study, n)
    size = np.sqrt((nulls**2).mean(axis=(2, 3), keepdims=True))
    scaled = nulls * told.loc[alone, "decisiveness"].to_numpy()[:, None, None] / size
    drawn = {"whole": whole}

    for name, those in (("start", nulls), ("matched", scaled)):
        drawn[name] = [statistics(study.scored(one), *args) for one in those]

    left = [of(np.delete(np.flatnonzero(alone), k)) for k in range(n)]
    found = interval(pd.Series(of(np.flatnonzero(alone))), pd.DataFrame(left))
    for name, rows in drawn.items():
        low, middle, high = pd.DataFrame(rows).quantile([0.025, 0.5, 0.975]).to_numpy()
        found[[f"{name} low", name, f"{name} high"]] = np.stack([low, middle, high], axis=1)

    found = found.rename_axis("statistic").reset_index()
    return {"members": told, "member statistics": found}


def write(tables: list[dict[str, pd.DataFrame]]) -> None:
    """Write the tables of all bases into ``data/dose``."""
    folder = data_dir() / "dose"
    folder.mkdir(exist_ok=True)

    for name in tables[0]:
        table = pd.concat([one[name] for one in tables], ignore_index=True)
        front = [c for c in ("base", "score", "condition", "less", "statistic") if c in table]
        table = table[front + [column for column in table if column not in front]]

        if name == "scores":
            table.to_parquet(folder / "scores.parquet", index=False, compression="zstd")
        else:
            table.round(5).to_csv(
                folder / f"{name.replace(' ', '-')}.csv", index=False, lineterminator="\n"
            )


if __name__ == "__main__":
    write([run(name) for name in BASES])
    write([compared_members(range(101, 105))])
