"""The page that shows an answer: its verdict, its formula, its rows."""

from massart.report.findings import Cells, Findings, Group, JudgedRows, Support

__all__ = ["Cells", "Findings", "Group", "JudgedRows", "Support"]
