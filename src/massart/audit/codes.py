"""Numbers that may be codes: a rule in them is wrong wherever one code stands."""

from __future__ import annotations

import numpy as np

from massart.rows import BoolArray, FloatArray

_MOST_VALUES = 20
_LEAST_WRONG = 5
_NEARLY_ALL = 0.9


def looks_like_codes(values: FloatArray, wrong: BoolArray) -> float | None:
    """Return the value of a column of whole numbers at which nearly all rows are wrong, if most wrong rows have it.

    Parameters
    ----------
    values : (n,) array
    wrong : (n,) boolean array

    Examples
    --------
    >>> plan = np.repeat([101.0, 102.0, 103.0], 50)
    >>> looks_like_codes(plan, plan == 103)
    103.0
    """
    if wrong.sum() < _LEAST_WRONG or not (values == np.floor(values)).all():
        return None
    known, codes = np.unique(values, return_inverse=True)
    if not 3 <= len(known) <= _MOST_VALUES:
        return None
    off = np.bincount(codes[wrong], minlength=len(known))
    worst = int(np.argmax(off))
    others = (off.sum() - off[worst]) / max(len(values) - np.count_nonzero(codes == worst), 1)
    share = off[worst] / np.count_nonzero(codes == worst)
    return float(known[worst]) if share >= _NEARLY_ALL and 2 * others < share and 2 * off[worst] > off.sum() else None
