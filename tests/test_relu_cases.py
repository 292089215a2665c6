"""The tables of the ReLU benchmarks are what they are called, and the peers do what they should where it is easy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from linear_cases import Answer
from massart.certificate import Verdict
from massart.paper.noise import high_leverage, relu_labels
from relu_cases import (
    ADVERSARIES,
    COLUMNS,
    ETAS,
    FAMILIES,
    MIXTURE,
    ReluCell,
    attempt,
    clad,
    fitted,
    oracle_l1,
    possible_answers,
    reaches,
    trials,
    wrong_claims,
)

pytestmark = pytest.mark.slow  # hundreds of tables of a benchmark

CELLS = [cell for cells in FAMILIES.values() for cell in cells]
GRID = [ReluCell(6 * d, d, eta, adversary) for d in COLUMNS for eta in ETAS for adversary in ADVERSARIES]
ACTS_EVERYWHERE = ("flip", "const")  # the answers that differ from every clean label


@pytest.mark.parametrize("cell", CELLS + GRID, ids=str)
def test_a_table_is_known_by_its_cell_and_number(cell: ReluCell) -> None:
    first, again, other = cell.table(3), cell.table(3), cell.table(4)
    assert first.X.shape == (cell.n, cell.d)
    assert np.array_equal(first.X, again.X)
    assert np.array_equal(first.y, again.y)
    assert np.array_equal(first.truth, again.truth)
    assert not np.array_equal(first.X, other.X)
    assert first.n_wrong == np.sum(first.y != relu_labels(first.X, first.truth))
    assert first.n_wrong == cell.n - fitted(first.X, first.y, first.truth).sum()


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


def test_a_constant_has_no_rival_and_a_negated_label_may_be_impossible() -> None:
    assert ReluCell(300, 9, 0.4, "const").table(0).rival is None
    negated = ReluCell(300, 9, 0.4, "neg").table(0)
    assert (negated.y < 0).any()


def test_an_unknown_adversary_is_refused() -> None:
    with pytest.raises(ValueError, match="got 'polite'"):
        ReluCell(30, 3, 0.4, "polite").table(0)


def test_only_rows_of_high_leverage_are_wrong_in_the_papers_mixture() -> None:
    for cell in MIXTURE:
        for trial in range(3):
            table = cell.table(trial)
            wrong = ~fitted(table.X, table.y, table.truth)
            if cell.rows == "mixture":
                assert not wrong[~high_leverage(table.X)].any()
            elif table.n_wrong:  # one decoy in 30 is the truth
                assert wrong[~high_leverage(table.X)].any()


def test_the_truth_with_an_intercept_is_active_on_a_fifth_of_the_rows() -> None:
    for cell in FAMILIES["intercept"]:
        tables = [cell.table(trial) for trial in range(10)]
        share = np.mean([table.X @ table.truth > 0 for table in tables])
        assert share == pytest.approx(0.2, abs=4 * np.sqrt(0.16 / (10 * cell.n)))
        assert all(np.linalg.norm(table.truth[:-1]) == pytest.approx(1) for table in tables)


def test_most_integer_rows_lie_in_a_subspace_on_which_the_truth_does_not_vanish() -> None:
    for cell in FAMILIES["integers on a subspace"]:
        table = cell.table(0)
        inside = round({"integers, 70 %": 0.7, "integers, 90 %": 0.9}[cell.rows] * cell.n)
        found, members = _heaviest_subspace(table.X)
        assert found == inside
        assert (table.X[members] @ table.truth).any()
        assert np.array_equal(table.truth, np.round(table.truth))


def test_columns_have_scales_up_to_1e8_and_labels_do_not_see_them() -> None:
    table = ReluCell(480, 20, 0.4, "flip", "scales").table(0)
    deviations = table.X.std(axis=0)
    assert deviations[-1] / deviations[0] == pytest.approx(1e8, rel=0.3)
    assert np.median(np.abs(table.X @ table.truth)) < 20


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


def test_the_peers_recover_from_few_wrong_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASSART_BENCH_PROCESSES", "1")
    cell = ReluCell(400, 5, 0.1, "flip")
    for method in (clad, oracle_l1):
        assert all(answer.recovered for answer in trials(cell, method, 4))
        assert reaches(cell, method, 4, 0.95)
        assert not reaches(replace(cell, n=12), method, 4, 0.95)


def test_a_claim_is_wrong_unless_the_truth_is_outvoted() -> None:
    wrong, right = Answer(1.0, 0.0, Verdict.PROVEN), Answer(0.0, 0.0, Verdict.PROVEN)
    modest = Answer(1.0, 0.0, Verdict.PLURALITY)
    assert wrong_claims([wrong, right, modest, replace(wrong, outvoted=True)]) == 1


def _heaviest_subspace(X: np.ndarray) -> tuple[int, np.ndarray]:
    """Return how many rows lie in the heaviest span of three rows, of 60 drawn, and which."""
    rng = np.random.default_rng(0)
    best = np.zeros(len(X), dtype=bool)
    for _ in range(60):
        basis = X[rng.choice(len(X), 3, replace=False)]
        if np.linalg.matrix_rank(basis) < 3:
            continue
        V = np.linalg.qr(basis.T)[0]
        inside = np.linalg.norm(X - X @ V @ V.T, axis=1) < 1e-6
        best = inside if inside.sum() > best.sum() else best
    return int(best.sum()), best
