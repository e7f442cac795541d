"""A questionnaire of one's own: drafts from tables, and rules for wording."""

from __future__ import annotations

import re
import subprocess
import sys
import time

import pandas as pd
import pytest

import psychometrics as pm
from psychometrics.authoring.drafts import COLUMNS, draft
from psychometrics.authoring.option_forms import parse_options
from psychometrics.authoring.wording import LANGUAGES, RULES, wording
from psychometrics.exceptions import ParameterError, PsychometricsError
from psychometrics.paths import book_dir, questionnaires_dir
from psychometrics.questionnaires.library import load_questionnaire
from psychometrics.reports.profiles import assess

COMMAND = [sys.executable, "-c", "from psychometrics.cli import main; main()"]
GOOD = {
    "item": "I am proud of my work.",
    "options": "0=Not at all; 1=Wholly",
    "source": "proud; pleased",
    "inverse": "ashamed; embarrassed",
    "premise": "When I think of my work I am {term}.",
    "hypothesis": "I {intensifier} feel this way.",
}


def _drafted(tmp_path, *rows, name="mine.yaml"):
    return draft(pd.DataFrame(rows), tmp_path / name)


def test_a_draft_loads_and_holds_what_the_table_says(tmp_path):
    path = _drafted(
        tmp_path,
        GOOD | {"scale": "Pride, own"},
        {"item": 'They say "kind": yes # no', "scale": "Others", "reverse": "yes"},
    )
    questionnaire = pm.load_questionnaire(path)
    assert [scale.id for scale in questionnaire.scales] == ["pride_own", "others"]
    assert questionnaire.scales[1].reverse == ("mine_2",)
    assert questionnaire.items[1].text == 'They say "kind": yes # no'
    assert [option.value for option in questionnaire.options] == [0, 1]
    assert len(pm.prompts(questionnaire)) == 4 * 8  # four terms, eight intensifiers
    text = path.read_text()
    assert all(f"# - {rule}:" in text for rule in RULES)
    assert "(taken for it: kind" in text


def test_a_draft_replaces_no_file_and_wants_a_name_that_can_be_an_id(tmp_path):
    _drafted(tmp_path, GOOD)
    with pytest.raises(ParameterError, match="exists already"):
        _drafted(tmp_path, GOOD)
    with pytest.raises(ParameterError, match="lower-case letters"):
        _drafted(tmp_path, GOOD, name="My Scale.yaml")


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ("I sip.,maybe,,", "reverse"),
        ("I sip.,,1=no,", "option"),
        ("I sip.,,1=no;1=yes,", "option"),
        ("I \a sip.,,,", "text"),
    ],
)
def test_a_mistake_is_told_with_the_tables_own_line(tmp_path, second, said):
    table = tmp_path / "tea.csv"
    table.write_text(f'item,reverse,options,source\n"I like\ntea.",,1=no;2=yes,\n\n{second}\n')
    with pytest.raises(PsychometricsError, match=said) as error:
        draft(table, tmp_path / "tea.yaml")
    assert str(error.value).startswith(f"{table}, line 5")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_table_of_items_alone_gets_words_of_agreement_and_says_so(tmp_path, language):
    path = tmp_path / "tea.yaml"
    draft(pd.DataFrame({"item": ["I like tea.", "I pour tea."]}), path, language=language)

    options = pm.load_questionnaire(path).options

    assert [option.value for option in options] == [1, 2, 3, 4, 5, 6]
    assert "The table names no options" in path.read_text()


@pytest.mark.parametrize(
    ("text", "values", "labels"),
    [
        ("0=Not at all; 1=Often", [0, 1], ["Not at all", "Often"]),
        ("1=never, 2=some, but not all, 3=all", [1, 2, 3], ["never", "some, but not all", "all"]),
        ("1: never | 2: often", [1, 2], ["never", "often"]),
        ("1. never; 2. often", [1, 2], ["never", "often"]),
        ("(0) never\n(1) 1.5 times", [0, 1], ["never", "1.5 times"]),
        ("Never (0); Often (1)", [0, 1], ["Never", "Often"]),
        ("no = 0; yes = 1", [0, 1], ["no", "yes"]),
        ("0,5=a; 1,5=b", [0.5, 1.5], ["a", "b"]),
        ("-1=no; 1=yes", [-1, 1], ["no", "yes"]),
        ("1–3", [1, 2, 3], ["1", "2", "3"]),
        ("1-3", [1, 2, 3], ["1", "2", "3"]),
        ("0 to 2", [0, 1, 2], ["0", "1", "2"]),
        ("-1..1", [-1, 0, 1], ["-1", "0", "1"]),
        ("1;2;3", [1, 2, 3], ["1", "2", "3"]),
        ("1, 2, 3", [1, 2, 3], ["1", "2", "3"]),
        ("1-3; 1=never; 3=always", [1, 2, 3], ["never", "2", "always"]),
        ("1-3 (1=never, 3=always)", [1, 2, 3], ["never", "2", "always"]),
        ("Strongly disagree; Neither, nor; Agree", [None] * 3,
         ["Strongly disagree", "Neither, nor", "Agree"]),
        ("nie; manchmal; immer", [None] * 3, ["nie", "manchmal", "immer"]),
    ],
)  # fmt: skip
def test_options_are_read_in_the_forms_in_which_people_write_them(text, values, labels):
    assert parse_options(text, "tea.csv, line 2") == list(zip(values, labels, strict=True))


