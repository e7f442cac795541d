"""Generate text with a local model: replies to conversations, in batches.

:func:`replies` turns conversations into texts with the tokenizer's chat template, and generates the
continuations. All of the package's text is generated here, so that every caller gets the same
reply.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from ..exceptions import ParameterError, RespondentError
from ..models.chat_templates import fill_template
from ..models.lengths import batch_rows, check_length, vocabulary_size
from .mode import Identity
from .prompting import _compute_batches
from .replies import _THOUGHT_MARK, _THOUGHTS_BEGUN

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

HANDLING = "generate-1"
"""The version of reply generation, which is part of the key of a stored reply."""

_BATCH = 32  # on a processor; on a GPU it may be larger
# Most tokens of a mark at the end of a prompt.
_MARK_TOKENS = 16
# Kinds of models that treat padding as text, so that they get one conversation at a time.
_SEES_PADDING = ("rwkv",)

_Conversation = Sequence[dict[str, str]]
_Form = Sequence[Sequence[str]]
# A form's texts as tokens: each part has texts, each text has tokens.
_FormTokens = list[list[list[int]]]


class _WrittenReply(TypedDict):
    """A reply that a model on this machine wrote.

    ``reply`` has no special tokens; ``finish_reason`` is "stop", or "length" if ``max_tokens`` cut
    the reply off; ``tokens`` is the number of generated tokens.
    """

    reply: str
    finish_reason: str
    tokens: int


def replies(
    loaded: tuple[PreTrainedModel, PreTrainedTokenizerBase],
    conversations: Sequence[_Conversation],
    temperature: float = 0.0,
    max_tokens: int = 256,
    seeds: Sequence[int] | None = None,
    batch: int | None = None,
    forms: Sequence[_Form] | None = None,
    keep: Callable[[int, _WrittenReply], None] | None = None,
) -> list[_WrittenReply]:
    """Generate a model's replies to conversations.

    Parameters
    ----------
    loaded : tuple
        A causal language model in evaluation mode and its tokenizer with a chat template, as
        :func:`psychometrics.models.loading.load_model` returns them.
    conversations : sequence of N conversations
        Each conversation is a list of ``{"role": …, "content": …}`` that ends with a user message.
        If the template does not accept a system text, that text is put before the user's first
        text.
    temperature : float
        Sampling temperature. At 0 the likeliest token is taken each time; otherwise tokens are
        drawn from the full distribution at this temperature.
    max_tokens : int
        Maximum number of tokens in a reply.
    seeds : sequence of N int, optional
        Seeds of the replies, by default 0 to N - 1. Each reply is drawn with its own seed,
        independently of its batch.
    batch : int, optional
        Number of conversations per batch; the conversations of a batch have similar lengths. By
        default it is 32, and more on a CUDA device with enough free memory. If memory runs out, it
        is halved. It can change a reply only through rounding: often in bfloat16, almost never in
        float32.
    forms : sequence of N forms, optional
        Form of each reply: a list of parts, each a list of alternative texts. Only tokens that
        continue such a text can be chosen. Without forms, replies are free.
    keep : callable, optional
        A function that is called after each batch with the index and the reply of each
        conversation.

    Returns
    -------
    list of N WrittenReply

    Raises
    ------
    RespondentError
        The tokenizer has no chat template, no token ends a reply, a conversation is too long for
        the model, or one conversation does not fit into memory.
    ParameterError
        A number is out of range, or a form has no text.

    Examples
    --------
    >>> from psychometrics.models.loading import load_model
    >>> model, tokenizer = load_model("smollm2", "causal")
    >>> hello = [{"role": "user", "content": "Hello, how are you?"}]
    >>> replies((model, tokenizer), [hello], forms=[[["fine", "bad"]]])[0]["finish_reason"]
    'stop'
    """
    model, tokenizer = loaded
    count = len(conversations)
    seeds = range(count) if seeds is None else seeds
    ends = _find_end_tokens(model, tokenizer)
    encoded = [encode(tokenizer, conversation) for conversation in conversations]
    check_length(encoded, model, tokenizer, max_tokens)
    form_tokens = [_encode_form(tokenizer, form, ends) for form in forms or ()]

    dtype = str(model.dtype).removeprefix("torch.")
    identity = Identity("The model with these conversations", dtype=dtype, device=str(model.device))
    if model.config.model_type in _SEES_PADDING:
        batch = 1
    elif batch is None:
        longest = max(map(len, encoded)) + max_tokens
        batch = batch_rows(model.config, model.device, dtype, longest, _BATCH)

    def generate(places: list[int]) -> list[list[int]]:
        choose = _TokenChoice(temperature, [seeds[i] for i in places])
        batch_forms = [form_tokens[i] for i in places if forms]
        texts = [encoded[i] for i in places]
        padding = tokenizer.pad_token_id
        return _generate(model, texts, max_tokens, ends, padding, choose, batch_forms)

    written: dict[int, _WrittenReply] = {}
    order = sorted(range(count), key=lambda i: len(encoded[i]))
    for places, out in _compute_batches(order, batch, generate, identity):
        for i, row in zip(places, out, strict=True):
            end = next((at for at, token in enumerate(row) if token in ends), None)
            written[i] = {
                "reply": _decode(tokenizer, encoded[i], row[:end]),
                "finish_reason": "length" if end is None else "stop",
                "tokens": len(row) if end is None else end + 1,
            }

            if keep is not None:
                keep(i, written[i])

    return [written[i] for i in range(count)]


def _decode(tokenizer: PreTrainedTokenizerBase, prompt: list[int], tokens: list[int]) -> str:
    """Return a reply's text without special tokens, except the marks around the model's thoughts.

    If the prompt ends with such a mark, the reply begins with it: else thoughts look like answers.
    """
    special = {n for n, token in tokenizer.added_tokens_decoder.items() if token.special}
    named = {n: str(tokenizer.convert_ids_to_tokens(n)) for n in special.intersection(tokens)}
    has_channels = "<|channel|>" in named.values()
    marks = {n for n, name in named.items() if _THOUGHT_MARK.fullmatch(name) or has_channels}
    begun = _THOUGHTS_BEGUN.search(str(tokenizer.decode(prompt[-_MARK_TOKENS:])))
    text = begun[0].strip() if begun else ""

    if marks:
        tokens = [n for n in tokens if n in marks or n not in special]
    return text + str(tokenizer.decode(tokens, skip_special_tokens=not marks)).strip()


def encode(tokenizer: PreTrainedTokenizerBase, conversation: _Conversation) -> list[int]:
    """Return a conversation's token ids in the tokenizer's chat template, ready for the reply.

    If the template does not accept a system text, that text is put before the user's first text.

    Raises
    ------
    RespondentError
        The tokenizer has no chat template, or the template cannot be filled.
    """
    from jinja2.exceptions import TemplateError

    if not tokenizer.chat_template:
        name = getattr(tokenizer, "name_or_path", "") or "This model"
        raise RespondentError(f"{name} has no chat template: use mode 'options'.")

    forms = [list(conversation)]
    if len(forms[0]) > 1 and forms[0][0]["role"] == "system":
        system, user, *turns = conversation
        forms.append([user | {"content": f"{system['content']}\n\n{user['content']}"}, *turns])

    for form in forms:
        try:
            text = fill_template(tokenizer, form)
        except TemplateError as error:
            refused = error
        else:
            ids: list[int] = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
            return ids

    raise RespondentError(
        f"The template does not accept the conversation ({refused}): choose another model."
    ) from refused


def _find_end_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Return the tokens that end a reply, by the settings of the model and its tokenizer."""
    of_model = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    tokens = list(of_model) if isinstance(of_model, list | tuple) else [of_model]
    distinct = dict.fromkeys([*tokens, tokenizer.eos_token_id])
    ends = [int(token) for token in distinct if token is not None]
    if not ends:
        raise RespondentError("The model has no token that ends a reply: set its eos_token.")
    return ends


