"""Respondents that judge whether a premise entails a hypothesis (natural language inference).

:meth:`NLI.load` loads a classifier and determines the meaning of each output;
:meth:`NLIRespondent.answer` turns pairs of premise and hypothesis into probabilities of entailment,
neutral and contradiction. A classifier has an output for each of the three; a decoder answers with
one of three words. For a classifier with two outputs, entailment or not, the probabilities of
neutral and contradiction are missing.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..data import NLI_LABELS
from ..exceptions import IncompleteModelError, RespondentError
from ..files import digest_text
from ..models.embedded import embedded_weights, is_wording, load_embedded, worded
from ..models.lengths import FEWEST_IN_BATCH, batch_tokens, group_lengths, token_limit
from ..models.loading import decodes, load_config, load_model, to_device
from ..models.onnx_models import ONNXClassifier
from ..models.sources import Source
from ..paths import data_dir
from ..questionnaires import Questionnaire
from .mode import Asking, Identity
from .nli_labels import _infer_labels, labels_from_names, output_names
from .prompting import (
    PromptMode,
    _all_equal,
    _compute_first,
    _find_runnable,
    _Probabilities,
    _Prompt,
    _PromptRespondent,
)

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

PROBABILITIES = ("entailment", "neutral", "contradiction")
_Features = dict[str, list[int]]  # a text's token ids, optionally with types and a mask


class NLIRespondent(_PromptRespondent):
    """A classifier that answers pairs of premise and hypothesis.

    If a pair is too long for the model, the end of its longer side is cut off, with a warning.

    Examples
    --------
    >>> from psychometrics.modes import load_respondent
    >>> respondent = load_respondent("minilm-mnli-l3-s16")
    >>> respondent.answer([("I feel calm.", "It rarely happens.")]).shape
    (1, 3)
    """

    parts = ("premise", "hypothesis")
    _reads: PreTrainedModel | PreTrainedConfig
    _fast_forward: Callable[..., torch.Tensor | None] | None

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, identity: Identity
    ) -> None:
        from ..models.fast import fast_forward

        super().__init__(model, tokenizer, identity)
        self.token_budget = batch_tokens(model.config, model.device, identity.precision)
        self._fast_forward = fast_forward(self.model)
        self._reads = self.model
        outputs: Any = self.model.config.id2label
        self.order = self._label_order(outputs)

    def accuracy(self) -> tuple[float, float, float, float]:
        """Return the share of correct answers to the project's plain labelled pairs.

        Returns
        -------
        value, low, high, guess : float
            The share with its 95 % interval (Wilson), and the share that guessing would reach.
        """
        from statsmodels.stats.proportion import proportion_confint

        answers, labels = self._answer_labelled()
        truth = labels.map(NLI_LABELS.index).to_numpy()
        right = answers.argmax(axis=1) == truth
        guess = 1 / 3

        if len(self.order) == 1:  # entailment or not
            right = (answers[:, 0] > 0.5) == (truth == 0)
            guess = 2 / 3

        low, high = proportion_confint(right.sum(), len(right), method="wilson")
        return float(right.mean()), low, high, guess

    def _answer_labelled(self) -> tuple[_Probabilities, pd.Series]:
        """Return the answers to the labelled pairs, and their labels."""
        labelled = pd.read_csv(data_dir() / "nli_label_pairs.csv")
        pairs = zip(labelled["premise"], labelled["hypothesis"], strict=True)
        return self.answer(pairs), labelled["label"]

    def batches(self, prompts: Sequence[_Prompt]) -> Iterator[tuple[list[_Prompt], _Probabilities]]:
        """Yield pairs with their answers, shape (n, 3), batch by batch."""
        unique = sorted(set(prompts))
        encoded = self._encode(unique)
        order = self._order(unique, encoded)
        while order:
            width = len(encoded[order[0]]["input_ids"])
            planned = order[: max(1, self.token_budget // width)]
            batch, computed = _compute_first(
                planned, lambda rows: self._probabilities([encoded[i] for i in rows]), self.identity
            )
            if len(batch) < len(planned):
                self.token_budget = width * len(batch)

            values = computed[:, self.order]
            order = order[len(batch) :]
            # Probabilities that a model with two outputs does not separate are missing.
            pooled = np.full((len(values), 3 - values.shape[1]), np.nan, dtype=values.dtype)
            yield [unique[i] for i in batch], np.hstack([values, pooled])

    def _order(self, pairs: list[_Prompt], encoded: list[_Features]) -> list[int]:
        """Return the order of pairs, longest first, so that memory runs out early or never."""
        return sorted(range(len(pairs)), key=lambda i: (-len(encoded[i]["input_ids"]), i))

    def _encode(self, pairs: list[_Prompt]) -> list[_Features]:
        """Return unpadded token ids of each pair; cut pairs that are too long, with a warning."""
        encoded = self._tokenize(pairs, truncation=False)
        ids = [features["input_ids"] for features in encoded]
        limit = token_limit(ids, self._reads, self.tokenizer, self.identity.respondent_id)
        too_long = [i for i, tokens in enumerate(ids) if len(tokens) > limit]
        if too_long:
            warnings.warn(
                f"{len(too_long)} of {len(pairs)} pairs are longer than the {limit} tokens that "
                f"{self.identity.respondent_id} reads; the longer side of each was cut.",
                stacklevel=3,
            )
            cut = self._tokenize(
                [pairs[i] for i in too_long], truncation="longest_first", max_length=limit
            )
            for i, features in zip(too_long, cut, strict=True):
                encoded[i] = features

        return encoded

    def _tokenize(self, pairs: list[_Prompt], **options: Any) -> list[_Features]:
        joined = None if options.get("truncation") else _tokenize_once(self.tokenizer, pairs)
        if joined:
            return joined

        premises, hypotheses = (list(texts) for texts in zip(*pairs, strict=True))
        columns = self.tokenizer(premises, hypotheses, padding=False, verbose=False, **options)
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def _probabilities(self, features: list[_Features]) -> _Probabilities:
        """Return the probabilities of one batch, (n, 3) in the model's own order, float32."""
        import torch

        with torch.inference_mode():
            values: _Probabilities = self._logits(features).softmax(dim=-1).cpu().numpy()
        return values

    def _logits(self, features: list[_Features]) -> torch.Tensor:
        """Return the logits of one batch, (n, 3) in the model's own order, float32."""
        logits = self._fast_forward(features) if self._fast_forward else None
        if logits is not None:
            return logits

        return self._run_grouped(features, lambda inputs: self.model(**inputs).logits)

    def _run_grouped(
        self, features: list[_Features], compute: Callable[[dict[str, torch.Tensor]], torch.Tensor]
    ) -> torch.Tensor:
        """Run the model on texts, in batches of equal length without padding, in float32."""
        import torch

        values: list[torch.Tensor] = [torch.empty(0)] * len(features)
        for rows in group_lengths([len(text["input_ids"]) for text in features]):
            columns = {name: [features[i][name] for i in rows] for name in features[rows[0]]}
            inputs = {
                name: torch.tensor(column, device=self.model.device)
                for name, column in columns.items()
            }
            for row, value in zip(rows, compute(inputs).float(), strict=True):
                values[row] = value

        return torch.stack(values)

    def _label_order(self, outputs: dict[int, str]) -> list[int]:
        """Return the positions of entailment, neutral and contradiction among the outputs."""
        name = self.identity.respondent_id
        if len(outputs) == 2:  # entailment, and everything else
            plain = [str(outputs.get(i) or "").strip().lower() for i in range(2)]
            entails = [label.startswith("entail") for label in plain]
            is_rest = [label.startswith(("not", "non", "neutral", "contra")) for label in plain]
            if sum(entails) == sum(is_rest) == 1:
                return [entails.index(True)]

        if len(outputs) != 3:
            raise RespondentError(
                f"{name} has {len(outputs)} output(s), not three: use an NLI model.", kind="labels"
            )
        order = labels_from_names([outputs.get(i) for i in range(3)], name)
        if order is None:
            self.order = [0, 1, 2]
            order = _infer_labels(*self._answer_labelled(), name)

        return order


