"""Laws of Massart noise (Definition 1.1), of its adversaries and of the paper's data (Section 4)."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import massart
from massart.l1 import l1_regression
from massart.paper import (
    Adversary,
    Concept,
    MassartNoise,
    constant,
    decoy,
    far_constant,
    flip,
    gaussian,
    gross,
    high_leverage,
    idle,
    linear_labels,
    negate,
    noise,
    paper_adversary,
    paper_mixture,
    paper_weights,
    relu_labels,
    scale,
    where,
    zero,
)
from row_families import displaced_weights, oppose

ADVERSARIES: dict[str, Callable[[np.ndarray, Concept], Adversary]] = {
    "idle": lambda w, concept: idle,
    "zero": lambda w, concept: zero,
    "far_constant": lambda w, concept: far_constant,
    "constant": lambda w, concept: constant(7.5),
    "scale up": lambda w, concept: scale(1.1),
    "scale drug": lambda w, concept: scale(-100.0),
    "gross": lambda w, concept: gross(),
    "decoy": lambda w, concept: decoy(w[::-1], concept),
    "near decoy": lambda w, concept: decoy(displaced_weights(w, 0.05, np.random.default_rng(1)), concept),
    "negate": lambda w, concept: negate(w),
    "flip": flip,
    "oppose": oppose,
    "paper": lambda w, concept: paper_adversary(w),
    "where": lambda w, concept: where(lambda X: X[:, 0] > 0.0, far_constant),
}
CHANCE = 1e-5
"""Level of the statistical tests. Seeds are fixed, and with about fifty tests none fails by bad luck at this level."""

concepts = st.sampled_from([linear_labels, relu_labels])
seeds = st.integers(0, 2**32 - 1)
every_row = np.ones(40, dtype=bool)


def bits(values: np.ndarray) -> bytes:
    return np.ascontiguousarray(values).tobytes()


def rng_of(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    eta=st.floats(0.0, 0.5, exclude_max=True), name=st.sampled_from(sorted(ADVERSARIES)), concept=concepts, seed=seeds
)
def test_rows_that_may_not_change_keep_their_label_bit_for_bit(
    eta: float, name: str, concept: Concept, seed: int
) -> None:
    rng = rng_of(seed)
    n, d = int(rng.integers(1, 60)), int(rng.integers(2, 6))
    X, w = paper_mixture(n, d, rng), rng.standard_normal(d)
    clean = concept(X, w)
    before = bits(X), bits(clean)
    corruption = MassartNoise(eta, ADVERSARIES[name](w, concept)).corrupt(X, clean, rng)
    kept = ~corruption.allowed
    assert bits(corruption.labels[kept]) == bits(clean[kept])
    assert not (corruption.changed & kept).any()
    np.testing.assert_array_equal(corruption.changed, corruption.labels != clean)
    assert np.isfinite(corruption.labels).all()
    assert (bits(X), bits(clean)) == before


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(sorted(ADVERSARIES)), concept=concepts, seed=seeds)
def test_same_seed_gives_the_same_bytes(name: str, concept: Concept, seed: int) -> None:
    X, w = gaussian(30, 3, rng_of(1)), np.array([1.0, -2.0, 0.5])
    runs = [MassartNoise(0.4, ADVERSARIES[name](w, concept)).corrupt(X, concept(X, w), rng_of(seed)) for _ in range(2)]
    assert bits(runs[0].labels) == bits(runs[1].labels)
    assert bits(runs[0].allowed) == bits(runs[1].allowed)


@settings(max_examples=60, deadline=None)
@given(low=st.floats(0.0, 0.49), high=st.floats(0.0, 0.49), seed=seeds)
def test_same_seed_allows_the_same_rows_to_every_adversary_and_more_at_a_larger_rate(
    low: float, high: float, seed: int
) -> None:
    low, high = min(low, high), max(low, high)
    X = gaussian(50, 2, rng_of(0))
    clean = linear_labels(X, [1.0, 2.0])
    few = MassartNoise(low, gross()).corrupt(X, clean, rng_of(seed)).allowed
    many = MassartNoise(high, idle).corrupt(X, clean, rng_of(seed)).allowed
    assert (few <= many).all()


@pytest.mark.parametrize("eta", [0.0, 0.1, 0.25, 0.49])
def test_each_row_is_allowed_independently_with_probability_eta(eta: float) -> None:
    n, repeats = 50, 400
    X, model, rng = np.ones((n, 1)), MassartNoise(eta, zero), rng_of(3)
    masks = np.array([model.corrupt(X, np.ones(n), rng).allowed for _ in range(repeats)])
    if eta == 0.0:
        assert not masks.any()
        return
    assert stats.binomtest(int(masks.sum()), masks.size, eta).pvalue > CHANCE
    # Row sums of independent entries are binomial: their variance is n eta (1 - eta).
    dispersion = masks.sum(axis=1).var(ddof=1) / (n * eta * (1 - eta)) * (repeats - 1)
    assert stats.chi2.sf(dispersion, repeats - 1) > CHANCE
    assert stats.chi2.cdf(dispersion, repeats - 1) > CHANCE
    columns = ((masks.sum(axis=0) - repeats * eta) ** 2).sum() / (repeats * eta * (1 - eta))
    assert stats.chi2.sf(columns, n) > CHANCE


def test_an_adversary_that_cheats_is_named_with_the_row() -> None:
    X, clean = np.ones((200, 1)), np.arange(200.0)

    def everywhere(X: np.ndarray, clean: np.ndarray, allowed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return clean + 1.0

    first = int(np.flatnonzero(rng_of(0).random(200) >= 0.3)[0])
    with pytest.raises(ValueError, match=f"adversary changed the label of row {first} "):
        MassartNoise(0.3, everywhere).corrupt(X, clean, rng_of(0))


def test_one_bit_is_cheating() -> None:
    def sign_of_zero(X: np.ndarray, clean: np.ndarray, allowed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return -clean

    with pytest.raises(ValueError, match="adversary changed the label of row 0 "):
        MassartNoise(0.0, sign_of_zero).corrupt(np.ones((3, 1)), np.zeros(3), rng_of(0))


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_an_adversary_cannot_write_into_what_it_is_shown(victim: int) -> None:
    def vandal(*seen: np.ndarray) -> np.ndarray:
        seen[victim][0] = 1
        return seen[1]

    with pytest.raises(ValueError, match="read-only"):
        MassartNoise(0.4, vandal).corrupt(np.zeros((5, 1)), np.zeros(5), rng_of(0))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("adversary", "message"),
    [
        (lambda X, clean, allowed, rng: clean[:-1], "adversary's answer must have shape"),
        (lambda X, clean, allowed, rng: clean[:, None], r"adversary's answer must have shape \(20,\)"),
        (lambda X, clean, allowed, rng: np.where(allowed, np.nan, clean), "adversary's answer must be finite, got NaN"),
        (scale(1e308), "adversary's answer must be finite, got inf"),
        (lambda X, clean, allowed, rng: None, "adversary's answer"),
    ],
)
def test_an_adversary_must_answer_with_one_finite_label_a_row(adversary: Adversary, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MassartNoise(0.49, adversary).corrupt(np.ones((20, 1)), np.full(20, 5.0), rng_of(0))


def test_labels_are_the_callers_own_memory() -> None:
    clean = np.arange(5.0)
    labels = MassartNoise(0.3, idle).corrupt(np.ones((5, 1)), clean, rng_of(0)).labels
    assert not np.shares_memory(labels, clean)
    labels[0] = 9.0


@pytest.mark.parametrize("eta", [0.5, 0.7, 1.0, -0.1, float("nan"), float("inf"), "0.2", None])
def test_rates_outside_the_model_are_refused(eta: float) -> None:
    with pytest.raises(ValueError, match="eta must be .*" + ("below 1/2" if eta in (0.5, 0.7, 1.0, -0.1) else "")):
        MassartNoise(eta, idle)


def test_bad_arguments_of_the_model_are_named() -> None:
    with pytest.raises(ValueError, match="adversary must be a function"):
        MassartNoise(0.1, "flip")  # type: ignore[arg-type]
    model = MassartNoise(0.1, idle)
    with pytest.raises(ValueError, match=r"rng must be a numpy\.random\.Generator, got 0"):
        model.corrupt(np.ones((2, 1)), np.ones(2), 0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="clean must have shape \\(2,\\)"):
        model.corrupt(np.ones((2, 1)), np.ones(3), rng_of(0))
    with pytest.raises(ValueError, match=r"clean must have shape \(2,\)"):
        model.corrupt(np.ones((2, 1)), np.ones((2, 2)), rng_of(0))
    with pytest.raises(ValueError, match="X must be finite"):
        model.corrupt([[np.inf]], [1.0], rng_of(0))


# What each adversary answers, when it may answer everywhere


@pytest.fixture
def instance() -> tuple[np.ndarray, np.ndarray]:
    rng = rng_of(8)
    return gaussian(40, 3, rng), rng.standard_normal(3)


def answer(adversary: Adversary, X: np.ndarray, clean: np.ndarray, seed: int = 0) -> np.ndarray:
    return adversary(X, clean, every_row, rng_of(seed))


def test_concepts_are_linear_and_relu(instance: tuple[np.ndarray, np.ndarray]) -> None:
    X, w = instance
    expected = np.array([sum(a * b for a, b in zip(x, w, strict=True)) for x in X])
    np.testing.assert_allclose(linear_labels(X, w), expected, atol=1e-14)
    np.testing.assert_array_equal(relu_labels(X, w), np.maximum(0.0, linear_labels(X, w)))
    with pytest.raises(ValueError, match=r"w must have shape \(3,\), got \(2,\)"):
        relu_labels(X, [1.0, 2.0])


def test_negate_flip_and_scale_agree_on_linear_functions(instance: tuple[np.ndarray, np.ndarray]) -> None:
    X, w = instance
    clean = linear_labels(X, w)
    for adversary in (negate(w), flip(w, linear_labels), scale(-1.0)):
        np.testing.assert_array_equal(answer(adversary, X, clean), -clean)


def test_negate_is_literal_and_flip_stays_in_the_class_for_a_relu(instance: tuple[np.ndarray, np.ndarray]) -> None:
    X, w = instance
    clean, z = relu_labels(X, w), linear_labels(X, w)
    np.testing.assert_array_equal(answer(negate(w), X, clean), -z)
    np.testing.assert_array_equal(answer(flip(w, relu_labels), X, clean), np.maximum(0.0, -z))


def test_constant_adversaries_answer_one_value(instance: tuple[np.ndarray, np.ndarray]) -> None:
    X, w = instance
    clean = linear_labels(X, w)
    assert set(answer(constant(-3.5), X, clean)) == {-3.5}
    assert set(answer(zero, X, clean)) == {0.0}
    assert set(answer(far_constant, X, clean)) == {10.0 * np.abs(clean).max()}
    assert set(answer(far_constant, X, np.zeros(40))) == {10.0}


def test_scale_multiplies_and_leaves_zeros(instance: tuple[np.ndarray, np.ndarray]) -> None:
    X, w = instance
    clean = relu_labels(X, w)
    np.testing.assert_array_equal(answer(scale(1.1), X, clean), 1.1 * clean)
    changed = MassartNoise(0.49, scale(-100.0)).corrupt(X, clean, rng_of(0)).changed
    assert not changed[clean == 0.0].any()


def test_gross_is_uniform_within_its_spread() -> None:
    clean = np.full(5000, -2.0)
    labels = gross(3.0)(np.ones((5000, 1)), clean, np.ones(5000, dtype=bool), rng_of(4))
    assert stats.kstest(labels, stats.uniform(-6.0, 12.0).cdf).pvalue > CHANCE


@pytest.mark.parametrize("concept", [linear_labels, relu_labels])
def test_decoy_and_oppose_answer_with_another_member_of_the_class(
    concept: Concept, instance: tuple[np.ndarray, np.ndarray]
) -> None:
    X, w = instance
    clean, other = concept(X, w), np.array([1.0, 0.0, -2.0])
    np.testing.assert_array_equal(answer(decoy(other, concept), X, clean), concept(X, other))
    np.testing.assert_array_equal(answer(decoy(w, concept), X, clean), clean)
    chosen = displaced_weights(w, 3.0, rng_of(5))
    np.testing.assert_array_equal(answer(oppose(w, concept), X, clean, seed=5), concept(X, chosen))


def test_a_decoy_keeps_the_parameter_it_was_made_with(instance: tuple[np.ndarray, np.ndarray]) -> None:
    X, w = instance
    other = w.copy()
    adversary = decoy(other, linear_labels)
    other[:] = 0.0
    np.testing.assert_array_equal(answer(adversary, X, np.zeros(40)), linear_labels(X, w))


def test_where_changes_exactly_the_allowed_rows_of_its_predicate() -> None:
    X = gaussian(500, 2, rng_of(0))
    corruption = MassartNoise(0.4, where(lambda X: X[:, 1] > 0.3, constant(9.0))).corrupt(X, X[:, 0], rng_of(1))
    np.testing.assert_array_equal(corruption.changed, corruption.allowed & (X[:, 1] > 0.3))
    with pytest.raises(ValueError, match=r"predicate\(X\) must be a boolean array"):
        MassartNoise(0.4, where(lambda X: X[:, 1], constant(9.0))).corrupt(X, X[:, 0], rng_of(1))  # type: ignore[arg-type, return-value]


def test_high_leverage_means_any_coordinate_above_half_the_dimension() -> None:
    X = np.array([[2.0, 0.0, 0.0, 0.0], [0.0, 2.1, 0.0, 0.0], [-9.0, 0.0, 0.0, 0.0], [0.0, 0.0, 3.0, 3.0]])
    assert high_leverage(X).tolist() == [False, True, False, True]


def test_the_papers_adversary_flips_with_probability_eta_the_rows_away_from_e1() -> None:
    d, n, eta, rng = 30, 20_000, 0.25, rng_of(2)
    X, w = paper_mixture(n, d, rng), paper_weights(d)
    clean = linear_labels(X, w)
    corruption = MassartNoise(eta, paper_adversary(w)).corrupt(X, clean, rng)
    far = X.max(axis=1) > d / 2
    np.testing.assert_array_equal(corruption.changed, corruption.allowed & far)
    np.testing.assert_array_equal(corruption.labels[corruption.changed], -clean[corruption.changed])
    assert stats.binomtest(int(corruption.changed.sum()), int(far.sum()), eta).pvalue > CHANCE
    assert stats.binomtest(int(far.sum()), n, 0.5).pvalue > CHANCE


def test_rows_that_an_adversary_chooses_defeat_l1_on_gaussian_columns_from_a_share_of_239_thousandths_on() -> None:
    # The largest |r.x| of that share hold half of their sum, for every r: exp(-t^2/2) = 1/2 at the quantile t.
    assert 2 * stats.norm.sf(np.sqrt(2 * np.log(2))) == pytest.approx(0.239, abs=1e-4)
    X, w = gaussian(20_000, 2, rng_of(0)), np.array([1.0, -2.0])
    for share, recovered in ((0.22, True), (0.26, False)):
        for angle in np.linspace(0.0, np.pi, 7):
            r = np.array([np.cos(angle), np.sin(angle)])
            wrong = np.abs(X @ r) > np.quantile(np.abs(X @ r), 1 - share)
            coef = l1_regression(X, np.where(wrong, X @ (w + r), X @ w)).coef
            assert np.allclose(coef, w, atol=1e-9) == recovered


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: scale(float("nan")), "factor must be a finite number, got nan"),
        (lambda: constant(float("inf")), "value must be a finite number, got inf"),
        (lambda: gross(0.0), "spread must be positive and finite, got 0"),
    ],
)
def test_bad_arguments_of_adversaries_are_named(make: Callable[[], Adversary], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


# The paper's data


@pytest.mark.parametrize("sampler", [gaussian, paper_mixture])
@pytest.mark.parametrize(("n", "d", "name"), [(0, 3, "n"), (-1, 3, "n"), (5, 0, "d"), (5.5, 3, "n"), (5, "3", "d")])
def test_samplers_name_a_bad_size(sampler: Callable[..., np.ndarray], n: int, d: int, name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} must be an integer of at least 1, got "):
        sampler(n, d, rng_of(0))


@pytest.mark.parametrize("sampler", [gaussian, paper_mixture])
def test_samplers_refuse_a_bare_seed(sampler: Callable[..., np.ndarray]) -> None:
    with pytest.raises(ValueError, match=r"rng must be a numpy\.random\.Generator, got 3"):
        sampler(5, 3, 3)  # type: ignore[arg-type]


def test_paper_mixture_has_the_papers_shares_means_and_spread() -> None:
    n, d = 60_000, 5
    X = paper_mixture(n, d, rng_of(0))
    centres = np.vstack([np.eye(d)[0], d * np.eye(d)])
    part = np.argmin(((X[:, None, :] - centres) ** 2).sum(axis=2), axis=1)
    shares = np.array([0.5, *[0.5 / d] * d])
    assert stats.chisquare(np.bincount(part, minlength=d + 1), n * shares).pvalue > CHANCE
    # Each part is N(centre, I / d^2): parts are 4 units apart, 20 standard deviations.
    standardized = d * (X - centres[part])
    assert stats.kstest(standardized.ravel(), "norm").pvalue > CHANCE
    np.testing.assert_allclose(standardized.T @ standardized / n, np.eye(d), atol=0.03)


def test_paper_weights_are_nine_e2_plus_ones() -> None:
    assert paper_weights(4).tolist() == [1.0, 10.0, 1.0, 1.0]
    assert np.linalg.norm(paper_weights(30)) == pytest.approx(11.4, abs=0.05)


def test_paper_weights_need_two_columns() -> None:
    with pytest.raises(ValueError, match="d must be an integer of at least 2, got 1"):
        paper_weights(1)


# Who may know the truth

MASSART = Path(massart.__file__).parent
MAKE_DATA = {"demo.py", "experiments", "paper"}
"""What may import noise: it makes data, or is where noise is defined."""


def truths_in(source: str) -> set[str]:
    """Return what a module takes from massart.paper.noise, by whatever door."""
    taken = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = {alias.name for alias in node.names}
            if node.module == "massart.paper.noise":
                taken |= names
            elif node.module == "massart.paper":
                taken |= names & {*noise.__all__, "noise", "*"}
        elif isinstance(node, ast.Import):
            taken |= {alias.name for alias in node.names} & {"massart.paper.noise"}
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("paper", "massart.paper"):
            taken |= {node.attr} & {*noise.__all__, "noise"}
    return taken


def test_the_truth_cannot_leak_into_recovery() -> None:
    modules = [path for path in MASSART.rglob("*.py") if path.relative_to(MASSART).parts[0] not in MAKE_DATA]
    assert {"recover", "search", "certificate", "robust", "estimators", "audit", "rules"} <= {
        path.relative_to(MASSART).parts[0] for path in modules
    }
    leaks = {str(path): truths_in(path.read_text(encoding="utf-8")) for path in modules}
    assert {path: names for path, names in leaks.items() if names} == {}


@pytest.mark.parametrize(
    ("source", "taken"),
    [
        ("from massart.paper.noise import MassartNoise", {"MassartNoise"}),
        ("from massart.paper import algorithm_2, paper_weights", {"paper_weights"}),
        ("from massart.paper import *", {"*"}),
        ("from massart.paper import noise", {"noise"}),
        ("def late():\n    from massart.paper.noise import linear_labels", {"linear_labels"}),
        ("import massart.paper.noise", {"massart.paper.noise"}),
        ("import massart.paper\nmassart.paper.paper_weights(3)", {"paper_weights"}),
        ("from massart import paper\npaper.simulate_oblivious", {"simulate_oblivious"}),
        ("from massart.paper import algorithm_2\nnp.where(a, b, c)", set()),
    ],
)
def test_a_leak_would_be_seen(source: str, taken: set[str]) -> None:
    assert truths_in(source) == taken
    assert "MassartNoise" in truths_in((MASSART / "experiments" / "figure_1.py").read_text(encoding="utf-8"))


def test_noise_imports_only_rows() -> None:
    tree = ast.parse((MASSART / "paper" / "noise.py").read_text(encoding="utf-8"))
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {module for module in imported if module.startswith("massart")} == {"massart.rows"}
