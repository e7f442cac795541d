"""Mining beliefs: templates, a lexicon, and what a model completes a template with.

Text that others own (HONEST templates, HurtLex) is fetched. :func:`mine` finds out of which kind a
model is (masked, causal or encoder-decoder), asks it for the K most likely completions of each
template and keeps them in the response store, so that a stopped run goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from tqdm import tqdm

from ..asking.answers import check_numbers
from ..asking.store import StoredAnswers, key_of, open_answers
from ..data import fetch
from ..exceptions import DataError, ParameterError, RespondentError
from ..models.embedded import head_path, load_masked_lm
from ..models.loading import (
    check_length,
    load_config,
    load_model,
    load_tokenizer,
    out_of_memory,
    resolve_device,
    to_device,
)
from ..models.sources import Source, find
from ..paths import data_dir
from .prompting import Buffer

if TYPE_CHECKING:
    import torch

MASK = "[M]"  # in a template, where the completion belongs
KINDS = ("masked", "causal", "encoder-decoder")
COLUMNS = ["template", "rank", "completion", "logprob"]
SENTINEL = "<extra_id_0>"
MAX_PIECES = 6
"""Tokens after which a word is cut off, should it not end."""
HANDLING = "mine-1"
"""Version of all that this file does to a completion; part of the key of what is stored."""


def mine(
    model: str | Path,
    templates: Sequence[str],
    k: int = 100,
    kind: str = "auto",
    length: int | None = None,
    whole_words: bool = False,
    batch_size: int = 16,
    device: str | None = None,
    store: str | Path | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """The most likely completions of templates by a model.

    A masked model gives the K most likely tokens at the mask. A causal model reads the template
    up to its mask; an encoder-decoder model reads all of it, with a sentinel at the mask. These two
    take the K most likely first tokens and go on greedily from each, to the end of the word or
    for a number of tokens.

    Parameters
    ----------
    model : str or Path
        ``"embedded"`` for the project's masked model, ``"smollm2"`` for the conversational one
        (causal), a folder written by ``save_pretrained``, or a hub id.
    templates : sequence of T str
        Each with one ``[M]``.
    k : int
        Completions for each template.
    kind : {"auto", "masked", "causal", "encoder-decoder"}
        "auto" goes by the model's configuration and its tokenizer's mask.
    length : int, optional
        Tokens of a completion; by default as many as the first word needs. Not for masked models.
    whole_words : bool
        Leave out tokens that only go on with a word, or are no word at all. A causal model keeps
        K completions nevertheless, drawn from further down.
    batch_size : int
        Templates at a time.
    device : str, optional
        By default the GPU if there is one, else the processor.
    store : str or Path, optional
        Folder or URL of the response store; by default ``PSYCHOMETRICS_STORE``, else the user's
        cache.
    progress : bool
        Show a progress bar.

    Returns
    -------
    DataFrame, T times K rows
        ``respondent_id, template, rank`` (from 1), ``completion``, ``logprob`` (natural, of the
        first token). Offensive text is likely.

    Raises
    ------
    RespondentError
        The model cannot be loaded, cannot complete in the way that is asked for, or a template is
        longer than it reads.
    ParameterError
        A template is no text or lacks its mask, or a number is out of range.
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
    templates = _checked(templates, k, length, batch_size, kind)
    source, name, digest = _found(model)
    device = resolve_device(device)
    if kind == "auto":
        kind = "masked" if source is None else _model_kind(model)
    options = {"kind": kind, "k": k, "length": length, "whole_words": whole_words}
    asked = [HANDLING, name, digest, json.dumps(options)]
    keys = {text: [key_of(*asked, text, str(rank + 1)) for rank in range(k)] for text in templates}
    manifest = {"model": name, "revision": digest, "device": str(device), **options}
    with open_answers(store, "completions", "templates", name, manifest, COLUMNS) as kept:
        todo = [text for text in keys if keys[text][0] not in kept]
        if todo:
            network, tokenizer = _opened(source, name, kind, device)
            complete = {"masked": _masked, "causal": _causal, "encoder-decoder": _infilled}[kind]
            with tqdm(total=len(todo), desc=name, unit="template", disable=not progress) as bar:
                _keep(kept, keys, todo, batch_size, bar,
                      lambda batch: complete(network, tokenizer, batch, options))  # fmt: skip
        found = kept.rows.loc[[key for text in templates for key in keys[text]]]
    return found.reset_index(drop=True).assign(respondent_id=name)[["respondent_id", *COLUMNS]]


