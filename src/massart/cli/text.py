"""Texts on a terminal: harmless ones, and tables of them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

_MOST_CELL = 28


def harmless(text: object) -> str:
    """Return a text with what a terminal would take for a command, line ends among them, written out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def one_line(text: str) -> str:
    """Return a text of any layout as one harmless line."""
    return harmless(" ".join(text.split()))


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Set texts in columns: the first to the left, the others to the right."""
    short = [[_cut(cell) for cell in row] for row in rows]
    widths = [max(width_of(row[j]) for row in short) for j in range(len(short[0]))]
    for row in short:
        first, *others = (
            cell + " " * (width - width_of(cell)) if j == 0 else " " * (width - width_of(cell)) + cell
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(["  " + first, *others]).rstrip()


def width_of(text: str) -> int:
    """Return how many columns of a terminal a text takes: Chinese letters take two, combining accents none."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(unicodedata.combining(letter) > 0 for letter in text)


def _cut(text: str) -> str:
    """Return a text that fits into a cell; names that are long differ at their ends, so the middle goes."""
    clean = "".join(letter if letter.isprintable() else " " for letter in text)
    if width_of(clean) <= _MOST_CELL:
        return clean
    kept = len(clean) - 1
    while width_of(shown := f"{clean[: (kept + 1) // 2]}…{clean[len(clean) - kept // 2 :]}") > _MOST_CELL:
        kept -= 1
    return shown
