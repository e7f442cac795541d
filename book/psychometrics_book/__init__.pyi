from . import (
    build,
    claims,
    exercises,
    figures,
    page,
    parameters,
    plans,
    printing,
    prose,
    record,
    runs,
    server,
    studies,
)
from .build import build_book
from .parameters import check_parameters
from .plans import plan
from .record import figure, read, table
from .studies import (
    content,
    improving,
    interventions,
    registration,
    study,
    study_files,
    study_report,
)

__all__ = [
    "build",
    "build_book",
    "check_parameters",
    "claims",
    "content",
    "exercises",
    "figure",
    "figures",
    "improving",
    "interventions",
    "page",
    "parameters",
    "plan",
    "plans",
    "printing",
    "prose",
    "read",
    "record",
    "registration",
    "runs",
    "server",
    "studies",
    "study",
    "study_files",
    "study_report",
    "table",
]
