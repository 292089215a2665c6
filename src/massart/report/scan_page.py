"""The page of a scan: the rules among the columns of a table, in one file that loads nothing and runs nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from massart.certificate import Certificate
from massart.certificate.words import Judgement, judgement
from massart.report.columns import clean
from massart.report.page import asset, environment_of_pages, raw_text
from massart.rules.formula import Formula, pieces


@dataclass(frozen=True)
class Rule:
    """A rule, and how many rows follow it.

    Attributes
    ----------
    formula : Formula
    certificate : Certificate
    columns : tuple of str
        The target and the columns that it reads.
    n_rows, n_follow, n_last_place, n_wrong : int
    """

    formula: Formula
    certificate: Certificate
    columns: tuple[str, ...]
    n_rows: int
    n_follow: int
    n_last_place: int
    n_wrong: int

    @property
    def judgement(self) -> Judgement:
        """The verdict in words."""
        return judgement(self.certificate)

    @property
    def pieces(self) -> list[str]:
        """The formula, cut where a line may break."""
        return [clean(piece) for piece in pieces(self.formula.text())]

    @property
    def explanation(self) -> str:
        """The certificate in words."""
        return self.certificate.explain(self.formula.names)


@dataclass(frozen=True)
class ScanFindings:
    """What the page shows.

    Attributes
    ----------
    title : str
        The name of the table.
    n_rows : int
    identities, copies : sequence of Rule
    constants : sequence of (str, object)
    codes : sequence of sequences of str
    without_rule : sequence of str
    notices : sequence of str
    facts : mapping of str to str
        The command, the versions.
    """

    title: str
    n_rows: int
    identities: Sequence[Rule]
    copies: Sequence[Rule]
    constants: Sequence[tuple[str, object]]
    codes: Sequence[Sequence[str]]
    without_rule: Sequence[str]
    notices: Sequence[str] = ()
    facts: Mapping[str, str] = field(default_factory=dict)

    def uses(self) -> dict[str, list[int]]:
        """Return the numbers of the rules, from 1, that each column is in."""
        found: dict[str, list[int]] = {}
        for number, rule in enumerate((*self.identities, *self.copies), 1):
            for name in rule.columns:
                found.setdefault(name, []).append(number)
        return found


def render_scan(findings: ScanFindings) -> str:
    """Return the page; ValueError if jinja2 is not installed."""
    environment = environment_of_pages()
    style = raw_text(asset("style.css") + asset("scan.css"))
    page: str = environment.get_template("scan.html").render(findings=findings, uses=findings.uses(), style=style)
    return page
