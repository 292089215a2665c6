"""From rows to a judged formula: the driver, and the steps it takes."""

from massart.recover.arrays import certify
from massart.recover.certification import CertificationRows, Covariates, Formula
from massart.recover.driver import Recovery, recover
from massart.recover.further_rule import GLIMPSE_ROWS, KnownRule, Search, may_follow_one
from massart.recover.judge import judge
from massart.recover.pac import PACFormula, PACStatus, learn_pac
from massart.recover.polish import Candidate, improve_coordinates, polish
from massart.recover.problem import LARGEST_LABEL, Start
from massart.recover.propose import propose
from massart.recover.rule_errors import ErrorType, RowsWithError, RuleError
from massart.recover.rule_list import MOST_RULES, ListedRule, RuleList, find_rules, recover_list
from massart.recover.score import (
    beyond_chance,
    choice_bits,
    integer_bits,
    is_noise,
    rule_beyond_chance,
    short_number,
)
from massart.recover.settings import Options

__all__ = [
    "GLIMPSE_ROWS",
    "KnownRule",
    "LARGEST_LABEL",
    "MOST_RULES",
    "PACFormula",
    "PACStatus",
    "Search",
    "choice_bits",
    "find_rules",
    "improve_coordinates",
    "integer_bits",
    "learn_pac",
    "may_follow_one",
    "rule_beyond_chance",
    "short_number",
    "Candidate",
    "Covariates",
    "ErrorType",
    "Formula",
    "CertificationRows",
    "ListedRule",
    "Options",
    "Recovery",
    "RowsWithError",
    "RuleError",
    "RuleList",
    "Start",
    "beyond_chance",
    "certify",
    "is_noise",
    "judge",
    "polish",
    "propose",
    "recover",
    "recover_list",
]
