"""Lists of prices: labels with few values, given by the classes of a column and perhaps by a category."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from massart.rules.grow.fit import Labels
from massart.rules.grow.sample import Product, Sample, interval
from massart.rules.grow.units import simplest
from massart.rules.terms import Term

_PRICES = 60  # most frequent labels that may be prices
_LISTED = 0.7  # share of the rows that the first forty of them have
_MOST_LEVELS = 8
_MOST_CUTS = 10
_SHARE = 0.3  # of the rows that a list explains, beyond what its numbers explain anyway
_FEWEST = 4  # rows that a cut has to win, and three for each level


def price_list(labels: Labels) -> list[Product] | None:
    """Return terms, one for each price: classes of a column, for each level of a category or for all."""
    sample, rows = labels.sample, np.flatnonzero(labels.usable)
    units = np.round(labels.y[rows] / labels.half_widths[rows] / 2)
    values, codes, counts = np.unique(units, return_inverse=True, return_counts=True)
    common = np.argsort(-counts, kind="stable")[:_PRICES]
    if len(values) < 2 or counts[common[:40]].sum() < _LISTED * len(rows):
        return None
    places = np.full(len(values), len(common))
    places[common] = np.arange(len(common))
    prices = places[codes.ravel()]
    columns = [one for one in sample.thresholds if one.op == "column"]
    by: list[tuple[NDArray[np.intp], Sequence[Term], Sequence[str]]] = [(np.zeros(len(rows), dtype=np.intp), [], [])]
    by += [(one.codes[rows], one.conditions, [one.column]) for one in sample.categories if len(one) <= _MOST_LEVELS]
    best = _SHARE * len(rows)
    found: list[Product] | None = None
    for first in columns:  # classes of one column, by those of which another one is cut
        _, classes = _classes(sample, rows, prices, by[0][0], first)
        if 2 <= len(classes) <= _MOST_LEVELS:
            of_rows = np.argmax([sample.factor(one)[rows] for one in classes], axis=0)
            by.append((of_rows, classes, [str(first.parts[0])]))
    for (levels, conditions, own), column in product(by, columns):
        if str(column.parts[0]) in own:
            continue
        explained, classes = _classes(sample, rows, prices, levels, column)
        if explained > best:
            cases: list[Product] = [(one,) for one in conditions] or [()]
            best, found = explained, [(one, *case) for one, case in product(classes, cases)]
    return found


def _classes(
    sample: Sample, rows: NDArray[np.intp], prices: NDArray[np.intp], levels: NDArray[np.intp], column: Term
) -> tuple[float, list[Term]]:
    """Cut a column, one cut after the other, where most rows then have the most frequent label of their class."""
    order = np.argsort(sample.factor(column)[rows], kind="stable")
    values = sample.factor(column)[rows][order]
    n_levels = int(levels.max()) + 1
    counts = np.zeros((len(order) + 1, n_levels, int(prices.max()) + 1), dtype=np.int32)
    counts[np.arange(1, len(order) + 1), levels[order], prices[order]] = 1
    counts = np.cumsum(counts, axis=0, dtype=np.int32)[:, :, :-1]

    def best_cut(first: int, end: int) -> tuple[float, int, int, int]:
        left = (counts[first : end + 1] - counts[first]).max(axis=2).sum(axis=1)
        right = (counts[end] - counts[first : end + 1]).max(axis=2).sum(axis=1)
        gain = (left + right - left[-1]).astype(float)
        gain[1:-1][values[first + 1 : end] == values[first : end - 1]] = -1
        gain[[0, -1]] = -1
        place = int(np.argmax(gain))
        return float(gain[place]), first + place, first, end

    pieces = [best_cut(0, len(order))]
    cuts: list[int] = []
    while pieces and len(cuts) < _MOST_CUTS:
        gain, cut, first, end = max(pieces)
        if gain < _FEWEST + 3 * n_levels:
            break
        pieces.remove((gain, cut, first, end))
        cuts.append(cut)
        if min(cut - first, end - cut) > _FEWEST:
            pieces += [best_cut(first, cut), best_cut(cut, end)]
    if not cuts:
        return 0.0, []
    cuts.sort()
    explained = sum(
        float((counts[end] - counts[first]).max(axis=1).sum())
        for first, end in zip([0, *cuts], [*cuts, len(order)], strict=True)
    )
    ends = [-math.inf, *(simplest(float(values[cut - 1]), float(values[cut])) for cut in cuts), math.inf]
    classes = [interval(column, low, high, column in sample.dates) for low, high in pairwise(ends)]
    return explained - 3 * n_levels * len(ends), classes
