"""Run models in ONNX files through onnxruntime, without torch and transformers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import RespondentError, naming_extras, needed
from .chat_templates import _check_template, render_template
from .lengths import group_lengths
from .loading import loading_errors
from .model_files import _check_token_limit, read_json
from .onnx import _onnx_files
from .sources import Source

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

_Features = dict[str, list[int]]

# Types of inputs in ONNX that are not 64-bit integers.
_INPUT_TYPES = {
    "tensor(bool)": "bool",
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(int32)": "int32",
}


class ONNXTokenizer:
    """A tokenizer from ``tokenizer.json``, with the names of attributes that transformers uses."""

    def __init__(self, name: str, folder: Path) -> None:
        with naming_extras():
            from tokenizers import Tokenizer

        with loading_errors(name, "a tokenizer"):
            self.splitter: Tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

        self.splitter.no_padding()
        settings: dict[str, Any] = {"unk_token": getattr(self.splitter.model, "unk_token", None)}
        for file in ("special_tokens_map.json", "tokenizer_config.json"):
            if (folder / file).is_file():
                settings |= read_json(name, folder / file)

        self.name_or_path = name
        self.model_max_length = settings.get("model_max_length", np.inf)
        _check_token_limit(name, self.model_max_length)

        added = self.splitter.get_added_tokens_decoder()
        self.all_special_ids = [number for number, token in added.items() if token.special]
        self.special_tokens: dict[str, str] = {}
        for kind in ("bos_token", "eos_token", "unk_token", "pad_token"):
            token = settings.get(kind)
            text = token.get("content") if isinstance(token, dict) else token
            if isinstance(text, str):
                self.special_tokens[kind] = text

        self.bos_token_id = self._token_id("bos_token")
        self.eos_token_id = self._token_id("eos_token")
        self.unk_token_id = self._token_id("unk_token")
        self.pad_token_id = self._token_id("pad_token")
        self.chat_template = _read_chat_template(name, folder, settings)

    def __call__(self, text: str, add_special_tokens: bool = True) -> dict[str, list[int]]:
        """Return the token ids of a text."""
        self.splitter.no_truncation()
        return {"input_ids": self.splitter.encode(text, add_special_tokens=add_special_tokens).ids}

    def apply_chat_template(self, messages: list[Any], **options: object) -> str:
        """Return the text of messages, ready for the reply."""
        return render_template(self.chat_template, messages, self.special_tokens)

    def _token_id(self, kind: str) -> int | None:
        return self.splitter.token_to_id(self.special_tokens.get(kind, ""))


class ONNXModel:
    """A model in an ONNX file.

    Attributes
    ----------
    config : dict
        The contents of ``config.json``.
    tokenizer : ONNXTokenizer
    """

    # Kind of model, for error messages.
    kind = "model"

    def __init__(self, source: Source) -> None:
        self.name = source.name
        self.config = read_json(source.name, source.local_folder / "config.json")
        self.tokenizer: Any = ONNXTokenizer(source.name, source.local_folder)
        self._output = "logits"
        with naming_extras():
            import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3  # errors only
        with loading_errors(self.name, f"an ONNX {self.kind}"):
            file = Path(str(source.file))
            # Read from its bytes, a model cannot refer to more files, which no digest would cover.
            model = file.read_bytes() if len(_onnx_files(file)) == 1 else str(file)
            self._session: InferenceSession = onnxruntime.InferenceSession(
                model, options, providers=["CPUExecutionProvider"]
            )

    def _run(self, values: Mapping[str, Any]) -> NDArray[np.float32]:
        """Return the logits of named inputs, in float32."""
        inputs = {}
        for expected in self._session.get_inputs():
            if expected.name not in values:
                fault = f"asks for the input {expected.name}, which no {self.kind} gets"
                raise self._export_error(fault)
            dtype = _INPUT_TYPES.get(expected.type, "int64")
            inputs[expected.name] = np.array(values[expected.name], dtype)

        with loading_errors(self.name, f"an ONNX {self.kind}"):
            logits: NDArray[np.float32] = self._session.run([self._output], inputs)[0]

        return logits.astype(np.float32)

    def _shape_error(self, shape: tuple[int, ...], expected: str) -> RespondentError:
        rows = f"not one row for each {expected}"
        return self._export_error(f"returns {self._output} of the shape {shape}, {rows}")

    def _export_error(self, fault: str) -> RespondentError:
        message = f"{self.name} {fault}: export it as a {self.kind}."
        return RespondentError(message, kind="architecture")


class ONNXClassifier(ONNXModel):
    """A classifier of pairs of texts in an ONNX file.

    Attributes
    ----------
    lengths : SimpleNamespace
        What :func:`psychometrics.models.lengths.token_limit` reads of a configuration.
    outputs : int
        Number of outputs.
    """

    kind = "sequence classifier"

    def __init__(self, source: Source, precision: str) -> None:
        super().__init__(source)
        # RoBERTa and its relatives number positions from the one after the padding token, which is
        # not the first token of their vocabulary.
        padding = self.config.get("pad_token_id") or 0
        before = padding + 1 if padding else 0
        positions = (self.config.get("max_position_embeddings") or 0) - before
        self.lengths: Any = SimpleNamespace(
            vocab_size=self.config.get("vocab_size"), max_position_embeddings=positions
        )

        # A quantized model rounds by the largest number in a batch, so a pair must be alone in it.
        self._is_quantized = "float" not in precision
        names = [output.name for output in self._session.get_outputs()]
        self._output = "logits" if "logits" in names else names[0]
        self.outputs = self._logits(self.tokenize([("One.", "Two.")])).shape[-1]

    def tokenize(self, pairs: list[tuple[str, ...]], limit: int | None = None) -> list[_Features]:
        """Return the token ids, types and mask of each pair, cut to a limit if there is one."""
        self.tokenizer.splitter.no_truncation()
        if limit is not None:
            self.tokenizer.splitter.enable_truncation(limit, strategy="longest_first")

        return [
            {
                "input_ids": encoding.ids,
                "token_type_ids": encoding.type_ids,
                "attention_mask": encoding.attention_mask,
            }
            for encoding in self.tokenizer.splitter.encode_batch(pairs)
        ]

    def probabilities(self, features: list[_Features]) -> NDArray[np.float32]:
        """Return the probabilities of the outputs for n tokenized pairs, in float32."""
        lengths = [len(text["input_ids"]) for text in features]
        logits = np.empty((len(features), self.outputs), dtype=np.float32)
        for rows in group_lengths(lengths):
            size = 1 if self._is_quantized else len(rows)
            for start in range(0, len(rows), size):
                batch = rows[start : start + size]
                logits[batch] = self._logits([features[i] for i in batch])

        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares: NDArray[np.float32] = powers / powers.sum(axis=1, keepdims=True)
        return shares

    def _logits(self, features: list[_Features]) -> NDArray[np.float32]:
        """Return the logits of texts of one length."""
        logits = self._run({name: [text[name] for text in features] for name in features[0]})
        if logits.ndim != 2 or len(logits) != len(features):
            raise self._shape_error(logits.shape, "pair")
        return logits


class ONNXDecoder(ONNXModel):
    """A causal language model in an ONNX file.

    A file may take the keys and values of earlier tokens, as Transformers.js and optimum write it;
    there are none, because every text is read from its beginning, alone.

    Attributes
    ----------
    lengths : SimpleNamespace
        As of :class:`ONNXClassifier`.
    """

    kind = "causal language model"

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        positions = self.config.get("max_position_embeddings") or self.config.get("n_positions")
        self.lengths: Any = SimpleNamespace(
            vocab_size=self.config.get("vocab_size"), max_position_embeddings=positions
        )

        self._past: dict[str, NDArray[np.generic]] = {}
        for expected in self._session.get_inputs():
            if expected.name.startswith("past_key_values."):
                sizes = [size if isinstance(size, int) else 0 for size in expected.shape]
                self._past[expected.name] = np.zeros([1, *sizes[1:]])

        if "logits" not in [output.name for output in self._session.get_outputs()]:
            raise self._export_error("has no output named logits")

    def logits(self, tokens: Sequence[int], place: int) -> NDArray[np.float32]:
        """Return the logits of the next token from one place of a text on, (places, V)."""
        count = len(tokens)
        logits = self._run(
            {
                "input_ids": [tokens],
                "attention_mask": [[1] * count],
                "position_ids": [range(count)],
                "num_logits_to_keep": count - place,
                "use_cache_branch": [False],
                **self._past,
            }
        )
        if logits.ndim != 3 or logits.shape[1] not in (count, count - place):
            raise self._shape_error(logits.shape, "token")

        return logits[0, place - count :]


def _read_chat_template(name: str, folder: Path, settings: dict[str, Any]) -> str:
    """Return a tokenizer's chat template, or an empty text."""
    template = settings.get("chat_template") or ""
    file = folder / "chat_template.jinja"
    if file.is_file():
        template = file.read_text(encoding="utf-8")

    if not template:
        return ""

    needed("jinja2")
    with loading_errors(name, "a tokenizer"):
        if isinstance(template, list):
            named = {entry["name"]: entry["template"] for entry in template}
            template = named["default"]

        _check_template(name, template)
    return str(template)
