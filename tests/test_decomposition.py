"""Laws of the decomposition of the span."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from drug_discovery import drug_discovery
from harness import MissingPeer
from heavy_families import FAMILIES
from massart.isotropy import Status, decompose, radial_isotropy
from row_families import integers_on_subspace


def check_pieces(X, pieces, gamma=0.5, weights=None):
    """Assert all that `decompose` promises, from the definition."""
    X = np.asarray(X, dtype=float)
    used = X.any(axis=1) if weights is None else X.any(axis=1) & (weights > 0)
    unit = X / np.where(used, np.linalg.norm(X, axis=1), 1)[:, None]
    whole = np.hstack([piece.subspace for piece in pieces]) if pieces else np.zeros((X.shape[1], 0))
    assert whole.shape[1] == np.linalg.matrix_rank(unit[used]), "the pieces cover the span"
    np.testing.assert_allclose(whole.T @ whole, np.eye(whole.shape[1]), atol=1e-9, err_msg="and are orthogonal")
    counted = sum((piece.members.astype(int) for piece in pieces), np.zeros(len(X), dtype=int))
    np.testing.assert_array_equal(counted, used, "each row belongs to one piece")
    spanned = np.zeros((X.shape[1], 0))
    for piece in pieces:
        spanned = np.hstack([spanned, piece.subspace])
        rest = unit[piece.members] - unit[piece.members] @ spanned @ spanned.T
        assert np.abs(rest).max() < 1e-9, "a row lies in the pieces up to its own"
        own = X[piece.members] @ piece.subspace
        assert np.linalg.norm(own, axis=1).min() > 0, "and not in the earlier ones"
        Y = own @ piece.matrix.T
        U = Y / np.linalg.norm(Y, axis=1)[:, None]
        c = np.ones(len(U)) if weights is None else weights[piece.members]
        smallest = np.linalg.eigvalsh((U * c[:, None]).T @ U * (U.shape[1] / c.sum()))[0]
        assert piece.residual == pytest.approx(1 - smallest, abs=1e-6)
        assert piece.residual <= gamma
        assert piece.status is (Status.WHOLE if piece.subspace.shape[1] == X.shape[1] else Status.SUBSPACE)
        np.testing.assert_array_equal(piece.matrix, piece.matrix.T)
    check_shares(pieces, used if weights is None else used * weights)


def check_shares(pieces, weights):
    """Assert Lemma 2.6: each subspace holds at least the share dim(V) / dim(rest) of the rows that are left."""
    left, dimensions = np.sum(weights), sum(piece.subspace.shape[1] for piece in pieces)
    for piece in pieces:
        k, inside = piece.subspace.shape[1], np.sum(weights[piece.members])
        assert inside * dimensions >= k * left * (1 - 1e-12)
        left, dimensions = left - inside, dimensions - k


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_planted_families_decompose(name):
    for seed in range(4):
        X, _ = FAMILIES[name](np.random.default_rng([30_000 + seed, zlib.crc32(name.encode())]))
        check_pieces(X, decompose(X))
        check_pieces(X, decompose(X, 1e-3), 1e-3)


@pytest.mark.slow
@given(
    hnp.arrays(np.int64, st.tuples(st.integers(1, 16), st.integers(1, 5)), elements=st.integers(-2, 2)),
    st.sampled_from([0.5, 0.05]),
)
@example(X=np.array([[0, 0, 1, 1, 1], [0, 1, 1, 1, 1], [1, 1, 1, 0, 1], *5 * [[1, 1, 1, 1, 1]]]), gamma=0.5)  # STALLED
def test_any_small_integer_table_decomposes(X, gamma):
    check_pieces(X, decompose(X, gamma), gamma)


@given(st.integers(0, 2**32 - 1), st.integers(3, 7), st.sampled_from([0.5, 1e-3]), st.booleans())
def test_every_piece_holds_its_share_of_the_rows_left(seed, d, gamma, weighted):
    """A chain of random subspaces, each with many of the rows, and two more dimensions that no row has.

    No row is near a subspace that it is not in: what is left of such a row, projected, is so inexact that a barely
    heavy subspace of later pieces may be missed at the default `tol`, and the piece is STALLED (Gaussian entries:
    seed=86114, d=6, gamma=1e-3, weighted).
    """
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.standard_normal((d + 2, d + 2)))[0][:d]
    dimensions = rng.integers(1, d + 1, 20 * d)
    entries = rng.uniform(0.5, 1.5, (20 * d, d)) * rng.choice([-1, 1], (20 * d, d))
    X = np.where(np.arange(d) < dimensions[:, None], entries, 0) @ axes
    weights = rng.integers(0, 4, 20 * d).astype(float) if weighted else None
    check_pieces(X, decompose(X, gamma, sample_weight=weights), gamma, weights)


def test_zero_table_has_no_pieces():
    assert decompose(np.zeros((4, 3))) == []


def test_first_piece_is_the_transform():
    X, _ = FAMILIES["nested"](np.random.default_rng(0))
    first, iso = decompose(X)[0], radial_isotropy(X)
    np.testing.assert_array_equal(first.members, iso.members)
    np.testing.assert_array_equal(first.matrix, iso.matrix)


def test_weights_count():
    X, _ = FAMILIES["dummies"](np.random.default_rng(0))
    weights = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
    check_pieces(X, decompose(X, sample_weight=weights), weights=weights)


def test_columns_of_extreme_scales():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    X[15:, 1] = 0
    X *= [1e150, 1e-150, 1, 1e8, 1e-8]
    pieces = decompose(X)
    assert [piece.subspace.shape[1] for piece in pieces] == [4, 1]
    assert [int(piece.members.sum()) for piece in pieces] == [185, 15]


def test_pieces_serve_algorithm_2_for_any_labels():
    """Solving piece by piece, labels less what earlier pieces explain, gives w (Algorithm 2 without noise)."""
    rows = integers_on_subspace(300, 9, 3, 270, np.random.default_rng(0)).X
    pieces = decompose(rows)
    assert len(pieces) > 1
    for seed in range(3):
        w = np.random.default_rng(seed).standard_normal(9)
        found = np.zeros(9)
        for piece in pieces:
            labels = (rows @ w - rows @ found)[piece.members]
            found += piece.subspace @ np.linalg.lstsq(rows[piece.members] @ piece.subspace, labels, rcond=None)[0]
        np.testing.assert_allclose(found, w, atol=1e-9)


@pytest.mark.slow
def test_drug_discovery_rows():
    try:
        X = drug_discovery().X
    except MissingPeer as reason:
        pytest.skip(str(reason))
    check_pieces(X, decompose(X))


def test_a_column_of_rounding_is_no_dimension():
    """Rows off a heavy plane are projected on its complement, where what cancels is rounding."""
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    rows = np.zeros((120, 6))
    rows[:80, :2] = rng.standard_normal((80, 2))
    rows[80:, :4] = rng.standard_normal((40, 4))
    for scale in (1.0, 1e-9):
        rows[80:, 2:4] *= scale
        pieces = decompose(rows @ basis.T, gamma=0.05)
        assert [piece.subspace.shape[1] for piece in pieces] == [2, 2]
        for piece, columns in zip(pieces, (slice(0, 2), slice(0, 4)), strict=True):
            inside = np.linalg.norm(basis[:, columns].T @ piece.subspace, axis=0)
            np.testing.assert_allclose(inside, 1, atol=1e-6)
