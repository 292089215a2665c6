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

_HOME = {
    "Audit": "massart.audit",
    "Check": "massart.audit",
    "L1Solution": "massart.l1",
    "Link": "massart.rows",
    "ListedRule": "massart.recover",
    "MassartPACRegressor": "massart.estimators",
    "MassartReLURegressor": "massart.estimators",
    "MassartRegressor": "massart.estimators",
    "RadialIsotropy": "massart.isotropy",
    "RuleList": "massart.recover",
    "Scan": "massart.audit",
    "TermFeatures": "massart.estimators",
    "agreement_scorer": "massart.estimators",
    "audit_table": "massart.audit",
    "certify": "massart.recover",
    "check_table": "massart.audit",
    "decompose": "massart.isotropy",
    "l1_regression": "massart.l1",
    "radial_isotropy": "massart.isotropy",
    "recover_list": "massart.recover",
    "robust_r2_score": "massart.estimators",
    "robust_r2_scorer": "massart.estimators",
    "scan_table": "massart.audit",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_HOME[name]), name)
    globals()[name] = value  # found without __getattr__ from now on
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_HOME})
