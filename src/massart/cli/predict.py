"""``massart predict``: what a saved formula gives for each row of a table, which is checked where it has the target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from massart.cli.bars import spinner
from massart.cli.check import Result, tell_json
from massart.cli.config import Task
from massart.cli.inputs import opened
from massart.cli.options import AsJson, File, Report, with_options
from massart.cli.outputs import check_outputs, typed, write_outputs
from massart.cli.text import harmless
from massart.options import BlockReading, Names, Shares

if TYPE_CHECKING:
    from massart.audit import Prediction


@with_options(names=Names, limits=Shares, reading=BlockReading)
def predict(
    *,
    context: typer.Context,
    model: Annotated[Path, typer.Argument(help="Written by massart fit --save.")],
    file: File,
    out: Annotated[Path | None, typer.Option(help="Write to this file (CSV, Parquet) instead of stdout.")] = None,
    names: Names,
    limits: Shares,
    report: Report = None,
    as_json: AsJson = False,
    reading: BlockReading,
) -> None:
    """Apply a saved formula to the rows of a table.

    Where the table has the target, too, each row is compared with it, as massart check does.

    Exit status 0, 2 for bad input, and with --max-wrong or --max-unjudged that of massart check.
    """
    from massart.audit import check_table, load_model
    from massart.audit.prediction import held, notices_of, predicted
    from massart.tables import Table, default_memory

    check_outputs([model, file], {"--out": out, "--report": report})
    if as_json and out is None:
        raise ValueError("--json prints what was found: --out has to say where the predictions go")
    saved, max_wrong, max_unjudged = load_model(model).weighed, limits.max_wrong, limits.max_unjudged
    most = default_memory() if reading.most_bytes is None else reading.most_bytes
    check = None
    with (
        opened(file, reading, as_stream=True) as table,
        spinner("Predicting") as draw,
        _writing(out) as (parts, write),
    ):
        rows, target = held(saved, table, most, draw), saved.encoding.target.column
        # A target that nobody has filled in yet is none.
        if target in rows.column_names and not (
            isinstance(rows, Table) and rows.column(target).null_count == rows.n_rows
        ):
            check = check_table(
                saved,
                rows,
                max_wrong=max_wrong,
                max_unjudged=max_unjudged,  # by default any: targets that are not there yet are no fault here
                id=names.id,
                in_full=report is not None,
                max_memory=most,
                predictions=write,
                callback=draw,
            )
        elif max_wrong is not None or max_unjudged is not None or report is not None or as_json:
            raise ValueError(f"{file} has no column {target!r} to compare with the rule")
        else:
            for part in predicted(saved, rows, names.id, callback=draw):
                write(part)
    for notice in notices_of(parts):
        typer.echo(notice, err=True)
    if out is not None:
        typer.echo(f"Wrote {sum(part.n_rows for part in parts):,} rows to {harmless(out)}.", err=True)
    if check is None:
        return
    write_outputs(check.audit, typed(context), file, report=report)
    result = Result(Task(file=file, model=model), check.contract, check.outcome, check.audit)
    status = 0 if max_wrong is None and max_unjudged is None else check.outcome.status
    if as_json:
        tell_json([result], status)
    else:
        typer.echo(result.line, err=True)
    if status:
        raise typer.Exit(status)


@contextmanager
def _writing(out: Path | None) -> Iterator[tuple[list[Prediction], Callable[[Prediction], None]]]:
    """Yield what takes the next predictions and writes them to a file or to stdout, and a list of what was written."""
    from massart.tables import assembled, csv_text, table_writer

    parts: list[Prediction] = []
    if out is None:

        def show(part: Prediction) -> None:
            head = csv_text({name: values[:0] for name, values in part.columns.items()}) if parts else ""
            typer.echo(csv_text(part.columns).removeprefix(head), nl=False)
            parts.append(replace(part, columns={}, implied=None))

        yield parts, show
        return
    with table_writer(out, harmless=True) as write_table:

        def write(part: Prediction) -> None:
            write_table(assembled(part.columns, str(out)))
            parts.append(replace(part, columns={}, implied=None))

        yield parts, write
