"""Write ``book/respondents.md``, a datasheet for each respondent.

Run ``python -m recipes.datasheets``.
"""

from __future__ import annotations

from psychometrics.asking.population import population_table
from psychometrics.models.embedded import embedded_head
from psychometrics.paths import book_dir

from .templating import fill_template


def datasheets() -> str:
    """Return datasheets of all respondents in the book: their making, quality and limits."""
    members = population_table()
    return fill_template(
        "datasheets.md.j2",
        members=members.to_dict("records"),
        decoders=int((members["family"] == "SmolLM2").sum()),
        default=int(members["default"].sum()),
        cola=embedded_head("cola")[1],
        mlm=embedded_head("mlm")[1],
    )


if __name__ == "__main__":
    (book_dir() / "respondents.md").write_text(datasheets(), encoding="utf-8")
