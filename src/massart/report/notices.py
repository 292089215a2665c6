"""What a reader should know in addition to the answer: a code, its values, and the sentence made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from massart.report.words import broken, count, uneven


class Notice(str):
    """A sentence for a reader; programs look at its code and its values.

    Attributes
    ----------
    code : str
        A key of `CODES`.
    values : dict
    """

    __slots__ = ("code", "values")
    code: str
    values: dict[str, Any]

    def __new__(cls, code: str, **values: Any) -> Notice:
        """Write the sentence."""
        self = super().__new__(cls, CODES[code](**values))
        self.code, self.values = code, values
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        return (self.code,), self.values


def _of_rows(n: int, one: str, many: str) -> str:
    return f"{count(n, 'rows')} {one if n == 1 else many}"


CODES: dict[str, Callable[..., str]] = {
    "after wrong": lambda n: (
        _of_rows(n, "agrees once the row before it is", "agree once the rows before them are")
        + " put right: right rows after wrong ones, and not called wrong."
    ),
    "among": lambda notice: f"Among these: {notice[0].lower()}{notice[1:]}",
    "blank": lambda column, n, n_agree: (
        f'Took a blank in "{column}" for 0: '
        + (f"{n_agree:,} of {n:,} rows with a blank follow" if n > 1 else "the row with a blank follows")
        + " the rule then."
    ),
    "broken": broken,
    "closely": lambda n, n_rows: f"Looked closely at {n:,} of {n_rows:,} rows, and compared all of them with the rule.",
    "codes": lambda column, value: (
        f'Nearly all rows with {value:g} in "{column}" are wrong, and most wrong rows have it: '
        f"if its numbers are codes, say --category {column}."
    ),
    "first rows": lambda n: _of_rows(n, *(f"left out: there is no row before {what}." for what in ("it", "them"))),
    "listed": lambda n: f"Listed are the {n:,} wrong rows that are farthest off.",
    "no value": lambda n: _of_rows(n, "has", "have") + " no implied value: a term has none there.",
    "one rule": lambda n_found, needed: (
        f"No list of rules: no {'second rule' if n_found else 'rule'} passed the test of a list, which asks for "
        f"{count(needed, 'rows')} or more. This is the fit of one rule."
    ),
    "rests on others": lambda n: (
        f"{count(n, 'wrong rows')} cannot be put right: what is implied for {'it' if n == 1 else 'them'} rests on "
        "other rows, which may be wrong."
    ),
    "rewritten": lambda why: f"All cells of the fixed table were written anew (15.00 may have become 15), for {why}.",
    "total row": lambda place, text: (
        f"Row {place} says {text}: totals are left out of tables that fit into memory only (--max-memory)."
    ),
    "uneven": uneven,
    "unneeded": lambda columns, rule="the rule does not need": (
        f"Left out {', '.join(f'{chr(34)}{name}{chr(34)}' for name in columns)}: {rule} it, and rows without it would "
        "not be judged."
    ),
}
"""The sentence for each code, given its values."""
