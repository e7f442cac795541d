"""Printed statistics: what is possible is what enumeration finds; habits are what they simulate."""

from __future__ import annotations

import itertools
import math
from decimal import ROUND_HALF_DOWN, ROUND_HALF_UP, Decimal

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from typer.testing import CliRunner

from psychometrics.cli import app
from psychometrics.exceptions import ParameterError
from psychometrics.measures import printed
from psychometrics.measures.reliability import alpha
from psychometrics.reports.audits import PrintedScale, audit


def _as_printed(value: float, decimals: int) -> set[str]:
    places = Decimal(1).scaleb(-decimals)
    number = Decimal(repr(round(float(value), 12)))
    return {str(number.quantize(places, how)) for how in (ROUND_HALF_UP, ROUND_HALF_DOWN)}


@pytest.mark.parametrize(("n", "parts", "decimals"), [(3, 1, 1), (4, 1, 2), (3, 2, 1)])
def test_means_are_possible_where_a_sample_has_them_and_so_are_its_sds(n, parts, decimals):
    means, pairs = set(), set()
    for scores in itertools.combinations_with_replacement(range(parts, 5 * parts + 1), n):
        mean = np.mean(scores) / parts
        means |= _as_printed(mean, decimals)
        for ddof in (0, 1):
            sd = np.std(scores, ddof=ddof) / parts
            pairs |= set(itertools.product(_as_printed(mean, decimals), _as_printed(sd, decimals)))

    step = Decimal(1).scaleb(-decimals)
    wanted = [str(k * step) for k in range(10**decimals, 5 * 10**decimals + 1)]
    grim = {mean for mean in wanted if len(printed.possible_totals(mean, n, parts))}
    assert grim == means
    sds = [str(k * step) for k in range(0, 3 * 10**decimals)]
    allowed = {
        pair
        for pair in itertools.product(sorted(means), sds)
        if printed.possible_squares(*pair, n, 1, 5, parts)
    }
    assert pairs <= allowed, "no sample that exists is called impossible"
    assert len(allowed) <= len(grim) * len(sds) / 2, "and most of the others are"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 7), min_size=2, max_size=40), st.integers(0, 3))
def test_answers_that_were_given_always_fit_and_a_sample_with_their_numbers_is_made(scores, places):
    mean = f"{np.mean(scores):.{places}f}"
    sd = f"{np.std(scores, ddof=1):.{places}f}"
    assert len(printed.possible_totals(mean, len(scores)))
    assert printed.possible_squares(mean, sd, len(scores), 1, 7)
    sample = printed.reconstruct_answers(mean, sd, len(scores), 1, 7)
    if sample is not None:
        made = np.repeat(sample.index.to_numpy(), sample)
        assert len(made) == len(scores)
        half = 0.5 * 10.0**-places + 1e-9
        assert abs(made.mean() - float(mean)) <= half
        spreads = [made.std(), made.std(ddof=1)]
        assert min(abs(spread - float(sd)) for spread in spreads) <= half


def test_alpha_of_answers_at_random_lies_in_its_interval_in_95_of_100_samples():
    rng = np.random.default_rng(0)
    low, high = printed.alpha_of_chance(6, 25)
    drawn = [alpha(pd.DataFrame(rng.normal(size=(25, 6))))["alpha"] for _ in range(1000)]
    inside = np.mean([low <= value <= high for value in drawn])
    assert abs(inside - 0.95) < 3 * math.sqrt(0.95 * 0.05 / 1000)


@pytest.mark.parametrize("reverse_keyed", [0, 2, 4, 7])
def test_a_habit_of_agreeing_gives_the_alpha_and_correlation_of_its_formula(reverse_keyed):
    rng = np.random.default_rng(1)
    agreeing = rng.normal(size=(50_000, 1))
    raw = np.sqrt(0.3) * agreeing + np.sqrt(0.7) * rng.normal(size=(50_000, 14))
    signs = np.repeat([1, -1], [7 - reverse_keyed, reverse_keyed])
    first, second = raw[:, :7] * signs, raw[:, 7:]
    expected = printed.alpha_of_habit(0.3, 7, reverse_keyed)
    assert abs(alpha(pd.DataFrame(first))["alpha"] - expected) < 0.02
    r = np.corrcoef(first.sum(1), second.sum(1))[0, 1]
    assert abs(printed._correlation_of_habit(0.3, (7, 7), (reverse_keyed, 0)) - r) < 0.02


