"""The respondents of ``data/plans/six-bases.yml`` and ``twins.yml``: training, and texts they read.

A member is a base with low-rank adapters in its upper half and a head at the token that its
family's classifiers read. Its group names the kind of adaptation; within a block everything else is
the same: the pairs, their order, the number of steps, the learning rate, and the head's initial
weights.
"""

from __future__ import annotations

import functools
import json
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from peft import (
    LoraConfig,
    PeftModel,
    get_peft_model,
    get_peft_model_state_dict,
    set_peft_model_state_dict,
)
from safetensors.torch import load_file, save_file
from transformers import DataCollatorForLanguageModeling, get_linear_schedule_with_warmup

from psychometrics.models.embedded import worded
from psychometrics.models.loading import load_model
from psychometrics.models.sources import base_path, find
from psychometrics.models.vectors import is_decoder
from psychometrics.paths import cache_dir
from psychometrics.store import key_of

from .. import frozen_heads
from .labels import (
    ARMS,
    OF_TEXTS,
    TEACHERS,
    half_permuted,
    of_teacher,
    of_texts,
    teacher_number,
)
from .plan import WORDING, Member, tables_dir
from .reading import first_states, last_states, lower_states, remember_lower_half

REFITTED = ("shuffled", "unlabelled", "untouched")
"""Groups whose base also gets a head trained on true labels with the base frozen."""
OWN_HEAD = ("inference", "shuffled", "hypotheses", *ARMS)
"""Groups whose head was trained together with the base."""
PAIRS = 2000
LONGEST = 110
HELD_OUT = 400
RANK = 8
BATCH = 16
MASKED = 0.15
WARM_UP = 0.06
RATES = (5e-4, 1e-3, 2e-3)
TRIED = 1000
"""Learning rates to choose from for each base, and the number of pairs used for this choice."""
HEAD_RATE = 1e-3
HEAD_STEPS = 800


@functools.cache
def pool(part: str) -> pd.DataFrame:
    """Return the shorter pairs of ``recipes/frozen_heads.py`` for ``train``, ``stop`` or ``test``.

    Pairs have at most 110 characters. The last two sets have 400 pairs each.
    """
    pairs = frozen_heads.pool()
    size = pairs["premise"].str.len() + pairs["hypothesis"].str.len()
    pairs = pairs[(pairs["part"] == part) & (size <= LONGEST)].reset_index(drop=True)
    return pairs if part == "train" else pairs.sample(HELD_OUT, random_state=0)


def relabelled(member: Member, part: str) -> pd.DataFrame:
    """Return the pairs of ``train`` or ``test`` with the labels that a member's rule gives them.

    The labels are the true ones unless the member belongs to an arm of ``twins.yml``.
    """
    pairs = pool(part)
    if member.group in OF_TEXTS:
        return pairs.assign(label=of_texts(member.group, pairs, pool("train")))

    if member.group in TEACHERS:
        linear = is_decoder(member.base)
        vectors = (untouched_vectors(member.base, name) for name in (part, "train"))
        teacher = teacher_number(member.group, member.block)
        return pairs.assign(label=of_teacher(teacher, linear, *vectors))

    return pairs


def untouched_vectors(base: str, part: str) -> np.ndarray:
    """Return the untouched base's vectors of a part of the pool, computed once for each base."""
    texts = _texts(pool(part))
    digest = prompts_digest(texts)
    path = cache_dir() / "bases" / Path(base).name / "pool" / f"{part}-{digest}.safetensors"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        vectors = torch.from_numpy(Adapted(base, 0).reader()(texts))
        save_file({"pairs": vectors}, path.with_suffix(".part"))
        path.with_suffix(".part").replace(path)

    return load_file(path)["pairs"].numpy()


def drawn(member: Member, pairs: pd.DataFrame, number: int) -> pd.DataFrame:
    """Return the pairs of a member's block, in the form for its group."""
    chosen = pairs.sample(number, random_state=member.block).reset_index(drop=True)
    if member.group == "noise":
        return chosen.assign(label=half_permuted(chosen["label"], member.block))

    if member.group == "shuffled":
        labels = np.random.default_rng(member.block).permutation(chosen["label"].to_numpy())
        return chosen.assign(label=labels)

    if member.group == "hypotheses":
        return chosen.assign(premise="")
    return chosen


