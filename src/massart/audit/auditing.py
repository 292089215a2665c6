"""The door: a table, a file or a stream, and the rule behind one of its columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from massart.audit.cluster import OnCluster
from massart.audit.finding import Request, find, target_in
from massart.audit.fixing import write_fixed
from massart.audit.listing import check_list_request, list_rules
from massart.audit.log import log
from massart.audit.streaming import audit_stream
from massart.audit.table_audit import Audit
from massart.audit.workbook import notes_on_rows
from massart.certificate import Errors
from massart.rows import Callback, silent
from massart.rules.choice import Kind
from massart.rules.find import Inliers
from massart.tables import Stream, Table, default_memory, frame_in, stream_table, table_of, write_columns


def audit_table(
    source: object,
    target: str | None = None,
    *,
    terms: str | Sequence[str] = "auto",
    formula: str | None = None,
    model: Kind = "auto",
    features: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    category: Sequence[str] = (),
    number: Sequence[str] = (),
    id_column: str | None = None,
    group_column: str | None = None,
    error_unit: str | None = None,
    wrong_at_most: float = 0.5,
    errors: Errors = "arbitrary",
    looks: float = 1.0,
    tolerance: float | Literal["auto"] = "auto",
    rules: int | Literal["auto"] | None = None,
    inliers: Inliers = "auto",
    intercept: bool = True,
    strict: bool = False,
    budget: float = 20.0,
    seed: int = 0,
    sheet: str | int | None = None,
    skip: int | None = None,
    na: Sequence[str] = (),
    max_memory: int | None = None,
    audit: str | Path | None = None,
    fixed: str | Path | None = None,
    fill: bool = False,
    force: bool = False,
    announce: Callable[[Audit | None], None] | None = None,
    client: Any = None,
    read_from: str | None = None,
    callback: Callback = silent,
) -> Audit:
    """Find the rule behind a column of a table, and the rows that do not follow it.

    Parameters
    ----------
    source : str, Path, Table or data frame
        A file (CSV, TSV, .xlsx, .ods, Parquet, Arrow, JSON lines), a folder of such files or a pattern such as
        ``"data/*.parquet"``; or a pandas, polars or pyarrow table.
    target : str, optional
        The column that should follow a rule of the others; a `formula` names it itself.
    terms : "auto", "columns", str or sequence of str
        What the rule may be made of. "columns": the columns as they stand. "auto": these first and, while many rows
        disagree, products, ratios, rates by category, running sums, tiers and rules by group. Otherwise terms such as
        ``"qty*price, max(0, kwh - 200)"``; see :mod:`massart.rules.language`.
    formula : str, optional
        The same as R and statsmodels write it: ``"total ~ qty:price + hours:C(service)"``.
    model : {"auto", "linear", "relu"}
        A sum of terms, or such a sum with 0 where it is negative; "auto" takes that of which the rows say more.
    features : sequence of str, optional
        The columns that the rule may use; by default all that hold numbers, booleans, dates or categories.
    exclude : sequence of str
        Columns that it may not use.
    category : sequence of str
        Columns whose numbers are codes.
    number : sequence of str
        Columns of numbers, whatever else is among them: rows with something else there are left out.
    id_column : str, optional
        The column that names the rows.
    group_column : str, optional
        Wrong rows are counted for each of its values.
    error_unit : str, optional
        Rows with the same value in this column may be wrong together; without it, errors are taken to be independent.
    wrong_at_most : float
        The probability with which a label is wrong at most, as far as you know: CONFIRMED assumes it. With an
        `error_unit`, the probability that a unit has any wrong row.
    errors : {"arbitrary", "independent"}
        What you declare of errors. "independent": they depend neither on the columns nor on each other, and no wrong
        amount is as frequent as right labels. A rule that most rows break may then be CONFIRMED, unless the rows refute
        the declaration: see :doc:`/support`.
    looks : float
        Where the answers of several calls are claimed together, among how many what may fail is shared.
    tolerance : "auto" or float
        Largest residual of a row that follows the rule; see :class:`massart.MassartRegressor`.
    rules : int or "auto", optional
        Look for several rules, each followed by some of the rows: at most so many, or until one fails its test. The
        answer is then a :class:`massart.audit.ListAudit`, or the fit of one rule where there is no second.
    inliers : {"auto", "exact", "noisy"}
        Whether right rows follow the rule exactly (up to `tolerance`), carry noise of their own, or what the data say.
        With a `tolerance` they are exact up to it.
    intercept : bool
        Whether the rule has a constant.
    strict : bool
        Refuse missing values instead of leaving out their rows.
    budget : float
        Seconds of processor time that the search beyond the plain columns may take.
    seed : int
        Of all random choices.
    announce : callable, optional
        Told of the answer of the plain columns, or None if a first glance sees none, before the search goes on.
    sheet : str or int, optional
        Of a workbook: the name or the number of a sheet; the largest by default.
    skip : int, optional
        Lines of a file above its column names; found by default.
    na : sequence of str
        Texts and numbers that mean that a value is missing.
    max_memory : int, optional
        Bytes that a table may take; a file that is larger is read in blocks, more than once, and never held. By default
        an eighth of the memory of the machine.
    audit, fixed : str or Path, optional
        Files to write: the rows and what was found of them, and the table with its wrong targets replaced. Of a file
        larger than memory the first has the wrong rows, in the order of the file. Without a verdict that is certain
        (PROVEN or CONFIRMED), no fixed table is written.
    fill : bool
        Whether the fixed table has values for missing targets, too; not of a file larger than memory.
    force : bool
        Whether a fixed table is written though the rule is not certain.
    client : distributed.Client, optional
        A Dask cluster whose workers read the file, which has to be Parquet, or a folder or pattern of such files.
    read_from : str, optional
        The file that a Table was read from: as far as it is text, its cells stay as they are in the fixed table.
    callback : callable

    Returns
    -------
    Audit
        Of a file larger than memory, with the rows at hand: its worst, and others drawn at random.

    Raises
    ------
    TableError
        Naming the file, column or row at fault.
    TermError
        Naming the term at fault.
    """
    request = Request(
        target_in(target, formula),
        terms,
        formula,
        model,
        features,
        exclude,
        category,
        number,
        id_column,
        group_column,
        error_unit,
        wrong_at_most,
        looks,
        tolerance,
        inliers,
        intercept,
        strict,
        budget,
        seed,
        announce,
        callback,
        rules=rules,
        errors=errors,
    )
    if rules is not None:
        _check_list(request, fixed, fill)
    engine = None if client is None else OnCluster(client)
    if isinstance(source, Stream):
        _check_in_memory(request)
        return audit_stream(source, request, audit=audit, fixed=_unfilled(fixed, fill), force=force, engine=engine)
    if isinstance(source, str | Path) and str(source) != "-":
        most = default_memory() if max_memory is None else max_memory
        with stream_table(source, sheet=sheet, skip=skip, na=na, max_memory=most, callback=callback) as stream:
            if engine is not None or stream.is_larger_than(most):
                _check_in_memory(request)
                fixed = _unfilled(fixed, fill)
                return audit_stream(stream, request, audit=audit, fixed=fixed, force=force, engine=engine)
            if not Path(source).is_file():
                source = stream.whole()
    table = source if isinstance(source, Table) else table_of(source, sheet=sheet, skip=skip, na=na)
    found = find(table, request).audit if rules is None else list_rules(table, request, rules)
    if audit is not None:
        rows = found.rows()
        write_columns(audit, rows, notes_on_rows(found, rows))
    if fixed is not None and (found.is_certain or (force and found.is_rule)):
        told = write_fixed(fixed, found, source if read_from is None else read_from, fill=fill)
        found = replace(found, notices=(*found.notices, *told))
    for notice in found.notices:
        log.info("%s: %s", found.table.name, notice)
    log.info("%r", found)
    return replace(found, frame=frame_in(source))


def _check_list(request: Request, fixed: str | Path | None, fill: bool) -> None:
    """Raise ValueError for what a list of rules cannot do."""
    check_list_request(request)
    if fixed is not None or fill:
        raise ValueError(
            "a list of rules does not say which of them a wrong row should follow, so that no fixed table is written: "
            "fit one rule, or choose its rows first"
        )


def _check_in_memory(request: Request) -> None:
    if request.rules is not None:
        raise ValueError(
            "a list of rules is looked for where the whole table is in memory: raise --max-memory, leave out --dask, "
            "or take a part of the rows"
        )


def _unfilled(fixed: str | Path | None, fill: bool) -> str | Path | None:
    if fixed is not None and fill:
        raise ValueError("missing targets are filled in where the whole table is in memory: raise --max-memory")
    return fixed
