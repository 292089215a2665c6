"""What can be wrong with a table, said in one line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from importlib import import_module
from itertools import islice
from typing import Any


class TableError(ValueError):
    """A table, or a file, that cannot be used; the message is one line that names the file, row or column at fault."""


class MissingLibrary(TableError, ModuleNotFoundError):
    """A library that reads tables is not installed."""


def library(name: str, purpose: str, extra: str) -> Any:
    """Return a library that massart works without; MissingLibrary says how to install it."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        raise MissingLibrary(f"{purpose} needs {name.replace('_', '-')}: pip install 'massart[{extra}]'") from None


def quote(text: object, most: int = 60) -> str:
    r"""Return a name or a cell in quotes, on one line and of at most that many characters.

    Examples
    --------
    >>> print(quote("two\nlines"))
    "two\nlines"
    """
    shown = on_one_line(str(text)[: most + 1])
    return f'"{shown}"' if len(shown) <= most else f'"{shown[:most]}..."'


def on_one_line(text: str) -> str:
    """Return a text with line ends and other signs that do not print spelled out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)


def counted(number: int, word: str) -> str:
    """Return a number with what it counts: "1 row", "2,000 rows"."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def listed(words: Iterable[str], number: int, most: int) -> str:
    """Return the first `most` of a number of words, with commas between them, and how many more there are."""
    more = f" and {number - most:,} more" if number > most else ""
    return ", ".join(islice(words, most)) + more


def near_names(name: str, names: Iterable[str]) -> str:
    """Return the names that are spelled nearly like `name`, quoted: '"total" or "totals"'; empty if there are none."""
    folded: dict[str, str] = {}
    for other in names:
        folded.setdefault(other.casefold().strip(), other)
    close = difflib.get_close_matches(name.casefold().strip(), folded, n=3, cutoff=0.6)
    return " or ".join(quote(folded[match]) for match in close)


def near(name: str, names: Iterable[str]) -> str:
    """Return a hint for a name that is not among `names`: the nearest ones, or all of them if they are few."""
    names = list(names)
    if close := near_names(name, names):
        return f"did you mean {close}?"
    return f"there are {listed(map(quote, names), len(names), 8)}" if names else "there are none"
