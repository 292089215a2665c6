"""Rules that leave massart: as SQL, a plain function, cell formulas, or a check of the tools that watch over tables."""

from massart.export.rule import ExportError
from massart.export.targets import TARGETS, dbt_properties, export

__all__ = ["TARGETS", "ExportError", "dbt_properties", "export"]
