"""What a reader should know besides the answer: a code and its values, and the sentence that is made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def _unneeded(columns: Sequence[str], rule: str = "the rule does not need") -> str:
    names = ", ".join(f'"{name}"' for name in columns)
    return f"Left out {names}: {rule} it, and rows without it would not be judged."


def _blank(column: str, n: int, n_agree: int) -> str:
    rows = f"{n_agree:,} of {n:,} rows" if n > 1 else "the row"
    return f'Took a blank in "{column}" for 0: {rows} with a blank follow{"" if n > 1 else "s"} the rule then.'


def _codes(column: str, value: float) -> str:
    return (
        f'Nearly all rows with {value:g} in "{column}" are wrong, and most wrong rows have it: '
        f"if its numbers are codes, say --category {column}."
    )


def _first_rows(n: int) -> str:
    return f"{count(n, 'rows')} left out: there is no row before {'it' if n == 1 else 'them'}."


def _after_wrong(n: int) -> str:
    agree = "agrees once the row before it is" if n == 1 else "agree once the rows before them are"
    return f"{count(n, 'rows')} {agree} put right: right rows after wrong ones, and not called wrong."


def _rests_on_others(n: int) -> str:
    them = "it rests" if n == 1 else "them rests"
    wrong = "1 wrong row" if n == 1 else f"{n:,} wrong rows"
    return f"{wrong} cannot be put right: what is implied for {them} on other rows, which may be wrong."


def _one_rule(n_found: int, needed: int) -> str:
    which = "second rule" if n_found else "rule"
    return (
        f"No list of rules: no {which} passed the test of a list, which asks for {count(needed, 'rows')} or more. "
        "This is the fit of one rule."
    )


def _total_row(place: str, text: str) -> str:
    return f"Row {place} says {text}: totals are left out of tables that fit into memory only (--max-memory)."


def _rewritten(why: str) -> str:
    return f"All cells of the fixed table were written anew (15.00 may have become 15), for {why}."


def _no_value(n: int) -> str:
    return f"{n:,} {'row has' if n == 1 else 'rows have'} no implied value: a term has none there."


def _closely(n: int, n_rows: int) -> str:
    return f"Looked closely at {n:,} of {n_rows:,} rows, and compared all of them with the rule."


def _among(notice: str) -> str:
    return f"Among these: {notice[0].lower()}{notice[1:]}"


def _listed(n: int) -> str:
    return f"Listed are the {n:,} wrong rows that are farthest off."


CODES: dict[str, Callable[..., str]] = {
    "after wrong": _after_wrong,
    "among": _among,
    "broken": broken,
    "closely": _closely,
    "blank": _blank,
    "codes": _codes,
    "first rows": _first_rows,
    "listed": _listed,
    "no value": _no_value,
    "one rule": _one_rule,
    "rests on others": _rests_on_others,
    "rewritten": _rewritten,
    "total row": _total_row,
    "uneven": uneven,
    "unneeded": _unneeded,
}
"""The sentence for each code, given its values."""
