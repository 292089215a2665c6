"""Progress is for people: on a terminal there is some, elsewhere there is none."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer", reason="typer is not installed: the command line is optional")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: the command line reads tables with it")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 99, (20_000, 6))
    lines = [",".join(map(str, row)) for row in np.column_stack([X, X @ np.arange(1, 7) + 3])]
    path = tmp_path / "[red]table.csv"
    path.write_text("\n".join(["a,b,c,d,e,f,y", *lines]) + "\n")
    return path


def command(table: Path) -> list[str]:
    return [sys.executable, "-m", "massart", "fit", str(table), "--target", "y"]


@pytest.mark.slow
def test_a_pipe_gets_results_only(table: Path) -> None:
    done = subprocess.run(command(table), capture_output=True, text=True, check=True)
    assert done.stdout.startswith("y = a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 3\n")
    assert done.stderr == ""


@pytest.mark.slow
def test_a_terminal_gets_a_bar_with_the_name_as_it_is(table: Path) -> None:
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(command(table), stdout=subprocess.DEVNULL, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # Linux says so when the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert process.wait() == 0
    assert b"reading [red]table.csv" in shown
    assert b"Fitting" in shown
