"""Against implementations that share no line with ours: eRm and psych in R."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import optimize

import psychometrics as pm
import psychometrics_book as book
from psychometrics.measures import graded, irt, ordinal
from psychometrics.measures.factor import one_factor
from psychometrics.measures.intervals import correlation_interval
from psychometrics.measures.items import item_rest
from psychometrics.measures.omega import _omegas_of_factors, omega_hierarchical
from psychometrics.measures.reliability import alpha, alphas, omega
from psychometrics.nulls.evidence import profile_agreement
from psychometrics.paths import book_dir, data_dir, notebooks_dir
from psychometrics_book.studies import diagnostic
from recipes import invariance
from tests.test_scoring import own_questionnaire

pytestmark = pytest.mark.r


def in_r(code: str, table: pd.DataFrame | None, folder: Path, needs=("eRm", "psych")) -> np.ndarray:
    """Numbers in R's last line of a table read as ``d``; skips where R or a package is absent."""
    listed = ", ".join(f'"{name}"' for name in needs)
    packages = f"for (p in c({listed})) if (!requireNamespace(p, quietly=TRUE)) quit(status=3)"
    _need_r()
    if table is not None:
        table.to_csv(folder / "table.csv", index=False)
        code = f"d <- read.csv('table.csv')\n{code}"
    (folder / "page.R").write_text(f"{packages}\n{code}", encoding="utf-8")
    command = ["Rscript", "page.R"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, cwd=folder, check=False
    )
    if done.returncode == 3:
        pytest.skip(f"R lacks one of {', '.join(needs)} (r-cran-… in lower case)")
    assert done.returncode == 0, done.stderr
    return np.array([float(word) for word in done.stdout.splitlines()[-1].split()])


def _need_r() -> None:
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed (Rscript)")


ROUNDING = 1e-5
"""Share by which a number of the page may move with the last digits of answers in float32."""
POLYCHORIC = """suppressMessages(library(psych))
p <- suppressWarnings(polychoric(d, correct=0, global=FALSE)$rho)
said <- capture.output(a <- suppressWarnings(alpha(p, check.keys=FALSE)))
cat(p[lower.tri(p)], a$total$raw_alpha)"""


@pytest.mark.parametrize(
    ("questionnaire", "source"),
    [("gad7", "students_mexico"), ("phq9", "students_bmi"), ("soc13", "adults_peru")],
)
def test_polychoric_correlations_and_ordinal_alpha_agree_with_psych(
    questionnaire, source, tmp_path
):
    answers = pd.read_csv(data_dir() / "published" / "answers.csv.gz").query("source == @source")
    loaded = pm.load_questionnaire(questionnaire, texts=False)
    own = answers[answers["questionnaire"] == questionnaire]
    wide = own.pivot(index="respondent_id", columns="item_id", values="value").dropna()
    keys = pd.Series(loaded.keys())
    both_ends = wide.min(axis=None) + wide.max(axis=None)
    keyed = wide[keys.index].where(keys > 0, both_ends - wide)
    *theirs, alpha_of_theirs = in_r(POLYCHORIC, keyed, tmp_path, ["psych"])
    ours = ordinal.polychoric(keyed).to_numpy()
    assert ours.T[np.triu_indices(len(ours), 1)] == pytest.approx(theirs, abs=2e-3)
    assert alphas(ours) == pytest.approx(alpha_of_theirs, abs=1e-3)


OMEGA = """suppressMessages(library(psych))
p <- suppressWarnings(polychoric(d, correct=0, global=FALSE)$rho)
for (m in list(p, cor(d))) {
  o <- suppressWarnings(suppressMessages(omega(m, nfactors=3, plot=FALSE, flip=FALSE)))
  cat(o$omega.tot, o$omega_h, '')
}"""
MARGINAL = (Path(__file__).parent / "graded.R").read_text(encoding="utf-8")


def _keyed(questionnaire: str, source: str) -> pd.DataFrame:
    """Keyed answers of people, from 0."""
    answers = pd.read_csv(data_dir() / "published" / "answers.csv.gz").query("source == @source")
    keys = pd.Series(pm.load_questionnaire(questionnaire, texts=False).keys())
    own = answers[answers["questionnaire"] == questionnaire]
    wide = own.pivot(index="respondent_id", columns="item_id", values="value").dropna()
    both_ends = wide.min(axis=None) + wide.max(axis=None)
    keyed = wide[keys.index].where(keys > 0, both_ends - wide)
    return (keyed - keyed.min()).astype(int)


