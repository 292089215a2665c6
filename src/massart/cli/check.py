"""``massart check``: tables next to saved rules, as a contract that each keeps or breaks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from massart.cli.config import CheckTask, read_config, tables_of
from massart.cli.files import check_outputs, named_after, opened, typed, write_outputs
from massart.cli.options import Results, with_options
from massart.cli.terminal import bars, harmless, json_text, one_line, say
from massart.options import BlockReading, CheckLimits, Option, RowOptions

if TYPE_CHECKING:
    from massart.audit import Audit, Contract, Outcome

CONFIG = Path("massart.toml")


@dataclass(frozen=True)
class CheckCommand(Results):
    """What only the command line takes."""

    config: Annotated[
        Path | None,
        Option("Rules and files to check instead (TOML); massart.toml without arguments.", "Options"),
    ] = None
    audit: Annotated[Path | None, Option("Write the rows and what was found of them (CSV, Parquet).", "Output")] = None


@with_options(asked=CheckCommand, given=(CheckLimits, RowOptions, BlockReading))
def check(
    *,
    context: typer.Context,
    model: Annotated[
        Path | None, typer.Argument(metavar="MODEL", help="The rule, written by massart fit --save.")
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE", help="Tables as massart fit reads them; each file of a folder or pattern is one."
        ),
    ] = None,
    asked: CheckCommand,
    given: dict[str, Any],
) -> None:
    """Check tables against a saved rule: how many rows are wrong, what happened in them, pass or fail.

    Several tables give one summary, and what cannot be read does not keep the others from being checked.

    Exit status 0 if every table passes, 1 if a rule is not certain, most rows of a table do not follow it, or more rows
    could not be judged than --max-unjudged, 2 for bad input, and 3 if more rows are wrong than --max-wrong; 2 goes over
    3, and 3 over 1.
    """
    from massart.audit import worst_status

    config = CONFIG if asked.config is None and model is None and CONFIG.is_file() else asked.config
    if config is not None:
        if model is not None:
            raise ValueError("give a model and files, or --config, not both")
        tasks = [task.having(given) for task in read_config(config)]
    elif model is None or not files:
        raise ValueError(f"massart check needs a model and a file (or --config, or {CONFIG} in this folder)")
    else:
        tasks = [CheckTask(file=table, model=model).having(given) for name in files for table in tables_of(name)]
    outputs = {"--report": asked.report, "--audit": asked.audit}
    places = {task: _places(outputs, task, tasks) for task in tasks}
    for task, paths in places.items():
        check_outputs([path for path in (task.model, task.file) if path is not None], paths)
    results = [_checked(task, places[task], typed(context)) for task in tasks]
    if len(results) == 1 and results[0].audit is None:
        raise ValueError(results[0].outcome.reason)
    status = worst_status([result.outcome.status for result in results])
    if asked.json:
        tell_json(results, status, asked.all_rows)
    else:
        say(_lines(results[0], asked.all_rows) if len(results) == 1 else _overview(results))
    if status:
        raise typer.Exit(status)


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one table: an audit, or why there is none."""

    task: CheckTask
    contract: Contract
    outcome: Outcome
    audit: Audit | None = None

    @property
    def line(self) -> str:
        """Pass or fail and why; neither where rows are wrong and nothing was asked of them."""
        return f"{self.word}: {one_line(self.outcome.reason)}"

    @property
    def word(self) -> str:
        """Which of these."""
        from massart.audit import BAD_INPUT

        word = {True: "PASS", False: "FAIL", None: "WRONG"}[self.outcome.passed]
        return "ERROR" if self.outcome.status == BAD_INPUT else word


def _places(outputs: dict[str, Path | None], task: CheckTask, tasks: Sequence[CheckTask]) -> dict[str, Path | None]:
    """Return where the outputs of one table of several are written: report.html becomes report-may-total.html."""
    if len(tasks) == 1:
        return outputs
    name = Path(task.file).name if _has_one_rule(tasks) else f"{Path(task.file).name}-{task.rule}"
    return {option: path and named_after(path, name) for option, path in outputs.items()}


def _has_one_rule(tasks: Sequence[CheckTask]) -> bool:
    return len({task.file for task in tasks}) == len(tasks)


