"""The client of OpenAI: a message for each item, every second one with a schema for the reply."""

import json
import sys

from openai import OpenAI

asked = json.load(sys.stdin)
lines = "\n".join(f"{number}. {label}" for number, label in enumerate(asked["options"], 1))
schema = {"type": "object", "properties": {"answer": {"enum": [1, 2, 3, 4, 5]}}}
form = {"type": "json_schema", "json_schema": {"name": "rating", "schema": schema}}

answers = []
with OpenAI(base_url=asked["url"], api_key="none") as client:
    for place, item in enumerate(asked["items"]):
        prompt = f"Statement: {item}\n{lines}\nReply with the number alone."
        request = {"model": asked["model"], "seed": 1}
        request["messages"] = [{"role": "user", "content": prompt}]
        if place % 2:
            reply = client.chat.completions.create(**request, response_format=form)
            answers.append(json.loads(reply.choices[0].message.content)["answer"])
        else:
            reply = client.chat.completions.create(**request)
            answers.append(int(reply.choices[0].message.content))

print(json.dumps(answers))
