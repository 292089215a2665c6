"""Where the table begins: the row of column names, below titles and what else exports put first."""

from __future__ import annotations

import re
from collections.abc import Sequence

from massart.table.numbers import MISSING

TOTAL = (
    r"^\s*\W*(?:(?:grand|sub|over ?all|end|zwischen|gesamt|general)[ -]?)?"
    r"(?:totals?|totale[ns]?|totalt|totaux|sums?|summen?|somm[ae]|sumas?|gesamt|insgesamt|saldo|balance|kontostand|"
    r"ensemble|razem|celkem|összesen|yhteensä|i alt|toplam|итого|всего|合计|合計|总计|소계|합계|average|mean|"
    r"mittelwert|moyenne|media|promedio|durchschnitt)(?:\W.*)?$"
)
"""What a line that sums up others begins with."""

_NUMBER = re.compile(r"[-+(]?\s*[^\w\s]?\s*\d[\d.,' \u00a0\u202f%]*\)?-?(?:\s*[^\W\d]{1,3}\.?)?")
_YEAR = re.compile(r"(?:19|20)\d\d(?:\.0)?")  # may be the name of a column
_LEAST_SHARE = 0.6
_MISSING = frozenset(MISSING)


def header_row(rows: Sequence[Sequence[object]]) -> int:
    """Return which of the first rows of a text file or a sheet has the names of the columns; "" and None are empty.

    That is the first one that has names for most of the columns that the rows below it fill, if no cell of it is a
    number; else the first that is not empty.

    Examples
    --------
    >>> header_row([["Sales 2024", ""], ["", ""], ["qty", "total"], [1, 2.5], [2, 5.0]])
    2
    """
    filled = [sum(not is_empty(cell) for cell in row) for row in rows]
    first = next((place for place, n in enumerate(filled) if n), 0)
    for share in (1.0, _LEAST_SHARE):
        for place in range(first, len(rows)):
            n, below = filled[place], sorted(n for n in filled[place + 1 :] if n)
            if not below:
                break
            typical = below[len(below) // 2]
            if n < max(share * typical, min(2, typical)):
                continue
            cells = [cell for cell in rows[place] if not is_empty(cell)]
            if _are_names(cells):
                return place
            if n >= typical and place == first and len({*cells}) == len(cells):  # names that repeat are none
                return first
    return first


def _are_names(cells: Sequence[object]) -> bool:
    years = [cell for cell in cells if _YEAR.fullmatch(str(cell))]
    texts = [cell for cell in cells if isinstance(cell, str) and not is_number(cell)]
    return len(set(cells)) == len(cells) == len(years) + len(texts) and len(texts) > 0


def is_empty(cell: object) -> bool:
    """Whether nothing is written in a cell."""
    return cell is None or (isinstance(cell, str) and not cell.strip())


def is_number(text: str) -> bool:
    """Whether a cell of a text file looks like a number, or like one that is missing."""
    text = text.strip()
    return text in _MISSING or _NUMBER.fullmatch(text) is not None


def says_total(text: str) -> bool:
    """Whether a text announces a total."""
    return re.match(TOTAL, text, re.IGNORECASE) is not None
