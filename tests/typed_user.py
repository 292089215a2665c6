"""A program that uses massart, seen from outside: mypy checks it (it never runs), the release from the wheel."""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

import numpy as np
from numpy.typing import NDArray

from massart import (
    Audit,
    Check,
    L1Solution,
    MassartRegressor,
    MassartReLURegressor,
    RadialIsotropy,
    Scan,
    audit_table,
    check_table,
    decompose,
    l1_regression,
    radial_isotropy,
    scan_table,
)
from massart.certificate import Certificate, Verdict

X: NDArray[np.float64] = np.eye(3)
y: NDArray[np.float64] = np.ones(3)

reg = MassartRegressor(fit_intercept=True, tolerance="auto", inliers="auto", random_state=0).fit(X, y)
assert_type(reg, MassartRegressor)
assert_type(reg.coef_, NDArray[np.float64])
assert_type(reg.inlier_mask_, NDArray[np.bool_])
assert_type(reg.score(X, y), float)
assert_type(MassartReLURegressor().fit(X, y, sample_weight=None).coef_, NDArray[np.float64])

assert_type(radial_isotropy(X), RadialIsotropy)
assert_type(decompose(X), list[RadialIsotropy])
assert_type(l1_regression(X, y), L1Solution)

audit = audit_table(Path("ledger.csv"), target="total")
assert_type(audit, Audit)
assert_type(audit.certificate, Certificate)
assert_type(audit.certificate.verdict, Verdict)
assert_type(check_table("ledger.model", "new.csv"), Check)
assert_type(scan_table("accounts.csv"), Scan)
