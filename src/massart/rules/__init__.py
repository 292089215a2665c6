"""Rules: short sums of terms, the language they are written in, and growing one from a table."""

from importlib import import_module
from typing import TYPE_CHECKING

from massart.rules.columns import Columns, Levels
from massart.rules.formula import ESTIMATE_DIGITS, INTERCEPT, SHOWN_DIGITS, Formula, Summand, compose, pieces
from massart.rules.language import parse_terms
from massart.rules.literals import TermError, day_of, is_day, plain_number, quoted, shown
from massart.rules.matrix import Matrix, TermMatrix
from massart.rules.operations import DUST, EXCEL_EPOCH, OPERATIONS, RELATIVE_DUST, Operation
from massart.rules.rates import Rates, rates_by_level, text_by_level
from massart.rules.terms import CONDITIONS, Part, Term, column, in_others, level, number, product
from massart.rules.wilkinson import parse_formula, target_of

if TYPE_CHECKING:
    from massart.rules.constants import FoundConstants, find_constants
    from massart.rules.find import KINDS, FoundRule, RuleQuestion, SearchOptions, find_rule, fit_terms, judge_again
    from massart.rules.grow.units import unit_of
    from massart.rules.thresholds import Thresholds, compared

# Made when first asked for: a saved model is applied without the modules that search.
_SEARCH = {
    "FoundConstants": "massart.rules.constants",
    "Thresholds": "massart.rules.thresholds",
    "compared": "massart.rules.thresholds",
    "find_constants": "massart.rules.constants",
    "FoundRule": "massart.rules.find",
    "KINDS": "massart.rules.find",
    "SearchOptions": "massart.rules.find",
    "RuleQuestion": "massart.rules.find",
    "find_rule": "massart.rules.find",
    "fit_terms": "massart.rules.find",
    "judge_again": "massart.rules.find",
    "unit_of": "massart.rules.grow.units",
}

__all__ = [
    "FoundRule",
    "CONDITIONS",
    "Columns",
    "FoundConstants",
    "DUST",
    "EXCEL_EPOCH",
    "ESTIMATE_DIGITS",
    "Formula",
    "INTERCEPT",
    "KINDS",
    "Levels",
    "Matrix",
    "OPERATIONS",
    "Operation",
    "SearchOptions",
    "Part",
    "RuleQuestion",
    "RELATIVE_DUST",
    "Rates",
    "SHOWN_DIGITS",
    "Summand",
    "Term",
    "TermError",
    "TermMatrix",
    "Thresholds",
    "column",
    "compared",
    "compose",
    "day_of",
    "find_constants",
    "find_rule",
    "fit_terms",
    "in_others",
    "is_day",
    "judge_again",
    "level",
    "number",
    "parse_formula",
    "parse_terms",
    "pieces",
    "plain_number",
    "product",
    "quoted",
    "rates_by_level",
    "shown",
    "target_of",
    "text_by_level",
    "unit_of",
]


def __getattr__(name: str) -> object:
    if name not in _SEARCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_SEARCH[name]), name)
