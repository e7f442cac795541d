"""Against implementations that share no line with ours: eRm and psych in R."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from psychometrics import irt
from psychometrics.studies import diagnostic

pytestmark = pytest.mark.r


def in_r(code: str, table: pd.DataFrame, folder, needs=("eRm", "psych")) -> np.ndarray:
    """Numbers that R prints for a table it reads as ``d``; skips where R or a package is absent."""
    listed = ", ".join(f'"{name}"' for name in needs)
    packages = f"for (p in c({listed})) if (!requireNamespace(p, quietly=TRUE)) quit(status=3)"
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed (Rscript)")
    path = folder / "table.csv"
    table.to_csv(path, index=False)
    script = f'{packages}; d <- read.csv("{path}"); {code}'
    done = subprocess.run(["Rscript", "-e", script], capture_output=True, text=True, timeout=120)
    if done.returncode == 3:
        pytest.skip(f"R lacks one of {', '.join(needs)} (r-cran-… in lower case)")
    assert done.returncode == 0, done.stderr
    return np.array([float(word) for word in done.stdout.split()])


@pytest.mark.parametrize("category", list(diagnostic.CATEGORIES))
def test_rasch_difficulties_agree_with_conditional_maximum_likelihood_in_r(category, tmp_path):
    for table in (
        diagnostic.answers("transformers", category),
        diagnostic.answers("people", category),
    ):
        # eRm drops items that everyone or no one solved, and says so.
        finite = table.loc[:, table.nunique() > 1]
        theirs = in_r("suppressMessages(library(eRm)); cat(-RM(d)$betapar)", finite, tmp_path)
        ours = irt.fit_conditional(finite).to_numpy()
        assert ours == pytest.approx(theirs - theirs.mean(), abs=0.01)


def test_marginal_difficulties_agree_with_r_where_abilities_are_normal(tmp_path):
    rng = np.random.default_rng(0)
    parameters = pd.DataFrame(
        {"discrimination": 1.0, "difficulty": rng.normal(0, 1, 12), "guessing": 0.0}
    )
    rng = np.random.default_rng(1)
    p = irt.probability(rng.standard_normal(1000), parameters)
    table = pd.DataFrame((rng.random(p.shape) < p).astype(int))
    theirs = in_r("suppressMessages(library(eRm)); cat(-RM(d)$betapar)", table, tmp_path)
    for model in ("rasch", "1pl"):
        ours = -irt.fit(table, model)["intercept"].to_numpy()  # in logits, as eRm has them
        assert ours - ours.mean() == pytest.approx(theirs - theirs.mean(), abs=0.05)


def test_alpha_omega_and_item_rest_agree_with_psych_in_r(tmp_path):
    from psychometrics.items import item_rest
    from psychometrics.reliability import alpha, omega

    table = diagnostic.answers("transformers", "MN")
    code = (
        "a <- suppressWarnings(suppressMessages(psych::alpha(d, check.keys=FALSE))); "
        'f <- suppressMessages(psych::fa(cor(d), nfactors=1, fm="pa", max.iter=500, SMC=FALSE)); '
        "l <- as.numeric(f$loadings); "
        "cat(a$total$raw_alpha, sum(l)^2 / (sum(l)^2 + sum(1 - l^2)), a$item.stats$r.drop)"
    )
    their_alpha, their_omega, *rest = in_r(code, table, tmp_path)
    assert alpha(table)["alpha"] == pytest.approx(their_alpha, abs=1e-6)
    assert omega(table) == pytest.approx(their_omega, abs=1e-3)
    assert item_rest(table).to_numpy() == pytest.approx(np.array(rest), abs=1e-6)


def test_infinite_difficulties_are_put_where_rs_logistic_regression_stops(tmp_path):
    code = "for (n in c(19, 20, 35)) cat(coef(suppressWarnings(glm(rep(1, n) ~ 1, binomial))), '')"
    found = in_r(code, pd.DataFrame({"a": [1]}), tmp_path)
    assert found == pytest.approx([diagnostic.R_GLM_LIMIT] * 3, abs=0.001)


def test_mantel_haenszel_is_rs(tmp_path):
    from psychometrics.items import mantel_haenszel

    one, two = diagnostic.answers("people", "LE"), diagnostic.answers("transformers", "LE")
    ours = mantel_haenszel(one, two)
    item = ours.index[np.isfinite(ours["delta"]) & (ours["ets"] == "C")][0]
    both = pd.concat([one, two], ignore_index=True)
    table = pd.DataFrame(
        {
            "right": both[item],
            "group": [0] * len(one) + [1] * len(two),
            "score": both.sum(axis=1),
        }
    )
    code = (
        "n <- table(d$score); k <- d$score %in% names(n)[n > 1]; d <- d[k, ]; "
        "m <- mantelhaen.test(table(d$group, d$right, d$score)); "
        "cat(m$estimate, m$statistic, m$p.value)"
    )
    ratio, statistic, p = in_r(code, table, tmp_path)
    # R has the group that comes first and the answer that comes first, 0 and 0, on the diagonal.
    assert 1 / ratio == pytest.approx(ours.loc[item, "odds_ratio"], rel=1e-6)
    assert statistic == pytest.approx(ours.loc[item, "chi2"], rel=1e-6)
    assert p == pytest.approx(ours.loc[item, "p"], rel=1e-6)


def _of_three_scales(people: int, correlation: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    from tests.test_validity import matrix_of, scored, traits

    items = scored(people, traits(people, correlation) * np.array([[1.0], [1.0], [-1.0]]))
    return items, matrix_of(items).reset_index(drop=True)


@pytest.mark.parametrize(("people", "correlation"), [(60, 0.3), (200, 0.7)])
def test_factor_models_are_lavaans(people, correlation, tmp_path):
    from psychometrics.validity import factor_models
    from tests.test_validity import THREE

    items, table = _of_three_scales(people, correlation)
    ours = factor_models(items, THREE)
    names = list(table)
    blocks = [" + ".join(part) for part in (names[:7], names[7:16], names[16:])]
    several = "; ".join(f"f{n} =~ {block}" for n, block in enumerate(blocks))
    kinds = ("chisq", "df", "pvalue", "cfi", "rmsea", "aic", "bic")
    measures = ", ".join(f'"{name}"' for name in kinds)
    for row, model in zip(ours.itertuples(), (f"f =~ {' + '.join(names)}", several), strict=True):
        code = (
            f"m <- suppressWarnings(lavaan::cfa('{model}', d, std.lv=TRUE)); "
            f"cat(lavaan::fitMeasures(m, c({measures})), lavaan::lavInspect(m, 'cor.lv'))"
        )
        theirs = in_r(code, table, tmp_path, needs=("lavaan",))
        own = [row.chi2, row.df, row.p, row.cfi, row.rmsea, row.aic, row.bic]
        assert own == pytest.approx(theirs[:7], rel=1e-4, abs=1e-4)
    phi = np.abs(theirs[7:].reshape(3, 3))
    between = ours.iloc[1][["gad7 ~ phq9", "gad7 ~ soc13", "phq9 ~ soc13"]].to_numpy(float)
    assert np.abs(between) == pytest.approx(phi[[0, 0, 1], [1, 2, 2]], abs=1e-3)


@pytest.mark.parametrize(("people", "correlation"), [(60, 0.3), (200, 0.7)])
def test_omega_hierarchical_is_psychs(people, correlation, tmp_path):
    from psychometrics.validity import omega_hierarchical
    from tests.test_validity import THREE

    items, table = _of_three_scales(people, correlation)
    ours = omega_hierarchical(items, THREE)
    code = (
        "m <- suppressWarnings(suppressMessages(psych::omega(d, nfactors=3, plot=FALSE))); "
        "l <- m$schmid$sl; "
        "cat(m$omega_h, m$omega.tot, sum(l[, 1]^2) / sum(l[, 'h2']))"
    )
    theirs = in_r(code, table, tmp_path, needs=("psych", "GPArotation"))
    own = ours[["hierarchical", "total", "explained"]].to_numpy(float)
    assert own == pytest.approx(theirs, abs=0.003)
