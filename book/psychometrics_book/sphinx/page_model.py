"""The model that answers in the page: its weights as a small ONNX file, and what runs it.

:func:`page_files` exports the member ``MEMBER`` and fetches two npm packages, once: both are kept
in the user's cache, under names that change with what they are made from.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import inspect
import json
import logging
import os
import warnings
from pathlib import Path

import torch
from torch.nn import functional as F

from psychometrics.models.loading import load_config, load_model
from psychometrics.models.sources import base_path, find
from psychometrics.paths import cache_dir

MEMBER = "minilm-both-l6-s1"
LONGEST = 512
"""Tokens of a pair that the member reads."""
PACKAGES = {
    "onnxruntime-web": (
        "1.30.0",
        "sha512-q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ==",
        ["ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm"],
    ),
    "@huggingface/tokenizers": (
        "0.2.0",
        "sha512-LidMHe1FpcSYH4vcSjXooda34pC0M8m1gmDOv7SQi6Iv+ib1zX7J3sHBCC9/3FPCkn2k1b55FneVqMRxrr99pg==",
        ["tokenizers.min.mjs"],
    ),
    "js-yaml": (
        "5.5.0",
        "sha512-paNr4LFIFPjeeSmwNYdrb8FafLLG/Cr2Af3GjbsHJ5CxIjH4r0c2emlmRdAtpPAieP1gRVzk6buBbVP5gBMGAg==",
        ["js-yaml.mjs"],
    ),
}
"""Version, integrity as npm states it, and the files of ``dist`` that the page loads."""


class PageModel(torch.nn.Module):
    """The member and its untouched base in one: the adapter counts ``trained`` times, 1 or 0.

    Weights are kept in 16 bits, those of words in 12 (8 and 4) with a scale for each word, and
    computed with in 32.

    Examples
    --------
    >>> ids = torch.tensor([[101, 1045, 102, 2009, 102]])
    >>> ones = torch.ones_like(ids)
    >>> probabilities, first = PageModel(MEMBER)(ids, ones * 0, ones, torch.tensor(1.0))
    >>> probabilities.shape, first.shape
    (torch.Size([1, 3]), torch.Size([1, 384]))
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        source = find(name)
        self.config = load_config(base_path(), num_labels=3)
        model, _ = load_model(base_path(), "classifier", config=self.config, fresh=True)
        adapter = json.loads((source.folder / "adapter_config.json").read_text(encoding="utf-8"))
        weights = model.state_dict()
        for key, weight in _weights(source.folder).items():
            scale = adapter["lora_alpha"] / adapter["r"] if "lora_B" in key else 1.0
            weights[key.removeprefix("base_model.model.")] = weight * scale
        words = weights.pop("bert.embeddings.word_embeddings.weight")
        scale = words.abs().amax(1, keepdim=True) / 2047
        whole = (words / scale).round()
        coarse, fine = (whole / 16).floor(), (whole % 16).to(torch.uint8)
        half = fine.shape[1] // 2
        self.register_buffer("scale", scale)
        self.register_buffer("coarse", coarse.to(torch.int8))
        self.register_buffer("fine", fine[:, :half] + 16 * fine[:, half:])
        for key, weight in weights.items():
            if weight.is_floating_point():
                self.register_buffer(key.replace(".", "/"), weight.half())

    def _weight(self, key: str) -> torch.Tensor:
        return getattr(self, key.replace(".", "/")).float()

    def _linear(self, key: str, x: torch.Tensor, trained: torch.Tensor) -> torch.Tensor:
        y = F.linear(x, self._weight(f"{key}.weight"), self._weight(f"{key}.bias"))
        if not hasattr(self, f"{key}.lora_A.weight".replace(".", "/")):
            return y
        below = F.linear(x, self._weight(f"{key}.lora_A.weight"))
        return y + trained * F.linear(below, self._weight(f"{key}.lora_B.weight"))

    def _norm(self, key: str, x: torch.Tensor) -> torch.Tensor:
        weight, bias = self._weight(f"{key}.weight"), self._weight(f"{key}.bias")
        return F.layer_norm(x, weight.shape, weight, bias, self.config.layer_norm_eps)

    def _layer(self, key: str, x, away, trained, last: bool):
        def heads(part, of):
            y = self._linear(f"{key}.attention.self.{part}", of, trained)
            return y.unflatten(2, (self.config.num_attention_heads, -1)).transpose(1, 2)

        read = x[:, :1] if last else x  # of the last layer only the first token is read
        q, k, v = heads("query", read), heads("key", x), heads("value", x)
        shares = (q @ k.transpose(2, 3) * q.shape[-1] ** -0.5 + away).softmax(-1)
        y = (shares @ v).transpose(1, 2).flatten(2)
        y = read + self._linear(f"{key}.attention.output.dense", y, trained)
        read = self._norm(f"{key}.attention.output.LayerNorm", y)
        y = F.gelu(self._linear(f"{key}.intermediate.dense", read, trained))
        y = read + self._linear(f"{key}.output.dense", y, trained)
        return self._norm(f"{key}.output.LayerNorm", y)

    def forward(self, ids, kinds, mask, trained):
        """Return P(entailment, neutral, contradiction), (n, 3), and the first token's vector."""
        name = "bert.embeddings.{}_embeddings.weight".format
        fine = self.fine[ids].float()
        upper = (fine / 16).floor()
        fine = torch.cat([fine - 16 * upper, upper], dim=-1)
        x = self.scale[ids] * (16 * self.coarse[ids].float() + fine)
        x = x + self._weight(name("token_type"))[kinds]
        x = x + self._weight(name("position"))[: ids.shape[1]]
        x = self._norm("bert.embeddings.LayerNorm", x)
        away = (1 - mask.float())[:, None, None, :] * -1e9
        layers = self.config.num_hidden_layers
        for number in range(layers):
            layer = f"bert.encoder.layer.{number}"
            x = self._layer(layer, x, away, trained, last=number == layers - 1)
        pooled = self._linear("bert.pooler.dense", x[:, 0], trained).tanh()
        return self._linear("classifier", pooled, trained).softmax(-1), x[:, 0]


