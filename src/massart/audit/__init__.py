"""From a table to the formula, how sure it is, and the rows to fix."""

import logging

import massart.tables  # noqa: F401  # first, since it says which extra brings what is not installed
from massart.audit.auditing import audit_table
from massart.audit.checking import Check, check_table
from massart.audit.contract import BAD_INPUT, MAX_UNJUDGED, TOO_MANY_WRONG, Contract, Outcome, worst_status
from massart.audit.list_audit import Branch, ListAudit, TableRule
from massart.audit.model_file import ModelError, SavedModel, load_model
from massart.audit.prediction import Prediction, apply_model
from massart.audit.scan import Scan, scan_table
from massart.audit.summary import summary
from massart.audit.table_audit import Audit

logging.getLogger("massart").addHandler(logging.NullHandler())  # what it says while it works, for those who ask

__all__ = [
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
