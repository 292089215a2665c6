r"""What an estimate from noisy rows says beyond its coefficients: tests, intervals, weights, R², and a summary of all.

The estimate is close to normal, with the covariance that the fit gives, so that tests and intervals are those of least
squares with t quantiles. The robust R² is that of Renaud and Victoria-Feser (2010), which R's ``summary(lmrob)`` shows:

.. math::

    R^2 = \frac{\sum w_i (y_i - \bar y_w)^2 - \sum w_i r_i^2}{\sum w_i (y_i - \bar y_w)^2 + (a - 1) \sum w_i r_i^2},
    \qquad a = \frac{E\, w(e)}{E\, \psi'(e)},

with the robustness weights w of the rows; a makes it consistent for Gaussian noise e. Without a constant in the
formula, :math:`\bar y_w` is 0.

References
----------
Renaud and Victoria-Feser (2010), *A robust coefficient of determination for regression*.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib import import_module
from textwrap import wrap
from typing import Any

import numpy as np
from scipy.special import stdtr, stdtrit

from massart.certificate import Certificate
from massart.report import Findings, coefficients, count, enclosed, share, table
from massart.robust import TUNING, constants
from massart.rows import Block, FloatArray, Link, clipped, namespace_of
from massart.rules import Formula

_WIDTH = 88
_GAP = 2
_OPEN = 1e-8  # of the size of a row: the part of it in directions that the rows of the fit leave open


@dataclass(frozen=True, slots=True)
class Inference:
    """Tests and intervals of one formula."""

    formula: Formula  # standard errors are 0 where labels are exact, NaN or infinite where the rows do not tell
    certificate: Certificate
    covariance: FloatArray | None  # (p, p), the constant last; None where labels are exact, or nothing is known
    degrees_of_freedom: float

    @property
    def standard_errors(self) -> FloatArray:
        """Those of the coefficients, the constant last."""
        return np.array([term.standard_error for term in self.formula.all_terms])

    @property
    def t(self) -> FloatArray:
        """Coefficients over their standard errors; NaN where there is none."""
        errors = self.standard_errors
        return np.asarray(self.formula.coef / np.where(np.isfinite(errors) & (errors > 0), errors, np.nan))

    @property
    def p(self) -> FloatArray:
        """The probability of a t that is as far from 0, were the coefficient 0."""
        return np.asarray(2.0 * stdtr(self.degrees_of_freedom, -np.abs(self.t)))

    def intervals(self, level: float) -> FloatArray:
        """Return lower and upper limits of the coefficients, (p, 2)."""
        return self._around(self.formula.coef, self.standard_errors, level)

    def limits(self, rows: FloatArray, level: float, kind: str) -> FloatArray:
        """Return limits of what the formula gives ("mean"), or of right labels, for rows with their constant: (n, 2).

        Infinite where the rows of the fit do not determine it, NaN without a rule.
        """
        certificate, coef, beyond = self.certificate, self.formula.coef, 0.0
        if self.covariance is not None:
            noise = (certificate.scale or 0.0) ** 2 if kind == "label" else 0.0
            errors = np.sqrt(np.maximum(((rows @ self.covariance) * rows).sum(axis=1), 0.0) + noise)
        else:
            errors = np.full(len(rows), 0.0 if certificate.verdict.stands else np.nan)
            beyond = certificate.agreement.slack(coef) if kind == "label" else 0.0
        found = self._around(rows @ coef, errors, level)
        basis = certificate.undetermined
        is_open = (np.abs(rows @ basis) > _OPEN * (np.abs(rows) @ np.abs(basis))).any(axis=1)
        found[is_open & ~np.isnan(errors)] = -np.inf, np.inf
        return np.asarray(self.formula.link(found)) + [-beyond, beyond]

    def _around(self, values: FloatArray, errors: FloatArray, level: float) -> FloatArray:
        """Return values less and plus t quantiles of their errors; errors of 0 need no degrees of freedom."""
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, got {level}")
        freedom = self.degrees_of_freedom
        quantile = stdtrit(freedom, (1 + level) / 2) if freedom > 0 else np.nan
        reach = np.where(errors == 0, 0.0, errors * quantile)
        return np.stack([values - reach, values + reach], axis=-1)


@dataclass(frozen=True, slots=True)
class Weigh:
    """Robustness weights of the rows of a block, Tukey's biweight of r / scale: a kernel for `Rows.map`."""

    coef: FloatArray
    scale: float
    link: Link
    column: int = 0

    def __call__(self, block: Block) -> Any:
        """Return a weight from 1 to 0 for each row."""
        return weight_of(_residuals(self, block), self.scale)


@dataclass(frozen=True, slots=True)
class Explain:
    """The moments of the rows of a block, whose weights are given: a kernel for `Rows.reduce`."""

    coef: FloatArray
    link: Link
    column: int = 0

    def __call__(self, block: Block, weights: Any) -> Moments:
        """Return the moments."""
        counts = weights if block.weights is None else weights * block.weights
        return moments_of(block.y[:, self.column], _residuals(self, block), counts)


def _residuals(kernel: Weigh | Explain, block: Block) -> Any:
    return block.y[:, kernel.column] - kernel.link(block.times(kernel.coef[:, None])[:, 0])


def weight_of(residuals: Any, scale: float) -> Any:
    """Return the weights that the robust fit gives to residuals."""
    return clipped(1.0 - (residuals / (TUNING * scale)) ** 2, 0.0) ** 2


@dataclass(frozen=True, slots=True)
class Moments:
    """Weighted labels and residuals; the sum is that of both sets of rows (Chan, Golub and LeVeque, 1983)."""

    total: float  # sum of the weights
    mean: float  # of the labels
    spread: float  # sum of squares of the labels around their mean
    unexplained: float  # sum of squares of the residuals

    def __add__(self, other: Moments) -> Moments:
        total = self.total + other.total
        share, gap = (other.total / total if total else 0.0), other.mean - self.mean
        return Moments(
            total,
            self.mean + share * gap,
            self.spread + other.spread + gap * gap * self.total * share,
            self.unexplained + other.unexplained,
        )

    def r2(self, *, intercept: bool) -> float:
        """Return the robust R²; where labels do not vary, 1 if they are explained and 0 if not."""
        known = constants(TUNING)
        spread = self.spread if intercept else self.spread + self.total * self.mean**2
        if spread == 0:
            return float(self.unexplained == 0)
        correction = known.mean_weight / known.mean_slope - 1
        return (spread - self.unexplained) / (spread + correction * self.unexplained)


def moments_of(y: Any, residuals: Any, weights: Any) -> Moments:
    """Return the moments of rows in one array, wherever that is."""
    xp = namespace_of(y)
    total = float(xp.sum(weights))
    mean = float(xp.sum(weights * y)) / total if total else 0.0
    return Moments(total, mean, float(xp.sum(weights * (y - mean) ** 2)), float(xp.sum(weights * residuals**2)))


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
        """Whether coefficients have standard errors: exact formulas need none, and without a rule none are known."""
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
            lines += wrap(findings.formula_text, _WIDTH, subsequent_indent="    ")
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
                f"<p class='massart-formula'><code>{escape(findings.formula_text)}</code></p>",
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
