"""The kinds of wrong rows on the page: a list with counts, and a colour and a mark for each that the pictures share."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from massart.report.carried import compared
from massart.report.columns import clean, read
from massart.report.findings import JudgedRows

_PLUS = ((-1, -3), (1, -3), (1, -1), (3, -1), (3, 1), (1, 1), (1, 3), (-1, 3), (-1, 1), (-3, 1), (-3, -1), (-1, -1))
_STAR = [(r, 0.2 * math.pi * k) for k, r in enumerate((1.4, 0.6) * 5)]

MARKS = "◆■▲✚✖▼⬟★"
"""Of rows that nothing explains, then of the kinds, the most frequent first; the last one is for all others."""

GLYPHS = (
    ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    ((0, -1.2), (1.2, 0.9), (-1.2, 0.9)),
    tuple((x / 2.5, y / 2.5) for x, y in _PLUS),
    tuple((0.3 * (x - y), 0.3 * (x + y)) for x, y in _PLUS),
    ((-1.2, -0.9), (1.2, -0.9), (0, 1.2)),
    ((0, -1.2), (1.15, -0.35), (0.7, 1), (-0.7, 1), (-1.15, -0.35)),
    tuple((round(r * math.sin(turn), 3), round(-r * math.cos(turn), 3)) for r, turn in _STAR),
)
"""The corners of the marks, for pictures that draw them, around the origin."""

OTHERS = "other kinds"


@dataclass(frozen=True, slots=True)
class ShownKind:
    """One kind."""

    label: str
    n_rows: int
    tone: int  # number of its colour and of its mark
    example: tuple[str, ...]  # a row in which it happened: which one, what was given, what is implied

    @property
    def mark(self) -> str:
        """What the pictures draw for it."""
        return MARKS[self.tone]


def tones(rows: JudgedRows) -> NDArray[np.uint8]:
    """Return the number of the colour for each code of a kind; 0 where nothing is explained."""
    found = np.zeros(len(rows.kinds.words) if rows.kinds else 1, dtype=np.uint8)
    if rows.kinds is not None:
        explained = [code for code, word in enumerate(rows.kinds.words) if word and code != rows.kinds.unexplained]
        found[explained] = np.minimum(np.arange(1, len(explained) + 1), len(MARKS) - 1)
    return found


def codes_of(rows: JudgedRows, index: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the codes of the kinds of some rows; all zero where kinds are not known."""
    return np.zeros(len(index), dtype=np.intp) if rows.kinds is None else rows.kinds.codes[index]


def shown_kinds(rows: JudgedRows) -> list[ShownKind]:
    """Return the kinds of the wrong rows in the order of their codes."""
    if rows.kinds is None:
        return []
    wrong = np.flatnonzero(rows.wrong)
    codes, first, counts = np.unique(rows.kinds.codes[wrong], return_index=True, return_counts=True)
    if rows.rest is not None:
        counts = np.array(rows.rest.kinds)[codes]
    examples = wrong[first]
    name, identity = next(iter(rows.cells(examples).items()), ("row", examples.tolist()))
    columns = read(name, identity), *compared(rows, examples)[:2]
    tone = tones(rows)
    return [
        ShownKind(clean(rows.kinds.words[code]), n, int(tone[code]), tuple(column.shown(k) for column in columns))
        for k, (code, n) in enumerate(zip(codes.tolist(), counts.tolist(), strict=True))
    ]


def legend(kinds: list[ShownKind]) -> list[tuple[int, str, str]]:
    """Return tone, mark and label of what the pictures distinguish."""
    alone = {kind.tone for kind in kinds if [k.tone for k in kinds].count(kind.tone) == 1}
    named = {kind.tone: kind.label if kind.tone in alone else OTHERS for kind in kinds}
    return [(tone, MARKS[tone], label) for tone, label in named.items()]
