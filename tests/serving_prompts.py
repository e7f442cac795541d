"""Prompts as other tools send them, with the items and the options that they have.

Each was printed by the tool named, or copied from its template, in November 2026.
"""

# ruff: noqa: E501 - prompts are broken where it helps to read them

from __future__ import annotations

from typing import NamedTuple

from psychometrics import load_questionnaire, messages

PARTY = "I am the life of the party."
CONCERN = "I feel little concern for others."
FIVE = "very inaccurate, moderately inaccurate, neither accurate nor inaccurate, moderately "
FIVE += "accurate, very accurate"
WORDS = FIVE.split(", ")
NUMBERS = ["1", "2", "3", "4", "5"]


class Form(NamedTuple):
    """A prompt, what it asks, and the reply of the respondent that agrees."""

    name: str
    text: str
    items: list[str]
    labels: list[str]
    reply: str
    system: str = ""


MINI = load_questionnaire("ipip20")
GAD7 = load_questionnaire("gad7")


def _own(name: str, questionnaire, count: int, shown: list[str], answer: str, **conditions) -> Form:
    items = questionnaire.items[:count]
    *system, user = [
        one["content"] for one in messages.messages(questionnaire, items, **conditions)
    ]
    texts = [questionnaire.statement(item) for item in items]
    return Form(name, user, texts, shown, answer, "".join(system))


_INSPECT = (
    "Answer the following multiple choice question. The entire content of your response should be "
    "of the following format: 'ANSWER: $LETTER' (without quotes) where LETTER is one of A,B,C.\n\n"
    f"{PARTY}\n\nA) inaccurate\nB) neither\nC) accurate"
)
_INSPECT_THINKING = (
    "Answer the following multiple choice question. The last line of your response should be of "
    "the following format: 'ANSWER: $LETTER' (without quotes) where LETTER is one of A,B. Think "
    f"step by step before answering.\n\n{PARTY}\n\nA) no\nB) yes"
)
_EDSL_END = "\n\nRespond only with a string corresponding to one of the options.\n\n\nAfter the "
_EDSL_END += (
    "answer, you can put a comment explaining why you chose that option on the next line.\n"
)
_EDSL_CODE = "\n\n\nRespond only with the code corresponding to one of the options."
_EDSL_LINES = "\n    \n".join(WORDS)
_QSTN = f"Please tell us how you feel about:\nHow accurate is this? {PARTY}\n"
_QSTN_OPTIONS = ", ".join(f"{n}: {word}" for n, word in enumerate(WORDS, start=1))
_QSTN_LABELS = _QSTN_OPTIONS.split(", ")
_RUP_OPTIONS = "1. Disagree strongly, 2. Disagree a little, 3. Neither agree nor disagree, "
_RUP_OPTIONS += "4. Agree a little, 5. Agree strongly"
_RUP_CHOOSE = (
    "Choose from the list of answer options to answer the question. Answer the question using only "
    "the provided answer options. If none of the options are correct, choose the option that is "
    "closest to being correct."
)
_BENCH = (
    "You can only reply from 1 to 5 in the following statements. Here are a number of "
    "characteristics that may or may not apply to you. Please indicate the extent to which you "
    'agree or disagree with that statement. 1 denotes "strongly disagree", 2 denotes "a little '
    'disagree", 3 denotes "neither agree nor disagree", 4 denotes "little agree", 5 denotes '
    f'"strongly agree". Here are the statements, score them one by one:\n1. {PARTY}\n2. {CONCERN}'
)

