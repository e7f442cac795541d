"""Writing files: a questionnaire's draft, rules for its wording, a population from a query."""