FINE = {"n_quadpts": 61, "max_iter": 2000, "tol": 1e-6}
PEOPLE = [("gad7", "students_mexico"), ("phq9", "students_bmi"), ("soc13", "adults_peru")]


@pytest.mark.parametrize(("questionnaire", "source"), PEOPLE)
def test_omegas_of_polychoric_and_of_pearsons_correlations_are_those_of_psych(
    questionnaire, source, tmp_path
):
    keyed = _keyed(questionnaire, source)
    theirs = in_r(OMEGA, keyed, tmp_path, ["psych"])
    linear = _omegas_of_factors(keyed.dropna().corr().to_numpy())
    ours = [omega_hierarchical(keyed).iloc[:2], linear]
    # in GAD-7 an item has no uniqueness, which psych holds at 0.005
    near = 0.006 if questionnaire == "gad7" else 1e-3
    assert np.concatenate(ours) == pytest.approx(theirs, abs=near)


GRADED = {"graded": ("GRM", "thresholds"), "partial credit": ("GPCM", "steps")}


@pytest.mark.parametrize("people", PEOPLE)
@pytest.mark.parametrize("model", GRADED)
def test_graded_fits_are_rs_and_mirts_are_so_where_its_limits_are_not_reached(
    people, model, tmp_path
):
    import mirt

    keyed = _keyed(*people)
    kind, steps = GRADED[model]
    likelihood, *theirs = in_r(MARGINAL.replace("KIND", kind), keyed, tmp_path, ["stats"])
    fitted = graded.fit(keyed, model)
    ours = fitted.drop(columns="at_limit").to_numpy(dtype=float).ravel()
    assert ours[~np.isnan(ours)] == pytest.approx(theirs, abs=5e-4)
    row = graded.score_reliability(keyed, fitted)
    assert row["log_likelihood"] == pytest.approx(likelihood, abs=1e-4)

    if people == ("phq9", "students_bmi"):
        found = mirt.fit_mirt(keyed, model=kind, **FINE)
        parameters = found.model.parameters
        of_mirt = np.column_stack([parameters["discrimination"], parameters[steps]])
        assert found.log_likelihood == pytest.approx(likelihood, abs=0.05)
        assert of_mirt.ravel() == pytest.approx(theirs, abs=0.01)


def test_graded_fits_of_mirt_end_at_its_limits_for_two_of_three_samples_of_people():
    import mirt

    ends = {}
    for questionnaire, source in PEOPLE:
        fit = mirt.fit_mirt(_keyed(questionnaire, source), model="GRM", **FINE)
        parameters = fit.model.parameters
        steep = np.max(parameters["discrimination"]) >= 5
        far = np.nanmax(np.abs(parameters["thresholds"])) > 5.99
        ends[questionnaire] = bool(steep or far)
    assert ends == {"gad7": True, "phq9": False, "soc13": True}
    # with wide limits GAD-7 has a steeper slope, and SOC-13 two negative ones
    assert graded.fit(_keyed(*PEOPLE[0]))["discrimination"].max() == pytest.approx(5.1, abs=0.05)
    widely = graded.fit(_keyed(*PEOPLE[2]))
    assert (widely["discrimination"] < 0).sum() == 2
    better = graded.score_reliability(_keyed(*PEOPLE[2]), widely)["log_likelihood"]
    assert better > fit.log_likelihood + 50


def test_mean_squares_with_gaps_are_those_of_the_answers_that_there_are_in_r(tmp_path):
    # By the definition alone: eRm estimates abilities otherwise.
    table = diagnostic.answers("people", "MN")
    table = table.loc[:, table.mean().between(0.1, 0.9)].astype(float)
    holes = table.mask(np.random.default_rng(4).random(table.shape) < 0.2)
    fitted = irt.fit(holes)
    theta = irt.abilities(holes, fitted)["theta"]
    holes.columns = [f"i{n}" for n in range(holes.shape[1])]
    b = ",".join(map(str, fitted["difficulty"]))
    code = (
        f"t <- c({','.join(map(str, theta))}); b <- c({b}); p <- plogis(outer(t, b, '-')); "
        "x <- as.matrix(d); p[is.na(x)] <- NA; v <- p * (1 - p); "
        "cat(colSums((x - p)^2, na.rm=TRUE) / colSums(v, na.rm=TRUE), "
        "colMeans((x - p)^2 / v, na.rm=TRUE))"
    )
    theirs = in_r(code, holes, tmp_path)
    holes.columns = fitted.index
    ours = irt.item_fit(holes, fitted, simulations=5)
    assert np.r_[ours["infit"], ours["outfit"]] == pytest.approx(theirs, abs=1e-6)


