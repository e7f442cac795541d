"""Models that turn sentences into vectors, loaded from safetensors without code of their own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from psychometrics.exceptions import IncompleteModelError, RespondentError, needed
from psychometrics.models.loading import load_tokenizer, loading_errors, quietly
from psychometrics.models.model_files import read_json
from psychometrics.models.sources import Source, find

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def load_sentence_encoder(model: str | Path) -> SentenceTransformer:
    """Load a model that turns sentences into vectors.

    Parameters
    ----------
    model : str or Path
        A folder or hub id of a sentence-transformers model, or of a plain encoder, whose token
        vectors are averaged.

    Raises
    ------
    RespondentError
        As in :func:`psychometrics.models.loading.load_model`, or the model needs modules of its own
        or returns no sentence vector.
    MissingPackageError
        sentence-transformers is not installed.
    """
    sentence_transformers = needed("sentence_transformers")
    source = find(model)
    name = source.name
    folder = source.fetch()
    _check_modules(source, folder)
    load_tokenizer(source)
    with quietly(), loading_errors(name, "a sentence encoder"):
        encoder: SentenceTransformer = sentence_transformers.SentenceTransformer(
            str(folder), trust_remote_code=False, model_kwargs={"use_safetensors": True}
        )

        try:
            encoder.encode(["One sentence."], show_progress_bar=False)
        except KeyError as error:
            raise IncompleteModelError(
                f"{name} returns no sentence vector ({error.args[0]}): add a pooling module to "
                "its modules.json, or remove that file to average the tokens."
            ) from error

        return encoder


def _check_modules(source: Source, folder: Path) -> None:
    """Fetch the files of a model's modules, and refuse those that can carry program code."""
    name = source.name
    modules = folder / "modules.json"

    with loading_errors(name, "a sentence encoder"):
        parts = read_json(name, modules, list) if modules.is_file() else []
        kinds = [str(module["type"]) for module in parts]
        foreign = [kind for kind in kinds if not kind.startswith("sentence_transformers.")]
        is_whole = all((folder / str(module.get("path", ""))).is_dir() for module in parts)
        if source.kind == "hub" and not is_whole:
            from huggingface_hub import snapshot_download

            patterns = ["*.json", "*.txt", "*.model", "*.safetensors"]
            snapshot_download(source.model, revision=source.revision, allow_patterns=patterns)

    if foreign:  # for a folder, the library would run their code
        raise RespondentError(
            f"{name} needs program code of its own ({foreign[0]} in modules.json), which is "
            "never run: choose a model with only sentence-transformers' modules.",
            kind="remote code",
        )

    for pickled in folder.glob("*/pytorch_model.bin"):
        if not pickled.with_name("model.safetensors").is_file():
            raise RespondentError(
                f"{name} holds {pickled.name}, which can carry program code: use safetensors.",
                kind="no safetensors",
            )
