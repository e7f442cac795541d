"""Build ``data/diagnostic``: the authors' matrices, and the answers of present-day models.

:func:`build_diagnostic` records who solved which item, from the authors' files. :func:`build_live`
trains models in the paper's four regimes, and small LSTMs, and asks them. Transformers answer
through the response store; for models trained here, only the answers are kept.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence
from tqdm import tqdm

from psychometrics.asking.population import population, population_table
from psychometrics.data import NLI_LABELS, fetch
from psychometrics.exceptions import DataError, ParameterError
from psychometrics.models.loading import quietly
from psychometrics.models.sources import base_path
from psychometrics.modes import identify, load_respondent
from psychometrics.paths import data_dir
from psychometrics.training import train_nli
from psychometrics.training.heads import nli_classifier
from psychometrics.training.pairs import mnli_sample, nli_pairs
from psychometrics_book.studies.diagnostic import CATEGORIES, ask_diagnostic, item_table

_SPELLINGS = {"snlli": "snli", "sni+": "snli+", "fintune": "finetune", "conv-bert": "convbert"}
_RESULT = ["pairs", "accuracy", "low", "high", "seconds"]
TRANSFORMERS = {
    "minilm-untrained": {"regime": "untrained", "seeds": (1, 2, 3)},
    "minilm-pretrained": {"regime": "pretrained", "seeds": (1, 2, 3)},
    "minilm-scratch-snli-l3": {"regime": "finetuned", "seeds": (1,), "data": "snli", "layers": 3},
    "minilm-scratch-mnli-l3": {"regime": "finetuned", "seeds": (1,), "data": "mnli", "layers": 3},
}
"""Regimes that the embedded population, which is pre-trained and fine-tuned, lacks."""
LSTMS = [
    {"data": data, "words": words, "hidden": hidden, "layers": 1, "lr": lr, "seed": seed}
    for seed, (data, words, (hidden, lr)) in enumerate(
        itertools.product(
            ("snli", "mnli", "mnli+snli"), ("pretrained", "random"), ((64, 2e-3), (128, 1e-3))
        ),
        start=1,
    )
    if hidden == 64 or data == "snli"
]
"""A grid over data, word vectors and size, like the paper's; only SNLI has wide ones."""


def build_diagnostic(people: str | Path, folder: str | Path | None = None) -> None:
    """Write the committed matrices from the authors' file and a table of people's answers.

    Parameters
    ----------
    people : path
        CSV with ``sample, category, item_id, participant, correct``.
    folder : path, optional
        Folder to write to; ``data/diagnostic`` by default.

    Raises
    ------
    DataError
        An answer is neither 0 nor 1, people answered an item that the file lacks, or the table
        cannot be read or lacks a column.
    """
    folder = Path(folder or data_dir() / "diagnostic")
    folder.mkdir(parents=True, exist_ok=True)
    raw = pd.read_csv(
        fetch("glue_diagnostic"), sep="\t", dtype=str, keep_default_na=False, header=None, quoting=3
    )
    names = raw.iloc[0, 6:]
    origin = raw.iloc[1, 6:]
    body = raw.iloc[2:-1]  # the last row has sums
    answers = body.iloc[:, 6:]

    if not answers.isin(["0", "1"]).all(axis=None):
        raise DataError("Diagnostic Results.tsv holds an answer that is neither 0 nor 1.")

    try:
        humans = pd.read_csv(people)
    except (OSError, ValueError) as error:
        raise DataError(f"{people} cannot be read as a table: {error}.") from error

    needed = ["sample", "category", "item_id", "participant", "correct"]
    missing = [name for name in needed if name not in humans]
    if missing:
        raise DataError(f"{people} lacks the columns {', '.join(missing)}.")

    short = {name: key for key, name in CATEGORIES.items()}
    humans["category"] = humans["category"].map(short)
    asked = humans.drop_duplicates("item_id").set_index("item_id")["category"]
    table = body.iloc[:, [0, 1, 2, 5]].set_axis(
        ["item_id", "subcategory", "domain", "label"], axis=1
    )
    table = table.assign(item_id=table["item_id"].astype(int)).set_index("item_id")
    missing = sorted(set(asked.index) - set(table.index))

    if missing:
        raise DataError(f"people answered items that Diagnostic Results.tsv lacks: {missing}.")
    table["subcategory"] = table["subcategory"].str.lower()
    table["asked"] = asked.reindex(table.index).fillna("")
    table.to_csv(folder / "items.csv")

    tidy = [_tidy(name) for name in names]
    rows = pd.DataFrame([_describe(name) for name in tidy])
    rows.insert(0, "respondent_id", _unique(tidy))
    rows["builds_on"] = [_tidy(name) for name in origin]
    rows["answers"] = ["".join(answers[column]) for column in answers]
    _write_gzip(rows, folder / "models.csv.gz")

    order = table.index[table["asked"] != ""]
    matrix = humans.pivot(
        index=["sample", "category", "participant"], columns="item_id", values="correct"
    )
    people_rows = [
        (*key, "".join(str(int(v)) for v in row[[i for i in order if asked[i] == key[1]]]))
        for key, row in matrix.iterrows()
    ]
    columns = ["sample", "category", "participant", "answers"]
    _write_gzip(pd.DataFrame(people_rows, columns=columns), folder / "people.csv.gz")


