"""What can go wrong, by kind; every message is one sentence that names the thing and the mend."""

from __future__ import annotations


class PsychometricsError(Exception):
    """Base of all errors that a user can mend; the command line prints it without a traceback."""


class QuestionnaireError(PsychometricsError, ValueError):
    """A questionnaire's file is malformed, or lacks what was asked of it."""


class RespondentError(PsychometricsError, ValueError):
    """A model cannot answer: it is missing, incomplete, unsafe to load, or ambiguous."""


class StoreError(PsychometricsError, OSError):
    """A response store cannot be read or written."""


class DataError(PsychometricsError, OSError):
    """External data are neither in the mirror nor downloadable, or fail their checksum."""


class ParameterError(PsychometricsError, ValueError):
    """A parameter's name or value is wrong."""
