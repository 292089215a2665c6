"""From a table to the formula, how sure it is, and the rows to fix."""

from massart.audit.auditing import audit_table
from massart.audit.model_file import ModelError, SavedModel, load_model
from massart.audit.prediction import Prediction, apply_model
from massart.audit.scan import Scan, scan_table
from massart.audit.summary import summary
from massart.audit.table_audit import Audit
from massart.rules.choice import Kind

__all__ = [
    "Audit",
    "Kind",
    "ModelError",
    "Prediction",
    "SavedModel",
    "Scan",
    "apply_model",
    "audit_table",
    "load_model",
    "scan_table",
    "summary",
]