def build_live(
    only: str = "", epochs: float = 3.0, folder: str | Path | None = None, progress: bool = True
) -> pd.DataFrame:
    """Train missing models, ask all respondents, and write ``data/diagnostic/live.csv.gz``.

    Members of the embedded population are asked again if their weights have changed.

    Parameters
    ----------
    only : str
        Beginning of the names of the respondents to ask; the others stay unchanged.
    epochs : float
        Passes over the data for the models trained here.
    folder : str or Path, optional
        Folder to write to; ``data/diagnostic`` by default.
    progress : bool
        Whether to report each finished respondent.

    Returns
    -------
    DataFrame
        As ``psychometrics_book.studies.diagnostic.models(live=True)``, with ``answers`` (0/1 text
        in
        the order of the items).
    """
    path = Path(folder or data_dir() / "diagnostic") / "live.csv.gz"
    table = _live(path)
    held_out = mnli_sample().query("held_out")
    todo = [(name, _embedded) for name in population("encoders") if name.startswith(only)]
    todo += [(name, _transformer) for name in _transformer_names() if name.startswith(only)]
    todo += [(_lstm_name(recipe), _lstm) for recipe in LSTMS if _lstm_name(recipe).startswith(only)]

    for name, make in todo:
        if name in table.index and (
            make is not _embedded
            or identify(name, dtype="float32")["fingerprint"] == table.loc[name, "fingerprint"]
        ):
            continue

        with quietly():
            row = pd.DataFrame([make(name, epochs, held_out)], index=[name])

        table = pd.concat([table.drop(index=name, errors="ignore"), row])
        # Another build may have written in the meantime.
        if len(other := _live(path)):
            table = pd.concat([table, other.loc[other.index.difference(table.index)]])

        order = [*population("encoders"), *_transformer_names(), *map(_lstm_name, LSTMS)]
        table = table.loc[[name for name in order if name in table.index]]
        _write_gzip(table.rename_axis("respondent_id").reset_index(), path)

        if progress:
            print(f"{name}: {row['accuracy'].iloc[0]:.3f}, {row['seconds'].iloc[0]:.0f} s", flush=1)

    return table


