"""Run classifiers in ONNX files through onnxruntime, without torch and transformers."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import IncompleteModelError, RespondentError, naming_extras
from .lengths import group_lengths
from .loading import loading_errors
from .model_files import read_json
from .onnx import _onnx_files
from .sources import Source

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

_Features = dict[str, list[int]]


class ONNXClassifier:
    """A classifier of pairs of texts in an ONNX file, with its tokenizer from ``tokenizer.json``.

    Attributes
    ----------
    config : dict
        The contents of ``config.json``.
    lengths, tokenizer : SimpleNamespace
        What :func:`psychometrics.models.lengths.token_limit` reads of a configuration and of a
        tokenizer.
    outputs : int
        Number of outputs.
    """

    def __init__(self, source: Source, precision: str) -> None:
        name = source.name
        folder = source.local_folder
        self.name = name
        self.config = read_json(name, folder / "config.json")
        self.lengths: Any = _describe_lengths(self.config)

        with naming_extras():
            from tokenizers import Tokenizer

        with loading_errors(name, "a tokenizer"):
            self._splitter = Tokenizer.from_file(str(folder / "tokenizer.json"))

        self._splitter.no_padding()
        self.tokenizer: Any = _describe_tokenizer(name, folder, self._splitter)
        self._session = _open_session(source)

        # A quantized model rounds by the largest number in a batch, so a pair must be alone in it.
        self._is_quantized = "float" not in precision
        names = [output.name for output in self._session.get_outputs()]
        self._output = "logits" if "logits" in names else names[0]
        self.outputs = self._run(self.tokenize([("One.", "Two.")])).shape[-1]

    def tokenize(self, pairs: list[tuple[str, ...]], limit: int | None = None) -> list[_Features]:
        """Return the token ids, types and mask of each pair, cut to a limit if there is one."""
        self._splitter.no_truncation()
        if limit is not None:
            self._splitter.enable_truncation(limit, strategy="longest_first")

        return [
            {
                "input_ids": encoding.ids,
                "token_type_ids": encoding.type_ids,
                "attention_mask": encoding.attention_mask,
            }
            for encoding in self._splitter.encode_batch(pairs)
        ]

    def probabilities(self, features: list[_Features]) -> NDArray[np.float32]:
        """Return the probabilities of the outputs for n tokenized pairs, in float32."""
        lengths = [len(text["input_ids"]) for text in features]
        logits = np.empty((len(features), self.outputs), dtype=np.float32)
        for rows in group_lengths(lengths):
            size = 1 if self._is_quantized else len(rows)
            for start in range(0, len(rows), size):
                batch = rows[start : start + size]
                logits[batch] = self._run([features[i] for i in batch])

        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares: NDArray[np.float32] = powers / powers.sum(axis=1, keepdims=True)
        return shares

    def _run(self, features: list[_Features]) -> NDArray[np.float32]:
        """Return the logits of texts of one length."""
        inputs = {}
        for expected in self._session.get_inputs():
            if expected.name not in features[0]:
                raise RespondentError(
                    f"{self.name} asks for {expected.name}, which no tokenized pair has: export it "
                    "as a sequence classifier.",
                    kind="architecture",
                )
            dtype = "int32" if expected.type == "tensor(int32)" else "int64"
            inputs[expected.name] = np.array([text[expected.name] for text in features], dtype)

        with loading_errors(self.name, "an ONNX classifier"):
            logits = self._session.run([self._output], inputs)[0]

        if logits.ndim != 2 or len(logits) != len(features):
            raise RespondentError(
                f"{self.name} returns {self._output} of the shape {logits.shape}, not one row for "
                "each pair: export it as a sequence classifier.",
                kind="architecture",
            )
        values: NDArray[np.float32] = logits.astype(np.float32)
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
        model = file.read_bytes() if len(_onnx_files(file)) == 1 else str(file)
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _describe_tokenizer(name: str, folder: Path, splitter: Tokenizer) -> SimpleNamespace:
    """Return what the checks of lengths and words ask of a tokenizer."""
    settings: dict[str, Any] = {"unk_token": getattr(splitter.model, "unk_token", None)}
    for file in ("special_tokens_map.json", "tokenizer_config.json"):
        if (folder / file).is_file():
            settings |= read_json(name, folder / file)

    limit = settings.get("model_max_length", np.inf)
    if not isinstance(limit, int | float) or limit < 1:
        raise IncompleteModelError(
            f"{name}, tokenizer_config.json: model_max_length is {limit!r}, not a number of "
            "tokens; correct this value."
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
