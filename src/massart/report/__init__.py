"""The page that shows an answer: its verdict, its formula, its rows."""

from massart.report.findings import (
    DATED,
    Cells,
    Findings,
    Group,
    JudgedRows,
    Rest,
    RowKinds,
    Usage,
    called_wrong,
    usage_of,
)
from massart.report.list_page import ListedFormula, ListFindings, ListReport
from massart.report.notices import Notice
from massart.report.page import Report, check_installed

__all__ = [
    "Cells",
    "DATED",
    "Findings",
    "Group",
    "JudgedRows",
    "ListFindings",
    "ListReport",
    "ListedFormula",
    "Notice",
    "Report",
    "Rest",
    "RowKinds",
    "Usage",
    "called_wrong",
    "check_installed",
    "usage_of",
]
