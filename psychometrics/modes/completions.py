"""Mine beliefs: load templates and a lexicon, and collect a model's completions.

Texts owned by others (HONEST templates, HurtLex) are downloaded. :func:`mine` determines a model's
kind (masked, causal or encoder-decoder), asks it for the K most likely completions of each template
and saves them in the response store, so that a stopped run resumes where it stopped. The templates
and the lexicon are also in this file, because only mining reads them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from ..checks import check_flags, check_numbers
from ..data import fetch, text_table
from ..exceptions import ParameterError, RespondentError
from ..files import sha256
from ..models.devices import resolve_device
from ..models.embedded import embedded_head, load_masked_lm
from ..models.lengths import check_length
from ..models.loading import load_config, load_model, load_tokenizer, to_device
from ..models.sources import find
from ..paths import data_dir
from ..store import StoredAnswers, key_of
from .mode import Identity
from .prompting import _check_finite, _compute_batches

_Completion = tuple[str, float]  # text and log-probability
# A function from the new tokens of several rows, and the continued rows, to their next logits.
_Step = Callable[[torch.Tensor, NDArray[np.intp]], Any]

MASK = "[M]"
"""The mark for the place of the completion in a template."""
_COLUMNS = ["template", "rank", "completion", "logprob"]
# Most tokens of a word; a longer word is cut off.
_MAX_PIECES = 6
# Number of templates that are completed together.
_BATCH = 16
# Version of this file's treatment of completions; part of the key of stored ones.
_HANDLING = "mine-1"


def mine(
    model: str | Path,
    templates: Sequence[str],
    k: int = 100,
    whole_words: bool = False,
    store: str | Path | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Ask a model for the most likely completions of templates.

    A masked model gives the K most likely tokens at the mask. A causal model reads the template up
    to its mask; an encoder-decoder model reads all of it, with a sentinel at the mask. Both kinds
    take the K most likely first tokens and continue each token greedily to the end of the word.

    Parameters
    ----------
    model : str or Path
        ``"embedded"`` for the project's masked model, ``"smollm2"`` for the conversational model
        (causal), a folder written by ``save_pretrained``, or a hub id.
    templates : sequence of T str
        Templates, each with one ``[M]``.
    k : int
        Number of completions per template.
    whole_words : bool
        Whether to leave out tokens that only continue a word or are not words. A causal model still
        gives K completions, with less likely first tokens.
    store : str or Path, optional
        Folder or URL of the response store; by default the one in ``PSYCHOMETRICS_STORE``, or else
        the user's cache.
    progress : bool
        Whether to show a progress bar.

    Returns
    -------
    DataFrame, T times K rows
        ``respondent_id, template, rank`` (from 1), ``completion``, ``logprob`` (natural, of the
        first token). Offensive text is likely.

    Raises
    ------
    RespondentError
        The model cannot be loaded or cannot complete in the requested way, or a template is too
        long for it.
    ParameterError
        A template is not a string or has no mask, or a number is out of range.
    StoreError
        The store cannot be written to.

    References
    ----------
    Setzu et al. (2024), section 3.

    Examples
    --------
    >>> mined = mine("embedded", ["The girl is a [M]."], k=5, progress=False)
    >>> mined["rank"].tolist()
    [1, 2, 3, 4, 5]
    """
    check_numbers(k=k)
    check_flags(whole_words=whole_words, progress=progress)
    templates = [] if templates is None else list(templates)  # a column has no truth value
    if not templates:
        raise ParameterError("There are no templates to complete: give at least one.")

    _check_masks(templates, "templates")
    name, digest, kind = _identify_model(model)

    # The length, once an option, is still a part of the keys.
    options = {"kind": kind, "k": k, "length": None, "whole_words": whole_words}
    origin = [_HANDLING, name, digest, json.dumps(options)]
    keys = {text: [key_of(*origin, text, str(rank + 1)) for rank in range(k)] for text in templates}
    device = resolve_device(None)
    identity = Identity("The model with these templates", device=str(device))
    manifest = {"model": name, "revision": digest, "device": str(device), **options}
    with StoredAnswers(store, "completions", "templates", name, manifest, _COLUMNS) as stored:
        missing = [text for text in keys if keys[text][0] not in stored]
        if missing:
            loaded = load_masked_lm() if model == "embedded" else load_model(find(model), kind)
            network = to_device(loaded[0], device, "float32", name)
            completer = _Completer(network, loaded[1], k, whole_words)
            complete = {
                "masked": completer.complete_masked,
                "causal": completer.complete_causal,
                "encoder-decoder": completer.complete_infilled,
            }[kind]
            with tqdm(total=len(missing), desc=name, unit="template", disable=not progress) as bar:
                batches = _compute_batches(missing, _BATCH, complete, identity)
                for batch, completions in batches:
                    rows = _list_rows(batch, completions)
                    stored.collect(rows, [key for text in batch for key in keys[text]], len(batch))
                    bar.update(len(batch))

        rows = stored.rows.loc[[key for text in templates for key in keys[text]]]

    return rows.reset_index(drop=True).assign(respondent_id=name)[["respondent_id", *_COLUMNS]]


