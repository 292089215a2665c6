"""Verdicts, and the certificate that carries one with all the numbers behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from html import escape

from massart.certificate.structural import StructuralMargin
from massart.rows import FloatArray

_MOST_NAMES = 8


class Verdict(Enum):
    """What is known about a formula; the value says it in words."""

    PROVEN = "proven: no other formula fits as many rows"
    MAJORITY = "more than half of the rows agree exactly, and they determine every coefficient"
    PLURALITY = "the best formula found; no clear majority of the rows confirms it"
    NOISY = "the rows follow the formula up to noise, not exactly"
    UNIDENTIFIABLE = "the rows that agree do not determine every coefficient"


_COLOURS = {
    Verdict.PROVEN: "#1a7f5a",
    Verdict.MAJORITY: "#1a7f5a",
    Verdict.PLURALITY: "#b3541e",
    Verdict.NOISY: "#8a6d1a",
    Verdict.UNIDENTIFIABLE: "#b3541e",
}


class Bound(Enum):
    """The argument that bounds the rows of one hyperplane; the value says it in words."""

    PACKING = "the rows it fits contain disjoint blocks of independent rows, and another formula misses a row of each"
    SAMPLED = "random blocks of the rows it fits were independent, so that few of these rows share a hyperplane"
    FOURTH_MOMENT = "the fourth moments of the rows it fits show how many of these rows share a hyperplane at most"
    EXACT = "the rows it fits were counted on every hyperplane"
    ASSUMED = "the rows it fits are assumed to be in general position, apart from repeated rows"
    NONE = "nothing bounds how many of the rows it fits share a hyperplane"


@dataclass(frozen=True, slots=True)
class Certificate:
    """What is proven about a formula, and by which numbers.

    Attributes
    ----------
    n_rows, n_agree : float
        Rows in all, and rows that the formula fits: sums of weights where rows have weights. Rows that are zero (for a
        linear formula), or that no formula of the model fits (negative labels of a ReLU), are not counted.
    n_columns : int
    rank : int
        Rank of the agreeing rows (of those given, for a subset; of those with a positive label, for a ReLU).
    n_decisive : float
        Agreeing rows that can tell two formulas apart: all for a linear formula, those with a positive label for a
        ReLU.
    n_active : float or None
        Rows where a ReLU is positive (any link: between its limits) and the label does not fit for that reason alone:
        those that speak for the formula or against it. None for a linear formula, where all do.
    hyperplane_rows : float or None
        h: another formula agrees with this one on at most so many of the decisive rows.
    bound : Bound
        How h is known.
    confidence : float
        1 unless h is known from random draws.
    verdict : Verdict
    determined : Verdict
        The verdict on what the agreeing rows do determine; the same as `verdict` unless that is UNIDENTIFIABLE.
    undetermined : (d, d - rank) array
        Orthonormal basis of the directions that the agreeing rows leave undetermined.
    undetermined_columns : tuple of tuples
        The columns that those directions involve, by name or number, in groups that do not interact.
    column_names : tuple of str or None
    tolerance : float
        Largest residual that counts as agreement; 0 means exact labels, up to rounding.
    resolution : float
        With a tolerance: formulas that differ by at most this on every agreeing row count as the same.
    scale : float or None
        Robust scale of the residuals, for NOISY.
    margin : StructuralMargin or None
        Both sides of the margin of Lemma 2.3's condition.
    """

    n_rows: float
    n_agree: float
    n_columns: int
    rank: int
    n_decisive: float
    hyperplane_rows: float | None
    bound: Bound
    confidence: float
    verdict: Verdict
    determined: Verdict
    undetermined: FloatArray
    undetermined_columns: tuple[tuple[str | int, ...], ...]
    column_names: tuple[str, ...] | None = None
    tolerance: float = 0.0
    resolution: float = 0.0
    scale: float | None = None
    margin: StructuralMargin | None = None
    n_active: float | None = None

    def explain(self) -> str:
        """Say in plain words what holds, why, and what is not claimed."""
        if self.verdict is Verdict.NOISY:
            sentences = [
                f"{_number(self.n_agree)} of {_number(self.n_rows)} rows ({self._share()}) follow the formula up to "
                f"noise of scale {self.scale:.4g}.",
                "The labels are not exact, so the coefficients are estimates and nothing is proven about them.",
            ]
            return " ".join(sentences + self._open_directions())
        within = f" within {self.tolerance:g}" if self.tolerance else ""
        sentences = [
            f"The formula fits {_number(self.n_agree)} of {_number(self.n_rows)} rows{within} ({self._share()})."
        ]
        if self.n_active is not None:
            sentences.append(
                f"Of the {_number(self.n_active)} rows where it is not clipped, {_number(self.n_decisive)} agree."
            )
        sentences += self._open_directions()
        if self.determined is Verdict.PROVEN:
            sentences += self._proof()
        elif self.determined is Verdict.MAJORITY:
            sentences.append("A majority agrees: it is the right formula if fewer than half of the labels are wrong.")
            sentences.append("Not claimed: that no other formula fits as many rows; " + self._gap() + ".")
        elif self.n_decisive <= self.rank:
            sentences.append(
                "No formula was found: no clear majority agrees, and any table has a formula for so few rows."
            )
        else:
            sentences.append(
                "It is the best formula found, but no clear majority confirms it: treat it as a hypothesis."
            )
            sentences.append("Not claimed: that it is the right formula or that no other fits as many rows.")
        return " ".join(sentences)

    def _repr_html_(self) -> str:
        """Show the verdict, the words and the numbers in a notebook."""
        facts = {
            "rows": _number(self.n_rows),
            "agree": f"{_number(self.n_agree)} ({self._share()})",
            "rank": f"{self.rank} of {self.n_columns} columns",
        }
        if self.hyperplane_rows is not None:
            facts["another formula shares at most"] = f"{_number(self.hyperplane_rows)} of these rows"
        if self.scale is not None:
            facts["noise"] = f"{self.scale:.4g}"
        cells = "".join(
            f'<tr><th style="text-align:left;font-weight:normal;padding:.1em 1em .1em 0">{escape(name)}</th>'
            f'<td style="text-align:left">{escape(value)}</td></tr>'
            for name, value in facts.items()
        )
        return (
            f'<div style="border-left:.3em solid {_COLOURS[self.verdict]};padding:.2em 1em;max-width:48em">'
            f"<strong>{self.verdict.name}</strong>"
            f'<p style="margin:.5em 0">{escape(self.explain())}</p><table>{cells}</table></div>'
        )

    def _share(self) -> str:
        return f"{100 * self.n_agree / self.n_rows:.1f} %" if self.n_rows else "none"

    def _proof(self) -> list[str]:
        assert self.hyperplane_rows is not None
        most = self.hyperplane_rows + self.n_rows - self.n_agree + (self.n_agree - self.n_decisive)
        surely = "It is proven" if self.confidence == 1 else f"With confidence {100 * self.confidence:g} % it is proven"
        if self.bound is Bound.ASSUMED:
            surely = "Assuming general position, it is proven"
        other = "other formula" if self.determined is self.verdict else "other formula, up to what is left open,"
        if self.tolerance:
            other = f"formula that differs from it by more than {self.resolution:.3g} on some row that agrees"
        return [
            f"{surely} that no {other} fits as many: another fits at most {_number(most)} rows, since at most "
            f"{_number(self.hyperplane_rows)} of the rows this one fits can be shared ({self.bound.value}).",
            "Not claimed: that other data follow it.",
        ]

    def _gap(self) -> str:
        if self.hyperplane_rows is None:
            return self.bound.value
        return f"as far as is known, another could share {_number(self.hyperplane_rows)} of its rows"

    def _open_directions(self) -> list[str]:
        if self.rank == self.n_columns:
            return []
        unused = [_name(group[0]) for group in self.undetermined_columns if len(group) == 1]
        linked = [_listed([_name(j) for j in group]) for group in self.undetermined_columns if len(group) > 1]
        sentences = []
        if unused:
            sentences.append(f"Nothing determines the coefficient of {_listed(unused)}: no row that agrees uses it.")
        if linked:
            more = f", and so do {len(linked) - 2} more groups of columns" if len(linked) > 2 else ""
            sentences.append(
                f"In the rows that agree, {'; '.join(linked[:2])} always move together{more}: only combinations of "
                "their coefficients are determined."
            )
        return sentences


def group_names(
    groups: Sequence[Sequence[int]], column_names: Sequence[str] | None
) -> tuple[tuple[str | int, ...], ...]:
    """Return the groups of columns with names for numbers where there are names."""
    return tuple(tuple(j if column_names is None else column_names[j] for j in group) for group in groups)


def _name(column: str | int) -> str:
    return f"column {column}" if isinstance(column, int) else column


def _listed(names: list[str]) -> str:
    if len(names) > _MOST_NAMES:
        names = names[: _MOST_NAMES - 1] + [f"{len(names) - _MOST_NAMES + 1} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.6g}" if value < 1e6 else f"{value:,.1f}"
