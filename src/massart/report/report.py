"""A report on an answer: a page to send, a fragment for a notebook, lines for a terminal."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from massart.report.findings import Findings
from massart.report.fragment import fragment, plain_text
from massart.report.page import render
from massart.rows import files


class Report:
    """What was found, for those who were not there.

    The page needs jinja2 (``pip install 'massart[report]'``); the notebook's view and the text need nothing.

    Parameters
    ----------
    findings : Findings
    """

    def __init__(self, findings: Findings) -> None:
        self.findings = findings

    def to_html(self) -> str:
        """Return the whole page: one file, which loads nothing and is the same for the same findings.

        It stays below 5 MB: of very many wrong rows it carries those with the largest residuals, and some others.

        Raises
        ------
        ValueError
            If jinja2 is not installed.
        """
        return render(self.findings)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the page to a file, whole or not at all, and return its path."""
        path = Path(path)
        files.write(path, self.to_html().encode())
        return path

    def _repr_html_(self) -> str:
        return fragment(self.findings)

    def __repr__(self) -> str:
        return plain_text(self.findings)
