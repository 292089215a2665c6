"""A saved model in the words of another tool; here those that watch over tables: pandera, dbt, Great Expectations."""

from __future__ import annotations

import json
from collections.abc import Sequence

from massart.audit import MAX_UNJUDGED, SavedModel
from massart.export import excel, python, sql
from massart.export.rule import ExportedRule, ExportError, rule_of

TARGETS = ("sql", "python", "excel", "pandera", "dbt", "great-expectations")
"""What rules can be exported to."""

_TABLE = "\0"
"""Stands for the table while the rest is escaped; no name has it."""

_PANDERA = '''

def _rows(frame):
    some = frame[{columns!r}].astype(object)
    return some.where(some.notna(), None).to_dict("records")


def _right(frame):
    """Return which rows of a data frame are not wrong; those that are not judged are not, and are counted apart."""
    return pd.Series([not wrong(row) for row in _rows(frame)], index=frame.index, dtype=bool)


def _judged(frame):
    """Return whether {limit}."""
    return sum(agrees(row) is None for row in _rows(frame)) / max(len(frame), 1) <= {most!r}


schema = pa.DataFrameSchema(
    {{name: pa.Column(nullable=True) for name in {columns!r}}},
    checks=[
        pa.Check(_right, name={name!r}, error={text!r}),
        pa.Check(_judged, name="enough rows are judged", error={limit!r}),
    ],
)
'''


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
            return _pandera(rule)
        case "dbt":
            return _dbt(rule, table)
        case "great-expectations":
            return _great_expectations(rule)
    raise ExportError(f"to must be one of {', '.join(TARGETS)}, got {to!r}")


def dbt_properties(model: SavedModel, name: str, *, max_unjudged: float = MAX_UNJUDGED) -> str:
    """Return the properties of a test of dbt that has this name: what the rule is, for dbt's documentation."""
    rule = rule_of(model, max_unjudged)
    lines = ["version: 2", "data_tests:", f"  - name: {_quoted(name)}"]
    return "\n".join([*lines, f"    description: {_quoted(_without_braces(rule.described))}"]) + "\n"


def _pandera(rule: ExportedRule) -> str:
    """Return a Python module with a schema for data frames of pandas; wrong rows are its failure cases.

    A second check fails for a frame of which too few rows could be judged.
    """
    text = python.module(rule)
    imports = "\nimport pandas as pd\nimport pandera.pandas as pa\n"
    place = text.index("from fractions import Fraction\n") + len("from fractions import Fraction\n")
    columns, most = [*rule.inputs, rule.target.column], float(rule.max_unjudged)
    check = _PANDERA.format(columns=columns, name=_title(rule), text=rule.text, limit=rule.limit, most=most)
    return text[:place] + imports + text[place:] + check


def _dbt(rule: ExportedRule, table: str) -> str:
    """Return a singular test: a SELECT from a model of dbt that returns the wrong rows.

    It also returns those that are not judged, where they are too many.
    """
    model = ", ".join(map(_quoted, table.split(".")))
    before, after = (_without_braces(part) for part in sql.select(rule, _TABLE).split(_TABLE, 1))
    return f"{before}{{{{ ref({model}) }}}}{after}"


def _great_expectations(rule: ExportedRule) -> str:
    """Return a Python module with a suite that holds one expectation: that a query of a batch returns no rows.

    It returns the wrong rows, and those that are not judged where they are too many.
    """
    # Braces are fields there, and a colon begins a parameter.
    escaped = sql.query(rule, _TABLE).replace("{", "{{").replace("}", "}}").replace(":", "\\:")
    text = escaped.replace(_TABLE, "{batch}", 1)
    lines = "".join(f"    {line!r}\n" for line in text.splitlines(keepends=True))
    heading = "".join(f"# {line}\n" for line in rule.heading)
    return (
        f"{heading}\nimport great_expectations as gx\nimport great_expectations.expectations as gxe\n\n"
        f"QUERY = (\n{lines})\n\n"
        f"suite = gx.ExpectationSuite(\n    name={_title(rule)!r},\n    expectations=[\n"
        f"        gxe.UnexpectedRowsExpectation(unexpected_rows_query=QUERY, description={rule.described!r})\n"
        "    ],\n)\n"
    )


def _quoted(text: str) -> str:
    """Return a text as YAML and Jinja read it."""
    return json.dumps(text, ensure_ascii=False)


def _title(rule: ExportedRule) -> str:
    return f"{rule.target.column} follows its rule"


def _without_braces(text: str) -> str:
    """Return a text of which Jinja takes nothing for its own."""
    return text.replace("{", "{{ '{' }}")