def _weights(folder: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return {
        key: weight.float()
        for key, weight in load_file(folder / "adapter_model.safetensors").items()
    }


def fingerprint() -> str:
    """Return what the exported weights depend on: the class above and the member's adapter."""
    made_from = inspect.getsource(PageModel).encode()
    made_from += (find(MEMBER).folder / "adapter_model.safetensors").read_bytes()
    return hashlib.sha256(made_from).hexdigest()[:12]


def exported() -> Path:
    """Return the ONNX file of the member; it is made once, in some ten seconds."""
    path = cache_dir() / "page-model" / f"model-{fingerprint()}.onnx"
    if path.is_file():
        return path
    import onnxscript  # noqa: F401  (the exporter needs it, and names it only deep inside)

    path.parent.mkdir(parents=True, exist_ok=True)
    ids = torch.full((2, 9), 1000)
    batch, length = (
        torch.export.Dim(n, min=1, max=m) for n, m in (("batch", 999), ("length", LONGEST))
    )
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(), torch.inference_mode(), contextlib.redirect_stdout(None):
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            PageModel(MEMBER).eval(), (ids, ids * 0, ids * 0 + 1, torch.tensor(1.0)), dynamo=True,
            optimize=False, verbose=False, input_names=["ids", "kinds", "mask", "trained"],
            output_names=["probabilities", "first"],
            dynamic_shapes=(*[{0: batch, 1: length}] * 3, None),
        )  # fmt: skip
        program.save(new_file := path.with_suffix(f".{os.getpid()}"), external_data=False)
    os.replace(new_file, path)
    return path


def _registry() -> str:
    """Return the address of the npm registry that this machine is set up for."""
    names = ("npm_config_registry", "NPM_CONFIG_REGISTRY")
    address = next((os.environ[name] for name in names if os.environ.get(name)), "")
    return address.rstrip("/") or "https://registry.npmjs.org"


def _fetched() -> list[Path]:
    """Return the files of the npm packages, each package checked against its integrity."""
    import pooch

    paths = []
    for name, (version, integrity, files) in PACKAGES.items():
        kind, _, digest = integrity.partition("-")
        archive = f"{name.rpartition('/')[2]}-{version}.tgz"
        unpacked = pooch.retrieve(
            f"{_registry()}/{name}/-/{archive}",
            known_hash=f"{kind}:{base64.b64decode(digest).hex()}",
            fname=archive,
            path=cache_dir() / "page-model",
            processor=pooch.Untar([f"package/dist/{file}" for file in files]),
        )
        paths += [Path(one) for one in unpacked if Path(one).name in files]
    return paths


def page_files() -> dict[str, Path]:
    """Return the files that the page loads, by their names there.

    Raises
    ------
    OSError, ValueError, ImportError
        A package cannot be had, is not what it was, or there is no exporter.
    """
    files = {path.name: path for path in (*_fetched(), exported())}
    return files | {"tokenizer.json": Path(base_path()) / "tokenizer.json"}