def _identify_model(model: str | Path) -> tuple[str, str, str]:
    """Return a model's name, digest and kind, from its configuration and its tokenizer's mask."""
    if model == "embedded":
        return "embedded", sha256(*sorted(embedded_head("mlm")[0].iterdir())), "masked"

    from transformers.models.auto import modeling_auto as auto

    source = find(model)
    if source.kind == "embedded":
        raise RespondentError(f"{model} judges pairs and cannot complete text: name 'embedded'.")

    config = load_config(model)
    maskable = type(config) in auto.MODEL_FOR_MASKED_LM_MAPPING
    if maskable and load_tokenizer(model).mask_token is not None:
        kind = "masked"
    elif config.is_encoder_decoder:
        kind = "encoder-decoder"
    elif type(config) in auto.MODEL_FOR_CAUSAL_LM_MAPPING:
        kind = "causal"
    else:
        raise RespondentError(
            f"{model} cannot complete text: name a masked, a causal or a T5 model."
        )

    return source.name, source.digest, kind


def _list_rows(batch: list[str], completions: list[list[_Completion]]) -> pd.DataFrame:
    """Return a row for each completion of each template; refuse values that are not finite."""
    rows = [
        (text, rank, words, logprob)
        for text, ranked in zip(batch, completions, strict=True)
        for rank, (words, logprob) in enumerate(ranked, start=1)
    ]
    frame = pd.DataFrame(rows, columns=_COLUMNS)
    _check_finite(frame["logprob"], Identity("The model with these templates"))
    return frame


def templates(source: str | Path = "own") -> pd.DataFrame:
    """Return templates with a mask ``[M]`` to complete.

    Parameters
    ----------
    source : {"own", "binary", "queer"} or path
        The project's own templates, one of the two halves of the HONEST templates, or your own CSV
        or TSV file with the column ``template``; its other columns are groups.

    Returns
    -------
    DataFrame
        ``template`` (text with one ``[M]``) and the groups; for HONEST ``type, group``
        (HONEST's category), ``gender`` (female, male, other), ``age`` (young, old, other),
        ``identity`` (a number), ``whom`` and ``predicate``.

    Raises
    ------
    DataError
        The file cannot be fetched.
    ParameterError
        The file lacks the column, or a template does not have exactly one ``[M]``.

    Examples
    --------
    >>> len(templates("own"))
    50
    """
    if source in ("binary", "queer"):
        frame = text_table(fetch(f"honest_templates_{source}"), ["template_masked"])
        groups = pd.read_csv(data_dir() / "beliefs" / "templates.csv")
        groups = groups[groups["subset"] == source].drop(columns="subset").reset_index(drop=True)
        frame = pd.concat([frame["template_masked"].rename("template"), groups], axis=1)
    else:
        path = data_dir() / "beliefs" / "own_templates.csv"
        frame = text_table(path if str(source) == "own" else source, ["template"])

    _check_masks(frame["template"], str(source))
    return frame


def lexicon(path: str | Path | None = None) -> pd.DataFrame:
    """Return a lexicon of hurtful words: HurtLex, or a file of your own.

    Parameters
    ----------
    path : str or Path, optional
        A CSV or TSV in any language with the columns ``lemma`` and ``category``, and optionally
        ``level``, in which case only the level *conservative* is used; "own" for the project's
        short list; by default English HurtLex 1.2.

    Returns
    -------
    DataFrame
        ``lemma, category``. A lemma has one row for each of its categories. The words are
        offensive.

    Raises
    ------
    DataError
        The file cannot be fetched.
    ParameterError
        The file lacks a column, or has no usable words.

    References
    ----------
    Bassignana, Basile and Patti (2018).

    Examples
    --------
    >>> lexicon("own")["category"].nunique()
    9
    """
    if str(path) == "own":
        path = data_dir() / "beliefs" / "own_lexicon.csv"
    path = Path(path) if path is not None else fetch("hurtlex_en")
    frame = text_table(path, ["lemma", "category"])
    if "level" in frame:
        frame = frame[frame["level"] == "conservative"]
    if frame.empty:
        raise ParameterError(f"{path} has no lemma of the level 'conservative': add one.")
    return frame[["lemma", "category"]].drop_duplicates().reset_index(drop=True)


