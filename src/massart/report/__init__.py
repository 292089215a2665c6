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
from massart.report.page import check_installed
from massart.report.report import Report

__all__ = [
    "Cells",
    "DATED",
    "Findings",
    "Group",
    "JudgedRows",
    "ListFindings",
    "ListReport",
    "ListedFormula",
    "Report",
    "Rest",
    "RowKinds",
    "Usage",
    "called_wrong",
    "check_installed",
    "usage_of",
]