class Adapted:
    """A base that a member adapts, with a head.

    Parameters
    ----------
    base : str
        ``"embedded"``, a name of ``data/models.yml``, or a folder.
    seed : int
        Seed of the initial weights of head and adapters.
    """

    def __init__(self, base: str, seed: int) -> None:
        self.decodes = is_decoder(base)
        source = base_path() if base == "embedded" else find(base)
        head = "causal" if self.decodes else "masked"
        torch.manual_seed(seed)
        model, self.tokenizer = load_model(source, head, fresh=True)
        self.tokenizer.padding_side = "right"
        if self.tokenizer.pad_token is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token

        remember_lower_half(model, lower_states(base, seed))
        settings = LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules=_upper_linears(model))
        self.model: PeftModel = get_peft_model(model, settings).eval()  # eval: without dropout
        width = model.config.hidden_size
        self.head = frozen_heads.untrained(range(10_000 + seed, 10_001 + seed), width, self.decodes)

    def tokens(self, texts: list[tuple[str, str]]) -> list[dict]:
        """Return the tokens of pairs in the form for this base."""
        if self.decodes:
            columns = self.tokenizer(worded(texts, WORDING))
        else:
            columns = self.tokenizer(*map(list, zip(*texts, strict=True)))
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def logits(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return the head's logits, shape (n, 3), of a padded batch."""
        states = self.model.get_base_model().base_model(**inputs).last_hidden_state
        place = inputs["attention_mask"].sum(dim=1) - 1 if self.decodes else 0
        return frozen_heads.logits(self.head, states[torch.arange(len(states)), place])[0]

    def loss(self, batch: list[dict], labels: torch.Tensor | None) -> torch.Tensor:
        """Return the loss of a batch: of its labels, or, without them, of its tokens."""
        if labels is None:
            return self._token_loss(batch)
        inputs = self.tokenizer.pad(batch, return_tensors="pt")
        return F.cross_entropy(self.logits(dict(inputs)), labels)

    def _token_loss(self, batch: list[dict]) -> torch.Tensor:
        """Return the loss of masked tokens or, on a decoder, of as many next tokens."""
        collate = DataCollatorForLanguageModeling(self.tokenizer, mlm=not self.decodes)
        inputs = dict(collate(batch))
        if not self.decodes:
            return self.model(**inputs).loss
        labels = inputs.pop("labels")
        inner = self.model.get_base_model()
        states = inner.base_model(**inputs).last_hidden_state
        chosen = (labels[:, 1:] >= 0) & (torch.rand(labels[:, 1:].shape) < MASKED)
        chosen[0, 0] = True  # a batch without a token has no loss
        logits = inner.get_output_embeddings()(states[:, :-1][chosen])
        return F.cross_entropy(logits, labels[:, 1:][chosen])

    def weights(self) -> dict[str, torch.Tensor]:
        """Return the adapters and the head."""
        kept = {k: v.contiguous() for k, v in get_peft_model_state_dict(self.model).items()}
        return kept | {f"head.{i}": layer.detach() for i, layer in enumerate(self.head)}

    def restore(self, weights: dict[str, torch.Tensor]) -> None:
        """Restore weights from :meth:`weights`."""
        self.head = [weights.pop(f"head.{i}") for i in range(len(self.head))]
        set_peft_model_state_dict(self.model, weights)

    def reader(self):
        """End the training, and return a function from pairs to the vectors that the head reads."""
        model = self.model.merge_and_unload().eval()

        def read(pairs: list[tuple[str, str]]) -> np.ndarray:
            tokens = self.tokens(pairs)
            if self.decodes:
                ids = [one["input_ids"] for one in tokens]
                return last_states(model.base_model, ids)
            return first_states(model.base_model, tokens)

        return read


def learning_rate(base: str) -> float:
    """Return a base's learning rate: the one with the lowest training loss outside all blocks.

    Only the losses of these members are computed; ``data/bases/rates-*.json`` stores them.
    """
    path = tables_dir() / f"rates-{Path(base).name}.json"
    losses = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    member = Member(base, "inference", 0)

    for rate in RATES:
        if str(rate) not in losses:
            pairs = drawn(member, pool("train"), TRIED)
            trained_losses = train(member, Adapted(base, member.block), pairs, rate)
            losses[str(rate)] = _last_quarter(trained_losses)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(losses) + "\n", encoding="utf-8")

    return float(min(losses, key=losses.get))


