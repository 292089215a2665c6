"""
A tariff with tiers
===================

The income tax of the United States for 2023, single filers, below 95,375 dollars: 10 % up to 11,000, 12 % up to
44,725, 22 % beyond. The schedule is real; the 3,000 incomes are drawn, and three taxes of ten are wrong: ten times too
large, or a flat 15 %. massart knows neither the rates nor where the brackets begin.
"""

import matplotlib.pyplot as plt
import numpy as np

from massart import audit_table

rng = np.random.default_rng(0)
income = rng.integers(500, 95_375, 3_000)
tax = 0.10 * income + 0.02 * np.maximum(0, income - 11_000) + 0.10 * np.maximum(0, income - 44_725)
tax = np.round(tax, 2)
wrong = rng.random(len(tax)) < 0.3
tax[wrong] = np.where(rng.random(wrong.sum()) < 0.5, tax[wrong] * 10, np.round(0.15 * income[wrong], 2))

audit = audit_table({"income": income, "tax": tax}, "tax", budget=120)
print(audit.formula)
print(audit.certificate.verdict.name, audit.n_wrong, "wrong rows,", int(wrong.sum()), "planted")
for kind in audit.kinds.kinds:
    print(kind.rows, kind.label)

# %%
# The rows by what they follow (some of the wrong ones lie above the picture):

follows = ~np.isin(np.arange(1, len(tax) + 1), np.asarray(audit.wrong_rows()["row"]))
figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
axes.plot(income[follows], tax[follows], ".", ms=2, label="follow the schedule")
axes.plot(income[~follows], tax[~follows], "x", ms=3, color="tab:orange", label="do not")
axes.set(xlabel="income", ylabel="tax", ylim=(0, 30_000))
_ = axes.legend(frameon=False)

# %%
# **What is certain.** Thresholds were chosen with the help of labels, so only rows that took no part in the choice can
# confirm the rule; they do. Of the flat 15 % only some rows are named: those below 11,000 dollars, where it is one and
# a half times the right tax.
