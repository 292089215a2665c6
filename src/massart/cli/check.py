"""``massart check``: tables next to saved rules, as a contract that each keeps or breaks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from massart.audit import BAD_INPUT, MAX_UNJUDGED, Check, Contract, Outcome, check_table, summary, worst_status
from massart.cli.config import CheckTask, read_config, tables_of
from massart.cli.files import check_outputs, named_after, opened, typed, write_outputs
from massart.cli.layout import MOST_WRONG_ROWS, formula_lines, is_list, kind_lines, list_lines, paragraphs, wrong_lines
from massart.cli.options import Results, with_options
from massart.cli.terminal import bars, harmless, json_text, one_line, say
from massart.options import BlockReading, CheckLimits, Option, RowOptions
from massart.report import count, counted

CONFIG = Path("massart.toml")


@dataclass(frozen=True)
class CheckCommand(Results):
    """Options that only the command line has."""

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
    tasks = [task.having(given) for task in _asked(model, files or [], asked.config)]
    outputs = {"--report": asked.report, "--audit": asked.audit}
    places = {task: _places(outputs, task, tasks) for task in tasks}
    for task, paths in places.items():
        check_outputs([path for path in (task.model, task.file) if path is not None], paths)
    results = [_checked(task, places[task], typed(context)) for task in tasks]
    if len(results) == 1 and results[0].check is None:
        raise ValueError(results[0].error)
    status = worst_status([result.outcome.status for result in results])
    if asked.json:
        tell_json(results, status, asked.all_rows)
    else:
        say(_lines(results[0], asked.all_rows) if len(results) == 1 else _overview(results))
    if status:
        raise typer.Exit(status)


def _asked(model: Path | None, files: Sequence[str], config: Path | None) -> list[CheckTask]:
    """Return what is checked: the files on the command line, or what a configuration names."""
    if config is None and model is None and CONFIG.is_file():
        config = CONFIG
    if config is not None:
        if model is not None:
            raise ValueError("give a model and files, or --config, not both")
        return read_config(config)
    if model is None or not files:
        raise ValueError(f"massart check needs a model and a file (or --config, or {CONFIG} in this folder)")
    return [CheckTask(file=table, model=model) for name in files for table in tables_of(name)]


@dataclass(frozen=True, slots=True)
class Result:
    """The result for one table: a check, or why it could not be checked."""

    task: CheckTask
    check: Check | None = None
    error: str = ""

    @property
    def outcome(self) -> Outcome:
        """Whether the table keeps what is asked of it."""
        return Outcome(BAD_INPUT, self.error) if self.check is None else self.check.outcome

    @property
    def word(self) -> str:
        """Pass or fail; neither where rows are wrong and no limit was set."""
        return "ERROR" if self.check is None else {True: "PASS", False: "FAIL", None: "WRONG"}[self.outcome.passed]

    @property
    def line(self) -> str:
        """The word and the reason."""
        return f"{self.word}: {one_line(self.outcome.reason)}"


def _places(outputs: dict[str, Path | None], task: CheckTask, tasks: Sequence[CheckTask]) -> dict[str, Path | None]:
    """Return where the outputs of one table of several are written: report.html becomes report-may-total.html."""
    if len(tasks) == 1:
        return outputs
    name = Path(task.file).name if _has_one_rule(tasks) else f"{Path(task.file).name}-{task.rule}"
    return named_after(outputs, name)


def _has_one_rule(tasks: Sequence[CheckTask]) -> bool:
    return len({task.file for task in tasks}) == len(tasks)


def _checked(task: CheckTask, paths: dict[str, Path | None], command: str) -> Result:
    """Check one table; bad input is a result like others."""
    options, audit = task.options, paths["--audit"]
    try:
        with (
            opened(task.file, task.reading, as_stream=task.model is not None) as table,
            bars("Checking") as draw,
        ):
            if task.model is None:
                from massart.audit import audit_table  # a check loads nothing that searches for a rule

                found = audit_table(table, **vars(options), audit=audit, callback=draw)
            else:
                found = check_table(
                    task.model,
                    table,
                    id=options.id,
                    group=options.group,
                    strict=options.strict,
                    in_full=paths["--report"] is not None,
                    max_memory=task.reading.most_bytes,
                    audit=audit,
                    callback=draw,
                ).audit
        say((f"{found.table.name}: {notice}" for notice in found.notices), err=True)
        write_outputs(found, command, task.file, report=paths["--report"], audit=audit)
    except (ValueError, OSError) as error:
        return Result(task, error=one_line(str(error)))
    return Result(task, Check(found, Contract.of(task.limits, MAX_UNJUDGED)))


def _lines(result: Result, all_rows: bool) -> Iterator[str]:
    """Say what was found in one table: pass or fail and why, the rule, the kinds and the wrong rows."""
    assert result.check is not None
    audit = result.check.audit
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
    n = {status: sum(result.outcome.status == status for result in results) for status in range(4)}
    n_open = sum(result.outcome.is_open for result in results)
    n_blind = sum(result.outcome.is_blind for result in results)
    parts = {
        "with wrong rows (no --max-wrong given: nothing fails)": n_open,
        "with too many wrong rows": n[3],
        "with too few judged rows": n_blind,
        "whose rule is not certain": n[1] - n_blind,
        "not checked": n[2],
    }
    counts = [f"{n[0] - n_open:,} passed", *(f"{k:,} {what}" for what, k in parts.items() if k)]
    audits = [result.check.audit for result in results if result.check is not None]
    n_total, n_judged, n_wrong = (sum(getattr(one, n) for one in audits) for n in ("n_total", "n_judged", "n_wrong"))
    rows = f" {'; '.join(counted(n_total, n_judged, n_wrong))}." if audits else ""
    return f"{len(results):,} checks: {', '.join(counts)}.{rows}"


def tell_json(results: Sequence[Result], status: int, all_rows: bool = False) -> None:
    """Print what was found in all tables as JSON."""
    tables = []
    for result in results:
        said = {"passed": False, "exit_status": BAD_INPUT, "error": result.error}
        if result.check is not None:
            said = summary(result.check.audit, result.check.contract, all_rows=all_rows)
        tables.append({"file": result.task.file, "rule": str(result.task.model or result.task.options.target), **said})
    found = {
        "passed": None if not status and any(result.outcome.is_open for result in results) else status == 0,
        "exit_status": status,
        "reason": results[0].outcome.reason if len(results) == 1 else _sentence(results),
        "tables": tables,
    }
    typer.echo(json_text(found))
