"""Classic data sets of robust regression, and the rows that the literature calls outlying in them.

R exports the sets (noisy_peers.R has their formulas), so that none is part of this repository. A method flags a row
whose residual is above 2.5 of its own scales. The best peer of a set is the one whose flagged rows are nearest to the
literature's: all of those that must be flagged, then the fewest others; KS2014 where that does not decide or nothing is
known. Fits differ by the root mean square over the rows that the best peer does not flag, in scales of KS2014 (NaN
where that is 0). The rows are written down from memory of the books that are named, and were not looked up again.
"""

from __future__ import annotations

import csv
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

# Sets the number of BLAS threads, so it comes before anything that loads numpy.
import harness  # noqa: F401  # isort: skip

import numpy as np

import noisy_methods
from noisy_families import FloatArray, with_ones
from noisy_methods import Fit
from rules import aligned

CUTOFF = 2.5
NEAR = 0.3
"""Scales of KS2014 within which massart is wanted of the best peer."""


@dataclass(frozen=True, slots=True)
class Known:
    """Rows (from 1) that the literature calls outlying, those it disagrees on, and where this is said."""

    must: tuple[int, ...]
    may: tuple[int, ...] = ()
    source: str = "Rousseeuw & Leroy 1987"


KNOWN = {
    "aircraft": Known((22,), (16,)),
    "Animals2": Known((6, 16, 26), source="Rousseeuw & Leroy 1987; the dinosaurs"),
    "coleman": Known((3, 18), (17,)),
    "delivery": Known((9,), (1, 20, 22, 24), "Montgomery & Peck 1982"),
    "education": Known((50,), (), "Chatterjee & Price 1977; Rousseeuw & Leroy 1987; Alaska"),
    "forbes": Known((12,), (), "Weisberg 1980"),
    "hbk": Known(tuple(range(1, 11))),
    "hills": Known((7, 18), (11, 33, 35), "Atkinson 1986"),
    "kootenay": Known((4,)),
    "lactic": Known(()),
    "phosphor": Known((17,), (1, 10)),
    "pilot": Known(()),
    "salinity": Known((16,), (3, 5, 8, 15, 17, 23, 24), "Ruppert & Carroll 1980; Rousseeuw & Leroy 1987"),
    "stackloss": Known((1, 3, 4, 21), (2,)),
    "starsCYG": Known((11, 20, 30, 34), (7, 9, 14)),
    "telef": Known(tuple(range(15, 21)), (14, 21)),
    "wood": Known((4, 6, 8, 19)),
}


def report() -> str:
    """Return a line for each set, and what they sum up to."""
    from massart import MassartRegressor

    sets = _exported()
    lines = [
        [
            "set",
            "n",
            "d",
            "best peer",
            "from it",
            "from KS2014",
            "scale/KS2014's",
            "missed",
            "by it",
            "not known",
            "auto",
        ]
    ]
    far, missing, none = [], [], []
    for (name, (X, y)), theirs in zip(
        sets.items(), noisy_methods.by_r("robust", list(sets.values()), limit=5), strict=True
    ):
        known = KNOWN.get(name)
        ours = noisy_methods.robust(X, y)
        flags = {peer: flagged(fit, X, y) for peer, fit in theirs.items() if np.isfinite(fit.coef).all()}
        best = min(flags, key=lambda peer: (*_disagreement(flags[peer], known), peer != "KS2014"))
        kept = ~np.isin(np.arange(1, len(y) + 1), list(flags[best]))
        unit = theirs["KS2014"].scale or np.nan  # 0 where more than half of the labels tie: then nothing is comparable
        from_best, from_ks = (
            float(np.sqrt(np.mean((with_ones(X[kept]) @ (ours.coef - theirs[peer].coef)) ** 2))) / unit
            for peer in (best, "KS2014")
        )
        rows = flagged(ours, X, y)
        missed = sorted(set(known.must) - rows) if known else []
        others = sorted(rows - set(known.must + known.may)) if known else sorted(rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            verdict = MassartRegressor(random_state=0).fit(X, y).certificate_.verdict.name
        if from_best > NEAR:
            far.append(f"{name} {from_best:.2f}")
        if missed:
            missing.append(name)
        if verdict in ("NONE", "PLURALITY"):
            none.append(f"{name} {verdict}")
        # Where the literature is not known to us, what KS2014 flags stands beside.
        beside = "" if known else f" (KS2014 {_rows(sorted(flags.get('KS2014', ())))})"
        lines.append(
            [name, str(len(y)), str(X.shape[1]), best, f"{from_best:.2f}", f"{from_ks:.2f}", f"{ours.scale / unit:.2f}"]
            + [_rows(missed), _rows(sorted(set(known.must) - flags[best]) if known else []), _rows(others) + beside]
            + [verdict]
        )
    notes = [
        f"{len(sets)} sets. From: difference of fits in scales of KS2014, over rows that the best peer does not flag.",
        f"More than {NEAR} from the best peer: {len(far)}: {', '.join(far)}",
        f"Rows of the literature missed: {len(missing)} of {len(KNOWN)}: {', '.join(missing)}",
        f"No formula: {len(none)}: {', '.join(none)}",
    ]
    return "\n".join([aligned(lines), "", *notes])


def flagged(fit: Fit, X: FloatArray, y: FloatArray) -> set[int]:
    """Return the rows, from 1, whose residual is above the cutoff."""
    rounding = 1e-9 * float(np.abs(y).max())  # or rows that are met exactly are flagged where the scale is 0
    outlying = np.abs(y - with_ones(X) @ fit.coef) > CUTOFF * fit.scale + rounding
    return {int(row) + 1 for row in np.flatnonzero(outlying)}


def _disagreement(rows: set[int], known: Known | None) -> tuple[int, int]:
    return (0, 0) if known is None else (len(set(known.must) - rows), len(rows - set(known.must + known.may)))


def _rows(rows: list[int]) -> str:
    shown = ", ".join(map(str, rows[:6]))
    return f"{shown}, ... {len(rows)} in all" if len(rows) > 6 else shown or "-"


def _exported() -> dict[str, tuple[FloatArray, FloatArray]]:
    sets = {}
    with tempfile.TemporaryDirectory() as folder:
        noisy_methods.r_program("classic", folder)
        for path in sorted(Path(folder).glob("*.csv"), key=lambda path: path.stem.lower()):
            with path.open(newline="", encoding="utf-8") as file:
                numbers = np.array(list(csv.reader(file))[1:], dtype=np.float64)
            sets[path.stem] = np.ascontiguousarray(numbers[:, 1:]), numbers[:, 0].copy()
    return sets
