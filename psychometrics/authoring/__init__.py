"""Writing a questionnaire of one's own: a draft from a table, and rules for its wording."""
