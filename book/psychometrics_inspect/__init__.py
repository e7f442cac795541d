"""Questionnaires, their scores and null respondents for inspect.

``inspect eval psychometrics_inspect/questionnaire -T name=ipip20 --model null/random`` asks a
questionnaire; :func:`questionnaire` lists the settings. Replies are read by the rules of
:func:`psychometrics.modes.replies.parse_reply`, and ``psychometrics profile --answers LOG.eval``
reads the log.
"""

from __future__ import annotations

import functools
import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pandas as pd
from inspect_ai import Epochs, Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    modelapi,
)
from inspect_ai.scorer import (
    NOANSWER,
    Metric,
    SampleScore,
    Score,
    Scorer,
    ScoreReducer,
    Target,
    metric,
    score_reducer,
    scorer,
)
from inspect_ai.solver import TaskState, generate

import psychometrics as pm
from psychometrics.questionnaires import Questionnaire
from psychometrics.questionnaires.answers import tidy
from psychometrics.reports.answer_profiles import assess_answers
from psychometrics.serving import protocol
from psychometrics.serving.respondents import Respondents

# A questionnaire is needed for each reply, and its file takes a while to read.
_load = functools.lru_cache(maxsize=32)(pm.load_questionnaire)
# The reasons in inspect's words of replies without an answer.
_REASONS = {"refused": "refusal", "missing": "no_response"}


@task
def questionnaire(
    name: str = "ipip20",
    role: str = "default",
    reversed_options: bool = False,
    shuffle: bool = True,
    seed: int = 0,
    runs: int = 1,
    labels: str = "numeric",
) -> Task:
    """Put each item of a questionnaire to a model, on its own.

    Parameters
    ----------
    name : str
        A name that ``psychometrics questionnaires`` lists, or a file.
    role : str
        A role's name, as in :func:`psychometrics.modes.messages.messages`, or the system text.
    reversed_options : bool
        Whether the options are shown from the last to the first. A label belongs to its place.
    shuffle : bool
        Whether the items come in an order drawn with ``seed``.
    seed : int
    runs : int
        Number of times that each item is asked: inspect's epochs.
    labels : {"numeric", "alphabetical"}

    Examples
    --------
    >>> task = questionnaire("gad7", reversed_options=True)
    >>> len(task.dataset), task.dataset[0].metadata["questionnaire"]
    (7, 'gad7')
    """
    loaded = _load(name)
    samples = []
    for item in loaded.items:
        options = loaded.choices(item)
        order = tuple(range(len(options)))
        if reversed_options:
            order = order[::-1]

        sent = pm.messages.messages(
            loaded, [item], role=role, labels=labels, orders=[order], reply="choice"
        )
        roles = {"system": ChatMessageSystem, "user": ChatMessageUser}
        messages: list[ChatMessage] = [roles[one["role"]](content=one["content"]) for one in sent]
        details = {"questionnaire": name, "item_id": item.id, "labels": labels}
        details["order"] = ",".join(map(str, order))
        samples.append(Sample(input=messages, id=item.id, metadata=details))

    dataset = MemoryDataset(samples, name=loaded.id)
    if shuffle:
        dataset.shuffle(seed)

    metrics = [scale_scores(), answered(), alpha_over_runs(), ten_runs()]
    return Task(
        dataset=dataset,
        solver=generate(),
        scorer=option_scorer(),
        metrics=metrics,
        epochs=Epochs(runs, [all_runs()]),
        name=f"{loaded.id}-reversed" if reversed_options else loaded.id,
    )


@scorer(metrics=[])
def option_scorer() -> Scorer:
    """Read the option that a reply names; a refusal or an unreadable reply has no value."""

    async def score(state: TaskState, target: Target) -> Score:
        details = state.metadata
        loaded = _load(details["questionnaire"])
        item = loaded.item(details["item_id"])
        order = tuple(map(int, details["order"].split(",")))
        ((status, value),) = pm.replies.parse_reply(
            state.output.completion, loaded, [item], details["labels"], [order]
        )
        status_only = {"status": status}
        if status != "ok":
            reason = _REASONS.get(status, "invalid_response_format")
            return Score(value=NOANSWER, reason=reason, explanation=status, metadata=status_only)

        texts = {option.value: option.label for option in loaded.choices(item)}
        return Score(value=float(value), answer=texts[value], metadata=status_only)

    return score


@score_reducer
def all_runs() -> ScoreReducer:
    """Keep the values and statuses of all runs; the value is the mean of the answers."""

    def reduce(scores: list[Score]) -> Score:
        values = [_number(one.value) for one in scores]
        answers = [value for value in values if not math.isnan(value)]
        statuses = [(one.metadata or {}).get("status", "missing") for one in scores]
        mean = sum(answers) / len(answers) if answers else NOANSWER
        details = {"values": values, "statuses": statuses}
        return Score(value=mean, answer=scores[0].answer, metadata=details)

    return reduce


