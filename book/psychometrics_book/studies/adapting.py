"""Adapt a respondent to a kind of text: train the layers that read as a language model.

The training repeats the pre-training task of the respondent's family: encoders (and BART) fill in
masks, decoders predict the next token, T5 fills in spans, XLNet predicts tokens in a random order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from transformers import DataCollatorForLanguageModeling, DataCollatorForPermutationLanguageModeling
from transformers.models.auto import modeling_auto

from psychometrics.exceptions import RespondentError
from psychometrics.files import replacing
from psychometrics.models.embedded import load_masked_lm
from psychometrics.models.loading import load_model
from psychometrics.models.sources import find
from psychometrics.modes.nli import NLIRespondent

_BATCH = 8
# Training that a stopped run may lose.
_CHECKPOINT_SECONDS = 60


def adapt(
    respondent: NLIRespondent,
    sentences: Sequence[str],
    after_epoch: Callable[[int], None],
    *,
    masked_lm: str = "embedded",
    epochs: int = 20,
    lr: float = 2e-5,
    seed: int = 0,
    checkpoint: Path | None = None,
    first: int | None = None,
) -> None:
    """Train a respondent's network on text as a language model, without changing its NLI head.

    Parameters
    ----------
    respondent : NLIRespondent
        A respondent in float32. Its layers are changed in place, except for the word embeddings:
        training them would take half the time, and the language model's output is often tied to
        them.
    sentences : sequence of str
        Sentences on which to train.
    after_epoch : callable
        A function that is called with the number of each finished epoch.
    masked_lm : str
        Source of the language model's head: ``"embedded"``, a folder or a hub id, of the same
        architecture as the respondent. The head is trained together with the network. A respondent
        that answers by a word is a language model itself.
    epochs, lr
        Number of epochs, and the constant learning rate. The defaults and the batch size of 8 are
        those of Reuben et al. (2024).
    seed : int
        Seed of the order of the sentences and of the masks.
    checkpoint : Path, optional
        File that stores the state from time to time; a stopped run resumes from it, reaches the
        same end as an uninterrupted run, and calls ``after_epoch`` only for the later epochs.
    first : int, optional
        First epoch for which ``after_epoch`` must be called; a state from a later epoch is not
        resumed.

    Raises
    ------
    RespondentError
        The head has a different architecture, the respondent's family has no language model, or the
        respondent is not in float32.

    References
    ----------
    Reuben et al. (2024), sections 3.3.5 and 4 (criterion validity); for T5, Raffel et al. (2020),
    section 3.1.4; for XLNet, Yang et al. (2019), section 2.2.
    """
    who = respondent.identity

    if who["dtype"] != "float32":
        raise RespondentError(f"{who['respondent_id']} must be loaded in float32 to be trained.")
    model = _language_model(respondent, masked_lm)
    tokenizer = respondent.tokenizer
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    features = [tokenizer(text, truncation=True, max_length=128) for text in sentences]
    collator = _collator(model, tokenizer)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=lr, weight_decay=0.01, fused=True)
    done = _resume(checkpoint, model, optimizer, generator, first)
    saved = time.monotonic()

    for epoch in range(done + 1, epochs + 1):
        model.train()
        order = torch.randperm(len(features), generator=generator).tolist()
        for start in range(0, len(order), _BATCH):
            loss = _loss(model, collator([features[i] for i in order[start:][:_BATCH]]))
            if loss is not None:
                loss.backward()
                torch.nn.utils.clip_grad_norm_(trained, 1.0)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)

        model.eval()
        respondent.model.eval()
        after_epoch(epoch)

        if checkpoint and time.monotonic() - saved > _CHECKPOINT_SECONDS:
            _keep(checkpoint, model, optimizer, generator, epoch)
            saved = time.monotonic()

    if checkpoint:
        checkpoint.unlink(missing_ok=True)


def _language_model(respondent: NLIRespondent, name: str) -> torch.nn.Module:
    """Return a language model whose layers are the respondent's."""
    network = respondent.model
    body = network.base_model
    model = network  # a respondent that answers by a word has the head

    if network.get_output_embeddings() is None:
        model = _load_language_model(name)
        kinds = model.config.model_type, network.config.model_type
        if kinds[0] != kinds[1]:
            raise RespondentError(
                f"masked_lm is {kinds[0]}, the model is {kinds[1]}: name the language model that "
                "it comes from."
            )

        shapes = [net.get_input_embeddings().weight.shape for net in (model, body)]
        if shapes[0] != shapes[1]:
            sizes = " and ".join(" × ".join(map(str, shape)) for shape in shapes)
            raise RespondentError(
                f"masked_lm and the respondent have different vocabularies ({sizes}): name the "
                "language model that the respondent comes from."
            )

        if hasattr(model, model.base_model_prefix):
            setattr(model, model.base_model_prefix, body)
        else:  # T5 has encoder and decoder side by side
            for child, module in body.named_children():
                setattr(model, child, module)

        model.tie_weights()

    model.requires_grad_(True)  # merged adapters are frozen
    body.get_input_embeddings().weight.requires_grad_(False)
    return model.to(network.device)


