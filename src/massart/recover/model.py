r"""What the driver asks of a kind of formula, and the kinds there are: :math:`y = f(w \cdot x)` for a link f."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from numpy.typing import NDArray

from massart.certificate import Certificate
from massart.exact import Tolerance
from massart.relu import IDENTITY, Link, evidence, noisy, recovery
from massart.robust import RobustFit
from massart.rows import BoolArray, FloatArray

SAMPLE_ROWS_PER_COLUMN = 16
"""Size of the first sample: what Algorithm 1 needs at 40 % wrong labels in Gaussian position."""

CLIPPED_ROWS_PER_COLUMN = 32
"""The same where a link clips: about half of the rows tell no more than a side."""


@dataclass(frozen=True, slots=True)
class Model:
    """What the driver asks of a kind of formula, as functions; :func:`through` makes one from a link.

    Attributes
    ----------
    propose : callable
        Returns the best formula of a sample, the tolerance it needs and the rows that agree, as
        :func:`massart.linear.propose`.
    predict : callable
        ``predict(products)`` returns the labels for the products w.x.
    products : callable
        ``products(y)`` returns the products that decisive labels tell.
    decisive : callable
        ``decisive(y, slack)`` returns which labels tell a product at all.
    polish : callable
        ``polish(X, y, w, tolerance)`` returns w refitted to the rows that agree, and these rows.
    mark : callable
        ``mark(y, products, agree, tolerance)`` returns a small integer for each row, the lowest bit of which tells
        whether it agrees: what the certificate needs to know of a row that was read.
    certify : callable
        ``certify(X, weights, marks, tally, tolerance, pieces, rng, column_names)`` returns what is proven, from the
        rows of a sample and the weight of all rows of the table by their marks.
    robust : callable
        ``robust(X, y, weights, start, rng, callback)`` fits noisy inliers; returns the fit and the rows it is of, or
        None where labels tell too little.
    has_majority : callable
        ``has_majority(tally)`` tells whether more than half of the rows agree that can speak for a formula or against
        it.
    sample_rows_per_column : int
    """

    propose: Callable[..., tuple[FloatArray, Tolerance, BoolArray]]
    predict: Callable[[FloatArray], FloatArray]
    products: Callable[[FloatArray], FloatArray]
    decisive: Callable[[FloatArray, float], BoolArray]
    polish: Callable[[FloatArray, FloatArray, FloatArray, Tolerance], tuple[FloatArray, BoolArray]]
    mark: Callable[[FloatArray, FloatArray, BoolArray, Tolerance], NDArray[Any]]
    certify: Callable[..., Certificate]
    robust: Callable[..., tuple[RobustFit, BoolArray] | None]
    has_majority: Callable[[FloatArray], bool]
    sample_rows_per_column: int


def through(link: Link) -> Model:
    """Return the model y = f(w.x) for the link f."""
    return Model(
        propose=partial(recovery.propose, link=link),
        predict=link,
        products=link.inverse,
        decisive=link.decisive,
        polish=partial(recovery.polish, link=link),
        mark=partial(evidence.mark, link=link),
        certify=partial(evidence.certify_rows, link=link),
        robust=partial(noisy.robust_fit, link=link),
        has_majority=evidence.has_majority,
        sample_rows_per_column=SAMPLE_ROWS_PER_COLUMN if link.invertible else CLIPPED_ROWS_PER_COLUMN,
    )


LINEAR = through(IDENTITY)
"""y = w.x."""
