"""The driver: sample, propose, verify on all rows, grow.

Proposing a formula is expensive and verifying one is a single read of the table. So a small sample of the rows proposes
(:mod:`massart.linear`, :mod:`massart.relu`), the answer is polished and counted on ALL rows, and only where no majority
agrees the sample doubles, up to all rows. The table is met through three verbs (:class:`massart.rows.Rows`), so that it
may lie anywhere; the formula through a :class:`Model`, so that other links than the identity take the same road.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from massart import linear
from massart.certificate import Certificate, Verdict, noisy_certificate
from massart.exact import Tolerance, tolerances
from massart.isotropy import RadialIsotropy, decompose
from massart.progress import Callback, silent
from massart.recover.model import LINEAR, Model
from massart.recover.snapping import MOST_ROUNDED_ROWS, SQUARE_IS_FINITE, snap
from massart.relu import evidence
from massart.robust import Inliers, RobustFit, judge_inliers
from massart.rows import Block, BoolArray, FloatArray, Rows, Sample

SMALLEST_SAMPLE = 400

WORTH_SAMPLING = 4
"""A table of fewer samples than this is taken whole."""

EARLY_ROUNDS = 2
"""Rounds of search in a sample that can still grow: more rows help more than more search."""

MOST_NOISY_ROWS = 20_000
"""Rows of the sample from which a formula with noisy inliers is estimated."""

JUDGED_ROWS_PER_COLUMN = 12
"""Rows that decide whether there is a formula with noisy inliers at all: many fits of permuted labels are compared."""

PERMUTATIONS = 9

PLURALITY = 0.05
"""Share of rows, beyond those that any formula fits, that cannot agree by chance."""

CHEAP = 10_000_000
"""Numbers in a table on which the published algorithm runs whole before exactness is given up."""

_DOUBTFUL = 1e-3  # residuals below this share of a typical label are worth the exact size of their row


@dataclass(frozen=True, slots=True)
class Recovery:
    """Formulas for all label columns of a table.

    Attributes
    ----------
    coef : (d, m) array
        One column for each label column; the last row is the intercept where the table has one.
    agree : (n, m) boolean array
        Rows that follow the formula.
    noise_rate : (m,) array
        Share of the rows (by weight) that do not.
    certificates : tuple of m Certificate
    fractions : tuple of m tuples
        The exact value of each coefficient, a Fraction, or None where there is none.
    scale : (m,) array
        Robust scale of the residuals of noisy inliers; 0 for exact ones.
    standard_errors : (d, m) array
        Of the coefficients, for noisy inliers; 0 for exact ones, NaN where nothing is known.
    tolerances : tuple of m Tolerance
        What counted as agreement.
    """

    coef: FloatArray
    agree: BoolArray
    noise_rate: FloatArray
    certificates: tuple[Certificate, ...]
    fractions: tuple[tuple[Fraction | None, ...], ...]
    scale: FloatArray
    standard_errors: FloatArray
    tolerances: tuple[Tolerance, ...]


def recover(
    rows: Rows,
    *,
    tolerance: float | Literal["auto"] = "auto",
    inliers: Literal["auto", "exact", "noisy"] = "auto",
    rng: np.random.Generator,
    model: Model = LINEAR,
    search: bool = True,
    column_names: Sequence[str] | None = None,
    callback: Callback = silent,
) -> Recovery:
    """Recover the formula of each label column of a table.

    Parameters
    ----------
    rows : Rows
    tolerance : "auto" or float
        See :func:`massart.exact.tolerances`.
    inliers : {"auto", "exact", "noisy"}
        Whether right rows follow the formula exactly, or up to noise. "auto" asks the rows: a majority that agrees is
        exact, and only without one noise is considered.
    rng : numpy.random.Generator
    model : Model
    search : bool
        False for the published algorithm alone.
    column_names : sequence of str, optional
        Of all columns, the intercept included.
    callback : callable
    """
    if inliers not in ("auto", "exact", "noisy"):
        raise ValueError(f'inliers must be "auto", "exact" or "noisy", got {inliers!r}')
    driver = _Driver(rows, model, tolerance, rng, search, column_names, callback)
    outcomes = driver.exact(patient=inliers == "exact", rounds=1 if inliers == "noisy" else None)
    if inliers != "exact":
        for j, outcome in enumerate(outcomes):
            if inliers == "noisy" or not (driver.is_settled(outcome) or outcome.has_majority):
                outcomes[j] = driver.noisy(j, outcome, forced=inliers == "noisy")
    return Recovery(
        coef=np.stack([outcome.coef for outcome in outcomes], axis=1),
        agree=np.stack([outcome.agree for outcome in outcomes], axis=1),
        noise_rate=np.array([(driver.total - outcome.n_agree) / driver.total for outcome in outcomes]),
        certificates=tuple(outcome.certificate for outcome in outcomes),
        fractions=tuple(outcome.fractions for outcome in outcomes),
        scale=np.array([outcome.certificate.scale or 0.0 for outcome in outcomes]),
        standard_errors=np.stack([outcome.standard_errors for outcome in outcomes], axis=1),
        tolerances=tuple(outcome.tolerance for outcome in outcomes),
    )


@dataclass(frozen=True, slots=True)
class _Outcome:
    """A formula for one label column, verified on all rows."""

    coef: FloatArray
    tolerance: Tolerance
    fractions: tuple[Fraction | None, ...]
    agree: BoolArray
    n_agree: float
    certificate: Certificate
    standard_errors: FloatArray
    has_majority: bool


class _Driver:
    """One call of `recover`: the table, the options, and what is known of the table so far."""

    def __init__(
        self,
        rows: Rows,
        model: Model,
        tolerance: float | Literal["auto"],
        rng: np.random.Generator,
        search: bool,
        column_names: Sequence[str] | None,
        callback: Callback,
    ) -> None:
        self.rows = rows
        self.model = model
        self.tolerance = tolerance
        self.rng = rng
        self.search = search
        self.column_names = column_names
        self.callback = callback
        self.weights: FloatArray | None = rows.map(_weights_of) if rows.weighted else None
        self.total = float(rows.n_rows if self.weights is None else self.weights.sum())

    def exact(self, patient: bool, rounds: int | None) -> list[_Outcome]:
        """Return a formula for each label column, from samples that grow until a majority of all rows agrees.

        On all rows the search has so many `rounds`. Unless `patient`, a sample of moderate size in which nothing beyond
        chance agrees ends the search for an exact formula, after the published algorithm had all rows of a table that
        is not too large.
        """
        n, d = self.rows.n_rows, self.rows.n_columns
        size = max(self.model.sample_rows_per_column * d, SMALLEST_SAMPLE)
        hopeless_size = 2 * size
        open_columns = list(range(self.rows.n_outputs))
        outcomes: dict[int, _Outcome] = {}
        whole_rounds = rounds if self.search else 0
        rounds = EARLY_ROUNDS if self.search else 0
        while open_columns:
            if size * WORTH_SAMPLING > n:
                size = n
                rounds = whole_rounds if rounds else 0
            sample = self.rows.sample(size, self.rng)
            self._check_size(sample)
            pieces = decompose(sample.X, sample_weight=sample.weights, callback=self.callback)
            answers = [self._propose(sample, pieces, j, rounds) for j in open_columns]
            marks = self._verify([a.coef for a in answers], [a.tolerance for a in answers], open_columns)
            still_open = []
            hopeless = not patient and size >= hopeless_size
            for j, answer, column in zip(open_columns, answers, marks.T, strict=True):
                outcomes[j] = self._judge(sample, pieces, answer, column)
                if not self.is_settled(outcomes[j]):
                    still_open.append(j)
                    hopeless &= answer.n_decided <= d + 1
            if size == n or (hopeless and n * d > CHEAP):
                break
            open_columns = still_open
            size, rounds = (n, 0) if hopeless else (2 * size, rounds)
        return [outcomes[j] for j in range(self.rows.n_outputs)]

    def _check_size(self, sample: Sample) -> None:
        """Raise ValueError where squares of the numbers overflow, or all of them vanish."""
        sizes = np.abs(sample.X)
        largest = float(sizes.max())
        if largest and not 1 / SQUARE_IS_FINITE <= largest <= SQUARE_IS_FINITE:
            i, j = np.unravel_index(int(sizes.argmax()), sizes.shape)
            raise ValueError(
                f"X must have its largest number between {1 / SQUARE_IS_FINITE:g} and {SQUARE_IS_FINITE:g}, got "
                f"{sample.X[i, j]:g} at row {sample.index[i]}, column {j}: choose another unit"
            )

    def is_settled(self, outcome: _Outcome) -> bool:
        """Tell whether the certificate stands by what it determines: a majority agrees, or more."""
        return outcome.certificate.determined is not Verdict.PLURALITY

    def noisy(self, j: int, exact: _Outcome, forced: bool) -> _Outcome:
        """Return a formula with noisy inliers for column `j`, if the rows have one (or it is `forced`)."""
        sample = self.rows.sample(MOST_NOISY_ROWS, self.rng)
        y = sample.y[:, j]
        found = self.model.robust(sample.X, y, sample.weights, exact.coef, self.rng, self.callback)
        if found is None:
            return exact
        fit, fitted = found
        if fit.scale == 0:
            return exact
        weights = None if sample.weights is None else sample.weights[fitted]
        part = Sample(sample.X[fitted], self.model.products(y[fitted])[:, None], weights, sample.index[fitted])
        if not (forced or self._barely_noisy(part, exact, fit) or self._looks_noisy(part, exact)):
            return exact
        reach = float(np.abs(part.y[:, 0] - part.X @ fit.coef)[fit.inliers].max())
        tolerance = Tolerance(reach, 0.0, f"noise of scale {fit.scale:.3g}")
        agree = (self._verify([fit.coef], [tolerance], [j])[:, 0] & 1) > 0
        inliers = part.X[fit.inliers]
        certificate = noisy_certificate(
            self.total,
            self._weigh(agree),
            fit.scale,
            int(np.linalg.matrix_rank(inliers)),
            n_columns=self.rows.n_columns,
            X_inliers=inliers,
            column_names=self.column_names,
        )
        nothing = (None,) * self.rows.n_columns
        n_agree = self._weigh(agree)
        majority = 2 * n_agree > self.total
        return _Outcome(fit.coef, tolerance, nothing, agree, n_agree, certificate, fit.standard_errors, majority)

    def _barely_noisy(self, part: Sample, exact: _Outcome, fit: RobustFit) -> bool:
        """Tell whether a minority agrees exactly amid a majority that nearly does: noise about as large as rounding."""
        y = part.y[:, 0]
        sizes = np.abs(part.X) @ np.abs(exact.coef) + np.abs(y)
        agree = exact.tolerance.agree(y - part.X @ exact.coef, sizes)
        return bool(
            agree.sum() > self.rows.n_columns + PLURALITY * len(y)
            and (fit.inliers & agree).sum() > 0.9 * agree.sum()
            and fit.scale <= linear.NEAR * float(np.median(sizes))
        )

    def _looks_noisy(self, part: Sample, exact: _Outcome) -> bool:
        """Tell whether a part of the sample follows a formula up to noise, rather than exactly or not at all."""
        judged = self._judge_inliers(part, exact.coef)
        if judged is not Inliers.EXACT:
            return judged is Inliers.NOISY
        # An exact minority may be wrong labels by a rule, such as one value for all of them: then the rest decides.
        y = part.y[:, 0]
        sizes = np.abs(part.X) @ np.abs(exact.coef) + np.abs(y)
        rest = ~exact.tolerance.agree(y - part.X @ exact.coef, sizes)
        if 2 * rest.sum() <= len(y):
            return False
        weights = None if part.weights is None else part.weights[rest]
        others = Sample(part.X[rest], part.y[rest], weights, part.index[rest])
        return self._judge_inliers(others, exact.coef) is Inliers.NOISY

    def _judge_inliers(self, part: Sample, candidate: FloatArray) -> Inliers:
        n = len(part.y)
        size = min(n, max(JUDGED_ROWS_PER_COLUMN * self.rows.n_columns, SMALLEST_SAMPLE))
        some = np.sort(self.rng.choice(n, size, replace=False))
        evidence = judge_inliers(
            part.X[some],
            part.y[some, 0],
            (candidate,),
            sample_weight=None if part.weights is None else part.weights[some],
            rng=self.rng,
            n_permutations=PERMUTATIONS,
            callback=self.callback,
        )
        return evidence.inliers

    def _propose(self, sample: Sample, pieces: list[RadialIsotropy], j: int, rounds: int | None) -> _Answer:
        y = sample.y[:, j]
        candidates = tolerances(
            self.tolerance, sample.X, y, X_precision=self.rows.precision, y_precision=self.rows.precision
        )
        w, tolerance, agree = self.model.propose(
            sample.X, y, sample.weights, candidates, pieces, self.rng, rounds=rounds, callback=self.callback
        )
        X = sample.X
        if tolerance.absolute > 0 and len(y) < self.rows.n_rows:
            # Intervals of rounded labels pin a coefficient the better the more rows there are.
            more = self.rows.sample(MOST_ROUNDED_ROWS, self.rng)
            w, close = self.model.polish(more.X, more.y[:, j], w, tolerance)
            w, fractions = snap(self.model, more.X, more.y[:, j], close, w, tolerance)
        else:
            w, fractions = snap(self.model, X, y, agree, w, tolerance)
        decided = agree & self.model.decisive(y, tolerance.absolute)
        return _Answer(w, tolerance, fractions, int(decided.sum()))

    def _judge(self, sample: Sample, pieces: list[RadialIsotropy], answer: _Answer, marks: NDArray[Any]) -> _Outcome:
        agree = (marks & 1) > 0
        tally = evidence.tally(marks, self.weights)
        certificate = self.model.certify(
            sample.X, sample.weights, marks[sample.index], tally, answer.tolerance, pieces, self.rng, self.column_names
        )
        if certificate.determined is Verdict.MAJORITY and not self._has_column_majorities(sample, marks):
            is_open = certificate.verdict is Verdict.UNIDENTIFIABLE
            verdict = Verdict.UNIDENTIFIABLE if is_open else Verdict.PLURALITY
            certificate = replace(certificate, verdict=verdict, determined=Verdict.PLURALITY)
        known = certificate.verdict in (Verdict.PROVEN, Verdict.MAJORITY)
        errors = np.full(len(answer.coef), 0.0 if known else np.nan)
        return _Outcome(
            answer.coef,
            answer.tolerance,
            answer.fractions,
            agree,
            self._weigh(agree),
            certificate,
            errors,
            self.model.has_majority(tally),
        )

    def _has_column_majorities(self, sample: Sample, marks: NDArray[Any]) -> bool:
        """Tell whether a majority of ALL rows agrees for each column that is zero in some: those that speak and use it.

        The sample has chosen the formula. On a column that few of its rows use, such as one level of a category, it
        may be wrong for most rows of the table and right for most of the sample.
        """
        columns = np.flatnonzero((sample.X == 0).any(axis=0))
        if len(sample.index) == self.rows.n_rows or not len(columns):
            return True
        speaks, agree = evidence.speaks(marks), (marks & 1) > 0

        def count(block: Block) -> FloatArray:
            rows = slice(block.start, block.start + len(block.y))
            present = (block.dense()[:, columns] != 0) & speaks[rows, np.newaxis]
            counts = _weights_of(block)
            return np.stack([counts @ present, (counts * agree[rows]) @ present])

        met, right = self.rows.reduce(count)
        return bool(np.all((2 * right > met) | (met == 0)))

    def _verify(self, coefs: list[FloatArray], chosen: list[Tolerance], columns: list[int]) -> NDArray[Any]:
        """Return the marks of all rows for each formula: one read of the table."""
        W = np.stack(coefs, axis=1)

        def mark(block: Block) -> NDArray[Any]:
            products = block.times(W)
            if not np.isfinite(products).all():
                raise ValueError(self.rows.fault())
            predicted = self.model.predict(products)
            y = block.y[:, columns]
            residuals = np.abs(y - predicted)
            sizes = np.abs(y)  # at most the size of the terms: a row that agrees here agrees
            agree = np.stack([t.agree(residuals[:, i], sizes[:, i]) for i, t in enumerate(chosen)], axis=1)
            # Where terms cancel, the size is larger than its parts show: few rows are worth a closer look.
            doubtful = ~agree & (residuals <= _DOUBTFUL * (sizes + np.abs(y).max()))
            some = doubtful.any(axis=1)
            if some.any():
                exact = np.abs(block.dense(some)) @ np.abs(W) + np.abs(y[some])
                agree[some] |= np.stack(
                    [t.agree(residuals[some, i], exact[:, i]) for i, t in enumerate(chosen)], axis=1
                )
            return np.stack(
                [self.model.mark(y[:, i], products[:, i], agree[:, i], t) for i, t in enumerate(chosen)], axis=1
            )

        return self.rows.map(mark)

    def _weigh(self, agree: BoolArray) -> float:
        return float(agree.sum() if self.weights is None else self.weights[agree].sum())


@dataclass(frozen=True, slots=True)
class _Answer:
    """A formula of a sample, and the number of its rows that tell a product and agree."""

    coef: FloatArray
    tolerance: Tolerance
    fractions: tuple[Fraction | None, ...]
    n_decided: int


def _weights_of(block: Block) -> FloatArray:
    return np.ones(len(block.y)) if block.weights is None else block.weights
