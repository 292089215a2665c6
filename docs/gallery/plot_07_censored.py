"""
Censored answers
================

Engel's survey of 235 Belgian working-class households of 1857 (it comes with statsmodels): what they earn, and what
they spend on food. A questionnaire of today would offer "1,000 or more" as the last answer. Here expenditure is top-coded in
this way, and one answer of five is spoiled: a month in place of a year.
"""

import matplotlib.pyplot as plt
import numpy as np
import statsmodels.api as sm

from massart import Link, MassartReLURegressor

households = sm.datasets.engel.load_pandas().data
X, food = households[["income"]].to_numpy(), households["foodexp"].to_numpy()
rng = np.random.default_rng(0)
asked = np.minimum(food, 1_000)
spoiled = rng.random(len(food)) < 0.2
answers = np.where(spoiled, food / 12, asked)

top = MassartReLURegressor(link=Link(lower=-np.inf, upper=1_000), fit_intercept=True, random_state=0)
before = top.fit(X, asked).coef_[0]
fit = top.fit(X, answers)
plain = np.polyfit(X[:, 0], answers, 1)
low, high = fit.conf_int()[0]
print("of an additional franc go to food:")
print(f"  before answers were spoiled  {before:.3f}")
print(f"  least squares                {plain[0]:.3f}")
print(f"  massart                      {fit.coef_[0]:.3f}, 95 % from {low:.3f} to {high:.3f}")
print(
    f"{fit.certificate_.verdict.name}: {np.sum(~fit.inlier_mask_ & spoiled)} of {spoiled.sum()} spoiled answers are found,"
)
print(f"and {np.sum(~fit.inlier_mask_ & ~spoiled)} others are called wrong")

# %%

figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
axes.plot(X[~spoiled, 0], answers[~spoiled], "o", ms=3, label="answers")
axes.plot(X[spoiled, 0], answers[spoiled], "x", ms=4, color="tab:orange", label="a month in place of a year")
ends = np.linspace(300, 3000, 100)
axes.plot(ends, np.minimum(1_000, fit.intercept_ + fit.coef_[0] * ends), color="0.2", lw=1.2, label="massart")
axes.plot(ends, plain[1] + plain[0] * ends, "--", color="0.6", lw=1, label="least squares")
axes.set(xlabel="income", ylabel="expenditure on food")
_ = axes.legend(frameon=False)

# %%
# **What is certain.** Nothing exactly: households differ. The estimate counts answers at the limit as "1,000 or more", as
# a Tobit model does, and leaves out what no noise explains.
