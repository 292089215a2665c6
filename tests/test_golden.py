"""What a user sees of sixty small tables is what was kept; ``python benchmarks/golden.py`` keeps it anew."""

import pytest

import golden
import golden_tables

CASES = {case.name: case for case in golden_tables.cases()}


@pytest.fixture(scope="module")
def address():
    with golden.cluster() as found:
        yield found


@pytest.mark.parametrize("name", CASES)
def test_a_user_sees_what_was_kept(name, address):
    before = golden.kept(name)
    if address is None:
        before = {part: lines for part, lines in before.items() if not part.startswith("dask")}
    changed = golden.differences(before, golden.outputs(CASES[name], client_address=address))
    assert not changed, "\n".join(changed)


def test_every_golden_file_has_its_case():
    assert {path.stem for path in golden.GOLDEN.glob("*.json")} == set(CASES)


@pytest.mark.parametrize(
    ("old", "new", "differ"),
    [
        ("slope 1.5 of 20 rows", "slope 1.5000000001 of 20 rows", False),
        ("slope 1.5 of 20 rows", "slope 1.50001 of 20 rows", True),
        ("slope 1.5 of 20 rows", "slope 1.5 of 21 rows", True),
        ("slope 1.5 of 20 rows", "slope 1.5 in 20 rows", True),
        ("12", "1,2", True),
        ("-3", "3", True),
    ],
)
def test_a_comparison_forgives_the_last_digits_alone(old, new, differ):
    assert bool(golden.differences({"stdout": [old]}, {"stdout": [new]})) == differ


def test_a_missing_line_and_a_missing_part_differ():
    assert golden.differences({"stdout": ["a", "b"]}, {"stdout": ["a"]})
    assert golden.differences({"stdout": ["a"]}, {"stdout": ["a"], "stderr": ["b"]})