def test_gaps_intervals_and_correlations_agree_with_psych_in_r(tmp_path):
    table = diagnostic.answers("transformers", "MN").astype(float)
    table = table.mask(np.random.default_rng(4).random(table.shape) < 0.01)
    table = table.loc[:, table.dropna().nunique() > 1]
    code = (
        "d <- na.omit(d); a <- suppressWarnings(suppressMessages("
        "psych::alpha(d, check.keys=FALSE))); "
        'f <- suppressMessages(psych::fa(cor(d), nfactors=1, fm="minres")); '
        "l <- as.numeric(f$loadings); o <- sum(l)^2 / (sum(l)^2 + sum(1 - l^2)); "
        "x <- rowSums(d[, 1:5]); y <- rowSums(d[, 6:10]); ci <- psych::r.con(cor(x, y), nrow(d)); "
        "cat(nrow(d), a$total$raw_alpha, o, ci, a$item.stats$r.drop)"
    )
    n, their_alpha, their_omega, low, high, *rest = in_r(code, table, tmp_path)
    ours = alpha(table)
    assert ours["n"] == n < len(table)
    assert ours["alpha"] == pytest.approx(their_alpha, abs=1e-6)
    assert omega(table)["omega"] == pytest.approx(their_omega, abs=1e-4)
    assert item_rest(table)["r"].to_numpy() == pytest.approx(np.array(rest), abs=1e-6)
    whole = table.dropna()
    found = correlation_interval(
        whole.iloc[:, :5].sum(axis=1), whole.iloc[:, 5:10].sum(axis=1), "pearson"
    )
    assert (found["low"], found["high"]) == pytest.approx((low, high), abs=1e-6)
    assert np.isnan(omega(whole.iloc[: whole.shape[1]])["omega"]), "as many respondents as items"


def test_loadings_on_one_factor_are_those_of_minimum_residuals_in_psych(tmp_path):
    rng = np.random.default_rng(12)
    parts = []
    for sample in range(12):
        loadings = np.r_[rng.uniform(0.3, 0.8, 5), -0.4]
        values = rng.normal(size=(24, 1)) * loadings + rng.normal(size=(24, 6))
        parts.append(pd.DataFrame(values, columns=list("abcdef")).assign(sample=sample))
    table = pd.concat(parts)
    code = (
        "for (s in split(d[, 1:6], d$sample)) { f <- suppressWarnings(suppressMessages("
        'psych::fa(cor(s), nfactors=1, fm="minres"))); cat(as.numeric(f$loadings), "") }'
    )
    theirs = in_r(code, table, tmp_path).reshape(12, 6)
    ours = one_factor(np.stack([np.cov(part.to_numpy()[:, :6].T) for part in parts]))
    proper = np.abs(ours).max(axis=1) < 0.99
    assert proper.sum() > 6
    assert np.abs(ours[proper]) == pytest.approx(np.abs(theirs[proper]), abs=1e-3)
    # a Heywood case is held at a loading of 1 here, at a unique share of 0.005 there
    held = np.abs(ours).max(axis=1) == 1
    assert np.abs(theirs[held]).max(axis=1) == pytest.approx(1, abs=0.01)


