"""Measure the contributions of prompt parts to a respondent's answers: data/attributions.csv.

Run it with ``python -m recipes.interventions attributions``.
"""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import torch

from psychometrics.checks import check_numbers
from psychometrics.exceptions import RespondentError
from psychometrics.measures.attributions import part_spans
from psychometrics.modes.nli import NLIRespondent
from psychometrics.questionnaires import Questionnaire
from psychometrics.questionnaires.prompts import prompts

_PARTS = ("term", "intensifier", "premise", "hypothesis")
"""Parts of a prompt: its term, its intensifier, and the rest of the two sentences."""


def integrated_gradients(
    respondent: NLIRespondent,
    questionnaire: Questionnaire,
    *,
    steps: int = 8,
    batch: int = 16,
    random_head: int | None = None,
) -> pd.DataFrame:
    """Return the contributions of prompt parts to the log probability of entailment.

    The prompts are all prompts of the first templates with source terms: every item with each of
    its terms and intensifiers. The contributions of a part's tokens are summed.

    Parameters
    ----------
    respondent : NLIRespondent
        A respondent in float32.
    questionnaire : Questionnaire
        A questionnaire with prompts.
    steps : int
        Number of steps of the integral.
    batch : int
        Number of prompts per batch.
    random_head : int, optional
        Seed of a null: the same encoder with a new head, N(0, 0.02²), which has not learnt
        inference.

    Returns
    -------
    DataFrame
        Four rows per prompt: ``item_id, term, intensifier, part`` (*term*, *intensifier*, *premise*
        and *hypothesis* for the rest of the two sentences)``, attribution``, and ``share``, the
        attribution divided by the sum of the absolute attributions of the prompt's tokens. Shares
        lie between -1 and 1 and have the same unit for all respondents.

    Raises
    ------
    ParameterError
        A number is out of range.
    RespondentError
        The tokenizer does not report the positions of tokens.

    References
    ----------
    Sundararajan, Taly and Yan (2017), integrated gradients; computed by captum.
    """
    check_numbers(steps=steps, batch=batch)

    if not respondent.tokenizer.is_fast:
        raise RespondentError("A fast tokenizer (tokenizer.json) is needed: name such a model.")
    model = respondent.model

    if random_head is not None:
        check_numbers(seed=random_head)
        model = _with_random_head(model, random_head)

    table = prompts(questionnaire).query("polarity == 1 and template == 1")
    pairs = list(zip(table["premise"], table["hypothesis"], strict=True))
    order = sorted(range(len(pairs)), key=lambda i: len(pairs[i][0]) + len(pairs[i][1]))
    rows = []
    for start in range(0, len(order), batch):
        places = order[start : start + batch]
        values = _integrated(model, respondent, [pairs[i] for i in places], steps)
        for i, (attribution, part) in zip(places, values, strict=True):
            spoken = table.iloc[i]
            parts = _parts(part, spoken)
            total = np.abs(attribution).sum()

            for name in _PARTS:
                value = attribution[parts == name].sum()
                rows.append((i, spoken["item_id"], spoken["term"], spoken["intensifier"], name,
                             value, value / total if total else np.nan))  # fmt: skip

    columns = ["prompt", "item_id", "term", "intensifier", "part", "attribution", "share"]
    frame = pd.DataFrame(rows, columns=columns).sort_values("prompt", kind="stable")
    return frame.drop(columns="prompt").reset_index(drop=True)


def _with_random_head(model, seed: int):
    """Return a copy of a classifier whose head (and pooler, if any) has new weights."""
    model = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(seed)
    body = {id(p) for name, p in model.base_model.named_parameters() if "pooler" not in name}
    with torch.no_grad():
        for parameter in model.parameters():
            if id(parameter) not in body:
                fresh = torch.randn(parameter.shape, generator=generator) * 0.02
                parameter.copy_(fresh if parameter.ndim > 1 else torch.zeros_like(fresh))
    return model


def _integrated(model, respondent: NLIRespondent, pairs: list, steps: int) -> list[tuple]:
    """Return each pair's token attributions, with their places (sequence, start, end)."""
    from captum.attr import LayerIntegratedGradients

    tokenizer = respondent.tokenizer
    inputs = tokenizer(
        [premise for premise, _ in pairs], [hypothesis for _, hypothesis in pairs],
        return_tensors="pt", padding=True, return_offsets_mapping=True,
    )  # fmt: skip
    offsets = inputs.pop("offset_mapping").numpy()
    sequences = [inputs.sequence_ids(row) for row in range(len(pairs))]
    inputs = inputs.to(model.device)
    ids = inputs.pop("input_ids")
    names = list(inputs)
    said = np.array([[one is not None for one in row] for row in sequences])
    baseline = ids.clone()
    baseline[said] = tokenizer.pad_token_id
    entailment = respondent.order[0]

    def target(tokens, *rest):
        logits = model(input_ids=tokens, **dict(zip(names, rest, strict=True))).logits
        return logits.log_softmax(dim=-1)[:, entailment]

    method = LayerIntegratedGradients(target, model.get_input_embeddings())
    values = method.attribute(
        ids, baselines=baseline, n_steps=steps,
        additional_forward_args=tuple(inputs[name] for name in names),
    )  # fmt: skip
    values = values.sum(dim=-1).detach().cpu().numpy().astype(float)
    found = []
    for row, own in enumerate(said):
        places = np.flatnonzero(own)
        tokens = [(sequences[row][place], *offsets[row, place]) for place in places]
        found.append((values[row][places], tokens))

    return found


def _parts(tokens: list[tuple], prompt: pd.Series) -> np.ndarray:
    """Return the part of its prompt that each token belongs to."""
    spans = part_spans(prompt)
    names = []
    for number, start, end in tokens:
        inside = (
            name for name, span in spans.items()
            if span[0] == number and start < span[2] and end > span[1]
        )  # fmt: skip
        names.append(next(inside, ("premise", "hypothesis")[number]))

    return np.array(names)
