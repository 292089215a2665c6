"""Segments of a table in which another rule holds: whether they are named, and whether anything else raises the alarm.

**segments**: tables of 500 to 20,000 rows with a rule of two or three columns, 5 to 40 % wrong labels of several kinds,
and a segment of 3 to 20 % of the rows under another rule: a range or a tail of a column, days, a level, weekdays, a
month, a pair of levels, a range of a level, a level or a tail of a column that the rule does not use. Counted are exit
statuses, the precision of the wrong rows (a row under the other rule is right), and how often the segment is named:
with four fifths of its rows, and no more than a quarter as many others. Tables whose segment is smaller than the scan
can see (:meth:`massart.certificate.SegmentScan.fewest`) are kept apart.

**alarms**: tables whose errors do not depend on the columns. **uneven**: errors do, but with a probability of at most
one half everywhere: 50 % in a third of the rows and 10 % elsewhere, a rate that rises along a column, rates by level.
**time**: the scan of 1,000,000 rows and 20 columns, compared with ``np.argsort`` of these.

    python benchmarks/segments.py --seed 1 [--small] [--only segments|alarms|uneven|time] [--terms columns|auto]
"""

# ruff: noqa: D103 (what is made is named)

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from massart import audit_table
from massart.audit import Contract
from massart.certificate import SegmentScan

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]


