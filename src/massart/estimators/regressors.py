"""Linear formulas, those behind a ReLU or another link that clips, and those right on nearly all rows (PAC)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from massart.certificate import Assumption
from massart.estimators.base import CHECKS_OF_X, CHECKS_OF_Y, Recoverer, generator_of, numbers_of
from massart.estimators.fitted import origin_of, target_names
from massart.recover import PACFormula, PACStatus, Recovery, learn_pac
from massart.rows import IDENTITY, RELU, ArrayRows, FloatArray, Link, Mark, Rows, tally


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


class MassartPACRegressor(Recoverer):
    """Linear regression that errs on a share epsilon of the rows at most, also where no coefficients are determined.

    Rows that concentrate on subspaces leave coefficients open, and a few rows off a subspace look like noise.
    This regressor asks for the products w.x instead: it learns them where enough rows tell, and `epsilon_` is the share
    of new rows on which it may err, a bound that holds with the confidence asked for.

    Parameters
    ----------
    epsilon : float in (0, 1)
        Share of the rows on which the formula may err.
    fit_intercept : bool
        Add a constant to the formula.
    eta : float, optional
        Largest rate at which labels are wrong; anything below 1/2 by default, which asks for more rows.
    confidence : float in (0, 1)
        Of `epsilon_`.
    tolerance, random_state
        As for :class:`MassartRegressor`.

    Attributes
    ----------
    epsilon_ : float or (m,) array
        The share that the rows stand behind; `epsilon` was reached if it is not larger.
    certificate_ : Certificate or tuple of m
        What is known about all rows together.
    pac_formula_ : PACFormula or tuple of m
        The pieces of the rows, what each says, and what of `epsilon_` is proven.
    coef_, intercept_, formula_
        The formula, as in :class:`MassartRegressor`.
    inlier_mask_, last_place_mask_, noise_rate_, wrong_rows_
        The rows that follow it and those that do not, as there.
    n_features_in_, feature_names_in_
        As there.

    Warns
    -----
    ConvergenceWarning
        If `epsilon_` is larger than `epsilon`.

    Notes
    -----
    The bound counts rows as independent draws, so there are no sample weights.

    See Also
    --------
    MassartRegressor : All coefficients, where the rows determine them.
    massart.recover.pac.learn_pac : The same on arrays.
    massart.paper.pac_learn : Appendix B to the letter: one L1 regression, without a bound.

    Examples
    --------
    Three columns of which the third is the sum of the others:

    >>> import numpy as np
    >>> from massart import MassartPACRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 10, size=(500, 2)) @ [[1, 0, 1], [0, 1, 1]]
    >>> y = X @ [1, 2, 3] + 5
    >>> y[::3] = 999
    >>> reg = MassartPACRegressor(epsilon=0.05, random_state=0).fit(X, y)
    >>> bool(reg.epsilon_ <= 0.05), np.round(reg.predict([[1, 1, 2], [4, 0, 4]]), 9)
    (True, array([14., 21.]))
    """

    def __init__(
        self,
        epsilon: float = 0.05,
        fit_intercept: bool = True,
        eta: float | None = None,
        confidence: float = 0.95,
        tolerance: float | Literal["auto"] = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.eta = eta
        self.confidence = confidence
        self.tolerance = tolerance
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike) -> Self:  # type: ignore[override]  # draws have no weights
        """Learn the formula and the share of the rows on which it may err.

        Parameters
        ----------
        X : (n, d) array, SciPy sparse matrix or data frame
            Independent draws of one distribution.
        y : (n,) or (n, m) array

        Raises
        ------
        ValueError
            Naming the argument that is wrong and, where there is one, the row and the column.
        """
        origin, labels = origin_of(X, y), y
        X, y = validate_data(self, X, y, validate_separately=(CHECKS_OF_X, CHECKS_OF_Y))
        X = numbers_of(X, getattr(self, "feature_names_in_", None))
        rng = generator_of(self.random_state)
        rows = ArrayRows(X, y, intercept=self.fit_intercept)
        table = rows.sample(rows.n_rows, rng)  # all rows, in their order
        found = tuple(
            learn_pac(
                _as_precise_as(X, table.X),
                _as_precise_as(y, labels),
                self.epsilon,
                eta=self.eta,
                confidence=self.confidence,
                tolerance=self.tolerance,
                rng=rng,
            )
            for labels in table.y.T
        )
        self._targets = target_names(labels, rows.n_outputs)
        self._keep(_recovery_of(found, rows), rows, one_output=np.ndim(y) == 1)
        self._keep_wrong_rows(X, y, origin)
        shares = np.array([formula.achieved for formula in found])
        self.epsilon_: float | FloatArray = float(shares[0]) if np.ndim(y) == 1 else shares
        self.pac_formula_: PACFormula | tuple[PACFormula, ...] = found[0] if np.ndim(y) == 1 else found
        _warn_of_shortage(found)
        return self


def _recovery_of(found: Sequence[PACFormula], rows: Rows) -> Recovery:
    """Return the formulas as the driver would; their standard errors are not known."""
    kernels = (Mark(formula.coef, formula.agreement, IDENTITY, j) for j, formula in enumerate(found))
    marks = tuple(rows.map(kernel) for kernel in kernels)
    coef = np.stack([formula.coef for formula in found], axis=1)
    return Recovery(
        coef=coef,
        marks=marks,
        tallies=tuple(tally(values, None) for values in marks),
        certificates=tuple(formula.certificate for formula in found),
        fractions=tuple((None,) * len(coef) for _ in found),
        scale=np.zeros(len(found)),
        standard_errors=np.full(coef.shape, np.nan),
        covariances=(None,) * len(found),
        verdicts=(),
    )


def _as_precise_as(given: Any, values: Any) -> Any:
    """Return values in the floating type they were given in, which says how far they are rounded."""
    dtype = getattr(given, "dtype", np.dtype(np.float64))
    return values.astype(dtype) if isinstance(dtype, np.dtype) and dtype.kind == "f" else values


def _warn_of_shortage(formulas: Sequence[PACFormula]) -> None:
    for j, formula in enumerate(formulas):
        if formula.status is PACStatus.SHORT:
            output = f" (output {j})" if len(formulas) > 1 else ""
            warnings.warn(f"{formula.status.name}{output}: {formula.explain()}", ConvergenceWarning, stacklevel=3)
