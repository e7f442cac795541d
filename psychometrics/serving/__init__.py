"""Null respondents behind an address: controls that other tools can ask like any chat model."""
