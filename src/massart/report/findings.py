"""What a report is made of: an answer, and the rows it was verified on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from massart.certificate import Certificate
from massart.formula import Formula
from massart.rows import BoolArray, FloatArray

Cells: TypeAlias = Callable[[NDArray[np.intp]], Mapping[str, Sequence[object]]]
"""Returns columns of the table, by name, for the rows asked for: texts, numbers, booleans or None."""


@dataclass(frozen=True, slots=True)
class Support:
    """How many rows speak about one coefficient.

    Attributes
    ----------
    n_rows, n_agree : int
        Rows in which what it multiplies is not zero, and those of them that follow the formula.
    """

    n_rows: int
    n_agree: int


@dataclass(frozen=True, slots=True)
class Group:
    """Rows with the same value in the column that groups them."""

    name: str
    n_rows: int
    n_wrong: int


@dataclass(frozen=True, slots=True)
class JudgedRows:
    """All rows that were judged.

    Attributes
    ----------
    given, implied : (n,) arrays
        The target as it stands in the table, and what the formula gives.
    wrong : (n,) boolean array
    cells : callable
        The columns to show beside them, for some rows: the first one tells which row it is.
    group_column : str or None
    groups : tuple of Group
        By the share of wrong rows, the largest first; empty without a column that groups.
    """

    given: FloatArray
    implied: FloatArray
    wrong: BoolArray
    cells: Cells
    group_column: str | None = None
    groups: tuple[Group, ...] = ()


@dataclass(frozen=True, slots=True)
class Findings:
    """An answer and all that a reader of it may ask.

    Attributes
    ----------
    title : str
        What was examined: the name of a file, of a table or of an estimator.
    formula : Formula
    certificate : Certificate
    agreement : str
        What counted as agreement: "rounding of float64", "labels rounded to 2 decimals".
    n_rows, n_wrong : int
        Rows judged, and those that do not follow the formula.
    support : tuple of Support
        For each term of the formula, the constant last if there is one.
    rows : JudgedRows or None
        None where the rows are not at hand.
    notices : tuple of str
        What a reader has to know: columns and rows left out, categories and their base levels.
    facts : mapping of str to str
        Where it comes from: the command, the file and its digest, versions, the date.
    """

    title: str
    formula: Formula
    certificate: Certificate
    agreement: str
    n_rows: int
    n_wrong: int
    support: tuple[Support, ...]
    rows: JudgedRows | None = None
    notices: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
