"""Write ``book/respondents.md``, a datasheet for each respondent.

Run ``python -m recipes.datasheets``.
"""

from __future__ import annotations

from psychometrics.asking.population import population_table
from psychometrics.models.embedded import embedded_head
from psychometrics.paths import book_dir


def datasheets() -> str:
    """Return datasheets of all respondents in the book: their making, quality and limits."""
    heads = {name: embedded_head(name)[1] for name in ("cola", "mlm")}
    blocks = []
    members = population_table()
    decoders = int((members["family"] == "SmolLM2").sum())
    default = int(members["default"].sum())
    for row in members.to_dict("records"):
        decoder = row["family"] == "SmolLM2"
        base = "SmolLM2-135M-Instruct" if decoder else "all-MiniLM-L6-v2"
        data = " and ".join(row["data"].upper().split("+"))
        epochs = "epoch" if row["epochs"] == 1 else "epochs"
        made = f"{row['pairs']:,.0f} pairs of {data}, {row['epochs']:g} {epochs}, "
        made += f"seed {row['seed']}"

        if decoder:
            made += f"; LoRA of rank {row['rank']:.0f} on layers {row['adapt_from'] + 1:.0f} to "
            made += f"{row['layers']}; pairs worded as *{row['wording']}*"
        else:
            made += f"; {row['layers']} layers; " + (
                "the base was frozen and only the head trained"
                if row["tuning"] == "frozen"
                else "LoRA on all layers"
            )

            if isinstance(row["genre"], str):
                made += f"; the encoder was first adapted to MNLI's genre *{row['genre']}*"

        blocks.append(
            f"### {row['respondent_id']}\n\n"
            f"- **Trained from** {base} on {made}.\n"
            f"- **Accuracy** on held-out MNLI pairs: {row['accuracy']:.3f} (95 % interval "
            f"{row['low']:.3f} to {row['high']:.3f}; guessing 0.333)"
            + (
                f"; on SNLI, on which it was not trained, {row['accuracy_snli']:.3f}.\n"
                if row["accuracy_snli"] == row["accuracy_snli"]
                else ".\n"
            )
            + f"- **In the default population**: {'yes' if row['default'] else 'no'}.\n"
            f"- **Unfit for** {_unfit(row)}.\n"
        )

    cola = heads["cola"]
    mlm = heads["mlm"]
    return (
        "(respondents)=\n# Who answers in this book\n\n"
        "This page has a datasheet for each respondent that comes with the book, written from its "
        "training recipe. A member's name says how it was made: family (*minilm*, an "
        "encoder with a head; *smol*, a decoder that answers with a word), training data, their "
        "size (in thousands of pairs or per cent), genre, layers (*l6*, *d26*), rank (*r8*), seed "
        "(*s1*).\n\n"
        "## Base models, heads and nulls\n\n"
        "- **all-MiniLM-L6-v2** {cite}`wang2020,reimers2019`: a sentence encoder of 22 million "
        "weights, Apache-2.0. English. It answers through the heads below; without a head, "
        "it returns vectors of sentences.\n"
        "- **smollm2**, SmolLM2-135M-Instruct {cite}`allal2025`: a conversational decoder of 135 "
        "million weights, Apache-2.0, stored in four bits and run in float32. English. It "
        "converses, completes texts and gives option logits. **Unfit for** any statement about "
        "large language models: asked for a digit, it gives almost the same answer to every item "
        "({ref}`asking`).\n"
        f"- **The acceptability head** on {_short(cola['base'])}: its Matthews correlation with "
        f"the labels of CoLA is {cola['matthews_in_domain']:.2f} in domain and "
        f"{cola['matthews_out_of_domain']:.2f} out of domain. "
        "**Unfit for** judging a single prompt.\n"
        f"- **The masked-LM head** on {_short(mlm['base'])}: its perplexity is "
        f"{mlm['perplexity']:.0f} at "
        "the masked words of held-out sentences. **Unfit for** rare words.\n"
        "- **Null respondents**, which know nothing by design, are made by `pm.null_answers` "
        "({ref}`consistency`). **Simulated respondents** have traits that we chose, and are "
        "used to check the scoring.\n\n"
        "## The members of the population\n\n"
        f"**Three numbers.** The book comes with {len(members)} members: "
        f"{len(members) - decoders} encoders and {decoders} decoders (*all*). "
        f"The *default* population has {default} of them: all decoders, the frozen encoders, and "
        "the most accurate encoder for each kind of data, depth and genre. A page that compares "
        f"one of these with the others compares it with {default - 1}.\n\n" + "\n".join(blocks)
    )


def _unfit(row: dict) -> str:
    """Return the uses that a member's accuracy and data rule out."""
    uses = ["questions in languages other than English", "for claims about people"]
    if row["low"] < 0.5:
        uses.append("for single prompts, since it is wrong on about half of the pairs or more")
    if row["data"] == "snli":
        uses.append("for abstract premises, since it was trained on picture captions only")
    if row["tuning"] == "frozen":
        uses.append("for anything but comparison, since its base was not trained for inference")

    # Two uses with a reason contain commas of their own, so semicolons separate all uses.
    separator = "; " if len(uses) > 3 else ", "
    return separator.join([*uses[:-1], f"and {uses[-1]}"])


def _short(base: str) -> str:
    return base.rpartition("/")[2]


if __name__ == "__main__":
    (book_dir() / "respondents.md").write_text(datasheets(), encoding="utf-8")
