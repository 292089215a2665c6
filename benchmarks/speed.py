"""What massart costs beside a weaker method, an import, or one product with the table: every goal in one run.

    python benchmarks/speed.py                            # all of it, half an hour
    python benchmarks/speed.py --only small --only start  # some parts
    python benchmarks/speed.py --small                    # few and small tables: two minutes, and no number of record
    PYTHONPATH=elsewhere/src python benchmarks/speed.py   # another state of the source, on the same tables

All times are those of the processor, on one thread. Both sides of a ratio run in turn in one process, or in processes
that start in turn. A missed goal is printed, not punished: the exit status is 1 only when an answer is wrong.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

# Sets the number of BLAS threads, so it comes before anything that loads numpy.
import harness  # isort: skip

import numpy as np
from numpy.typing import NDArray

import noisy_families
from drug_discovery import drug_discovery

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Line:
    """What was measured, the number, the goal that it should not exceed, and how it came about."""

    what: str
    value: float | None
    goal: float | None
    unit: str
    note: str = ""
    wrong: bool = False

    def cells(self) -> tuple[str, ...]:
        """Return the line as text."""
        met = "" if self.value is None or self.goal is None else "pass" if self.value <= self.goal else "MISS"
        value = "-" if self.value is None else f"{self.value:.3g} {self.unit}"
        goal = "" if self.goal is None else f"{self.goal:g} {self.unit}"
        return self.what, value, goal, "WRONG" if self.wrong else met, self.note


@dataclass(frozen=True, slots=True)
class Options:
    """Which tables are made, and how many."""

    seed: int
    small: bool

    def rng(self, *more: int) -> np.random.Generator:
        """Return the generator of one table."""
        return np.random.default_rng((self.seed, *more))


# Tables.


def gaussian(rng: np.random.Generator, n: int, d: int) -> FloatArray:
    """Return normal columns."""
    return rng.standard_normal((n, d))


def mixed(rng: np.random.Generator, n: int, d: int) -> FloatArray:
    """Return log-normal amounts, counts, and columns of 0 and 1, none of them rare."""
    makers = (
        lambda: np.round(rng.lognormal(2, 0.7, n), 2),
        lambda: rng.integers(1, 20, n).astype(float),
        lambda: (rng.random(n) < 0.6).astype(float),
        lambda: rng.standard_normal(n),
    )
    return np.column_stack([makers[j % len(makers)]() for j in range(d)])


def rare(rng: np.random.Generator, n: int, d: int) -> FloatArray:
    """Return mixed columns, the last of which a twentieth of the rows have."""
    X = mixed(rng, n, d)
    X[:, -1] = rng.random(n) < max(0.05, 12 / n)
    return X


COLUMNS = (gaussian, mixed)


def exact_table(
    rng: np.random.Generator, X: FloatArray, share: float, way: int = 0
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return labels by a rule of short numbers, of which a share is wrong, its coefficients, and the wrong rows."""
    n, d = X.shape
    w = np.round(rng.standard_normal(d) * 8) / 4 + 0.125
    wrong = np.zeros(n, dtype=np.bool_)
    wrong[rng.permutation(n)[: round(share * n)]] = True
    clean = X @ w + 2.5
    size = float(np.abs(clean - np.median(clean)).mean()) + 1.0
    # Anywhere; by another rule; a little off and to one side.
    off = (size * rng.standard_normal(n) * 3, X @ rng.standard_normal(d), size * rng.exponential(0.3, n))[way % 3]
    return np.where(wrong, clean + off, clean), w, wrong


# Clocks.


