"""
A statistical yearbook, scanned
===============================

Which columns of a published table follow from others? ``massart scan`` tries each as a target. Here it is the table of
quarterly macroeconomic data of the United States that comes with statsmodels (203 quarters, 14 columns), with ten misprints
planted in the column of real interest rates.
"""

import matplotlib.pyplot as plt
import numpy as np
import statsmodels.api as sm

from massart import audit_table, scan_table

quarters = sm.datasets.macrodata.load_pandas().data
rng = np.random.default_rng(0)
misprints = np.sort(rng.choice(len(quarters), 10, replace=False))
quarters.loc[misprints, "realint"] = quarters.loc[misprints, "realint"].mul(10).round(2)
scan = scan_table(quarters)
for audit in scan.identities:
    print(f"{audit.formula}   [{audit.certificate.verdict.name}, {audit.n_wrong} of {audit.n_total} rows wrong]")

# %%
# ``fit`` with its columns, solved for the suspect, lists the rows that break it:

rate = audit_table(quarters, "realint", features=["tbilrate", "infl"], terms="columns")
print(rate.formula)
rate.wrong_rows()[["year", "quarter", "given", "implied", "kind"]]

# %%
# The misprints in the series, and what the rule implies for them:

wrong = rate.wrong_rows()
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.plot(quarters["year"] + quarters["quarter"] / 4, quarters["realint"], color="0.6", lw=0.8)
axes.plot(wrong["year"] + wrong["quarter"] / 4, wrong["given"], "x", color="tab:orange", label="given")
axes.plot(wrong["year"] + wrong["quarter"] / 4, wrong["implied"], "o", mfc="none", label="implied")
axes.set(ylabel="real interest rate")
_ = axes.legend(frameon=False)

# %%
# **What is certain.** PROVEN: no other formula of these columns fits as many quarters. The ten misprints are found; the
# eleventh row is in the data as published, the first quarter of 1959: inflation is 0 there for want of a quarter before.

found = set((np.asarray(rate.wrong_rows()["row"]) - 1).tolist())
others = sorted(found - set(misprints.tolist()))
print(f"{len(found & set(misprints.tolist()))} of 10 misprints are found; other rows, counted from 0: {others}")
