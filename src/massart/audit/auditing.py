"""From a table to the formula, how sure it is, and the rows to fix: :func:`audit_table`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import fields, replace
from inspect import Parameter, Signature
from pathlib import Path
from textwrap import fill
from typing import Any, Concatenate, ParamSpec

from massart.audit.finding import find
from massart.audit.fixing import notes_on_rows, write_fixed
from massart.audit.list_audit import check_list_request, list_rules
from massart.audit.question import Call, target_in
from massart.audit.streaming import audit_stream
from massart.audit.table_audit import Audit
from massart.options import FitOptions, described, in_words
from massart.tables import Stream, Table, default_memory, frame_in, stream_table, table_of, write_columns

_P = ParamSpec("_P")
_LOG = logging.getLogger("massart")


def _with_parameters(
    of: Callable[_P, Call],
) -> Callable[[Callable[[object, Call], Audit]], Callable[Concatenate[object, _P], Audit]]:
    """Give a function the parameters of a class of options: for type checkers, for readers and for programs."""

    def decorated(function: Callable[[object, Call], Audit]) -> Callable[Concatenate[object, _P], Audit]:
        def audit_table(*args: Any, **given: Any) -> Audit:
            bound = shown.bind(*args, **given).arguments  # which names what is missing or unknown
            return function(bound.pop("source"), made(**bound))

        made: Any = of
        parameters = [Parameter("source", Parameter.POSITIONAL_OR_KEYWORD, annotation=object)]
        text = ""
        defaults = {one.name: one.default for one in fields(Call)}
        for name in dict.fromkeys(("target", *described(FitOptions), *described(Call))):
            hint, option = described(Call)[name]
            place = Parameter.POSITIONAL_OR_KEYWORD if name == "target" else Parameter.KEYWORD_ONLY
            parameters.append(Parameter(name, place, default=defaults[name], annotation=hint))
            said = fill(option.help, 112, initial_indent=" " * 8, subsequent_indent=" " * 8)
            text += f"    {name} : {in_words(hint, option)}\n{said}\n"
        parameters.sort(key=lambda one: one.kind)
        shown = audit_table.__signature__ = Signature(parameters, return_annotation=Audit)  # type: ignore[attr-defined]
        audit_table.__doc__ = (function.__doc__ or "").replace("    OPTIONS\n", text)
        audit_table.__module__ = function.__module__
        audit_table.__qualname__ = "audit_table"
        return audit_table

    return decorated


@_with_parameters(Call)
def audit_table(source: object, call: Call) -> Audit:
    """Find the rule behind a column of a table, and the rows that do not follow it.

    Parameters
    ----------
    source : str, Path, Table or data frame
        A file (CSV, TSV, .xlsx, .ods, Parquet, Arrow, JSON lines), a folder of such files or a pattern such as
        ``"data/*.parquet"``; or a pandas, polars or pyarrow table.
    OPTIONS

    Returns
    -------
    Audit
        Of a file larger than memory, with the rows that were kept: its worst, and others drawn at random. With `rules`
        it is a :class:`massart.audit.ListAudit`, unless there is no second rule.

    Raises
    ------
    ValueError
        Naming the parameter at fault.
    TableError
        Naming the file, column or row at fault.
    TermError
        Naming the term at fault.
    """
    asked = FitOptions().having(vars(call))
    call = replace(call, target=target_in(call.target, call.formula))
    _check(call)
    if isinstance(source, Stream):
        found = audit_stream(source, call)
    elif isinstance(source, str | Path):
        most = default_memory() if call.most_bytes is None else call.most_bytes
        with stream_table(source, **call.of_file, max_memory=most, callback=call.callback) as stream:
            if call.client is not None or stream.is_larger_than(most):
                found = audit_stream(stream, call)
            else:
                found = _audit_of(stream.whole(call.callback), call, source)
    else:
        found = _audit_of(table_of(source, na=call.na), call, call.read_from)
    return found.having(frame=frame_in(source), options=asked)


def _check(call: Call) -> None:
    """Raise ValueError for outputs that a list of rules does not have."""
    if call.rules is None:
        return
    check_list_request(call)
    if call.fixed is not None or call.fill:
        raise ValueError(
            "a list of rules does not say which of them a wrong row should follow, so that no fixed table is "
            "written: fit one rule, or choose its rows first"
        )


def _audit_of(table: Table, call: Call, path: str | Path | None) -> Audit:
    """Audit a table in memory, which was read from a file, perhaps, and write what is asked for."""
    found = find(table, call).audit if call.rules is None else list_rules(table, call, call.rules)
    if call.audit is not None:
        rows = found.rows()
        write_columns(call.audit, rows, notes_on_rows(found, rows))
    if call.fixed is not None and (found.is_certain or (call.force and found.is_rule)):
        notices = write_fixed(call.fixed, found, path if call.read_from is None else call.read_from, fill=call.fill)
        found = found.having(notices=(*found.notices, *notices))
    for notice in found.notices:
        _LOG.info("%s: %s", found.table.name, notice)
    _LOG.info("%r", found)
    return found