FORMS = [
    _own("ours, two items", MINI, 2, NUMBERS, "1: 5\n2: 5"),
    _own("ours, one item", MINI, 1, NUMBERS, "1: 5"),
    _own("ours, letters", MINI, 2, list("ABCDE"), "1: E\n2: E", labels="alphabetical"),
    _own("ours, JSON", MINI, 2, NUMBERS, '{"1": 5, "2": 5}', reply="json"),
    _own("ours, the choice alone", MINI, 1, NUMBERS, "5", reply="choice"),
    _own("ours, four options", GAD7, 7, list("0123"), "\n".join(f"{n}: 3" for n in range(1, 8))),
    _own("ours, reversed", MINI, 1, NUMBERS, "1: 1", orders=[(4, 3, 2, 1, 0)]),
    _own("ours, another wording", MINI, 2, NUMBERS, "1: 5\n2: 5", wording="v3"),
    Form("inspect, multiple choice", _INSPECT, [PARTY], list("ABC"), "ANSWER: C"),
    Form("inspect, with thoughts", _INSPECT_THINKING, [PARTY], list("AB"), "ANSWER: B"),
    Form(
        "EDSL, multiple choice",
        f"\n{PARTY}\n\n    \n{_EDSL_LINES}\n    \n\nOnly 1 option may be selected.{_EDSL_END}",
        [PARTY],
        WORDS,
        "very accurate",
    ),
    Form(
        "EDSL, codes",
        f"\n{PARTY}\n\n0: very inaccurate\n    \n1: neither\n    \n2: very accurate\n    \n\nOnly 1 "
        f"option may be selected.{_EDSL_CODE}\n\n",
        [PARTY],
        list("012"),
        "2",
    ),
    Form(
        "EDSL, linear scale",
        "How much do you agree: I get upset easily.\n\n1 : strongly disagree\n\n2 : \n\n3 : \n\n4 : "
        f"\n\n5 : strongly agree\n\nOnly 1 option may be selected.{_EDSL_CODE} "
        'E.g., "1" or "5" by itself.\n\nAfter the answer, you can put a comment explaining why you '
        "chose that option on the next line.\n\n",
        ["How much do you agree: I get upset easily."],
        NUMBERS,
        "5",
    ),
    Form(
        "EDSL, matrix",
        "How accurate?\n\nRows:\n    \n0: I am quiet\n    \n1: I talk a lot\n    \n\nColumns:\n    "
        "\n0: 1\n (no)\n    \n1: 2\n    \n2: 3\n (yes)\n    \n\n\nSelect one column option for each "
        "row.\n Please respond with a dictionary mapping row codes to column codes. E.g., "
        '{"0": 1, "1": 3}\n\n\nAfter the answer, you can put a comment explaining your choices on '
        "the next line.\n ",
        ["I am quiet", "I talk a lot"],
        list("012"),
        '{"0": 2, "1": 2}',
    ),
    Form(
        "EDSL, five points",
        "\nI like order.\n\n    \nStrongly disagree\n    \nDisagree\n    \nNeutral\n    \nAgree\n   "
        f" \nStrongly agree\n    \n\nOnly 1 option may be selected.{_EDSL_END}",
        ["I like order."],
        ["Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree"],
        "Strongly agree",
    ),
    Form(
        "EDSL, yes or no",
        "\nDo you like order?\n\n    \nNo\n    \nYes\n    \n\nOnly 1 option may be selected.\n\n"
        "Please respond with just your answer. \n\n\nAfter the answer, you can put a comment "
        "explaining your response.\n\n",
        ["Do you like order?"],
        ["No", "Yes"],
        "Yes",
    ),
    Form(
        "EDSL, JSON",
        f"{PARTY}\n\n        0: no\n        1: yes\n\nOnly 1 option may be selected.\n\nReturn a valid "
        'JSON formatted like this:\n\n{"answer": <put answer code here>, "comment": "<put '
        'explanation here>"}',
        [PARTY],
        ["0", "1"],
        '{"answer": 1, "comment": "None: a null respondent does not read the item."}',
    ),
    Form(
        "QSTN",
        f"{_QSTN}Options are: {_QSTN_OPTIONS}\n",
        [f"How accurate is this? {PARTY}"],
        _QSTN_LABELS,
        "5: very accurate",
        "You are a helpful assistant.",
    ),
    Form(
        "QSTN, JSON",
        f"{_QSTN}Options are: {_QSTN_OPTIONS}\nYou only respond with the most probable answer option "
        f'in the following JSON format:\n{{\n  "answer": "Options are: {_QSTN_OPTIONS}"\n}}',
        [f"How accurate is this? {PARTY}"],
        _QSTN_LABELS,
        '{"answer": "5: very accurate"}',
    ),
    Form(
        "QSTN, a scale",
        f"{_QSTN}Options range from 1: very inaccurate to 5: very accurate\n",
        [f"How accurate is this? {PARTY}"],
        ["1: very inaccurate", "2", "3", "4", "5: very accurate"],
        "5: very accurate",
    ),
    Form(
        "QSTN, words",
        f"{_QSTN}Please select one of the following choices: disagree, neutral, agree",
        [f"How accurate is this? {PARTY}"],
        ["disagree", "neutral", "agree"],
        "agree",
    ),
    Form(
        "R.U.Psycho, the default",
        " \nQuestion:\nMs Muller is 18 years old. was asked the following question. I see myself as "
        f"someone who is talkative.\n\nAnswer Options: \n{_RUP_OPTIONS}\n\nInstructions: "
        f"{_RUP_CHOOSE}\n\nAnswer:\n",
        [
            "Ms Muller is 18 years old. was asked the following question. I see myself as someone who "
            "is talkative."
        ],
        _RUP_OPTIONS.split(", "),
        "5. Agree strongly",
        '\nObjective: "Here are a number of characteristics."\nAnswer with respect to the following '
        "persona description and question.\n",
    ),
    Form(
        "R.U.Psycho, its example",
        f"Question: I see myself as someone who is talkative.\nAnswer Options: {_RUP_OPTIONS}\n"
        "Answer:",
        ["I see myself as someone who is talkative."],
        _RUP_OPTIONS.split(", "),
        '{answer: "5. Agree strongly"}',
        "Objective: Answer as the following survey participant: Ms Muller is 18 years old and very "
        f"open minded.\nHere are a number of characteristics.\nInstructions: {_RUP_CHOOSE} The "
        'solution must be provided in this format: {answer: "answer option"}',
    ),
    Form(
        "PsychoBench",
        _BENCH,
        [PARTY, CONCERN],
        NUMBERS,
        "1: 5\n2: 5",
        'You are a helpful assistant who can only reply numbers from 1 to 5. Format: "statement '
        'index: score".',
    ),
    Form(
        "lm-eval, MMLU as chat",
        f"The following are multiple choice questions.\n\nWhich is a fruit?\nA. stone\nB. pear\n"
        f"Answer: B\n\n{PARTY}\nA. no\nB. yes\nAnswer:",
        [PARTY],
        ["A", "B"],
        "B",
    ),
    Form(
        "lm-eval, MMLU-Pro",
        "The following are multiple choice questions. Think step by step and then finish your answer "
        'with "the answer is (X)" where X is the correct letter choice.\n\nQuestion:\n'
        f"{PARTY}\nOptions:\nA. no\nB. perhaps\nC. yes\nAnswer: Let's think step by step.",
        [PARTY],
        list("ABC"),
        "the answer is (C)",
    ),
    Form(
        "lm-eval, Llama",
        "Given the following question and three candidate answers (A, B and C), choose the best "
        f"answer.\nQuestion: {PARTY}\nA. no\nB. perhaps\nC. yes\nYour response should end with "
        '"The best answer is [the_answer_letter]" where the [the_answer_letter] is one of A, B or C.',
        [PARTY],
        list("ABC"),
        "The best answer is C",
    ),
    Form(
        "inspect-evals, personality",
        "Answer the following multiple choice question. The entire content of your response should "
        "be of the following format: 'ANSWER: $LETTER' (without quotes) where LETTER is one of "
        "A,B,C,D,E.\n\nGiven the statement: You are the life of the party. Please choose from the "
        "following options:\n\nA) Very Accurate\nB) Moderately Accurate\nC) Neither Accurate Nor "
        "Inaccurate\nD) Moderately Inaccurate\nE) Very Inaccurate",
        ["Given the statement: You are the life of the party."],
        list("ABCDE"),
        "ANSWER: A",
    ),
    Form(
        "Serapio-García et al.",
        'For the following task, respond in a way that matches this description: "I like to garden.'
        '" Considering the statement, please indicate the extent to which you agree on a scale '
        'from 1 to 5 (where 1 = "disagree strongly", 2 = "disagree a little", 3 = "neither '
        'agree nor disagree", 4 = "agree a little", and 5 = "agree strongly"):\n'
        f"{PARTY}",
        [PARTY],
        NUMBERS,
        "5",
    ),
    Form(
        "MPI",
        'Given a statement of you: "You worry about things."\nPlease choose from the '
        "following options to identify how accurately this statement describes you.\nOptions:\n"
        "(A). Very Accurate\n(B). Moderately Accurate\n(C). Neither Accurate Nor Inaccurate\n(D). "
        "Moderately Inaccurate\n(E). Very Inaccurate\n\nAnswer:",
        ["You worry about things."],
        list("ABCDE"),
        "A",
    ),
    Form(
        "a scale of seven",
        f"On a scale from 1 to 7, how much do you agree? {PARTY}",
        [PARTY],
        list("1234567"),
        "7",
    ),
    Form(
        "ends in brackets",
        f'Rate the statement "{PARTY}" from 1 (strongly disagree) to 5 '
        "(strongly agree). Reply with the number only.",
        [PARTY],
        NUMBERS,
        "5",
    ),
    Form(
        "words before numbers",
        f"{PARTY}\nstrongly disagree (1), disagree (2), neutral (3), agree (4), strongly agree (5)",
        [PARTY],
        NUMBERS,
        "5",
    ),
    Form(
        "ends in words",
        f"Statement: {PARTY}\nUse a scale where 1 means strongly agree and 7 means "
        "strongly disagree.",
        [PARTY],
        list("1234567"),
        "1",
    ),
    Form("true or false", f"True or false: {PARTY}", [PARTY], ["True", "false"], "True"),
    Form(
        "bullets",
        f"{PARTY}\n\nHow often?\n\n- never\n- sometimes\n- always\n\nReply with one option.",
        ["How often?"],
        ["never", "sometimes", "always"],
        "always",
    ),
    Form(
        "JSON",
        '{"question": "I am the life of the party.", "choices": ["no", "perhaps", "yes"]}',
        [PARTY],
        ["no", "perhaps", "yes"],
        "yes",
    ),
    Form(
        "options for each item",
        "Answer in two lines.\n1. I am quiet.\nA) no\nB) yes\n\n2. I talk "
        "a lot.\nA) never\nB) at times\nC) always",
        ["I am quiet.", "I talk a lot."],
        [],
        "1: B\n2: C",
    ),
    Form(
        "a tag",
        f"{PARTY}\nA) no\nB) yes\nWrite your answer as <answer>A</answer>.",
        [PARTY],
        ["A", "B"],
        "<answer>B</answer>",
    ),
    Form(
        "options in the system text", PARTY, [PARTY], ["yes", "no"], "yes", "Reply with yes or no."
    ),
    Form(
        "a table",
        "**Question 3/44**\n> I worry about things.\n\n| Score | Meaning |\n|---|---|\n| 1 | Never |\n| 2 | Sometimes |\n| 3 | Always |\n\nAnswer with the score only.",
        ["> I worry about things."],
        list("123"),
        "3",
    ),
    Form(
        "PHQ in brackets",
        "Over the last 2 weeks, how often have you felt down?\n(0) Not at all\n(1) Several days\n(2) More than half the days\n(3) Nearly every day",
        ["Over the last 2 weeks, how often have you felt down?"],
        list("0123"),
        "3",
    ),
    Form(
        "German",
        "Wie sehr stimmen Sie zu? Antworten Sie mit einer Zahl von 1 (stimme gar nicht zu) bis 5 (stimme voll zu).\nIch bin gesprächig.",
        ["Ich bin gesprächig."],
        NUMBERS,
        "5",
    ),
    Form(
        "a list of objects",
        'Rate each item from 1 to 5. Return a JSON array of objects like [{"item": 1, "score": 3}].\n1) I am calm\n2) I talk a lot',
        ["I am calm", "I talk a lot"],
        NUMBERS,
        '[{"item": 1, "score": 5}, {"item": 2, "score": 5}]',
    ),
    Form(
        "OpinionQA",
        "Question: How much, if at all, do you worry about crime?\nA. A great deal\nB. A fair amount\nC. Not too much\nD. Not at all\nE. Refused\nAnswer:",
        ["How much, if at all, do you worry about crime?"],
        list("ABCDE"),
        "A",
    ),
    Form(
        "XML",
        "<item>I am calm.</item>\n<options>\n<option>never</option>\n<option>always</option>\n</options>",
        ["I am calm."],
        ["never", "always"],
        "always",
    ),
    Form(
        "a scale in each line",
        "Rate yourself:\n\n1. Am the life of the party. [1-5]\n2. Feel little concern for others. [1-5]",
        ["Am the life of the party.", "Feel little concern for others."],
        NUMBERS,
        "1: 5\n2: 5",
    ),
    Form(
        "options in the line above",
        "Options: 1 = never; 2 = sometimes; 3 = always\n\n1. I am calm\n2. I talk a lot",
        ["I am calm", "I talk a lot"],
        list("123"),
        "1: 3\n2: 3",
    ),
    Form(
        "letters in a line",
        "I enjoy parties.\n(A) Strongly disagree (B) Disagree (C) Neutral (D) Agree (E) Strongly agree. Answer with a letter.",
        ["I enjoy parties."],
        list("ABCDE"),
        "E",
    ),
]

