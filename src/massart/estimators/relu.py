"""The ReLU, or another link that clips, behind a table, in scikit-learn's conventions."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from massart.estimators.base import Recoverer
from massart.link import RELU, Link


class MassartReLURegressor(Recoverer):
    """Regression of y = max(0, w.x) that is exact when fewer than half of the labels are wrong, whatever they are.

    Other links than the ReLU: leaky ReLUs, and labels clipped at one limit or two (censored, Tobit-like tables).

    Parameters
    ----------
    fit_intercept : bool
        Add a constant to w.x. The paper's assumption, that every half-space holds a share of the rows, fails then: a
        formula may be active on few rows, and the certificate says so if they are too few to confirm it.
    link : Link, optional
        f of y = f(w.x); max(0, z) by default. ``Link(slope=0.1)`` is a leaky ReLU, ``Link(lower=0, upper=100)`` clips
        on both sides.
    tolerance : "auto" or float
        Largest residual of a row that follows the formula: an absolute number, such as 0.005 for labels rounded to
        cents, or the rounding error of the data's own precision.
    inliers : {"auto", "exact", "noisy"}
        Whether the right labels are exact (up to `tolerance`), carry noise of their own, or what the data say.
    random_state : int, RandomState instance or None
        Pass an int to get the same result from the same data every time.

    Attributes
    ----------
    coef_ : (d,) array, or (m, d) if y has m columns
        Coefficients; where the rows leave some undetermined, `certificate_` names them.
    intercept_ : float or (m,) array
        0 without an intercept.
    inlier_mask_ : (n,) or (n, m) boolean array
        Rows that follow the formula. Rows of weight zero are judged, too.
    last_place_mask_ : (n,) or (n, m) boolean array
        Rows that do not follow it, but are off by one unit of the last place of the labels only.
    noise_rate_ : float or (m,) array
        Share of the rows that do not follow it, by weight.
    certificate_ : Certificate or tuple of m
        What is known, in numbers and, from ``explain(names)``, in words. Rows with labels that no formula of the link
        gives (negative ones for a ReLU) are not counted in it. Where its verdict is NONE there is no rule: `coef_` is
        what came closest.
    exact_coef_ : tuple of d, or tuple of m of these
        Coefficients as a :class:`fractions.Fraction`; None where no simple number fits the rows as well.
    exact_intercept_ : Fraction or None, or tuple of m
    formula_ : str or tuple of m
        The formula in words, by the names of the columns and of `y`.
    wrong_rows_ : data frame or structured array, or tuple of m
        The rows that are called wrong, the worst first: what is given, what the formula implies, and the residual. A
        frame with the labels of the index where `X` or `y` is of pandas, one of polars where `X` is, else an array with
        these fields and the index, from 0. Not there for rows of Dask, on a device or in a memory map.
    scale_ : float or (m,) array
        Robust scale of the residuals of right labels; 0 where they are exact.
    standard_errors_ : array like `coef_`
        0 where labels are exact, NaN where the rows do not tell.
    intercept_standard_error_ : float or (m,) array
    covariance_ : (p, p) or (m, p, p) array
        Of the coefficients, that of the constant last; zero where labels are exact, NaN where nothing is known.
    degrees_of_freedom_ : int or (m,) array
        Rows that follow the formula, less the rank of these.
    weights_ : (n,) or (n, m) array
        Robustness weights of the rows: from 1 (right) to 0 (wrong) where labels carry noise, else one of the two.
    robust_r2_ : float or (m,) array
        The share of the variance that is explained, by weight: the coefficient of Renaud and Victoria-Feser (2010), as
        of R's ``lmrob``. 1 where labels are exact, NaN where the verdict is PLURALITY or NONE.
    n_features_in_ : int
    feature_names_in_ : (d,) array of str
        Only if X is a data frame whose columns all have names.

    Warns
    -----
    ConvergenceWarning
        In the certificate's words, if the formula is not confirmed (PLURALITY), if there is none (NONE), or if the
        rows do not determine every coefficient, so that `coef_` is one of several.

    See Also
    --------
    MassartRegressor : Linear formulas.
    massart.relu.recover_relu : The same on arrays, and the published method by itself.

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
            raise ValueError(f"link must be a massart.relu.Link or None, got {self.link!r}")
        return RELU if self.link is None else self.link

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # on labels of both signs, of which a ReLU gives one
        return tags