@metric
def scale_scores() -> Metric:
    """Return each scale's mean score over runs, with its 95 % interval over items."""

    def compute(scores: list[SampleScore]) -> dict[str, float]:
        answers, loaded = _answers(scores)
        means = answers.groupby("item_id", sort=False)["value"].mean()
        over_runs = answers[answers["run"] == 1].assign(
            value=lambda rows: rows["item_id"].map(means)
        )
        over_runs["status"] = over_runs["value"].notna().map({True: "ok", False: "missing"})
        table = pm.score_table(over_runs, [loaded])
        columns = {"score": "", "low": " low", "high": " high"}
        rows = table[["scale", *columns]].itertuples(index=False, name=None)
        return {
            f"{scale or loaded.id}{ending}": float(value)
            for scale, *values in rows
            for ending, value in zip(columns.values(), values, strict=True)
        }

    return compute


@metric
def answered() -> Metric:
    """Return the shares of replies that answer, and of those that refuse."""

    def compute(scores: list[SampleScore]) -> dict[str, float]:
        answers, _ = _answers(scores)
        shares = answers["status"].value_counts(normalize=True)
        return {"answered": float(shares.get("ok", 0)), "refused": float(shares.get("refused", 0))}

    return compute


@metric
def alpha_over_runs() -> Metric:
    """Return alpha over runs with its limits for independent answers and for habits.

    The rows are runs of one model, not models: alpha says whether runs differ as a whole. It needs
    three runs or more.
    """

    def compute(scores: list[SampleScore]) -> dict[str, float]:
        answers, loaded = _answers(scores)
        if answers["run"].max() < 3 or not loaded.scales:
            return {}
        by_run = answers.assign(respondent_id=answers["run"].map("run {}".format), run=1)
        table = assess_answers(by_run, [loaded])["scales"].set_index("scale")
        columns = {"alpha": "alpha", "independent": "random alpha", "habit": "habit's alpha"}
        return {
            f"{scale} {name}": float(row[column])
            for scale, row in table.iterrows()
            for column, name in columns.items()
        }

    return compute


@metric
def ten_runs() -> Metric:
    """Return p of the difference from people, with runs as people and as one respondent.

    Scales without norms are left out.
    """

    def compute(scores: list[SampleScore]) -> dict[str, float]:
        answers, loaded = _answers(scores)
        runs = int(answers["run"].max())
        norms = pm.norms.norm_table([loaded]).drop_duplicates("scale").set_index("scale")
        if runs < 2 or norms.empty:
            return {}
        by_run = answers.assign(respondent_id=answers["run"].map("run {}".format), run=1)
        values = pm.scale_scores(by_run).groupby("scale")["score"].agg(["mean", "std"])
        result = {}
        for scale, norm in norms.iterrows():
            people = norm[["norm_mean", "norm_sd", "norm_n"]]
            # norms of GAD-7 and PHQ-9 are sums of items whose scores are means
            items = len(loaded.keys(loaded.scale(scale))) if "sums" in norm["group"] else 1
            for count, name in {runs: "runs as people", 1: "one respondent"}.items():
                table = pm.norms.compare_means(*(values.loc[scale] * items), count, *people)
                result[f"{scale} p, {name}"] = float(table["p"].item())
        return result

    return compute


@modelapi(name="null")
class NullModel(ModelAPI):
    """Null respondents as models: ``null/random``, ``null/middle``, ``null/habit-3`` and others.

    The names are those of :mod:`psychometrics.serving.respondents`. A request that is repeated
    gets another draw, so that runs differ as those of a model that samples.
    """

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig | None = None,
        **model_args: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config or GenerateConfig())
        self.respondents = Respondents(model_args.get("questionnaires", ()))
        self.respondents.check(model_name)
        self.repeats: Counter[str] = Counter()

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002 - inspect's name
        tools: Sequence[Any],
        tool_choice: Any,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Return the respondent's reply."""
        messages = [{"role": message.role, "content": message.text} for message in input]
        request = {"model": self.model_name, "messages": messages, "seed": config.seed or 0}
        key = json.dumps(messages)
        self.repeats[key] += 1
        replies = protocol.write_replies(self.respondents, request, self.repeats[key] - 1)

        output = ModelOutput.from_content(self.model_name, replies[0].text)
        counts = protocol.count_tokens(request, replies)
        output.usage = ModelUsage(
            input_tokens=counts["prompt_tokens"],
            output_tokens=counts["completion_tokens"],
            total_tokens=counts["total_tokens"],
        )
        return output


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _answers(scores: Sequence[SampleScore]) -> tuple[pd.DataFrame, Questionnaire]:
    """Return the answers to items that scores hold, and the questionnaire."""
    details = [score.sample_metadata or {} for score in scores]
    loaded = _load(details[0]["questionnaire"])
    rows = []
    for score, sample in zip(scores, details, strict=True):
        kept = score.score.metadata or {}
        values = kept.get("values", [_number(score.score.value)])
        statuses = kept.get("statuses", [kept.get("status", "missing")])
        for run, (value, status) in enumerate(zip(values, statuses, strict=True), start=1):
            row = {"respondent_id": "model", "mode": "inspect", "run": run, "value": value}
            rows.append(row | {"item_id": sample["item_id"], "status": status})
    return tidy(rows, loaded), loaded
