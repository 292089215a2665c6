"""
Fifty million rows
==================

A file of 50,000,000 rows and 21 columns (8.4 GB as numbers) is no example that a documentation runs, so this one shows a
committed log: ``python benchmarks/bench_large.py`` on 2 cores, 40 % of the labels wrong, next to one plain read of all
columns by pyarrow (medians of three runs; :doc:`/deployment` says how it was measured).
"""

import csv
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet

from massart import audit_table

folder = next(path / "results" for path in Path.cwd().parents if (path / "results").is_dir())
with (folder / "large.csv").open() as file:
    log = list(csv.DictReader(file))
rows = [int(line["rows"].replace(",", "")) for line in log]
fit, read, memory = (
    [float(line[name]) for line in log] for name in ("massart fit (s)", "one read (s)", "peak memory (MB)")
)
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
left.loglog(rows, fit, "o-", label="massart fit")
left.loglog(rows, read, "s--", color="0.5", label="one read by pyarrow")
left.set(xlabel="rows", ylabel="seconds")
left.legend(frameon=False)
right.semilogx(rows, memory, "o-")
_ = right.set(xlabel="rows", ylabel="peak memory (MB)", ylim=(0, 1_000))

# %%
# The same path, small: 200,000 rows in four Parquet files, read in blocks since they take more than the memory they are
# allowed.

with tempfile.TemporaryDirectory() as files:
    for month in range(4):
        rng = np.random.default_rng(month)
        kwh, meters = rng.integers(0, 900, 50_000), rng.integers(1, 5, 50_000)
        bill = np.round(0.31 * kwh + 4.5 * meters + 9.5, 2)
        bill[rng.random(50_000) < 0.4] *= 10
        table = pa.table({"kwh": kwh, "meters": meters, "bill": np.round(bill, 2)})
        pa.parquet.write_table(table, Path(files) / f"{month}.parquet")
    found = audit_table(files, "bill", terms="columns", max_memory=1_000_000)
print(found.formula)
print(f"{found.certificate.verdict.name}: {found.n_wrong:,} of {found.n_total:,} rows are wrong")
print(found.notices[0])

# %%
# **What is certain.** A sample proposes, all rows judge: the verdict is made of counts of all rows, wherever they lie.
