"""Which columns of a table follow a rule of which others."""

from massart.audit.scan.scan import Scan, columns_of, scan_table

__all__ = ["Scan", "columns_of", "scan_table"]
