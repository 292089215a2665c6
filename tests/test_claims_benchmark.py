"""The benchmark of claims: its tables, its accounts, and its journal. What massart says is not tested here."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import claim_families
import claims
from claim_families import Family, Rows, Table
from claims import Answer, Record

FAMILIES = claim_families.families()


def answer(verdict: str, values: object, table: Table, coef: object = None, is_open: object = False) -> Answer:
    found = np.asarray(values, dtype=np.float64)
    return Answer(
        verdict,
        found,
        table.fits(found),
        None if coef is None else np.asarray(coef, dtype=np.float64),
        np.broadcast_to(np.asarray(is_open, dtype=np.bool_), found.shape),
    )


def small_table(X: object, y: object, w: object, *, relu: bool = False, tolerance: float = 0.0) -> Table:
    """A table of small integers, all of whose rivals are known."""
    X, y = np.array(X, dtype=np.float64), np.array(y, dtype=np.float64)
    clean = np.maximum(X @ np.array(w), 0) if relu else X @ np.array(w, dtype=np.float64)
    options = {"fit_intercept": False} | ({"tolerance": tolerance} if tolerance else {})
    half = np.full(len(y), tolerance + 1e-9)
    kind = "relu" if relu else "linear"
    return Table(X, y, clean, half, 0.5, kind, rounded=tolerance > 0, options=options, exhaustive=True)


def test_there_are_families_of_every_group_with_names_of_their_own() -> None:
    assert len({family.name for family in FAMILIES}) == len(FAMILIES) >= 30
    assert {family.group for family in FAMILIES} == set("abcdefgh")
    assert set(claim_families.BASE) == {family.name for family in FAMILIES}


@pytest.mark.slow
@pytest.mark.parametrize("family", [f for f in FAMILIES if f.small], ids=lambda family: family.name)
def test_a_table_depends_on_its_numbers_alone(family: Family) -> None:
    table, again = family.table(3, 1), family.table(3, 1)
    np.testing.assert_array_equal(table.X, again.X)
    np.testing.assert_array_equal(table.y, again.y)
    other = family.table(4, 1)
    assert other.X.shape != table.X.shape or not np.array_equal(other.y, table.y)


@pytest.mark.parametrize("family", [f for f in FAMILIES if f.group in "abch" and f.small], ids=lambda f: f.name)
def test_labels_are_wrong_at_most_as_often_as_said(family: Family) -> None:
    tables = [family.table(0, trial) for trial in range(3)]
    n_rows, n_wrong = sum(len(t.y) for t in tables), sum(int((~t.right).sum()) for t in tables)
    eta = tables[0].eta
    assert 0 < n_wrong <= eta * n_rows + 5 * np.sqrt(eta * (1 - eta) * n_rows)


def test_who_abstains_is_wrong_only_where_the_rival_differs() -> None:
    table = next(f for f in FAMILIES if f.name == "twins-15/abstain/400/0.4").table(0, 0)
    apart = table.X[:, 0] != table.X[:, 1]
    assert apart.sum() == 15
    assert not (~table.right & ~apart).any()
    assert (~table.right).any()


def test_alpha_of_a_category_is_the_share_in_its_weakest_level() -> None:
    level = np.repeat([0, 1, 2], [50, 30, 20])
    agree = np.ones(100, dtype=np.bool_)
    agree[[0, 1, 50, 51, 52, 80, 81, 82, 83, 84]] = False
    X = np.eye(3)[level]
    assert claim_families.support(X, agree) == pytest.approx(0.75)
    mixed = np.array([[2.0, 1, 0], [0, 1, 1], [1, 1, 5]])
    assert claim_families.support(X @ mixed, agree) == pytest.approx(0.75)
    assert claim_families.support(np.column_stack([X, X[:, 0]]), agree) == pytest.approx(0.75)


def test_claims_are_judged_by_the_truth() -> None:
    X = np.array([[1.0, 0], [1, 0], [1, 0], [0, 1], [0, 1], [1, 1]])
    clean = X @ [2.0, 3.0]
    y = clean.copy()
    y[4] = 99
    table = Table(X, y, clean, np.full(6, 1e-9), 0.4)
    true = claims.judge(table, answer("MAJORITY", clean, table), family="x", trial=5)
    assert (true.recovered, true.false, true.truth_rows, true.claim_rows) == (True, "", 5, 5)
    assert (true.right_lost, true.wrong_missed, true.misjudged) == (0, 0, False)
    assert true.key == ("x", 0, 5)

    wrong = X @ [2.0, 99.0]
    for verdict in ("MAJORITY", "CONFIRMED"):
        false = claims.judge(table, answer(verdict, wrong, table))
        assert false.false == "the truth fits 5 rows, the formula 4"
        assert (false.recovered, false.right_lost, false.wrong_missed, false.misjudged) == (False, 2, 1, True)
    assert claims.judge(table, answer("PROVEN", wrong, table)).false
    assert not claims.judge(table, answer("PROVEN", clean, table)).false
    assert not claims.judge(table, answer("PLURALITY", wrong, table)).false
    where_open = X[:, 1] != 0
    assert not claims.judge(table, answer("MAJORITY", wrong, table, is_open=where_open)).false


def test_rounded_formulas_may_fit_more_rows_than_the_truth() -> None:
    y = np.array([1.0, 2, 3, 4])
    clean = np.array([1.0, 2, 3, 6])
    table = Table(np.ones((4, 1)), y, clean, np.full(4, 0.5), 0.3, rounded=True)
    assert not claims.judge(table, answer("MAJORITY", [1, 2, 3, 4], table)).false
    assert claims.judge(table, answer("MAJORITY", [1, 2, 7, 4], table)).false
    assert not claims.judge(table, answer("MAJORITY", clean + 0.4, table)).false


def test_the_values_of_a_rule_are_those_of_its_terms() -> None:
    """A product of two columns that was found in a table is read as what it is."""
    record = claims.attempt(("two-rates", 0, 0))
    assert record.verdict in ("PROVEN", "CONFIRMED")
    assert record.recovered
    assert (record.false, record.error) == ("", "")


def test_without_a_rule_every_claim_is_false() -> None:
    table = Table(np.ones((4, 1)), np.array([0.0, 0, 0, 1]), None, np.full(4, 1e-9), 1.0)
    for verdict in claims.CLAIMS:
        assert claims.judge(table, answer(verdict, np.zeros(4), table)).false == "there is no rule"
    assert not claims.judge(table, answer("NONE", np.zeros(4), table)).false


def _most_rows(table: Table, w: tuple[Fraction, ...]) -> bool:
    """Whether w alone fits most rows, by rational numbers over all pairs of rows."""
    X, y = table.X.astype(int).tolist(), table.y.astype(int).tolist()

    def count(v: tuple[Fraction, ...]) -> int:
        return sum(v[0] * a + v[1] * b == c for (a, b), c in zip(X, y, strict=True))

    rivals = set()
    for i, j in combinations(range(len(y)), 2):
        (a, b), (c, d) = X[i], X[j]
        if determinant := a * d - b * c:
            rivals.add((Fraction(y[i] * d - b * y[j], determinant), Fraction(a * y[j] - c * y[i], determinant)))
    return all(count(v) < count(w) for v in rivals if v != w)


@pytest.mark.slow
def test_every_rival_is_tried() -> None:
    verdicts = []
    for trial in range(200):
        table = next(f for f in FAMILIES if f.name == "every-rival/2").table(11, trial)
        assert table.clean is not None
        coef = np.round(np.linalg.lstsq(table.X, table.clean, rcond=None)[0])
        record = claims.judge(table, answer("PROVEN", table.clean, table, coef))
        unique = _most_rows(table, (Fraction(int(coef[0])), Fraction(int(coef[1]))))
        assert (record.false == "") == unique, (table.X, table.y)
        verdicts.append(unique)
    assert 20 < sum(verdicts) < 180


def test_a_relu_that_can_move_is_not_proven() -> None:
    X, w = [[1, 0], [1, 0], [0, 1], [0, 1], [1, 1]], [1, 0]
    table = small_table(X, [1, 1, 0, 0, 7], w, relu=True)
    assert claims.judge(table, answer("PROVEN", table.clean, table, w)).false  # (1, b) fits as well for any b < 0
    is_open = np.array(X)[:, 1] != 0
    assert not claims.judge(table, answer("PROVEN", table.clean, table, w, is_open)).false
    pinned = small_table([*X, [2, 1]], [1, 1, 0, 0, 7, 2], w, relu=True)
    assert not claims.judge(pinned, answer("PROVEN", pinned.clean, pinned, w)).false


def test_with_a_tolerance_only_formulas_beyond_the_resolution_are_rivals() -> None:
    table = small_table([[1], [1], [1], [2]], [5, 5, 6, 20], [5], tolerance=1.0)
    found = answer("PROVEN", table.X @ [5.0], table, [5])
    assert claims.judge(table, found).false  # 6 fits the same rows
    wide = Answer(found.verdict, found.values, found.agree, found.coef, found.is_open, resolution=1.0)
    assert not claims.judge(table, wide).false


def test_a_decoy_that_is_a_formula_is_known_as_a_rival() -> None:
    def rows(rng: np.random.Generator) -> Rows:
        return claim_families.lattice(rng, n=200)

    table = claim_families.planted(np.random.default_rng(0), rows, "unit", 0.4)
    assert table.rivals == ()  # no constant among the columns
    table = claim_families.planted(np.random.default_rng(0), rows, "decoy", 0.4)
    (rival,) = table.rivals
    assert (table.fits(rival) & ~table.right).sum() > 20


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[Table]]:
    """Let the benchmark meet a massart that answers 0 always, with the given verdict; the tables that it saw."""

    def use(verdict: str) -> list[Table]:
        seen: list[Table] = []

        def fit(table: Table) -> Answer:
            seen.append(table)
            return answer(verdict, np.zeros(len(table.y)), table, np.zeros(table.X.shape[1]))

        monkeypatch.setattr(claims, "fit", fit)
        return seen

    return use


def test_the_journal_goes_on_after_a_kill(stub: Callable[[str], list[Table]], tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    seen = stub("PLURALITY")
    command = ["--families", "every-rival/1,twins-15/decoy*", "--journal", str(journal)]
    assert claims.main([*command, "--tables", "2"]) == 0
    assert len(seen) == 4
    text = journal.read_bytes()
    journal.write_bytes(text[:-20])  # the last line is torn
    assert claims.main([*command, "--tables", "3"]) == 0
    assert len(seen) == 4 + 3
    assert len(claims.read_journal(journal)) == 6
    assert claims.main([*command, "--tables", "3"]) == 0
    assert claims.main([*command, "--report"]) == 0
    assert len(seen) == 7
    assert claims.main([*command, "--tables", "1", "--seed", "1"]) == 0
    assert len(seen) == 9


@pytest.mark.parametrize(("verdict", "status"), [("PROVEN", 1), ("CONFIRMED", 1), ("MAJORITY", 0), ("NONE", 0)])
def test_a_false_certainty_fails_the_run(
    stub: Callable[[str], list[Table]], capsys: pytest.CaptureFixture[str], verdict: str, status: int
) -> None:
    stub(verdict)
    assert claims.main(["--families", "gaussian-5/junk/300/0.2", "--tables", "1"]) == status
    assert (f"FALSE {verdict}" in capsys.readouterr().out) == bool(status)


def test_the_report_adds_up() -> None:
    family = FAMILIES[0]

    def record(trial: int, verdict: str, *, false: str = "", alpha: float = 0.4, found: bool = True) -> Record:
        return Record(family.name, 0, trial, 400, 20, 0.4, alpha, verdict, found, false, 240, 240, 1, 2, trial, "")

    records = [
        record(1, "MAJORITY"),
        record(2, "MAJORITY", false="so", alpha=0.6, found=False),
        record(3, "MAJORITY", false="so", found=False),
        record(4, "CONFIRMED", alpha=0.7),
        record(5, "PLURALITY", found=False),
    ]
    cells = {name: column(records) for name, column in claims.COLUMNS.items()}
    assert cells["tables"] == "5"
    assert cells["alpha>1/2"] == "0.40"
    assert cells["found"] == "2"
    assert (cells["PROVEN"], cells["CONFIRMED"], cells["MAJORITY"]) == ("0", "1", "3")
    assert (cells["false P"], cells["false C"], cells["false M"]) == ("0", "0", "2")
    assert cells["false M, alpha>1/2"] == "1"
    assert (cells["misjudged"], cells["right lost"], cells["wrong missed"]) == ("4", "4", "8")
    assert cells["median s"] == "3.000"
    lines = claims.report(records, FAMILIES).splitlines()
    assert len(lines) == 3
    assert lines[1].startswith(f"a  {family.name}")
    assert lines[2].startswith("a  all")


def test_an_unknown_family_is_named() -> None:
    with pytest.raises(SystemExit, match="no_such"):
        claims.choose("a,no_such")


def test_what_a_family_is_called_or_begins_with_chooses_it() -> None:
    assert {family.group for family in claims.choose("a,d")} == {"a", "d"}
    assert {family.name.partition("/")[0] for family in claims.choose("flags/*")} == {"flags"}
