"""
A pipeline check
================

A rule that was found once is a contract for the tables that come later. Twelve months of invoices (drawn here); in
September somebody changes the export, and many invoices come without the charge for shipping.
"""

import matplotlib.pyplot as plt
import numpy as np

from massart import audit_table, check_table


def invoices(month: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(month)
    pieces, price = rng.integers(1, 40, 400), rng.integers(100, 9_900, 400) / 100
    total = np.round(1.19 * pieces * price + 4.9, 2)
    typos = rng.random(400) < 0.01
    total[typos] = np.round(total[typos] * 10, 2)
    if month == 9:
        without = rng.random(400) < 0.3
        total[without] = np.round(total[without] - 4.9, 2)
    return {"pieces": pieces, "price": price, "total": total}


found = audit_table(invoices(1), "total", terms="pieces*price")
print(found.formula, found.certificate.verdict.name)
model = found.model()

# %%
# In a pipeline this is ``massart check rule.json invoices.csv --max-wrong 0.03``; exit status 3 stops it.

checks = {month: check_table(model, invoices(month), max_wrong=0.03) for month in range(2, 13)}
for month, check in checks.items():
    if not check.passed:
        print(f"month {month}: {check}, exit status {check.outcome.status}")
        print([(kind.label, kind.rows) for kind in check.audit.kinds.kinds])

# %%

figure, axes = plt.subplots(figsize=(7, 2.8), layout="constrained")
shares = [100 * check.audit.n_wrong / check.audit.n_total for check in checks.values()]
axes.bar(list(checks), shares, color=["tab:blue" if check.passed else "tab:orange" for check in checks.values()])
axes.axhline(3, color="0.4", lw=0.8, ls="--")
_ = axes.set(xlabel="month", ylabel="% of rows that break the rule", xticks=range(2, 13))

# %%
# **What is certain.** The rule, by the verdict of the month in which it was found. In later months nothing is searched:
# rows are compared with the rule, and counted.
