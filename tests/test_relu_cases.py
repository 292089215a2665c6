"""The tables of the ReLU benchmarks are what they are called, and the peers do what they should where it is easy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from linear_cases import Answer
from massart.certificate import Verdict
from relu_cases import (
    ADVERSARIES,
    ReluCell,
    attempt,
    clad,
    fitted,
    oracle_l1,
    possible_answers,
    wrong_claims,
)

pytestmark = pytest.mark.slow  # hundreds of tables of a benchmark

ACTS_EVERYWHERE = ("flip", "const")  # the answers that differ from every clean label


@pytest.mark.parametrize("adversary", [*ADVERSARIES, "1.1x", "near"])
def test_no_more_labels_are_wrong_than_the_noise_allows(adversary: str) -> None:
    cell = ReluCell(4000, 5, 0.4, adversary)
    share = cell.table(0).n_wrong / cell.n
    noise = 4 * np.sqrt(0.24 / cell.n)
    assert share < 0.4 + noise
    assert share > (0.4 if adversary in ACTS_EVERYWHERE else 0.2) - noise


@pytest.mark.parametrize("adversary", ["flip", "decoy", "oppose", "near", "zero"])
@pytest.mark.parametrize("rows", ["Gaussian", "intercept", "integers, 70 %", "Cauchy", "scales"])
def test_the_rival_fits_every_wrong_row(rows: str, adversary: str) -> None:
    table = ReluCell(300, 9, 0.4, adversary, rows).table(0)
    wrong = ~fitted(table.X, table.y, table.truth)
    assert table.rival is not None
    assert wrong.sum() == table.n_wrong > 0
    assert fitted(table.X, table.y, table.rival)[wrong].all()


def test_a_table_is_possible_unless_the_rival_wins_or_few_rows_decide() -> None:
    plenty, few = ReluCell(400, 5, 0.4, "decoy"), ReluCell(8, 5, 0.4, "const")
    assert all(plenty.possible(trial) for trial in range(5))
    assert not any(few.possible(trial) for trial in range(5))
    close = ReluCell(60, 5, 0.45, "flip")
    outvoted = [trial for trial in range(30) if close.table(trial).n_wrong > 30]
    assert outvoted
    assert not any(close.possible(trial) for trial in outvoted)
    answers = [Answer(0.0, 0.0)] * 30
    assert len(possible_answers(close, answers)) <= 30 - len(outvoted)


@pytest.mark.parametrize("method", [clad, oracle_l1])
@pytest.mark.parametrize("rows", ["Gaussian", "intercept", "Cauchy"])
def test_the_peers_recover_without_noise(rows: str, method: object) -> None:
    answer = attempt(ReluCell(400, 6, 0.0, "const", rows), method, 0)
    assert answer.error < 1e-12
    assert not answer.outvoted
    assert not answer.claimed


def test_a_claim_is_wrong_unless_the_truth_is_outvoted() -> None:
    wrong, right = Answer(1.0, 0.0, Verdict.PROVEN), Answer(0.0, 0.0, Verdict.PROVEN)
    modest = Answer(1.0, 0.0, Verdict.PLURALITY)
    assert wrong_claims([wrong, right, modest, replace(wrong, outvoted=True)]) == 1
