r"""Formulas as R and statsmodels write them, after Wilkinson and Rogers (1973): ``total ~ qty:price + hours - 1``.

The grammar, in which each line is read by one method of `_Formula`; what binds less comes first::

    formula      = column "~" sum
    sum          = ["+" | "-"] crossed {("+" | "-") crossed}
    crossed      = interaction {("*" | "/") interaction}
    interaction  = power {":" power}
    power        = one ["^" digit]
    one          = "0" | "1" | column | function | "(" sum ")"

A formula stands for a set of products of factors. ``a*b`` is ``a + b + a:b``, ``a/b`` is ``a + a:b``, ``(a + b)^2`` has
all products of two, and ``a:a`` is a. The empty product is the constant, which is there unless it is taken away by
``- 1`` or ``+ 0``. Functions, ``I()`` among them, are read as in :mod:`massart.rules.language`.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from massart.rules.columns import Columns
from massart.rules.language import DEEPEST, LONGEST, Reader, Value, check_number, distinct
from massart.rules.literals import TermError, shown
from massart.rules.terms import Term


def parse_formula(text: str, columns: Columns) -> tuple[str, tuple[Term, ...], bool]:
    """Return target, terms and whether there is a constant, of a formula as R and statsmodels write it.

    Parameters
    ----------
    text : str
        ``total ~ qty:price + hours:C(service) - 1``; ``a*b`` stands for a, b and a:b.
    columns : Columns
    """
    target, right = _sides(text)
    reader = _Formula(right, columns)
    products = sorted(reader.formula().values(), key=len)
    found: list[Term] = []
    for factors in filter(None, products):
        found += reader.expanded(factors)
        check_number(len(found))
    return target, distinct(found, text), () in products


def target_of(text: str) -> str:
    """Return the column on the left of ~."""
    return _sides(text)[0]


def _sides(text: str) -> tuple[str, str]:
    """Return the column on the left of ~, and what is on its right."""
    if len(text) > LONGEST:
        raise TermError(f"the formula has {len(text):,} characters, more than {LONGEST:,}")
    if "~" not in text:
        raise TermError(f"the formula {shown(text)} has no ~ between its target and its terms")
    sides = re.match(r"\s*(?:`((?:[^`]|``)*)`|([^\W\d]\w*))\s*~", text)
    if sides is None:
        raise TermError(f"the formula {shown(text)} needs one column on the left of ~")
    quoted, plain = sides.groups()
    return plain if quoted is None else quoted.replace("``", "`"), text[sides.end() :].strip()


_Products: TypeAlias = dict[frozenset[Value], tuple[Value, ...]]
"""Products of a formula by the set of their factors, which is empty for the constant."""


class _Formula(Reader):
    """Reads the right side of a formula."""

    def formula(self) -> _Products:
        """Read all of it."""
        found = self._sums({frozenset(): ()})
        if self.kind != "end":
            raise self.error()
        return found

    def error(self, why: str = "it is not a formula such as total ~ qty:price + hours") -> TermError:
        return super().error(why)

    def _sums(self, found: _Products) -> _Products:
        sign = self.accept("+", "-") or "+"
        part: _Products
        while sign:
            if self.tokens[self.place] == ("number", "0"):
                self.place += 1
                sign, part = "-" if sign == "+" else "+", {frozenset(): ()}
            else:
                part = self._crossed()
            found = _united(found, part) if sign == "+" else {key: one for key, one in found.items() if key not in part}
            check_number(len(found))
            sign = self.accept("+", "-")
        return found

    def _crossed(self) -> _Products:
        found = self._interactions()
        while sign := self.accept("*", "/"):
            other = self._interactions()
            if sign == "*":
                found = _united(found, other, _joined(found, other))
            else:
                every = tuple(dict.fromkeys(factor for one in found.values() for factor in one))
                found = _united(found, _joined({frozenset(every): every}, other))
        return found

    def _interactions(self) -> _Products:
        found = self._powers()
        while self.accept(":"):
            found = _joined(found, self._powers())
        return found

    def _powers(self) -> _Products:
        base = found = self._one()
        if self.accept("^"):
            kind, word = self.next()
            if kind != "number" or word not in "123456789":
                raise self.error()
            for _ in range(int(word) - 1):
                found = _united(found, _joined(found, base))
        return found

    def _one(self) -> _Products:
        if self.accept("("):
            self.depth += 1
            if self.depth > DEEPEST:
                raise self.error("it is nested too deeply")
            found = self._sums({})
            self.expect(")")
            self.depth -= 1
            return found
        if self.tokens[self.place] == ("number", "1"):
            self.place += 1
            return {frozenset(): ()}
        if self.kind not in ("word", "quoted"):
            raise self.error()
        factor = self.atom()
        return {frozenset([factor]): (factor,)}


def _joined(first: _Products, second: _Products) -> _Products:
    """Return the products of all pairs."""
    check_number(len(first) * len(second))
    pairs = [tuple(dict.fromkeys((*a, *b))) for a in first.values() for b in second.values()]
    return _united(*({frozenset(pair): pair} for pair in pairs))


def _united(*parts: _Products) -> _Products:
    """Return the products of all parts, as they are written first."""
    found: _Products = {}
    for part in parts:
        found |= {key: one for key, one in part.items() if key not in found}
    return found
