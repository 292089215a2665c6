"""The page of a scan: the rules among the columns of a table, in one file that loads nothing and runs nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from massart.report.findings import Findings
from massart.report.page import asset, environment_of_pages, raw_text


@dataclass(frozen=True)
class ScanFindings:
    """What the page shows: a scan, and `uses`, the numbers of the rules, from 1, that each column is in."""

    title: str
    n_rows: int
    identities: Sequence[Findings]
    copies: Sequence[Findings]
    uses: Mapping[str, list[int]]
    constants: Sequence[tuple[str, object]]
    codes: Sequence[Sequence[str]]
    without_rule: Sequence[str]
    notices: Sequence[str]
    facts: Mapping[str, str]


def render_scan(findings: ScanFindings) -> str:
    """Return the page; ValueError if jinja2 is not installed."""
    style = raw_text(asset("style.css") + asset("scan.css"))
    page: str = environment_of_pages().get_template("scan.html").render(findings=findings, style=style)
    return page