def columns(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Columns of which some are in the rule (kg, km, qty), and others are not."""
    first = pd.Timestamp("2023-01-02")
    return pd.DataFrame(
        {
            "kg": np.round(rng.gamma(2.0, 5.0, n), 2),
            "km": rng.integers(1, 400, n),
            "qty": rng.integers(1, 60, n),
            "age": np.round(rng.uniform(18, 80, n), 1),
            "day": first + pd.to_timedelta(rng.integers(0, 700, n), "D"),
            "zone": rng.choice(list("ABCDEF"), n),
            "tier": rng.choice(list("uvwx"), n),
            "branch": rng.choice([f"b{k}" for k in range(15)], n, p=rng.dirichlet(np.full(15, 4.0))),
        }
    )


def spoilt(rng: np.random.Generator, right: Floats, wrong: Mask) -> Floats:
    """Replace the labels of wrong rows in one of several ways, none of which is right by accident."""
    ways: list[Callable[[], Floats]] = [
        lambda: right * rng.uniform(1.1, 3, len(right)),
        lambda: right + rng.choice([-1, 1], len(right)) * rng.integers(1, 400, len(right)) / 4,
        lambda: right * rng.choice([10.0, 0.1], len(right)),
        lambda: rng.permutation(right) + 0.01,
        lambda: right + rng.choice([5.0, 20.0, 33.3], len(right)),
    ]
    given = np.round(ways[rng.integers(len(ways))](), 2)
    given = np.where(given == right, right + 1, given)
    return np.where(wrong, given, right)


def priced(rng: np.random.Generator, frame: pd.DataFrame) -> Floats:
    """Return the labels of a rule of two or three columns, in cents."""
    numbers = rng.integers(20, 500, 4) / 100
    found = numbers[0] * frame.kg + numbers[1] * frame.km + numbers[3]
    return np.round(np.asarray(found + rng.integers(2) * numbers[2] * frame.qty, dtype=float), 2)


def window(rng: np.random.Generator, values: pd.Series, share: float) -> Mask:
    """Return the rows in a range of a column that has about this share of them."""
    low = rng.uniform(0.02, 0.98 - share)
    first, last = np.quantile(values, [low, low + share])
    return np.asarray((values >= first) & (values <= last))


def tail(rng: np.random.Generator, values: pd.Series, share: float) -> Mask:
    if rng.integers(2):
        return np.asarray(values >= np.quantile(values, 1 - share))
    return np.asarray(values <= np.quantile(values, share))


def level(rng: np.random.Generator, codes: pd.Series, share: float) -> Mask:
    """Return the rows of the level whose share is the nearest."""
    shares = codes.value_counts(normalize=True)
    return np.asarray(codes == (shares - share).abs().idxmin())


def weekdays(rng: np.random.Generator, frame: pd.DataFrame, share: float) -> Mask:
    first = rng.integers(0, 7)
    return np.asarray(frame.day.dt.day_of_week == first)


def month(rng: np.random.Generator, frame: pd.DataFrame, share: float) -> Mask:
    return np.asarray(frame.day.dt.month == rng.integers(1, 13))


def pair(rng: np.random.Generator, frame: pd.DataFrame, share: float) -> Mask:
    return np.asarray((frame.zone == rng.choice(list("ABCDEF"))) & (frame.tier == rng.choice(list("uvwx"))))


def range_of_level(rng: np.random.Generator, frame: pd.DataFrame, share: float) -> Mask:
    there = frame.tier == rng.choice(list("uvwx"))
    return np.asarray(there & (frame.kg >= np.quantile(frame.kg[there], 1 - min(4 * share, 0.9))))


KINDS: dict[str, Callable[[np.random.Generator, pd.DataFrame, float], Mask]] = {
    "range": lambda rng, frame, share: window(rng, frame.kg, share),
    "tail": lambda rng, frame, share: tail(rng, frame.kg, share),
    "level": lambda rng, frame, share: level(rng, frame.branch, share),
    "weekday": weekdays,
    "month": month,
    "pair of levels": pair,
    "range of a level": range_of_level,
    "days": lambda rng, frame, share: window(rng, frame.day, share),
    "unused number": lambda rng, frame, share: tail(rng, frame.age, share),
    "integers": lambda rng, frame, share: window(rng, frame.km, share),
}


@dataclass(frozen=True)
class Outcome:
    """What was said of one table."""

    kind: str
    n: int
    n_segment: int
    is_visible: bool
    status: int
    precision: float
    is_named: bool
    said: str

    @property
    def is_harmful(self) -> bool:
        """Whether right rows are called wrong, and the exit status is 0."""
        return self.status == 0 and self.precision < 0.97


def planted(rng: np.random.Generator, kind: str, terms: str, most: int) -> Outcome:
    """Make a table with a segment, fit it, and compare."""
    while True:
        n, share = round(float(np.exp(rng.uniform(np.log(500), np.log(most))))), rng.uniform(0.03, 0.2)
        frame = columns(rng, n)
        there = KINDS[kind](rng, frame, share)
        if 0.03 <= there.mean() <= 0.2:
            break
    wrong = ~there & (rng.random(n) < rng.uniform(0.05, 0.4))
    first, second = priced(rng, frame), priced(rng, frame) + 7.77
    frame["price"] = np.where(there, np.where(first == second, second + 1, second), spoilt(rng, first, wrong))
    audit = audit_table(frame, "price", terms=terms)
    apart, accused = audit.apart, audit.segment is not None and audit.segment.is_accused
    numbers = [frame[name].to_numpy(float) for name in ("kg", "km", "qty", "age", "day", "day", "day", "day")]
    scan = SegmentScan(numbers, [codes_of(frame[name]) for name in LEVELS])
    visible = scan.fewest(int((wrong | there).sum())) <= there.sum()
    named = accused and (apart & there).sum() >= 0.8 * there.sum() and (apart & ~there).sum() <= there.sum() / 4
    called = audit.wrong
    return Outcome(
        kind,
        n,
        int(there.sum()),
        bool(visible),
        Contract().outcome(audit).status,
        float((called & wrong).sum() / max(called.sum(), 1)),
        bool(named),
        f"{audit.certificate.verdict.name} {'' if audit.segment is None else audit.segment.where}",
    )


LEVELS = ("zone", "tier", "branch")


def codes_of(values: pd.Series) -> NDArray[np.intp]:
    return np.unique(values, return_inverse=True)[1]


def segments(seed: int, tables: int, terms: str, most: int) -> None:
    rng = np.random.default_rng(seed)
    found = []
    for k in range(tables):
        outcome = planted(rng, [*KINDS][k % len(KINDS)], terms, most)
        found.append(outcome)
        if outcome.is_harmful or not outcome.is_named:
            print(f"  {k}: {outcome}")
    for name, some in (
        ("all", found),
        ("large enough to be seen", [one for one in found if one.is_visible]),
        ("too small to be seen", [one for one in found if not one.is_visible]),
    ):
        statuses = Counter(one.status for one in some)
        named = sum(one.is_named for one in some)
        safe = sum(one.is_named or (one.status == 0 and not one.is_harmful) for one in some)
        harmful = sum(one.is_harmful for one in some)
        print(
            f"segments, {name}: {len(some)} tables; named {named}; named, or part of the rule {safe}; "
            f"harmful {harmful}; exit statuses {dict(sorted(statuses.items()))}"
        )
    by_kind = {kind: [one.is_named for one in found if one.kind == kind] for kind in KINDS}
    print("named by kind:", ", ".join(f"{kind} {sum(ok)}/{len(ok)}" for kind, ok in by_kind.items()))


def rates(rng: np.random.Generator, frame: pd.DataFrame, place: int) -> Floats:
    """Return probabilities of a wrong label that depend on the columns, at most one half each."""
    n = len(frame)
    if place % 3 == 0:
        return np.where(window(rng, frame.kg, 1 / 3), 0.5, 0.1)
    if place % 3 == 1:
        return 0.05 + 0.4 * frame.age.rank(pct=True).to_numpy()
    return rng.uniform(0.02, 0.5, 15)[codes_of(frame.branch)] if n else np.zeros(n)


def alarms(seed: int, tables: int, *, even: bool) -> None:
    rng, said = np.random.default_rng(seed), Counter[str]()
    for place in range(tables):
        frame = columns(rng, round(float(np.exp(rng.uniform(np.log(300), np.log(5_000))))))
        p = np.full(len(frame), rng.uniform(0.02, 0.45)) if even else rates(rng, frame, place)
        right = priced(rng, frame)
        frame["price"] = spoilt(rng, right, rng.random(len(frame)) < p)
        audit = audit_table(frame, "price", terms="columns")
        breach = "none" if audit.segment is None else audit.segment.breach.name
        said[breach] += 1
        if breach in ("MASSART", "MOSTLY") or (even and breach != "none"):
            print(f"  {place}: {len(frame)} rows, {audit.certificate.verdict.name}, {breach}: {audit.segment.where}")
        if place % 100 == 99:
            print(f"  {place + 1} tables: {dict(said)}", flush=True)
    print(f"{'alarms' if even else 'uneven'}: {tables} tables: {dict(said)}")


def timed(seed: int, n: int, d: int, repeats: int = 3) -> None:
    rng = np.random.default_rng(seed)
    values = [rng.normal(size=n) for _ in range(d)]
    for share in (0.05, 0.2, 0.4):
        wrong, ratios = rng.random(n) < share, []
        for _ in range(repeats):
            start = time.process_time()
            for column in values:
                np.argsort(column)
            middle = time.process_time()
            SegmentScan(values).worst(wrong)
            ratios.append((time.process_time() - middle) / (middle - start))
        print(f"time: {n:,} rows, {d} columns, {share:.0%} wrong: {np.median(ratios):.2f} times argsort of the columns")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--only", choices=["segments", "alarms", "uneven", "time"])
    parser.add_argument("--terms", choices=["columns", "auto"], default="columns")
    parser.add_argument("--tables", type=int)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    n_segments, n_alarms = asked.tables or (30 if asked.small else 300), asked.tables or (60 if asked.small else 1_000)
    parts: dict[str, Callable[[], None]] = {
        "segments": partial(segments, asked.seed, n_segments, asked.terms, 4_000 if asked.small else 20_000),
        "alarms": partial(alarms, asked.seed + 1, n_alarms, even=True),
        "uneven": partial(alarms, asked.seed + 2, n_alarms, even=False),
        "time": partial(timed, asked.seed + 3, 100_000 if asked.small else 1_000_000, 20),
    }
    for name, part in parts.items():
        if asked.only in (None, name):
            start = time.process_time()
            part()
            print(f"  ({time.process_time() - start:.0f} s of processor time)", flush=True)


if __name__ == "__main__":
    main()
