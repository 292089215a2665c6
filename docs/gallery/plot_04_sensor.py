"""
Sensor calibration with saturation
==================================

The calibration of an ozone monitor by the National Institute of Standards and Technology (data set Norris of its
Statistical Reference Datasets; J. Norris, public domain): 36 readings of the instrument under test, and those of the
standard. NIST certifies the least-squares line: -0.262323 + 1.002117 x.
"""

import matplotlib.pyplot as plt
import numpy as np

from massart import Link, MassartReLURegressor

# fmt: off
reading = np.array([
    0.1, 338.8, 118.1, 888.0, 9.2, 228.1, 668.5, 998.5, 449.1, 778.9, 559.2, 0.3, 0.1, 778.1, 668.8, 339.3, 448.9, 10.8,
    557.7, 228.3, 998.0, 888.8, 119.6, 0.3, 0.6, 557.6, 339.3, 888.0, 998.5, 778.9, 10.2, 117.6, 228.9, 668.4, 449.2,
    0.2,
])
standard = np.array([
    0.2, 337.4, 118.2, 884.6, 10.1, 226.5, 666.3, 996.3, 448.6, 777.0, 558.2, 0.4, 0.6, 775.5, 666.9, 338.0, 447.5,
    11.6, 556.0, 228.1, 995.8, 887.6, 120.2, 0.3, 0.3, 556.8, 339.1, 887.2, 999.0, 779.0, 11.1, 118.3, 229.2, 669.1, 448.9,
    0.5,
])
# fmt: on
slope, constant = np.polyfit(standard, reading, 1)
print(f"least squares on the data as published: {constant:.6f} + {slope:.6f} x")

# %%
# Now the instrument saturates at 700, and a quarter of the readings is spoiled: what a logger writes when a cable is
# loose. (Both are done here, to the real readings.) Least squares has lost the line; the labels carry noise, so massart
# says NOISY, and its estimate is within two standard errors of the certified line.

rng = np.random.default_rng(5)
logged = np.minimum(reading, 700)
logged[rng.choice(36, 9, replace=False)] = 12.3
X = standard[:, None]
plain = np.polyfit(standard, logged, 1)
fit = MassartReLURegressor(link=Link(lower=-np.inf, upper=700), fit_intercept=True, random_state=0).fit(X, logged)
print(f"least squares: {plain[1]:9.3f} + {plain[0]:.4f} x")
print(f"massart:       {fit.intercept_:9.3f} + {fit.coef_[0]:.4f} x   {fit.certificate_.verdict.name}")
print(f"std. errors:   {fit.intercept_standard_error_:9.3f}   {fit.standard_errors_[0]:.4f}")

# %%

figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
agrees = fit.inlier_mask_
axes.plot(standard[agrees], logged[agrees], "o", ms=4, label="follow the line, or the limit")
axes.plot(standard[~agrees], logged[~agrees], "x", color="tab:orange", label="do not")
ends = np.linspace(0, 1000, 200)
axes.plot(ends, np.minimum(700, fit.intercept_ + fit.coef_[0] * ends), color="0.3", lw=1)
axes.plot(ends, plain[1] + plain[0] * ends, "--", color="0.6", lw=1, label="least squares")
axes.set(xlabel="standard", ylabel="logged")
_ = axes.legend(frameon=False)

# %%
# **What is certain.** Nothing exactly: every reading carries noise. What there is are estimates with standard errors,
# and a list of the readings that no noise explains.
