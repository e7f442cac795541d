"""Text that a model on this machine writes: replies to conversations, in batches.

:func:`replies` puts conversations through the tokenizer's chat template and lets the model go on.
All that generates text in the package goes through it, so that a reply is the same whoever asks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..asking.answers import check_numbers
from ..exceptions import ParameterError, RespondentError
from ..models.loading import check_length, out_of_memory

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

HANDLING = "generate-1"
"""Version of all that this file does to a reply; part of the key of what is stored."""
BATCH = 32

Conversation = Sequence[dict[str, str]]
Form = Sequence[Sequence[str]]


def replies(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    conversations: Sequence[Conversation],
    temperature: float = 0.0,
    max_tokens: int = 256,
    seeds: Sequence[int] | None = None,
    batch: int = BATCH,
    forms: Sequence[Form | None] | None = None,
    keep: Callable[[int, dict], None] | None = None,
) -> list[dict]:
    """What a model replies to conversations.

    Parameters
    ----------
    model, tokenizer
        A causal language model in evaluation mode, and its tokenizer with a chat template.
    conversations : sequence of N conversations
        Each a list of ``{"role": …, "content": …}``, of which the last is the user's. Where the
        template takes no system text, that is put before the user's first.
    temperature : float
        0 takes the likeliest token each time; else tokens are drawn from all, at this temperature.
    max_tokens : int
        Most tokens of a reply.
    seeds : sequence of N int, optional
        By default 0 to N - 1. A reply is drawn with its own seed, whoever else is in the batch.
    batch : int
        Conversations at a time; those of like length go together. Its size can change a reply only
        by rounding: often in bfloat16, as good as never in float32.
    forms : sequence of N forms or None, optional
        What a reply must look like: a list of parts, each a list of texts of which one follows.
        Only tokens that go on with such a text can be chosen. None leaves a reply free.
    keep : callable, optional
        Is called with a conversation's place and its reply as soon as its batch is done.

    Returns
    -------
    list of N dict
        ``reply``, without special tokens; ``finish_reason``, ``"stop"`` or, where it was cut off
        by ``max_tokens``, ``"length"``; ``tokens``, how many were generated.

    Raises
    ------
    RespondentError
        The tokenizer has no chat template or no token to end or to pad with, a conversation is
        longer than the model reads, or memory runs out.
    ParameterError
        A number is impossible, or a form holds no text.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from psychometrics.models.loading import load_model
    >>> from psychometrics.studies.asking import null_model
    >>> model, tokenizer = load_model(null_model(mkdtemp()), "causal")
    >>> tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    >>> hello = [{"role": "user", "content": "Hello, how are you?"}]
    >>> replies(model, tokenizer, [hello], forms=[[["fine", "bad"]]])[0]["finish_reason"]
    'stop'
    """
    import torch

    check_numbers(max_tokens=max_tokens, batch=batch)
    if isinstance(temperature, bool) or not 0 <= temperature < float("inf"):
        raise ParameterError(f"temperature must be a number from 0, got {temperature!r}.")
    count = len(conversations)
    seeds = range(count) if seeds is None else seeds
    forms = [None] * count if forms is None else forms
    for name, given in {"seeds": seeds, "forms": forms}.items():
        if len(given) != count:
            raise ParameterError(f"{name} must be as many as conversations, {count}.")
    ends = _ends(model, tokenizer)
    # What fills up a batch is masked, so any token will do.
    padding = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else ends[0]
    encoded = [encode(tokenizer, conversation) for conversation in conversations]
    check_length(encoded, model, tokenizer, max_tokens)
    parts = [_tokens_of(tokenizer, form, ends) for form in forms]
    found: list[dict] = [{} for _ in range(count)]
    ordered = sorted(range(count), key=lambda i: len(encoded[i]))
    for start in range(0, count, batch):
        places = ordered[start : start + batch]
        width = max(len(encoded[i]) for i in places)
        gaps = [width - len(encoded[i]) for i in places]
        ids = torch.tensor(
            [[padding] * gap + encoded[i] for i, gap in zip(places, gaps, strict=True)]
        )
        mask = torch.tensor([[0] * gap + [1] * (width - gap) for gap in gaps])
        choosing = _Choosing(temperature, [seeds[i] for i in places], [parts[i] for i in places])
        try:
            out = _generated(model, ids, mask, max_tokens, ends, padding, choosing)
        except Exception as error:
            if not out_of_memory(error):
                raise
            raise RespondentError(
                f"The model does not fit into memory with {len(places)} conversations at once: "
                "use a smaller batch, max_tokens or model."
            ) from error
        for i, row in zip(places, out.tolist(), strict=True):
            end = next((at for at, token in enumerate(row) if token in ends), None)
            text = tokenizer.decode(row[:end], skip_special_tokens=True).strip()
            reason = "length" if end is None else "stop"
            tokens = len(row) if end is None else end + 1
            found[i] = {"reply": text, "finish_reason": reason, "tokens": tokens}
            if keep is not None:
                keep(i, found[i])
    return found


def encode(
    tokenizer: PreTrainedTokenizerBase, conversation: Conversation, begun: str = ""
) -> list[int]:
    """Token ids of a conversation in the tokenizer's chat template, up to the reply's beginning.

    Parameters
    ----------
    tokenizer
    conversation : list of dict
    begun : str
        What the reply begins with.

    Raises
    ------
    RespondentError
        The tokenizer has no chat template, or it cannot be filled.
    """
    from jinja2.exceptions import TemplateError

    if not tokenizer.chat_template:
        name = getattr(tokenizer, "name_or_path", "") or "This model"
        raise RespondentError(
            f"{name} has no chat template, so it was not made for conversations: choose a model "
            "that was tuned on instructions, or ask it in mode 'options' or 'causal'."
        )
    conversation = list(conversation)
    try:
        text = _templated(tokenizer, conversation)
    except TemplateError:  # some templates refuse a system's text
        if len(conversation) > 1 and conversation[0]["role"] == "system":
            system, user, *rest = conversation
            user = user | {"content": f"{system['content']}\n\n{user['content']}"}
            conversation = [user, *rest]
        try:
            text = _templated(tokenizer, conversation)
        except TemplateError as error:
            raise RespondentError(
                f"The model's chat template does not take the conversation ({error}): choose "
                "another model."
            ) from error
    return tokenizer(text + begun, add_special_tokens=False, verbose=False)["input_ids"]


def _templated(tokenizer, conversation) -> str:
    return tokenizer.apply_chat_template(conversation, tokenize=False, add_generation_prompt=True)


def _ends(model, tokenizer) -> list[int]:
    """The tokens that end a reply, by the model's settings and its tokenizer's."""
    settings = getattr(model, "generation_config", None)
    given = getattr(settings, "eos_token_id", None)
    ends = list(given) if isinstance(given, list | tuple) else [given]
    ends = dict.fromkeys([*ends, tokenizer.eos_token_id])
    if not (ends := [int(token) for token in ends if token is not None]):
        raise RespondentError(
            "The model has no token that ends a reply (eos_token): set it in its "
            "tokenizer_config.json."
        )
    return ends


def _generated(model, ids, mask, max_tokens, ends, padding, choosing) -> torch.Tensor:
    """The tokens that follow, (rows, up to max_tokens)."""
    import torch
    from transformers import GenerationConfig

    # Nothing of the model's own settings but its ends: no penalties, no cut of the distribution.
    settings = GenerationConfig(
        max_new_tokens=max_tokens, do_sample=False, eos_token_id=ends, pad_token_id=padding
    )
    own, model.generation_config = model.generation_config, settings
    choosing.start = ids.shape[1]
    try:
        with torch.inference_mode():
            whole = model.generate(
                input_ids=ids.to(model.device), attention_mask=mask.to(model.device),
                generation_config=settings, logits_processor=[choosing],
            )  # fmt: skip
    finally:
        model.generation_config = own
    return whole[:, ids.shape[1] :].cpu()


class _Choosing:
    """Leaves of each row's scores those that its form allows, and where drawn the one drawn."""

    def __init__(self, temperature: float, seeds: Sequence[int], forms: Sequence) -> None:
        self.temperature, self.forms, self.start = temperature, forms, 0
        self.luck = [np.random.default_rng(seed) for seed in seeds]
        self.states = [None if form is None else _opening(form, 0) for form in forms]

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        import torch

        scores = scores.float()
        for row, form in enumerate(self.forms):
            if form is None:
                continue
            if ids.shape[1] > self.start:
                self.states[row] = _moved_on(form, self.states[row], int(ids[row, -1]))
            if allowed := sorted({form[part][text][at] for part, text, at in self.states[row]}):
                held = scores[row, allowed]
                scores[row] = float("-inf")
                scores[row, allowed] = held
        if self.temperature:
            # A race of exponential waiting times draws from the distribution, and of two that are
            # almost equal it draws almost always the same.
            size = scores.shape[1]
            waits = [rng.standard_exponential(size, dtype=np.float32) for rng in self.luck]
            waits = torch.from_numpy(np.stack(waits)).to(scores.device)
            scores = scores / self.temperature - waits.log()
        return scores


def _tokens_of(tokenizer, form: Form | None, ends: list[int]) -> list[list[list[int]]] | None:
    """A form's texts as tokens, with the reply's end as its last part."""
    if form is None:
        return None
    parts = []
    for texts in form:
        tokens = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
        if not tokens or not all(tokens):
            raise ParameterError(f"Each part of a form needs texts, none of them empty: {form!r}.")
        parts.append(tokens)
    return [*parts, [ends[:1]]]


def _opening(form: list, part: int) -> set[tuple[int, int, int]]:
    """The places at which a part may begin: (part, text, token)."""
    return {(part, text, 0) for text in range(len(form[part]))} if part < len(form) else set()


def _moved_on(form: list, state: set, token: int) -> set[tuple[int, int, int]]:
    """Where one may be after a token."""
    after: set[tuple[int, int, int]] = set()
    for part, text, at in state:
        if form[part][text][at] == token:
            if at + 1 < len(form[part][text]):
                after.add((part, text, at + 1))
            else:
                after |= _opening(form, part + 1)
    return after
