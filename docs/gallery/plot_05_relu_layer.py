"""
A corrupted ReLU layer
======================

A small neural network learns to tell benign from malignant tumours (Wisconsin breast cancer data, 569 patients; it
comes with scikit-learn) by ten measurements. We record what its four hidden units put out, ``max(0, w.x + b)``, and
then a third of these records is overwritten. Can the weights be read off what is left?
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from massart import MassartReLURegressor

X, malignant = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X[:, 10:20])
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # a few steps suffice for the example
    network = MLPClassifier((4,), max_iter=60, random_state=0).fit(X, malignant)
weights, biases = network.coefs_[0], network.intercepts_[0]
recorded = np.maximum(0, X @ weights + biases)

rng = np.random.default_rng(0)
spoiled = rng.random(recorded.shape) < 0.33
recorded[spoiled] = rng.choice(recorded.ravel(), spoiled.sum())  # values of other patients and units

# %%

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # which would say PLURALITY in words
    found = [MassartReLURegressor(fit_intercept=True, random_state=0).fit(X, column) for column in recorded.T]
for unit, fit in enumerate(found):
    error, certificate = np.abs(fit.coef_ - weights[:, unit]).max(), fit.certificate_
    active = f"active in {certificate.n_active} rows, {certificate.n_decisive} of these agree"
    print(f"unit {unit}: largest error of a weight {error:.0e}, {active}: {certificate.verdict.name}")

# %%

figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
axes.plot(weights.ravel(), np.column_stack([fit.coef_ for fit in found]).ravel(), ".", ms=5)
axes.axline((0, 0), slope=1, color="0.6", lw=0.8)
_ = axes.set(xlabel="weight of the network", ylabel="weight found", title="40 weights, a third of the records spoiled")

# %%
# **What is certain.** All weights are right to rounding. What the rows say by themselves is the verdict of each unit:
# many records are zeros, which any formula that is negative there explains, so that only rows where a unit is active are
# evidence for its weights.