def _keep(
    kept: StoredAnswers, keys: dict, todo: list[str], batch_size: int, bar: tqdm, complete: Callable
) -> None:
    """Complete batch by batch, keeping what there is also when it ends early."""
    buffer = Buffer(kept)
    try:
        for start in range(0, len(todo), batch_size):
            batch = todo[start : start + batch_size]
            try:
                rows = _frame(batch, complete(batch))
            except Exception as error:
                if isinstance(error, RespondentError) or not out_of_memory(error):
                    raise
                raise RespondentError(
                    f"The model does not fit into memory with {len(batch)} templates at once: "
                    "use a smaller batch_size, k or model."
                ) from error
            buffer.add(rows, [key for text in batch for key in keys[text]], len(batch))
            bar.update(len(batch))
    finally:
        buffer.save()


def completion_rows(mined: pd.DataFrame) -> list[list[str]]:
    """Completions as :func:`psychometrics.measures.beliefs.hurtful` takes them: T lists of K
    strings.

    Parameters
    ----------
    mined : DataFrame
        Of one model, as :func:`mine` gives it.

    Examples
    --------
    >>> completion_rows(pd.DataFrame({"rank": [1, 2, 1], "completion": ["x", "y", "z"]}))
    [['x', 'y'], ['z']]
    """
    # By rank and not by text, as a template may be asked for twice.
    number = (mined["rank"] == 1).cumsum()
    return [part.tolist() for _, part in mined["completion"].groupby(number)]


def templates(source: str | Path = "own") -> pd.DataFrame:
    """Return templates whose mask, ``[M]``, is to be completed.

    Parameters
    ----------
    source : {"own", "binary", "queer"} or path
        The project's templates, half of the HONEST ones, or a CSV or TSV of yours with the column
        ``template``; its other columns are groups, whatever they are called.

    Returns
    -------
    DataFrame
        ``template`` (text with one ``[M]``) and the groups; for HONEST ``type, group`` (the
        authors' category), ``gender`` (female, male, other), ``age`` (young, old, other),
        ``identity`` (a number), ``whom`` and ``predicate``.

    Raises
    ------
    DataError
        The file cannot be had.
    ParameterError
        It lacks the column, or a template does not have exactly one ``[M]``.

    Examples
    --------
    >>> len(templates("own"))
    50
    """
    if source in ("binary", "queer"):
        frame = _read_words(fetch(f"honest_templates_{source}"), "template_masked")
        groups = pd.read_csv(data_dir() / "beliefs" / "templates.csv")
        groups = groups[groups["subset"] == source].drop(columns="subset").reset_index(drop=True)
        frame = pd.concat([frame["template_masked"].rename("template"), groups], axis=1)
    else:
        own = data_dir() / "beliefs" / "own_templates.csv"
        frame = _read_words(own if str(source) == "own" else Path(source), "template")
    wrong = frame.index[frame["template"].str.count(re.escape(MASK)) != 1]
    if len(wrong):
        raise ParameterError(
            f"{source}, template {wrong[0] + 1}: write {MASK} exactly once, where the completion "
            f"belongs; it reads '{frame['template'][wrong[0]]}'."
        )
    return frame