def seconds_of(function: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor time of a call, and what it gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        answer = function()
        return time.process_time() - start, answer


def in_turn(repeats: int, *functions: Callable[[], Any]) -> tuple[list[float], list[Any]]:
    """Return the median processor time of each function, and its last answer; the first round does not count."""
    rounds = [[seconds_of(function) for function in functions] for _ in range(repeats + 1)]
    counted = rounds[1:] if repeats else rounds
    times = [statistics.median(one[k][0] for one in counted) for k in range(len(functions))]
    return times, [answer for _, answer in rounds[-1]]


def of_children(commands: dict[str, list[str]], repeats: int) -> dict[str, float]:
    """Return the median processor time of commands, each in a fresh process, that run in turn."""
    spent: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(repeats + 1):
        for name, command in commands.items():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run(command, capture_output=True, text=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            if done.returncode not in (0, 1):
                raise RuntimeError(f"{command}: {done.stderr}")
            spent[name].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return {name: statistics.median(times[1:]) for name, times in spent.items()}


def fitted(X: FloatArray, y: FloatArray, **given: Any) -> Any:
    """Return a fitted estimator."""
    from massart import MassartRegressor

    return MassartRegressor(random_state=0, **given).fit(X, y)


# Parts.


def small(options: Options) -> Iterator[Line]:
    """Tables of 60 to 4,000 rows against HuberRegressor, verdict included."""
    from sklearn.linear_model import HuberRegressor

    ratios: list[float] = []
    n_tables, without = (2, 0) if options.small else (17, 0)
    for k, (n, d) in enumerate(((60, 4), (250, 9), (1000, 10), (4000, 15))):
        for share in (0.1, 0.25, 0.4):
            cell: list[float] = []
            for i in range(n_tables):
                rng = options.rng(1, k, round(100 * share), i)
                X = COLUMNS[i % 2](rng, n, d)
                y, w, _ = exact_table(rng, X, share, i // 2)
                peer = HuberRegressor(max_iter=1000)
                (ours, theirs), (found, _) = in_turn(3, partial(fitted, X, y), partial(peer.fit, X, y))
                cell.append(ours / theirs)
                without += not np.allclose(found.coef_, w)
            ratios += cell
            note = f"largest {max(cell):.1f}, ours {ours * 1e3:.0f} ms (the last of {n_tables})"
            yield Line(f"{n:,} x {d}, {share:.0%} wrong / Huber", statistics.median(cell), None, "x", note)
    note = f"{len(ratios)} tables, {without} with another rule than the planted one"
    yield Line("small tables / Huber, median", statistics.median(ratios), 1.5, "x", note)
    yield Line("small tables / Huber, 95 %", float(np.quantile(ratios, 0.95)), 4.0, "x", note)
    cell = []
    for i in range(n_tables):
        rng = options.rng(2, i)
        X = rare(rng, 250, 9)
        y, _, _ = exact_table(rng, X, 0.4, i)
        peer = HuberRegressor(max_iter=1000)
        (ours, theirs), _ = in_turn(2, partial(fitted, X, y), partial(peer.fit, X, y))
        cell.append(ours / theirs)
    yield Line("250 x 9, 40 %, a rare column / Huber", statistics.median(cell), None, "x", f"largest {max(cell):.1f}")


def large(options: Options) -> Iterator[Line]:
    """Tables of millions of rows, CONFIRMED, against one X @ w."""
    sizes = ((60_000, 50), (240_000, 20)) if options.small else ((1_000_000, 50), (4_000_000, 20))
    for n, d in sizes:
        rng = options.rng(3, d)
        X = gaussian(rng, n, d)
        for share, goal in ((0.1, 4.0), (0.3, 4.0), (0.4, 6.0)):
            y, w, wrong = exact_table(rng, X, share)
            (ours, product), (found, _) = in_turn(3, partial(fitted, X, y), partial(np.matmul, X, w))
            verdict = found.certificate_.verdict.name
            right = verdict == "CONFIRMED" and np.array_equal(found.inlier_mask_, ~wrong)
            note = f"{verdict}, {ours:.2f} s, X @ w {product * 1e3:.0f} ms"
            yield Line(f"{n:,} x {d}, {share:.0%} wrong / X @ w", ours / product, goal, "x", note, not right)


def wide(options: Options) -> Iterator[Line]:
    """Tables of many columns against LinearRegression."""
    from sklearn.linear_model import LinearRegression

    sizes = ((200_000, 200, 0.3), (50_000, 500, 0.5), (20_000, 1_000, 1.2))
    for n, d, goal in ((n // 10, d // 4, goal) for n, d, goal in sizes) if options.small else sizes:
        rng = options.rng(4, d)
        X = gaussian(rng, n, d)
        y, w, _ = exact_table(rng, X, 0.2)
        peer = LinearRegression()
        (ours, theirs), (found, _) = in_turn(2, partial(fitted, X, y), partial(peer.fit, X, y))
        note = f"{found.certificate_.verdict.name}, {ours:.2f} s against {theirs:.2f} s"
        yield Line(f"{n:,} x {d}, 20 % wrong / LinearRegression", ours / theirs, goal, "x", note, not _is(found, w))


def noisy(options: Options) -> Iterator[Line]:
    """Labels that carry noise, by the default options."""
    for share in (0.0, 0.2):
        rng = options.rng(5, round(100 * share))
        X = gaussian(rng, 2_000, 10)
        y, *_ = exact_table(rng, X, share)
        y = y + rng.standard_normal(2_000)
        (ours,), (found,) = in_turn(1 if options.small else 5, partial(fitted, X, y))
        yield Line(f"noisy 2,000 x 10, {share:.0%} wrong", ours, 0.25, "s", found.certificate_.verdict.name)
    kinds = [cell for cell in noisy_families.SIMULATION if cell.n <= 1_000 and cell.kind != "good"]
    times, verdicts = [], []
    for i in range(4 if options.small else 40):
        cell = kinds[7 * i % len(kinds)]
        table = noisy_families.make(cell, options.seed, i)
        (ours,), (found,) = in_turn(1, partial(fitted, table.X, table.y))
        times.append(ours)
        verdicts.append(found.certificate_.verdict.name)
    note = f"largest {max(times) * 1e3:.0f} ms; {verdicts.count('NOISY')} of {len(verdicts)} NOISY"
    yield Line("noisy tables of mixed kinds, median", statistics.median(times) * 1e3, 150, "ms", note)


def chance(options: Options) -> Iterator[Line]:
    """Exact tables with 45 % wrong that are called noisy."""
    n_tables, called, lost, spent = 60 if options.small else 3_000, 0, 0, 0.0
    for i in range(n_tables):
        rng = options.rng(6, i)
        n, d = int(rng.integers(80, 600)), int(rng.integers(2, 12))
        X = COLUMNS[i % 2](rng, n, min(d, n // 20))
        y, w, _ = exact_table(rng, X, 0.45, i // 2)
        seconds, found = seconds_of(partial(fitted, X, y))
        called += found.certificate_.verdict.name == "NOISY"
        lost += not _is(found, w)
        spent += seconds
    note = f"of {n_tables:,}; {lost} with another rule than the planted one; {spent / n_tables * 1e3:.0f} ms a table"
    yield Line("exact tables, 45 % wrong, called noisy", called, 0, "tables", note)


def drug(options: Options) -> Iterator[Line]:
    """Fit the drug-discovery set, by default and with noisy inliers."""
    limit = 60 if options.small else 150
    for inliers, goal in (("auto", 12.0), ("noisy", 5.0)):
        for percent in (40,) if options.small else (20, 30, 40):
            what = f"drug-discovery set, {inliers}, {percent} % wrong"
            command = [sys.executable, __file__, "--drug", inliers, str(percent), "--seed", str(options.seed)]
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=limit)
            except subprocess.TimeoutExpired:
                yield Line(what, None, goal, "s", f"not finished after {limit} s")
                continue
            seconds, share, verdict = done.stdout.split()
            wrong = float(share) < 0.905 - 0.01
            yield Line(what, float(seconds), goal, "s", f"{verdict}, {share} of the test rows within 2", wrong)


def one_drug_fit(inliers: str, percent: int, seed: int) -> str:
    """Return the processor time of one fit, the share of the test rows within 2, and the verdict."""
    data = drug_discovery()
    rng = np.random.default_rng((seed, percent))
    y = np.where(rng.random(len(data.y)) < percent / 100, -100 * data.y, data.y)
    seconds, found = seconds_of(partial(fitted, data.X, y, fit_intercept=False, inliers=inliers))
    share = float((np.abs(found.predict(data.X_test) - data.y_test) <= 2).mean())
    return f"{seconds:.2f} {share:.3f} {found.certificate_.verdict.name}"


def command(options: Options) -> Iterator[Line]:
    """Run the command line, start of the interpreter included."""
    repeats = 1 if options.small else 3
    with tempfile.TemporaryDirectory() as folder:
        rng = options.rng(7)
        X = np.column_stack([np.round(rng.lognormal(3, 0.6, (1_500, 4)), 2), rng.integers(0, 30, (1_500, 3))])
        rule = np.round(1.2 * X[:, 0] + 3.5 * X[:, 4] + 0.08 * X[:, 1] + 12, 2)
        y = np.where(rng.random(1_500) < 0.2, np.round(rule * rng.uniform(0.5, 2, 1_500), 2), rule)
        none = np.round(rng.lognormal(4, 0.6, 1_500), 2)
        files = {name: Path(folder) / f"{name}.csv" for name in ("rule", "none")}
        for (_, path), target in zip(files.items(), (y, none), strict=True):
            names = ",".join([*(f"x{j}" for j in range(7)), "y"])
            np.savetxt(path, np.column_stack([X, target]), fmt="%.10g", delimiter=",", header=names, comments="")
        program = [sys.executable, "-m", "massart"]
        commands = {name: [*program, "fit", str(path), "--target", "y"] for name, path in files.items()}
        commands |= {"demo": [*program, "demo", "--out", folder], "help": [*program, "--help"]}
        times = of_children(commands, repeats)
    for (name, seconds), goal in zip(times.items(), (1.3, 3.0, 6.0, None), strict=True):
        what = {"rule": "massart fit, 1,500 x 7, a rule", "none": "massart fit, 1,500 x 7, none"}
        yield Line(what.get(name, f"massart {name}"), seconds, goal, "s")


def start(options: Options) -> Iterator[Line]:
    """Import and first fit against importing scikit-learn's linear models."""
    ours = (
        "import numpy as np; from massart import MassartRegressor; r = np.random.default_rng(0); "
        "X = r.standard_normal((100, 3)); y = X @ [1, 2, 3.0]; y[:20] += 1; MassartRegressor().fit(X, y)"
    )
    programs = {
        "peer": "import sklearn.linear_model",
        "first fit": ours,
        "import": "from massart import MassartRegressor",
        "fit": ours + "; import time; s = time.process_time(); MassartRegressor().fit(X, y)",
    }
    repeats = 3 if options.small else 11
    times = of_children({name: [sys.executable, "-c", text] for name, text in programs.items()}, repeats)
    note = f"sklearn.linear_model {times['peer']:.2f} s, MassartRegressor {times['import']:.2f} s, with a fit "
    note += f"{times['first fit']:.2f} s"
    yield Line("import and first fit / import sklearn.linear_model", times["first fit"] / times["peer"], 1.2, "x", note)


PARTS = (small, large, wide, noisy, chance, drug, command, start)


def _is(found: Any, w: FloatArray) -> bool:
    return bool(np.allclose(found.coef_, w))


def main(arguments: list[str] | None = None) -> int:
    """Print the table; return 1 if an answer is wrong."""
    names = [part.__name__ for part in PARTS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="PART", action="append", choices=names, help=f"one of: {', '.join(names)}")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--drug", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.drug:
        print(one_drug_fit(chosen.drug[0], int(chosen.drug[1]), chosen.seed))
        return 0
    options, lines = Options(chosen.seed, chosen.small), list[Line]()
    for part in PARTS:
        if chosen.only is not None and part.__name__ not in chosen.only:
            continue
        try:
            for line in part(options):
                lines.append(replace(line, goal=None) if chosen.small else line)
                print(*lines[-1].cells(), sep="  ", file=sys.stderr, flush=True)
        except harness.MissingPeer as reason:
            lines.append(Line(part.__name__, None, None, "", f"skipped: {reason}"))
    table = [("what", "measured", "goal", "", "note"), *(line.cells() for line in lines)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    print("\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in table))
    return 1 if any(line.wrong for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
