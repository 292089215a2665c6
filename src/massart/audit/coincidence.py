r"""Which explanations of wrong rows are more than chance: a mixture, and how likely a value is that nothing explains.

A wrong row i has a given value. Each kind T says which values it may have, :math:`m_{iT}` of them. A row that nothing
explains, the *background*, has the value that it has with probability :math:`q_i`. With shares :math:`\pi` of the
wrong rows,

.. math::
    P(\text{given}_i) = q_i \Bigl(\pi_0 + \sum_T \pi_T \, r_{iT}\Bigr), \qquad
    r_{iT} = \frac{[\text{T allows the value}]}{m_{iT} \, q_i} .

Kinds come in one by one, that with the largest gain of the log-likelihood first, less what it costs; a kind whose gain
does not pay for the number of kinds that were tried stays out: by the union bound, one of k that are usual and fit a
row pays :math:`\log(k / \text{chance})`, and one of k in one of f families :math:`\log(f k / \text{chance})`. So one
digit wrong among two is not a finding, ten times 1234.56 is, and of two kinds that explain the same row the more
specific and more frequent one is taken.

The background is what the table itself shows: a value is as likely as values near it are among all labels, or as
differences of about its size are among the wrong rows, whichever is more. Where values end in .00 or .50 more often
than others, they are more likely by that ratio. A value or difference that many rows have, and hardly any its
neighbours, is counted as these are: it asks for an explanation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from massart.rows import EPS, BoolArray, FloatArray

CHANCE = 0.01
"""The probability with which chance alone brings in a usual kind, and any of the others: over all that were tried."""

SURE = 0.8
"""A row is explained if, with at least this probability, it is not by chance."""

SAMPLE = 10_000
"""Rows in which numbers are looked for, and points from which a density is read: twice as many change no row."""

_ENDINGS = 100  # of the last two digits
_STEPS = 12  # of EM; half as many and twice as many change no row of 47,581 (benchmarks/kinds.py)
_FEW = 30  # points that do not show how far they reach
_NEAR = 5  # values on each side, and widths
# Rows that have a constant: with 5, 365 of 95,229 more are named (benchmarks/kinds.py), and factors on a grid, too.
_MANY = 10


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """Rows that one kind explains."""

    family: str  # what happened: "factor"
    label: str  # the same with its parameter: "factor 10"
    rows: NDArray[np.intp]  # (c,), wrong rows whose given value it allows, each once
    choices: Any = 1.0  # (c,), how many values it allows
    parameter: float | None = None
    floor: float = 0.0  # a lower bound of the background: how many rows have a neighbouring parameter
    found: bool = False  # whether the parameter was found in these rows: then one of them is spent on it
    tried: int = 1  # one over its share of what chance may bring in
    reads: tuple[str, ...] = ()  # columns that it reads, if the rule may not


@dataclass(frozen=True, slots=True, eq=False)
class WrongValues:
    """What is known of the values of wrong rows before any kind is."""

    given: FloatArray  # (n,)
    residuals: FloatArray  # differences of these from what is implied
    widths: FloatArray  # how far a value may be from another that is the same
    right: FloatArray  # labels of the other rows
    unit: float | None  # of the grid on which labels are

    def background(self, unexplained: BoolArray) -> FloatArray:
        """Return q; the rows that are `unexplained` so far show how large differences are."""
        given, widths, sizes = self.given, self.widths, np.abs(self.residuals)
        width = float(np.median(widths))
        labels = np.concatenate([self.right, _thinned(given, width)])
        values, differences = np.sort(_sample(labels)), np.sort(_sample(_thinned(sizes[unexplained], width)))
        reach = float(values[-1] - values[0])
        found = widths * np.maximum(
            _density(given, _limited(values, values[0] - reach, values[-1] + reach), widths),
            _density(sizes, _limited(differences, 0.0, 2 * float(sizes.max())), widths) / 2,
        )
        if self.unit is not None:
            found *= _ending_weights(given, labels, self.unit)
        of_values, of_differences = (crowd(x, width, unexplained) for x in (given, self.residuals))
        largest = np.max([found, of_values, of_differences], axis=0)
        return np.asarray(np.clip(largest, EPS, 1.0))  # no value is impossible


def select(kinds: Sequence[Explanation], q: FloatArray) -> tuple[list[Explanation], NDArray[np.intp], FloatArray]:
    """Return the kinds that are more than chance, which of them each row is (-1: none), and how likely it is none.

    Of equal kinds the first is preferred; q is the background.
    """
    n = len(q)
    ratios = [1 / (kind.choices * np.maximum(q[kind.rows], kind.floor)) for kind in kinds]
    costs = [
        float(np.log(kind.tried / CHANCE) + (np.log(np.median(ratio)) if kind.found else 0.0))
        for kind, ratio in zip(kinds, ratios, strict=True)
    ]
    gains = np.full(len(kinds), np.inf)  # they only shrink while others come in
    chosen: list[int] = []
    shares, total = np.zeros(0), np.ones(n)
    while True:
        best, most, share = -1, 0.0, 0.0
        for place in np.argsort(-gains, kind="stable").tolist():
            if gains[place] <= most:
                break
            gain, at = _gain(ratios[place] / total[kinds[place].rows], n)
            gains[place] = gain - costs[place]
            if gains[place] > most:
                best, most, share = place, gains[place], at
        if best < 0:
            break
        chosen.append(best)
        gains[best] = -np.inf
        shares, total = _shares(kinds, ratios, chosen, np.append(shares * (1 - share), share), n)
    found, largest = np.full(n, -1), np.zeros(n)
    for place, j in enumerate(chosen):
        rows, weight = kinds[j].rows, shares[place] * ratios[j]
        better = weight > largest[rows]
        found[rows[better]], largest[rows[better]] = place, weight[better]
    by_chance = (1 - shares.sum()) / total
    found[by_chance > 1 - SURE] = -1
    return [kinds[j] for j in chosen], found, by_chance


def _shares(
    kinds: Sequence[Explanation], ratios: Sequence[FloatArray], chosen: Sequence[int], shares: FloatArray, n: int
) -> tuple[FloatArray, FloatArray]:
    """Return the shares of the kinds that were chosen by steps of EM, and how likely each row is with these."""
    for _ in range(_STEPS):
        total = _total(kinds, ratios, chosen, shares, n)
        shares = shares * [float((ratios[j] / total[kinds[j].rows]).sum()) / n for j in chosen]
    return shares, _total(kinds, ratios, chosen, shares, n)


def crowd(x: FloatArray, width: float, counted: BoolArray | None = None) -> FloatArray:
    """Return for each x what share of all x its neighbours have.

    A value that many rows have stands out only if the values next to it are rare: the five nearest ones on each side,
    of which one may stand out as well. Where it is more than five widths away and ten rows have it, up to four may: a
    few constants are no grid, on which all five on one side are as frequent. Values that occur once say nothing, and
    rows that are not counted are not there.

    Examples
    --------
    >>> constants = np.repeat([25.0, 40.0, 100.0], 150)
    >>> float(crowd(constants, 0.01).max())
    0.0
    >>> crowd(np.repeat(np.arange(6.0), 2), 1.0).round(2).tolist()
    [0.08, 0.08, 0.08, 0.08, 0.08, 0.08, 0.08, 0.08, 0.08, 0.08, 0.08, 0.08]
    """
    cells, inverse = np.unique(np.rint(x / width), return_inverse=True)
    counts = np.bincount(inverse, counted, len(cells)).astype(float)
    return np.asarray(_around(cells, np.maximum(counts - 1, 0))[inverse] / len(x))


def _around(cells: FloatArray, counts: FloatArray) -> FloatArray:
    """Return the second largest of the counts next to each, or the fifth largest where they are large and far away."""
    if not len(counts):
        return counts
    around = [_NEAR + shift for shift in range(-_NEAR, _NEAR + 1) if shift]
    others, places = (
        np.lib.stride_tricks.sliding_window_view(np.pad(each, _NEAR, constant_values=fill), 2 * _NEAR + 1)[:, around]
        for each, fill in ((counts, 0.0), (cells, np.inf))
    )
    constants = (np.abs(places - cells[:, None]) > _NEAR) & (others >= _MANY)
    of_grid = np.sort(np.where(constants, 0.0, others), axis=1)[:, -2]
    return np.asarray(np.maximum(of_grid, np.sort(others, axis=1)[:, -_NEAR]))


def _thinned(x: FloatArray, width: float) -> FloatArray:
    """Return the values, each as often as those next to it, or once."""
    cells, counts = np.unique(np.rint(x / width), return_counts=True)
    return np.repeat(cells * width, np.minimum(counts, _around(cells, counts.astype(float)).astype(int).clip(1)))


def _gain(ratio: FloatArray, n: int) -> tuple[float, float]:
    """Return what a kind adds to the log-likelihood at its best share, and that share."""
    share = len(ratio) / (n + 1)
    for _ in range(_STEPS):
        share = float((share * ratio / (1 - share + share * ratio)).sum()) / n
        share = min(share, 1 - 1e-9)
    return float(np.log1p(share * (ratio - 1)).sum() + (n - len(ratio)) * np.log1p(-share)), share


def _total(
    kinds: Sequence[Explanation], ratios: Sequence[FloatArray], chosen: Sequence[int], shares: FloatArray, n: int
) -> FloatArray:
    total = np.full(n, max(1 - float(shares.sum()), 1e-12))
    for j, share in zip(chosen, shares, strict=True):
        total[kinds[j].rows] += share * ratios[j]
    return total


def _density(x: FloatArray, points: FloatArray, widths: FloatArray) -> FloatArray:
    """Return the density of sorted points at x: the nearest ones over the room that they take."""
    n = len(points)
    half = int(np.ceil(np.sqrt(n))) + 1
    middle = (np.searchsorted(points, x, "left") + np.searchsorted(points, x, "right")) // 2
    first, last = np.maximum(middle - half, 0), np.minimum(middle + half, n) - 1
    room = np.maximum(points[last], x) - np.minimum(points[first], x)
    return np.asarray((last - first + 1) / ((n + 1) * np.maximum(room, widths)))


def _limited(points: FloatArray, low: float, high: float) -> FloatArray:
    """Add limits to sorted points where these are too few to show how far they reach."""
    return points if len(points) >= _FEW else np.concatenate([[low], points, [high]])


def _ending_weights(given: FloatArray, labels: FloatArray, unit: float) -> FloatArray:
    """Return how much more frequent the last two digits of a value are than chance has it, at least 1."""
    counts = np.bincount(_endings(labels, unit), minlength=_ENDINGS) + 1.0
    return np.asarray(np.maximum(1.0, _ENDINGS * counts / counts.sum())[_endings(given, unit)])


def _endings(values: FloatArray, unit: float) -> NDArray[np.intp]:
    return np.nan_to_num(np.mod(np.rint(values / unit), _ENDINGS)).astype(np.intp)


def _sample(values: FloatArray) -> FloatArray:
    return values[:: max(-(-len(values) // SAMPLE), 1)]