@given(st.floats(0.01, 0.98), st.integers(3, 40), st.data())
def test_the_habit_behind_an_alpha_and_a_correlation_is_found_again(share, items, data):
    reverse_keyed = data.draw(st.integers(0, items // 4))
    value = printed.alpha_of_habit(share, items, reverse_keyed)
    if (items - 2 * reverse_keyed) ** 2 != items:
        assert printed.habit_of_alpha(value, items, reverse_keyed) == pytest.approx(share, abs=1e-6)
    r = printed._correlation_of_habit(share, (items, items), (reverse_keyed, 0))
    if abs(r) < 0.999:
        again = printed.habit_of_correlation(r, (items, items), (reverse_keyed, 0))
        assert printed._correlation_of_habit(again, (items, items), (reverse_keyed, 0)) == (
            pytest.approx(r, abs=1e-6)
        )


def test_a_test_of_copies_is_the_test_of_one_copy():
    rng = np.random.default_rng(2)
    groups = [rng.normal(size=12), rng.normal(0.8, size=12)]
    copied = stats.f_oneway(*(np.repeat(group, 5) for group in groups))
    once = stats.f_oneway(*groups)
    n = 120
    exact = copied.statistic * (24 - 2) / (n - 2) * 5  # the residual's degrees of freedom, exactly
    assert exact / 5 == pytest.approx(once.statistic)
    statistic, p = printed.repeated_answers_test(copied.statistic, 1, n, 24)
    assert statistic == pytest.approx(copied.statistic / 5)
    assert p == pytest.approx(once.pvalue, rel=0.5)


def _row(**values) -> dict:
    return {"name": "E", "items": 10, "lowest": 1, "highest": 5, **values}


def _results(*rows: dict) -> dict[str, str]:
    return audit(pd.DataFrame(rows)).set_index("check")["result"].to_dict()


def test_the_example_of_grims_authors_does_not_fit_and_its_neighbour_does():
    row = {"name": "a", "items": 1, "n": 28}
    assert _results(row | {"mean": "5.19"}) == {"possible mean": "does not fit"}
    assert _results(row | {"mean": "5.18"}) == {"possible mean": "fits"}


def test_a_model_that_differs_as_ten_people_does_not_as_one_respondent():
    row = _row(n=10, models=1, mean="3.94", sd="0.21", norm_mean=3.4, norm_sd=0.8, norm_n=500)
    findings = audit(pd.DataFrame([row])).set_index("check")
    assert findings.loc["unit", "result"] == "changes"
    alone = 2 * stats.t.sf((3.94 - 3.4) / (0.8 * math.sqrt(1 + 1 / 500)), 499)
    assert findings.loc["unit", "value"] == pytest.approx(alone)


def test_balanced_keys_exclude_a_habit_of_agreeing_and_equal_keys_do_not():
    same, balanced = _row(reverse_keyed=0, alpha=0.8), _row(reverse_keyed=5, alpha=0.8)
    assert _results(same)["alpha of a habit"] == "also without the trait"
    assert _results(balanced)["alpha of a habit"] == "not explained by it"


def test_a_questionnaire_that_is_known_here_fills_its_items_and_brings_its_impostors():
    row = {"name": "a", "questionnaire": "gad7", "n": 100, "alpha": 0.6}
    assert set(_results(row)) == {"alpha of chance", "alpha of a habit", "alpha of impostors"}
    assert _results(row)["alpha of impostors"] == "also without the trait"


def test_a_file_of_yaml_keeps_decimals_as_a_file_of_csv_does(tmp_path):
    (tmp_path / "t.yaml").write_text("- name: a\n  items: 1\n  n: 3\n  mean: 2.50\n")
    (tmp_path / "t.csv").write_text("name,items,n,mean\na,1,3,2.50\n")
    for file in ("t.yaml", "t.csv"):
        assert audit(tmp_path / file)["result"].tolist() == ["does not fit"]


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"itms": 3}, "itms"),
        ({"mean": "about 3"}, "mean"),
        ({"n": 0}, "n"),
        ({"n": 3, "models": 5}, "models"),
        ({"reverse_keyed": 11}, "reverse_keyed"),
        ({"lowest": 5, "highest": 1}, "lowest"),
        ({"r": 0.3}, "correlates_with"),
        ({"r": 1.3, "correlates_with": "E"}, "r"),
        ({"r": 0.3, "correlates_with": "nobody"}, "correlates_with"),
        ({"t": 2, "f": 4}, "t"),
        ({"r": 0.3, "correlates_with": "a"}, "correlates_with"),
        ({"mean": "3,52"}, "mean"),
        ({"mean": "3.52*"}, "mean"),
        ({"mean": "9" * 400}, "mean"),
        ({"alpha": -np.inf}, "alpha"),
        ({"t": np.inf}, "t"),
        ({"sd": "-1.0"}, "sd"),
        ({"lowest": 3, "highest": 3}, "highest"),
        ({"items": 10**7}, "items"),
        ({"questionnaire": "unheard-of"}, "questionnaire"),
        ({"questionnaire": "bfi"}, "scale"),
        ({}, "nothing"),
    ],
)
def test_contradictory_and_unknown_values_are_refused_by_their_name(values, field):
    with pytest.raises(ParameterError, match=rf"\b{field}\b"):
        audit(pd.DataFrame([_row(**values)]))


