"""R.U.Psycho: an experiment with a questionnaire of one's own, for the first of its personas."""

import json
import sys

import rupsycho
from langchain_openai import ChatOpenAI
from rupsycho.models.questionnaire import Questionnaire

asked = json.load(sys.stdin)
labels = [f"{number}. {label}" for number, label in enumerate(asked["options"], 1)]
options = {str(number): {"text": label, "weight": number} for number, label in enumerate(labels, 1)}
scale = {"dimension": "1"}
questionnaire = Questionnaire(
    name="Mini",
    general_instruction="Rate the statement.",
    attributes={"dimension": {"1": "any"}},
    default_answer_options=options,
    instruction_items=[
        {"question": item, "reversed": False, "attributes": scale} for item in asked["items"]
    ],
)

experiment = rupsycho.load_example_experiment("bfi", models={}, seeds=[1])
experiment.questionnaire = questionnaire
null = ChatOpenAI(model=asked["model"], base_url=asked["url"], api_key="none")
experiment.add_model(null, identifier="null")
experiment.run()

table = experiment.get_answers_as_dataframe()
replies = table[table["Persona ID"] == table["Persona ID"].iloc[0]]["Answer"]
print(json.dumps([[label in reply for label in labels].index(True) + 1 for reply in replies]))