def _last_quarter(losses: list[float]) -> float:
    """Return the mean loss of the last quarter of steps, infinite if training diverged."""
    mean = float(np.mean(losses[-max(1, len(losses) // 4) :]))
    return mean if np.isfinite(mean) else np.inf


def train(member: Member, adapted: Adapted, pairs: pd.DataFrame, rate: float) -> list[float]:
    """Train adapters and head for one epoch, and return the loss of each step."""
    labelled = member.group != "unlabelled"
    tokens = adapted.tokens(_texts(pairs))
    labels = torch.tensor(pairs["label"].to_numpy(copy=True))
    weights = [p for p in adapted.model.parameters() if p.requires_grad]
    if not labelled and not adapted.decodes:
        lm_head = _outside(adapted.model.get_base_model())
        weights += lm_head

    if labelled:
        weights += [layer.requires_grad_() for layer in adapted.head]

    batches = list(_batches([len(row["input_ids"]) for row in tokens], member.block))
    optimizer = torch.optim.AdamW(weights, lr=rate, weight_decay=0.0)
    warm_up = round(WARM_UP * len(batches))
    schedule = get_linear_schedule_with_warmup(optimizer, warm_up, len(batches))
    torch.manual_seed(member.block)
    losses = []

    for rows in batches:
        loss = adapted.loss([tokens[i] for i in rows], labels[rows] if labelled else None)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())

    return losses


def _upper_linears(model: torch.nn.Module) -> list[str]:
    """Return the names of the linear layers in the upper half of a model's blocks."""
    first = model.config.num_hidden_layers // 2
    linears = (n for n, module in model.named_modules() if isinstance(module, torch.nn.Linear))
    numbered = ((name, re.search(r"\.(\d+)\.", name)) for name in linears)
    return [name for name, block in numbered if block and int(block[1]) >= first]


def _outside(model: torch.nn.Module) -> list[torch.nn.Parameter]:
    """Return the parameters of a new masked-LM head, which must be trained, too."""
    body = f"{model.base_model_prefix}."
    head = [p for name, p in model.named_parameters() if not name.startswith(body)]
    return [parameter.requires_grad_() for parameter in head]


def _batches(lengths: list[int], seed: int) -> Iterator[list[int]]:
    """Yield batches of texts of similar lengths, in random order."""
    rng = random.Random(seed)
    order = sorted(range(len(lengths)), key=lambda i: (lengths[i], rng.random()))
    batches = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
    rng.shuffle(batches)
    yield from batches


def refit(
    block: int, linear: bool, vectors: tuple[np.ndarray, ...], labels: tuple[pd.Series, ...]
) -> list[torch.Tensor]:
    """Return a head trained on true labels with the base frozen.

    Parameters
    ----------
    block : int
        The block, whose members have the same initial weights.
    linear : bool
        Whether the head is linear, as on decoders.
    vectors, labels
        Vectors and labels of the training pairs, and of the pairs for early stopping.
    """
    inputs, stop = (torch.from_numpy(part) for part in vectors)
    truth, stopping = (torch.tensor(part.to_numpy(copy=True)) for part in labels)
    head = frozen_heads.untrained(range(10_000 + block, 10_001 + block), inputs.shape[1], linear)
    rows = torch.stack([torch.arange(len(truth)), truth])[None]
    return frozen_heads.train(head, inputs, rows, (stop, stopping), HEAD_RATE, HEAD_STEPS)


def make(
    member: Member, prompted: list[tuple[str, str]], folder: Path, known: np.ndarray | None = None
) -> dict:
    """Train a member and ask it, unless that was done before, and return its facts.

    Parameters
    ----------
    member : Member
    prompted : list of (premise, hypothesis)
    known : ndarray, optional
        Vectors of the prompts from the untouched base, if they have been computed.
    folder : Path
        Folder for ``member.safetensors`` (adapters and head), ``vectors.safetensors`` (its base's
        vectors of the prompts), ``answers.parquet`` (its heads' answers), and last ``facts.json``.
    """
    done = folder / "facts.json"
    if done.is_file():
        return json.loads(done.read_text(encoding="utf-8"))

    folder.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    adapted = Adapted(member.base, member.block)
    facts = {"base": member.base, "group": member.group, "block": member.block, "pairs": PAIRS}
    facts["prompts"] = prompts_digest(prompted)
    facts["device"] = "cpu"
    facts |= _trained(member, adapted, folder / "member.safetensors")
    trained = time.perf_counter()
    read = adapted.reader()
    vectors = read(prompted) if known is None else known
    facts |= {"training": trained - began, "reading": time.perf_counter() - trained}
    heads = _heads(member, adapted, read)
    test = relabelled(member, "test")
    true = pool("test")["label"].to_numpy()
    held = torch.from_numpy(read(_texts(test)))
    answers = []

    for name, head in heads.items():
        values = frozen_heads.logits(head, torch.from_numpy(vectors))[0].detach()
        frame = pd.DataFrame(values.softmax(dim=1).numpy(), columns=["e", "n", "c"])
        answers.append(frame.assign(head=name, prompt=range(len(frame))))
        guessed = frozen_heads.logits(head, held)[0].argmax(dim=1).numpy()
        facts[f"accuracy, {name}"] = float((guessed == test["label"].to_numpy()).mean())
        facts[f"accuracy true, {name}"] = float((guessed == true).mean())

    facts["majority"] = float(test["label"].value_counts(normalize=True).max())
    save_file({"prompts": torch.from_numpy(vectors)}, folder / "vectors.safetensors")
    pd.concat(answers or [pd.DataFrame()]).to_parquet(folder / "answers.parquet", index=False)
    facts["seconds"] = time.perf_counter() - began
    done.with_suffix(".part").write_text(json.dumps(facts, indent=1), encoding="utf-8")
    done.with_suffix(".part").replace(done)
    return facts


def prompts_digest(prompted: list[tuple[str, str]]) -> str:
    """Return a key of the prompts, by which an analysis recognises them."""
    return key_of(*(text for pair in prompted for text in pair))


def _trained(member: Member, adapted: Adapted, path: Path) -> dict:
    """Train a member, or restore its weights; return its losses."""
    losses_of = path.with_name("losses.json")
    if not path.is_file():
        pairs = drawn(member, relabelled(member, "train"), PAIRS)
        rate = learning_rate(member.base)
        untouched = member.group == "untouched"
        losses = [] if untouched else train(member, adapted, pairs, rate)
        losses_of.write_text(json.dumps([round(loss, 4) for loss in losses]), encoding="utf-8")
        save_file(adapted.weights(), path.with_suffix(".part"))
        path.with_suffix(".part").replace(path)

    adapted.restore(load_file(path))
    losses = json.loads(losses_of.read_text(encoding="utf-8"))
    last_loss = _last_quarter(losses) if losses else None
    return {"rate": learning_rate(member.base), "steps": len(losses), "last loss": last_loss}


def _heads(member: Member, adapted: Adapted, read) -> dict[str, list[torch.Tensor]]:
    """Return a member's heads: its own, and the head trained on its frozen base."""
    heads = {}
    if member.group in OWN_HEAD:
        heads["own"] = adapted.head

    if member.group in REFITTED:
        true = pool("train").sample(PAIRS, random_state=member.block).reset_index(drop=True)
        stop = pool("stop")
        vectors = read(_texts(true)), read(_texts(stop))
        labels = true["label"], stop["label"]
        heads["refitted"] = refit(member.block, adapted.decodes, vectors, labels)

    return heads


def _texts(pairs: pd.DataFrame) -> list[tuple[str, str]]:
    return list(pairs[["premise", "hypothesis"]].itertuples(index=False, name=None))
