"""From rows to a judged formula: the driver, and the steps it takes."""

from massart.recover.arrays import ArrayRecovery, certify, judge_matrix, recover_matrix
from massart.recover.driver import Recovery, recover
from massart.recover.judge import judge
from massart.recover.judges import Formula, Judges
from massart.recover.polish import polish
from massart.recover.problem import Start
from massart.recover.propose import Candidate, Options, propose
from massart.recover.rule_errors import ErrorType, RowsWithError, RuleError
from massart.recover.rule_list import ListedRule, RuleList, recover_list
from massart.recover.scanned import Covariates
from massart.recover.score import beyond_chance

__all__ = [
    "ArrayRecovery",
    "Candidate",
    "Covariates",
    "ErrorType",
    "Formula",
    "Judges",
    "ListedRule",
    "Options",
    "Recovery",
    "RowsWithError",
    "RuleError",
    "RuleList",
    "Start",
    "beyond_chance",
    "certify",
    "judge",
    "judge_matrix",
    "polish",
    "propose",
    "recover",
    "recover_list",
    "recover_matrix",
]
