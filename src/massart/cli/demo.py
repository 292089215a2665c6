"""``massart demo``: a made-up ledger, from its file to the page."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from massart.audit import Audit, audit_table
from massart.cli.files import check_outputs, write_outputs
from massart.cli.fit import tell
from massart.cli.options import with_options
from massart.cli.terminal import harmless, say, table
from massart.demo import GROUP, ID, TARGET, make_ledger
from massart.options import Option, OptionGroup
from massart.tables import write_columns

LEDGER, REPORT, AUDIT = "massart-ledger.csv", "massart-report.html", "massart-audit.csv"


@dataclass(frozen=True)
class DemoOptions(OptionGroup):
    """Size, seed and place of the ledger."""

    out: Annotated[Path, Option("Folder for the ledger, the report and the audit.", "Output", metavar="FOLDER")] = (
        Path()
    )
    seed: Annotated[int, Option("Seed of the random ledger.", least=0)] = 0
    rows: Annotated[int, Option("Number of rows of the ledger.", least=50)] = 8000


@with_options(options=DemoOptions)
def demo(*, options: DemoOptions) -> None:
    """Make a ledger in which about a fifth of the totals are wrong, recover its price list, and list the wrong rows."""
    ledger, report, audit = (options.out / name for name in (LEDGER, REPORT, AUDIT))
    check_outputs([], {"--audit": audit, "--fixed": ledger, "--report": report})
    write_columns(ledger, make_ledger(np.random.default_rng(options.seed), options.rows))
    asked = ["--target", TARGET, "--id", ID, "--group", GROUP, "--report", str(report), "--audit", str(audit)]
    command = shlex.join(["massart", "fit", str(ledger), *asked])
    typer.echo(f"A ledger of {options.rows:,} jobs, about a fifth of its totals wrong: {harmless(ledger)}", err=True)
    typer.echo(f"$ {harmless(command)}", err=True)
    found = audit_table(ledger, TARGET, id=ID, group=GROUP, audit=audit)
    say(found.notices, err=True)
    write_outputs(found, command, str(ledger), report=report, audit=audit)
    tell(found)
    say(_comparison(found))
    if not found.certificate.verdict.stands:
        raise typer.Exit(1)


def _comparison(found: Audit) -> Iterator[str]:
    """Compare the formula with least squares on the same rows."""
    formula = found.formula
    shown = [j for j, term in enumerate(formula.terms) if term.is_shown]
    values, terms = [found.X[:, j] for j in shown], [formula.terms[j] for j in shown]
    if formula.intercept is not None:
        values.append(np.ones(len(found.given)))
        terms.append(formula.intercept)
    squares = np.linalg.lstsq(np.column_stack(values), found.given, rcond=None)[0]
    yield ""
    yield "What least squares makes of the same rows and terms:"
    rows = [(term.label, term.number(), f"{value:.6g}") for term, value in zip(terms, squares, strict=True)]
    yield from table([("term", "recovered", "least squares"), *rows])