_WORRY = "How often do you worry?"
_OFTEN = ["never", "sometimes", "always"]
FORMS += [
    Form(
        "bullets below the question",
        f"{_WORRY}\n- never\n- sometimes\n- always",
        [_WORRY],
        _OFTEN,
        "always",
    ),
    Form("boxes", f"{_WORRY}\n[ ] never\n[ ] sometimes\n[ ] always", [_WORRY], _OFTEN, "always"),
    Form(
        "Markdown",
        f"## Question\n{_WORRY}\n\n## Options\n- never\n- sometimes\n- always",
        [_WORRY],
        _OFTEN,
        "always",
    ),
    Form(
        "HTML", f"<p>{_WORRY}</p><ul><li>no</li><li>yes</li></ul>", [_WORRY], ["no", "yes"], "yes"
    ),
    Form("tabs", "I am calm.\n1\tno\n2\tmaybe\n3\tyes", ["I am calm."], list("123"), "3"),
    Form("other digits", f"{_WORRY}\n１．never\n２．always", [_WORRY], list("12"), "2"),
    Form("keys", "I am calm.\n1️⃣ no\n2️⃣ yes", ["I am calm."], list("12"), "2"),
    Form(
        "minus", "Rate from −2 to 2: I am calm.", ["I am calm."], ["-2", "-1", "0", "1", "2"], "2"
    ),
    Form(
        "Spanish",
        "En una escala del 1 al 5, ¿está de acuerdo? Soy tranquilo.",
        ["En una escala del 1 al 5, ¿está de acuerdo? Soy tranquilo."],
        NUMBERS,
        "5",
    ),
    Form(
        "items with codes",
        "Rate from 1 to 5.\nBFI1: I am calm.\nBFI2: I talk a lot.",
        ["I am calm.", "I talk a lot."],
        NUMBERS,
        "BFI1: 5\nBFI2: 5",
    ),
    Form(
        "items with bullets",
        "Rate from 1 to 5:\n- I am calm.\n- I talk a lot.",
        ["I am calm.", "I talk a lot."],
        NUMBERS,
        "1: 5\n2: 5",
    ),
    Form(
        "bullets that are not items",
        "Rate from 1 to 5: I am calm.\nRules:\n- Reply with a number only.\n- Do not explain.",
        ["I am calm."],
        NUMBERS,
        "5",
    ),
    Form(
        "a role in bullets",
        "You are Ann.\n- You are 30\n- You like cats\nRate from 1 to 5: I am calm.",
        ["I am calm."],
        NUMBERS,
        "5",
    ),
    Form(
        "options by letter in JSON",
        '{"question": "I am calm.", "options": {"A": "no", "B": "maybe", "C": "yes"}}',
        ["I am calm."],
        list("ABC"),
        "C",
    ),
    Form(
        "objects in JSON",
        '{"items": [{"id": "q1", "item": "I am calm."}, {"id": "q2", "item": "I talk."}], '
        '"options": [{"value": 1, "label": "no"}, {"value": 2, "label": "yes"}]}',
        ["I am calm.", "I talk."],
        ["1", "2"],
        "q1: 2\nq2: 2",
    ),
    Form(
        "numbers in JSON",
        '{"statement": "I am calm.", "scale": [1, 2, 3, 4, 5]}',
        ["I am calm."],
        NUMBERS,
        "5",
    ),
    Form(
        "texts in JSON",
        '{"scale": {"1": "never", "2": "often"}, "items": ["I am calm.", "I talk."]}',
        ["I am calm.", "I talk."],
        ["1", "2"],
        "1: 2\n2: 2",
    ),
]

WITHOUT_OPTIONS = [
    "Hello, how are you?",
    "Write a story about a cat.",
    "",
    "Tell me about 1984.",
    "People from 18 to 65 took part. What do you think of that?",
    "Between 2010 and 2020, did you feel sad?",
    "Rate from 1 to 1000: I am calm.",
    "Do you agree, disagree or neither agree nor disagree: I am calm.",
    "I am calm.\n1. no\n3. yes",
    "Rules:\n- Stay honest\n- Keep it short\nWhat is your name?",
]
