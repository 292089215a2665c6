"""One BLAS thread for each test worker, and the Hypothesis profiles."""

from __future__ import annotations

import os
from collections import Counter

# Workers run side by side, and BLAS reads these only once: when numpy is first imported.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import pytest
from hypothesis import settings

# Solvers take their time on a busy machine, so no example has a deadline. CI draws the same few examples every time.
settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True, max_examples=40)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what is marked full, but for the `first` cases or one of `every` few, unless MASSART_FULL is set."""
    if os.environ.get("MASSART_FULL"):
        return
    met: Counter[str] = Counter()
    for item in items:
        mark = item.get_closest_marker("full")
        if mark is None:
            continue
        name = item.nodeid.split("[")[0]
        place, met[name] = met[name], met[name] + 1
        first, every = mark.kwargs.get("first", 0), mark.kwargs.get("every")
        if place >= first and (every is None or place % every):
            item.add_marker(pytest.mark.skip(reason="runs with MASSART_FULL=1"))
