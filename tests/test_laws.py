"""What must not change an answer does not, and what must change it does so as it must.

The answer is the formula, the verdict and the rows that agree. Rows in another order, columns in another order or in
other units, another basis of the columns, labels in other units, other names, the same rows twice, other storage: each
is a law, for both estimators, for tables and for the command line. (Blocks have laws of their own, in
test_rows_conformance.py and test_stream_audit.py.) Planted rules are drawn with and without enough rows to be certain
of them; laws about certain rules count that there were some.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from massart import MassartRegressor, MassartReLURegressor
from massart.certificate import Verdict

pytestmark = pytest.mark.slow

ESTIMATORS = {"linear": MassartRegressor, "relu": MassartReLURegressor}
ORDER = [Verdict.NONE, Verdict.NOISY, Verdict.PLURALITY, Verdict.MAJORITY, Verdict.CONFIRMED, Verdict.PROVEN]
CERTAIN = (Verdict.CONFIRMED, Verdict.PROVEN)
FEW = settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[*HealthCheck],  # a fit takes its time where others run, too
)


@dataclass(frozen=True)
class Planted:
    """Rows, and labels of which a share is wrong."""

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    intercept: bool
    link: str
    tolerance: Any = "auto"

    def fit(self) -> Answer:
        options: Any = {"fit_intercept": self.intercept, "tolerance": self.tolerance, "random_state": 0}
        model = ESTIMATORS[self.link](**options).fit(self.X, self.y)
        return Answer(model.coef_, float(model.intercept_), model.certificate_.verdict, model.inlier_mask_)


@dataclass(frozen=True)
class Answer:
    coef: NDArray[np.float64]
    intercept: float
    verdict: Verdict
    agree: NDArray[np.bool_]

    @property
    def is_certain(self) -> bool:
        return self.verdict in CERTAIN

    def assert_same(self, other: Answer, relative: float = 1e-9, *, as_sure: bool = True) -> None:
        """Assert that a certain answer is the same; of what is uncertain, other samples may propose other formulas."""
        assert self.is_certain == other.is_certain, (self.verdict, other.verdict)
        if not self.is_certain:
            return
        scale = max(np.abs(self.coef).max(), abs(self.intercept), 1e-300)
        assert self.verdict == other.verdict or not as_sure
        assert np.array_equal(self.agree, other.agree)
        assert np.abs(self.coef - other.coef).max() <= relative * scale
        assert abs(self.intercept - other.intercept) <= relative * scale * 100


@st.composite
def planted(draw: Any, link: str, intercept: bool | None = None) -> Planted:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    d, share = draw(st.integers(1, 3)), draw(st.sampled_from([0.0, 0.1, 0.25, 0.35]))
    n = draw(st.sampled_from([60, 150]))
    constant = draw(st.booleans()) if intercept is None else intercept
    X = rng.integers(-50, 51, (n, d)).astype(float)
    value = X @ rng.integers(-9, 10, d) + (rng.integers(-30, 31) if constant else 0)
    y = np.maximum(value, 0.0) if link == "relu" else value
    wrong = rng.random(n) < share
    y = np.where(wrong, y + rng.integers(1, 500, n), y)
    return Planted(X, y, constant, link)


def both(law: Callable[[Planted, Answer, np.random.Generator], Answer | None], **options: Any) -> Any:
    """Make a test of a law for both estimators, which counts how often it was about a certain rule with wrong rows."""

    @pytest.mark.parametrize("link", ESTIMATORS)
    def test(link: str) -> None:
        seen: Counter[str] = Counter()

        @FEW
        @given(planted(link, **options), st.integers(0, 2**32))
        def holds(case: Planted, seed: int) -> None:
            answer = case.fit()
            law(case, answer, np.random.default_rng(seed))
            seen["certain"] += answer.is_certain
            seen["wrong"] += answer.is_certain and not answer.agree.all()
            seen["not"] += not answer.is_certain

        holds()
        assert seen["certain"] >= 3, seen
        assert seen["wrong"] >= 2, seen

    return test


# --- rows -------------------------------------------------------------------------------------------------------------


def rows_in_another_order(case: Planted, answer: Answer, rng: np.random.Generator) -> None:
    order = rng.permutation(len(case.y))
    found = replace(case, X=case.X[order], y=case.y[order]).fit()
    answer.assert_same(replace(found, agree=found.agree[np.argsort(order)]))


def rows_twice(case: Planted, answer: Answer, rng: np.random.Generator) -> None:
    """The formula and the marks are the same; what was known is known, and may be more: all evidence came again."""
    found = replace(case, X=np.vstack([case.X, case.X]), y=np.concatenate([case.y, case.y])).fit()
    assert np.array_equal(found.agree[: len(case.y)], found.agree[len(case.y) :])
    assert ORDER.index(found.verdict) >= ORDER.index(answer.verdict) or not answer.is_certain
    if not answer.is_certain:
        return
    answer.assert_same(replace(found, verdict=answer.verdict, agree=found.agree[: len(case.y)]))


def rows_times_positive_numbers(case: Planted, answer: Answer, rng: np.random.Generator) -> None:
    """Without a constant, a row and its label times c > 0 say the same.

    That is so of what is exact: powers of two, and a tolerance of zero, for a row in other units has other last places.
    """
    scale = 2.0 ** rng.integers(-20, 21, len(case.y))
    exact = replace(case, tolerance=0.0)
    exact.fit().assert_same(replace(exact, X=case.X * scale[:, None], y=case.y * scale).fit())


test_the_order_of_rows_does_not_matter = both(rows_in_another_order)
test_the_same_rows_twice_say_the_same_at_least_as_surely = both(rows_twice)
test_rows_may_be_scaled_one_by_one = both(rows_times_positive_numbers, intercept=False)


# --- columns ----------------------------------------------------------------------------------------------------------


def columns_in_another_order(case: Planted, answer: Answer, rng: np.random.Generator) -> None:
    order = rng.permutation(case.X.shape[1])
    found = replace(case, X=case.X[:, order]).fit()
    answer.assert_same(replace(found, coef=found.coef[np.argsort(order)]))


def columns_in_other_units(case: Planted, answer: Answer, rng: np.random.Generator) -> None:
    """Where numbers stay what they are, so does the verdict; where they are rounded, a proof may be out of reach."""
    for units, as_sure in (([60.0, 1000.0, 2.0**10, -1.0], True), ([1e-3, 0.01, 0.3048], False)):
        unit = rng.choice(units, case.X.shape[1])
        found = replace(case, X=case.X * unit).fit()
        answer.assert_same(replace(found, coef=found.coef * unit), as_sure=as_sure)


def another_basis(case: Planted, answer: Answer, rng: np.random.Generator) -> None:
    """X T has the coefficients T^-1 w; T is a product of integer shears and a permutation, so both are exact."""
    d = case.X.shape[1]
    T = np.eye(d)[:, rng.permutation(d)]
    for _ in range(d):
        shear = np.eye(d)
        shear[rng.integers(d), rng.integers(d)] += rng.integers(-2, 3) if d > 1 else 0
        T = T @ shear if abs(np.linalg.det(shear)) > 0.5 else T
    found = replace(case, X=case.X @ T).fit()
    answer.assert_same(replace(found, coef=T @ found.coef))


test_the_order_of_columns_does_not_matter = both(columns_in_another_order)
test_units_of_columns_go_into_their_coefficients = both(columns_in_other_units)
test_another_basis_of_the_columns_gives_the_same_formula_in_it = both(another_basis)


# --- labels -----------------------------------------------------------------------------------------------------------


def labels_in_other_units(case: Planted, answer: Answer, rng: np.random.Generator) -> None:
    """Thousands, cents and powers of two."""
    unit = rng.choice([1000.0, 0.01, 2.0**-30, 2.0**30, 60.0])
    found = replace(case, y=case.y * unit).fit()
    answer.assert_same(replace(found, coef=found.coef / unit, intercept=found.intercept / unit))


def labels_plus_a_formula(case: Planted, answer: Answer, rng: np.random.Generator) -> None:
    v = rng.integers(-20, 21, case.X.shape[1])
    found = replace(case, y=case.y + case.X @ v).fit()
    answer.assert_same(replace(found, coef=found.coef - v))


def labels_with_the_other_sign(case: Planted, answer: Answer, rng: np.random.Generator) -> None:
    found = replace(case, y=-case.y).fit()
    answer.assert_same(replace(found, coef=-found.coef, intercept=-found.intercept))


def of_linear_rules(law: Any) -> Any:
    return lambda: both(law)("linear")  # a ReLU has one sign, and no formula is added inside it


test_units_of_labels_go_into_all_coefficients = both(labels_in_other_units)
test_a_formula_added_to_labels_is_added_to_the_answer = of_linear_rules(labels_plus_a_formula)
test_labels_of_the_other_sign_have_coefficients_of_the_other_sign = of_linear_rules(labels_with_the_other_sign)


# --- tables: names, units, order and storage --------------------------------------------------------------------------

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: tables are read with it")

from massart import audit_table
from massart.audit import Contract, check_table, load_model, summary
from massart.tables import read_table, write_columns

COLUMNS = ("hours", "items", "region", "total")
HOSTILE = [
    ("the intercept", "a = b", "1", "Formula"),
    ('say "x"', "it's", "back`tick", "y ~ x"),
    ("SELECT", "DROP TABLE t; --", "NULL", "WHERE"),
    ("😀", "größe", "価格", "e\u0301"),
    ("hours * 2", "max(0, hours)", "C(region)", "lag(total)"),
    ("implied", "residual", "row", "given"),
    ("lambda", "__class__", "{{ x }}", "<b>total</b>"),
    ("a,b", "a;b", "tab\tbed", "two\nlines"),
    (" lead", "trail ", "UPPER", "upper"),
    ("x" * 300, "-", "0.5", "="),
]


def ledger(seed: int = 0, n: int = 240) -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(seed)
    hours, items = rng.integers(1, 200, n) / 4, rng.integers(0, 40, n)
    region = rng.choice(np.array(["north", "south", "east"]), n)
    total = 3 * hours + 2 * items + 4.5 * (region == "south") + 1
    return dict(zip(COLUMNS, (hours, items, region, np.where(rng.random(n) < 0.2, total + 7.25, total)), strict=True))


@dataclass(frozen=True)
class Said:
    """What an audit of a table says, apart from names."""

    verdict: str
    coefficients: dict[tuple[int, str], Fraction]
    wrong: tuple[int, ...]
    kinds: tuple[tuple[str, int], ...]


def said(found: Any, names: tuple[str, ...] = COLUMNS) -> Said:
    result = summary(found, Contract())
    *terms, constant = result["coefficients"]
    coefficients = {(names.index(one["column"]), one["level"] or ""): Fraction(one["exact"]) for one in terms}
    coefficients[-1, ""] = Fraction(constant["exact"])
    wrong = np.sort(found.numbers_of(found.design.kept[found.wrong]))
    return Said(
        result["verdict"], coefficients, tuple(wrong.tolist()), tuple((k["kind"], k["rows"]) for k in result["kinds"])
    )


@pytest.fixture(scope="module")
def plain() -> Said:
    found = said(audit_table(pa.table(ledger()), "total", terms="columns"))
    assert found.verdict in ("PROVEN", "CONFIRMED")
    levels = {(2, "north"): 0, (2, "south"): Fraction(9, 2)}
    assert found.coefficients == {(0, ""): 3, (1, ""): 2, **levels, (-1, ""): 1}
    assert len(found.wrong) > 20
    return found


@pytest.mark.slow
@pytest.mark.parametrize("names", HOSTILE, ids=lambda names: ascii(names[0])[:20])
def test_names_do_not_matter(names: tuple[str, ...], plain: Said, tmp_path: Path) -> None:
    table = pa.table(dict(zip(names, ledger().values(), strict=True)))
    outputs = {"audit": tmp_path / "a.csv", "fixed": tmp_path / "f.parquet"}
    found = audit_table(table, names[-1].strip(), terms="columns", **outputs)
    assert said(found, tuple(map(str.strip, names))) == plain
    assert read_table(outputs["audit"]).n_rows == read_table(outputs["fixed"]).n_rows == 240
    found.model().save(tmp_path / "model.json")
    again = check_table(load_model(tmp_path / "model.json"), table).audit
    assert again.n_wrong == len(plain.wrong)
    assert np.array_equal(again.wrong, found.wrong)
    assert "</html>" in found.report({}).to_html()


def test_the_order_of_the_columns_of_a_table_does_not_matter(plain: Said) -> None:
    for order in ((3, 2, 1, 0), (2, 0, 3, 1)):
        table = pa.table({COLUMNS[j]: ledger()[COLUMNS[j]] for j in order})
        assert said(audit_table(table, "total", terms="columns")) == plain


def test_the_order_of_the_rows_of_a_table_does_not_matter(plain: Said) -> None:
    order = np.random.default_rng(5).permutation(240)
    found = said(audit_table(pa.table(ledger()).take(pa.array(order)), "total", terms="columns"))
    assert replace(found, wrong=tuple(sorted(order[[*found.wrong]].tolist()))) == plain


@pytest.mark.parametrize(("unit", "text"), [(1000, "{:.0f}"), (Fraction(1, 100), "{:.4f}"), (100, "{:.0f}")])
def test_units_of_the_target_go_into_the_rule(unit: Fraction, text: str, plain: Said) -> None:
    """From euros to cents, thousands and back: the same rows are wrong, in the same way."""
    cells = ledger()
    cells["total"] = np.array([text.format(float(value * unit)) for value in cells["total"].tolist()])
    found = said(audit_table(pa.table(cells), "total", terms="columns"))
    assert (found.verdict, found.wrong) == (plain.verdict, plain.wrong)
    assert found.coefficients == {key: value * unit for key, value in plain.coefficients.items()}
    assert [n for _, n in found.kinds] == [n for _, n in plain.kinds]


def stored(folder: Path) -> Iterator[tuple[str, Any]]:
    columns = ledger()
    for name in ("a.csv", "a.tsv", "a.csv.gz", "a.jsonl", "a.parquet", "a.arrow", "a.xlsx"):
        write_columns(folder / name, columns)
        yield name, folder / name
    for library in ("pandas", "polars"):
        yield library, pytest.importorskip(library).DataFrame(columns)


@pytest.mark.slow
def test_how_a_table_is_stored_does_not_matter(plain: Said, tmp_path: Path) -> None:
    for name, source in stored(tmp_path):
        assert said(audit_table(source, "total", terms="columns")) == plain, name


@pytest.mark.slow
def test_how_rows_are_stored_does_not_matter_to_an_estimator(tmp_path: Path) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(2)
    X = rng.integers(-50, 51, (300, 3)) * (rng.random((300, 3)) < 0.6)
    y = X @ [3.0, -2.0, 5.0] + np.where(rng.random(300) < 0.15, rng.integers(1, 99, 300), 0) + 7
    mapped = np.memmap(tmp_path / "X", np.float64, "w+", shape=X.shape)
    mapped[:] = X
    kinds = [X, X.astype(float), np.asfortranarray(X), X.astype(np.float32), mapped, sparse.csr_array(X), X.tolist()]
    kinds += [sparse.csc_matrix(X), X.astype(np.int8), X.astype(float)[::1, ::-1][:, ::-1]]
    models = [MassartRegressor(random_state=0).fit(kind, y) for kind in kinds]
    assert models[0].certificate_.verdict in CERTAIN
    for model in models:
        assert model.certificate_.verdict == models[0].certificate_.verdict
        assert np.array_equal(model.inlier_mask_, models[0].inlier_mask_)
        assert np.abs(model.coef_ - [3, -2, 5]).max() < 1e-12


@pytest.mark.slow
def test_the_command_line_has_the_answer_of_the_library(
    plain: Said, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("typer", reason="typer is not installed: the command line is optional")
    from massart.cli import run

    for name, source in stored(tmp_path):
        if isinstance(source, Path):
            command = ["fit", str(source), "--target", "total", "--terms", "columns", "--json", "--all-rows"]
            assert run(command) == 0
            found = json.loads(capsys.readouterr().out)
            assert sorted(int(row["row"]) - 1 for row in found["worst_rows"]) == [*plain.wrong], name
            assert (found["verdict"], found["formula"]) == (plain.verdict, EXPECTED)


EXPECTED = "total = 3 * hours + 2 * items + 4.5 * (region = south) + 1"
