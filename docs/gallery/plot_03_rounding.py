"""
Published statistics with rounding
==================================

Quarterly data of the United States, 1959 to 2009, as they come with statsmodels (``macrodata``; Federal Reserve Bank of
St. Louis). Among the columns is a real interest rate, published with two decimals, as are the columns that it is
made of. Which are these, and is it right in every quarter?
"""

import matplotlib.pyplot as plt
import numpy as np
import statsmodels.api as sm

from massart import audit_table

quarters = sm.datasets.macrodata.load_pandas().data
audit = audit_table(quarters, "realint", terms="columns")
print(audit.formula)
print(f"{audit.certificate.verdict.name}, {audit.agreement}: {audit.n_wrong} of {audit.n_total} rows are wrong")

# %%
# One row in 203 is wrong:

audit.wrong_rows()[["year", "quarter", "tbilrate", "infl", "given", "implied"]]

# %%
# Inflation itself is computed from the consumer price index. Its rule needs the quarter before, and is written down:

inflation = audit_table(quarters, "infl", terms="log(cpi), log(lag(cpi))")
print(inflation.formula)
print(f"{inflation.certificate.verdict.name}: {inflation.n_wrong} of {inflation.n_total} rows are wrong")

# %%
# The residuals fill what rounding allows, of the rate itself and of the index:

rows = inflation.rows()
figure, axes = plt.subplots(figsize=(7, 2.8), layout="constrained")
axes.plot(np.asarray(rows["row"]), np.asarray(rows["residual"]), ".", ms=3)
axes.axhline(0.005, color="0.6", lw=0.8)
axes.axhline(-0.005, color="0.6", lw=0.8)
_ = axes.set(xlabel="quarter since 1959", ylabel="given - implied", title="lines: half a unit of the last place")

# %%
# **What is certain.** PROVEN, for both: no other formula of these columns fits as many quarters, within the rounding of
# the published numbers; formulas that differ by less than that can tell count as the same. Nothing is claimed about
# quarters that are not in the table.