def _load_language_model(name: str) -> torch.nn.Module:
    """Load a language model of the kind for which its family was pre-trained."""
    kind = "bert" if name == "embedded" else find(name).config.get("model_type")
    if kind in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        loaded = load_masked_lm() if name == "embedded" else load_model(name, "masked")
        return loaded[0]
    spans = kind in modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
    other = "permutation" if kind == "xlnet" else "causal"
    return load_model(name, "encoder-decoder" if spans else other)[0]


def _collator(model, tokenizer) -> Callable:
    """Return the function that makes a batch of texts, with the tokens to predict as labels."""
    kind = model.config.model_type
    masked = kind in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    if masked or not (kind == "xlnet" or model.config.is_encoder_decoder):
        return DataCollatorForLanguageModeling(tokenizer, mlm=masked)

    if kind == "xlnet":
        permute = DataCollatorForPermutationLanguageModeling(tokenizer).torch_mask_tokens

        def permuted(features: list) -> dict:
            batch = tokenizer.pad(features, pad_to_multiple_of=2, return_tensors="pt")
            names = "input_ids", "perm_mask", "target_mapping", "labels"
            of_tokens = zip(names, permute(batch["input_ids"]), strict=True)
            return {"attention_mask": batch["attention_mask"], **dict(of_tokens)}

        return permuted

    marks = tokenizer.convert_tokens_to_ids([f"<extra_id_{number}>" for number in range(100)])
    if tokenizer.unk_token_id in marks or None in marks:
        raise RespondentError(
            f"The {kind}'s tokenizer lacks sentinel tokens (<extra_id_0>, ...), so spans cannot be "
            "masked: use the tokenizer that belongs to the model."
        )

    def spans(features: list) -> dict:
        pairs = [_spans(feature["input_ids"], iter(marks)) for feature in features]
        texts, labels = (
            tokenizer.pad([{"input_ids": ids} for ids in rows], return_tensors="pt")
            for rows in zip(*pairs, strict=True)
        )
        hidden = labels["attention_mask"] == 0
        return {**texts, "labels": labels["input_ids"].masked_fill(hidden, -100)}

    return spans


def _spans(ids: list[int], marks: Iterator[int]) -> tuple[list[int], list[int]]:
    """Replace spans of 15 % of a text's tokens (at least one) with marks; also return the spans."""
    *ids, end = ids
    chosen = torch.rand(len(ids)) < 0.15
    chosen[torch.randint(len(ids), (1,))] = True
    visible = []
    hidden = []
    for place, token in enumerate(ids):
        if chosen[place] and not (place and chosen[place - 1]):
            mark = next(marks)
            visible.append(mark)
            hidden.append(mark)

        (hidden if chosen[place] else visible).append(token)

    return [*visible, end], [*hidden, end]


def _loss(model, batch):
    """Return the cross entropy of a batch's hidden tokens, or None if no token is hidden."""
    batch = {name: values.to(model.device) for name, values in batch.items()}
    chosen = batch["labels"] != -100
    if not chosen.any():
        return None

    if model.config.model_type not in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        return model(**batch).loss

    labels = batch.pop("labels")[chosen]

    if hasattr(model, "cls"):  # only at the masked tokens, which saves time
        logits = model.cls(model.base_model(**batch).last_hidden_state[chosen])
    else:
        logits = model(**batch).logits[chosen]

    return torch.nn.functional.cross_entropy(logits, labels)


def _keep(path: Path, model, optimizer, generator, epoch: int) -> None:
    """Save the state on which the next epoch depends, in one file of tensors."""
    from safetensors.torch import save_file

    tensors = {f"model.{name}": p.detach() for name, p in model.named_parameters()}

    for number, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{key}": value for key, value in state.items()}

    tensors |= {"order": generator.get_state(), "random": torch.get_rng_state()}
    tensors["epoch"] = torch.tensor(epoch)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as new_file:
        save_file(tensors, new_file)


def _resume(path: Path | None, model, optimizer, generator, first: int | None) -> int:
    """Restore a saved state, and return the number of completed epochs."""
    from safetensors.torch import load_file

    if path is None or not path.is_file():
        return 0

    tensors = load_file(path)
    done = int(tensors["epoch"])
    if first is not None and done >= first:
        return 0

    model.load_state_dict(
        {name[6:]: value for name, value in tensors.items() if name.startswith("model.")},
        strict=False,  # tied weights are stored once
    )
    content = optimizer.state_dict()
    states = {}
    for name, value in tensors.items():
        if name.startswith("optimizer."):
            _, number, key = name.split(".")
            states.setdefault(int(number), {})[key] = value

    optimizer.load_state_dict(content | {"state": states})
    generator.set_state(tensors["order"])
    torch.set_rng_state(tensors["random"])
    return done
