"""Products of powers: ``923 * diameter^0.5 / length^0.5``, found by logarithms and counted on the original scale."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from massart.rules import terms as t
from massart.rules.sheet import Fit, Sheet
from massart.rules.terms import Term

_SIMPLE = (1, 2, 3, 4, 10, 20, 100)  # denominators of exponents
_LARGEST = 6.0
_NEAR = 0.02


def power_law(sheet: Sheet) -> Fit | None:
    """Return the rule that is a constant times a product of powers of positive columns, if there is any."""
    positive = sheet.y > 0
    names = [name for name in sheet.columns.numbers if name not in sheet.columns.dates]
    bases = [one for one in map(t.column, names) if sheet.values(one).min() > 0 and np.ptp(sheet.values(one)) > 0]
    if not bases or 2 * np.count_nonzero(positive) < len(positive):
        return None
    logs = [Term("log", (base,)) for base in bases]
    levels = [t.level(name, value) for name, known in sheet.columns.levels.items() for value in known.names[1:]]
    y = np.log(np.where(positive, sheet.y, 1.0))
    widths = sheet.half_widths() / np.where(positive, sheet.y, 1.0)
    scaled = replace(sheet, y=y, half_width=float(np.median(widths[positive])), widths=np.maximum(widths, 1e-9))
    found = scaled.fit([*logs, *levels], positive)
    if found is None:
        return None
    found = scaled.shortened(found, positive)
    exponents = {
        base: float(found.coef[found.terms.index(log)])
        for base, log in zip(bases, logs, strict=True)
        if log in found.terms
    }
    for denominator in _SIMPLE:
        rounded = {base: round(value * denominator) / denominator for base, value in exponents.items()}
        rounded = {base: value for base, value in rounded.items() if value}
        near = all(abs(rounded.get(base, 0.0) - value) <= _NEAR for base, value in exponents.items())
        if near and rounded and max(map(abs, rounded.values())) <= _LARGEST:
            product = t.product(*(t.power(base, value) for base, value in rounded.items()))
            fit = sheet.fit([product])
            if fit is not None and fit.net > 0.8 * found.net > 0:
                return fit
    return None
