"""A table whose rows follow several rules: which row follows which, what is known of each, and the rows of none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from massart.audit.error_types import LAST_PLACE, MOST_EXAMPLES, UNEXPLAINED, RowErrorType, RowErrorTypes
from massart.audit.implied import implied_values, places_of, residuals
from massart.audit.second_rule import SecondRule
from massart.audit.table_audit import Audit, audit_columns, versions
from massart.certificate import CONFIDENCE, IndependentErrors
from massart.recover import ListedRule, RuleList
from massart.recover.rule_errors import ErrorType, RuleError
from massart.report import ListedFormula, ListFindings, ListReport, Report, Usage, usage_of
from massart.report.words import count, listed, share, up
from massart.rows import BoolArray, FloatArray
from massart.rules.formula import Formula
from massart.tables import TableError

NONE, OR = "none", " or "
"""What the column `rule` says of rows that follow none, and between the rules of rows that fit several."""

MOST_NONE_ROWS = 50
"""Rows that follow no rule on the page."""

_NUMBERS = ("No rules", "One rule", "Two rules", "Three rules", "Four rules", "Five rules", "Six rules")
_MOST_PAIRS = 3
_UNLESS = "errors, or which rule a row follows, depend on the columns or on other rows"


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """A segment of a table most of whose rows follow one rule of a list, and not by chance.

    Attributes
    ----------
    where : str
        Which rows these are: "zone = B".
    n_rows, n_follow : int
        Rows of the segment, and those that follow the rule.
    n_others, n_follow_others : int
        The same of the other rows.
    """

    where: str
    n_rows: int
    n_follow: int
    n_others: int
    n_follow_others: int


@dataclass(frozen=True, slots=True, eq=False)
class TableRule:
    """One rule of a table.

    Attributes
    ----------
    formula : Formula
    listed : ListedRule
        Its rows, and its test.
    branch : Branch or None
        The segment that it holds for, if the rows that follow it depend on the columns.
    known : IndependentErrors or None
        What is certain of its slopes, unless errors, or which rule a row follows, depend on the columns
        (:mod:`massart.certificate.independent_errors`, Theorem 1).
    """

    formula: Formula
    listed: ListedRule
    branch: Branch | None = None
    known: IndependentErrors | None = None

    @property
    def confirmed(self) -> tuple[int, ...]:
        """Terms whose coefficients are those of some rule, under that condition."""
        return () if self.known is None or self.branch is not None else self.known.slopes

    @property
    def n_rows(self) -> int:
        """Number of rows that are given to it."""
        return self.listed.n_own


@dataclass(frozen=True)
class ListAudit(Audit):
    """A table, the rules that its rows follow, and which of them each row follows.

    `formula` is the first rule. Rows that follow none of the rules are `wrong`, if the list is all there is.

    Attributes
    ----------
    rules : tuple of TableRule
        The one with the most rows first.
    found : RuleList
        The same as numbers, for the judged rows.
    """

    rules: tuple[TableRule, ...] = field(kw_only=True)
    found: RuleList = field(kw_only=True)

    @property
    def n_shared(self) -> int:
        """Number of rows that fit more than one rule: they are given to none, and are not wrong."""
        return int(np.count_nonzero(self.found.shared))

    @property
    def most_explained(self) -> int:
        """The largest number of rows of a further rule that chance, repeated errors and the rules explain."""
        return min(self.found.needed, self.n_judged + 1) - 1

    @property
    def unfit_to_fix(self) -> str:
        """Why nothing is replaced."""
        return "A list of rules does not say which of them a wrong row should follow: no values are replaced"

    @property
    def when(self) -> str:
        """When a row follows a rule: "exactly", or of each rule where that is not the same for all."""
        levels = [str(rule.listed.agreement) for rule in self.rules]
        if len(set(levels)) == 1:
            return f"A row follows a rule {levels[0]}."
        return f"A row follows {listed([f'rule {k} {level}' for k, level in enumerate(levels, 1)])}."

    @property
    def explanation(self) -> str:
        """Which rows follow what, and what the test of the rules says."""
        return " ".join(self._sentences())

    def _sentences(self) -> Iterator[str]:
        rules = self.rules
        first, *others = [f"{count(rule.n_rows, 'rows')} follow rule {k}" for k, rule in enumerate(rules, 1)]
        follow = listed([first, *(text.replace(" rows follow", " others") for text in others)])
        heading = _NUMBERS[len(rules)] if len(rules) < len(_NUMBERS) else f"{len(rules)} rules"
        yield f"{heading}: {follow}{self._shared_words()}."
        branches = [(k, rule.branch) for k, rule in enumerate(rules, 1) if rule.branch is not None]
        if branches:
            there = (
                f"{one.n_follow:,} of {count(one.n_rows, 'rows')} with {one.where} follow rule {k}, "
                f"{share(one.n_follow_others, one.n_others)} elsewhere"
                for k, one in branches
            )
            yield f"Which rule a row follows depends on the columns: {'; '.join(there)}."
        verbs = {label: verb for label, verb, _ in self._explanations()}
        named = [(kind.rows, verbs[kind.label], kind.label) for kind in self.kinds.kinds if kind.explains]
        if self.n_last_place:
            named.append((self.n_last_place, ("is", "are"), "off by a last place"))
        rest = sum(kind.rows for kind in self.kinds.kinds if kind.family == UNEXPLAINED)
        named.append((rest, ("follows", "follow"), "none of these" if named else "none"))
        counts = [f"{k:,} {verb[k != 1]} {what}" for k, verb, what in named]
        yield f"{listed([counts[0].replace(' ', ' row ' if named[0][0] == 1 else ' rows ', 1), *counts[1:]])}."
        unless = "errors depend on the columns or on each other" if branches else _UNLESS
        right = [(k, rule.confirmed) for k, rule in enumerate(rules, 1) if rule.confirmed and not branches]
        terms = [term.label for term in rules[0].formula.all_terms]
        of_all = [f"{listed([terms[j] for j in found])} in rule {k}" for k, found in right]
        if len(right) == len(rules) and len({found for _, found in right}) == 1:
            of_all = [listed([terms[j] for j in right[0][1]])]
        deviation = max((rule.known.deviation for rule in rules if rule.known and rule.confirmed), default=0.0)
        within = f"up to what changes a label by a standard deviation of {up(deviation)}"
        coefficients = f"those of {listed(of_all)} are right, {within}" if of_all else "none is confirmed"
        yield (
            f"Unless {unless} ({100 * CONFIDENCE:.10g} % each), there are at least {heading[0].lower()}{heading[1:]}, "
            f"and chance and repeated errors explain at most {count(self.most_explained, 'rows')} of a further one. "
            f"Of the coefficients {coefficients}{'; the others are not confirmed' if of_all else ''}."
        )

    def _shared_words(self) -> str:
        if not self.n_shared:
            return ""
        names, counts = np.unique(self.names[self.found.shared], return_counts=True)
        if len(names) > _MOST_PAIRS:
            return f"; {count(self.n_shared, 'rows')} fit more than one"
        pairs = (
            f"{count(n, 'rows')} {'fits' if n == 1 else 'fit'} rules {listed(name.split(OR))}"
            for name, n in zip(names.tolist(), counts.tolist(), strict=True)
        )
        return f"; {', '.join(pairs)}"

    @cached_property
    def names(self) -> NDArray[np.str_]:
        """The rule of each judged row: "1", "1 or 2", "none"."""
        if not self.rules:
            return np.full(len(self.given), NONE)
        fits = np.column_stack([rule.listed.fits for rule in self.rules])
        patterns, which = np.unique(fits, axis=0, return_inverse=True)
        words = [OR.join(str(k + 1) for k in np.flatnonzero(row)) or NONE for row in patterns]
        return np.array(words)[which.ravel()]

    @cached_property
    def values(self) -> FloatArray:
        """What each rule gives for the judged rows: (n, number of rules)."""
        return np.column_stack(
            [
                implied_values(self.X, rule.formula, places_of(self.X, rule.formula, rule.listed.agreement))
                for rule in self.rules
            ]
        )

    @cached_property
    def implied(self) -> FloatArray:
        """What the rule of each judged row gives; NaN for rows that follow none."""
        fits = np.column_stack([rule.listed.fits for rule in self.rules])
        first = self.values[np.arange(len(fits)), fits.argmax(axis=1)]
        return np.where(fits.any(axis=1), first, np.nan)

    @cached_property
    def second_rule(self) -> SecondRule | None:
        """A list has its own."""
        return None

    @cached_property
    def kinds(self) -> RowErrorTypes:
        """What happened in rows that follow none: an error that makes a formula, an amount, a last place."""
        ours = [(label, rows) for label, _, rows in self._explanations()]
        labels, masks = zip(*ours, (UNEXPLAINED, self.wrong), (LAST_PLACE, self.last_place), strict=True)
        ways = np.column_stack(masks)
        ways[:, -2] &= ~ways[:, :-2].any(axis=1)
        codes = np.where(ways.any(axis=1), ways.argmax(axis=1) + 1, 0)
        counts = np.bincount(codes, minlength=len(labels) + 1)[1:]
        frequent = sorted(range(len(labels) - 2), key=lambda place: -counts[place])
        order = [place for place in [*frequent, len(labels) - 2, len(labels) - 1] if counts[place]]
        renamed = np.zeros(len(labels) + 1, dtype=np.intp)
        renamed[np.array(order, dtype=np.intp) + 1] = np.arange(1, len(order) + 1)
        kinds = (
            RowErrorType(
                *(labels[place], int(counts[place]), labels[place]),
                examples=tuple(np.flatnonzero(codes == place + 1)[:MOST_EXAMPLES].tolist()),
            )
            for place in order
        )
        return RowErrorTypes(renamed[codes], tuple(kinds))

    def _explanations(self) -> Iterator[tuple[str, tuple[str, str], BoolArray]]:
        """Yield what may have happened in rows that follow none, the verb for one and for many, and in which."""
        has = ("has", "have")
        verbs = {ErrorType.COLUMN: has, ErrorType.VALUE: has, ErrorType.AMOUNT: ("is", "are")}
        for one in self.found.errors:
            rows = np.zeros(len(self.given), dtype=bool)
            rows[one.rows] = True
            yield self.error_words(one.error), verbs.get(one.error.type, ("follows", "follow")), rows & self.wrong

    def error_words(self, error: RuleError) -> str:
        """Say what an error is: "rule 1 without freight"."""
        return error.words("" if error.column is None else self.formula.all_terms[error.column].label)

    def coefficients(self) -> list[tuple[str, list[str]]]:
        """Return each term that a rule has, and its coefficient in each of the rules."""
        every = [rule.formula.all_terms for rule in self.rules]
        return [
            (terms[0].label, [term.number() if term.determined else "not determined" for term in terms])
            for terms in zip(*every, strict=True)
            if any(term.coef for term in terms)
        ]

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """The judged rows: those that nothing explains first, then those of each error, then those that follow a rule.

        Rows of one sort stay in the order of the table.
        """
        sort = np.where(
            self.wrong,
            self.kinds.codes,
            np.where(self.last_place, len(self.kinds.kinds) + 1, len(self.kinds.kinds) + 2),
        )
        sort[self.kinds.unexplained] = 0
        return np.argsort(sort, kind="stable")

    def usage(self) -> tuple[Usage, ...]:
        """Return how many rows use each coefficient of the first rule, and how many of them follow it."""
        return usage_of(self.X, self.rules[0].listed.fits, constant=self.formula.intercept is not None)

    def fixed(self, *, fill: bool = False, force: bool = False) -> NoReturn:
        """Raise TableError."""
        raise TableError(self.unfit_to_fix)

    def model(self) -> NoReturn:
        """Raise TableError."""
        raise TableError("A list of rules is not saved: a model has one rule")

    def under_rules(self, order: NDArray[np.intp], others: Sequence[str] = ()) -> dict[str, list[Any]]:
        """Return some judged rows and what each rule gives there, with some columns of the table: plain values."""
        numbers = self.design.kept[order]
        values = {
            "given": self.given[order],
            **{f"rule {k}": self.values[order, k - 1] for k in range(1, len(self.rules) + 1)},
            "what happened": self.kinds.of(order),
        }
        cells = self.table.cells(list(dict.fromkeys([*self._shown(), *others])), numbers)
        found = audit_columns(self.numbers_of(numbers) + 1, cells, values)
        return {name: cells if isinstance(cells, list) else cells.tolist() for name, cells in found.items()}

    def none_rows(self, most: int) -> dict[str, list[Any]]:
        """Return the same of rows that follow none of the rules: those that nothing explains first."""
        return self.under_rules(self._worst(most))

    def list_findings(self, facts: Mapping[str, str] | None = None) -> ListFindings:
        """Return what the page shows."""
        return ListFindings(
            title=self.table.name,
            target=self.formula.target,
            rules=tuple(
                ListedFormula(rule.formula, rule.n_rows, rule.listed.n_shared, rule.listed.test.needed)
                for rule in self.rules
            ),
            kinds=tuple((kind.label, kind.rows) for kind in self.kinds.kinds),
            n_rows=self.n_judged,
            n_shared=self.n_shared,
            n_none=self.n_wrong,
            verdict=self.certificate.verdict,
            explanation=self.explanation,
            when=self.when,
            coefficients=tuple((term, tuple(numbers)) for term, numbers in self.coefficients()),
            rows=self.under_rules(self._worst(MOST_NONE_ROWS), self._read()),
            notices=self.notices,
            facts={**(facts or {}), "versions": versions()},
        )

    def report(self, facts: Mapping[str, str] | None = None) -> Report:
        """Return the page that shows it."""
        return ListReport(self.list_findings(facts))

    def __repr__(self) -> str:
        formulas = "; ".join(f"{rule.n_rows:,} rows {rule.formula.text(4)}" for rule in self.rules)
        return f"<ListAudit of {self.table.name}: {formulas}; {self.n_wrong:,} of {count(self.n_judged, 'rows')} none>"

    def _worst(self, most: int) -> NDArray[np.intp]:
        return self.order[: min(most, self.n_wrong)]

    def _judged(self, order: NDArray[np.intp]) -> dict[str, NDArray[Any]]:
        given, implied = self.given[order], self.implied[order]
        none = np.isnan(implied)
        return {
            "given": given,
            "implied": np.ma.MaskedArray(implied, mask=none),
            "residual": np.ma.MaskedArray(residuals(given, np.where(none, given, implied)), mask=none),
            "wrong": self.wrong[order],
            "kind": self.kinds.of(order),
            "rank": np.arange(1, len(order) + 1),
            "rule": self.names[order],
            **{f"rule_{k}": self.values[order, k - 1] for k in range(1, len(self.rules) + 1)},
        }