def _checked(task: CheckTask, paths: dict[str, Path | None], command: str) -> Result:
    """Check one table; what is wrong with it is a result like others."""
    from massart.audit import BAD_INPUT, Outcome, check_table

    contract, options = task.contract, task.options
    try:
        with (
            opened(task.file, task.reading, as_stream=task.model is not None) as table,
            bars("Checking") as draw,
        ):
            if task.model is None:
                from massart.audit import audit_table

                found = audit_table(table, **vars(options), audit=paths["--audit"], callback=draw)
            else:
                found = check_table(
                    task.model,
                    table,
                    id=options.id,
                    group=options.group,
                    strict=options.strict,
                    in_full=paths["--report"] is not None,
                    max_memory=task.reading.most_bytes,
                    audit=paths["--audit"],
                    callback=draw,
                ).audit
        for notice in found.notices:
            typer.echo(f"{found.table.name}: {notice}", err=True)
        write_outputs(found, command, task.file, report=paths["--report"], audit=paths["--audit"])
    except (ValueError, OSError) as error:
        return Result(task, contract, Outcome(BAD_INPUT, one_line(str(error))))
    return Result(task, contract, contract.outcome(found), found)


def _lines(result: Result, all_rows: bool) -> Iterator[str]:
    """Say what was found in one table: pass or fail and why, the rule, the kinds and the wrong rows."""
    from massart.cli.layout import (
        MOST_WRONG_ROWS,
        formula_lines,
        is_list,
        kind_lines,
        list_lines,
        paragraphs,
        wrong_lines,
    )
    from massart.report import count

    audit = result.audit
    assert audit is not None
    most = audit.n_wrong if all_rows else MOST_WRONG_ROWS
    yield from (result.line, "")
    if is_list(audit):
        yield from list_lines(audit, most)
        return
    yield from formula_lines(audit.formula)
    if audit.n_last_place:
        yield f"{count(audit.n_last_place, 'rows')} off by a last place."
    yield from paragraphs(kind_lines(audit), wrong_lines(audit, most))


def _overview(results: Sequence[Result]) -> Iterator[str]:
    """Name the tables that fail or have wrong rows, one line each, and count all of them."""
    with_rule = not _has_one_rule([result.task for result in results])
    for result in results:
        if not result.outcome.passed:
            name = harmless(result.task.file) + (f" ({harmless(result.task.rule)})" if with_rule else "")
            yield f"{result.word}  {name}: {one_line(result.outcome.reason)}"
    yield _sentence(results)


def _sentence(results: Sequence[Result]) -> str:
    """Return how many tables pass and fail, and why, and how many rows of all of them are wrong and not judged."""
    from massart.report import counted

    n = {status: sum(result.outcome.status == status for result in results) for status in range(4)}
    n_open = sum(result.outcome.is_open for result in results)
    n_blind = sum(result.outcome.is_blind for result in results)
    parts = [f"{n[0] - n_open:,} passed"]
    parts += [f"{n_open:,} with wrong rows (no --max-wrong given: nothing fails)"] * (n_open > 0)
    parts += [f"{n[3]:,} with too many wrong rows"] * (n[3] > 0)
    parts += [f"{n_blind:,} with too few judged rows"] * (n_blind > 0)
    parts += [f"{n[1] - n_blind:,} whose rule is not certain"] * (n[1] > n_blind)
    parts += [f"{n[2]:,} not checked"] * (n[2] > 0)
    audits = [result.audit for result in results if result.audit is not None]
    n_total, n_judged, n_wrong = (sum(getattr(one, n) for one in audits) for n in ("n_total", "n_judged", "n_wrong"))
    rows = f" {'; '.join(counted(n_total, n_judged, n_wrong))}." if audits else ""
    return f"{len(results):,} checks: {', '.join(parts)}.{rows}"


def tell_json(results: Sequence[Result], status: int, all_rows: bool = False) -> None:
    """Print what was found in all tables as JSON."""
    from massart.audit import summary

    tables = []
    for result in results:
        said = {"passed": False, "exit_status": result.outcome.status, "error": result.outcome.reason}
        if result.audit is not None:
            said = summary(result.audit, result.contract, all_rows=all_rows)
        tables.append({"file": result.task.file, "rule": str(result.task.model or result.task.options.target), **said})
    found = {
        "passed": None if not status and any(result.outcome.is_open for result in results) else status == 0,
        "exit_status": status,
        "reason": results[0].outcome.reason if len(results) == 1 else _sentence(results),
        "tables": tables,
    }
    typer.echo(json_text(found))