def _generate(
    model: PreTrainedModel,
    texts: list[list[int]],
    max_tokens: int,
    ends: list[int],
    padding: int | None,
    choose: _TokenChoice,
    forms: list[_FormTokens],
) -> list[list[int]]:
    """Generate the tokens that follow each text, in the texts' forms if there are any."""
    import torch
    from transformers import GenerationConfig

    generator: Any = model
    padding = ends[0] if padding is None else padding
    if padding >= vocabulary_size(model):
        padding = texts[0][0]  # padding is masked, so any token that the model knows works
    width = max(map(len, texts))
    ids = [[padding] * (width - len(text)) + text for text in texts]
    mask = [[0] * (width - len(text)) + [1] * len(text) for text in texts]
    # Of the model's own settings only the end tokens: no penalties, no truncated sampling.
    settings = GenerationConfig(
        max_new_tokens=max_tokens, do_sample=False, eos_token_id=ends, pad_token_id=padding
    )
    model_settings = model.generation_config
    model.generation_config = settings

    def allow(row: int, tokens: torch.Tensor) -> list[int]:
        return _find_next_tokens(forms[row], tokens[width:].tolist()) or ends

    try:
        with torch.inference_mode():
            tokens = generator.generate(
                input_ids=torch.tensor(ids, device=model.device),
                attention_mask=torch.tensor(mask, device=model.device),
                generation_config=settings,
                prefix_allowed_tokens_fn=allow if forms else None,
                logits_processor=[choose],
            )
    finally:
        model.generation_config = model_settings

    rows: list[list[int]] = tokens[:, width:].tolist()
    return rows


class _TokenChoice:
    """Change the tokens' scores so that in each row the drawn token has the highest."""

    def __init__(self, temperature: float, seeds: Sequence[int]) -> None:
        self.temperature = temperature
        self.generators = [np.random.default_rng(seed) for seed in seeds]

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        import torch

        scores = scores.float()
        if not scores.amax(dim=1).isfinite().all():  # NaN has no likeliest token
            raise RespondentError("The model's logits are NaN or infinite: check its weights.")

        if self.temperature:
            # A race of exponential waiting times draws from the distribution; for two nearly equal
            # distributions, it almost always draws the same token.
            size = scores.shape[1]
            times = [rng.standard_exponential(size, dtype=np.float32) for rng in self.generators]
            waits = torch.from_numpy(np.stack(times)).to(scores.device)
            scores = scores / self.temperature - waits.log()

        return scores


def _find_next_tokens(form: _FormTokens, reply: list[int]) -> list[int]:
    """Return the tokens with which a form lets a reply go on; none if the reply is complete."""
    allowed: set[int] = set()
    places = [(0, 0)]  # a part of the form, and the place in the reply where it begins
    while places:
        number, start = places.pop()
        remainder = reply[start:]
        for text in form[number] if number < len(form) else []:
            common = min(len(text), len(remainder))
            if text[:common] != remainder[:common]:
                continue
            if len(text) > len(remainder):
                allowed.add(text[len(remainder)])
            else:
                places.append((number + 1, start + len(text)))

    return sorted(allowed)


def _encode_form(tokenizer: PreTrainedTokenizerBase, form: _Form, ends: list[int]) -> _FormTokens:
    """Return a form's texts as tokens, with the reply's end as the last part."""
    parts = [
        [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts] for texts in form
    ]
    if not all(texts and all(texts) for texts in parts):
        raise ParameterError(f"Each part of a form needs texts, none of them empty; got {form!r}.")
    return [*parts, [ends[:1]]]