def test_shares_of_bias_plans_and_runs_of_models_are_those_of_psych(tmp_path):
    rng = np.random.default_rng(13)
    keys = np.r_[np.ones(5), -np.ones(5)]
    values = rng.normal(size=(40, 1)) * keys + rng.normal(size=(40, 1))
    values = values + rng.normal(np.arange(10) / 4, 1, (40, 10))
    table = pd.DataFrame(values).add_prefix("i")
    code = (
        "a <- function(x) suppressWarnings(suppressMessages("
        "psych::alpha(x, check.keys=FALSE)$total$raw_alpha)); "
        "p <- rowMeans(d[, 1:5]); q <- rowMeans(d[, 6:10]); "
        "t <- psych::correct.cor(cbind(c(1, cor(p, q)), c(cor(p, q), 1)), "
        "c(a(d[, 1:5]), a(d[, 6:10]))); "
        "k <- d; k[, 6:10] <- -k[, 6:10]; "
        "i <- psych::ICC(k, lmer=FALSE)$results; "
        "v <- c((1 + cor(p, q)) / 2, (1 + t[1, 2]) / 2, a(k), a(d), i$ICC[2:3]); "
        "cat('\\n'); cat(v)"  # psych says on the same line that items should be reversed
    )
    share, true, keyed, raw, absolute, relative = in_r(code, table, tmp_path)
    found = pm.bias.bias_statistics(table.cov(), keys).iloc[0]
    ours = found[["bias", "bias_disattenuated", "alpha", "alpha_raw"]].tolist()
    assert ours == pytest.approx([share, true, keyed, raw], abs=1e-6)

    long = (table * keys).stack().rename("score").rename_axis(["respondent_id", "item"])
    plan = pm.reliability.design_study(long.reset_index(), ["respondent_id", "item"], {"item": 1})
    assert plan[["absolute", "relative"]].iloc[0].tolist() == pytest.approx([absolute, relative])

    # ten runs of each of forty models, by a scale of one item
    runs = long.droplevel("item").clip(-2, 2).reset_index().assign(item_id="a", mode="human")
    runs["run"] = runs.groupby("respondent_id").cumcount()
    options = [{"value": value, "label": str(value)} for value in (-2, 2)]
    one = own_questionnaire(options=options, items=[{"id": "a", "text": "A"}], scales=[
        {"id": "own", "title": "Own", "items": "all"}])  # fmt: skip
    row = pm.bias.runs_and_units(runs.assign(questionnaire="own"), one).iloc[0]
    clipped = (table * keys).clip(-2, 2)
    code = "i <- psych::ICC(d, lmer=FALSE)$results; cat(as.numeric(i[1, c(2, 7, 8)]))"
    theirs = in_r(code, clipped, tmp_path)
    assert row[["share", "low", "high"]].tolist() == pytest.approx(theirs, abs=1e-6)