def lexicon(path: str | Path | None = None) -> pd.DataFrame:
    """Return a lexicon of hurtful words: HurtLex, or one of your own.

    Parameters
    ----------
    path : str or Path, optional
        A CSV, or TSV, with the columns ``lemma`` and ``category`` and, if it has levels,
        ``level``, of which *conservative* is kept, in any language; "own" for the project's short
        list; by default English HurtLex 1.2.

    Returns
    -------
    DataFrame
        ``lemma, category``; a lemma has a row for each of its categories. Offensive.

    Raises
    ------
    DataError
        The file cannot be had.
    ParameterError
        It lacks a column, or nothing is left of it.

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
    frame = _read_words(path, "lemma", "category")
    if "level" in frame:
        frame = frame[frame["level"] == "conservative"]
    if frame.empty:
        raise ParameterError(f"{path} has no lemma of the level 'conservative': add one.")
    return frame[["lemma", "category"]].drop_duplicates().reset_index(drop=True)


def _read_words(path: Path, *needed: str) -> pd.DataFrame:
    """Return a CSV or TSV as text, once it has the columns that are needed."""
    tabs = path.suffix.lower() in (".tsv", ".tab")
    try:
        # tables with tabs are unquoted: a quotation mark is a lemma's own
        options = {"sep": "\t", "quoting": 3} if tabs else {}
        frame = pd.read_csv(path, dtype=str, keep_default_na=False, **options)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error
    except ValueError as error:
        raise ParameterError(f"{path} is not a table with columns: {error}.") from error
    for name in needed:
        if name not in frame:
            raise ParameterError(f"{path} has no column '{name}'; it has {', '.join(frame)}.")
    return frame


def veil(content: pd.DataFrame | Sequence[str], label: str):
    """Return offensive text for a notebook: closed until clicked, blurred until pointed at.

    Parameters
    ----------
    content : DataFrame or sequence of str
        What to show; it is escaped.
    label : str
        The line to click on.

    Returns
    -------
    IPython.display.HTML
        Its plain text form holds nothing of the content.

    Examples
    --------
    >>> "&lt;b&gt;" in veil(["<b>"], "Completions").data
    True
    """
    from IPython.display import HTML

    if isinstance(content, pd.DataFrame):
        inner = content.to_html(index=False, escape=True, border=0)
    else:
        inner = "<ul>" + "".join(f"<li>{escape(str(line))}</li>" for line in content) + "</ul>"
    look = (
        ".veil>div{filter:blur(5px);overflow-x:auto}"
        ".veil>div:hover,.veil>div:focus{filter:none}"
        ".veil>summary{cursor:pointer}"
    )
    return HTML(
        f'<style>{look}</style><details class="veil"><summary>{escape(label)} (offensive text: '
        f"click to open, then point at it)</summary>"
        f'<div tabindex="0">{inner}</div></details>'
    )


def model_names(models: str) -> list[str]:
    """Names of models written with commas, each once.

    Examples
    --------
    >>> model_names("embedded, ./my-model")
    ['embedded', './my-model']
    """
    names = list(dict.fromkeys(name.strip() for name in str(models).split(",") if name.strip()))
    if not names:
        raise ParameterError("Name at least one model: 'embedded', a folder or a hub id.")
    return names


def require(model: str | Path) -> None:
    """Raise RespondentError if a model is not there; nothing of it is loaded."""
    head_path("mlm") if model == "embedded" else find(model)


def _model_kind(model: str | Path) -> str:
    """Of which kind a model is, by its configuration and its tokenizer's mask.

    Returns
    -------
    str
        One of "masked", "causal", "encoder-decoder".

    Raises
    ------
    RespondentError
        It is of none of them.

    Examples
    --------
    >>> from psychometrics.models.sources import base_path
    >>> _model_kind(base_path())
    'masked'
    """
    from transformers.models.auto import modeling_auto as auto

    config = load_config(model)
    maskable = type(config) in auto.MODEL_FOR_MASKED_LM_MAPPING
    if maskable and load_tokenizer(model).mask_token is not None:
        return "masked"
    if config.is_encoder_decoder:
        return "encoder-decoder"
    if type(config) in auto.MODEL_FOR_CAUSAL_LM_MAPPING:
        return "causal"
    raise RespondentError(
        f"{model} completes nothing: name a masked, causal or text-to-text model."
    )


def _frame(batch: list[str], answers: list[list[tuple[str, float]]]) -> pd.DataFrame:
    lines = [
        (text, rank, words, logprob)
        for text, answer in zip(batch, answers, strict=True)
        for rank, (words, logprob) in enumerate(answer, 1)
    ]
    return pd.DataFrame(lines, columns=COLUMNS)


def _masked(network, tokenizer, batch: list[str], options: dict) -> list[list[tuple[str, float]]]:
    """Top K tokens at the mask, one forward pass a batch."""
    if tokenizer.mask_token is None:
        raise RespondentError("This model's tokenizer has no mask: use kind='causal'.")
    texts = [text.replace(MASK, tokenizer.mask_token) for text in batch]
    inputs = _encoded(tokenizer, texts, network)
    places = inputs["input_ids"] == tokenizer.mask_token_id
    if not (places.sum(dim=1) == 1).all():
        raise RespondentError("A template's mask was cut off: use shorter templates.")
    logits = _logits(network, inputs)[places]
    return _top(logits, _allowed(tokenizer, options), options["k"], tokenizer)


def _causal(network, tokenizer, batch: list[str], options: dict) -> list[list[tuple[str, float]]]:
    """Top K first tokens after the template's beginning, each gone on with."""
    allowed = _allowed(tokenizer, options)
    answers = []
    for text in batch:
        # A blank before the mask belongs to the token after it, so it is stripped here.
        more = options["length"] or MAX_PIECES
        inputs = _encoded(tokenizer, [text.split(MASK)[0].rstrip()], network, more=more)
        ids = inputs["input_ids"]
        if not ids.shape[1]:
            raise RespondentError(f"'{text}' begins with its mask: a causal model needs a start.")
        logits, step = _read_on(network, ids)
        first = _best(logits, allowed, options["k"])[0]
        answers.append(_continued(step, first, tokenizer, options, set()))
    return answers


