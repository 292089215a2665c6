"""``massart demo``: the embedded example, from its CSV file to the page."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from massart.audit import Audit

LEDGER, REPORT, AUDIT = "massart-ledger.csv", "massart-report.html", "massart-audit.csv"


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the ledger, the report and the audit.")] = Path(),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random ledger.")] = 0,
    rows: Annotated[int, typer.Option(min=50, help="Number of rows of the ledger.")] = 8000,
) -> None:
    """Make a ledger in which about a fifth of the totals are wrong, recover its price list, and list the wrong rows."""
    import numpy as np

    from massart.audit import audit_table
    from massart.cli.fit import tell, tell_notices
    from massart.cli.outputs import check_outputs, write_outputs
    from massart.cli.text import harmless
    from massart.demo import GROUP, ID, TARGET, make_ledger
    from massart.tables import write_columns

    ledger, report, audit = out / LEDGER, out / REPORT, out / AUDIT
    check_outputs([], {"--audit": audit, "--fixed": ledger, "--report": report})
    write_columns(ledger, make_ledger(np.random.default_rng(seed), rows))
    options = ["--target", TARGET, "--id", ID, "--group", GROUP, "--report", str(report), "--audit", str(audit)]
    command = shlex.join(["massart", "fit", str(ledger), *options])
    typer.echo(f"A ledger of {rows:,} jobs, about a fifth of its totals wrong: {harmless(ledger)}", err=True)
    typer.echo(f"$ {harmless(command)}", err=True)
    found = audit_table(ledger, TARGET, id=ID, group=GROUP, audit=audit)
    tell_notices(found)
    write_outputs(found, command, str(ledger), report=report, audit=audit)
    tell(found)
    for line in _comparison(found):
        typer.echo(line)
    if not found.certificate.verdict.stands:
        raise typer.Exit(1)


def _comparison(found: Audit) -> Iterator[str]:
    """Compare the formula with least squares on the same rows."""
    import numpy as np

    from massart.cli.text import table

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
