"""What a fit says, on one screen: the verdict, and a table of the coefficients as statisticians know it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib import import_module
from textwrap import wrap
from typing import Any

import numpy as np

from massart.estimators.inference import Inference
from massart.report import Findings
from massart.report.coefficients import coefficients
from massart.report.fragment import enclosed, table
from massart.report.words import count, share

MOST_TERMS = 40
"""Terms of a formula that are written in one line."""

_WIDTH = 88
_GAP = 2


@dataclass(frozen=True, slots=True)
class Summary:
    """What a fit says: ``print`` it, show it in a notebook, or take its table.

    Attributes
    ----------
    findings : Findings
        The formula, the verdict and the counts.
    inference : Inference
        Tests and intervals.
    robust_r2 : float
    level : float
        Of the intervals.
    """

    findings: Findings
    inference: Inference
    robust_r2: float
    level: float

    @property
    def is_estimate(self) -> bool:
        """Whether there are errors to speak of: exact formulas have none, and of others nothing is known."""
        return self.findings.formula.noisy

    def to_frame(self) -> Any:
        """Return the table as a data frame of pandas, one row a coefficient, the constant last.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        try:
            pandas: Any = import_module("pandas")
        except ImportError:
            raise ImportError("a data frame needs pandas: pip install pandas") from None
        formula = self.findings.formula
        columns: dict[str, Any] = {"coefficient": formula.coef}
        if self.is_estimate:
            lower, upper = self.inference.intervals(self.level).T
            columns |= {"standard error": self.inference.standard_errors, "t": self.inference.t}
            columns |= {"p": self.inference.p, "lower": lower, "upper": upper}
        frame = pandas.DataFrame(columns, index=[term.label for term in formula.all_terms])
        return frame if self.findings.is_rule else frame.iloc[:0]

    def __str__(self) -> str:
        findings = self.findings
        lines = [f"{findings.title}: {findings.judgement.word}"]
        if findings.is_rule:
            lines += wrap(findings.formula.text(MOST_TERMS), _WIDTH, subsequent_indent="    ")
        lines += ["", *wrap(findings.explanation, _WIDTH)]
        if findings.is_rule:
            lines += ["", *wrap("   ".join(f"{name} {value}" for name, value in self._facts()), _WIDTH)]
            lines += ["", *_aligned(self._names(), list(self._rows()))]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        findings = self.findings
        judgement = findings.judgement
        parts = [
            f"<p class='massart-title'>{escape(findings.title)}</p>",
            f"<p class='massart-verdict massart-{judgement.word.lower()}'><strong>{judgement.sign} "
            f"{judgement.word.capitalize()}</strong> {escape(findings.explanation)}</p>",
        ]
        if findings.is_rule:
            facts = " · ".join(f"{escape(name)} {escape(value)}" for name, value in self._facts())
            names = ("", *self._names())
            parts += [
                f"<p class='massart-formula'><code>{escape(findings.formula.text(MOST_TERMS))}</code></p>",
                f"<p>{facts}</p>",
                table("", names, self._rows(), {*range(1, len(names))}),
            ]
        return enclosed(parts)

    def _facts(self) -> Iterator[tuple[str, str]]:
        findings = self.findings
        yield "rows", f"{findings.n_rows:,}"
        yield "agree", f"{findings.n_agree:,} ({share(findings.n_agree, findings.n_rows)})"
        if self.is_estimate:
            yield "scale", f"{findings.certificate.scale:.4g}"
            yield "robust R²", f"{self.robust_r2:.4f}"
            yield "degrees of freedom", f"{self.inference.degrees_of_freedom:,.0f}"
        elif findings.n_wrong:
            yield findings.judgement.off.removesuffix(" rows"), count(findings.n_wrong, "rows")

    def _names(self) -> Sequence[str]:
        if not self.is_estimate:
            return ("coefficient", "precision")
        tail = (1 - self.level) / 2
        return ("coefficient", "std. error", "t", "P>|t|", f"[{tail:.4g}", f"{1 - tail:.4g}]")

    def _rows(self) -> Iterator[Sequence[str]]:
        """Yield the cells of the table, the name of the term first."""
        if not self.is_estimate:
            for entry in coefficients(self.findings):
                yield entry.label, entry.number, entry.certainty
            return
        inference = self.inference
        numbers = zip(
            inference.standard_errors, inference.t, inference.p, *inference.intervals(self.level).T, strict=True
        )
        for term, (error, t, p, lower, upper) in zip(self.findings.formula.all_terms, numbers, strict=True):
            if np.isfinite(error) and term.determined:
                yield (
                    term.label,
                    *(f"{v:.4g}" for v in (term.coef, error)),
                    f"{t:.2f}",
                    f"{p:.3f}",
                    *(f"{v:.4g}" for v in (lower, upper)),
                )
            else:
                yield term.label, f"{term.coef:.4g}", "open", "", "", "", ""


def _aligned(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Write a table: names of rows to the left, all else to the right."""
    table = [("", *names), *rows]
    first, *widths = [max(len(row[j]) for row in table) for j in range(len(names) + 1)]
    for place, (name, *cells) in enumerate(table):
        right = (cell.rjust(_GAP + width) for cell, width in zip(cells, widths, strict=True))
        yield (name.ljust(first) + "".join(right)).rstrip()
        if place == 0:
            yield "-" * (first + sum(widths) + _GAP * len(widths))
