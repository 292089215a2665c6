"""
A ledger audit
==============

8,000 jobs of a repair service, as an office would export them; about a fifth of the totals are wrong, in four ways,
and some clerks make more mistakes than others. (It is the ledger of ``massart demo``: its rows are drawn, since real
ledgers are nobody's to publish.) Nobody says that hours are multiplied by rates, or that items are cheaper from the
eleventh on.
"""

import matplotlib.pyplot as plt
import numpy as np

from massart import audit_table
from massart.demo import make_ledger

ledger = make_ledger(np.random.default_rng(0))
audit = audit_table(ledger, "total", id="invoice", group="clerk", budget=120)
print(audit.formula)
print(f"{audit.certificate.verdict.name}: {audit.n_wrong:,} of {audit.n_total:,} rows are wrong")

# %%
# What happened, and at whose desk: the same four errors, with very different shares.

rows = audit.rows()
clerk, kind = np.asarray(rows["clerk"]), np.asarray(rows["kind"])
names = sorted(set(clerk))
figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
left = np.zeros(len(names))
for label in [kind.label for kind in audit.kinds.kinds]:
    share = np.array([np.mean(kind[clerk == name] == label) for name in names]) * 100
    axes.barh(names, share, left=left, label=label)
    left += share
axes.set_xlabel("% of the clerk's rows")
_ = axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))

# %%
# **What is certain.** CONFIRMED: with 99.9 % confidence either this is the price list (among formulas in these terms),
# or some total was wrong with a probability above one half, or errors in different rows, or their wrong values, depend
# on each other. What each clerk got wrong is then a matter of counting.
