"""Adapt a respondent to a kind of text: train the layers that read as a language model.

The training repeats the pre-training task of the respondent's family: encoders (and BART) fill in
masks, decoders predict the next token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from transformers import DataCollatorForLanguageModeling
from transformers.models.auto import modeling_auto

from psychometrics.exceptions import RespondentError
from psychometrics.models.embedded import load_masked_lm
from psychometrics.models.loading import load_model
from psychometrics.models.sources import find
from psychometrics.modes.nli import NLIRespondent

_BATCH = 8


def adapt(
    respondent: NLIRespondent,
    sentences: Sequence[str],
    after_epoch: Callable[[int], None],
    *,
    masked_lm: str = "embedded",
    epochs: int = 20,
    lr: float = 2e-5,
    seed: int = 0,
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

    Raises
    ------
    RespondentError
        The head has a different architecture, the respondent's family fills in no masks and does
        not predict the next token, or the respondent is not in float32.

    References
    ----------
    Reuben et al. (2024), sections 3.3.5 and 4 (criterion validity).
    """
    who = respondent.identity

    if who["dtype"] != "float32":
        raise RespondentError(f"{who['respondent_id']} must be loaded in float32 to be trained.")
    model = _language_model(respondent, masked_lm)
    tokenizer = respondent.tokenizer
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    features = [tokenizer(text, truncation=True, max_length=128) for text in sentences]
    masked = model.config.model_type in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    collator = DataCollatorForLanguageModeling(tokenizer, mlm=masked)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=lr, weight_decay=0.01, fused=True)

    for epoch in range(1, epochs + 1):
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

        setattr(model, model.base_model_prefix, body)
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
    if kind in ("xlnet", *modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES):
        raise RespondentError(
            f"{name}: the family {kind} neither fills in masks nor predicts the next token; name "
            "an encoder or a decoder."
        )
    return load_model(name, "causal")[0]


def _loss(model, batch):
    """Return the cross entropy of a batch's hidden tokens, or None if no token is hidden."""
    batch = {name: values.to(model.device) for name, values in batch.items()}
    chosen = batch["labels"] != -100
    if not chosen.any():
        return None

    if not hasattr(model, "cls"):
        return model(**batch).loss

    labels = batch.pop("labels")[chosen]  # only at the masked tokens, which saves time
    logits = model.cls(model.base_model(**batch).last_hidden_state[chosen])
    return torch.nn.functional.cross_entropy(logits, labels)