def _random_encoder(folder: str | Path, seed: int, layers: int | None = None) -> Path:
    """Make an encoder of the base's architecture with random weights, and its tokenizer."""
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    torch.manual_seed(seed)
    config = AutoConfig.from_pretrained(base_path())
    config.num_hidden_layers = layers or config.num_hidden_layers
    AutoModel.from_config(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(base_path()).save_pretrained(folder)
    return Path(folder)


def _fresh_head(base: str | Path, folder: str | Path, seed: int) -> Path:
    """Make an encoder with an untrained NLI head: the paper's regime without fine-tuning."""
    from transformers import AutoTokenizer

    torch.manual_seed(seed)
    nli_classifier(base)[0].save_pretrained(folder)
    AutoTokenizer.from_pretrained(base).save_pretrained(folder)
    return Path(folder)


class _LSTM(nn.Module):
    """A model that reads each sentence with one bidirectional LSTM and compares the final states.

    Attributes
    ----------
    identity : dict
        ``respondent_id, mode, dtype, fingerprint``, as for other respondents.
    """

    def __init__(self, words: torch.Tensor, frozen: bool, recipe: dict, tokenizer) -> None:
        super().__init__()
        hidden = recipe["hidden"]
        layers = recipe["layers"]
        dropout = recipe.get("dropout", 0.2)
        self.tokenizer = tokenizer
        self.recipe = recipe
        self.words = nn.Embedding.from_pretrained(words, freeze=frozen, padding_idx=0)
        self.project = nn.Linear(words.shape[1], hidden)
        self.reader = nn.LSTM(
            hidden, hidden, layers, batch_first=True, bidirectional=True,
            dropout=dropout if layers > 1 else 0.0,
        )  # fmt: skip
        self.head = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(8 * hidden, hidden), nn.ReLU(),
            nn.Dropout(dropout), nn.Linear(hidden, len(NLI_LABELS)),
        )  # fmt: skip

    @property
    def identity(self) -> dict:
        name = _lstm_name(self.recipe)
        weights = hashlib.sha256()
        for tensor in self.state_dict().values():
            weights.update(tensor.detach().numpy().tobytes())
        return {
            "respondent_id": name, "source": "trained", "model": name, "revision": "",
            "mode": "nli", "dtype": "float32", "fingerprint": weights.hexdigest()[:32],
        }  # fmt: skip

    def forward(self, premises: list[list[int]], hypotheses: list[list[int]]) -> torch.Tensor:
        """Return logits of n pairs of token ids, shape (n, 3)."""
        one = self._read(premises)
        two = self._read(hypotheses)
        return self.head(torch.cat([one, two, (one - two).abs(), one * two], dim=1))

    def _read(self, sentences: list[list[int]]) -> torch.Tensor:
        """Return the last states in both directions, shape (n, 2 hidden)."""
        lengths = torch.tensor([len(ids) for ids in sentences])
        padded = nn.utils.rnn.pad_sequence([torch.tensor(ids) for ids in sentences], True)
        vectors = torch.tanh(self.project(self.words(padded)))
        packed = pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
        last = self.reader(packed)[1][0]
        return torch.cat([last[-2], last[-1]], dim=1)

    @torch.no_grad()
    def answer(self, pairs: Iterable[tuple[str, str]], progress: bool = False) -> np.ndarray:
        """Return P(entailment, neutral, contradiction), shape (n, 3), in input order."""
        was = self.training
        self.eval()
        premises, hypotheses = _encode(self.tokenizer, list(pairs))
        order = np.argsort([len(ids) for ids in premises], kind="stable")
        result = np.empty((len(order), len(NLI_LABELS)), dtype=np.float32)

        for start in tqdm(range(0, len(order), 256), disable=not progress):
            part = order[start : start + 256]
            logits = self([premises[i] for i in part], [hypotheses[i] for i in part])
            result[part] = logits.softmax(dim=1).numpy()

        self.train(was)
        return result


