"""What fuzzing once found (tests/fuzz/corpus), and some new cases of each target; tests/fuzz/run.py makes more."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

import pytest

for name in ("typer", "pyarrow", "jinja2", "python_calamine", "xlsxwriter"):
    pytest.importorskip(name)

from fuzz.mutations import N_ROWS, valid_files
from fuzz.targets import TARGETS, Case, look

from massart.tables import read_table

CORPUS = sorted(Path(__file__).with_name("fuzz").glob("corpus/*.json"))


@pytest.mark.slow
@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_what_was_found_once_is_not_found_again(path: Path, tmp_path: Path) -> None:
    assert look(Case.from_json(path.read_text()), tmp_path)


@pytest.mark.full(every=3)
@pytest.mark.slow
@pytest.mark.parametrize("name", valid_files())
def test_the_files_that_are_spoiled_are_valid(name: str, tmp_path: Path) -> None:
    look(Case("read", {name: valid_files()[name]}), tmp_path)
    path = tmp_path / name
    path.write_bytes(valid_files()[name])
    assert read_table(path).n_rows == N_ROWS


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_some_cases_of_each_target(target: str, tmp_path: Path) -> None:
    said = set()
    for seed in range(8):
        folder = tmp_path / str(seed)
        folder.mkdir()
        said.add(look(TARGETS[target][0](Random(f"test {seed}")), folder))
    assert len(said) > 4  # answers and complaints, of all sorts


@pytest.mark.slow
def test_a_case_is_written_as_it_is_read() -> None:
    for target, (make, _) in TARGETS.items():
        case = make(Random(f"{target} {sys.maxsize}"))
        assert Case.from_json(case.to_json()) == case
