"""The page of a list of rules: which rows follow which, in one file that loads nothing and runs nothing."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from massart.certificate import Verdict
from massart.report.columns import clean
from massart.report.page import Report, asset, environment_of_pages, raw_text
from massart.rules.formula import Formula


@dataclass(frozen=True, slots=True)
class ListedFormula:
    """One rule: its formula, its own rows, those that fit another rule, too, and how many rows its test asked for."""

    formula: Formula
    n_rows: int
    n_shared: int
    needed: int


@dataclass(frozen=True, slots=True)
class ListFindings:
    """What the page shows of a list of rules."""

    title: str
    target: str
    rules: tuple[ListedFormula, ...]
    kinds: tuple[tuple[str, int], ...]  # what happened in rows that follow none, and how often
    n_rows: int
    n_shared: int
    n_none: int
    verdict: Verdict
    explanation: str
    when: str
    coefficients: tuple[tuple[str, tuple[str, ...]], ...]  # each term with its coefficient in each rule
    rows: Mapping[str, Sequence[object]]  # some rows that follow none, by columns
    notices: tuple[str, ...]
    facts: Mapping[str, str]

    @property
    def n_shown(self) -> int:
        """Number of the rows that are shown."""
        return len(next(iter(self.rows.values()), ()))

    @property
    def numeric(self) -> tuple[str, ...]:
        """Columns of those rows that hold numbers."""
        return tuple(name for name, cells in self.rows.items() if all(isinstance(cell, int | float) for cell in cells))

    @property
    def cells(self) -> list[list[tuple[str, str]]]:
        """The rows that are shown: the name of each column with its cell as text."""
        return [[(name, _text(cells[place])) for name, cells in self.rows.items()] for place in range(self.n_shown)]


def _text(cell: object) -> str:
    return "" if cell is None else f"{cell:.10g}" if isinstance(cell, float) else str(cell)


class ListReport(Report):
    """The page of a list of rules; a notebook and a terminal get its sentences and formulas."""

    def __init__(self, findings: ListFindings) -> None:
        self.listed = findings

    def to_html(self) -> str:
        """Return the whole page: one file, which loads nothing and is the same for the same findings."""
        style = raw_text(asset("style.css") + asset("scan.css") + asset("rules.css"))
        page: str = environment_of_pages().get_template("rules.html").render(findings=self.listed, style=style)
        return page

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"

    def __repr__(self) -> str:
        formulas = (f"rule {k}: {clean(rule.formula.text())}" for k, rule in enumerate(self.listed.rules, 1))
        return "\n".join([*formulas, clean(self.listed.explanation)])