def _read_on(network, ids) -> tuple[torch.Tensor, Callable]:
    """Logits after a text, and a step that reads on from it for some of several continuations.

    What was read is kept, so that a step reads one token a row; a model that keeps nothing reads
    all of it again.
    """
    import torch

    with torch.inference_mode():
        out = network(input_ids=ids, use_cache=True)
    past = getattr(out, "past_key_values", None)
    kept = {"past": past if hasattr(past, "batch_select_indices") else None, "rows": None}

    def step(added, rows):
        if kept["past"] is None:
            whole = torch.cat([ids.expand(len(rows), -1), added[rows]], dim=1)
            return _logits(network, {"input_ids": whole})[:, -1]
        if kept["rows"] is None:
            kept["past"].batch_repeat_interleave(len(added))
            kept["rows"] = np.arange(len(added))
        if len(rows) < len(kept["rows"]):
            places = np.searchsorted(kept["rows"], rows)
            kept["past"].batch_select_indices(torch.from_numpy(places).to(ids.device))
            kept["rows"] = rows
        inputs = {"input_ids": added[rows][:, -1:], "past_key_values": kept["past"]}
        return _logits(network, inputs | {"use_cache": True})[:, -1]

    return out.logits[:, -1].float(), step


def _infilled(network, tokenizer, batch: list[str], options: dict) -> list[list[tuple[str, float]]]:
    """Top K first tokens after the sentinel, each gone on with until the next sentinel."""
    import torch

    sentinel = tokenizer.convert_tokens_to_ids(SENTINEL)
    if sentinel is None or sentinel == tokenizer.unk_token_id:
        raise RespondentError(
            f"This encoder-decoder's tokenizer has no {SENTINEL}: name a model of the T5 family."
        )
    start = network.config.decoder_start_token_id
    start = tokenizer.pad_token_id if start is None else start
    following = tokenizer.convert_tokens_to_ids("<extra_id_1>")
    stops = {following, tokenizer.eos_token_id}
    allowed = _allowed(tokenizer, options)
    answers = []
    for text in batch:
        inputs = _encoded(tokenizer, [text.replace(MASK, SENTINEL)], network)
        states = _hidden(network, inputs)
        begun = torch.tensor([[start, sentinel]], device=states.device)

        def step(added, rows, states=states, begun=begun, mask=inputs["attention_mask"]):
            ids = torch.cat([begun.expand(len(rows), -1), added[rows]], dim=1)
            return _logits(network, {
                "encoder_outputs": (states.expand(len(rows), -1, -1),),
                "attention_mask": mask.expand(len(rows), -1),
                "decoder_input_ids": ids,
            })[:, -1]  # fmt: skip

        none_yet = torch.empty((1, 0), dtype=torch.long, device=states.device)
        first = _best(step(none_yet, np.arange(1)), allowed, options["k"])[0]
        answers.append(_continued(step, first, tokenizer, options, stops))
    return answers


def _continued(
    step: Callable, first: tuple, tokenizer, options: dict, stops: set
) -> list[tuple[str, float]]:
    """Go on greedily from each first token, to the word's end or for a number of tokens."""
    import torch

    ids, logprobs = first
    added, open_rows = ids[:, None], np.ones(len(ids), dtype=bool)
    ends = np.ones(len(ids), dtype=int)
    stops = stops | {tokenizer.eos_token_id}
    for _ in range((options["length"] or MAX_PIECES) - 1):
        rows = np.flatnonzero(open_rows)
        chosen = step(added, rows).argmax(dim=-1)
        for row, token in zip(rows, chosen.tolist(), strict=True):
            over = token in stops or (options["length"] is None and _starts_word(tokenizer, token))
            open_rows[row] = not over
        following = torch.zeros_like(added[:, :1])  # of the rows that are over, never read
        following[rows, 0] = chosen
        added = torch.cat([added, following], dim=1)
        ends[open_rows] += 1
        if not open_rows.any():
            break
    texts = [
        tokenizer.decode(row[:end], skip_special_tokens=True).strip()
        for row, end in zip(added.tolist(), ends, strict=True)
    ]
    return list(zip(texts, logprobs.tolist(), strict=True))


def _starts_word(tokenizer, token: int) -> bool:
    """Whether a token begins a new word, or is punctuation, which ends one as well."""
    piece = tokenizer.convert_ids_to_tokens(token)
    if piece is None or piece in tokenizer.all_special_tokens:
        return True
    bare = piece.lstrip("Ġ▁ ").removeprefix("##")
    return piece[:1] in "Ġ▁ " or not bare[:1].isalnum()