@pytest.mark.parametrize(
    "text",
    [
        "never",  # one option
        "never, often, always",  # a label may contain a comma
        "never / often",
        "1=never; often",  # is often 2?
        "Strongly agree; Agree; Disagree; Strongly disagree",  # from most to least
        "immer; manchmal; nie",
        "yes; no",
        "5-1",
        "1-1000",
        "1-5; 7=always",
        "1-5; always",
        "1=never; 5=always",  # may be the ends of 1 to 5
        "1,5",
    ],
)
def test_options_that_could_mean_two_things_are_refused_with_their_place(text):
    with pytest.raises(ParameterError, match=r"^tea\.csv, line 2: "):
        parse_options(text, "tea.csv, line 2")


def test_a_draft_numbers_options_from_1_and_says_so(tmp_path):
    path = _drafted(tmp_path, {"item": "I sip.", "options": "Disagree; Unsure; Agree"})

    options = pm.load_questionnaire(path).options

    assert [(option.value, option.label) for option in options] == [
        (1, "Disagree"), (2, "Unsure"), (3, "Agree"),
    ]  # fmt: skip
    assert "count from 1" in path.read_text()


def test_a_table_may_have_one_column_an_option(tmp_path):
    table = tmp_path / "tea.csv"
    table.write_text(
        "item,Option 0,Option 1\nI sip.,no; never,yes\nI pour.,,\nI buy.,rarely,often\n"
    )

    questionnaire = pm.load_questionnaire(draft(table, tmp_path / "tea.yaml"))

    labels = [[o.label for o in questionnaire.choices(item)] for item in questionnaire.items]
    assert labels == [["no; never", "yes"], ["no; never", "yes"], ["rarely", "often"]]
    assert [option.value for option in questionnaire.options] == [0, 1]


def test_options_in_both_kinds_of_columns_are_refused(tmp_path):
    with pytest.raises(ParameterError, match="'options' and '1'"):
        _drafted(tmp_path, {"item": "I sip.", "options": "no; yes", "1": "no", "2": "yes"})


def test_an_item_with_the_options_of_all_items_does_not_repeat_them(tmp_path):
    rows = [{"item": item, "options": "1=no; 2=yes"} for item in ("I sip.", "I pour.")]

    text = _drafted(tmp_path, *rows).read_text()

    assert text.count('label: "yes"') == 1


def test_a_scales_id_keeps_its_umlauts_readable(tmp_path):
    rows = [GOOD | {"scale": "Ärger"}, {"item": "Ich bin da.", "scale": "Größe & Été"}]

    scales = pm.load_questionnaire(_drafted(tmp_path, *rows)).scales

    assert [scale.id for scale in scales] == ["aerger", "groesse_ete"]
    assert [scale.title for scale in scales] == ["Ärger", "Größe & Été"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("item;options\nI sip.;no, yes\n", "tea.csv, line 2: one option only"),
        ("item\nI sip.\nI pour.\n\ni sip.\n", "line 5 is the same question as line 2"),
        ("item,options\nI sip.,0=no; 1=yes\nI sip.,0=no; 1=yes\n", "line 3 is the same question"),
        ("item,scale\nI sip.,Joy\nI pour.,joy\n", "line 3: .* 'Joy' in line 2"),
    ],
)
def test_options_with_commas_doubles_and_two_spellings_are_told_with_their_lines(
    tmp_path, text, said
):
    table = tmp_path / "tea.csv"
    table.write_text(text)
    with pytest.raises(PsychometricsError, match=said):
        draft(table, tmp_path / "tea.yaml")


def test_a_row_without_an_item_is_left_out_with_its_line(tmp_path, ended):
    table = tmp_path / "tea.csv"
    table.write_text("item,scale\nI sip.,Joy\n,Joy\n,\nI pour.,Joy\n")

    with pytest.warns(UserWarning, match="line 3") as told:
        path = draft(table, tmp_path / "tea.yaml")
    code, _, errors = ended("new-questionnaire", table, "-o", "again.yaml")

    assert len(told) == 1
    assert len(pm.load_questionnaire(path).items) == 2
    assert code == 0
    assert [line for line in errors.splitlines() if "line 3" in line]


