"""What it costs to import massart, in fresh interpreters, against the libraries that any solver would import."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable

from harness import Case, Incorrect, Row, at_most, race

_PEER = "import numpy, scipy.optimize"


def cases(small: bool) -> Iterable[Case]:
    """Yield one case for each way to import massart."""
    repeats = 3 if small else 11
    for statement in ("import massart", "from massart import radial_isotropy, l1_regression"):
        yield Case(statement, lambda statement=statement: _race(statement, repeats))


def _race(statement: str, repeats: int) -> Row:
    return race(
        statement,
        lambda: _run(statement),
        lambda: _run(_PEER),
        peer_name=_PEER,
        wanted=at_most(1.2),
        judge=lambda ours, peer: _no_sklearn(ours),
        repeats=repeats,
    )


def _run(statement: str) -> str:
    """Run `statement` in a new interpreter and return the top-level modules it loaded."""
    program = f"import sys\n{statement}\nprint(*sys.modules)"
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout


def _no_sklearn(modules: str) -> str:
    if "sklearn" in modules.split():
        raise Incorrect("importing massart loads scikit-learn")
    return "fresh interpreters, start-up included on both sides"