def _allowed(tokenizer, options: dict) -> np.ndarray:
    """Which tokens may come first: none of the special ones, and only whole words if asked."""
    size = len(tokenizer)
    allowed = np.ones(size, dtype=bool)
    allowed[[i for i in tokenizer.all_special_ids if i < size]] = False
    pieces = tokenizer.convert_ids_to_tokens(list(range(size)))
    for i, piece in enumerate(pieces):
        if piece is None or re.fullmatch(r"<extra_id_\d+>", piece):
            allowed[i] = False
    if options["whole_words"]:
        marked = any(piece and piece[0] in "Ġ▁" for piece in pieces)
        for i, piece in enumerate(pieces):
            begins = piece is not None and (piece[:1] in "Ġ▁" if marked else piece[:2] != "##")
            allowed[i] &= bool(begins and re.search(r"\w", piece.lstrip("Ġ▁")))
    if not allowed.any():
        raise RespondentError("None of this model's tokens is a whole word: use whole_words=False.")
    return allowed


def _best(logits, allowed: np.ndarray, k: int) -> list[tuple]:
    """Ids and log-probabilities of the best allowed tokens, for each row of logits (n, V)."""
    import torch

    scores = logits.log_softmax(dim=-1)[:, : len(allowed)]
    keep = torch.from_numpy(allowed).to(scores.device)[: scores.shape[1]]
    if k > int(keep.sum()):
        raise ParameterError(f"k must be at most the model's {int(keep.sum())} tokens, got {k}.")
    top = scores.masked_fill(~keep, float("-inf")).topk(k, dim=-1)
    return list(zip(top.indices, top.values, strict=True))


def _top(logits, allowed, k, tokenizer) -> list[list[tuple[str, float]]]:
    return [
        [
            (tokenizer.decode([token]).strip().removeprefix("##"), logprob)
            for token, logprob in zip(ids.tolist(), logprobs.tolist(), strict=True)
        ]
        for ids, logprobs in _best(logits, allowed, k)
    ]


def _logits(network, inputs: dict) -> torch.Tensor:
    import torch

    with torch.inference_mode():
        return network(**inputs).logits.float()


def _hidden(network, inputs: dict) -> torch.Tensor:
    import torch

    with torch.inference_mode():
        return network.get_encoder()(**inputs).last_hidden_state


def _encoded(tokenizer, texts: list[str], network, more: int = 0) -> dict:
    """What the model reads; ``more`` tokens are to follow."""
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    inputs = tokenizer(texts, padding=len(texts) > 1, return_tensors="pt", verbose=False)
    if not network.config.is_encoder_decoder:  # those read on, however long
        check_length(inputs["input_ids"].tolist(), network, tokenizer, more)
    known = {"input_ids", "attention_mask"}
    return {name: part.to(network.device) for name, part in inputs.items() if name in known}


def _found(model: str | Path) -> tuple[Source | None, str, str]:
    """A model's source (None for the embedded one), its name and a digest of its files."""
    if model != "embedded":
        source = find(model)
        if source.kind == "embedded":
            raise RespondentError(f"{model} judges pairs and completes nothing: name 'embedded'.")
        return source, source.name, source.digest
    digest = hashlib.sha256()
    for path in sorted(head_path("mlm").iterdir()):
        digest.update(path.read_bytes())
    return None, "embedded", digest.hexdigest()


def _opened(source: Source | None, name: str, kind: str, device: torch.device):
    """A model, ready to complete, and its tokenizer."""
    if source is None:
        network, tokenizer = load_masked_lm("embedded")
    else:
        network, tokenizer = load_model(source, kind)
    return to_device(network, device, "float32", name), tokenizer


def _checked(templates, k, length, batch_size, kind) -> list[str]:
    if kind not in ("auto", *KINDS):
        raise ParameterError(f"kind must be one of auto, {', '.join(KINDS)}, got '{kind}'.")
    check_numbers(k=k, batch_size=batch_size, length=1 if length is None else length)
    templates = [] if templates is None else list(templates)
    if not templates:
        raise ParameterError("There are no templates to complete.")
    for text in templates:
        if not isinstance(text, str) or re.search("[\ud800-\udfff]", text):
            raise ParameterError(f"{text!r} is no text: give templates as strings.")
        if text.count(MASK) != 1:
            raise ParameterError(f"'{text}': write {MASK} exactly once, where words are missing.")
    return templates