def _prose(path: Path) -> str:
    """A page, or what is written between the code cells of a notebook."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
    return "\n\n".join("".join(cell["source"]) for cell in cells)


PAGES = {
    path.stem: path
    for path in [*sorted(notebooks_dir().glob("*.ipynb")), *sorted(book_dir().glob("*.md"))]
    if "```r\n" in _prose(path)
}


def _of_items() -> list[np.ndarray]:
    table = diagnostic.answers("transformers", "MN")
    found = pm.items.item_rest(table)["r"]
    return [table.mean(), [pm.reliability.alpha(table)["alpha"]], found, *_of_rasch()]


def _of_rasch() -> list[np.ndarray]:
    """Difficulties by conditional maximum likelihood, for which we have no function."""
    answers = diagnostic.answers("transformers", "MN")
    times = answers.sum().to_numpy()
    sums = np.bincount(answers.sum(axis=1).astype(int))

    def loss(b):
        symmetric = np.poly(-np.exp(-b))[: len(sums)]  # the elementary symmetric functions
        return times @ b + sums @ np.log(symmetric) + b.mean() ** 2

    return [pd.Series(optimize.minimize(loss, np.zeros(len(times))).x, answers.columns)]


# Chi-squared, df, CFI and RMSEA of one factor and of two by lavaan, for which we have no function.
ONE_FACTOR = (270.0306, 104, 0.5888, 0.2579)
TWO_FACTORS = (266.8328, 103, 0.5942, 0.2574)


AGREEMENT = """cells <- c(1, 1, 1, 2, 2, 3, 3, 3)
r <- cor(t(d))
z <- t(scale(t(as.matrix(d)))) / sqrt(ncol(d) - 1)
m <- t(apply(z, 1, ave, cells))
p <- tcrossprod(m)
cat(mean(r[lower.tri(r)]), mean(p[lower.tri(p)]))"""


def test_agreement_and_its_part_between_cells_are_those_of_r(tmp_path):
    scores = pd.DataFrame(np.random.default_rng(0).normal(size=(6, 8)).round(3))
    expected = in_r(AGREEMENT, scores, tmp_path, needs=())
    result = profile_agreement(scores, cells=pd.Series([1, 1, 1, 2, 2, 3, 3, 3]))
    assert result[["value", "between"]].to_numpy() == pytest.approx(expected, abs=1e-6)


@pytest.mark.timeout(900)  # asks the encoders where no store has their answers
def test_numbers_in_the_comments_of_the_page_are_what_its_code_gives():
    code = "".join(re.findall(r"```r\n(.*?)```", _prose(PAGES["r"]), re.S))
    printed = re.findall(r"#.*: (-?\d+\.\d+)$", code, re.M)
    alpha, _, factors, (p,), (chi, _, cfi, rmsea, *_), difficulty, mh = _of_the_page()
    ours = [alpha[0], factors[6], p, chi, cfi, rmsea, difficulty[12] - difficulty[22], *mh]
    assert len(printed) == len(ours)
    for text, value in zip(printed, ours, strict=True):
        half_a_unit = 0.5 * 10 ** -len(text.partition(".")[2])
        assert float(text) == pytest.approx(value, abs=half_a_unit + ROUNDING * max(1, abs(value)))


def _of_the_page() -> list[np.ndarray]:
    scales = [pm.load_questionnaire(name) for name in ("gad7", "phq9")]
    items = pm.item_scores(pm.ask(scales, "encoders", progress=False))
    gad = pm.scoring.keyed_items(items, scales[0])
    groups = diagnostic.answers("people", "MN"), diagnostic.answers("transformers", "MN")
    return [
        [pm.reliability.alpha(gad)["alpha"]],
        item_rest(gad)["r"],
        [*ONE_FACTOR, *TWO_FACTORS],
        [0.0737],
        _of_invariance(),
        *_of_rasch(),
        pm.items.dif(*groups).loc[16, ["odds_ratio", "delta"]],
    ]


def _of_invariance() -> np.ndarray:
    """The ladder of Chapter 10 for extraversion; a row of chi-squared, df, CFI, RMSEA a model."""
    items = list(pm.load_questionnaire("ipip50").scale("extraversion").items)
    models, file = invariance.eighteen()[items], data_dir() / "published" / "items.csv.gz"
    people = pd.read_csv(file, index_col=["group", "item_id"]).loc["people"].loc[items]
    moments = models.cov(ddof=0).to_numpy(), models.mean().to_numpy()
    held = [people[name].to_numpy() for name in ("loading", "mean")]
    chi = np.array([18 * invariance.misfit(*moments, *held[:n])[0] for n in range(3)])
    df, alone = np.array([35, 44, 53]), -18 * np.linalg.slogdet(models.corr())[1]
    cfi, rmsea = 1 - (chi - df) / (alone - 45), np.sqrt((chi / df - 1) / 18)
    return np.array([chi, df, cfi, rmsea]).T.ravel()


SHOWN = {
    "08-items": ("colMeans(d), a$total$raw_alpha, a$item.stats$r.drop, b", _of_items),
    "r": (
        "gad$total$raw_alpha, gad$item.stats$r.drop, "
        "fitMeasures(one, c('chisq', 'df', 'cfi', 'rmsea')), "
        "fitMeasures(two, c('chisq', 'df', 'cfi', 'rmsea')), anova(one, two)[2, 'Pr(>Chisq)'], "
        "fits, difficulty, "
        "1 / mh$estimate, -2.35 * log(1 / mh$estimate)",
        _of_the_page,
    ),
}
"""What a page computes in R, and the same by our functions."""


def test_every_page_that_shows_r_is_tested():
    assert set(PAGES) == set(SHOWN)


@pytest.mark.timeout(900)  # asks the encoders where no store has their answers
@pytest.mark.parametrize("page", sorted(PAGES))
def test_r_as_a_page_shows_it_gives_what_python_gives(page, tmp_path, monkeypatch):
    _need_r()  # before the page's Python is run, which asks
    text = _prose(PAGES[page])
    values, ours = SHOWN[page]
    monkeypatch.chdir(tmp_path)
    python = [*re.findall(r"```python\n(.*?)```", text, re.S)] if page == "r" else []
    python += re.findall(r"`((?:pm|book)\.[^`\n]*to_csv[^`\n]*)`", text)
    assert python, "the page says how its file is written"
    for block in python:
        exec(block, {"pm": pm, "book": book})
    shown = "\n".join(re.findall(r"```r\n(.*?)```", text, re.S))
    packages = {a or b for a, b in re.findall(r"library\((\w+)\)|(\w+)::", shown)}
    theirs = in_r(f"{shown}\ncat('\\n')\ncat(c({values}))", None, tmp_path, sorted(packages))
    assert theirs == pytest.approx(np.concatenate(ours()).astype(float), rel=1e-3, abs=0.01)
