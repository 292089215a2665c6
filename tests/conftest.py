"""One BLAS thread for each test worker, and the Hypothesis profiles."""

from __future__ import annotations

import os

# Workers run side by side, and BLAS reads these only once: when numpy is first imported.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

from hypothesis import settings

# Solvers take their time on a busy machine, so no example has a deadline. CI draws the same examples every time.
settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")
