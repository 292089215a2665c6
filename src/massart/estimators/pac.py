"""A linear formula that is right on nearly all rows, whatever their distribution, in scikit-learn's conventions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from massart.estimators.base import Recoverer
from massart.estimators.checks import CHECKS_OF_X, CHECKS_OF_Y, generator_of, numbers_of
from massart.estimators.frames import origin_of, target_names
from massart.recover import Recovery
from massart.recover.pac import PACFormula, PACStatus, learn_pac
from massart.rows import IDENTITY, ArrayRows, FloatArray, Mark, Rows, tally


class MassartPACRegressor(Recoverer):
    """Linear regression that errs on a share epsilon of the rows at most, also where no coefficients are determined.

    Rows that concentrate on subspaces leave coefficients open, and a few rows off a subspace cannot be told from noise.
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
    """Return the formulas as the driver would; their coefficients have no errors that are known."""
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
