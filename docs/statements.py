"""The numbered statements of the paper, and the names and tests that docstrings give for each.

A docstring says ``Paper: Algorithm 1. Tests: test_paper_linear::test_a, test_paper_linear::test_b``, a line for each
statement; a remark may follow the statement in parentheses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import massart
import massart.paper

STATEMENTS = {
    "Definition 1.1": "Massart noise: an adversary may choose each label with probability η",
    "Theorem 1.2": "a linear function is recovered exactly",
    "Theorem 1.3": "a ReLU is recovered exactly",
    "Definition 1.4": "radial-isotropic position, exact and γ-approximate",
    "Theorem 2.1": "Theorem 1.2 where no subspace has mass",
    "Algorithm 1": "L1 regression in radial-isotropic position",
    "Lemma 2.2": "a positive definite symmetric map to that position can be computed",
    "Lemma 2.3": "(⋆): where right rows outweigh wrong ones, the L1 minimizer is the L0 minimizer",
    "Lemma 2.4": "VC inequality",
    "Lemma 2.5": "a map exists unless a subspace holds more than its share of the rows",
    "Lemma 2.6": "GeneralizedForster: a heavy subspace, and a map on it",
    "Algorithm 2": "RecoverLinear: Algorithm 1 on heavy subspaces, one after the other",
    "Lemma 3.1": "(†): where right rows outweigh wrong ones, the gradient separates a query from the truth",
    "Algorithm 3": "SEP: the separation oracle",
    "Section 4": "the experiments: their rows, their adversary, gradient descent",
    "Appendix A": "which map Lemma 2.2 computes, and a bound on its condition number",
    "Theorem B.1": "PAC learning of linear functions without assumptions on the rows",
    "Definition B.2": "β-outliers",
    "Lemma B.3": "an ellipsoid without outliers",
    "Definition C.1": "oblivious noise",
    "Lemma C.2": "Massart noise simulates oblivious noise",
    "Theorem D.1": "a bound of Chen et al.",
}
"""In the order of the paper."""

NO_ALGORITHM = {
    "Lemma 2.4": "serves the proofs; for a table at hand the margin of Lemma 2.3 is computed instead",
    "Theorem D.1": "a result of others, for comparison",
}

_LINE = re.compile(r"\s*Paper: (?P<statement>\w+ [\w.]+?)(?: \((?P<remark>[^)]*)\))?\. Tests: (?P<tests>.*)")


@dataclass(frozen=True)
class Claim:
    """A line of a docstring: what implements a statement, and which tests check it."""

    statement: str
    remark: str | None
    name: str
    tests: tuple[str, ...]


def read(line: str, name: str = "") -> Claim | None:
    """Return what a line of a docstring claims, if it does."""
    found = _LINE.fullmatch(line.rstrip())
    return found and Claim(found["statement"], found["remark"], name, tuple(found["tests"].split(", ")))


def claims() -> Iterator[Claim]:
    """Yield the claims of all docstrings; a line that begins like one and is none is an error."""
    for short in massart.paper.__all__:
        for line in filter(re.compile(r"\s*Paper:").match, (getattr(massart.paper, short).__doc__ or "").splitlines()):
            claim = read(line, f"massart.{short}" if short in dir(massart) else f"massart.paper.{short}")
            if claim is None:
                raise ValueError(f"massart.paper.{short}: cannot read {line.strip()!r}")
            yield claim


def label(statement: str) -> str:
    """Return the label of a statement's section on the page of the paper."""
    return re.sub(r"[ .]", "-", statement.lower())


def reference(statement: str) -> str:
    """Return a link to that section."""
    return f":ref:`{statement} <{label(statement)}>`"


def sentence(claim: Claim) -> str:
    """Return what a page of the API says in place of the line."""
    remark = f", {claim.remark}" if claim.remark else ""
    return f"*In the paper*: {reference(claim.statement)}{remark}. Checked by {_listed(claim.tests)}."


def table() -> list[str]:
    """Return the table of all statements, in reStructuredText."""
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: 14 34 20 32", ""]
    everything = list(claims())
    rows = [("paper", "what it says", "name", "tests that check it")]
    for statement, what in STATEMENTS.items():
        own = [claim for claim in everything if claim.statement == statement]
        names = ", ".join(f":obj:`{claim.name}`" for claim in own) or f"none: {NO_ALGORITHM.get(statement, 'missing')}"
        rows.append((reference(statement), what, names, _listed(test for claim in own for test in claim.tests)))
    for row in rows:
        lines += [f"   {'*' if k == 0 else ' '} - {cell}".rstrip() for k, cell in enumerate(row)]
    return lines


def _listed(tests: Iterator[str] | tuple[str, ...]) -> str:
    return ", ".join(f"``{test}``" for test in dict.fromkeys(tests))