@pytest.mark.parametrize(
    ("change", "rule", "said"),
    [
        ({"premise": "When I think of my lovely desk I am {term}."}, "neutral", "'lovely'"),
        ({"premise": "When I always work I am {term}."}, "frequency", "'always'"),
        ({"premise": "Of course my work makes me {term}."}, "leading", "'of course'"),
        ({"premise": "My work does not make me {term}."}, "double negative", "'not' in the temp"),
        ({"inverse": "not proud; ashamed"}, "opposites", "'not proud'"),
        ({"premise": "I am a {term} worker."}, "congruence", "'a ashamed'"),
        ({"item": "I am proud of my work and my home and my dog."}, "one question", "several"),
    ],
)
def test_each_rule_finds_what_breaks_it_and_nothing_in_what_does_not(tmp_path, change, rule, said):
    assert wording(_drafted(tmp_path, GOOD)).empty
    found = wording(_drafted(tmp_path, GOOD | change, name="broken.yaml"))
    broken = found[found["rule"] == rule]
    assert len(broken)
    assert broken["finding"].str.contains(said, regex=False).any()


def test_a_term_that_is_no_opposite_is_found_by_models_too(tmp_path):
    row = GOOD | {"source": "proud; pleased; glad", "inverse": "happy; delighted"}
    found = wording(_drafted(tmp_path, row), measured=True)
    assert found["rule"].tolist().count("opposites") == 1
    assert wording(_drafted(tmp_path, GOOD | {"source": "glad"}, name="one.yaml"), True).empty


def test_the_example_table_becomes_a_questionnaire_that_can_be_asked(tmp_path):
    table = questionnaires_dir() / "trust10.csv"
    path = draft(table, tmp_path / "trust10.yaml")
    questionnaire = pm.load_questionnaire(path)
    assert len(questionnaire.items) == 10
    assert len(questionnaire.scales[0].reverse) == 4
    assert set(pd.read_csv(table).columns) <= set(COLUMNS)
    assert wording(questionnaire).empty
    answers = pm.prompts(questionnaire).assign(respondent_id="r", probability=0.5)
    with pytest.raises(ParameterError, match="trust10_5 has no prompts: write"):
        pm.scale_scores(answers, questionnaire)


def _numbers(text):
    return [float(number.replace("−", "-")) for number in re.findall(r"−?\d+(?:\.\d+)?", text)]


def test_the_table_of_the_page_is_what_its_commands_give(tmp_path):
    rows = (questionnaires_dir() / "trust10.csv").read_text(encoding="utf-8").splitlines()[:5]
    (tmp_path / "trust4.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    path = draft(tmp_path / "trust4.csv", tmp_path / "trust4.yaml")
    # Other respondents change no printed number: the smallest one stands for the 'encoders'.
    found = assess("minilm-both-l6-s1", path, against="minilm-mnli-l3-s16")
    given = found.flags.set_index("check")["words"].to_dict()
    row = found.scores.iloc[0]
    given["score"] = f"{row.score:.3f} {row.low:.3f} {row.high:.3f}".replace("-", "−")
    page = (book_dir() / "my-questionnaire.md").read_text(encoding="utf-8")
    printed = dict(re.findall(r"^\| (\w+) \| ([^|]+) \|", page, re.M))
    assert printed.pop("verdict").strip() == row["verdict"]
    for name in ("score", "terms", "trend", "agreeing"):
        fresh = _numbers(given[name])
        for number in _numbers(printed[name]):
            assert min(abs(number - other) for other in fresh) < 0.015, (name, number, fresh)


def test_check_watches_a_file_and_tells_of_each_save(tmp_path):
    path = _drafted(tmp_path, GOOD)
    with subprocess.Popen(
        [*COMMAND, "check", str(path), "--watch"], stdout=subprocess.PIPE, text=True, bufsize=1
    ) as watch:
        lines = []
        while not any("0 finding(s)" in line for line in lines):
            lines.append(watch.stdout.readline())
        time.sleep(0.1)
        path.write_text(path.read_text().replace("of my work I", "of my awful work I"))
        while not any("'awful' takes a side" in line for line in lines):
            lines.append(watch.stdout.readline())
        path.write_text(path.read_text().replace("premise:", "premis:"))
        while not any("premis" in line for line in lines):
            lines.append(watch.stdout.readline())
        watch.kill()


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_a_draft_has_the_intensifiers_of_its_language_and_a_mixture_is_found(tmp_path, language):
    rows = pd.DataFrame({"item": ["a"], "options": ["0=0; 1=1"]})
    path = draft(rows, tmp_path / "own.yaml", language=language)
    assert wording(path).empty
    own = load_questionnaire(path)
    assert len([term for level in own.intensifiers for term in level.terms]) == 8
    other = "de" if language == "en" else "en"
    never = LANGUAGES[other]["frequency"][0]["terms"][0]
    path.write_text(path.read_text().replace(own.intensifiers[0].terms[0], never))
    found = wording(path)
    assert found["rule"].tolist() == ["language"]
    assert f"'{other}'" in found["finding"].iloc[0]
    path.write_text(path.read_text().replace('text: "a"', f'text: "{SENTENCES[other]}"'))
    assert wording(path)["rule"].tolist() == ["language"] * 2


SENTENCES = {"de": "Ich bin mit mir nicht im Reinen.", "en": "They are not with you."}