def _train_lstm(
    recipe: dict, epochs: int = 3, batch_size: int = 64, pairs: pd.DataFrame | None = None
) -> _LSTM:
    """Train a small LSTM on the project's samples of SNLI and MNLI, in about a minute on one core.

    Parameters
    ----------
    recipe : dict
        ``data`` ("snli", "mnli" or "mnli+snli"), ``words`` ("pretrained": the base encoder's word
        vectors, fixed, in place of the paper's GloVe; or "random": learnt here), ``hidden,
        layers, lr, seed``; optionally ``dropout``.
    epochs, batch_size : int, int
        Passes over the data, and pairs in a step.
    pairs : DataFrame, optional
        Training pairs that replace the samples: ``premise, hypothesis, label``.

    Returns
    -------
    _LSTM

    Raises
    ------
    ParameterError
        ``words`` is neither of the two.
    DataError
        The data cannot be fetched.

    References
    ----------
    Hochreiter and Schmidhuber (1997); Laverghetta et al. (2021), appendix A.
    """
    from transformers import AutoTokenizer

    if recipe["words"] not in ("pretrained", "random"):
        raise ParameterError(f"words must be pretrained or random, got '{recipe['words']}'.")
    pairs = nli_pairs(recipe["data"].split("+") if pairs is None else pairs)
    tokenizer = AutoTokenizer.from_pretrained(base_path())
    torch.manual_seed(recipe["seed"])
    frozen = recipe["words"] == "pretrained"
    model = _LSTM(_words(frozen, len(tokenizer)), frozen, recipe, tokenizer)
    premises, hypotheses = _encode(
        tokenizer, list(zip(pairs["premise"], pairs["hypothesis"], strict=True))
    )
    labels = torch.tensor(pairs["label"].to_numpy())
    lengths = np.array([len(ids) for ids in premises])
    rng = np.random.default_rng(recipe["seed"])
    learnt = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(learnt, lr=recipe["lr"])
    steps = epochs * -(-len(pairs) // batch_size)
    decay = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.0, 1 - step / steps))
    model.train()

    for _ in range(epochs):
        for part in _batches(lengths, batch_size, rng):
            logits = model([premises[i] for i in part], [hypotheses[i] for i in part])
            loss = nn.functional.cross_entropy(logits, labels[part])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(learnt, 5.0)
            optimizer.step()
            decay.step()

    return model.eval()


def _lstm_name(recipe: dict) -> str:
    return "lstm-{data}-{words}-h{hidden}-x{layers}-s{seed}".format(**recipe)


def _transformer_names() -> list[str]:
    """Return the names of the respondents of ``TRANSFORMERS``, each with a seed."""
    return [f"{name}-s{seed}" for name, what in TRANSFORMERS.items() for seed in what["seeds"]]


def _live(path: Path) -> pd.DataFrame:
    """Return the shipped table with its answers, or an empty table if there is none yet."""
    if not path.is_file():
        return pd.DataFrame()
    kinds = {"answers": str, "fingerprint": str}
    return pd.read_csv(path, dtype=kinds, keep_default_na=False).set_index("respondent_id")


def _embedded(name: str, epochs: float, held_out: pd.DataFrame) -> dict:
    known = population_table().set_index("respondent_id").loc[name]
    answers = ask_diagnostic(name, progress=False).loc[name]
    row = _row("transformers", "minilm", True, True, known["data"], known["seed"], answers)
    fingerprint = identify(name, dtype="float32")["fingerprint"]
    return row | {column: known[column] for column in _RESULT} | {"fingerprint": fingerprint}


def _transformer(name: str, epochs: float, held_out: pd.DataFrame) -> dict:
    kind, seed = name.rsplit("-s", 1)
    what = TRANSFORMERS[kind]
    seed = int(seed)
    pretrained = what["regime"] == "pretrained"
    finetuned = what["regime"] == "finetuned"
    began = time.perf_counter()
    pairs = 0

    with tempfile.TemporaryDirectory() as work:
        base = base_path()
        if not pretrained:
            base = _random_encoder(f"{work}/base", seed, what.get("layers"))

        if finetuned:
            train_nli(
                base, what["data"].split("+"), f"{work}/{name}", epochs=epochs, lr=3e-4,
                dropout=0.0, max_length=64, seed=seed, progress=False,
            )  # fmt: skip
            pairs = len(nli_pairs(what["data"].split("+")))
        else:
            _fresh_head(base, f"{work}/{name}", seed)

        seconds = time.perf_counter() - began
        respondent = load_respondent(f"{work}/{name}", dtype="float32")
        answers = _solved(respondent)
        measured = _measured(respondent, held_out)

    row = _row("transformers", "minilm", pretrained, finetuned, what.get("data"), seed, answers)
    result = {"pairs": pairs, **measured, "seconds": round(seconds, 1), "fingerprint": ""}
    return row | result


