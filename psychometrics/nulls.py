"""What would be found if nothing were there: null respondents, null scorings, and their power."""
