"""The linear formula behind a table, in scikit-learn's conventions."""

from __future__ import annotations

from typing import Literal

import numpy as np

from massart.certificate import Assumption
from massart.estimators.base import Recoverer


class MassartRegressor(Recoverer):
    """Linear regression that is exact when, in every direction, fewer than half of the labels are wrong.

    A direction is a column or a combination of columns: of the few rows that have a surcharge, too, most must be right.
    If 15 of 20 such rows follow another one, that is what is found, though only a few of all rows are wrong.
    The share of wrong labels is estimated, not asked for; rows whose labels are right but not exact are recognized.

    Parameters
    ----------
    fit_intercept : bool
        Add a constant to the formula.
    tolerance : "auto" or float
        Largest residual of a row that follows the formula: an absolute number, such as 0.005 for labels rounded to
        cents, or the rounding error of the data's own precision.
    inliers : {"auto", "exact", "noisy"}
        Whether the right labels are exact (up to `tolerance`), carry noise of their own, or what the data say.
        With a number as `tolerance`, "auto" means exact up to it.
    random_state : int, RandomState instance or None
        Pass an int to get the same result from the same data every time.
    errors : {"arbitrary", "independent"}
        What you declare of errors. "independent": they depend neither on the columns nor on each other, and no wrong
        amount is as frequent as right labels. A formula that most rows break may then be CONFIRMED, unless the rows
        refute the declaration: see :doc:`/support`.

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
        What is known, in numbers and, from ``explain(names)``, in words. Where its verdict is NONE there is no rule:
        `coef_` is what came closest, and the rows that do not follow it are not wrong.
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

    Notes
    -----
    :meth:`score` is R² on all rows given to it, wrong ones included. Choose parameters by
    :func:`massart.agreement_scorer` or :data:`massart.robust_r2_scorer`, as ``scoring=`` of ``GridSearchCV``.

    Examples
    --------
    >>> import numpy as np
    >>> from massart import MassartRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 10, size=(100, 2))
    >>> y = X @ [0.25, -3] + 7
    >>> y[:40] = 999
    >>> reg = MassartRegressor(random_state=0).fit(X, y)
    >>> reg.coef_, reg.intercept_, reg.noise_rate_
    (array([ 0.25, -3.  ]), 7.0, 0.4)
    >>> reg.certificate_.verdict.name
    'PROVEN'
    """

    def __init__(
        self,
        fit_intercept: bool = True,
        tolerance: float | Literal["auto"] = "auto",
        inliers: Literal["auto", "exact", "noisy"] = "auto",
        random_state: int | np.random.RandomState | None = None,
        errors: Literal["arbitrary", "independent"] = "arbitrary",
    ) -> None:
        self.fit_intercept = fit_intercept
        self.tolerance = tolerance
        self.inliers = inliers
        self.random_state = random_state
        self.errors = errors

    def _assumption(self) -> Assumption:
        return Assumption(errors=self.errors)
