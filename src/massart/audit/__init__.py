"""From a table to the formula, how sure it is, and the rows to fix."""

import logging
from importlib import import_module
from typing import TYPE_CHECKING

import massart.tables  # noqa: F401  # first, since it says which extra brings what is not installed
from massart.audit.summary import BAD_INPUT, MAX_UNJUDGED, TOO_MANY_WRONG, Contract, Outcome, summary, worst_status

if TYPE_CHECKING:
    from massart.audit.auditing import audit_table
    from massart.audit.checking import Check, check_table, held
    from massart.audit.list_audit import Branch, ListAudit, TableRule
    from massart.audit.model_file import ModelError, SavedModel, load_model
    from massart.audit.prediction import Prediction, apply_model, notices_of, predicted
    from massart.audit.scan import Scan, columns_of, scan_table
    from massart.audit.table_audit import Audit

# Loaded when first asked for: a check needs none of the modules that search for a rule.
_MODULES = {
    "auditing": "audit_table",
    "checking": "Check check_table held",
    "list_audit": "Branch ListAudit TableRule",
    "model_file": "ModelError SavedModel load_model",
    "prediction": "Prediction apply_model notices_of predicted",
    "scan": "Scan columns_of scan_table",
    "table_audit": "Audit",
}
_HOME = {name: f"massart.audit.{module}" for module, names in _MODULES.items() for name in names.split()}

logging.getLogger("massart").addHandler(logging.NullHandler())  # what it says while it works, for those who ask

__all__ = [
    "columns_of",
    "held",
    "notices_of",
    "predicted",
    "BAD_INPUT",
    "MAX_UNJUDGED",
    "TOO_MANY_WRONG",
    "Audit",
    "Branch",
    "Check",
    "Contract",
    "ListAudit",
    "ModelError",
    "Outcome",
    "Prediction",
    "SavedModel",
    "Scan",
    "TableRule",
    "apply_model",
    "audit_table",
    "check_table",
    "load_model",
    "scan_table",
    "summary",
    "worst_status",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_HOME[name]), name)
    globals()[name] = value  # found without __getattr__ from now on
    return value