@pytest.mark.parametrize("table", [None, 5, [{"name": "a"}]])
def test_what_is_no_table_is_refused(table):
    with pytest.raises(ParameterError):
        audit(table)


def test_columns_in_few_digits_and_repeated_columns_are_refused():
    row = pd.DataFrame([_row(mean=3.52)])
    with pytest.raises(ParameterError, match="mean"):
        audit(row.astype({"mean": "float32"}))
    with pytest.raises(ParameterError):
        audit(pd.concat([row, row["mean"]], axis=1))


@pytest.mark.parametrize(
    "content",
    [
        b"- name: [",
        b"-\tname: E",
        b"- name: E\n  n: \x01",
        "- name: É".encode("latin-1"),
        b"- name: E\n  n: 28\n  n: 30\n  alpha: 0.9",
        b"name: E\nalpha: 0.9",
        b"[" * 500,
        b"",
    ],
)
def test_malformed_yaml_is_refused(content, tmp_path):
    (tmp_path / "t.yaml").write_bytes(content)
    with pytest.raises(ParameterError):
        audit(tmp_path / "t.yaml")


def test_minus_signs_of_print_and_spaces_around_numbers_are_read(tmp_path):
    (tmp_path / "t.csv").write_text("name, items, n, alpha\na, 5, 20, −.20\n", encoding="utf-8")
    (tmp_path / "t.yaml").write_text(
        "- name: a\n  items: 5\n  n: 20\n  mean: ~\n  alpha: −.20\n", "utf-8"
    )
    expected = audit(pd.DataFrame([{"name": "a", "items": 5, "n": 20, "alpha": -0.2}]))
    for file in ("t.csv", "t.yaml"):
        pd.testing.assert_frame_equal(audit(tmp_path / file), expected)


@pytest.mark.parametrize(
    ("numbers", "result"),
    [
        ({"n": 200, "items": 200, "mean": "3.52", "sd": "1.20"}, "cannot tell"),
        ({"n": 19_000, "items": 1, "mean": "4", "sd": "1"}, None),
    ],
)
@pytest.mark.timeout(60)
def test_large_tables_are_audited_in_seconds(numbers, result):
    row = {"name": "a", "lowest": 1, "highest": 5, **numbers}
    assert _results(row).get("possible SD") == result


def test_the_command_prints_a_line_for_each_check_and_writes_the_table(tmp_path):
    table = tmp_path / "paper.csv"
    table.write_text("name,items,n,mean,alpha,reverse_keyed\nE,10,28,3.94,.8,0\n")
    result = CliRunner().invoke(app, ["audit", str(table), "--output", str(tmp_path / "out.csv")])
    assert result.exit_code == 0, result.output
    kept = pd.read_csv(tmp_path / "out.csv")
    assert list(kept["check"]) == ["possible mean", "alpha of chance", "alpha of a habit"]
    assert all(check in result.output for check in kept["check"])


def test_the_page_of_an_audit_begins_with_the_worst_of_each_line(tmp_path):
    table, page = tmp_path / "paper.csv", tmp_path / "audit.html"
    table.write_text("name,items,n,mean,alpha,reverse_keyed\nE,1,28,5.19,.8,0\nN,1,28,5.18,,\n")
    result = CliRunner().invoke(app, ["audit", str(table), "--output", str(page)])
    assert result.exit_code == 0, result.output
    soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    badges = [heading.get_text(" ", strip=True) for heading in soup.select(".statement h3")]
    assert badges == ["E ✗ does not fit", "N ✓ fits"]
    assert "28 whole answers have the mean 5.19" in soup.select_one(".statement p").get_text()


def test_every_field_of_a_row_says_what_it_is():
    assert all(field.description for field in PrintedScale.model_fields.values())
