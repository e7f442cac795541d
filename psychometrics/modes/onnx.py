"""Respondents in ONNX files, which answer through onnxruntime, without torch and transformers."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..exceptions import RespondentError, naming_extras
from ..models.loading import loading_errors
from ..models.model_files import read_json
from ..models.onnx import weight_files
from ..models.sources import Source
from .nli import NLIRespondent, _Features
from .nli_labels import output_names

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

    from .mode import Identity
    from .prompting import Probabilities, Prompt

_BATCH_TOKENS = 4096


class ONNXRespondent(NLIRespondent):
    """An NLI classifier in an ONNX file.

    The tokenizer is read from ``tokenizer.json``, labels and lengths from the other settings. A
    model that was quantized answers each pair alone, because its rounding depends on the largest
    number in a batch.
    """

    def __init__(self, source: Source, identity: Identity) -> None:
        self.identity = identity
        name = source.name
        folder = source.own_folder
        config = read_json(name, folder / "config.json")
        reads: Any = _describe_lengths(config)
        self._reads = reads
        self._splitter = _load_tokenizer(name, folder)
        tokenizer: Any = _describe_tokenizer(name, folder, self._splitter)
        self.tokenizer = tokenizer
        self._session = _open_session(source)

        outputs = [output.name for output in self._session.get_outputs()]
        self._output = "logits" if "logits" in outputs else outputs[0]
        self._batch_rows = None if "float" in identity.precision else 1
        self.token_budget = _BATCH_TOKENS

        count = self._run(self._tokenize([("One.", "Two.")])).shape[-1]
        names = output_names(config, name) or {i: f"LABEL_{i}" for i in range(count)}
        if len(names) != count:
            raise RespondentError(
                f"{name}, config.json: names {len(names)} outputs, but the ONNX file has {count}; "
                "copy both files again from one model.",
                kind="incomplete",
            )
        self.order = self._label_order(names)

    def _tokenize(self, pairs: list[Prompt], **options: Any) -> list[_Features]:
        self._splitter.no_truncation()
        if options.get("truncation"):
            self._splitter.enable_truncation(options["max_length"], strategy="longest_first")

        return [
            {
                "input_ids": encoding.ids,
                "token_type_ids": encoding.type_ids,
                "attention_mask": encoding.attention_mask,
            }
            for encoding in self._splitter.encode_batch(pairs)
        ]

    def _probabilities(self, features: list[_Features]) -> Probabilities:
        lengths = [len(text["input_ids"]) for text in features]
        order = sorted(range(len(features)), key=lengths.__getitem__)
        logits: dict[int, Probabilities] = {}
        for _, group in itertools.groupby(order, lengths.__getitem__):
            rows = list(group)
            step = self._batch_rows or len(rows)
            for start in range(0, len(rows), step):
                batch = rows[start : start + step]
                logits |= zip(batch, self._run([features[i] for i in batch]), strict=True)

        values = np.stack([logits[i] for i in range(len(features))])
        powers = np.exp(values - values.max(axis=1, keepdims=True))
        shares: Probabilities = powers / powers.sum(axis=1, keepdims=True)
        return shares

    def _run(self, features: list[_Features]) -> Probabilities:
        """Return the logits of texts of one length, in float32."""
        name = self.identity.respondent_id
        inputs = {}
        for wanted in self._session.get_inputs():
            if wanted.name not in features[0]:
                raise RespondentError(
                    f"{name} asks for {wanted.name}, which is no part of a tokenized pair: export "
                    "it as a sequence classifier.",
                    kind="architecture",
                )
            dtype = "int32" if wanted.type == "tensor(int32)" else "int64"
            inputs[wanted.name] = np.array([text[wanted.name] for text in features], dtype=dtype)

        with loading_errors(name, "an ONNX classifier"):
            logits = self._session.run([self._output], inputs)[0]

        if logits.ndim != 2 or len(logits) != len(features):
            raise RespondentError(
                f"{name} returns {self._output} of the shape {logits.shape}, not one row for each "
                "pair: export it as a sequence classifier.",
                kind="architecture",
            )
        values: Probabilities = logits.astype(np.float32)
        return values


def _open_session(source: Source) -> InferenceSession:
    """Open an ONNX file for onnxruntime on the processor."""
    with naming_extras():
        import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors only
    with loading_errors(source.name, "an ONNX classifier"):
        file = Path(str(source.file))
        # Read from its bytes, a model cannot refer to further files, which no digest would cover.
        model = file.read_bytes() if len(weight_files(file)) == 1 else str(file)
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _load_tokenizer(name: str, folder: Path) -> Tokenizer:
    with naming_extras():
        from tokenizers import Tokenizer

    with loading_errors(name, "a tokenizer"):
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    tokenizer.no_padding()
    return tokenizer


def _describe_tokenizer(name: str, folder: Path, splitter: Tokenizer) -> SimpleNamespace:
    """Return what the checks of lengths and words ask of a tokenizer."""
    settings: dict[str, Any] = {"unk_token": getattr(splitter.model, "unk_token", None)}
    for file in ("special_tokens_map.json", "tokenizer_config.json"):
        if (folder / file).is_file():
            settings |= read_json(name, folder / file)

    limit = settings.get("model_max_length", np.inf)
    if not isinstance(limit, int | float) or limit < 1:
        raise RespondentError(
            f"{name}, tokenizer_config.json: model_max_length is {limit!r}, not a number of "
            "tokens; correct this value.",
            kind="incomplete",
        )

    ids = {}
    for kind in ("unk", "eos", "pad"):
        token = settings.get(f"{kind}_token")
        text = token.get("content") if isinstance(token, dict) else token
        ids[f"{kind}_token_id"] = splitter.token_to_id(text) if isinstance(text, str) else None

    added = splitter.get_added_tokens_decoder()
    special = [number for number, token in added.items() if token.special]
    return SimpleNamespace(model_max_length=limit, all_special_ids=special, **ids)


def _describe_lengths(config: dict[str, Any]) -> SimpleNamespace:
    """Return the sizes of a model's tables of tokens and positions.

    RoBERTa and its relatives number positions from the one after the padding token, which is not
    the first token of their vocabulary.

    Examples
    --------
    >>> _describe_lengths({"max_position_embeddings": 514, "pad_token_id": 1})
    namespace(vocab_size=None, max_position_embeddings=512)
    """
    positions = config.get("max_position_embeddings") or 0
    padding = config.get("pad_token_id") or 0
    if padding:
        positions -= padding + 1
    return SimpleNamespace(vocab_size=config.get("vocab_size"), max_position_embeddings=positions)
