"""The ReLU, or another link that clips, behind a table, in scikit-learn's conventions."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from massart.estimators.base import Recoverer
from massart.rows import RELU, Link


class MassartReLURegressor(Recoverer):
    """Regression of y = max(0, w.x) that is exact when, in every direction, fewer than half of the labels are wrong.

    A direction is a column or a combination of columns, as for :class:`MassartRegressor`.
    Other links than the ReLU: leaky ReLUs, and labels clipped at one limit or two (censored, Tobit-like tables).

    Parameters
    ----------
    fit_intercept : bool
        Add a constant to w.x. The paper's assumption, that every half-space holds a share of the rows, fails then: a
        formula may be active on few rows, and the certificate says so if they are too few to confirm it.
    link : Link, optional
        f of y = f(w.x); max(0, z) by default. ``Link(slope=0.1)`` is a leaky ReLU, ``Link(lower=0, upper=100)`` clips
        on both sides.
    tolerance, inliers, random_state
        As for :class:`MassartRegressor`.

    Attributes
    ----------
    certificate_ : Certificate or tuple of m
        What is known, in numbers and, from ``explain(names)``, in words. Rows with labels that no formula of the link
        gives (negative ones for a ReLU) are not counted in it. Where its verdict is NONE there is no rule: `coef_` is
        what came closest.
    coef_, intercept_, exact_coef_, exact_intercept_, formula_
        The formula, as in :class:`MassartRegressor`.
    inlier_mask_, last_place_mask_, noise_rate_, wrong_rows_
        The rows that follow it and those that do not, as there.
    scale_, standard_errors_, intercept_standard_error_, covariance_, degrees_of_freedom_, weights_, robust_r2_
        What is known of it where labels carry noise, as there.
    n_features_in_, feature_names_in_
        As there.

    Warns
    -----
    ConvergenceWarning
        As :class:`MassartRegressor` does.

    See Also
    --------
    MassartRegressor : Linear formulas.
    massart.paper.recover_relu : The published method by itself, on arrays.

    Examples
    --------
    A layer of three neurons, 30 % of its outputs wrong:

    >>> import numpy as np
    >>> from massart import MassartReLURegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((400, 2))
    >>> Y = np.maximum(0, X @ np.array([[1, -2, 0.5], [3, 0, -1]]))
    >>> Y[rng.random(Y.shape) < 0.3] = 7
    >>> layer = MassartReLURegressor(random_state=0).fit(X, Y)
    >>> layer.coef_
    array([[ 1. ,  3. ],
           [-2. ,  0. ],
           [ 0.5, -1. ]])
    >>> [certificate.verdict.name for certificate in layer.certificate_]
    ['PROVEN', 'PROVEN', 'PROVEN']
    """

    def __init__(
        self,
        fit_intercept: bool = False,
        link: Link | None = None,
        tolerance: float | Literal["auto"] = "auto",
        inliers: Literal["auto", "exact", "noisy"] = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.fit_intercept = fit_intercept
        self.link = link
        self.tolerance = tolerance
        self.inliers = inliers
        self.random_state = random_state

    def _link(self) -> Link:
        if not isinstance(self.link, Link | None):
            raise ValueError(f"link must be a massart.Link or None, got {self.link!r}")
        return RELU if self.link is None else self.link

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # on labels of both signs, of which a ReLU gives one
        return tags
