"""The JSON Schema of questionnaires, by which editors complete and check a YAML file.

The book's copy is renewed with ``python -m psychometrics.questionnaires.schema``, whose output is
``book/_static/questionnaire.schema.json``.
"""

from __future__ import annotations

import json
from typing import Any

from .model import Questionnaire


def questionnaire_schema() -> dict[str, Any]:
    """Return the JSON Schema of a questionnaire's file in the project's layout.

    It describes the keys and values of each part. How parts must fit together, such as the items
    of a scale, only :func:`psychometrics.questionnaires.load_questionnaire` checks.

    Returns
    -------
    dict
        A schema in draft 2020-12.

    Examples
    --------
    >>> questionnaire_schema()["properties"]["items"]["minItems"]
    1
    """
    schema = Questionnaire.model_json_schema()
    schema["properties"]["response"] = schema["properties"]["options"]  # the older name
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | schema


if __name__ == "__main__":
    print(json.dumps(questionnaire_schema(), indent=1, ensure_ascii=False))
