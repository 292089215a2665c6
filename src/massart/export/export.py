"""A saved model in the words of another tool."""

from __future__ import annotations

from collections.abc import Sequence

from massart.audit.contract import MAX_UNJUDGED
from massart.audit.model_file import SavedModel
from massart.export import checks, excel, python, sql
from massart.export.rule import ExportError, rule_of

TARGETS = ("sql", "python", "excel", "pandera", "dbt", "great-expectations")
"""What rules can be exported to."""


def export(
    model: SavedModel,
    to: str,
    table: str = "data",
    header: Sequence[str] | None = None,
    *,
    max_unjudged: float = MAX_UNJUDGED,
) -> str:
    """Return a text that finds the rows of a table that are wrong by a saved model, without massart.

    Parameters
    ----------
    model : SavedModel
    to : str
        One of `TARGETS`.
    table : str
        What "sql" reads, and the model of "dbt"; a dot parts a schema, or package, and a name.
    header : sequence of str, optional
        The columns of the sheet that "excel" is for; without it, those that the rule reads, and the target.
    max_unjudged : float
        The largest share of rows that are not judged of a table that passes: where they are more, "sql", "dbt" and
        "great-expectations" list them, too, and the schema of "pandera" fails. "python" and "excel" tell of each row
        whether it is judged, and count nothing.

    Raises
    ------
    ExportError
        For rules that `to` cannot say.
    """
    rule = rule_of(model, max_unjudged)
    match to:
        case "sql":
            return sql.select(rule, ".".join(map(sql.name, table.split("."))))
        case "python":
            return python.module(rule)
        case "excel":
            return excel.cells(rule, header)
        case "pandera":
            return checks.pandera(rule)
        case "dbt":
            return checks.dbt(rule, table)
        case "great-expectations":
            return checks.great_expectations(rule)
    raise ExportError(f"to must be one of {', '.join(TARGETS)}, got {to!r}")


def dbt_properties(model: SavedModel, name: str, *, max_unjudged: float = MAX_UNJUDGED) -> str:
    """Return the properties of a test of dbt that has this name: what the rule is, for dbt's documentation."""
    return checks.dbt_properties(rule_of(model, max_unjudged), name)