def model_names(models: str) -> list[str]:
    """Split names of models at commas, drop duplicates, and refuse unknown models.

    Examples
    --------
    >>> model_names("embedded, embedded")
    ['embedded']
    """
    names = list(dict.fromkeys(name.strip() for name in str(models).split(",") if name.strip()))
    if not names:
        raise ParameterError("Name at least one model: 'embedded', a folder or a hub id.")
    for name in names:
        embedded_head("mlm") if name == "embedded" else find(name)
    return names


class _Completer:
    """A loaded model that completes templates with its K best tokens, continued to words."""

    def __init__(self, network: Any, tokenizer: Any, k: int, whole_words: bool) -> None:
        self.network = network
        self.tokenizer = tokenizer
        self.k = k
        self.allowed = _find_allowed(tokenizer, whole_words)
        self.stops = {tokenizer.eos_token_id}

    @torch.inference_mode()
    def complete_masked(self, batch: list[str]) -> list[list[_Completion]]:
        """Return the top K tokens at the mask, with one forward pass per batch."""
        tokenizer = self.tokenizer
        inputs = self._encode([text.replace(MASK, tokenizer.mask_token) for text in batch])
        places = inputs["input_ids"] == tokenizer.mask_token_id
        if not (places.sum(dim=1) == 1).all():
            raise RespondentError("A template is too long and lost its mask: use shorter ones.")

        ids, logprobs = self._choose_best(self.network(**inputs).logits.float()[places])
        words = [
            [tokenizer.decode([i]).strip().removeprefix("##") for i in row] for row in ids.tolist()
        ]

        return [list(zip(*row, strict=True)) for row in zip(words, logprobs.tolist(), strict=True)]

    @torch.inference_mode()
    def complete_causal(self, batch: list[str]) -> list[list[_Completion]]:
        """Return the top K first tokens after each beginning, continued to a word."""
        answers = []
        for text in batch:
            # A space before the mask belongs to the token after it, so it is stripped here.
            ids = self._encode([text.split(MASK)[0].rstrip()], more=_MAX_PIECES)["input_ids"]
            if not ids.shape[1]:
                raise RespondentError(f"'{text}' begins with its mask: put words before it.")

            logits, step = self._continue_text(ids)
            answers.append(self.finish_words(step, logits))

        return answers

    def _continue_text(self, ids: torch.Tensor) -> tuple[torch.Tensor, _Step]:
        """Return the logits after a text, and a function that returns logits after further tokens.

        The states of earlier tokens are cached, so that a step reads one token per row; a model
        without such a cache reads all tokens again.
        """
        network = self.network
        out = network(input_ids=ids, use_cache=True)
        past = getattr(out, "past_key_values", None)
        past = past if hasattr(past, "batch_select_indices") else None
        in_past: NDArray[np.intp] | None = None  # indices of the cached continuations

        def step(added: torch.Tensor, rows: NDArray[np.intp]) -> Any:
            nonlocal in_past
            if past is None:
                texts = torch.cat([ids.expand(len(rows), -1), added[rows]], dim=1)
                return network(input_ids=texts).logits[:, -1].float()

            if in_past is None:
                past.batch_repeat_interleave(len(added))
                in_past = np.arange(len(added))

            if len(rows) < len(in_past):
                places = np.searchsorted(in_past, rows)
                past.batch_select_indices(torch.from_numpy(places).to(ids.device))
                in_past = rows

            last = added[rows][:, -1:]
            output = network(input_ids=last, past_key_values=past, use_cache=True)
            return output.logits[:, -1].float()

        return out.logits[:, -1].float(), step

    @torch.inference_mode()
    def complete_infilled(self, batch: list[str]) -> list[list[_Completion]]:
        """Return the top K first tokens after the sentinel, continued to a word or a sentinel."""
        network = self.network
        tokenizer = self.tokenizer
        sentinel, following = tokenizer.convert_tokens_to_ids(["<extra_id_0>", "<extra_id_1>"])
        if sentinel is None or sentinel == tokenizer.unk_token_id:
            raise RespondentError(
                "The tokenizer has no <extra_id_0>: name a model of the T5 family."
            )

        self.stops |= {following}
        start = network.config.decoder_start_token_id
        start = tokenizer.pad_token_id if start is None else start
        begun = torch.tensor([[start, sentinel]], device=network.device)
        answers = []
        for text in batch:
            inputs = self._encode([text.replace(MASK, "<extra_id_0>")])
            states = network.get_encoder()(**inputs).last_hidden_state

            def step(
                added: torch.Tensor,
                rows: NDArray[np.intp],
                states: torch.Tensor = states,
                mask: torch.Tensor = inputs["attention_mask"],
            ) -> Any:
                output = network(
                    encoder_outputs=(states.expand(len(rows), -1, -1),),
                    attention_mask=mask.expand(len(rows), -1),
                    decoder_input_ids=torch.cat([begun.expand(len(rows), -1), added[rows]], dim=1),
                )
                return output.logits[:, -1].float()

            logits = step(begun[:, :0], np.arange(1))
            answers.append(self.finish_words(step, logits))

        return answers

    def finish_words(self, step: _Step, logits: torch.Tensor) -> list[_Completion]:
        """Continue each of the best first tokens greedily to the end of its word."""
        (ids,), (logprobs,) = self._choose_best(logits)
        added = ids[:, None]
        is_open = np.ones(len(ids), dtype=bool)
        ends = np.ones(len(ids), dtype=int)

        for _ in range(_MAX_PIECES - 1):
            rows = np.flatnonzero(is_open)
            chosen = step(added, rows).argmax(dim=-1)
            for row, token in zip(rows, chosen.tolist(), strict=True):
                is_open[row] = token not in self.stops and not _starts_word(self.tokenizer, token)

            following = torch.zeros_like(added[:, :1])  # unused in finished rows
            following[rows, 0] = chosen
            added = torch.cat([added, following], dim=1)
            ends[is_open] += 1
            if not is_open.any():
                break

        texts = [
            self.tokenizer.decode(row[:end], skip_special_tokens=True).strip()
            for row, end in zip(added.tolist(), ends, strict=True)
        ]
        return list(zip(texts, logprobs.tolist(), strict=True))

    def _choose_best(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return ids and log-probabilities of the best allowed tokens, each of shape (n, k)."""
        scores = logits.log_softmax(dim=-1)[:, : len(self.allowed)]
        keep = torch.from_numpy(self.allowed).to(scores.device)[: scores.shape[1]]
        most = int(keep.sum())
        if self.k > most:
            raise ParameterError(f"k must be at most the model's {most} tokens, got {self.k}.")
        top = scores.masked_fill(~keep, float("-inf")).topk(self.k, dim=-1)
        return top.indices, top.values

    def _encode(self, texts: list[str], more: int = 0) -> dict[str, torch.Tensor]:
        """Encode texts for the model, with room for ``more`` tokens."""
        if self.tokenizer.pad_token is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token

        inputs = self.tokenizer(
            texts,
            padding=len(texts) > 1,
            padding_side="right",  # positions count from the left
            return_tensors="pt",
            verbose=False,
        )
        network = self.network
        if not network.config.is_encoder_decoder:  # encoder-decoders have no length limit here
            check_length(inputs["input_ids"].tolist(), network, self.tokenizer, more)
        names = ("input_ids", "attention_mask")
        return {name: inputs[name].to(network.device) for name in names if name in inputs}


def _starts_word(tokenizer: Any, token: int) -> bool:
    """Return whether a token begins a new word, or is punctuation, which also ends a word."""
    piece = tokenizer.convert_ids_to_tokens(token)
    if piece is None or piece in tokenizer.all_special_tokens:
        return True
    bare = piece.lstrip("Ġ▁ ").removeprefix("##")
    return piece[:1] in "Ġ▁ " or not bare[:1].isalnum()


def _find_allowed(tokenizer: Any, whole_words: bool) -> NDArray[np.bool_]:
    """Return which tokens may come first: no special tokens, and optionally only whole words."""
    size = len(tokenizer)
    allowed = np.ones(size, dtype=bool)
    allowed[[i for i in tokenizer.all_special_ids if i < size]] = False
    pieces = tokenizer.convert_ids_to_tokens(list(range(size)))
    for i, piece in enumerate(pieces):
        if piece is None or re.fullmatch(r"<extra_id_\d+>", piece):
            allowed[i] = False

    if whole_words:
        marked = any(piece and piece[0] in "Ġ▁" for piece in pieces)
        for i, piece in enumerate(pieces):
            begins = piece is not None and (piece[:1] in "Ġ▁" if marked else piece[:2] != "##")
            allowed[i] &= bool(begins and re.search(r"\w", piece.lstrip("Ġ▁")))

    if not allowed.any():
        raise RespondentError("None of this model's tokens is a whole word: use whole_words=False.")
    return allowed


def _check_masks(templates: Iterable[Any], place: str) -> None:
    """Refuse texts without exactly one mask."""
    for number, text in enumerate(templates, start=1):
        is_text = isinstance(text, str) and not re.search("[\ud800-\udfff]", text)
        if not is_text or text.count(MASK) != 1:
            raise ParameterError(
                f"{place}, template {number}, {text!r}: write {MASK} exactly once, for the missing "
                "words."
            )
