"""Rows that follow from the row before: an opening value, and running sums, in the whole table or in each group.

What one row adds is a difference of two labels, so that the columns behind it are found by one robust fit, however many
groups there are. The rule itself is written with running sums of X, so that one wrong label makes one wrong row. Only
pairs of which both rows are search rows are looked at.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from massart.rows import FloatArray
from massart.rules import terms as t
from massart.rules.columns import Columns
from massart.rules.grow.evidence import focus_of
from massart.rules.grow.fit import Labels, chance_of
from massart.rules.grow.sample import Product, Sample
from massart.rules.grow.settings import Settings
from massart.rules.grow.simplify import pruned
from massart.rules.terms import Term


def running_rule(
    columns: Columns, rows: NDArray[np.intp], sample: Sample, settings: Settings
) -> tuple[tuple[Term, ...], FloatArray, int] | None:
    """Return terms, coefficients with that of the constant last, and search rows that agree; None without a rule."""
    n = columns.n_rows
    y = np.full(n, np.nan)
    y[rows] = sample.y
    best: tuple[tuple[Term, ...], FloatArray, int] | None = None
    for by in [None, *columns.levels]:
        groups = np.zeros(n, dtype=np.intp) if by is None else columns.levels[by].codes.astype(np.intp)
        found = _rule(columns, y, rows, by, groups, sample, settings)
        if found is not None and (best is None or found[2] > best[2]):
            best = found
    return best


def _rule(
    columns: Columns,
    y: FloatArray,
    rows: NDArray[np.intp],
    by: str | None,
    groups: NDArray[np.intp],
    sample: Sample,
    settings: Settings,
) -> tuple[tuple[Term, ...], FloatArray, int] | None:
    order = np.argsort(groups, kind="stable")
    before = np.full(len(y), -1)
    same = groups[order][1:] == groups[order][:-1]
    before[order[1:][same]] = order[:-1][same]
    pairs = rows[before[rows] >= 0]
    pairs = pairs[np.isfinite(y[before[pairs]])]
    if len(pairs) < settings.part:
        return None
    change = y[pairs] - y[before[pairs]]
    if np.mean(change == 0) > 0.5:
        return None
    some = Sample(columns.take(pairs), change, sample.half_unit, settings.levels)
    labels = Labels.of(some, "identity", settings).only(change != 0)
    plain: list[Product] = [(one,) for one in focus_of(labels, change, settings.focus) if one.op == "column"]
    fit = labels.fit([(), *(one for one in plain if one[0] not in some.dates)])
    if fit is None:
        return None
    fit = pruned(fit)
    n_agree, chance, n = chance_of(fit.predicted, change, sample.half_unit)
    if n_agree <= max(settings.known * n, 4 * chance + 10) or fit.coefficient(()) or not fit.terms:
        return None
    if any(len(term) != 1 or term[0].op != "column" for term in fit.terms):
        return None
    sums = [Term("cumsum", (term[0].parts[0], by, None)) for term in fit.terms]
    coef = np.array([float(np.round(w)) if abs(w - np.round(w)) < 1e-6 else w for w in fit.coef])
    running = np.column_stack([one.evaluate(columns) for one in sums])[rows] @ coef
    unit, openings, agree = 2 * sample.half_unit, [], 0
    for group in np.unique(groups[rows]):
        inside = groups[rows] == group
        steps, counts = np.unique(np.round((sample.y - running)[inside] / unit), return_counts=True)
        openings.append((int(group), unit * float(steps[np.argmax(counts)])))
        agree += int(counts.max())
    if agree <= 2 * len(openings) + settings.part:
        return None
    if by is None:
        return tuple(sums), np.array([*coef, openings[0][1]]), agree
    names = columns.levels[by].names
    levels = [t.level(by, names[group]) for group, _ in openings]
    return (*levels, *sums), np.array([*(value for _, value in openings), *coef, 0.0]), agree
