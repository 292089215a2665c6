"""The run: every method on every table, each in a process of its own, with a journal.

A method's process starts, loads its library and fits a small table; every table that counts is fitted by a fork of it,
which the system ends after `LIMIT` seconds of the processor. Times are the processor's, of the fit alone, without the
start of Python or R and without loading a library; memory is the most that the process held at once, all included.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import resource
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from comparison import methods, page, tables
from comparison.methods import METHODS, Answer, Method, called_wrong
from comparison.tables import CELLS, Cell, Group, Table
from massart.experiments.experiment import RECOVERED, Row, Task, TaskOutcome, stream
from massart.experiments.reproduce import code_digest, name_of, versions
from massart.experiments.running import prepare, with_journal
from massart.rows import Callback, files, silent

LIMIT = 40
"""Seconds of the processor for one method on one table; beyond them there is no answer."""

COLUMNS = (
    *("group", "cell", "method", "table", "status", "recovered", "error", "oracle", "wrong", "called", "hits"),
    *("verdict", "false_claim", "cpu_seconds", "peak_mb"),
)
_NAME = "bench"
_CERTAIN = ("PROVEN", "CONFIRMED")
_MOST_OFF = 0.01
_EXTRA = ("pyoperon", "gplearn", "cleanlab")


def choose(only: Sequence[str], small: bool) -> list[Cell]:
    """Return the cells whose names begin with one of `only`, ValueError if none does; all where that is empty."""
    for start in only:
        if not any(cell.name.startswith(start) for cell in CELLS):
            raise ValueError(f"no cell begins with {start!r}; there are {', '.join(cell.name for cell in CELLS)}")
    chosen = [cell for cell in CELLS if not only or cell.name.startswith(tuple(only))]
    if not small:
        return chosen
    return [replace(cell, tables=1) for cell in chosen if only or cell.name in tables.SMALL]


def entrants(group: Group, small: bool) -> dict[str, Method]:
    """Return the methods of a group that can run here."""
    every = METHODS[group]
    return {key: every[key] for key in every if not every[key].missing() and (key in methods.SMALL or not small)}


def left_out() -> list[str]:
    """Return one line for each method that cannot run here."""
    every = [method for group in METHODS.values() for method in group.values()]
    return sorted({line for method in every if (line := method.missing())})


def bench(
    cells: Sequence[Cell],
    out: Path,
    *,
    seed: int,
    small: bool = False,
    most_tables: int | None = None,
    command: str = "",
    callback: Callback = silent,
) -> None:
    """Run what is not in the journal of a folder, which exists, and write its CSV files and ``bench.html``.

    `small` leaves the methods that take a moment; `most_tables` is of each cell.
    """
    facts = {
        "command": command,
        "seed": seed,
        "limit": LIMIT,
        "left_out": left_out(),
        "versions": versions(*_EXTRA),
        "code": code_digest(whole=True),
    }
    run = name_of({key: facts[key] for key in ("seed", "limit", "versions", "code")})
    tasks = [
        Task(group, (cell.name,), method, table)
        for group in METHODS
        for method in entrants(group, small)
        for cell in cells
        if cell.group == group
        for table in range(min(cell.tables, most_tables or cell.tables))
    ]
    done = with_journal(_NAME, tasks, out / f"{_NAME}.jsonl", run, partial(_run, seed), callback)
    rows = [_row(task, done[task]) for task in tasks]
    summary = page.summarize(rows)
    files.write_csv(out / f"{_NAME}.csv", COLUMNS, rows)
    files.write_csv(out / f"{_NAME}-summary.csv", tuple(summary[0]), summary)
    cells_at_a_glance = page.overview(summary)
    files.write_csv(out / f"{_NAME}-cells.csv", tuple(cells_at_a_glance[0]), cells_at_a_glance)
    files.write(out / f"{_NAME}.json", json.dumps(facts, indent=1).encode() + b"\n")
    files.write(out / f"{_NAME}.html", page.html(summary, facts).encode())


def _row(task: Task, outcome: TaskOutcome) -> Row:
    return {
        "group": task.figure,
        "cell": task.cell[0],
        "method": task.method,
        "table": task.trial,
        **outcome.values[0],
        "cpu_seconds": float(f"{outcome.seconds:.4g}"),
    }


# One process for each method, and a fork of it for each table.


def _run(seed: int, tasks: Sequence[Task]) -> Iterator[tuple[Task, TaskOutcome]]:
    context = multiprocessing.get_context("spawn")
    for group, key in dict.fromkeys((task.figure, task.method) for task in tasks):
        theirs = [task for task in tasks if (task.figure, task.method) == (group, key)]
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=_serve, args=(theirs, seed, there), daemon=True)
        process.start()
        there.close()
        try:
            for task in theirs:
                yield task, here.recv()
        except EOFError:
            raise ValueError(f"the process of {key} died before its tables were done") from None
        finally:
            here.close()
            process.terminate()  # it is done, or this run is
            process.join()


def _serve(tasks: Sequence[Task], seed: int, results: Connection) -> None:
    prepare()
    cells = {cell.name: cell for cell in CELLS}
    method = METHODS[tasks[0].figure][tasks[0].method]  # type: ignore[index]
    if not (method.requires or "").startswith("R: "):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            method.ask(_small_table(cells[str(tasks[0].cell[0])].group), np.random.default_rng(0))
    for task in tasks:
        results.send(measured(task, cells[str(task.cell[0])], method, seed))


def _small_table(group: Group) -> Table:
    """Return a table to begin with: what a library loads when it is first used costs no table its time."""
    rng = np.random.default_rng(0)
    if group in ("rule", "rows"):
        table = tables.ledger(rng, tables.total, n=60, eta=0.1)
    else:
        table = {"relu": tables.relu, "noisy": tables.noisy}.get(group, tables.plain)(rng, n=60, d=2, eta=0.1)
    return replace(table, seconds=0.1)


def measured(task: Task, cell: Cell, method: Method, seed: int) -> TaskOutcome:
    """Return what a fork of this process measures, or why it did not."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read_end)
            resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 5))
            with os.fdopen(write_end, "w") as file:
                json.dump(_attempt(task, cell, method, seed), file)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as file:
        text = file.read()
    status = os.waitpid(child, 0)[1]
    if text:
        values, seconds = json.loads(text)
        return TaskOutcome((values,), seconds)
    wrong = int(cell.make(stream(seed, _NAME, cell.name, task.trial)).wrong.sum())
    reason = "over the limit" if os.WIFSIGNALED(status) else "failed"
    return TaskOutcome(({**_blank(reason), "wrong": wrong},), float(LIMIT))