class _EmbeddedRespondent(NLIRespondent):
    """An embedded member on the encoder.

    It answers without its transformers model, since importing the model's class takes longer than a
    questionnaire. Once the model has been requested, it gives the answers.
    """

    def __init__(self, identity: Identity) -> None:
        import torch

        from ..models.fast import packed_forward

        self.identity = identity
        self._device = torch.device(identity.device or "cpu")
        weights, self.tokenizer, config = embedded_weights(identity.respondent_id)
        precision: torch.dtype = getattr(torch, identity.precision)
        weights = {name: weight.to(self._device, precision) for name, weight in weights.items()}
        self._fast_forward = packed_forward(weights, config)
        self._reads = config
        self.order = [0, 1, 2]
        self.token_budget = batch_tokens(config, self._device, identity.precision)

    @functools.cached_property
    def model(self) -> PreTrainedModel:
        """The transformers model."""
        from ..models.fast import fast_forward

        model, _ = load_embedded(self.identity.respondent_id)
        model = to_device(model, self._device, self.identity.precision)
        self._fast_forward = fast_forward(model)
        return model


class _WordsRespondent(NLIRespondent):
    """A causal model that answers a pair with its next word, such as yes, maybe or no.

    Its adapter's ``recipe.json`` has the ``wording`` of a pair, with ``{premise}`` and
    ``{hypothesis}``, and the three words for entailment, neutral and contradiction (``answers``,
    one token each).
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        identity: Identity,
        recipe: dict[str, Any],
    ) -> None:
        self.wording: str = recipe["wording"]
        answers = recipe["answers"]
        words = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in answers]

        if [len(tokens) for tokens in words] != [1, 1, 1] or not is_wording(self.wording):
            raise RespondentError(
                f"{identity.respondent_id}, recipe.json: wording must have {{premise}} and "
                "{hypothesis} in it, and answers must be three one-token words; correct it."
            )

        self.words = [tokens[0] for tokens in words]
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token

        super().__init__(model, tokenizer, identity)

    def _tokenize(self, pairs: list[_Prompt], **options: Any) -> list[_Features]:
        texts = worded(pairs, self.wording)
        rows: list[list[int]] = self.tokenizer(texts, padding=False, verbose=False)["input_ids"]
        if options.get("truncation"):  # cut the beginning, since the question is at the end
            rows = [row[-options["max_length"] :] for row in rows]
        return [{"input_ids": row} for row in rows]

    def _order(self, pairs: list[_Prompt], encoded: list[_Features]) -> list[int]:
        """Return the order of pairs, longest first, with pairs that share a premise together."""
        longest: dict[str, int] = {}
        for (premise, _), features in zip(pairs, encoded, strict=True):
            longest[premise] = max(longest.get(premise, 0), len(features["input_ids"]))
        return sorted(range(len(pairs)), key=lambda i: (-longest[pairs[i][0]], *pairs[i]))

    def _logits(self, features: list[_Features]) -> torch.Tensor:
        """Return the logits of the three words after each text, (n, 3), float32."""
        texts = [text["input_ids"] for text in features]
        words: torch.Tensor = self.model.get_output_embeddings().weight[self.words].float()
        states = self._fast_forward(texts) if self._fast_forward else None
        if states is not None:
            return states.float() @ words.T

        def last_states(inputs: dict[str, torch.Tensor]) -> torch.Tensor:
            states: torch.Tensor = self.model.base_model(**inputs).last_hidden_state
            return states[:, -1]

        return self._run_grouped(features, last_states) @ words.T

    def _label_order(self, outputs: dict[int, str]) -> list[int]:
        return [0, 1, 2]


class _ONNXRespondent(NLIRespondent):
    """A classifier in an ONNX file."""

    def __init__(self, source: Source, identity: Identity) -> None:
        self.identity = identity
        self._classifier = ONNXClassifier(source, identity.precision)
        self._reads = self._classifier.lengths
        self.tokenizer = self._classifier.tokenizer
        self.token_budget = FEWEST_IN_BATCH

        config = self._classifier.config
        count = self._classifier.outputs
        names = output_names(config, source.name) or {i: f"LABEL_{i}" for i in range(count)}
        if len(names) != count:
            raise IncompleteModelError(
                f"{source.name}, config.json: names {len(names)} outputs, but the ONNX file has "
                f"{count}; copy both files again from one model."
            )
        self.order = self._label_order(names)

    def _tokenize(self, pairs: list[_Prompt], **options: Any) -> list[_Features]:
        return self._classifier.tokenize(pairs, options.get("max_length"))

    def _probabilities(self, features: list[_Features]) -> _Probabilities:
        return self._classifier.probabilities(features)


def _tokenize_once(
    tokenizer: PreTrainedTokenizerBase, pairs: Sequence[_Prompt]
) -> list[_Features] | None:
    """Tokenize pairs, splitting each text only once.

    Return None if the tokenizer does not simply split both texts separately and join them.
    """
    if not tokenizer.is_fast:
        return None
    example = tokenizer(*pairs[0], verbose=False)
    if set(example) - {"input_ids", "token_type_ids", "attention_mask"}:
        return None

    splitter = tokenizer.backend_tokenizer
    texts = list(dict.fromkeys(itertools.chain.from_iterable(pairs)))
    encodings = splitter.encode_batch_fast(texts, add_special_tokens=False)
    alone = dict(zip(texts, encodings, strict=True))
    ids = {text: encoding.ids for text, encoding in alone.items()}

    # The tokens added before, between and after two texts are the same for all pairs.
    pair = splitter.post_process(*(alone[text] for text in pairs[0]))
    places = [place for place, added in enumerate(pair.special_tokens_mask) if not added]
    premise_length = len(ids[pairs[0][0]])
    if not 0 < premise_length < len(places):
        return None
    begin = places[0]
    middle = places[premise_length]
    end = places[-1] + 1
    pair_ids = pair.ids
    types = pair.type_ids

    joined = []
    for premise, hypothesis in pairs:
        head = pair_ids[:begin] + ids[premise] + pair_ids[begin + premise_length : middle]
        tail = ids[hypothesis]
        row = {"input_ids": head + tail + pair_ids[end:]}
        row["token_type_ids"] = [types[0]] * len(head) + [types[middle]] * len(tail) + types[end:]
        row["attention_mask"] = [1] * len(row["input_ids"])
        joined.append({name: row[name] for name in example})

    agrees = all(joined[i] == dict(tokenizer(*pairs[i], verbose=False)) for i in (0, -1))
    return joined if agrees else None


def _load_classifier(source: Source, dtype: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    written = source.config
    config = load_config(source)
    names = output_names(written, source.name)
    if names and not written.get("id2label"):  # given only label2id, transformers expects two
        config.id2label = names

    model, tokenizer = load_model(
        source, "classifier", config=config, dtype=dtype, what="an NLI classifier"
    )
    if tokenizer.pad_token_id is None and not decodes(config):
        raise IncompleteModelError(
            f"{source.name} has no pad_token: add one to tokenizer_config.json."
        )

    end = config.eos_token_id
    pair = tokenizer("One.", "Two.")["input_ids"]
    if config.is_encoder_decoder and end is not None and end not in pair:
        raise IncompleteModelError(
            f"{source.name} has a tokenizer that adds no {tokenizer.eos_token} after a text, where "
            "its head reads: save the model with a tokenizer that adds this token."
        )

    if model.config.pad_token_id is None:
        # A decoder's head reads the last token that is not padding. Without a padding token, and as
        # nothing is padded here, that is the last token.
        padding = tokenizer.pad_token_id
        model.config.pad_token_id = -1 if padding is None else padding

    return model, tokenizer


class NLI(PromptMode):
    """Respondents that answer by entailment; see :class:`NLIRespondent`."""

    answer_columns = PROBABILITIES
    question_columns = ("premise", "hypothesis")

    def digest(self, source: Source, dtype: str, **conditions: Any) -> str:
        """Return the fingerprint of the model at a source."""
        # The version of this file's treatment of answers; raise it with every change. Since 3
        # nothing is padded; since 4 decoders other than Llama read shared beginnings once, too.
        versions = {"embedded": "nli-1", "packed": "nli-1", "onnx": "nli-onnx-1"}
        handling = versions.get(source.kind, "nli-3")
        is_words = handling == "nli-3" and "answers" in source.recipe
        if is_words and source.config.get("model_type") != "llama":
            handling = "nli-4"

        return digest_text(source.digest, dtype, handling)

    def load(
        self,
        name_or_path: str | Path | Source,
        device: str | torch.device | None = None,
        dtype: str | None = None,
        **conditions: Any,
    ) -> _PromptRespondent:
        """Load a respondent; an ONNX file is run without torch."""
        source = _find_runnable(name_or_path)
        if source.kind != "onnx":
            return super().load(source, device, dtype, **conditions)

        if device is not None and str(device) != "cpu":
            raise RespondentError(
                f"{source.name} is an ONNX file, which answers on the processor: use device='cpu'."
            )

        return _ONNXRespondent(source, self._identity(source, dtype, conditions))

    def build(
        self, source: Source, identity: Identity, device: torch.device, **conditions: Any
    ) -> NLIRespondent:
        """Load a respondent from the model at a source."""
        recipe = source.recipe
        by_words = "answers" in recipe
        if source.kind == "embedded" and not by_words:
            return _EmbeddedRespondent(identity)

        if source.kind == "embedded":
            model, tokenizer = load_embedded(source.name)
        elif by_words:
            model, tokenizer = load_model(source, "causal", dtype=identity.precision)
        else:
            model, tokenizer = _load_classifier(source, identity.precision)

        model = to_device(model, device, identity.precision, source.name)
        if by_words:
            return _WordsRespondent(model, tokenizer, identity, recipe)

        return NLIRespondent(model, tokenizer, identity)

    def answer(self, questionnaire: Questionnaire, asking: Asking) -> pd.DataFrame:
        """Return the prompt table with one respondent's answers, stored or new.

        Warns
        -----
        UserWarning
            The answers differ by less than their precision, so that their statistics are rounding
            error.
        """
        table = super().answer(questionnaire, asking)
        identity = asking.identity

        if _all_equal(table["entailment"]):
            return table  # a warning was given
        entailment = table["entailment"].to_numpy(dtype="float64")
        dtype = identity.precision
        step = {"bfloat16": 2**-8, "float16": 2**-11}.get(dtype, 0.0)
        spread = entailment.std()
        finest = step * entailment.mean()
        if spread < 4 * finest:
            warnings.warn(
                f"{identity.respondent_id} gives {questionnaire.id} answers that differ by "
                f"{spread:.1g} (standard deviation), but {dtype} resolves only {finest:.1g}: ask "
                "it with dtype='float32'.",
                stacklevel=3,
            )

        return table
