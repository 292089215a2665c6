"""massart recovers the exact formula behind a table when up to half of its answers are wrong.

The names below load on first use (PEP 562), so that ``import massart`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from massart.audit import Audit as Audit
    from massart.audit import Check as Check
    from massart.audit import Scan as Scan
    from massart.audit import audit_table as audit_table
    from massart.audit import check_table as check_table
    from massart.audit import scan_table as scan_table
    from massart.estimators import (
        MassartPACRegressor,
        MassartRegressor,
        MassartReLURegressor,
        TermFeatures,
        agreement_scorer,
        robust_r2_score,
        robust_r2_scorer,
    )
    from massart.isotropy import RadialIsotropy, decompose, radial_isotropy
    from massart.l1 import L1Solution, l1_regression
    from massart.recover import ListedRule, RuleList, certify, recover_list
    from massart.rows import Link

__version__ = "0.1.0"

# Without Audit, Scan and their functions, which need an extra: a star import must not.
__all__ = [
    "L1Solution",
    "Link",
    "ListedRule",
    "MassartPACRegressor",
    "MassartReLURegressor",
    "MassartRegressor",
    "RadialIsotropy",
    "RuleList",
    "TermFeatures",
    "__version__",
    "agreement_scorer",
    "certify",
    "decompose",
    "l1_regression",
    "radial_isotropy",
    "recover_list",
    "robust_r2_score",
    "robust_r2_scorer",
]

_DOORS = {
    "audit": "Audit Check Scan audit_table check_table scan_table",
    "estimators": "MassartPACRegressor MassartReLURegressor MassartRegressor TermFeatures agreement_scorer "
    "robust_r2_score robust_r2_scorer",
    "isotropy": "RadialIsotropy decompose radial_isotropy",
    "l1": "L1Solution l1_regression",
    "recover": "ListedRule RuleList certify recover_list",
    "rows": "Link",
}
_HOME = {name: f"massart.{door}" for door, names in _DOORS.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_HOME[name]), name)
    globals()[name] = value  # found without __getattr__ from now on
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_HOME})