def _lstm(name: str, epochs: float, held_out: pd.DataFrame) -> dict:
    recipe = next(recipe for recipe in LSTMS if _lstm_name(recipe) == name)
    began = time.perf_counter()
    respondent = _train_lstm(recipe, int(epochs))
    seconds = time.perf_counter() - began
    pretrained = recipe["words"] == "pretrained"
    row = _row(
        "lstms", "lstm", pretrained, True, recipe["data"], recipe["seed"], _solved(respondent)
    )
    pairs = len(nli_pairs(recipe["data"].split("+")))
    result = {"pairs": pairs, **_measured(respondent, held_out), "seconds": round(seconds, 1)}

    return row | result | {"fingerprint": ""}


def _row(group, family, pretrained, finetuned, data, seed, answers) -> dict:
    return {
        "population": group, "family": family, "pretrained": bool(pretrained),
        "finetuned": bool(finetuned), "data": data or "", "seed": int(seed),
        "answers": "".join(str(int(a)) for a in answers),
    }  # fmt: skip


def _solved(respondent) -> np.ndarray:
    table = item_table(sentences=True)
    pairs = list(zip(table["premise"], table["hypothesis"], strict=True))
    right = item_table()["label"].map(NLI_LABELS.index).to_numpy()
    return (respondent.answer(pairs).argmax(axis=1) == right).astype(int)


def _measured(respondent, pairs: pd.DataFrame) -> dict:
    from statsmodels.stats.proportion import proportion_confint

    answers = respondent.answer(list(zip(pairs["premise"], pairs["hypothesis"], strict=True)))
    share = float((answers.argmax(axis=1) == pairs["label"]).mean())
    low, high = proportion_confint(round(share * len(pairs)), len(pairs), method="wilson")
    return {"accuracy": round(share, 4), "low": round(low, 4), "high": round(high, 4)}


def _words(pretrained: bool, size: int) -> torch.Tensor:
    """Return word vectors: the base encoder's, or random ones of a hundred dimensions."""
    if not pretrained:
        return torch.randn(size, 100) * 0.1
    from transformers import AutoModel

    with quietly(), torch.no_grad():
        vectors = AutoModel.from_pretrained(base_path()).get_input_embeddings().weight.clone()
    return (vectors - vectors.mean(dim=0)) / vectors.std()


def _encode(tokenizer, pairs: list[tuple[str, str]]) -> tuple[list[list[int]], list[list[int]]]:
    """Return 1 to 48 token ids of premises and hypotheses, without special tokens."""
    return tuple(
        [
            ids or [tokenizer.unk_token_id]
            for ids in tokenizer(
                [pair[side] for pair in pairs],
                add_special_tokens=False,
                truncation=True,
                max_length=48,
            )["input_ids"]
        ]
        for side in (0, 1)
    )


def _batches(lengths: np.ndarray, size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return shuffled batches of pairs with premises of similar length, which saves padding."""
    order = np.argsort(lengths + rng.uniform(-2, 2, len(lengths)))
    batches = [order[start : start + size] for start in range(0, len(order), size)]
    return [batches[place] for place in rng.permutation(len(batches))]


def _tidy(name: str) -> str:
    """Return a model's name with misspellings corrected, so that each model has one name."""
    name = name.strip()
    for wrong, right in _SPELLINGS.items():
        name = name.replace(wrong, right)
    return re.sub(r"(dp_ratio|n_hidden_layers?|hid\w+_size)[-=]", r"\1=", name)


def _describe(name: str) -> dict[str, object]:
    family = name.split("-")[0]
    data = re.search(r"-finetune-([a-z+]+)", name)
    return {
        "population": "lstms" if family == "lstm" else "transformers",
        "family": family,
        "pretrained": "nopretrain" not in name,
        "finetuned": "nofinetune" not in name,
        "data": data.group(1) if data else "",
    }


def _unique(names: list[str]) -> list[str]:
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return result


def _write_gzip(frame: pd.DataFrame, path: Path) -> None:
    # Without a time stamp the same figures give the same bytes.
    frame.to_csv(path, index=False, compression={"method": "gzip", "mtime": 0})
