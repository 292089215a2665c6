"""Rules that leave massart: as SQL, a plain function, cell formulas, or a check of the tools that watch over tables."""

from massart.export.export import TARGETS, dbt_properties, export
from massart.export.rule import ExportError

__all__ = ["TARGETS", "ExportError", "dbt_properties", "export"]
