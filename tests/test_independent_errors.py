"""Errors declared independent of the columns: what is confirmed is true, and each condition has a table that is not."""

from __future__ import annotations

import itertools
import json
import math
import warnings

import numpy as np
import pytest
from scipy.stats import binom

from massart import MassartRegressor
from massart.audit import audit_table
from massart.certificate import Reason, Verdict, certify_independent
from massart.certificate.independent_errors import farthest_window, fewest_right, largest_share, partners
from massart.certificate.random_tuples import farthest_rival, log_chance_inside, no_heavy_slab, number_of_tuples
from massart.cli import run

W, CONSTANT = np.array([2.0, 0.5, 1.25]), 12.0
FAILURE = 3e-5


def table(
    seed: int, n: int = 1500, wrong: float = 0.65, scale: float = 30.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows of cents, what is wrong, and right labels of which most have an error."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 100, (n, 3)).round(2)
    bad = rng.random(n) < wrong
    return X, bad, X @ W + CONSTANT + bad * scale * rng.standard_normal(n)


def fit(X, y, errors="independent", **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MassartRegressor(random_state=0, errors=errors, **options).fit(X, y)


def certified(X, residuals, half=1e-9, rounded=False, seed=0, failure=1e-3):
    Z = np.column_stack([X, np.ones(len(X))])
    agree = np.abs(residuals) <= half
    return certify_independent(
        Z, residuals, agree, half, rounded=rounded, rng=np.random.default_rng(seed), failure=failure
    )


# --- the formulas ---


def test_the_chance_of_a_tuple_inside_a_set_is_that_of_counting_them():
    inside = sum(max(pair) < 4 for pair in itertools.permutations(range(7), 2))
    assert math.isclose(math.exp(log_chance_inside(4, 7, 2)), inside / (7 * 6))
    assert log_chance_inside(1, 7, 2) == -math.inf


def test_two_hits_refute_a_chance_with_the_failure_stated():
    chance, failure = 0.01, 1e-3
    tuples = number_of_tuples(chance, failure)
    hits = np.random.default_rng(0).binomial(tuples, chance, 200_000)
    assert np.mean(hits <= 2) <= 1.3 * failure


def test_the_largest_share_is_where_the_bound_leaves_what_may_fail():
    n, k, p, price = 400, 150, 3, 12.0
    C = largest_share(n, k, p, price, 1e-4)
    draws = np.random.default_rng(0).binomial(n - p, C * n / (n - p), 100_000)
    assert 0.1 < C < k / n
    assert np.mean(draws >= k - p) * math.exp(price) < 1  # far in the tail, where no draw comes to lie
    assert largest_share(n, k, p, price + 1, 1e-4) < C < largest_share(n, k + 1, p, price, 1e-4)


def test_a_slab_has_the_pairs_that_jensen_says():
    rng = np.random.default_rng(0)
    for _ in range(30):
        cells = rng.integers(0, rng.integers(2, 40), (300, 1)).astype(float)
        inside = rng.random(300) < rng.uniform(0.3, 0.9) * (1 + np.sin(cells[:, 0])) / 2
        partner, share = partners(cells, inside.mean(), rng, 1e-3)
        paired = partner >= 0
        assert np.array_equal(cells[paired], cells[partner[paired]])
        assert (partner[paired] != np.flatnonzero(paired)).all()
        assert (inside[paired] & inside[partner[paired]]).sum() >= share * paired.sum()


@pytest.mark.parametrize(("n", "share"), [(50, 0.3), (1000, 0.45), (20, 0.01)])
def test_fewer_right_labels_than_are_taken_for_sure_are_rare(n, share):
    m = fewest_right(n, share, FAILURE)
    assert binom.cdf(m - 1, n, share) <= FAILURE < binom.cdf(m, n, share)


def test_the_farthest_window_is_that_of_all_windows():
    rng = np.random.default_rng(0)
    for _ in range(50):
        values, half, m = rng.normal(0, 3, 20).round(1), 1.03, int(rng.integers(2, 6))
        grid = np.arange(-12, 12, 0.01)
        holds = (np.abs(values - grid[:, None]) <= half).sum(axis=1) >= m
        brute = np.abs(grid[holds]).max(initial=0.0)
        assert farthest_window(values, half, m) == pytest.approx(brute, abs=0.02)


# --- heavy slabs: research on repeated rows, lattices and one column ---


def with_zeros(rng, n, all_zero, one_zero):
    X, u = rng.standard_normal((n, 6)), rng.random(n)
    X[u < all_zero] = 0
    X[(u >= all_zero) & (u < all_zero + one_zero), 0] = 0
    return X


@pytest.mark.parametrize("n", [2_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_a_heavy_slab_of_repeated_rows_is_never_refuted(n):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = with_zeros(rng, n, 0.18, 0.23)
        m = int(np.count_nonzero(X[:, 0] == 0)) - 5
        Z = np.column_stack([X, np.ones(n)])
        assert not any(no_heavy_slab(Z, m, width, rng, FAILURE) for width in (0.01, 1e-4))
        assert no_heavy_slab(Z[X[:, 0] != 0], m, 1e-4, rng, FAILURE)


def test_slabs_of_lattices_hinges_and_equal_rows_are_not_refuted():
    rng = np.random.default_rng(0)
    lattice = rng.integers(0, 4, (1000, 3)).astype(float)
    hinge = np.column_stack([rng.standard_normal(1000), np.maximum(rng.standard_normal(1000) - 1, 0)])
    repeated = rng.standard_normal((1000, 2))
    repeated[:400] = repeated[0]
    for X, m in ((lattice, 240), (hinge, 800), (repeated, 395), (np.ones((1000, 2)), 500)):
        Z = np.column_stack([X, np.ones(1000)])
        assert not any(no_heavy_slab(Z, m, width, rng, FAILURE) for width in (0.01, 1e-4))


def test_one_heavy_tailed_column_is_measured_on_all_rows():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        z = rng.standard_t(1.2, (3000, 1))
        near = int((np.abs(z) <= 0.03 * np.sqrt((z**2).mean())).sum())
        assert not no_heavy_slab(z, near, 0.03, rng, FAILURE)
        assert no_heavy_slab(z, near + 1, 0.03, rng, FAILURE)


def test_a_planted_slab_is_found_whatever_its_rows_are_like():
    for seed in range(8):
        rng = np.random.default_rng(seed)
        Z = rng.standard_normal((800, 4)) * rng.uniform(0.01, 100, 4)
        Z[:300, 1] = Z[:300, 0] * 3 + 0.002 * rng.uniform(-1, 1, 300)  # rows of a slab
        Z[:150, 2:] *= 1e-4  # half of them nearly on a line
        width = 0.002 / np.sqrt(((Z[:, 1] - 3 * Z[:, 0]) ** 2).mean())
        assert not no_heavy_slab(Z, 300, width * 1.01, rng, FAILURE)


# --- rivals ---


def test_a_rival_with_many_rows_is_within_what_is_said():
    far = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        n, p = 300, int(rng.integers(1, 4))
        X = np.column_stack([rng.integers(0, 3, (n, p - 1)) + rng.standard_normal((n, p - 1)), np.ones(n)])
        beta = rng.normal(0, 5, p) * rng.choice([0.01, 1])
        residuals = 50 * rng.standard_normal(n)
        own, other = rng.permutation(n)[:200].reshape(2, 100)
        residuals[own] = 0.0
        residuals[other] = X[other] @ beta + 0.01 * rng.uniform(-1, 1, 100)
        found = farthest_rival(X, residuals, np.full(n, 0.01), np.ones(n, dtype=bool), 90, rng, FAILURE)
        assert found >= np.abs(X @ beta).max() - 1e-9
        alone = farthest_rival(
            X,
            np.where(np.isin(range(n), other), 50, residuals),
            np.full(n, 0.01),
            np.abs(residuals) < 1e9,
            110,
            rng,
            FAILURE,
        )
        far += alone == 0.0
    assert far == 25  # the formula itself has too few rows to be a rival


# --- what is confirmed, at the door ---


@pytest.mark.parametrize("places", [None, 2])
def test_a_declared_formula_of_a_minority_is_confirmed(places):
    X, _, y = table(0)
    y = y if places is None else y.round(places)
    assert fit(X, y, errors="arbitrary").certificate_.verdict is Verdict.PLURALITY
    found = fit(X, y)
    certificate = found.certificate_
    assert certificate.declared
    assert certificate.explain().startswith("Declared: errors depend neither on the columns nor on each other")
    assert found.coef_ == pytest.approx(W)
    assert certificate.independent.slopes == (0, 1, 2)
    assert 0.2 < certificate.independent.share < 0.35


def test_dummies_and_quantities_are_confirmed_too():
    X, _, y = table(1, n=800, wrong=0.55)
    rng = np.random.default_rng(0)
    few = np.column_stack([rng.integers(0, 2, len(X)), rng.integers(1, 6, len(X))])
    found = fit(np.column_stack([X, few]), y + few @ [40.0, 3.0])
    assert found.certificate_.declared
    assert found.coef_ == pytest.approx([*W, 40, 3])


def test_labels_in_cents_beside_a_dummy_are_known_to_a_few_units():
    X, _, y = table(6, n=2000, wrong=0.55)
    zone = np.random.default_rng(0).integers(0, 2, len(X)).astype(float)
    y, w = (y + 40 * zone).round(2), np.array([*W, 40, CONSTANT])
    Z = np.column_stack([X, zone])
    known = certified(Z, y - np.column_stack([Z, np.ones(len(Z))]) @ w, half=0.005000005, rounded=True)
    assert known.slopes == (0, 1, 2)
    assert known.confirmed
    assert known.within < 10


def test_a_term_that_is_not_confirmed_is_named_and_the_rule_stays_a_plurality():
    X, _, y = table(2, n=1200)
    zone = np.where(np.random.default_rng(0).random(len(X)) < 0.01, 1.0, 0.0)  # too few rows to say what they add
    certificate = fit(np.column_stack([X, zone]), y + 7 * zone).certificate_
    assert certificate.verdict is Verdict.PLURALITY
    assert certificate.independent.slopes == (0, 1, 2)
    assert 3 in certificate.independent.rest
    said = certificate.explain(["a", "b", "c", "zone"])
    assert "the coefficients of a, b and c are right" in said
    assert "Not confirmed: zone" in said


# --- what refutes the declaration ---


def two_rules(rng):
    X, u = rng.uniform(0, 100, (900, 3)).round(2), rng.random(900)
    return X, np.select([u < 0.4, u < 0.75], [X @ W + CONSTANT, X @ [1, 4, 2.5] + 3], rng.uniform(0, 900, 900))


def another_multiple(rng):
    """Another rule, too, though its labels were rounded before."""
    X, u = rng.uniform(0, 100, (800, 2)).round(2), rng.random(800)
    y = (X @ [2.5, 1.2] + 7).round(2)
    return X, np.select([u < 0.32, u < 0.65], [10 * y, rng.uniform(0, 2000, 800).round(2)], y)


def errors_by_a_column(rng, n=1000, least=0.4, slope=0.5, column=1):
    X = rng.uniform(0, 100, (n, 3)).round(2)
    bad = rng.random(n) < least + slope * X[:, column] / 100
    return X, X @ W + CONSTANT + bad * 30 * rng.standard_normal(n)


def a_trend(rng):
    return errors_by_a_column(rng, 1500, 0.52, 0.2, 2)


@pytest.mark.parametrize(
    ("make", "seed", "reasons", "said"),
    [
        (two_rules, 0, {Reason.SECOND_RULE}, "another rule fits many of the other rows"),
        (two_rules, 1, {Reason.SECOND_RULE}, "another rule fits many of the other rows"),
        (another_multiple, 2, {Reason.SECOND_RULE}, "another rule fits many of the other rows"),
        (errors_by_a_column, 0, {Reason.UNEVEN, Reason.PART}, ""),
        (errors_by_a_column, 1, {Reason.UNEVEN, Reason.PART}, ""),
        (a_trend, 0, {Reason.UNEVEN}, "depend on the columns"),
    ],
)
def test_what_contradicts_the_declaration_refutes_it(make, seed, reasons, said):
    certificate = fit(*make(np.random.default_rng(seed))).certificate_
    assert certificate.verdict is Verdict.PLURALITY
    assert certificate.reason in reasons
    assert said in certificate.explain()


def test_copies_of_a_few_wrong_rows_are_no_evidence():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = rng.uniform(0, 100, (1000, 3)).round(2), rng.uniform(0, 900, 1000)
        X[:480], y[:480] = np.repeat(X[:6], 80, axis=0), np.repeat(y[:6], 80)  # six rows: a formula fits five
        certificate = fit(X, y, inliers="exact").certificate_
        assert not certificate.verdict.certain or not certificate.declared


def test_an_amount_that_is_nearly_as_frequent_as_right_labels_is_not_confirmed():
    rng = np.random.default_rng(0)
    X, u = rng.uniform(0, 100, (1500, 3)).round(2), rng.random(1500)
    y = X @ W + CONSTANT + np.select([u < 0.38, u < 0.75], [25, 0], 30 * rng.standard_normal(1500))
    certificate = fit(X, y).certificate_
    assert certificate.verdict is Verdict.PLURALITY
    assert certificate.independent.slopes == (0, 1, 2)


def test_weights_and_clusters_contradict_independent_errors():
    X, _, y = table(0, n=600)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weighted = MassartRegressor(random_state=0, errors="independent").fit(X, y, np.full(600, 2.0)).certificate_
    assert weighted.verdict is Verdict.PLURALITY
    frame = {"a": X[:, 0], "y": y, "clerk": np.arange(600) % 7}
    with pytest.raises(ValueError, match="leave one of the two out"):
        audit_table(_arrow(frame), "y", errors="independent", error_unit="clerk")


def test_a_declaration_that_is_none_is_one_clear_error():
    X, _, y = table(0, n=100)
    with pytest.raises(ValueError, match='errors must be "arbitrary" or "independent"'):
        fit(X, y, errors="indep")


# --- claims are true ---


def test_a_wrong_formula_on_a_heavy_slab_is_not_confirmed():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        n = 3000
        X = with_zeros(rng, n, 0.19, 0.22)
        e = np.where(rng.random(n) < 0.2, 30 * rng.standard_normal(n), 0.0)
        known = certified(X, e - X[:, 0] * 5)  # the formula is off in one column, which is 0 in four of ten rows
        assert not known.confirmed
        assert not known.slopes


def test_rounded_labels_are_within_what_is_said():
    claims = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        n = 400
        X = rng.uniform(0, 100, (n, 2)).round(2)
        v = rng.integers(100, 300, 2) / 100
        w = v + rng.choice([0, 0.0005, -0.0005], 2)  # nearly as many rows agree with a neighbour
        y = (X @ v + (rng.random(n) < 0.5) * 20 * rng.standard_normal(n)).round(1)
        known = certified(X, y - X @ w, half=0.05000005, rounded=True, seed=seed)
        if known.slopes:
            claims += 1
            assert (X @ (w - v)).std() <= known.deviation
        if known.confirmed:
            assert np.abs(X @ (w - v)).max() <= known.within
    assert claims > 3


def test_labels_of_a_hundred_million_are_confirmed_within_their_rounding():
    X, bad, _ = table(4)
    y = 1e8 + X @ W + bad * 5 * np.random.default_rng(0).standard_normal(len(X))
    found = fit(X, y)
    assert found.certificate_.declared
    known = found.certificate_.independent
    assert np.abs(X @ (found.coef_ - W) + found.intercept_ - 1e8).max() <= known.within < 1


@pytest.mark.slow
def test_the_best_of_many_formulas_without_right_rows_is_not_confirmed():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.uniform(0, 100, (300, 2)).round(2)
        y = (X @ [2.0, 0.5] + 30 * rng.standard_normal(300)).round(int(rng.integers(0, 3)))
        half = 0.5 if (y == y.round()).all() else 0.05
        Z, best, most = np.column_stack([X, np.ones(300)]), np.zeros(3), -1
        for _ in range(500):
            w = np.linalg.lstsq(Z[(some := rng.choice(300, 3))], y[some], rcond=None)[0]
            if (count := int((np.abs(y - Z @ w) <= half).sum())) > most:
                best, most = w, count
        known = certified(X, y - Z @ best, half=half, rounded=True, seed=seed)
        assert not known.slopes or (X @ (best[:2] - [2.0, 0.5])).std() <= known.deviation


def test_order_of_rows_and_columns_and_units_change_no_verdict():
    X, _, y = table(3, n=500, wrong=0.55)
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(len(X)), [2, 0, 1]
    plain = fit(X, y)
    for other in (fit(X[rows], y[rows]), fit(X[:, columns], y), fit(X * [1, 1024, 0.125], y * 4)):
        assert other.certificate_.declared == plain.certificate_.declared is True
        assert len(other.certificate_.independent.slopes) == 3


# --- files ---


def _arrow(columns):
    import pyarrow as pa

    return pa.table(columns)


def test_a_file_is_confirmed_by_its_declaration(tmp_path, capsys):
    X, _, y = table(5, n=600, wrong=0.55)
    path, model = tmp_path / "ledger.csv", tmp_path / "model.json"
    np.savetxt(path, np.column_stack([X, y.round(2)]), "%.2f", ",", header="a,b,c,total", comments="")
    command = ["fit", str(path), "--target", "total", "--terms", "columns", "--json"]
    assert run(command) == 1
    arbitrary = json.loads(capsys.readouterr().out)
    assert run([*command, "--errors", "independent", "--save", str(model)]) == 0
    declared = json.loads(capsys.readouterr().out)
    assert (arbitrary["verdict"], declared["verdict"]) == ("PLURALITY", "CONFIRMED")
    assert "independent_errors" not in arbitrary
    assert declared["independent_errors"]["declared"] is True
    assert declared["independent_errors"]["confirmed"] == ["a", "b", "c"]
    assert declared["explanation"].startswith("Declared:")
    assert "Declared:" in model.read_text()
    config = tmp_path / "massart.toml"
    config.write_text('[[check]]\ntarget = "total"\nfiles = "ledger.csv"\nerrors = "independant"\n')
    assert run(["check", "--config", str(config)]) == 2
    assert 'errors must be "arbitrary" or "independent"' in capsys.readouterr().err


@pytest.mark.parametrize("seed", [4, 5, 23])
def test_noise_that_is_rounded_to_tens_has_no_right_labels_and_is_not_confirmed(seed):
    rng = np.random.default_rng([9, seed])
    n = int(rng.integers(200, 600))
    X = rng.uniform(0, 100, (n, 1)).round(2)
    y = np.round((X[:, 0] * rng.integers(1, 40) / 4 + rng.standard_t(3, n) * 30) / 10) * 10
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = MassartRegressor(random_state=0, errors="independent").fit(X, y).certificate_
    assert found.verdict is Verdict.NOISY