def _blank(status: str) -> Row:
    nothing: Row = dict.fromkeys(("error", "oracle", "peak_mb"), math.nan)
    counts: Row = dict.fromkeys(("recovered", "wrong", "called", "hits", "false_claim"), 0)
    return {"status": status, "verdict": "", **nothing, **counts}


def _attempt(task: Task, cell: Cell, method: Method, seed: int) -> tuple[Row, float]:
    """Draw the table that all methods of this cell see, fit it, and measure."""
    table = cell.make(stream(seed, _NAME, cell.name, task.trial))
    rng = stream(seed, _NAME, cell.name, task.trial, task.method)
    start = time.process_time()
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            answer = method.ask(table, rng)
    except Exception as error:  # a library that raises on one table has no answer there
        return {**_blank("failed"), "wrong": int(table.wrong.sum()), "verdict": type(error).__name__}, (
            time.process_time() - start
        )
    seconds = time.process_time() - start if answer.seconds is None else answer.seconds
    who = resource.RUSAGE_SELF if answer.seconds is None else resource.RUSAGE_CHILDREN
    peak = resource.getrusage(who).ru_maxrss / 1024
    return {**score(cell.group, table, answer), "peak_mb": round(peak, 1)}, seconds


def score(group: Group, table: Table, answer: Answer) -> Row:
    """Compare an answer with the truth."""
    oracle = 0.0
    if answer.coef is not None and len(table.coef):
        size = float(np.linalg.norm(table.coef))
        error = float(np.linalg.norm(answer.coef - table.coef)) / size
        recovered = error < RECOVERED
        if group == "noisy":
            best = np.linalg.lstsq(table.X[~table.wrong], table.y[~table.wrong], rcond=None)[0]
            oracle = float(np.linalg.norm(best - table.coef)) / size
    else:
        off = ~(np.abs(answer.predicted - table.right) <= table.half)
        error = math.nan if math.isnan(table.half) else float(off.mean())
        recovered = error <= _MOST_OFF
    called = called_wrong(table, answer)
    return {
        **_blank("ok" if np.isfinite(answer.predicted).any() else "no answer"),
        "error": error,
        "oracle": oracle,
        "recovered": int(recovered),
        "wrong": int(table.wrong.sum()),
        "called": int(called.sum()),
        "hits": int((called & table.wrong).sum()),
        "verdict": answer.verdict,
        "false_claim": int(answer.verdict in _CERTAIN and not recovered),
    }
